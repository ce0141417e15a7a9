//! Launch epochs and GPU operations in an OpenTelemetry collector.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod attributes;
mod builder;
mod config;
mod ids;
mod logs;
mod metrics;
mod pipeline;
mod resource;
mod sink;
mod spans;
mod transport;

pub use builder::OtlpBuilder;
pub use config::{Compression, Protocol, Sampler, SettingsError};
pub use ids::Ids;
pub use pipeline::{
    ExportCounters, ExportCounts, ExportStartError, LastError, LostCounts, Problem, ProblemKind,
    Signal, SignalCounts,
};
pub use sink::{Otlp, OtlpHandle};
pub use spans::{Detail, MAX_TEXT_BYTES, RootSampler, SpanCounts, TextKind, Threshold, Volume};
pub use transport::TargetError;
#[cfg(feature = "tls")]
pub use transport::TlsError;

/// What `Otlp` is made of, for this package's own tests and measurements: no part of its interface.
#[doc(hidden)]
pub mod raw {
    pub use crate::config::Settings;
    pub use crate::pipeline::{Origin, Pipeline};
}
