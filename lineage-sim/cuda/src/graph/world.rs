//! Templates: graphs as a program builds, captures and clones them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use crate::config::config;
use crate::graph::capture::Captures;
use crate::graph::content::Content;
use crate::graph::memory;
use crate::graph::resource::{Event, What};
use crate::handles::HandleNumber;
use crate::result;
use crate::sync::lock;

/// `CUgraphEdgeData`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct EdgeData {
    pub(crate) from_port: u8,
    pub(crate) to_port: u8,
    pub(crate) kind: u8,
    reserved: [u8; 5],
}

/// `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`, `…_LAUNCH_ORDER`, and `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`.
const PORT_PROGRAMMATIC: u8 = 1;
const PORT_LAUNCH_ORDER: u8 = 2;
const TYPE_PROGRAMMATIC: u8 = 1;

impl EdgeData {
    pub(crate) const PROGRAMMATIC: Self = Self {
        from_port: PORT_PROGRAMMATIC,
        to_port: 0,
        kind: TYPE_PROGRAMMATIC,
        reserved: [0; 5],
    };

    /// What the model of the device is told.
    pub(crate) fn model(self) -> lineage_sim_model::Edge {
        match self.from_port {
            PORT_PROGRAMMATIC => lineage_sim_model::Edge::Programmatic,
            PORT_LAUNCH_ORDER => lineage_sim_model::Edge::LaunchOrder,
            _ => lineage_sim_model::Edge::End,
        }
    }

    /// Ports and types that exist; other ports than the default only between kernels.
    fn check(self, from: &Content, to: &Content) -> Result<(), u32> {
        let exists = self.from_port <= PORT_LAUNCH_ORDER
            && self.to_port == 0
            && self.kind <= TYPE_PROGRAMMATIC
            && self.reserved == [0; 5];
        let is_plain = self == Self::default();
        let both_kernels = matches!(from, Content::Kernel(_)) && matches!(to, Content::Kernel(_));
        if exists && (is_plain || both_kernels) {
            Ok(())
        } else {
            Err(result::INVALID_VALUE)
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: HandleNumber,
    pub(crate) to: HandleNumber,
    pub(crate) data: EdgeData,
}

/// Whose a graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The program's: it may change and destroy it.
    Program,
    /// A child or body of a node, which goes with that.
    Node,
    /// A capture's that is under way.
    Capture,
    /// What an exec was cloned into: it has handles for tools only.
    Exec,
}

pub(crate) struct Graph {
    pub(crate) id: u32,
    pub(crate) nodes: Vec<HandleNumber>,
    pub(crate) edges: Vec<Edge>,
    known_edges: HashSet<(HandleNumber, HandleNumber, EdgeData)>,
    next_local: u32,
    pub(crate) holder: Holder,
}

pub(crate) struct Node {
    pub(crate) graph: HandleNumber,
    pub(crate) id: u64,
    pub(crate) content: Content,
    /// The node that it was cloned from.
    pub(crate) original: HandleNumber,
    /// The ordinal of the call that was captured as this node, for the truth; 0 for none.
    pub(crate) call_ordinal: u64,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) graphs: HashMap<HandleNumber, Graph>,
    pub(crate) nodes: HashMap<HandleNumber, Node>,
    pub(crate) captures: Captures,
    handles: u64,
    last_id: u32,
    ids_in_use: BTreeSet<u32>,
}

/// Upper halves of the handles.
const GRAPH_TAG: u64 = 0x0c07;
const NODE_TAG: u64 = 0x0c08;

pub(crate) fn world() -> MutexGuard<'static, World> {
    static WORLD: OnceLock<Mutex<World>> = OnceLock::new();
    lock(WORLD.get_or_init(Default::default))
}

impl World {
    fn handle(&mut self, tag: u64) -> HandleNumber {
        self.handles += 1;
        // Sixteen apart, as pointers would be. Beyond 2^28 handles the tags' neighbours are reached, still unique.
        (tag << 32) + (self.handles << 4)
    }

    /// An id for a new graph or exec: the next one, or the smallest that is free.
    fn take_id(&mut self) -> u32 {
        let id = if config().reuse_graph_ids == 1 {
            let mut id = 1;
            for used in &self.ids_in_use {
                if *used != id {
                    break;
                }
                id += 1;
            }
            id
        } else {
            self.last_id += 1;
            self.last_id
        };
        self.ids_in_use.insert(id);
        id
    }

    /// A new graph without nodes.
    pub(crate) fn create_graph(&mut self, holder: Holder) -> HandleNumber {
        let number = self.handle(GRAPH_TAG);
        let id = self.take_id();
        let graph = Graph {
            id,
            nodes: Vec::new(),
            edges: Vec::new(),
            known_edges: HashSet::new(),
            next_local: 0,
            holder,
        };
        self.graphs.insert(number, graph);
        number
    }

