//! Who built a node: backwards from a moment, through updates and copies.

use lineage_core::evidence::Why;
use lineage_core::observation::{GraphChange, GraphEvent, Operation};

use super::timeline::{Timeline, is_named};
use super::{BuiltNode, Exec};

/// Copies of copies that are followed.
const CHAIN: usize = 64;

impl<'a> Timeline<'a> {
    /// Who built a node of an executable graph, as it was at this moment.
    pub(super) fn template(
        &self,
        exec: Exec<'a>,
        node: u64,
        sequence: u64,
    ) -> Result<BuiltNode, Why> {
        let copy = self.copied_into(exec, node).ok_or(Why::Dropped)?;
        let mut set_by = None;
        let mut found = None;
        for change in self.changes_of(exec, sequence).rev() {
            let of_this = |named: u64| is_named((node, copy), named);
            match &change.change {
                GraphChange::ParametersSet { node: None, .. } => {
                    found = Some((change.sequence.0, Err(Why::ExecUpdated)));
                }
                GraphChange::ParametersSet {
                    node: Some(named), ..
                } if of_this(*named) => {
                    set_by.get_or_insert(change.attribution);
                }
                GraphChange::NodeUpdated {
                    node: named,
                    original,
                    ..
                } if of_this(*named) => {
                    found = Some((change.sequence.0, original.ok_or(Why::ExecUpdated)));
                }
                GraphChange::ExecUpdated { .. } => {
                    let pair = self.paired(change, exec.id, (node, copy));
                    let pair = pair.map_or((change.sequence.0, Err(Why::ExecUpdated)), |pair| pair);
                    found = Some(pair);
                }
                _ => {}
            }
            if found.is_some() {
                break;
            }
        }
        let (since, from) = match found {
            Some((since, from)) => (since, from.map(Some)),
            None => (copy.sequence.0, Ok(None)),
        };
        if self.lost_between(since, sequence) {
            return Err(Why::Dropped);
        }
        let built = match from? {
            Some(original) => self.built(original, since),
            None => match copy.change {
                GraphChange::NodeCloned { original, .. } => self.built(original, since),
                _ => Err(Why::Dropped),
            },
        }?;
        Ok(BuiltNode {
            capture: set_by.unwrap_or(built.capture),
            ..built
        })
    }

    /// The update of this node that belongs to an update of the whole: those that came right before
    /// it on its thread do.
    fn paired(
        &self,
        whole: &GraphEvent,
        exec: u32,
        copy: (u64, &GraphEvent),
    ) -> Option<(u64, Result<u64, Why>)> {
        let until = self
            .changes
            .partition_point(|change| change.sequence < whole.sequence);
        for change in self.changes[..until].iter().rev() {
            if change.tid != whole.tid {
                continue;
            }
            match &change.change {
                GraphChange::NodeUpdated {
                    exec: of,
                    node,
                    original: Some(original),
                } if *of == exec && is_named(copy, *node) => {
                    return Some((change.sequence.0, Ok(*original)));
                }
                GraphChange::NodeUpdated { exec: of, .. } if *of == exec => {}
                _ => return None,
            }
        }
        None
    }

    /// Who built the node that had this id at this change.
    fn built(&self, node: u64, at: u64) -> Result<BuiltNode, Why> {
        let (mut node, mut at) = (node, at);
        let mut graph = None;
        for _ in 0..CHAIN {
            let lives = self.nodes.get(&node).map_or(&[][..], Vec::as_slice);
            let born = lives.partition_point(|life| life.born < at);
            let life = born.checked_sub(1).map(|last| lives[last]);
            let Some(life) = life.filter(|life| at < life.died) else {
                return Err(self.why_no_node(graph.unwrap_or((node >> 32) as u32), at));
            };
            if self.lost_between(life.born, at) {
                return Err(Why::Dropped);
            }
            match life.what.change {
                GraphChange::NodeCreated { graph, node, .. } => {
                    return Ok(BuiltNode {
                        graph,
                        node,
                        order: self.orders.get(&life.born).copied().unwrap_or(0),
                        capture: life.what.attribution,
                        in_call: life.what.correlation,
                        at: life.what.at,
                    });
                }
                GraphChange::NodeCloned {
                    original,
                    original_graph,
                    ..
                } => {
                    (node, at) = (original, life.born);
                    graph = Some(original_graph);
                }
                _ => return Err(Why::Dropped),
            }
        }
        Err(Why::Dropped)
    }

    /// Why nothing is known of a node of this graph at this change.
    fn why_no_node(&self, graph: u32, at: u64) -> Why {
        let of_session = self.changes.iter().any(|change| {
            change.sequence.0 <= at
                && matches!(change.change, GraphChange::GraphCreated { graph: made }
                    | GraphChange::GraphCloned { graph: made, .. } if made == graph)
        });
        if of_session || !self.losses.is_empty() {
            Why::Dropped
        } else {
            Why::BeforeSession
        }
    }

    /// Who built the node of an operation whose launch was not seen.
    pub(super) fn template_by_node(
        &self,
        operation: &Operation,
        node: u64,
    ) -> Result<BuiltNode, Why> {
        let id = operation.graph.unwrap_or((node >> 32) as u32);
        let lives = self.execs.get(&id).map_or(&[][..], Vec::as_slice);
        match lives {
            [only] if self.losses.is_empty() => {
                let exec = only.what;
                let copy = self.copied_into(exec, node).ok_or(Why::Dropped)?;
                let changed = self
                    .changes_of(exec, u64::MAX)
                    .any(|change| match &change.change {
                        GraphChange::NodeUpdated { node: named, .. }
                        | GraphChange::ParametersSet {
                            node: Some(named), ..
                        } => is_named((node, copy), *named),
                        GraphChange::ExecUpdated { .. }
                        | GraphChange::ParametersSet { node: None, .. } => true,
                        _ => false,
                    });
                if changed {
                    return Err(Why::ExecUpdated);
                }
                self.template(exec, node, exec.created.sequence.0)
            }
            _ => Err(self.why_no_exec(id)),
        }
    }
}
