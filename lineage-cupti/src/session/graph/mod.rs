//! Graphs: what CUPTI's resource callbacks tell of them, and what the calls that change them say.
//!
//! ```text
//!  resource callback ─┐
//!  graph call, left ──┼─► queue ──► drain      one order of all changes ([`queue`])
//!  edges, by adapters ┘
//!  graph launch, left ────► ring ──► drain     the executable graph, and the newest change before it
//! ```
//!
//! NVIDIA's documents leave open what the callbacks of an instantiation name as the graph of a node; an
//! executable graph's nodes have ids whose upper half is the graph that records name (release notes of
//! CUDA 13.4). So where the named graph cannot be that of the copy, the id of the node decides.
//!
//! Resource callbacks call CUPTI for the ids, as its samples do, and nothing of the driver's.

use std::cell::Cell;
use std::ffi::c_void;

use lineage_core::hook;
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{GraphChange, GraphNodeKind, GraphSequence};

use super::{callback, state, unload};
use crate::sys::Functions;
use crate::sys::codes::{domain, resource, result};
use crate::sys::layout::{graph_data as at, resource_data};
use crate::sys::{Library, Subscriber};

mod calls;
pub(super) mod edges;
mod launch;
mod queue;

pub(super) use calls::{entered, left};
pub(super) use launch::{is_launch, launch_entered, launch_left};
pub(super) use queue::{open, take};

use queue::Happened;

/// Handle of a graph, an executable graph or a node.
type Handle = *mut c_void;

/// The callbacks that are asked for. One that this version does not know is refused, and that is all.
const RESOURCES: [u32; 10] = [
    resource::GRAPH_CREATED,
    resource::GRAPH_DESTROY_STARTING,
    resource::GRAPH_CLONED,
    resource::NODE_CREATED,
    resource::NODE_DESTROY_STARTING,
    resource::EXEC_CREATED,
    resource::EXEC_DESTROY_STARTING,
    resource::NODE_CLONED,
    resource::NODE_UPDATED,
    resource::NODE_SET_PARAMS,
];

/// Has the callback called for all that happens to graphs. Where this CUPTI cannot tell the ids of all
/// of them, as before CUDA 12.3, nothing is asked for: half of it proves nothing.
pub(super) fn watch(library: &Library, subscriber: Subscriber) {
    let functions = library.functions();
    if Ids::of(functions).is_none() {
        return;
    }
    let resources = RESOURCES.map(|cbid| (domain::RESOURCE, cbid));
    let calls = crate::graph::FUNCTIONS
        .iter()
        .map(|function| (domain::DRIVER_API, function.cbid));
    for (domain, cbid) in resources.into_iter().chain(calls) {
        // SAFETY: the subscriber is the one of this session. A callback that this version does not
        // know is refused.
        unsafe { (functions.enable_callback)(1, subscriber, domain, cbid) };
    }
}

/// CUPTI's functions that tell ids.
#[derive(Clone, Copy)]
struct Ids {
    graph: unsafe extern "C" fn(Handle, *mut u32) -> u32,
    exec: unsafe extern "C" fn(Handle, *mut u32) -> u32,
    node: unsafe extern "C" fn(Handle, *mut u64) -> u32,
}

impl Ids {
    fn of(functions: &Functions) -> Option<Self> {
        Some(Self {
            graph: functions.get_graph_id?,
            exec: functions.get_graph_exec_id?,
            node: functions.get_graph_node_id?,
        })
    }

    fn get() -> Option<Self> {
        Self::of(state::functions()?)
    }

    /// # Safety
    /// The handle is null or a live graph's.
    unsafe fn graph(self, graph: Handle) -> Option<u32> {
        // SAFETY: the caller's word.
        unsafe { ask(self.graph, graph) }
    }

    /// # Safety
    /// The handle is null or a live executable graph's.
    unsafe fn exec(self, exec: Handle) -> Option<u32> {
        // SAFETY: the caller's word.
        unsafe { ask(self.exec, exec) }
    }