    pub(crate) fn graph(&self, number: HandleNumber) -> Result<&Graph, u32> {
        self.graphs.get(&number).ok_or(result::INVALID_VALUE)
    }

    pub(crate) fn node(&self, number: HandleNumber) -> Result<&Node, u32> {
        self.nodes.get(&number).ok_or(result::INVALID_VALUE)
    }

    /// A graph that the program may change.
    pub(crate) fn check_changeable(&self, number: HandleNumber) -> Result<(), u32> {
        match self.graph(number)?.holder {
            Holder::Program | Holder::Node | Holder::Capture => Ok(()),
            Holder::Exec => Err(result::INVALID_VALUE),
        }
    }

    /// Adds a node behind others. Nothing is changed if it cannot be.
    pub(crate) fn add_node(
        &mut self,
        graph: HandleNumber,
        content: Content,
        after: &[(HandleNumber, EdgeData)],
        call_ordinal: u64,
        events: &mut Vec<Event>,
    ) -> Result<HandleNumber, u32> {
        self.check_changeable(graph)?;
        if let Content::Free(memory) = &content {
            // Once in a graph.
            for node in &self.graph(graph)?.nodes {
                if matches!(&self.node(*node)?.content, Content::Free(other) if Arc::ptr_eq(other, memory))
                {
                    return Err(result::INVALID_VALUE);
                }
            }
        }
        for (at, (before, data)) in after.iter().enumerate() {
            let node = self.node(*before)?;
            let is_twice = after[..at]
                .iter()
                .any(|(other, other_data)| other == before && other_data == data);
            if node.graph != graph || is_twice {
                return Err(result::INVALID_VALUE);
            }
            data.check(&node.content, &content)?;
        }
        let node = self.put_node(graph, content, 0, call_ordinal)?;
        let node_type = self.node(node)?.content.node_type();
        events.push(Event::of_node(
            What::NodeCreateStarting,
            graph,
            0,
            node_type,
        ));
        events.push(Event::of_node(What::NodeCreated, graph, node, node_type));
        for (before, data) in after {
            self.put_edge(graph, *before, node, *data, events)?;
        }
        Ok(node)
    }

    /// A node without edges and without any telling.
    pub(crate) fn put_node(
        &mut self,
        graph: HandleNumber,
        content: Content,
        original: HandleNumber,
        call_ordinal: u64,
    ) -> Result<HandleNumber, u32> {
        let number = self.handle(NODE_TAG);
        let of = self.graphs.get_mut(&graph).ok_or(result::INVALID_VALUE)?;
        let id = u64::from(of.id) << 32 | u64::from(of.next_local);
        of.next_local += 1;
        of.nodes.push(number);
        self.nodes.insert(
            number,
            Node {
                graph,
                id,
                content,
                original,
                call_ordinal,
            },
        );
        Ok(number)
    }

    fn put_edge(
        &mut self,
        graph: HandleNumber,
        from: HandleNumber,
        to: HandleNumber,
        data: EdgeData,
        events: &mut Vec<Event>,
    ) -> Result<(), u32> {
        let of = self.graphs.get_mut(&graph).ok_or(result::INVALID_VALUE)?;
        if !of.known_edges.insert((from, to, data)) {
            return Err(result::INVALID_VALUE);
        }
        of.edges.push(Edge { from, to, data });
        let node_type = self.node(from)?.content.node_type();
        let mut event = Event::of_node(What::DependencyCreated, graph, from, node_type);
        event.dependency = to;
        events.push(event);
        Ok(())
    }

    /// Adds an edge of the program's.
    pub(crate) fn add_edge(
        &mut self,
        graph: HandleNumber,
        from: HandleNumber,
        to: HandleNumber,
        data: EdgeData,
        events: &mut Vec<Event>,
    ) -> Result<(), u32> {
        self.check_changeable(graph)?;
        let (before, after) = (self.node(from)?, self.node(to)?);
        if before.graph != graph || after.graph != graph || from == to {
            return Err(result::INVALID_VALUE);
        }
        data.check(&before.content, &after.content)?;
        self.put_edge(graph, from, to, data, events)
    }

    /// Graphs with nodes about memory are not cloned, and lose no nodes and no edges.
    fn check_without_memory(&self, graph: HandleNumber) -> Result<(), u32> {
        for node in &self.graph(graph)?.nodes {
            if memory::is_about_memory(&self.node(*node)?.content) {
                return Err(result::NOT_SUPPORTED);
            }
        }
        Ok(())
    }

