//! What CUPTI, or an importer in its place, reports.

use std::fmt;
use std::sync::Arc;

use super::footprint::Footprint;
use crate::id::{CorrelationId, HostNanos};

/// Which of CUDA's two interfaces a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ApiDomain {
    /// The driver, `cu…`.
    Driver,
    /// The runtime, `cuda…`.
    Runtime,
}

/// A function of CUDA, by CUPTI's callback id (`cbid`) in its domain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ApiId {
    /// The domain.
    pub domain: ApiDomain,
    /// CUPTI's callback id.
    pub cbid: u32,
    /// The function's name, where the source knows it.
    pub name: Option<Arc<str>>,
}

impl fmt::Display for ApiId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "{:?} callback id {}", self.domain, self.cbid),
        }
    }
}

/// How many operations a successful call of a function has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OperationsDue {
    /// None: the call asks for no GPU work.
    None,
    /// Exactly one.
    One,
    /// One or more.
    Many,
    /// None, one or more: nothing is lost if there is none.
    Any,
    /// None if the call was captured into a graph, else as usual: a capture was open in the process,
    /// and the recording does not say which calls it took.
    MaybeCaptured,
}

/// CUPTI's record of an API call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ApiRecord {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// Which function.
    pub api: ApiId,
    /// CUPTI's number of the call.
    pub correlation: CorrelationId,
    /// The calling thread's system id.
    pub tid: u64,
    /// When it was entered; `None` where CUPTI wrote 0.
    pub start: Option<HostNanos>,
    /// When it was left; `None` where CUPTI wrote 0.
    pub end: Option<HostNanos>,
    /// The function's own result code; 0 is success.
    pub result: u32,
    /// How many operations are due.
    pub due: OperationsDue,
}

/// CUPTI's record that an API call was made while an external id was on its thread's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExternalRecord {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// CUPTI's external correlation kind; ours is CUSTOM2.
    pub kind: u32,
    /// Whether the kind is the one that this session pushes under.
    pub own_kind: bool,
    /// The id on top of the stack.
    pub external_id: u64,
    /// The call it was on top for.
    pub correlation: CorrelationId,
    /// Start of the next API record in the same buffer with the same correlation id: the record
    /// itself has no time.
    pub beside: Option<HostNanos>,
}

/// Kind of an executed activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ActivityKind {
    /// A kernel.
    Kernel,
    /// A memory copy.
    Copy,
    /// A memory set.
    Set,
    /// One launch of a whole graph, where the recorder was told not to look at its nodes.
    Graph,
}

/// One executed activity.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Operation {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// Kernel, copy or set.
    pub kind: ActivityKind,
    /// Number of the call that asked for it; 0 for device-launched work.
    pub correlation: CorrelationId,
    /// Device ordinal.
    pub device: u32,
    /// CUPTI's context id.
    pub context: u32,
    /// CUPTI's stream id.
    pub stream: u32,
    /// When it was put into a command buffer; `None` where not collected.
    pub queued: Option<HostNanos>,
    /// When that buffer was given to the device; `None` where not collected.
    pub submitted: Option<HostNanos>,
    /// When it began; `None` where CUPTI wrote 0.
    pub start: Option<HostNanos>,
    /// When it ended; `None` where CUPTI wrote 0.
    pub end: Option<HostNanos>,
    /// The kernel's name; for copies and sets what CUPTI calls their kind.
    pub name: Option<Arc<str>>,
    /// Node of the executable graph, if it ran in one.
    pub graph_node: Option<u64>,
    /// The graph, if it ran in one.
    pub graph: Option<u32>,
    /// Bytes moved or set; 0 for kernels.
    pub bytes: u64,
    /// How many copies the record stands for; 1 for all but batched ones.
    pub copies: u32,
    /// Grid size, for kernels.
    pub grid: [u32; 3],
    /// Block size, for kernels.
    pub block: [u32; 3],
    /// What else it takes of the multiprocessors, for kernels; `None` where not collected.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub footprint: Option<Footprint>,
}

/// `FlushAll(0)` returned: every complete buffer had been handed over by then.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Flushed {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// When the flush was asked for.
    pub asked: HostNanos,
    /// When it returned.
    pub returned: HostNanos,
    /// Whether this was the last one: nothing comes after it.
    pub last: bool,
}

/// Where records were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum DropSite {
    /// CUPTI had no buffer to write to (its own count).
    CuptiBuffer,
    /// The tail of a buffer that was returned by force.
    BufferTail,
    /// A completed buffer could not be kept until it was decoded.
    BufferQueue,
    /// A record could not be decoded.
    Undecodable,
    /// A callback panicked, and recording was switched off.
    CallbackPanic,
    /// The correlator had to forget the oldest it held.
    Correlator,
    /// The interface was used after shutdown.
    AfterShutdown,
    /// An epoch could not be declared.
    Declare,
    /// A sink failed to keep what it was given.
    Sink,
    /// The buffer of a thread's switches was full, and the system counted what it could not write.
    SchedulerRing,
    /// Graphs changed faster than the changes were read, or a change could not be named.
    GraphQueue,
}

/// Records were lost, and counted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Dropped {
    /// Where.
    pub site: DropSite,
    /// How many, since the last such observation of this site.
    pub count: u64,
    /// When it was noticed.
    pub at: HostNanos,
}

/// A tool that records GPU work, whose files can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Recorder {
    /// NVIDIA Nsight Systems.
    NsightSystems,
    /// Kineto, PyTorch's profiler.
    Kineto,
}

impl fmt::Display for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NsightSystems => "Nsight Systems",
            Self::Kineto => "Kineto",
        })
    }
}

/// How far the whole of a recording reaches, for a reader that is given a part of it: what lies
/// beyond its ends is the edge of the recording, and what lies beyond the part is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Extent {
    /// The session's number in its process, from 1.
    pub session: u32,
    /// The ids of the first and the last call; `None` if no call was recorded.
    pub calls: Option<(CorrelationId, CorrelationId)>,
    /// The ids of the first and the last call with an operation; `None` if no operation was
    /// recorded.
    pub operations: Option<(CorrelationId, CorrelationId)>,
}

/// Device evidence begins, ends, or is not to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "state", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum DeviceSession {
    /// Records are collected.
    Started {
        /// The CUPTI session's number in its process, from 1.
        session: u32,
        /// Version as `cuptiGetVersion` gives it.
        version: u32,
        /// When.
        at: HostNanos,
        /// Whether the start-up self-test saw external correlation records; `None` if it could not
        /// be run yet.
        external_correlation: Option<bool>,
    },
    /// The records come from a recording of another tool's.
    Imported {
        /// The session's number in its process, from 1.
        session: u32,
        /// Which tool's.
        recorder: Recorder,
        /// The earliest time in it.
        at: HostNanos,
    },
    /// No device evidence: why.
    Absent {
        /// What a person reads.
        why: Arc<str>,
        /// When.
        at: HostNanos,
    },
    /// Collection ended; every record was handed over.
    Ended {
        /// The CUPTI session's number in its process, from 1.
        session: u32,
        /// When.
        at: HostNanos,
    },
}
