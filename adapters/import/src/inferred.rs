//! Templates that follow from the order, put into rows.

use lineage_core::evidence::Rule;
use lineage_core::id::{Attribution, HostNanos, ProcessOrdinal, UnwrappedCorrelationId};
use lineage_core::observation::ActivityKind;
use lineage_core::row::{Binding, Row, RowGraph, Template, TemplateNode};
use rustc_hash::FxHashMap;

use crate::templates::{Capture, Replay, TemplateMatch, match_templates};

/// A launch: its process, and the recorder's number of it.
type Launch = (ProcessOrdinal, u32);

/// Which captured launch each kernel of a replayed graph comes from, where capture order tells: what is
/// put into the rows of a recording, all at once or slice by slice.
#[derive(Debug)]
pub struct InferredTemplates<'a> {
    captures: &'a [Capture],
    /// What each replay comes from, in their order.
    matches: Vec<TemplateMatch>,
    /// So many of them, the first, are of other recordings.
    of_others: usize,
    /// The capture of each replay that exactly one capture explains.
    by_order: FxHashMap<Launch, usize>,
    /// The epochs of captured launches whose rows have come.
    captured_under: FxHashMap<Launch, Attribution>,
}

impl<'a> InferredTemplates<'a> {
    /// Holds replays against captures ([`match_templates`]).
    pub fn new(captures: &'a [Capture], replays: &[Replay]) -> Self {
        let matches = match_templates(captures, replays);
        let by_order = replays
            .iter()
            .zip(&matches)
            .filter_map(|(replay, template)| match template {
                TemplateMatch::ByCaptureOrder { capture } => {
                    Some(((replay.process, replay.correlation), *capture))
                }
                _ => None,
            })
            .collect();
        Self {
            captures,
            matches,
            of_others: 0,
            by_order,
            captured_under: FxHashMap::default(),
        }
    }

    /// What each replay comes from, in their order.
    pub fn matches(&self) -> &[TemplateMatch] {
        &self.matches
    }

    /// So many captures, the first, are of other recordings than the rows: calls that have the numbers of
    /// their launches are not these.
    #[must_use]
    pub fn first_of_other_recordings(mut self, captures: usize) -> Self {
        self.of_others = captures;
        self
    }

    /// Says of the kernels of replayed graphs which captured launch each comes from:
    /// [`Template::Inferred`] by [`Rule::CaptureOrder`]. Answers with how many rows that are.
    ///
    /// Rows that have a template are left alone, and so is a launch that several captures or none explain,
    /// and one of which not all kernels are among these rows: a [slice](crate::Slice) has all of them. A
    /// recording without ids of nodes leaves [`TemplateNode::graph`] and [`TemplateNode::node`] 0; the epoch
    /// of a captured launch is known where its own row is among these, or among those of earlier calls.
    pub fn put_into(&mut self, rows: &mut [Row]) -> u64 {
        if self.by_order.is_empty() {
            return 0;
        }
        let mut kernels: FxHashMap<Launch, Vec<usize>> = FxHashMap::default();
        for (number, row) in rows.iter().enumerate() {
            let Some(call) = &row.call else { continue };
            let launch = (row.process, call.correlation.wire().0);
            match &row.operation {
                Some(operation) if operation.kind == ActivityKind::Kernel => {
                    if self.by_order.contains_key(&launch) {
                        kernels.entry(launch).or_default().push(number);
                    }
                }
                Some(_) => {}
                None => {
                    if let Binding::Bound(epoch) = row.binding {
                        let by = Attribution::Epoch(epoch);
                        self.captured_under.insert(launch, by);
                    }
                }
            }
        }
        kernels
            .into_iter()
            .map(|(launch, kernels)| self.put_into_launch(launch, kernels, rows))
            .sum()
    }

    fn put_into_launch(&self, launch: Launch, mut kernels: Vec<usize>, rows: &mut [Row]) -> u64 {
        let Some(&number) = self.by_order.get(&launch) else {
            return 0;
        };
        let capture = &self.captures[number];
        if kernels.len() != capture.launches.len() {
            return 0;
        }
        kernels.sort_by_key(|&at| rows[at].operation.as_ref().and_then(|of| of.start));
        let mut inferred = 0;
        for (order, (&at, captured)) in (1..).zip(kernels.iter().zip(&capture.launches)) {
            let row = &mut rows[at];
            let known = |graph: &RowGraph| !matches!(graph.template, Template::Unknown { .. });
            if row.graph.as_ref().is_some_and(known) {
                continue;
            }
            let captured_by = (capture.process, captured.correlation);
            let by = self.captured_under.get(&captured_by);
            let by = by.filter(|_| number >= self.of_others);
            let node = TemplateNode {
                graph: 0,
                node: 0,
                order,
                capture: by.copied().unwrap_or_default(),
                captured_by: Some(UnwrappedCorrelationId(u64::from(captured.correlation))),
                at: captured.at.unwrap_or(HostNanos(0)),
            };
            let rule = Rule::CaptureOrder;
            let template = Template::Inferred { node, rule };
            row.graph = Some(match row.graph {
                Some(graph) => RowGraph { template, ..graph },
                None => RowGraph {
                    exec: None,
                    generation: 0,
                    replay: None,
                    iteration: 1,
                    template,
                },
            });
            inferred += 1;
        }
        inferred
    }
}