    pub(crate) fn remove_edge(
        &mut self,
        graph: HandleNumber,
        from: HandleNumber,
        to: HandleNumber,
        data: EdgeData,
        events: &mut Vec<Event>,
    ) -> Result<(), u32> {
        self.check_changeable(graph)?;
        self.check_without_memory(graph)?;
        let node_type = self.node(from)?.content.node_type();
        let of = self.graphs.get_mut(&graph).ok_or(result::INVALID_VALUE)?;
        if !of.known_edges.remove(&(from, to, data)) {
            return Err(result::INVALID_VALUE);
        }
        of.edges
            .retain(|edge| (edge.from, edge.to, edge.data) != (from, to, data));
        let mut event = Event::of_node(What::DependencyDestroyStarting, graph, from, node_type);
        event.dependency = to;
        events.push(event);
        Ok(())
    }

    /// Takes a node of the program's away, with its edges.
    pub(crate) fn destroy_node(&mut self, number: HandleNumber) -> Result<(), u32> {
        let node = self.node(number)?;
        let graph = node.graph;
        self.check_changeable(graph)?;
        self.check_without_memory(graph)?;
        if let Some(of) = self.graphs.get_mut(&graph) {
            of.nodes.retain(|other| *other != number);
            of.edges
                .retain(|edge| edge.from != number && edge.to != number);
            of.known_edges
                .retain(|(from, to, _)| *from != number && *to != number);
        }
        if let Some(node) = self.nodes.remove(&number) {
            self.destroy_inner(&node.content);
        }
        Ok(())
    }

    fn destroy_inner(&mut self, content: &Content) {
        for inner in content.inner_graphs() {
            self.destroy_graph(*inner);
        }
    }

    /// Takes a graph with all its nodes away.
    pub(crate) fn destroy_graph(&mut self, number: HandleNumber) {
        let Some(graph) = self.graphs.remove(&number) else {
            return;
        };
        self.ids_in_use.remove(&graph.id);
        for node in graph.nodes {
            // An exec's nodes name the inner graphs of the template's.
            if let Some(node) = self.nodes.remove(&node)
                && graph.holder != Holder::Exec
            {
                self.destroy_inner(&node.content);
            }
        }
    }

    /// Copies a graph with its nodes, edges and inner graphs.
    pub(crate) fn clone_graph(
        &mut self,
        original: HandleNumber,
        holder: Holder,
        events: &mut Vec<Event>,
    ) -> Result<HandleNumber, u32> {
        self.check_without_memory(original)?;
        let of = self.graph(original)?;
        let (nodes, edges) = (of.nodes.clone(), of.edges.clone());
        let graph = self.create_graph(holder);
        events.push(Event::of_graph(What::GraphCreated, graph));
        let mut clones = HashMap::new();
        for node in nodes {
            let from = self.node(node)?;
            let (mut content, call_ordinal) = (from.content.clone(), from.call_ordinal);
            for inner in content.inner_graphs_mut() {
                *inner = self.clone_graph(*inner, Holder::Node, events)?;
            }
            let node_type = content.node_type();
            let clone = self.put_node(graph, content, node, call_ordinal)?;
            events.push(Event::of_node(What::NodeCreated, graph, clone, node_type));
            events.push(
                Event::of_node(What::NodeCloned, graph, clone, node_type).from(original, node),
            );
            clones.insert(node, clone);
        }
        for edge in edges {
            if let (Some(from), Some(to)) = (clones.get(&edge.from), clones.get(&edge.to)) {
                self.put_edge(graph, *from, *to, edge.data, events)?;
            }
        }
        events.push(Event::of_graph(What::GraphCloned, graph).from(original, 0));
        Ok(graph)
    }

    /// The nodes of a graph, each behind those it depends on; among equals in the order of their making. None where they form a circle.
    pub(crate) fn in_order(&self, graph: HandleNumber) -> Result<Option<Vec<HandleNumber>>, u32> {
        let graph = self.graph(graph)?;
        let place: HashMap<_, _> = graph
            .nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (*node, at))
            .collect();
        let mut before = vec![0_u32; graph.nodes.len()];
        let mut behind = vec![Vec::new(); graph.nodes.len()];
        for edge in &graph.edges {
            let (from, to) = (place[&edge.from], place[&edge.to]);
            before[to] += 1;
            behind[from].push(to);
        }
        let mut ready: BTreeSet<usize> = (0..before.len()).filter(|at| before[*at] == 0).collect();
        let mut order = Vec::with_capacity(before.len());
        while let Some(at) = ready.pop_first() {
            order.push(graph.nodes[at]);
            for to in &behind[at] {
                before[*to] -= 1;
                if before[*to] == 0 {
                    ready.insert(*to);
                }
            }
        }
        Ok((order.len() == before.len()).then_some(order))
    }
}
