//! The observation stream: everything that a session, an importer or the simulator's tests saw.
//!
//! One stream feeds the correlator, the validator and the ledger. An observation says what was
//! seen and nothing that was concluded: conclusions are [rows](crate::row::Row).

mod cause;
mod device;
mod footprint;
mod graph;
mod host;
mod order;
mod scheduler;

pub use cause::{
    Collected, DeviceDescribed, LaunchAttributes, LaunchOrder, Overhead, OverheadKind, Placement,
    StreamDescribed, StreamKind, Tenancy,
};
pub use device::{
    ActivityKind, ApiDomain, ApiId, ApiRecord, DeviceSession, DropSite, Dropped, Extent,
    ExternalRecord, Flushed, Operation, OperationsDue, Recorder,
};
pub use footprint::{Footprint, Multiprocessors};
pub use graph::{
    EdgeKind, GraphChange, GraphEdge, GraphEvent, GraphLaunch, GraphNodeKind, GraphSequence,
};
pub use host::{
    Abandoned, Call, CarrierKind, Declared, Gap, Handoff, LinkKind, Linked, Mark, Marked, Misuse,
    MisuseKind, Named, Parented, Received, Retired, RetiredAs, Scope, Sent, Site, SpanLinked,
    Stepped, ThreadEnded, ThreadStarted,
};
pub use order::{EventRecord, GraphNode, Synchronization, SynchronizationKind};
pub use scheduler::{OsCall, RunQueue, Scheduled, SchedulerSession, SwitchedOff};

use crate::id::ProcessOrdinal;

/// One thing that was seen, in one process.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Observation {
    /// The process it was seen in.
    #[cfg_attr(feature = "serde", serde(default))]
    pub process: ProcessOrdinal,
    /// What was seen.
    pub event: Event,
}

impl Observation {
    /// An observation of a live session, which has one process.
    pub fn live(event: impl Into<Event>) -> Self {
        Self {
            process: ProcessOrdinal(0),
            event: event.into(),
        }
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident($inner:ty)),+ $(,)?) => {
        /// What was seen.
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum Event {
            $($(#[$doc])* $name($inner)),+
        }

        $(impl From<$inner> for Event {
            fn from(inner: $inner) -> Self {
                Self::$name(inner)
            }
        })+
    };
}

events! {
    /// A thread's first lineage event.
    ThreadStarted(ThreadStarted),
    /// A thread that had lineage events ended.
    ThreadEnded(ThreadEnded),
    /// Work was declared: an epoch begins.
    Declared(Declared),
    /// The span that an epoch belongs to became known.
    Parented(Parented),
    /// A span that is not trusted said that it asked for an epoch's work.
    SpanLinked(SpanLinked),
    /// An edge between two epochs.
    Linked(Linked),
    /// An epoch's version rose.
    Stepped(Stepped),
    /// The application marked a moment of an epoch.
    Marked(Marked),
    /// The last owner and carrier of an epoch are gone.
    Retired(Retired),
    /// A carrier was made.
    Sent(Sent),
    /// A carrier was opened where its work goes on.
    Received(Received),
    /// A carrier was dropped unopened, together with its work.
    Abandoned(Abandoned),
    /// A scope ended, on a thread that launches.
    Scope(Scope),
    /// A call that asks for GPU work, as our own callback saw it.
    Call(Call),
    /// Records of a thread were lost because its ring was full.
    Gap(Gap),
    /// A detached reason got its number.
    Named(Named),
    /// The interface was used wrongly.
    Misuse(Misuse),
    /// Device evidence begins, or is not to be had.
    DeviceSession(DeviceSession),
    /// CUPTI's record of an API call.
    Api(ApiRecord),
    /// CUPTI's record of an external correlation id.
    External(ExternalRecord),
    /// CUPTI's record of an executed activity.
    Operation(Operation),
    /// All complete buffers were asked for, and the request returned.
    Flushed(Flushed),
    /// Records were lost, and counted.
    Dropped(Dropped),
    /// How far the whole of an imported recording reaches.
    Extent(Extent),
    /// A wait, of a thread or of a stream.
    Synchronization(Synchronization),
    /// An event was recorded on a stream.
    EventRecord(EventRecord),
    /// A graph's node was made.
    GraphNode(GraphNode),
    /// A graph changed.
    Graph(GraphEvent),
    /// A graph was launched.
    GraphLaunch(GraphLaunch),
    /// A thread was put on a processor, or taken off it.
    Scheduled(Scheduled),
    /// A thread was inside a call of the operating system's runtime.
    OsCall(OsCall),
    /// What is known of the scheduler from here on.
    SchedulerSession(SchedulerSession),
    /// How long a thread waited for a processor within an interval.
    RunQueue(RunQueue),
    /// A thread's time went into something that is not a call's own work.
    Overhead(Overhead),
    /// What a launch was asked to be like.
    LaunchAttributes(LaunchAttributes),
    /// On which hardware channel an operation was.
    Placement(Placement),
    /// What kind of stream a stream is.
    StreamDescribed(StreamDescribed),
    /// What a device is like.
    DeviceDescribed(DeviceDescribed),
    /// What a session collects from here on.
    Collected(Collected),
}
