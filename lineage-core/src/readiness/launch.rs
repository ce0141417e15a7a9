//! Graph launches in the fold: their nodes wait for each other by edges, and all of them for the
//! stream.

use rustc_hash::FxHashMap;

use super::prove::{Fold, Proved, Prover, StreamId};
use super::stream::{Effect, Frontier};
use super::{Dependency, DependencyKind, Partial, Partials};
use crate::id::HostNanos;
use crate::observation::LaunchOrder;

impl Prover<'_, '_> {
    /// One graph launch: the readiness of its nodes, and what it does to its stream.
    pub(super) fn fold_graph(
        &self,
        enter: HostNanos,
        exit: HostNanos,
        nodes: &[usize],
        fold: &mut Fold,
        proved: &mut [Proved],
        overlapped: &mut Vec<usize>,
    ) {
        let of = |at: usize| &self.operations[at];
        let mut streams: Vec<StreamId> = nodes.iter().map(|&at| of(at).stream_id()).collect();
        streams.sort_unstable();
        streams.dedup();
        let mut base = match streams.as_slice() {
            &[stream] => self.frontier(fold, stream, enter),
            _ => Frontier::of(Partials::of(Partial::GraphStreamUnknown)),
        };
        let exec = of(nodes[0]).exec;
        fold.behind_exec(exec, &mut base);
        // Of a call that is no graph launch, as a batch of copies, the order inside is not known.
        let unordered = if nodes.iter().all(|&at| of(at).is_node()) {
            Partial::GraphEdgesUnknown
        } else {
            Partial::CallsOverlap
        };
        let mut by_node: FxHashMap<u64, usize> = FxHashMap::default();
        let mut repeated = false;
        for &at in nodes {
            if let Some(node) = of(at).node {
                repeated |= by_node.insert(node, at).is_some();
            }
        }
        let mut all_seen = !repeated;
        for &at in nodes {
            let operation = of(at);
            let Some(before) = operation
                .node
                .filter(|_| !repeated)
                .and_then(|node| self.graphs.before(node))
            else {
                let mut frontier = base;
                frontier.partial.add(unordered);
                all_seen = false;
                proved[at] = self.readiness(operation, &frontier, Ok(LaunchOrder::Strict));
                continue;
            };
            let mut frontier = Frontier::of(before.partial);
            if before.from_root {
                frontier.merge(&base, None);
            }
            for node in &before.nodes {
                match by_node.get(node).map(|&from| of(from)) {
                    Some(from) => match from.end {
                        Some(end) => frontier.wait_for(
                            end,
                            Dependency {
                                kind: DependencyKind::GraphEdge,
                                row: Some(from.row),
                            },
                        ),
                        None => frontier.partial.add(Partial::TimeMissing),
                    },
                    // Switched off, or its record is missing.
                    None => frontier.partial.add(Partial::GraphNodesUnseen),
                }
            }
            all_seen &= before.partial.is_empty();
            proved[at] = self.readiness(operation, &frontier, Ok(LaunchOrder::Strict));
        }
        let ends: Option<Vec<(HostNanos, usize)>> = nodes
            .iter()
            .map(|&at| Some((of(at).end?, of(at).row)))
            .collect();
        all_seen &= of(nodes[0])
            .node
            .is_some_and(|node| nodes.len() >= self.graphs.recorded_nodes(node));
        let last = ends.and_then(|ends| ends.into_iter().max());
        if let Some(exec) = exec {
            fold.execs.insert(exec, last.filter(|_| all_seen));
        }
        let single = streams.len() == 1;
        let graph_complete = single
            && all_seen
            && of(nodes[0])
                .node
                .is_some_and(|node| self.graphs.leaves_only_records(node));
        for id in streams {
            let stream = fold.stream(id, &self.made);
            stream.at(enter);
            let effect = if single {
                let end = last.map(|(end, row)| {
                    let dependency = Dependency {
                        kind: DependencyKind::EarlierGraph,
                        row: Some(row),
                    };
                    (end, dependency)
                });
                Effect::Work {
                    end,
                    strict: graph_complete,
                }
            } else {
                Effect::Partial(Partial::GraphStreamUnknown)
            };
            stream.begin(exit, effect, nodes.to_vec(), overlapped);
            if single && !graph_complete {
                stream.begin(
                    exit,
                    Effect::Partial(Partial::GraphNodesUnseen),
                    Vec::new(),
                    &mut Vec::new(),
                );
            }
        }
    }
}
