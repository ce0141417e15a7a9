//! The record of an operation, from the call that asks for it to the operation's end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lineage_sim_model::Facts;

use crate::abi;
use crate::config::model;
use crate::cupti::activity::kind;
use crate::cupti::buffers::{Sink, Slot};
use crate::cupti::client::{self, Client, PerClient};
use crate::cupti::layout::{kernel, memcpy, memcpy_peer, memset};
use crate::cupti::records::{CHANNEL_COMPUTE, CHANNEL_COPY, size_of_kind};
use crate::cupti::writer::Writer;
use crate::faults::{self, RecordFaults};
use crate::objects::Function;
use crate::submit::NodePlace;
use crate::threads::ThreadState;

/// What a record of the device says beside its times.
pub(crate) enum Shape {
    Kernel {
        function: Arc<Function>,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared_bytes: u32,
        registers_per_thread: u32,
        cooperative: bool,
        priority: i32,
        /// Blocks of a cluster; zeros for none.
        cluster: [u32; 3],
    },
    Copy {
        copy_kind: u8,
        source_kind: u8,
        target_kind: u8,
        asynchronous: bool,
        bytes: u64,
        /// Source and target of a copy between devices.
        peers: Option<[Peer; 2]>,
    },
    Set {
        value: u32,
        bytes: u64,
        asynchronous: bool,
        memory_kind: u16,
    },
}

/// One side of a copy between devices.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) device: u32,
    pub(crate) context_id: u32,
}

/// Where an operation belongs, for its record.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) context_id: u32,
    pub(crate) stream_id: u32,
    pub(crate) correlation_id: u32,
    pub(crate) runtime_correlation_id: u32,
    /// The graph node that it is.
    pub(crate) node: Option<NodePlace>,
}

/// The records of one operation: one for each client that records its kind.
pub(crate) struct DeviceRecord {
    parts: PerClient<Option<Part>>,
    common: Common,
}

/// What all of them say.
struct Common {
    shape: Shape,
    owner: Owner,
    faults: RecordFaults,
    device: u32,
    channel: u32,
    grid_id: u64,
}

/// What one client's says.
struct Part {
    slot: Slot,
    kind: u32,
    /// Of one copy of it: a fault may write two.
    bytes: usize,
    /// Latency timestamps are on.
    latency: bool,
    start_ns: u64,
    queued_ns: u64,
    submitted_ns: u64,
}

static NEXT_GRID: AtomicU64 = AtomicU64::new(1);

/// Whether anybody records kernels.
pub(crate) fn records_kernels() -> bool {
    let mut clients = client::all().iter();
    clients.any(|client| kernel_kind(client).is_some())
}

/// The kind under which a client records kernels, if at all.
fn kernel_kind(client: &Client) -> Option<u32> {
    [kind::CONCURRENT_KERNEL, kind::KERNEL]
        .into_iter()
        .find(|kind| client.recording.has(*kind))
}

impl Shape {
    /// The kind under which a client records it, if at all.
    fn kind_of(&self, client: &Client) -> Option<u32> {
        let kind = match self {
            Self::Kernel { .. } => return kernel_kind(client),
            Self::Copy { peers: None, .. } => kind::MEMCPY,
            Self::Copy { peers: Some(_), .. } => kind::MEMCPY2,
            Self::Set { .. } => kind::MEMSET,
        };
        client.recording.has(kind).then_some(kind)
    }
}

impl DeviceRecord {
    /// Takes a place in the calling thread's buffer of each client that records the kind.
    pub(crate) fn open(thread: &ThreadState, owner: &Owner, shape: Shape) -> Option<Self> {
        let faults = faults::of_next_device_record();
        let parts = PerClient::new(|client| Part::open(thread, client, &shape, faults));
        Some(Self {
            parts,
            common: Common {
                shape,
                owner: *owner,
                faults,
                device: 0,
                channel: 0,
                grid_id: 0,
            },
        })
    }

    /// The operation starts: everything is known but the end.
    pub(crate) fn begin(&mut self, start_ns: u64, facts: &Facts) {
        self.common.device = facts.device;
        self.common.channel = facts.channel;
        self.common.grid_id = NEXT_GRID.fetch_add(1, Ordering::Relaxed);
        for (client, part) in self.parts.each() {
            let Some(part) = part else { continue };
            let on_its_clock = |at_ns| client.clock.of_device_ns(facts.device, at_ns);
            if !self.common.faults.has_no_times {
                part.start_ns = on_its_clock(start_ns);
            }
            if part.latency {
                part.queued_ns = on_its_clock(facts.queued_ns);
                part.submitted_ns = on_its_clock(facts.submitted_ns);
            }
            part.slot.update(|place| {
                for copy in place.chunks_mut(part.bytes) {
                    match &self.common.shape {
                        Shape::Kernel { .. } => self.common.write_kernel(part, copy),
                        Shape::Copy { .. } => self.common.write_copy(part, copy),
                        Shape::Set { .. } => self.common.write_set(part, copy),
                    }
                }
            });
        }
    }