    /// # Safety
    /// The handle is null or a live node's.
    unsafe fn node(self, node: Handle) -> Option<u64> {
        // SAFETY: the caller's word.
        unsafe { ask(self.node, node) }
    }
}

/// # Safety
/// The handle is null or one that the function takes.
unsafe fn ask<T: Copy + Default>(
    function: unsafe extern "C" fn(Handle, *mut T) -> u32,
    handle: Handle,
) -> Option<T> {
    if handle.is_null() {
        return None;
    }
    let mut id = T::default();
    // SAFETY: the caller vouches for the handle; `id` is a valid place during the call.
    let code = unsafe { function(handle, &mut id) };
    (code == result::SUCCESS).then_some(id)
}

/// The graph in a node's id.
fn graph_of(node: u64) -> u32 {
    (node >> 32) as u32
}

/// `CUpti_GraphData`, as far as it is looked at.
struct GraphData {
    graph: Handle,
    original_graph: Handle,
    node: Handle,
    original_node: Handle,
    node_type: u32,
    exec: Handle,
}

impl GraphData {
    /// # Safety
    /// `data` is the `CUpti_ResourceData` of a callback about a graph. `None` if it describes none.
    unsafe fn read(data: *const u8) -> Option<Self> {
        // SAFETY: offsets and types are those of the two structs (layout test), which are not packed
        // and live during the callback.
        unsafe {
            let graph = data.add(resource_data::DESCRIPTOR).cast::<*const u8>();
            let graph = graph.read();
            if graph.is_null() {
                return None;
            }
            let handle = |offset: usize| graph.add(offset).cast::<Handle>().read();
            Some(Self {
                graph: handle(at::GRAPH),
                original_graph: handle(at::ORIGINAL_GRAPH),
                node: handle(at::NODE),
                original_node: handle(at::ORIGINAL_NODE),
                node_type: graph.add(at::NODE_TYPE).cast::<u32>().read(),
                exec: handle(at::EXEC),
            })
        }
    }
}

/// `CUgraphNodeType` in words.
fn kind_of(node_type: u32) -> GraphNodeKind {
    match node_type {
        0 => GraphNodeKind::Kernel,
        // One copy, or a batch of them.
        1 | 14 => GraphNodeKind::Copy,
        2 => GraphNodeKind::Set,
        3 => GraphNodeKind::Host,
        4 => GraphNodeKind::Child,
        5 => GraphNodeKind::Empty,
        6 => GraphNodeKind::EventWait,
        7 => GraphNodeKind::EventRecord,
        8 | 9 => GraphNodeKind::Semaphore,
        10 | 11 => GraphNodeKind::Memory,
        12 => GraphNodeKind::BatchMemory,
        13 => GraphNodeKind::Conditional,
        other => GraphNodeKind::Other(other),
    }
}

/// The callback of resources.
///
/// # Safety
/// `data` is the `CUpti_ResourceData` that CUPTI passes for this id.
pub(super) unsafe fn resource(cbid: u32, data: *const u8) {
    if !RESOURCES.contains(&cbid) {
        return;
    }
    let Some(ids) = Ids::get() else { return };
    // SAFETY: the caller's word: the id is one of a graph.
    let Some(data) = (unsafe { GraphData::read(data) }) else {
        return tell(None, GraphChange::Lost { count: 1 });
    };
    if cbid == resource::NODE_CREATED {
        if !calls::makes_nodes_of(data.graph) {
            return;
        }
        // A call for work inside which nodes are made is captured: nothing of it runs.
        callback::is_captured();
    }
    let correlation = calls::correlation().or_else(callback::correlation);
    // SAFETY: handles in a callback about a graph are null or those of what it is about, alive.
    let change = unsafe { change(ids, cbid, &data) };
    if change.is_some() && cbid == resource::NODE_SET_PARAMS {
        calls::is_told();
    }
    // What cannot be named is lost, and said to be.
    tell(
        correlation,
        change.unwrap_or(GraphChange::Lost { count: 1 }),
    );
}

