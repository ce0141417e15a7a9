//! CUPTI's callbacks about graphs, in the resource domain.

use std::ffi::c_void;

use crate::config::config;
use crate::cupti::layout::version::{CUDA_13_0, CUDA_13_2};
use crate::cupti::subscriber;
use crate::faults;
use crate::handles::{Handle, HandleNumber, handle};
use crate::objects::current_context_number;
use crate::threads;

/// `CUpti_CallbackIdResource`, as far as it is about graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    GraphCreated = 9,
    GraphDestroyStarting = 10,
    GraphCloned = 11,
    NodeCreateStarting = 12,
    NodeCreated = 13,
    NodeDestroyStarting = 14,
    DependencyCreated = 15,
    DependencyDestroyStarting = 16,
    ExecCreateStarting = 17,
    ExecCreated = 18,
    ExecDestroyStarting = 19,
    NodeCloned = 20,
    NodeUpdated = 22,
    NodeSetParams = 23,
}

/// One thing that happened to a graph. What does not apply is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) what: What,
    pub(crate) graph: HandleNumber,
    pub(crate) original_graph: HandleNumber,
    pub(crate) node: HandleNumber,
    pub(crate) original_node: HandleNumber,
    pub(crate) node_type: u32,
    /// The node that depends on `node`.
    pub(crate) dependency: HandleNumber,
    pub(crate) exec: HandleNumber,
}

impl Event {
    pub(crate) fn of_graph(what: What, graph: HandleNumber) -> Self {
        Self {
            what,
            graph,
            original_graph: 0,
            node: 0,
            original_node: 0,
            node_type: 0,
            dependency: 0,
            exec: 0,
        }
    }

    pub(crate) fn of_node(
        what: What,
        graph: HandleNumber,
        node: HandleNumber,
        node_type: u32,
    ) -> Self {
        Self {
            node,
            node_type,
            ..Self::of_graph(what, graph)
        }
    }

    #[must_use]
    pub(crate) fn from(
        mut self,
        original_graph: HandleNumber,
        original_node: HandleNumber,
    ) -> Self {
        self.original_graph = original_graph;
        self.original_node = original_node;
        self
    }

    #[must_use]
    pub(crate) fn exec(mut self, exec: HandleNumber) -> Self {
        self.exec = exec;
        self
    }
}

/// `CUpti_GraphData`.
#[repr(C)]
struct GraphData {
    graph: Handle,
    original_graph: Handle,
    node: Handle,
    original_node: Handle,
    node_type: u32,
    dependency: Handle,
    exec: Handle,
}

/// `CUpti_ResourceData`: the descriptor leads to the [`GraphData`].
#[repr(C)]
struct ResourceData {
    context: Handle,
    resource: Handle,
    descriptor: *const c_void,
}

/// Whether a version of CUPTI tells of updates of an exec's nodes: of kernels since 13.0, of all since 13.2.
fn tells_of_updates(node_type: u32) -> bool {
    const KERNEL: u32 = 0;
    let since = if node_type == KERNEL {
        CUDA_13_0
    } else {
        CUDA_13_2
    };
    config().cupti_version >= since
}

/// Tells the subscriber, in order. Called with nothing locked.
pub(crate) fn tell(events: &[Event]) {
    if threads::is_in_callback() {
        return;
    }
    for event in events {
        let id = event.what as u32;
        let is_update = matches!(event.what, What::NodeUpdated | What::NodeSetParams);
        if !subscriber::is_resource_enabled(id)
            || is_update && !tells_of_updates(event.node_type)
            || event.what == What::NodeCloned && faults::loses_clone_callback()
        {
            continue;
        }
        let data = GraphData {
            graph: handle(event.graph),
            original_graph: handle(event.original_graph),
            node: handle(event.node),
            original_node: handle(event.original_node),
            node_type: event.node_type,
            dependency: handle(event.dependency),
            exec: handle(event.exec),
        };
        let resource = ResourceData {
            context: handle(current_context_number()),
            resource: std::ptr::null_mut(),
            descriptor: (&raw const data).cast(),
        };
        subscriber::call_resource(id, (&raw const resource).cast());
    }
}
