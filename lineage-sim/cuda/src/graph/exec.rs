//! Execs: graphs that can be launched.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use lineage_sim_model::OperationKey;

use crate::faults::faults;
use crate::graph::content::Content;
use crate::graph::flat::{self, FlatNode, Flattening};
use crate::graph::memory;
use crate::graph::resource::{self, Event, What};
use crate::graph::world::{Holder, world};
use crate::handles::{HandleNumber, Registry, handle};
use crate::result;
use crate::sync::lock;

pub(crate) static EXECS: Registry<Exec> = Registry::new(0x0c09);

pub(crate) struct Exec {
    pub(crate) number: HandleNumber,
    pub(crate) id: u32,
    /// The graph that gives its nodes handles and ids.
    pub(crate) graph: HandleNumber,
    pub(crate) flags: u64,
    pub(crate) state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) nodes: Vec<FlatNode>,
    /// The newest launch.
    pub(crate) previous: Option<OperationKey>,
    pub(crate) launches: u32,
}

/// `CUgraphInstantiate_flags`.
const FLAGS: u64 = 15;
pub(crate) const FLAG_AUTO_FREE_ON_LAUNCH: u64 = 1;
const FLAG_DEVICE_LAUNCH: u64 = 4;
pub(crate) const FLAG_USE_NODE_PRIORITY: u64 = 8;

/// `CUgraphInstantiateResult` of a graph that forms a circle.
pub(crate) const INVALID_STRUCTURE: u32 = 2;

/// Clones a template into an exec. Later changes of the template do not concern it.
pub(crate) fn instantiate(graph: HandleNumber, flags: u64) -> Result<HandleNumber, u32> {
    if flags & !FLAGS != 0 {
        return Err(result::INVALID_VALUE);
    }
    if flags & FLAG_DEVICE_LAUNCH != 0 {
        return Err(result::NOT_SUPPORTED);
    }
    world().check_changeable(graph)?;
    let number = EXECS.reserve();
    resource::tell(&[Event::of_graph(What::ExecCreateStarting, graph).exec(number)]);
    let mut events = Vec::new();
    {
        let mut world = world();
        let into = world.create_graph(Holder::Exec);
        let list = Flattening {
            world: &mut world,
            into: Some(into),
            exec: number,
            events: &mut events,
        }
        .list(graph);
        let nodes = list.and_then(|nodes| memory::take(&nodes).map(|()| nodes));
        let nodes = match nodes {
            Ok(nodes) => nodes,
            Err(code) => {
                world.destroy_graph(into);
                return Err(code);
            }
        };
        let exec = Exec {
            number,
            id: world.graph(into)?.id,
            graph: into,
            flags,
            state: Mutex::new(State {
                nodes,
                previous: None,
                launches: 0,
            }),
        };
        EXECS.insert(number, Arc::new(exec));
    }
    events.push(Event::of_graph(What::ExecCreated, graph).exec(number));
    resource::tell(&events);
    Ok(number)
}

/// Takes an exec away; a launch that is under way is done all the same.
pub(crate) fn destroy(exec: &Exec) {
    resource::tell(&[Event::of_graph(What::ExecDestroyStarting, exec.graph).exec(exec.number)]);
    EXECS.remove(handle(exec.number));
    memory::give_back(&lock(&exec.state).nodes);
    world().destroy_graph(exec.graph);
}

/// `CUgraphExecUpdateResult` of an update that failed: what has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    Topology = 2,
    NodeType = 3,
    Parameters = 5,
}

/// Why an update failed, and at which node of the new graph (0 for none).
pub(crate) struct UpdateError {
    pub(crate) mismatch: Mismatch,
    pub(crate) node: HandleNumber,
}

/// Gives an exec the parameters of another graph of the same shape. Nodes are paired by the order of their making.
pub(crate) fn update(exec: &Exec, graph: HandleNumber) -> Result<Result<(), UpdateError>, u32> {
    let new = {
        let mut world = world();
        world.check_changeable(graph)?;
        Flattening {
            world: &mut world,
            into: None,
            exec: exec.number,
            events: &mut Vec::new(),
        }
        .list(graph)?
    };
    let mut events = Vec::new();
    {
        let mut state = lock(&exec.state);
        if let Err(error) = compare(&state.nodes, &new) {
            return Ok(Err(error));
        }
        take_over(exec, graph, &mut state.nodes, new, &mut events);
    }
    resource::tell(&events);
    Ok(Ok(()))
}

/// Whether the nodes of both are the same but for their parameters.
fn compare(old: &[FlatNode], new: &[FlatNode]) -> Result<(), UpdateError> {
    let error = |mismatch, node: Option<&FlatNode>| UpdateError {
        mismatch,
        node: node.map_or(0, |node| node.original),
    };
    if old.len() != new.len() {
        return Err(error(Mismatch::Topology, None));
    }
    for (old, new) in old.iter().zip(new) {
        if old.content.node_type() != new.content.node_type() {
            return Err(error(Mismatch::NodeType, Some(new)));
        }
        if old.after != new.after || old.bodies.len() != new.bodies.len() {
            return Err(error(Mismatch::Topology, Some(new)));
        }
        if !can_become(&old.content, &new.content) {
            return Err(error(Mismatch::Parameters, Some(new)));
        }
        for (old, new) in old.bodies.iter().zip(&new.bodies) {
            compare(old, new)?;
        }
    }
    Ok(())
}

