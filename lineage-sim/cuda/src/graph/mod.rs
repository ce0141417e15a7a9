//! Graphs: what a program builds or captures (templates), what it instantiates (execs), and the launches of those.
//!
//! One lock guards all templates and captures, [`world::world`]: captures cross threads, and a template is no hot path. Each exec has
//! a lock of its own. A client's callback is never called under either: what happened is collected as [`resource::Event`]s and
//! told afterwards on the same thread.
//!
//! * `world`: templates, their nodes and edges, and the ids of all graphs.
//! * `content`: what a node does, and how that becomes an operation.
//! * `capture`: from the calls on a stream to the nodes of a template.
//! * `exec`: instantiate, update; `flat`: the order in which an exec's nodes are launched; `launch`: the launch itself.
//! * `resource`: CUPTI's callbacks about all of these.

pub(crate) mod capture;
pub(crate) mod content;
pub(crate) mod exec;
pub(crate) mod flat;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod resource;
pub(crate) mod world;

use crate::handles::{Handle, number};

/// The id of a template (`cuGraphGetId`).
pub(crate) fn id_of_graph(graph: Handle) -> Option<u32> {
    Some(world::world().graphs.get(&number(graph))?.id)
}

/// The id of an exec, as records of its launches have it (`cuGraphExecGetId`).
pub(crate) fn id_of_exec(exec: Handle) -> Option<u32> {
    Some(exec::EXECS.get(exec)?.id)
}

/// The id of a node: its graph's in the upper half (`cuGraphNodeGetToolsId`).
pub(crate) fn id_of_node(node: Handle) -> Option<u64> {
    Some(world::world().nodes.get(&number(node))?.id)
}