    /// The operation has ended.
    pub(crate) fn finish(self, end_ns: u64) {
        let common = &self.common;
        for (client, part) in self.parts.into_each() {
            let Some(part) = part else { continue };
            let end_ns = if common.faults.has_no_times || common.faults.has_no_end {
                0
            } else {
                let end_ns = client.clock.of_device_ns(common.device, end_ns);
                // Reading two clocks is not exact; only a clock that steps may turn a record round.
                if model().device_step_ns == 0 {
                    end_ns.max(part.start_ns)
                } else {
                    end_ns
                }
            };
            part.slot.complete(|place| {
                for copy in place.chunks_mut(part.bytes) {
                    let mut writer = Writer(copy);
                    match common.shape {
                        Shape::Kernel { .. } => {
                            writer.u64(kernel::END, end_ns);
                            writer.u64(kernel::COMPLETED, end_ns);
                        }
                        Shape::Copy { .. } => writer.u64(memcpy::END, end_ns),
                        Shape::Set { .. } => writer.u64(memset::END, end_ns),
                    }
                }
            });
        }
    }
}

impl Part {
    fn open(
        thread: &ThreadState,
        client: &'static Client,
        shape: &Shape,
        faults: RecordFaults,
    ) -> Option<Self> {
        let kind = shape.kind_of(client)?;
        let bytes = size_of_kind(kind)?;
        if faults.is_dropped {
            client.delivery.count_dropped(1);
        }
        if faults.is_dropped || faults.is_lost {
            return None;
        }
        let copies = if faults.is_doubled { 2 } else { 1 };
        Some(Self {
            slot: Sink::of(thread, client).open(bytes * copies, copies)?,
            kind,
            bytes,
            latency: client.recording.latency_timestamps.load(Ordering::Acquire),
            start_ns: 0,
            queued_ns: 0,
            submitted_ns: 0,
        })
    }
}

impl Common {
    fn write_kernel(&self, part: &Part, place: &mut [u8]) {
        let Shape::Kernel {
            function,
            grid,
            block,
            dynamic_shared_bytes,
            registers_per_thread,
            cooperative,
            priority,
            cluster,
        } = &self.shape
        else {
            return;
        };
        let mut writer = Writer(place);
        writer.u32(0, part.kind);
        let registers = u16::try_from(*registers_per_thread).unwrap_or(u16::MAX);
        writer.u16(kernel::REGISTERS_PER_THREAD, registers);
        writer.u64(kernel::START, part.start_ns);
        writer.u32(kernel::DEVICE_ID, self.device);
        writer.u32(kernel::CONTEXT_ID, self.owner.context_id);
        writer.u32(kernel::STREAM_ID, self.owner.stream_id);
        writer.u32(kernel::GRID_X, grid[0]);
        writer.u32(kernel::GRID_Y, grid[1]);
        writer.u32(kernel::GRID_Z, grid[2]);
        writer.u32(kernel::BLOCK_X, block[0]);
        writer.u32(kernel::BLOCK_Y, block[1]);
        writer.u32(kernel::BLOCK_Z, block[2]);
        writer.u32(kernel::DYNAMIC_SHARED_MEMORY, *dynamic_shared_bytes);
        writer.u32(kernel::CORRELATION_ID, self.owner.correlation_id);
        writer.u64(kernel::GRID_ID, self.grid_id);
        let name = function.module_name.pointer().expose_provenance();
        writer.u64(kernel::NAME, name as u64);
        writer.u64(kernel::QUEUED, part.queued_ns);
        writer.u64(kernel::SUBMITTED, part.submitted_ns);
        writer.u8(kernel::LAUNCH_TYPE, u8::from(*cooperative));
        writer.u32(kernel::CHANNEL_ID, self.channel + 1);
        writer.u32(kernel::CHANNEL_TYPE, CHANNEL_COMPUTE);
        writer.i32(kernel::PRIORITY, *priority);
        writer.u32(kernel::CLUSTER_X, cluster[0]);
        writer.u32(kernel::CLUSTER_Y, cluster[1]);
        writer.u32(kernel::CLUSTER_Z, cluster[2]);
        let node = self.owner.node.unwrap_or_default();
        writer.u64(kernel::GRAPH_NODE_ID, node.node_id);
        writer.u32(kernel::GRAPH_ID, node.graph_id);
        writer.u32(kernel::SOURCE_GRAPH_ID, (node.source_node_id >> 32) as u32);
        writer.u64(kernel::SOURCE_GRAPH_NODE_ID, node.source_node_id);
    }

