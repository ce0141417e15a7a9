//! What a row says of its graph, held against the timelines.

use lineage_core::fault::FaultCode;
use lineage_core::row::{Row, RowGraph, Template, TemplateNode};

use super::Outcome;
use crate::derive::{BuiltNode, Process, Replay, Replayed};
use crate::describe::{about_operation, ordinal};
use crate::finding::{EvidenceLine, Finding, Findings};
use crate::options::Options;

/// Compares the graph of an operation's row with what was derived for it.
pub(super) fn compare(
    process: &Process<'_>,
    number: usize,
    row: &Row,
    options: &Options,
    findings: &mut Findings,
) -> Outcome {
    let Some(replayed) = &process.graphs.of_operation[number] else {
        return Outcome::Agrees;
    };
    let replay = replayed.replay.map(|at| &process.graphs.replays[at]);
    // What came first is not here, or what comes next: then the row may know more.
    if options.evicted_observations > 0 || replay.is_some_and(|replay| replay.pending) {
        return Outcome::Agrees;
    }
    let Some(said) = &row.graph else {
        let detail = "its row has no graph, and it ran in one".to_owned();
        return differs(
            process,
            FaultCode::L06,
            number,
            row,
            replay,
            detail,
            findings,
        );
    };
    let difference = of_launch(said, replay).or_else(|| of_node(said, replayed));
    match difference {
        Some((code, detail)) => differs(process, code, number, row, replay, detail, findings),
        None => Outcome::Agrees,
    }
}

/// What differs about the launch.
fn of_launch(said: &RowGraph, replay: Option<&Replay<'_>>) -> Option<(FaultCode, String)> {
    let exec = replay.map(|replay| replay.told.exec);
    if said.exec != exec {
        let name = |exec: Option<u32>| {
            exec.map_or_else(
                || "none".to_owned(),
                |exec| format!("executable graph {exec}"),
            )
        };
        let detail = format!(
            "its row says that {} was launched, and its call launched {}",
            name(said.exec),
            name(exec)
        );
        return Some((FaultCode::W06, detail));
    }
    let replay = replay?;
    if let Ok(exec) = replay.exec
        && said.generation != exec.generation
    {
        let (said, right) = (ordinal(said.generation), ordinal(exec.generation));
        let detail = format!(
            "its row takes executable graph {} for the {said} of that id, and its launch means the \
             {right}",
            exec.id
        );
        return Some((FaultCode::W08, detail));
    }
    match (said.replay, replay.number) {
        (Some(said), Some(right)) if said != right => Some((
            FaultCode::W06,
            format!("its row says launch {said} of its executable graph, and it is the {right}"),
        )),
        (Some(said), None) => Some((
            FaultCode::W06,
            format!("its row says launch {said} of its executable graph, and some may be missed"),
        )),
        _ => None,
    }
}

/// What differs about the node.
fn of_node(said: &RowGraph, replayed: &Replayed) -> Option<(FaultCode, String)> {
    match (&said.template, replayed.template) {
        (Template::Known(node), Ok(right)) if !is_same(node, &right) => Some((
            FaultCode::W06,
            format!(
                "its row says that {} built its node, and it was {}",
                built_by(node.graph, node.node, node.order),
                built_by(right.graph, right.node, right.order)
            ),
        )),
        (Template::Known(node), Err(_)) => Some((
            FaultCode::W06,
            format!(
                "its row says that {} built its node, which the records do not tell",
                built_by(node.graph, node.node, node.order)
            ),
        )),
        (Template::Unknown { .. }, Ok(right)) => Some((
            FaultCode::L06,
            format!(
                "its row does not know who built its node, and the records do: {}",
                built_by(right.graph, right.node, right.order)
            ),
        )),
        (Template::Known(_), Ok(_)) if said.iteration != replayed.iteration => Some((
            FaultCode::W06,
            format!(
                "its row says that its node ran for time {}, and it was time {}",
                said.iteration, replayed.iteration
            ),
        )),
        _ => None,
    }
}

fn is_same(said: &TemplateNode, right: &BuiltNode) -> bool {
    let call = said.captured_by.map(|call| call.wire());
    (
        said.graph,
        said.node,
        said.order,
        said.capture,
        call,
        said.at,
    ) == (
        right.graph,
        right.node,
        right.order,
        right.capture,
        right.in_call.filter(|call| call.0 != 0),
        right.at,
    )
}

fn built_by(graph: u32, node: u64, order: u32) -> String {
    format!("node {node:#x}, the {} of graph {graph},", ordinal(order))
}

fn differs(
    process: &Process<'_>,
    code: FaultCode,
    number: usize,
    row: &Row,
    replay: Option<&Replay<'_>>,
    detail: String,
    findings: &mut Findings,
) -> Outcome {
    findings.raise(code, || {
        let operation = process.operations.operations[number].seen.what;
        let mut evidence: Vec<EvidenceLine> = vec![super::said(row)];
        evidence.push(process.node_evidence(operation));
        evidence.extend(replay.map(|replay| process.replay_evidence(replay)));
        Finding::new(code, row.process, about_operation(operation), detail)
            .at(operation.start)
            .evidence(evidence)
    });
    Outcome::Differs
}