/// Puts the templates that capture order tells into the rows of a whole recording
/// ([`InferredTemplates::put_into`]).
pub fn infer_templates(rows: &mut [Row], captures: &[Capture], replays: &[Replay]) -> u64 {
    InferredTemplates::new(captures, replays).put_into(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use lineage_core::evidence::{Evidence, Why};
    use lineage_core::id::{CorrelationId, LaunchEpoch};
    use lineage_core::observation::{ApiDomain, ApiId, Operation};
    use lineage_core::row::{JoinSources, RowCall, Stages};

    use crate::templates::CapturedLaunch;

    const NAMES: [&str; 2] = ["gemv", "softmax"];

    fn epoch() -> LaunchEpoch {
        LaunchEpoch::from_numbers(5, 1).expect("in range")
    }

    /// A row of the call of this number: of a kernel that began then, or without an operation.
    fn row(correlation: u32, kernel: Option<(&str, u64)>) -> Row {
        let nothing = Evidence::Unknown {
            why: Why::NotCollected,
        };
        let operation = |(name, start): (&str, u64)| Operation {
            session: 1,
            kind: ActivityKind::Kernel,
            correlation: CorrelationId(correlation),
            device: 0,
            context: 1,
            stream: 7,
            queued: None,
            submitted: None,
            start: Some(HostNanos(start)),
            end: Some(HostNanos(start + 5)),
            name: Some(Arc::from(name)),
            graph_node: None,
            graph: None,
            bytes: 0,
            copies: 1,
            grid: [1; 3],
            block: [1; 3],
            footprint: None,
        };
        Row {
            process: ProcessOrdinal(0),
            call: Some(RowCall {
                session: 1,
                correlation: UnwrappedCorrelationId(u64::from(correlation)),
                api: ApiId {
                    domain: ApiDomain::Driver,
                    cbid: 307,
                    name: None,
                },
                tid: 1,
                task: None,
                result: 0,
                in_boundary: None,
            }),
            operation: kernel.map(operation),
            graph: None,
            binding: Binding::Bound(epoch()),
            sources: JoinSources::default(),
            stages: Stages {
                declared: nothing,
                ready: nothing,
                scope_enter: nothing,
                api_enter: nothing,
                api_exit: nothing,
                queued: nothing,
                submitted: nothing,
                start: nothing,
                end: nothing,
            },
            faults: Vec::new(),
            after_retirement: false,
            supersedes: false,
        }
    }

    /// A capture in the calls 11 and 12, and a replay by call 20.
    fn recorded() -> (Vec<Capture>, Vec<Replay>) {
        let process = ProcessOrdinal(0);
        let launches = (11..).zip(NAMES).map(|(correlation, name)| CapturedLaunch {
            correlation,
            kernel: Some(Arc::from(name)),
            at: Some(HostNanos(u64::from(correlation))),
        });
        let capture = Capture {
            process,
            launches: launches.collect(),
        };
        let replay = Replay {
            process,
            correlation: 20,
            kernels: NAMES.map(|name| Some(Arc::from(name))).to_vec(),
        };
        (vec![capture], vec![replay])
    }

    fn nodes(rows: &[Row]) -> Vec<(u32, Option<u64>, Attribution)> {
        let inferred = rows.iter().filter_map(|row| match row.graph?.template {
            Template::Inferred { node, .. } => Some(node),
            _ => None,
        });
        inferred
            .map(|node| {
                (
                    node.order,
                    node.captured_by.map(|call| call.0),
                    node.capture,
                )
            })
            .collect()
    }

    #[test]
    fn the_epoch_of_a_capture_is_that_of_the_captured_launch_of_the_same_recording() {
        let (captures, replays) = recorded();
        for of_others in [0, 1] {
            let templates = InferredTemplates::new(&captures, &replays);
            let mut templates = templates.first_of_other_recordings(of_others);
            // The capture in one slice, the replay in the next.
            let mut capture = [row(11, None), row(12, None)];
            assert_eq!(templates.put_into(&mut capture), 0);
            let mut replay = [
                row(20, Some((NAMES[1], 200))),
                row(20, Some((NAMES[0], 100))),
            ];
            assert_eq!(templates.put_into(&mut replay), 2);
            let by = match of_others {
                0 => Attribution::Epoch(epoch()),
                _ => Attribution::None,
            };
            assert_eq!(nodes(&replay), [(2, Some(12), by), (1, Some(11), by)]);
        }
    }

    #[test]
    fn of_a_launch_whose_kernels_are_not_all_there_nothing_is_said() {
        let (captures, replays) = recorded();
        let mut rows = [row(20, Some((NAMES[0], 100)))];
        assert_eq!(infer_templates(&mut rows, &captures, &replays), 0);
        assert_eq!(rows[0].graph, None);
    }
}
