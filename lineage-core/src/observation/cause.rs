//! What tells causes apart: overheads that name one, attributes of launches, where work was placed,
//! and what is collected at all.
//!
//! These change no join. Without them a verdict is `unresolved`, and says which of them would
//! settle it.

use super::footprint::Multiprocessors;
use crate::id::{CorrelationId, HostNanos};

/// What CUPTI says a thread's time went into (`CUpti_ActivityOverheadKind`, CUPTI's
/// `cupti_activity.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OverheadKind {
    /// The driver compiled PTX for this device.
    DriverCompiler,
    /// The runtime loaded a module when it was first needed.
    ModuleLoading,
    /// The function was loaded at its first launch.
    LazyFunctionLoading,
    /// The command buffer was full, so the call had to wait for the device.
    CommandBufferFull,
    /// Managed memory was set up.
    UnifiedMemoryInit,
    /// The tracer itself: a buffer was requested, flushed, or its own bookkeeping took time.
    Tracer,
    /// A kind that this version does not know, by CUPTI's number.
    Other(u32),
}

/// A thread's time went into something that is not the call's own work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Overhead {
    /// The session's number in its process, from 1.
    pub session: u32,
    /// Into what.
    pub kind: OverheadKind,
    /// The call it belongs to; `None` where CUPTI gives 0.
    pub correlation: Option<CorrelationId>,
    /// The thread, by its system id, where the record is of a thread.
    pub thread: Option<u64>,
    /// When it began.
    pub start: HostNanos,
    /// When it ended.
    pub end: HostNanos,
    /// The hardware channel whose buffer was full, where that is what it is about.
    pub channel: Option<u32>,
}

/// How far a launch may overlap what is before it in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LaunchOrder {
    /// It begins when what is before it in its stream has ended.
    Strict,
    /// It may begin before that: `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
    Programmatic,
}

/// What a launch was asked to be like, as the callback read it from the parameters of
/// `cuLaunchKernelEx`. No activity record says this.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LaunchAttributes {
    /// The session's number in its process, from 1.
    pub session: u32,
    /// Number of the launch.
    pub correlation: CorrelationId,
    /// Its order in its stream.
    pub order: LaunchOrder,
    /// Whether an attribute records an event (`…_PROGRAMMATIC_EVENT`, `…_LAUNCH_COMPLETION_EVENT`).
    pub records_event: bool,
}

/// On which hardware channel an operation was (`channelID` of CUPTI's kernel and copy records).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Placement {
    /// The session's number in its process, from 1.
    pub session: u32,
    /// Number of the call that asked for the operation.
    pub correlation: CorrelationId,
    /// Node of the executable graph, if it ran in one.
    pub graph_node: Option<u64>,
    /// The channel, counted per device.
    pub channel: u32,
}

/// How a stream is ordered beside others of its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum StreamKind {
    /// The legacy default stream: before and behind every blocking stream of its context.
    LegacyDefault,
    /// A thread's own default stream; ordered with the legacy one, as blocking streams are.
    PerThreadDefault,
    /// Ordered with the legacy default stream.
    Blocking,
    /// Ordered with no other (`CU_STREAM_NON_BLOCKING`).
    NonBlocking,
}

/// What kind of stream a stream is, by CUPTI's STREAM and CONTEXT records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StreamDescribed {
    /// The session's number in its process, from 1.
    pub session: u32,
    /// The device.
    pub device: u32,
    /// CUPTI's context id.
    pub context: u32,
    /// CUPTI's stream id.
    pub stream: u32,
    /// What kind.
    pub kind: StreamKind,
    /// When it was made, if that was seen: nothing can have been on it before.
    pub made: Option<HostNanos>,
}

/// Who else can have a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Tenancy {
    /// Nobody: the compute mode is exclusive, or no other process had it.
    Exclusive,
    /// Other processes, in turn or at once (time slices, MPS).
    Shared,
}

/// What a device is like, as far as causes depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DeviceDescribed {
    /// Device ordinal.
    pub device: u32,
    /// How many copy engines it has (`CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT`). With one or two,
    /// copies of one direction exclude each other. `None` where not collected.
    pub copy_engines: Option<u32>,
    /// Who else can have it; `None` where that is not known.
    pub tenancy: Option<Tenancy>,
    /// Its multiprocessors; `None` where nothing of them was collected.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub multiprocessors: Option<Multiprocessors>,
}

/// What a session collects from here on, beyond calls that ask for work and what they became. What
/// is not said to be collected is not: that something was not recorded proves nothing then.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Collected {
    /// The session's number in its process, from 1.
    pub session: u32,
    /// From when on.
    pub at: HostNanos,
    /// Every call that orders work: waits, event records, allocations in stream order, host
    /// functions, memory operations, graph uploads, prefetches, and the making of streams.
    pub order_calls: bool,
    /// When work was queued and submitted.
    pub latency: bool,
    /// Event records, and waits for them.
    pub events: bool,
    /// Overheads.
    pub overheads: bool,
    /// The attributes of launches.
    pub launch_attributes: bool,
}
