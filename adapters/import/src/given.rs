//! What an importer gives. Times are nanoseconds of the recording's own clock; an unknown time is
//! `None`, never 0. Names were given to [`Collector::name`](crate::Collector::name) before.

use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::{
    ActivityKind, DeviceDescribed, Footprint, Multiprocessors, SwitchedOff, SynchronizationKind,
};

use crate::names::NameId;

/// A process of the recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessDescription {
    /// The system's number of it.
    pub pid: Option<u64>,
    /// Its name.
    pub name: Option<String>,
    /// Its rank in a distributed job.
    pub rank: Option<u32>,
}

/// A device of the recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceDescription {
    /// The process that numbers it so; `None` if all do.
    pub process: Option<ProcessOrdinal>,
    /// Its ordinal.
    pub ordinal: u32,
    /// Its name.
    pub name: Option<String>,
    /// How many copy engines it has, where the recording says so.
    pub copy_engines: Option<u32>,
    /// Its multiprocessors, as far as the recording has them.
    pub multiprocessors: Multiprocessors,
}

impl DeviceDescription {
    /// What it is like, in a process's observations. No recording says who else could have it.
    pub(crate) fn described(&self) -> DeviceDescribed {
        let some = Some(self.multiprocessors).filter(|of| *of != Multiprocessors::default());
        DeviceDescribed {
            device: self.ordinal,
            copy_engines: self.copy_engines,
            tenancy: None,
            multiprocessors: some,
        }
    }
}

/// A record of an API call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiCall {
    /// The process.
    pub process: ProcessOrdinal,
    /// The recorder's number of the call; 0 if it has none.
    pub correlation: u64,
    /// The calling thread's system id.
    pub tid: u64,
    /// When it was entered.
    pub start_ns: Option<u64>,
    /// When it was left.
    pub end_ns: Option<u64>,
    /// The function's own result code; 0 is success, or that the recorder does not say.
    pub result: u32,
    /// The function's name.
    pub name: NameId,
    /// The kernel's name, where the record of a launch has it.
    pub kernel: Option<NameId>,
}

/// A record of an executed activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// The process.
    pub process: ProcessOrdinal,
    /// The number of the call that asked for it; 0 if it has none.
    pub correlation: u64,
    /// What it is.
    pub kind: ActivityKind,
    /// Device ordinal.
    pub device: u32,
    /// Context id; 0 where not recorded.
    pub context: u32,
    /// Stream id.
    pub stream: u32,
    /// When it was put into a command buffer.
    pub queued_ns: Option<u64>,
    /// When that buffer was given to the device.
    pub submitted_ns: Option<u64>,
    /// When it began.
    pub start_ns: Option<u64>,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// The kernel's name; for copies and sets what the recorder calls their kind.
    pub name: Option<NameId>,
    /// Node of the executable graph, if it ran in one.
    pub graph_node: Option<u64>,
    /// The graph, if it ran in one.
    pub graph: Option<u32>,
    /// Bytes moved or set.
    pub bytes: u64,
    /// How many copies the record stands for; 1 but for batched ones.
    pub copies: u32,
    /// Grid size, for kernels.
    pub grid: [u32; 3],
    /// Block size, for kernels.
    pub block: [u32; 3],
    /// What else a kernel takes of the multiprocessors, where the recording has it.
    pub footprint: Option<Footprint>,
}

/// A record of a wait, of a thread or of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synchronization {
    /// The process.
    pub process: ProcessOrdinal,
    /// The number of the call that waits; 0 if it has none.
    pub correlation: u64,
    /// For what.
    pub kind: SynchronizationKind,
    /// When it began.
    pub start_ns: Option<u64>,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// The context, where known.
    pub context: Option<u32>,
    /// The stream that waits or is waited for, where known.
    pub stream: Option<u32>,
    /// The event's id, where known.
    pub event: Option<u32>,
    /// What joins a wait to the record of its event.
    pub event_sync: Option<u64>,
    /// The number of the call that recorded the event, where known.
    pub recorded_by: Option<u64>,
}

/// An event was recorded on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRecord {
    /// The process.
    pub process: ProcessOrdinal,
    /// The number of the call that recorded it; 0 if it has none.
    pub correlation: u64,
    /// The context, where known.
    pub context: Option<u32>,
    /// The stream, where known.
    pub stream: Option<u32>,
    /// The event's id, where known.
    pub event: Option<u32>,
    /// What joins a wait to this record.
    pub event_sync: Option<u64>,
    /// When the device came to it.
    pub device_ns: Option<u64>,
}

/// A graph's node was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphNode {
    /// The process.
    pub process: ProcessOrdinal,
    /// The thread that made it, by its system id.
    pub tid: u64,
    /// When.
    pub at_ns: u64,
    /// The node.
    pub node: u64,
    /// The node that it was cloned from.
    pub original: Option<u64>,
}

/// A thread was put on a processor, or taken off it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// The process, where known.
    pub process: Option<ProcessOrdinal>,
    /// The thread, by its system id.
    pub tid: u64,
    /// When.
    pub at_ns: u64,
    /// On which processor, where known.
    pub cpu: Option<u32>,
    /// Whether it runs from now on.
    pub running: bool,
    /// Why it was taken off, where the recorder says so.
    pub off: Option<SwitchedOff>,
    /// The state it was left in, as the recorder numbers it.
    pub state: Option<u32>,
}

/// A thread was inside a call of the operating system's runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OsCall {
    /// The process.
    pub process: ProcessOrdinal,
    /// The thread, by its system id.
    pub tid: u64,
    /// The function.
    pub name: NameId,
    /// When it was entered.
    pub start_ns: u64,
    /// When it was left.
    pub end_ns: Option<u64>,
}

/// What made a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RangeKind {
    /// NVTX, pushed and popped on one thread.
    Nvtx,
    /// NVTX, begun and ended, perhaps on different threads.
    NvtxStartEnd,
    /// An annotation of the user's.
    Annotation,
    /// An operator or a function of the framework's. Counted; an epoch only for its request id.
    Framework,
}

/// A named interval on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The process.
    pub process: ProcessOrdinal,
    /// The thread, by its system id.
    pub tid: u64,
    /// Its text.
    pub text: NameId,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// What made it.
    pub kind: RangeKind,
    /// The id of the request it belongs to, where the recording has one.
    pub request: Option<NameId>,
}
