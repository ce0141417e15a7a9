//! Graphs, their nodes as such, and their edges.

use crate::call::Asks;
use crate::driver::{Out, driver_functions};
use crate::graph;
use crate::graph::capture::Behind;
use crate::graph::resource::{self, Event, What};
use crate::graph::world::{EdgeData, Holder, World, world};
use crate::handles::{Handle, HandleNumber, handle, number};
use crate::result;

/// Nodes and edges as a caller lists them; without a list of edges they are of the default kind.
pub(crate) fn behind(
    nodes: *const Handle,
    edges: *const EdgeData,
    count: usize,
) -> Result<Vec<Behind>, u32> {
    if count > 0 && nodes.is_null() {
        return Err(result::INVALID_VALUE);
    }
    let behind = (0..count).map(|at| {
        // SAFETY: the caller's lists have so many entries, where they are not null.
        unsafe {
            let data = if edges.is_null() {
                EdgeData::default()
            } else {
                edges.add(at).read()
            };
            (number(nodes.add(at).read()), data)
        }
    });
    Ok(behind.collect())
}

/// Answers with a list: how many there are where no list is given; else as many as fit, and null behind them.
fn list<T: Copy>(
    lists: &[(*mut T, &dyn Fn(usize) -> T)],
    total: usize,
    count: Out<usize>,
    none: T,
) -> Result<(), u32> {
    count.check()?;
    if lists.iter().all(|(list, _)| list.is_null()) {
        return count.put(total);
    }
    // SAFETY: not null, and the caller's to be valid.
    let room = unsafe { count.pointer().read() };
    for (list, value) in lists.iter().filter(|(list, _)| !list.is_null()) {
        for at in 0..room {
            let value = if at < total { value(at) } else { none };
            // SAFETY: the caller's list has this room.
            unsafe { list.add(at).write(value) };
        }
    }
    count.put(total.min(room))
}

fn edges(
    found: &[(HandleNumber, HandleNumber, EdgeData)],
    from: *mut Handle,
    to: *mut Handle,
    data: Option<*mut EdgeData>,
    count: Out<usize>,
) -> Result<(), u32> {
    let is_lossy = found
        .iter()
        .any(|(_, _, data)| *data != EdgeData::default());
    let asks = !from.is_null() || !to.is_null();
    let data = data.unwrap_or(std::ptr::null_mut());
    if asks && data.is_null() && is_lossy {
        return Err(result::LOSSY_QUERY);
    }
    if !data.is_null() {
        count.check()?;
        // SAFETY: not null, and the caller's to be valid.
        let room = unsafe { count.pointer().read() };
        for (at, (_, _, of_edge)) in found.iter().enumerate().take(room) {
            // SAFETY: the caller's list has this room.
            unsafe { data.add(at).write(*of_edge) };
        }
    }
    let froms = |at: usize| handle(found[at].0);
    let tos = |at: usize| handle(found[at].1);
    list(
        &[(from, &froms), (to, &tos)],
        found.len(),
        count,
        std::ptr::null_mut(),
    )
}

fn edges_of(graph: Handle) -> Result<Vec<(HandleNumber, HandleNumber, EdgeData)>, u32> {
    let world = world();
    let edges = &world.graph(number(graph))?.edges;
    Ok(edges
        .iter()
        .map(|edge| (edge.from, edge.to, edge.data))
        .collect())
}

/// The nodes beside a node: those before it, or those behind it.
fn neighbours(
    node: Handle,
    are_before: bool,
) -> Result<Vec<(HandleNumber, HandleNumber, EdgeData)>, u32> {
    let node = number(node);
    let world = world();
    let edges = &world.graph(world.node(node)?.graph)?.edges;
    let beside = edges.iter().filter_map(|edge| {
        let (this, other) = if are_before {
            (edge.to, edge.from)
        } else {
            (edge.from, edge.to)
        };
        (this == node).then_some((other, 0, edge.data))
    });
    Ok(beside.collect())
}

