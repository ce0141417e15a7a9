//! What orders work on the device: waits, events, the nodes of graphs. Importers give these;
//! they change no join.

use crate::id::{CorrelationId, HostNanos};

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SynchronizationKind {
    /// A thread waited for an event.
    Event,
    /// A stream was told to wait for an event.
    StreamWait,
    /// A thread waited for a stream.
    Stream,
    /// A thread waited for all of a context or device.
    Context,
    /// The recording does not say.
    Unknown,
}

/// A wait, of a thread or of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Synchronization {
    /// The session's number in its process, from 1.
    pub session: u32,
    /// Number of the call that waits.
    pub correlation: CorrelationId,
    /// For what.
    pub kind: SynchronizationKind,
    /// When it began.
    pub start: Option<HostNanos>,
    /// When it ended.
    pub end: Option<HostNanos>,
    /// The context, where known.
    pub context: Option<u32>,
    /// The stream that waits or is waited for, where known.
    pub stream: Option<u32>,
    /// The event's id, which is used again after the event is destroyed.
    pub event: Option<u32>,
    /// What joins a wait to the record of its event: CUPTI's `cudaEventSyncId`, from CUDA 12.8.
    pub event_sync: Option<u64>,
    /// The call that recorded the event, where the recording says so.
    pub recorded_by: Option<CorrelationId>,
}

/// An event was recorded on a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EventRecord {
    /// The session's number in its process, from 1.
    pub session: u32,
    /// Number of the call that recorded it.
    pub correlation: CorrelationId,
    /// The context, where known.
    pub context: Option<u32>,
    /// The stream, where known.
    pub stream: Option<u32>,
    /// The event's id, which is used again after the event is destroyed.
    pub event: Option<u32>,
    /// What joins a wait to this record.
    pub event_sync: Option<u64>,
    /// When the device came to it; `None` where not collected.
    pub device: Option<HostNanos>,
}

/// A graph's node was made: by a captured call, by hand, or by cloning another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GraphNode {
    /// The thread that made it, by its system id.
    pub tid: u64,
    /// When.
    pub at: HostNanos,
    /// The node.
    pub node: u64,
    /// The node that it was cloned from, where it was.
    pub original: Option<u64>,
}
