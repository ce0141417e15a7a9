//! Edges of graphs: what a node of an executable graph waits for.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Partial, Partials};
use crate::observation::{EdgeKind, Event, GraphChange, GraphNodeKind};

/// Nodes without a record that are passed through from one node.
const PASSED: usize = 1_024;

/// What a node waits for.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Nodes of the same executable graph that leave records.
    pub(super) nodes: Vec<u64>,
    /// Whether some way leads to the beginning of the graph.
    pub(super) from_root: bool,
    pub(super) partial: Partials,
}

/// Of a node that was cloned from another.
#[derive(Debug, Clone, Copy)]
struct Clone {
    graph: u32,
    original_graph: u32,
    original: u64,
}

/// The graphs of a process, as far as their edges are known.
#[derive(Debug, Default)]
pub(super) struct Graphs {
    /// Of each node its origin; `None` where its id was given to another later.
    clones: FxHashMap<u64, Option<Clone>>,
    /// The node of an executable graph that came from a node.
    copies: FxHashMap<(u32, u64), Option<u64>>,
    kinds: FxHashMap<u64, GraphNodeKind>,
    /// Edges into a node.
    into: FxHashMap<u64, Vec<(u64, EdgeKind)>>,
    /// Graphs all of whose edges are known.
    complete: FxHashSet<u32>,
    /// Graphs with a node that leaves no record, other than one that only orders.
    unseen: FxHashSet<u32>,
    /// Nodes that leave records, of each graph.
    recorded: FxHashMap<u32, FxHashSet<u64>>,
    lost: bool,
}

impl Graphs {
    pub(super) fn of<'a>(events: impl Iterator<Item = &'a Event>) -> Self {
        let mut graphs = Self::default();
        for event in events {
            if let Event::Graph(event) = event {
                graphs.take(&event.change);
            }
        }
        graphs
    }

    fn take(&mut self, change: &GraphChange) {
        match change {
            GraphChange::NodeCreated { graph, node, kind } => self.node(*graph, *node, *kind),
            GraphChange::NodeCloned {
                graph,
                node,
                original_graph,
                original,
                kind,
            } => {
                self.node(*graph, *node, *kind);
                let clone = Clone {
                    graph: *graph,
                    original_graph: *original_graph,
                    original: *original,
                };
                let known = self.clones.entry(*node).or_insert(Some(clone));
                if known.is_some_and(|known| known.original != clone.original) {
                    *known = None;
                }
                let copy = self
                    .copies
                    .entry((*graph, *original))
                    .or_insert(Some(*node));
                if *copy != Some(*node) {
                    *copy = None;
                }
            }
            GraphChange::Edges { graph, edges, last } => {
                for edge in edges {
                    self.into
                        .entry(edge.to)
                        .or_default()
                        .push((edge.from, edge.kind));
                }
                if *last {
                    self.complete.insert(*graph);
                }
            }
            GraphChange::Lost { .. } => self.lost = true,
            _ => {}
        }
    }

    fn node(&mut self, graph: u32, node: u64, kind: GraphNodeKind) {
        self.kinds.insert(node, kind);
        if leaves_record(kind) {
            self.recorded.entry(graph).or_default().insert(node);
        }
        if !leaves_record(kind) && !only_orders(kind) {
            self.unseen.insert(graph);
        }
    }

    /// What a node of an executable graph waits for; `None` where the edges are not known.
    pub(super) fn before(&self, node: u64) -> Option<Before> {
        let clone = self.origin(node)?;
        let mut before = Before::default();
        let mut seen: FxHashSet<u64> = FxHashSet::default();
        let mut open = vec![clone.original];
        while let Some(at) = open.pop() {
            let edges = self.into.get(&at).map_or(&[][..], Vec::as_slice);
            if edges.is_empty() {
                before.from_root = true;
            }
            for &(from, kind) in edges {
                match kind {
                    EdgeKind::Completion => {}
                    EdgeKind::Programmatic | EdgeKind::LaunchOrder => {
                        before.partial.add(Partial::Programmatic);
                        continue;
                    }
                    EdgeKind::Unknown => {
                        before.partial.add(Partial::GraphEdgesUnknown);
                        continue;
                    }
                }
                if !seen.insert(from) {
                    continue;
                }
                if seen.len() > PASSED {
                    before.partial.add(Partial::TooMuch);
                    return Some(before);
                }
                match self.kinds.get(&from) {
                    Some(kind) if leaves_record(*kind) => {
                        match self.copies.get(&(clone.graph, from)) {
                            Some(Some(copy)) => before.nodes.push(*copy),
                            _ => before.partial.add(Partial::GraphNodesUnseen),
                        }
                    }
                    Some(kind) if only_orders(*kind) => open.push(from),
                    _ => before.partial.add(Partial::GraphNodesUnseen),
                }
            }
        }
        Some(before)
    }

    /// How many nodes of this node's executable graph leave records: as many as were cloned into it, and
    /// where it was not told of a clone, as many as are in the graph that it was cloned from.
    pub(super) fn recorded_nodes(&self, node: u64) -> usize {
        let clone = self.clones.get(&node).copied().flatten();
        let count = |graph: u32| self.recorded.get(&graph).map_or(0, FxHashSet::len);
        clone.map_or(0, |clone| {
            count(clone.graph).max(count(clone.original_graph))
        })
    }

    /// Whether every node of this node's graph leaves a record, or only orders others.
    pub(super) fn leaves_only_records(&self, node: u64) -> bool {
        self.origin(node)
            .is_some_and(|clone| !self.unseen.contains(&clone.original_graph))
    }

    fn origin(&self, node: u64) -> Option<Clone> {
        let clone = (*self.clones.get(&node)?)?;
        (!self.lost && self.complete.contains(&clone.original_graph)).then_some(clone)
    }
}

const fn leaves_record(kind: GraphNodeKind) -> bool {
    matches!(
        kind,
        GraphNodeKind::Kernel | GraphNodeKind::Copy | GraphNodeKind::Set
    )
}

/// Readiness passes through these.
const fn only_orders(kind: GraphNodeKind) -> bool {
    matches!(kind, GraphNodeKind::Empty | GraphNodeKind::EventRecord)
}