type Change = fn(
    &mut World,
    HandleNumber,
    HandleNumber,
    HandleNumber,
    EdgeData,
    &mut Vec<Event>,
) -> Result<(), u32>;

/// Adds or removes edges, all or none of a call that fails at once.
fn change(
    graph: Handle,
    from: *const Handle,
    to: *const Handle,
    data: *const EdgeData,
    count: usize,
    change: Change,
) -> Result<(), u32> {
    let from = behind(from, data, count)?;
    let to = behind(to, std::ptr::null(), count)?;
    let mut events = Vec::new();
    let outcome = {
        let mut world = world();
        world.check_changeable(number(graph))?;
        from.iter()
            .zip(&to)
            .try_for_each(|((from, data), (to, _))| {
                change(&mut world, number(graph), *from, *to, *data, &mut events)
            })
    };
    resource::tell(&events);
    outcome
}

driver_functions! {
    fn cuGraphCreate [501, Asks::Nothing] (_, graph: Out<Handle>, flags: u32) {
        graph.check()?;
        if flags != 0 {
            return Err(result::INVALID_VALUE);
        }
        let new = world().create_graph(Holder::Program);
        resource::tell(&[Event::of_graph(What::GraphCreated, new)]);
        graph.put(handle(new))
    }

    fn cuGraphDestroy [517, Asks::Nothing] (_, graph: Handle) {
        let of = number(graph);
        let holder = world().graph(of)?.holder;
        if holder != Holder::Program {
            return Err(result::INVALID_VALUE);
        }
        resource::tell(&[Event::of_graph(What::GraphDestroyStarting, of)]);
        world().destroy_graph(of);
        Ok(())
    }

    fn cuGraphClone [523, Asks::Nothing] (_, clone: Out<Handle>, original: Handle) {
        clone.check()?;
        let mut events = Vec::new();
        let new = world().clone_graph(number(original), Holder::Program, &mut events)?;
        resource::tell(&events);
        clone.put(handle(new))
    }

    fn cuGraphNodeFindInClone [524, Asks::Nothing] (_, node: Out<Handle>, original: Handle, clone: Handle) {
        node.check()?;
        let found = {
            let world = world();
            let nodes = &world.graph(number(clone))?.nodes;
            let of_original = |clone: &&HandleNumber| {
                world.nodes.get(*clone).is_some_and(|node| node.original == number(original))
            };
            nodes.iter().find(of_original).copied()
        };
        node.put(handle(found.ok_or(result::INVALID_VALUE)?))
    }

    fn cuGraphNodeGetType [509, Asks::Nothing] (_, node: Handle, node_type: Out<u32>) {
        let found = world().node(number(node))?.content.node_type();
        node_type.put(found)
    }

    fn cuGraphGetNodes [534, Asks::Nothing] (_, graph: Handle, nodes: *mut Handle, count: Out<usize>) {
        let found = world().graph(number(graph))?.nodes.clone();
        list(&[(nodes, &|at| handle(found[at]))], found.len(), count, std::ptr::null_mut())
    }

    fn cuGraphGetRootNodes [510, Asks::Nothing] (_, graph: Handle, nodes: *mut Handle, count: Out<usize>) {
        let found: Vec<HandleNumber> = {
            let world = world();
            let graph = world.graph(number(graph))?;
            let has_none_before = |node: &&HandleNumber| !graph.edges.iter().any(|edge| edge.to == **node);
            graph.nodes.iter().filter(has_none_before).copied().collect()
        };
        list(&[(nodes, &|at| handle(found[at]))], found.len(), count, std::ptr::null_mut())
    }

    fn cuGraphGetEdges [535, Asks::Nothing] (_, graph: Handle, from: *mut Handle, to: *mut Handle, count: Out<usize>) {
        edges(&edges_of(graph)?, from, to, None, count)
    }

    fn cuGraphGetEdges_v2 [724, Asks::Nothing] (_, graph: Handle, from: *mut Handle, to: *mut Handle, data: *mut EdgeData, count: Out<usize>) {
        edges(&edges_of(graph)?, from, to, Some(data), count)
    }

    fn cuGraphNodeGetDependencies [511, Asks::Nothing] (_, node: Handle, nodes: *mut Handle, count: Out<usize>) {
        edges(&neighbours(node, true)?, nodes, std::ptr::null_mut(), None, count)
    }

    fn cuGraphNodeGetDependencies_v2 [725, Asks::Nothing] (_, node: Handle, nodes: *mut Handle, data: *mut EdgeData, count: Out<usize>) {
        edges(&neighbours(node, true)?, nodes, std::ptr::null_mut(), Some(data), count)
    }

    fn cuGraphNodeGetDependentNodes [512, Asks::Nothing] (_, node: Handle, nodes: *mut Handle, count: Out<usize>) {
        edges(&neighbours(node, false)?, nodes, std::ptr::null_mut(), None, count)
    }

    fn cuGraphNodeGetDependentNodes_v2 [726, Asks::Nothing] (_, node: Handle, nodes: *mut Handle, data: *mut EdgeData, count: Out<usize>) {
        edges(&neighbours(node, false)?, nodes, std::ptr::null_mut(), Some(data), count)
    }

    fn cuGraphAddDependencies [518, Asks::Nothing] (_, graph: Handle, from: *const Handle, to: *const Handle, count: usize) {
        change(graph, from, to, std::ptr::null(), count, World::add_edge)
    }

    fn cuGraphAddDependencies_v2 [727, Asks::Nothing] (_, graph: Handle, from: *const Handle, to: *const Handle, data: *const EdgeData, count: usize) {
        change(graph, from, to, data, count, World::add_edge)
    }

    fn cuGraphRemoveDependencies [519, Asks::Nothing] (_, graph: Handle, from: *const Handle, to: *const Handle, count: usize) {
        change(graph, from, to, std::ptr::null(), count, World::remove_edge)
    }

    fn cuGraphRemoveDependencies_v2 [728, Asks::Nothing] (_, graph: Handle, from: *const Handle, to: *const Handle, data: *const EdgeData, count: usize) {
        change(graph, from, to, data, count, World::remove_edge)
    }

    fn cuGraphDestroyNode [522, Asks::Nothing] (_, node: Handle) {
        let (graph, node_type) = {
            let world = world();
            let found = world.node(number(node))?;
            world.check_changeable(found.graph)?;
            (found.graph, found.content.node_type())
        };
        resource::tell(&[Event::of_node(What::NodeDestroyStarting, graph, number(node), node_type)]);
        world().destroy_node(number(node))
    }

    fn cuGraphGetId [812, Asks::Nothing] (_, graph: Handle, id: Out<u32>) {
        id.put(graph::id_of_graph(graph).ok_or(result::INVALID_VALUE)?)
    }

    fn cuGraphExecGetId [813, Asks::Nothing] (_, exec: Handle, id: Out<u32>) {
        id.put(graph::id_of_exec(exec).ok_or(result::INVALID_VALUE)?)
    }

    fn cuGraphNodeGetToolsId [811, Asks::Nothing] (_, node: Handle, id: Out<u64>) {
        id.put(graph::id_of_node(node).ok_or(result::INVALID_VALUE)?)
    }

    fn cuGraphNodeGetLocalId [810, Asks::Nothing] (_, node: Handle, id: Out<u32>) {
        id.put(graph::id_of_node(node).ok_or(result::INVALID_VALUE)? as u32)
    }

    fn cuGraphNodeGetContainingGraph [809, Asks::Nothing] (_, node: Handle, graph: Out<Handle>) {
        let found = world().node(number(node))?.graph;
        graph.put(handle(found))
    }
}