    fn write_copy(&self, part: &Part, place: &mut [u8]) {
        let Shape::Copy {
            copy_kind,
            source_kind,
            target_kind,
            asynchronous,
            bytes,
            peers,
        } = &self.shape
        else {
            return;
        };
        let mut writer = Writer(place);
        let node = self.owner.node.unwrap_or_default();
        // What both records have in common.
        writer.u32(0, kind::MEMCPY);
        writer.u8(memcpy::COPY_KIND, *copy_kind);
        writer.u8(memcpy::SOURCE_KIND, *source_kind);
        writer.u8(memcpy::TARGET_KIND, *target_kind);
        writer.u8(memcpy::FLAGS, u8::from(*asynchronous));
        writer.u64(memcpy::BYTES, *bytes);
        writer.u64(memcpy::START, part.start_ns);
        writer.u32(memcpy::DEVICE_ID, self.device);
        writer.u32(memcpy::CONTEXT_ID, self.owner.context_id);
        writer.u32(memcpy::STREAM_ID, self.owner.stream_id);
        if let Some([source, target]) = peers {
            writer.u32(0, kind::MEMCPY2);
            writer.u32(memcpy_peer::SOURCE_DEVICE_ID, source.device);
            writer.u32(memcpy_peer::SOURCE_CONTEXT_ID, source.context_id);
            writer.u32(memcpy_peer::TARGET_DEVICE_ID, target.device);
            writer.u32(memcpy_peer::TARGET_CONTEXT_ID, target.context_id);
            writer.u32(memcpy_peer::CORRELATION_ID, self.owner.correlation_id);
            writer.u64(memcpy_peer::GRAPH_NODE_ID, node.node_id);
            writer.u32(memcpy_peer::GRAPH_ID, node.graph_id);
            writer.u32(memcpy_peer::CHANNEL_ID, self.channel + 1);
            writer.u32(memcpy_peer::CHANNEL_TYPE, CHANNEL_COPY);
            return;
        }
        writer.u32(memcpy::CORRELATION_ID, self.owner.correlation_id);
        let runtime = self.owner.runtime_correlation_id;
        writer.u32(memcpy::RUNTIME_CORRELATION_ID, runtime);
        writer.u32(memcpy::CHANNEL_ID, self.channel + 1);
        writer.u32(memcpy::CHANNEL_TYPE, CHANNEL_COPY);
        writer.u64(memcpy::COPY_COUNT, 1);
        writer.u64(memcpy::GRAPH_NODE_ID, node.node_id);
        writer.u32(memcpy::GRAPH_ID, node.graph_id);
        writer.u32(memcpy::SOURCE_GRAPH_ID, (node.source_node_id >> 32) as u32);
        writer.u64(memcpy::SOURCE_GRAPH_NODE_ID, node.source_node_id);
    }

    fn write_set(&self, part: &Part, place: &mut [u8]) {
        let Shape::Set {
            value,
            bytes,
            asynchronous,
            memory_kind,
        } = &self.shape
        else {
            return;
        };
        let mut writer = Writer(place);
        writer.u32(0, kind::MEMSET);
        writer.u32(memset::VALUE, *value);
        writer.u64(memset::BYTES, *bytes);
        writer.u64(memset::START, part.start_ns);
        writer.u32(memset::DEVICE_ID, self.device);
        writer.u32(memset::CONTEXT_ID, self.owner.context_id);
        writer.u32(memset::STREAM_ID, self.owner.stream_id);
        writer.u32(memset::CORRELATION_ID, self.owner.correlation_id);
        writer.u16(memset::FLAGS, u16::from(*asynchronous));
        writer.u16(memset::MEMORY_KIND, *memory_kind);
        writer.u32(memset::CHANNEL_ID, self.channel + 1);
        writer.u32(memset::CHANNEL_TYPE, CHANNEL_COMPUTE);
        let node = self.owner.node.unwrap_or_default();
        writer.u64(memset::GRAPH_NODE_ID, node.node_id);
        writer.u32(memset::GRAPH_ID, node.graph_id);
        writer.u32(memset::SOURCE_GRAPH_ID, (node.source_node_id >> 32) as u32);
        writer.u64(memset::SOURCE_GRAPH_NODE_ID, node.source_node_id);
    }
}

/// `CUpti_ActivityMemcpyKind` of an operation.
pub(crate) fn copy_kind(operation: u32) -> u8 {
    match operation {
        abi::OPERATION_COPY_HOST_TO_DEVICE => 1,
        abi::OPERATION_COPY_DEVICE_TO_HOST => 2,
        abi::OPERATION_COPY_PEER => 10,
        _ => 8,
    }
}
