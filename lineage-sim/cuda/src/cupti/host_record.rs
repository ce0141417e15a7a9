//! Records of a whole graph launch, and of functions that the device calls on the host.

use lineage_sim_model::Facts;

use crate::clock;
use crate::cupti::activity::kind;
use crate::cupti::buffers::Slot;
use crate::cupti::client::Client;
use crate::cupti::layout::{graph_host_node, graph_trace, host_launch};
use crate::cupti::records::{Owner, for_each_client};
use crate::cupti::writer::Writer;
use crate::threads::ThreadState;

/// The records of a whole graph launch, instead of those of its nodes.
pub(crate) struct GraphRecord {
    slots: Vec<(&'static Client, Slot)>,
    owner: Owner,
    graph_id: u32,
}

impl GraphRecord {
    /// Takes a place in the buffers of the clients that record launches as a whole.
    pub(crate) fn open(thread: &ThreadState, owner: &Owner, graph_id: u32) -> Option<Self> {
        let slots = open_slots(thread, kind::GRAPH_TRACE);
        (!slots.is_empty()).then_some(Self {
            slots,
            owner: *owner,
            graph_id,
        })
    }

    /// The launch has ended.
    pub(crate) fn finish(self, facts: &Facts) {
        let Self {
            slots,
            owner,
            graph_id,
        } = self;
        complete(slots, |client, place| {
            let [start_ns, end_ns] = [facts.start_ns, facts.end_ns]
                .map(|at_ns| client.clock.of_device_ns(facts.device, at_ns));
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
    slots: Vec<(&'static Client, Slot)>,
    owner: Owner,
}

impl HostFunctionRecord {
    /// Takes a place in the buffers of the clients that record the kind, if the version has it.
    pub(crate) fn open(thread: &ThreadState, owner: &Owner) -> Option<Self> {
        let slots = open_slots(
            thread,
            match owner.node {
                Some(_) => kind::GRAPH_HOST_NODE,
                None => kind::HOST_LAUNCH,
            },
        );
        (!slots.is_empty()).then_some(Self {
            slots,
            owner: *owner,
        })
    }

    /// The function has returned. Called on the thread that called it.
    pub(crate) fn finish(self, facts: &Facts) {
        let Self { slots, owner } = self;
        let (process, thread) = (std::process::id(), clock::thread_id());
        complete(slots, |client, place| {
            let [start_ns, end_ns] =
                [facts.start_ns, facts.end_ns].map(|at_ns| client.clock.of_host_ns(at_ns));
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

fn open_slots(thread: &ThreadState, kind: u32) -> Vec<(&'static Client, Slot)> {
    let mut slots = Vec::new();
    for_each_client(thread, kind, |client, sink, bytes| {
        slots.extend(sink.open(bytes, 1).map(|slot| (client, slot)));
    });
    slots
}

fn complete(slots: Vec<(&'static Client, Slot)>, write: impl Fn(&Client, &mut [u8])) {
    for (client, slot) in slots {
        slot.complete(|place| write(client, place));
    }
}
