//! Launch epochs and GPU operations in an OpenTelemetry collector.
//!
//! [`Otlp`] is a sink for a session. What it sends, and which span stands for what:
//!
//! ```text
//! the server's own span                       trace of the request
//! └─ request        an epoch: what was declared
//!    ├─ operation   a kernel, copy or set launched under it
//!    └─ participation ──link──► batch         its part in one step of a batch
//!
//! batch ──links──► every participation        one step of a batch: a trace of its own
//! └─ operation                                what the step launched
//! ```
//!
//! ```
//! use std::time::Duration;
//!
//! use lineage_core::Lineage;
//! use lineage_otlp::{Detail, Otlp, Protocol, Volume};
//!
//! let otlp = Otlp::builder()
//!     .endpoint("http://127.0.0.1:4317")
//!     .protocol(Protocol::Grpc)
//!     // Kernels of late, slow or faulty requests; of all others one span with sums.
//!     .volume(Volume::of_all(Detail::SumsAndLate))
//!     .shutdown_within(Duration::from_secs(1))
//!     .build();
//! let handle = otlp.handle();
//! let lineage = Lineage::builder().service("llm").sink(otlp).start()?;
//! // … and at any time, from any thread:
//! println!("{} spans are on their way", handle.export().spans.pending());
//! # Ok::<(), lineage_core::StartError>(())
//! ```
//!
//! * **Whose child a request is.** An epoch's W3C parent comes from `lineage-tower`, from
//!   [`child_of_current`], or, for users of tracing-opentelemetry, from `OpenTelemetryBridge` (feature
//!   `tracing-opentelemetry`). Without one a request is a trace of its own, whose id is known
//!   beforehand: [`Ids`].
//! * **How much is sent.** [`Volume`]: everything of what its head sampled, nothing of what it did not,
//!   and of the rest what turns out to be late, slow or faulty.
//! * **What it costs.** The program's threads do nothing for it. Spans are made on the session's drain
//!   thread; a thread of the exporter's own sends them. Memory is bounded by
//!   [`queue_bytes`](OtlpBuilder::queue_bytes), [`hold_bytes`](OtlpBuilder::hold_bytes) and what an
//!   interval of [`flush_every`](lineage_core::LineageBuilder::flush_every) brings.
//! * **What goes wrong** is said once per kind ([`OtlpBuilder::on_problem`]) and counted
//!   ([`OtlpHandle`]). Nothing that a collector does or leaves undone is felt by the program; the end of
//!   the session waits for it no longer than [`shutdown_within`](OtlpBuilder::shutdown_within).
//!
//! Names are in [`attributes`], and described in the repository's `docs/attributes.md`.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    clippy::disallowed_methods,
    reason = "the exporter's own tasks are nobody's work, and carry no epoch"
)]

pub mod attributes;
#[cfg(feature = "tracing-opentelemetry")]
mod bridge;
mod builder;
mod config;
mod cpu;
mod ids;
mod logs;
mod metrics;
mod parent;
mod pipeline;
mod resource;
mod sink;
mod spans;
mod transport;

#[cfg(feature = "tracing-opentelemetry")]
pub use bridge::OpenTelemetryBridge;
pub use builder::OtlpBuilder;
pub use config::{Compression, Protocol, Sampler, SettingsError};
pub use ids::Ids;
pub use parent::child_of_current;
pub use pipeline::{
    ExportCounters, ExportCounts, ExportStartError, LastError, LostCounts, Problem, ProblemKind,
    Signal, SignalCounts,
};
pub use sink::{Otlp, OtlpHandle};
pub use spans::{Detail, MAX_TEXT_BYTES, RootSampler, SpanCounts, TextKind, Threshold, Volume};
pub use transport::TargetError;
#[cfg(feature = "tls")]
pub use transport::TlsError;

/// The README's code is compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// What `Otlp` is made of, for this package's own tests and measurements: no part of its interface.
#[doc(hidden)]
pub mod raw {
    pub use crate::config::Settings;
    pub use crate::pipeline::{Origin, Pipeline};
}
