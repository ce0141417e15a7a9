use std::sync::Arc;

use lineage_sim_model::{DependencyKind, Limit, WaitSplit};

/// What really happened, as no profiler can know it.
///
/// Nothing of it is reachable through a driver or CUPTI function. All times are nanoseconds of
/// `CLOCK_MONOTONIC`, or of the virtual clock.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Truth {
    /// Every operation that ended, in the order of ending.
    pub operations: Vec<Operation>,
    /// Every API call that asked for work, in the order of return.
    pub calls: Vec<Call>,
    /// Operations that ended beyond [`Config::truth_capacity`](crate::Config).
    pub operations_not_kept: u64,
    /// Calls that returned beyond it.
    pub calls_not_kept: u64,
}

impl Truth {
    /// The operations that one call asked for.
    pub fn operations_of(&self, call_ordinal: u64) -> impl Iterator<Item = &Operation> {
        self.operations
            .iter()
            .filter(move |operation| operation.call_ordinal == call_ordinal)
    }

    /// The kernels among the operations.
    pub fn kernels(&self) -> impl Iterator<Item = &Operation> {
        self.operations
            .iter()
            .filter(|operation| operation.kind == OperationKind::Kernel)
    }

    /// The operations that carried this label: see [`KernelBuilder::label_argument`](crate::KernelBuilder::label_argument).
    pub fn labelled(&self, label: u64) -> impl Iterator<Item = &Operation> {
        self.operations
            .iter()
            .filter(move |operation| operation.label == Some(label))
    }

    /// The call with this ordinal.
    pub fn call(&self, call_ordinal: u64) -> Option<&Call> {
        self.calls.iter().find(|call| call.ordinal == call_ordinal)
    }
}

/// What an operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperationKind {
    /// A kernel ran.
    Kernel,
    /// A copy from host to device.
    CopyHostToDevice,
    /// A copy from device to host.
    CopyDeviceToHost,
    /// A copy inside the device.
    CopyDeviceToDevice,
    /// A copy from one device to another.
    CopyPeer,
    /// A set (memset).
    Set,
}

/// One executed activity of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// Rises by one with every operation, in the order in which they were asked for, from 1.
    pub ordinal: u64,
    /// The [`Call::ordinal`] of the call that asked for it.
    pub call_ordinal: u64,
    /// What it did.
    pub kind: OperationKind,
    /// The kernel's name.
    pub name: Option<Arc<str>>,
    /// Carried by data, never by the state of a thread: the kernel argument that was tagged as
    /// label, read when the kernel ran; for a copy, the first 8 bytes of what was moved, as a
    /// little-endian number (`None` where it moved fewer).
    pub label: Option<u64>,
    /// Bytes moved or set; 0 for kernels.
    pub bytes: u64,
    /// The kernel's id of the thread that called.
    pub thread_id: u32,
    /// Entry into the API call.
    pub call_start_ns: u64,
    /// Return of the API call; `None` while it has not returned (or was not kept).
    pub call_end_ns: Option<u64>,
    /// Start on the device.
    pub start_ns: u64,
    /// End on the device.
    pub end_ns: u64,
    /// The stream's id, as CUPTI's records have it.
    pub stream_id: u32,
    /// The context's id, as CUPTI's records have it.
    pub context_id: u32,
    /// The correlation id that CUPTI's record of it carries; 0 where CUPTI gave none.
    pub correlation_id: u32,
    /// 0, or the driver's error code of the failed operation.
    pub result: u32,
    /// The calling thread, counted from 1 in the order of first calls: the same in each run with the virtual clock.
    pub thread_ordinal: u32,
    /// The device, from 0.
    pub device: u32,
    /// The channel of its stream, counted per device.
    pub channel: u32,
    /// It was put into its channel's ring.
    pub queued_ns: u64,
    /// The doorbell was rung for it.
    pub submitted_ns: u64,
    /// Everything that it depends on had happened; may be before it was queued.
    pub dependencies_ns: u64,
    /// What that was last.
    pub last_dependency: DependencyKind,
    /// The [`Operation::ordinal`] behind that.
    pub dependency_ordinal: Option<u64>,
    /// It left its channel.
    pub issued_ns: u64,
    /// The operation that left the channel just before it.
    pub channel_ordinal: Option<u64>,
    /// An engine had room for it.
    pub resources_ns: u64,
    /// The operation whose end made that room, if it waited for room.
    pub resource_ordinal: Option<u64>,
    /// Which limit of the multiprocessors it waited for.
    pub limit: Limit,
    /// Of the time between start and end: preempted in favour of another process.
    pub preempted_ns: u64,
    /// Of the time between start and end: waiting inside, for the others of a collective or for a primary.
    pub waited_inside_ns: u64,
    /// The node of a graph that it was: then [`Operation::call_ordinal`] is the call that launched the graph.
    pub graph: Option<GraphNode>,
    /// The time from [`Operation::call_start_ns`] to the start, split into causes that sum exactly; its
    /// [`binding`](WaitSplit::binding) one is what determined the start.
    pub waits: WaitSplit,
}