/// What a callback means. `None` where the ids are not to be had.
///
/// # Safety
/// The handles that apply to this id are null or live.
unsafe fn change(ids: Ids, cbid: u32, data: &GraphData) -> Option<GraphChange> {
    // SAFETY: the caller's word.
    let (graph, exec, node) = unsafe {
        (
            || ids.graph(data.graph),
            || ids.exec(data.exec).or_else(calls::exec),
            || ids.node(data.node),
        )
    };
    // SAFETY: the caller's word.
    let (original_graph, original) = unsafe {
        (
            || ids.graph(data.original_graph),
            || ids.node(data.original_node),
        )
    };
    Some(match cbid {
        resource::GRAPH_CREATED => GraphChange::GraphCreated { graph: graph()? },
        resource::GRAPH_CLONED => GraphChange::GraphCloned {
            graph: graph()?,
            original: original_graph()?,
        },
        resource::GRAPH_DESTROY_STARTING => GraphChange::GraphDestroyed { graph: graph()? },
        resource::NODE_CREATED => {
            let node = node()?;
            GraphChange::NodeCreated {
                graph: graph().unwrap_or(graph_of(node)),
                node,
                kind: kind_of(data.node_type),
            }
        }
        resource::NODE_CLONED => {
            let (node, original) = (node()?, original()?);
            let original_graph = original_graph().unwrap_or(graph_of(original));
            // A copy is in no graph that it was copied from.
            let graph = graph().filter(|graph| *graph != original_graph);
            GraphChange::NodeCloned {
                graph: graph.unwrap_or(graph_of(node)),
                node,
                original_graph,
                original,
                kind: kind_of(data.node_type),
            }
        }
        resource::NODE_DESTROY_STARTING => {
            let node = node()?;
            GraphChange::NodeDestroyed {
                graph: graph().unwrap_or(graph_of(node)),
                node,
            }
        }
        resource::EXEC_CREATED => GraphChange::ExecCreated {
            exec: exec()?,
            graph: graph()?,
        },
        resource::EXEC_DESTROY_STARTING => GraphChange::ExecDestroyed { exec: exec()? },
        resource::NODE_UPDATED => GraphChange::NodeUpdated {
            exec: exec()?,
            node: node()?,
            original: original(),
        },
        _ => GraphChange::ParametersSet {
            exec: exec()?,
            node: node(),
        },
    })
}

/// Puts a change that happened now, on this thread, into the queue.
fn tell(correlation: Option<u32>, change: GraphChange) {
    let happened = Happened {
        at: HostNanos(hook::now()),
        tid: thread_id(),
        correlation: correlation.map(CorrelationId),
        attribution: lineage_core::current(),
    };
    if queue::push(state::session(), happened, change) {
        unload::wake_drain();
    }
}

/// The calling thread's id, as the system gives it.
fn thread_id() -> u64 {
    thread_local! {
        static ID: Cell<u64> = const { Cell::new(0) };
    }
    ID.with(|id| {
        if id.get() == 0 {
            // SAFETY: takes nothing and cannot fail.
            let tid = unsafe { libc::gettid() };
            id.set(u64::from(tid.unsigned_abs()));
        }
        id.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::codes::NODE_TYPES;

    #[test]
    fn every_type_of_node_has_a_word_and_a_new_one_has_its_number() {
        let named = NODE_TYPES.iter().zip(0..);
        let kinds: Vec<_> = named
            .map(|(name, number)| (*name, kind_of(number)))
            .collect();
        assert!(
            kinds
                .iter()
                .all(|(_, kind)| !matches!(kind, GraphNodeKind::Other(_)))
        );
        let of = |name| {
            kinds
                .iter()
                .find(|(known, _)| *known == name)
                .map(|it| it.1)
        };
        assert_eq!(of("KERNEL"), Some(GraphNodeKind::Kernel));
        assert_eq!(of("GRAPH"), Some(GraphNodeKind::Child));
        assert_eq!(of("WAIT_EVENT"), Some(GraphNodeKind::EventWait));
        assert_eq!(of("MEM_FREE"), Some(GraphNodeKind::Memory));
        assert_eq!(of("CONDITIONAL"), Some(GraphNodeKind::Conditional));
        assert_eq!(kind_of(15), GraphNodeKind::Other(15));
    }
}
