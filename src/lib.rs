//! Whose request was this GPU work, and why did it start late?
//!
//! A [`launch epoch`](Epoch) is made where GPU work is first declared in an async server. It
//! travels with futures, channels and thread pools, is pushed into CUPTI's external correlation at
//! the CUDA boundary, and is joined to every kernel, copy and set that the work became.
//!
//! ```
//! use std::time::Duration;
//! use launch_lineage::prelude::*;
//!
//! # #[cfg(all(feature = "record", feature = "tokio", feature = "cupti"))] {
//! # use tracing_subscriber::prelude::*;
//! # let _ = || -> Result<(), Box<dyn std::error::Error>> {
//! let lineage = Lineage::builder().service("llm").device(Cupti::new()).start()?;
//! tracing_subscriber::registry().with(lineage.layer()).init();
//!
//! // A span with the field `launch_epoch` declares an epoch; an envelope takes it along …
//! #[tracing::instrument(skip_all, fields(launch_epoch))]
//! async fn generate(queue: tokio::sync::mpsc::Sender<Carried<String>>, prompt: String) {
//!     let _ = queue.send(carried(prompt)).await;
//! }
//!
//! // … to the thread that launches: N requests become one batch.
//! fn serve(jobs: Vec<Carried<String>>) {
//!     Epoch::merge(&jobs).launch(|| { /* launch kernels */ });
//! }
//!
//! let report = lineage.shutdown(Duration::from_secs(5));
//! println!("{}", report.device);
//! # Ok(()) };
//! # }
//! ```
//!
//! # Features
//!
//! * `record` (default): recording itself. Without it the whole interface compiles to nothing.
//! * `tokio` (default): the tracing layer, futures, spawning and envelopes, from `lineage-tokio`.
//! * `cupti` (default): device evidence, from `lineage-cupti`. libcupti is loaded at run time; where
//!   it is missing the server runs on and lineage says `no device evidence: <why>`.
//! * `crossbeam-channel`, `flume`: `send_carried` on the senders of these crates.
//! * `jsonl`: the JSON-lines ledger.
//! * `cudarc`: capture and replay of cudarc's graphs under epochs, from `lineage-cudarc`: the module `cudarc`.
//! * `arrow`: the run directory, from `lineage-arrow`: the module `arrow`.
//! * `sched`: when threads were off their processors, from `lineage-sched`: the module `sched`.
//! * `otlp`: export to an OpenTelemetry collector, from `lineage-otlp`: the module `otlp`.

pub use lineage_core as core;

#[doc(inline)]
pub use lineage_core::{
    Attribution, Captured, DeclareError, DeviceEvidence, Epoch, HasEpoch, LaunchEpoch, LaunchScope,
    Lineage, LineageBuilder, Report, SchedulerEvidence, Scope, Share, StartError, current,
    detached, enter_for_launch, launch,
};
#[doc(inline)]
pub use lineage_core::{
    carrier, evidence, fault, future, hook, id, observation, part, raw, readiness, row, service,
    source, thread, verdict,
};

#[cfg(feature = "jsonl")]
#[doc(inline)]
pub use lineage_core::ledger;

#[cfg(feature = "tokio")]
#[doc(inline)]
pub use lineage_tokio::*;

#[cfg(feature = "cupti")]
#[doc(inline)]
pub use lineage_cupti::Cupti;

/// Capture and replay of cudarc's graphs under epochs.
#[cfg(feature = "cudarc")]
#[doc(inline)]
pub use lineage_cudarc as cudarc;

/// The run directory: Arrow IPC streams that are appended while the server runs.
#[cfg(feature = "arrow")]
#[doc(inline)]
pub use lineage_arrow as arrow;

/// When the process's threads were off their processors, and why.
#[cfg(feature = "sched")]
#[doc(inline)]
pub use lineage_sched as sched;

/// Export to an OpenTelemetry collector.
#[cfg(feature = "otlp")]
#[doc(inline)]
pub use lineage_otlp as otlp;

/// What an instrumented server needs in scope.
pub mod prelude {
    pub use lineage_core::observation::Mark;
    pub use lineage_core::thread::{BuilderExt as _, ScopeExt as _};
    pub use lineage_core::{Epoch, HasEpoch, Lineage, detached, launch};
    #[cfg(feature = "cupti")]
    pub use lineage_cupti::Cupti;
    #[cfg(feature = "tokio")]
    pub use lineage_tokio::{
        Carried, FutureExt as _, JoinSetExt as _, LineageExt as _, LocalSetExt as _,
        RuntimeExt as _, SendCarried as _, SendCarriedAsync as _, StreamExt as _,
        TrySendCarried as _, carried, carried_fn, carried_fn_mut, spawn, spawn_blocking,
        spawn_local,
    };
}

/// The README's code is compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// And so is that of the page on migration.
#[cfg(all(doctest, feature = "tokio"))]
#[doc = include_str!("../docs/migration.md")]
pub struct Migration;

/// And of that on collectors.
#[cfg(all(doctest, feature = "otlp"))]
#[doc = include_str!("../docs/collector.md")]
pub struct Collector;

/// And of that on privacy.
#[cfg(all(doctest, feature = "otlp"))]
#[doc = include_str!("../docs/privacy.md")]
pub struct Privacy;