/// Which node of which launch an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GraphNode {
    /// The exec's id, as CUPTI's records have it.
    pub graph_id: u32,
    /// Counts the launches of that exec, from 1.
    pub launch: u32,
    /// The exec's node, as CUPTI's records have it.
    pub node_id: u64,
    /// The node from which that one was cloned or last updated.
    pub source_node_id: u64,
    /// The [`Call::ordinal`] of the call that was captured as that node; `None` where it was added explicitly.
    pub capture_call_ordinal: Option<u64>,
}

/// One API call that asked for GPU work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// Rises by one with every such call, in the order of entry, from 1.
    pub ordinal: u64,
    /// The driver function.
    pub function: Arc<str>,
    /// CUPTI's callback id of that function.
    pub callback_id: u32,
    /// The kernel's id of the calling thread.
    pub thread_id: u32,
    /// That thread, counted from 1 in the order of first calls.
    pub thread_ordinal: u32,
    /// Entry.
    pub start_ns: u64,
    /// Return.
    pub end_ns: u64,
    /// The correlation id of the driver call; 0 where CUPTI gave none.
    pub correlation_id: u32,
    /// The correlation id of the runtime call around it; 0 where there was none.
    pub runtime_correlation_id: u32,
    /// What the driver function returned.
    pub result: u32,
    /// How many operations it asked for: 0 where it failed or set zero bytes.
    pub operations: u32,
}

/// Totals since the simulated libraries were loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Driver calls of all kinds.
    pub api_calls: u64,
    /// Driver calls that asked for work.
    pub work_calls: u64,
    /// Operations that ended.
    pub operations_completed: u64,
    /// Operations that were asked for and have not ended.
    pub operations_pending: u64,
    /// External correlation ids pushed.
    pub pushes: u64,
    /// External correlation ids popped.
    pub pops: u64,
    /// Pops that found their stack empty.
    pub pops_of_empty_stacks: u64,
    /// Activity records written into buffers.
    pub records_written: u64,
    /// Activity records dropped for want of a buffer (never reset, unlike CUPTI's own counter).
    pub records_dropped: u64,
    /// Activity buffers that the client gave.
    pub buffers_requested: u64,
    /// Activity buffers that were handed back.
    pub buffers_completed: u64,
    /// Panics that were caught inside simulated functions; anything but 0 is a defect of the simulator.
    pub panics_caught: u64,
    /// Live allocations of device memory.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// The external correlation stacks of live threads that are not empty.
    pub stacks: Vec<StackDepth>,
}

/// The depth of one thread's external correlation stack of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackDepth {
    /// The kernel's id of the thread.
    pub thread_id: u32,
    /// CUPTI's external correlation kind (3 to 5 are the custom ones).
    pub kind: u32,
    /// Ids on the stack.
    pub depth: u64,
}
