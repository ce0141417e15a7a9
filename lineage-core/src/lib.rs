//! Launch epochs, and what is concluded from them: the core of launch lineage.
//!
//! A **launch epoch** is the identity of declared GPU work. It is made where the work is first
//! declared, handed along over threads and tasks, made current where it is launched, and joined to
//! every kernel, copy and set it became. This crate knows nothing of CUDA, tokio, tracing or
//! OpenTelemetry: those plug in through [`hook`], [`source`] and [`raw`].
//!
//! ```
//! use std::time::Duration;
//! use lineage_core::carrier::Carrier;
//! use lineage_core::observation::CarrierKind;
//! use lineage_core::{Attribution, Epoch, Lineage, current};
//!
//! let lineage = Lineage::builder().service("llm").start()?;
//!
//! // Declared where the request comes in, …
//! let request = Epoch::declare("generate");
//! let identity = request.id();
//!
//! // … carried to the thread that launches, …
//! let carrier = Carrier::new(&request, CarrierKind::Thread);
//! let engine = std::thread::spawn(move || {
//!     let request = carrier.open();
//!     // … and current there while its kernels are launched.
//!     request.launch(|| current())
//! });
//! let seen = engine.join().expect("the engine does not panic");
//! # #[cfg(feature = "record")]
//! assert_eq!(seen, Attribution::Epoch(identity.expect("a session records")));
//!
//! drop(request);
//! let report = lineage.shutdown(Duration::from_secs(1));
//! # #[cfg(feature = "record")]
//! assert_eq!(report.totals.epochs.declared, 1);
//! # Ok::<(), lineage_core::StartError>(())
//! ```
//!
//! # From a thread to a row
//!
//! | step | where | module |
//! | --- | --- | --- |
//! | declare, hand over, enter | the application's threads | [`Epoch`], [`carrier`], [`future`], [`mod@thread`], [`Scope`] |
//! | one record per event, into the thread's bounded ring | the application's threads | internal |
//! | rings and device evidence become [observations](observation) | the drain thread | [`Lineage`], [`source`] |
//! | observations become [rows](row), pure and bounded | the drain thread | [`correlator`] |
//! | rows go to memory and sinks | the drain thread | [`source::Sink`], `ledger` |
//!
//! Each stage of a row says how it is known ([`evidence`]); what was lost or joined wrongly is a
//! [fault](mod@fault) with a stable code. Whatever is dropped on the way is counted in [`totals`].
//!
//! # Features
//!
//! * `record` (default): recording itself. Without it every call of the interface compiles to nothing.
//! * `serde`: observations and rows as serde types.
//! * `jsonl`: the JSON-lines ledger.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod captured;
pub mod carrier;
mod closure;
pub mod correlator;
mod epoch;
pub mod evidence;
pub mod fault;
pub mod future;
pub mod hook;
#[cfg_attr(not(feature = "record"), path = "hot/off.rs")]
mod hot;
pub mod id;
mod interval;
#[cfg(feature = "jsonl")]
pub mod ledger;
pub mod observation;
pub mod part;
pub mod readiness;
#[cfg_attr(not(feature = "record"), path = "resumable/off.rs")]
mod resumable;
pub mod row;
mod scope;
pub mod service;
mod session;
pub mod source;
pub mod thread;
pub mod totals;
pub mod verdict;

pub use captured::Captured;
pub use epoch::{DeclareError, Epoch, HasEpoch};
pub use id::{Attribution, LaunchEpoch};
pub use scope::{LaunchScope, Scope, current, detached, enter_for_launch, launch, raw};
pub use session::{
    DeviceEvidence, Lineage, LineageBuilder, Report, SchedulerEvidence, Share, StartError,
};