/// What an exec's node may be changed into: its own type; a copy keeps its direction, a set its number of dimensions.
pub(crate) fn can_become(old: &Content, new: &Content) -> bool {
    match (old, new) {
        (Content::Copy(old), Content::Copy(new)) => old.direction == new.direction,
        (Content::Set(old), Content::Set(new)) => (old.rows.count > 1) == (new.rows.count > 1),
        (Content::Allocate(old), Content::Allocate(new))
        | (Content::Free(old), Content::Free(new)) => Arc::ptr_eq(old, new),
        (Content::Conditional(old), Content::Conditional(new)) => {
            old.kind == new.kind && old.value == new.value
        }
        (old, new) => old.node_type() == new.node_type(),
    }
}

fn take_over(
    exec: &Exec,
    graph: HandleNumber,
    old: &mut [FlatNode],
    new: Vec<FlatNode>,
    events: &mut Vec<Event>,
) {
    for (old, new) in old.iter_mut().zip(new) {
        if old.handle != 0 {
            let updated = Event::of_node(
                What::NodeUpdated,
                exec.graph,
                old.handle,
                new.content.node_type(),
            );
            events.push(updated.from(graph, new.original).exec(exec.number));
        }
        old.content = new.content;
        old.shown = None;
        old.source_id = new.source_id;
        old.call_ordinal = new.call_ordinal;
        for (old, new) in old.bodies.iter_mut().zip(new.bodies) {
            take_over(exec, graph, old, new, events);
        }
    }
}

/// Gives the exec's node that a template's node means other parameters.
pub(crate) fn set_params(exec: &Exec, original: HandleNumber, content: Content) -> Result<(), u32> {
    let event = {
        let mut state = lock(&exec.state);
        let node = flat::find_mut(&mut state.nodes, original).ok_or(result::INVALID_VALUE)?;
        if !can_become(&node.content, &content) {
            return Err(result::INVALID_VALUE);
        }
        let before = std::mem::replace(&mut node.content, content);
        if faults().stale_node_records == 1 {
            node.shown.get_or_insert(before);
        }
        // Set by the program, not captured by any call.
        node.call_ordinal = 0;
        Event::of_node(
            What::NodeSetParams,
            exec.graph,
            node.handle,
            node.content.node_type(),
        )
        .from(0, original)
        .exec(exec.number)
    };
    resource::tell(&[event]);
    Ok(())
}

/// Gives an exec's child node another child of the same shape.
pub(crate) fn set_child(
    exec: &Exec,
    original: HandleNumber,
    child: HandleNumber,
) -> Result<(), u32> {
    let new = {
        let mut world = world();
        world.check_changeable(child)?;
        Flattening {
            world: &mut world,
            into: None,
            exec: exec.number,
            events: &mut Vec::new(),
        }
        .list(child)?
    };
    let mut events = Vec::new();
    {
        let mut state = lock(&exec.state);
        let nodes = &mut state.nodes;
        let at = nodes.iter().position(|node| node.original == original);
        let at = at.filter(|at| matches!(nodes[*at].content, Content::Child(_)));
        let at = at.ok_or(result::INVALID_VALUE)?;
        let inner = inner_nodes(nodes, at);
        if !has_shape_of(&nodes[inner.clone()], at, &new) {
            return Err(result::INVALID_VALUE);
        }
        let inner = &mut nodes[inner];
        take_over(exec, child, inner, new, &mut events);
    }
    resource::tell(&events);
    Ok(())
}

/// Where the nodes of a child are: between it and the marker that is behind it and all of them.
fn inner_nodes(nodes: &[FlatNode], child: usize) -> Range<usize> {
    let is_exit = |node: &FlatNode| {
        node.original == 0 && node.after.iter().any(|(before, _)| *before == child)
    };
    let first = child + 1;
    let length = nodes[first..].iter().position(is_exit).unwrap_or(0);
    first..first + length
}

/// Whether the nodes of a child are those of another graph but for their parameters.
fn has_shape_of(inner: &[FlatNode], child: usize, new: &[FlatNode]) -> bool {
    let first = child + 1;
    inner.len() == new.len()
        && inner.iter().zip(new).all(|(old, new)| {
            let after = old.after.iter().filter(|(before, _)| *before != child);
            let after = after.map(|(before, data)| (before - first, *data));
            after.eq(new.after.iter().copied())
                && can_become(&old.content, &new.content)
                && old.bodies.len() == new.bodies.len()
                && old
                    .bodies
                    .iter()
                    .zip(&new.bodies)
                    .all(|(old, new)| compare(old, new).is_ok())
        })
}
