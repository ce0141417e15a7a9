//! Records of a whole graph launch, and of functions that the device calls on the host.

use lineage_sim_model::Facts;

use crate::clock;
use crate::cupti::activity::{self, kind};
use crate::cupti::buffers::{Sink, Slot};
use crate::cupti::layout::{graph_host_node, graph_trace, host_launch};
use crate::cupti::records::{Owner, size_of_kind};
use crate::cupti::time;
use crate::cupti::writer::Writer;
use crate::threads::ThreadState;

/// The record of a whole graph launch, instead of those of its nodes.
#[allow(dead_code, reason = "opened by graph launches")]
pub(crate) struct GraphRecord {
    slot: Slot,
    owner: Owner,
    graph_id: u32,
}

#[allow(dead_code, reason = "opened by graph launches")]
impl GraphRecord {
    /// Takes a place in the calling thread's buffer, if launches are recorded as a whole.
    pub(crate) fn open(thread: &ThreadState, owner: &Owner, graph_id: u32) -> Option<Self> {
        if !activity::is_enabled(kind::GRAPH_TRACE) {
            return None;
        }
        Some(Self {
            slot: Sink::of(&thread.sink).open(size_of_kind(kind::GRAPH_TRACE)?, 1)?,
            owner: *owner,
            graph_id,
        })
    }

    /// The launch has ended.
    pub(crate) fn finish(self, facts: &Facts) {
        let [start_ns, end_ns] =
            [facts.start_ns, facts.end_ns].map(|at_ns| time::from_device_ns(facts.device, at_ns));
        let Self {
            slot,
            owner,
            graph_id,
        } = self;
        slot.complete(|place| {
            let mut writer = Writer(place);
            writer.u32(0, kind::GRAPH_TRACE);
            writer.u32(graph_trace::CORRELATION_ID, owner.correlation_id);
            writer.u64(graph_trace::START, start_ns);
            writer.u64(graph_trace::END, end_ns);
            writer.u32(graph_trace::DEVICE_ID, facts.device);
            writer.u32(graph_trace::GRAPH_ID, graph_id);
            writer.u32(graph_trace::CONTEXT_ID, owner.context_id);
            writer.u32(graph_trace::STREAM_ID, owner.stream_id);
            writer.u32(graph_trace::END_DEVICE_ID, facts.device);
            writer.u32(graph_trace::END_CONTEXT_ID, owner.context_id);
        });
    }
}

/// The record of a function that the device calls on the host: of a stream (`HOST_LAUNCH`), or of a graph's node
/// (`GRAPH_HOST_NODE`).
pub(crate) struct HostFunctionRecord {
    slot: Slot,
    owner: Owner,
}

impl HostFunctionRecord {
    /// Takes a place in the calling thread's buffer, if the kind is on and the version has it.
    pub(crate) fn open(thread: &ThreadState, owner: &Owner) -> Option<Self> {
        let kind = match owner.node {
            Some(_) => kind::GRAPH_HOST_NODE,
            None => kind::HOST_LAUNCH,
        };
        if !activity::is_enabled(kind) {
            return None;
        }
        Some(Self {
            slot: Sink::of(&thread.sink).open(size_of_kind(kind)?, 1)?,
            owner: *owner,
        })
    }

    /// The function has returned. Called on the thread that called it.
    pub(crate) fn finish(self, facts: &Facts) {
        let Self { slot, owner } = self;
        let [start_ns, end_ns] = [facts.start_ns, facts.end_ns].map(time::from_host_ns);
        let (process, thread) = (std::process::id(), clock::thread_id());
        slot.complete(|place| {
            let mut writer = Writer(place);
            if let Some(node) = owner.node {
                writer.u32(0, kind::GRAPH_HOST_NODE);
                writer.u32(graph_host_node::STREAM_ID, owner.stream_id);
                writer.u32(graph_host_node::CONTEXT_ID, owner.context_id);
                writer.u32(graph_host_node::DEVICE_ID, facts.device);
                writer.u32(graph_host_node::CORRELATION_ID, owner.correlation_id);
                writer.u32(graph_host_node::GRAPH_ID, node.graph_id);
                writer.u64(graph_host_node::GRAPH_NODE_ID, node.node_id);
                writer.u32(graph_host_node::PROCESS_ID, process);
                writer.u32(graph_host_node::THREAD_ID, thread);
                writer.u64(graph_host_node::START, start_ns);
                writer.u64(graph_host_node::END, end_ns);
            } else {
                writer.u32(0, kind::HOST_LAUNCH);
                writer.u32(host_launch::STREAM_ID, owner.stream_id);
                writer.u32(host_launch::CONTEXT_ID, owner.context_id);
                writer.u32(host_launch::DEVICE_ID, facts.device);
                writer.u32(host_launch::CORRELATION_ID, owner.correlation_id);
                writer.u32(host_launch::PROCESS_ID, process);
                writer.u32(host_launch::THREAD_ID, thread);
                writer.u64(host_launch::START, start_ns);
                writer.u64(host_launch::END, end_ns);
            }
        });
    }
}
