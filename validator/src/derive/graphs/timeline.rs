//! All changes of one session's graphs in their order: lives of nodes and of executable graphs.

use std::collections::HashMap;

use lineage_core::evidence::Why;
use lineage_core::id::HostNanos;
use lineage_core::observation::{GraphChange, GraphEvent, GraphNodeKind};

use super::Exec;

/// From which change to which: the first is the birth, the second is not part of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life<T> {
    pub(super) born: u64,
    pub(super) died: u64,
    pub(super) what: T,
}

impl<T> Life<T> {
    fn covers(&self, change: u64) -> bool {
        self.born <= change && change < self.died
    }
}

/// Nodes that were made in a graph so far, and whether these are all.
#[derive(Debug, Default)]
struct Made {
    nodes: u32,
    is_whole: bool,
}

/// The graphs of one device session.
#[derive(Debug, Default)]
pub(super) struct Timeline<'a> {
    pub(super) changes: Vec<&'a GraphEvent>,
    /// Changes before each of these are not known to hold after it.
    pub(super) losses: Vec<u64>,
    /// From when to when changes were lost; without an end until the recording's.
    lost_while: Vec<(HostNanos, Option<HostNanos>)>,
    pub(super) nodes: HashMap<u64, Vec<Life<&'a GraphEvent>>>,
    pub(super) execs: HashMap<u32, Vec<Life<Exec<'a>>>>,
    /// What changed an executable graph.
    of_execs: HashMap<u32, Vec<&'a GraphEvent>>,
    /// Of the changes that made a node, which node of its graph it was.
    pub(super) orders: HashMap<u64, u32>,
    pub(super) has_ended: bool,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(mut changes: Vec<&'a GraphEvent>, has_ended: bool) -> Self {
        // A stable sort: of two changes of one place the first to come stands.
        changes.sort_by_key(|change| change.sequence);
        changes.dedup_by_key(|change| change.sequence);
        let mut timeline = Self {
            has_ended,
            ..Self::default()
        };
        let mut before: Option<u64> = None;
        let mut made: HashMap<u32, Made> = HashMap::new();
        let mut born_in: HashMap<u32, Vec<u64>> = HashMap::new();
        for change in changes {
            let sequence = change.sequence.0;
            let told = matches!(change.change, GraphChange::Lost { .. });
            let first_missing = before.map_or(sequence, |before| before + 1);
            if let Some((_, end @ None)) = timeline.lost_while.last_mut() {
                *end = Some(change.at);
            }
            if told {
                timeline.lost_while.push((change.at, None));
            } else if let (true, Some(last)) = (first_missing < sequence, timeline.changes.last()) {
                timeline.lost_while.push((last.at, Some(change.at)));
            }
            if told || first_missing < sequence {
                timeline.losses.push(first_missing);
                made.clear();
            }
            before = Some(sequence);
            timeline.changes.push(change);
            match &change.change {
                GraphChange::GraphCreated { graph } => {
                    timeline.bury_nodes(born_in.remove(graph), sequence);
                    let is_whole = true;
                    made.insert(*graph, Made { nodes: 0, is_whole });
                }
                // Before its nodes, or behind them.
                GraphChange::GraphCloned { graph, .. } => {
                    made.entry(*graph).or_default().is_whole = true;
                }
                GraphChange::GraphDestroyed { graph } => {
                    timeline.bury_nodes(born_in.remove(graph), sequence);
                    made.remove(graph);
                }
                GraphChange::NodeCreated { graph, node, .. }
                | GraphChange::NodeCloned { graph, node, .. } => {
                    let made = made.entry(*graph).or_default();
                    made.nodes = made.nodes.saturating_add(1);
                    let order = if made.is_whole { made.nodes } else { 0 };
                    timeline.orders.insert(sequence, order);
                    let lives = timeline.nodes.entry(*node).or_default();
                    bury(lives, sequence);
                    lives.push(Life {
                        born: sequence,
                        died: u64::MAX,
                        what: change,
                    });
                    born_in.entry(*graph).or_default().push(*node);
                }
                GraphChange::NodeDestroyed { node, .. } => {
                    timeline.bury_nodes(Some(vec![*node]), sequence);
                }
                GraphChange::ExecCreated { exec, .. } => {
                    timeline.bury_nodes(born_in.remove(exec), sequence);
                    made.remove(exec);
                    let lives = timeline.execs.entry(*exec).or_default();
                    // Where the end of the one before was not seen, since its beginning.
                    let filled_since = lives.last().map_or(0, |last| match last.died {
                        u64::MAX => last.born,
                        died => died,
                    });
                    bury(lives, sequence);
                    let generation = u32::try_from(lives.len()).unwrap_or(u32::MAX - 1) + 1;
                    lives.push(Life {
                        born: sequence,
                        died: u64::MAX,
                        what: Exec {
                            id: *exec,
                            generation,
                            created: change,
                            filled_since,
                        },
                    });
                }
                GraphChange::ExecDestroyed { exec } => {
                    if let Some(lives) = timeline.execs.get_mut(exec) {
                        bury(lives, sequence);
                    }
                }
                GraphChange::ExecUpdated { exec, .. }
                | GraphChange::NodeUpdated { exec, .. }
                | GraphChange::ParametersSet { exec, .. }
                | GraphChange::NodeEnabled { exec, .. } => {
                    timeline.of_execs.entry(*exec).or_default().push(change);
                }
                _ => {}
            }
        }
        timeline
    }

    fn bury_nodes(&mut self, nodes: Option<Vec<u64>>, sequence: u64) {
        for node in nodes.unwrap_or_default() {
            if let Some(lives) = self.nodes.get_mut(&node) {
                bury(lives, sequence);
            }
        }
    }

    /// Whether changes that happened between these times are known to be lost.
    pub(super) fn lost_while(&self, from: HostNanos, to: HostNanos) -> bool {
        self.lost_while.iter().any(|&(since, until)| {
            since <= to && until.is_none_or(|until| from <= until.max(since))
        })
    }

    /// Whether changes after the first and up to the second are known to be lost.
    pub(super) fn lost_between(&self, after: u64, until: u64) -> bool {
        let first = self.losses.partition_point(|loss| *loss <= after);
        self.losses.get(first).is_some_and(|loss| *loss <= until)
    }

    pub(super) fn exec_at(&self, id: u32, sequence: u64) -> Option<Exec<'a>> {
        let lives = self.execs.get(&id)?;
        let born = lives.partition_point(|life| life.born <= sequence);
        let last = lives.get(born.checked_sub(1)?)?;
        last.covers(sequence).then_some(last.what)
    }

    pub(super) fn why_no_exec(&self, id: u32) -> Why {
        if self.execs.contains_key(&id) || !self.losses.is_empty() {
            Why::Dropped
        } else {
            Why::BeforeSession
        }
    }

    /// The copy that became this node of an executable graph.
    pub(super) fn copied_into(&self, exec: Exec<'a>, node: u64) -> Option<&'a GraphEvent> {
        let lives = self.nodes.get(&node)?;
        let born = lives.partition_point(|life| life.born < exec.created.sequence.0);
        let last = lives.get(born.checked_sub(1)?)?;
        let is_own = match last.what.change {
            GraphChange::NodeCreated { graph, .. } | GraphChange::NodeCloned { graph, .. } => {
                graph == exec.id
            }
            _ => false,
        };
        (is_own && last.born > exec.filled_since && last.died >= exec.created.sequence.0)
            .then_some(last.what)
    }

    /// All copies that became nodes of an executable graph.
    fn copies(&self, exec: Exec<'a>) -> impl Iterator<Item = (u64, &'a GraphEvent)> + '_ {
        let until = exec.created.sequence.0;
        let from = self
            .changes
            .partition_point(|change| change.sequence.0 <= exec.filled_since);
        let to = self
            .changes
            .partition_point(|change| change.sequence.0 < until);
        self.changes[from..to].iter().filter_map(move |change| {
            let node = match change.change {
                GraphChange::NodeCreated { node, .. } | GraphChange::NodeCloned { node, .. } => {
                    node
                }
                _ => return None,
            };
            let own = self.copied_into(exec, node)?;
            (own.sequence == change.sequence).then_some((node, own))
        })
    }

    pub(super) fn holds(&self, exec: Exec<'a>, wanted: impl Fn(GraphNodeKind) -> bool) -> bool {
        self.copies(exec)
            .any(|(_, copy)| node_kind(copy).is_some_and(&wanted))
    }

    /// Whether a node runs in every launch at this moment, and is of a kind that CUPTI records.
    pub(super) fn certainly_works(&self, exec: Exec<'a>, sequence: u64) -> bool {
        let source = match exec.created.change {
            GraphChange::ExecCreated { graph, .. } => graph,
            _ => return false,
        };
        let has_bodies = self.holds(exec, |kind| kind == GraphNodeKind::Conditional);
        let switches: Vec<(Option<u64>, bool)> = self
            .changes_of(exec, sequence)
            .filter_map(|change| match change.change {
                GraphChange::NodeEnabled { node, enabled, .. } => Some((node, enabled)),
                _ => None,
            })
            .collect();
        let names_one = |node: &Option<u64>| {
            node.is_some_and(|node| self.copies(exec).any(|copy| is_named(copy, node)))
        };
        if !switches.iter().all(|(node, _)| names_one(node)) {
            return false;
        }
        self.copies(exec).any(|(node, copy)| {
            let records = matches!(
                node_kind(copy),
                Some(GraphNodeKind::Kernel | GraphNodeKind::Copy | GraphNodeKind::Set)
            );
            let GraphChange::NodeCloned { original_graph, .. } = copy.change else {
                // Nothing tells where it is.
                return records && !has_bodies;
            };
            let mut switched = switches.iter().rev();
            let last = switched
                .find(|(named, _)| named.is_some_and(|named| is_named((node, copy), named)));
            let enabled = last.is_none_or(|(_, enabled)| *enabled);
            records && enabled && (!has_bodies || original_graph == source)
        })
    }

    /// What changed an executable graph up to this moment.
    pub(super) fn changes_of(
        &self,
        exec: Exec<'a>,
        sequence: u64,
    ) -> impl DoubleEndedIterator<Item = &'a GraphEvent> + '_ {
        let all = self.of_execs.get(&exec.id).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|change| change.sequence <= exec.created.sequence);
        let to = all.partition_point(|change| change.sequence.0 <= sequence);
        all[from..to.max(from)].iter().copied()
    }
}

/// Ends the last life.
fn bury<T>(lives: &mut [Life<T>], sequence: u64) {
    if let Some(last) = lives.last_mut() {
        last.died = last.died.min(sequence);
    }
}

fn node_kind(change: &GraphEvent) -> Option<GraphNodeKind> {
    match change.change {
        GraphChange::NodeCreated { kind, .. } | GraphChange::NodeCloned { kind, .. } => Some(kind),
        _ => None,
    }
}

/// Whether a change that names a node means this copy: the driver names the node of the graph that was
/// instantiated, CUPTI the executable one's.
pub(super) fn is_named((node, copy): (u64, &GraphEvent), named: u64) -> bool {
    let is_copy =
        matches!(copy.change, GraphChange::NodeCloned { original, .. } if original == named);
    node == named || is_copy
}
