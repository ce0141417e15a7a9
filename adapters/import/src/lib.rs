//! What the importers share: the records of another tool's recording in, observations out.
//!
//! An importer parses a file and gives what it finds to a [`Collector`], in the file's order. The
//! [`Recording`] that comes of it gives the same [observations](lineage_core::observation) that a
//! live session gives, sorted by process and correlation id and cut into [slices](Recording::slices)
//! that fit into memory: the correlator and the validator are given one after the other.
//!
//! # Memory
//!
//! A record takes 112 bytes. At most [`Settings::records_in_memory`] of each kind are held; beyond
//! that they are sorted and written to temporary files (in the system's directory for these, unlinked
//! at once), and merged from there. Names are kept once each, 64 MB of them at most.
//!
//! # What is decided here
//!
//! * How many operations a call has is a table by its name ([`Function`]).
//! * A launch while any capture is open in its process is
//!   [`MaybeCaptured`](lineage_core::observation::OperationsDue::MaybeCaptured), unless the recording
//!   has the creation of graph nodes: then a node made inside of the call decides.
//! * A slice ends where no call of the next lies inside one of its own, and says how far the whole
//!   recording reaches ([`Extent`](lineage_core::observation::Extent)), so that edges of a slice are
//!   not taken for edges of the recording.
//! * Ranges (NVTX, annotations) become candidate epochs only if the [settings](Settings) ask for
//!   it. They are inferred evidence: no call is lost for the want of one.
//!
//! Nothing is dropped silently: what cannot be used is counted by [reason](Skip), and records of calls
//! and operations among it are `L07` in every validation.
#![forbid(unsafe_code)]

mod candidates;
mod captures;
mod collector;
mod entry;
mod error;
mod footprint;
mod function;
mod given;
mod holdings;
mod inferred;
mod names;
mod recording;
mod request;
mod settings;
mod skip;
mod slices;
mod spool;
mod templates;

pub use collector::Collector;
pub use error::CollectError;
pub use function::{Boundary, Function, function};
pub use given::{
    Activity, ApiCall, DeviceDescription, EventRecord, GraphNode, OsCall, ProcessDescription,
    Range, RangeKind, Scheduled, Synchronization,
};
pub use holdings::{Holdings, ProcessHoldings, StreamKey};
pub use inferred::{InferredTemplates, infer_templates};
pub use names::NameId;
pub use recording::Recording;
pub use request::{is_request_key, request_in};
pub use settings::{EpochsFrom, Settings};
pub use skip::Skip;
pub use slices::{Slice, Slices};
pub use templates::{Capture, CapturedLaunch, Replay, TemplateMatch, match_templates};

pub use lineage_core::observation::{
    ActivityKind, Footprint, Multiprocessors, Recorder, SwitchedOff, SynchronizationKind,
};
