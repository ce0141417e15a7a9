//! What lineage says of a cell, compared with the truth that was carried by data.

use std::collections::HashMap;

use launch_lineage::row::{Binding, Row, Template};
use launch_lineage::{Attribution, LaunchEpoch, Report};
use lineage_sim::{Call, GraphNode, Operation, Truth};

use crate::cell::{Cell, Variation};
use crate::desk::{Noted, Numbers};
use crate::expected::may_be_unknown;

/// How many that are not right are shown in full.
const EXAMPLES: usize = 2;

/// How the joins compare with the truth.
#[derive(Debug, Default)]
pub struct Score {
    /// Operations that the device ran: kernels of graphs, and the copies before each replay.
    pub operations: u64,
    /// Of them, kernels of graphs.
    pub kernels: u64,
    /// Kernels whose replay epoch, capture epoch, graph, replay number and capturing call are all right,
    /// and copies whose epoch is.
    pub right: u64,
    /// Kernels whose capture cannot be known, and is said not to be; the rest of them is right.
    pub unknown: u64,
    /// Operations joined to nobody, or not recorded.
    pub lost: u64,
    /// Operations joined to others, or to another replay of theirs.
    pub wrong: u64,
    /// Kernels whose capture could have been known, and is said not to be.
    pub capture_lost: u64,
    /// Kernels joined to another capture.
    pub capture_wrong: u64,
    /// The first few that were lost or wrong.
    pub examples: Vec<String>,
}

/// What became of one operation.
enum Verdict {
    Right,
    Unknown,
    Lost(&'static str),
    Wrong(String),
    CaptureLost(&'static str),
    CaptureWrong(String),
}

/// Compares every operation that the device really ran with the row that lineage has of it.
pub fn score(cell: Cell, report: &Report, noted: &Noted, truth: &Truth) -> Score {
    let mut rows = rows(report);
    let calls: HashMap<u64, &Call> = truth
        .calls
        .iter()
        .map(|call| (call.ordinal, call))
        .collect();
    let mut score = Score {
        operations: truth.operations.len() as u64,
        ..Score::default()
    };
    for operation in &truth.operations {
        let numbers = Numbers::of(operation.label.unwrap_or_default());
        let verdict = match rows.remove(&key(operation)) {
            None => Verdict::Lost("it has no row"),
            Some(row) => judge(cell, operation, numbers, row, noted, &calls),
        };
        score.kernels += u64::from(operation.graph.is_some());
        let example = match verdict {
            Verdict::Right => {
                score.right += 1;
                continue;
            }
            Verdict::Unknown => {
                score.unknown += 1;
                continue;
            }
            Verdict::Lost(why) => {
                score.lost += 1;
                why.to_owned()
            }
            Verdict::Wrong(why) => {
                score.wrong += 1;
                why
            }
            Verdict::CaptureLost(why) => {
                score.capture_lost += 1;
                why.to_owned()
            }
            Verdict::CaptureWrong(why) => {
                score.capture_wrong += 1;
                why
            }
        };
        if score.examples.len() < EXAMPLES {
            let Numbers { capture, replay } = numbers;
            let what = operation.name.as_deref().unwrap_or("a copy");
            score.examples.push(format!(
                "{what} of capture {capture} in replay {replay}: {example}"
            ));
        }
    }
    // What lineage has and the device never ran.
    if let Some(row) = rows.values().next() {
        score.wrong += rows.len() as u64;
        score.examples.push(format!("never run: {row:?}"));
    }
    score
}

/// By the launch's correlation id, and the node.
type Key = (u32, Option<u64>);

fn key(operation: &Operation) -> Key {
    let node = operation.graph.map(|node| node.node_id);
    (operation.correlation_id, node)
}

/// The rows that have an operation.
pub fn rows(report: &Report) -> HashMap<Key, &Row> {
    let of = |row| {
        let row: &Row = row;
        let operation = row.operation.as_ref()?;
        Some(((operation.correlation.0, operation.graph_node), row))
    };
    report.rows.iter().filter_map(of).collect()
}

fn judge(
    cell: Cell,
    operation: &Operation,
    numbers: Numbers,
    row: &Row,
    noted: &Noted,
    calls: &HashMap<u64, &Call>,
) -> Verdict {
    match row.binding {
        Binding::Bound(epoch) if noted.replay(numbers.replay) == Some(epoch) => {}
        Binding::Bound(_) | Binding::Disputed(..) => {
            return Verdict::Wrong(format!("{:?}", row.binding));
        }
        _ => return Verdict::Lost("it is bound to nobody"),
    }
    let Some(node) = &operation.graph else {
        return match row.graph {
            None => Verdict::Right,
            Some(graph) => Verdict::Wrong(format!("a copy before a replay is {graph:?}")),
        };
    };
    let Some(graph) = row.graph else {
        return Verdict::CaptureLost("its row has no graph");
    };
    let said = (graph.exec, graph.replay, graph.iteration);
    if said != (Some(node.graph_id), Some(node.launch.into()), 1) {
        return Verdict::Wrong(format!("it is of {node:?}, and its row says {graph:?}"));
    }
    match graph.template {
        Template::Known(template) => {
            let captured = noted.capture(numbers.capture).and_then(|of| of.epoch);
            let by_call = template.captured_by.map(|call| call.wire().0);
            let rightly = template.capture == attribution(captured)
                // The device forgets the call where parameters were set.
                && captured_by(node, calls).is_none_or(|call| by_call == Some(call))
                // The device names the node that the executed one was made from, which of a clone is the clone's.
                && (template.node == node.source_node_id || cell.variation == Variation::Clone);
            if rightly {
                Verdict::Right
            } else {
                Verdict::CaptureWrong(format!(
                    "captured under {captured:?}: {node:?}, {template:?}"
                ))
            }
        }
        Template::Unknown { .. } => {
            if may_be_unknown(cell.cupti, cell.variation, noted.is_change(numbers.capture)) {
                Verdict::Unknown
            } else {
                Verdict::CaptureLost("its capture is said to be unknown")
            }
        }
        other => Verdict::CaptureWrong(format!("with all its events its template is {other:?}")),
    }
}

fn attribution(epoch: Option<LaunchEpoch>) -> Attribution {
    epoch.map_or(Attribution::None, Attribution::Epoch)
}

/// The correlation id of the call that was captured as this node.
fn captured_by(node: &GraphNode, calls: &HashMap<u64, &Call>) -> Option<u32> {
    let call = calls.get(&node.capture_call_ordinal?)?;
    Some(call.correlation_id)
}
