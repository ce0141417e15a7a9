//! What ran in graphs: `L06`, `W06`, `W08`.

use std::collections::{BTreeMap, BTreeSet};

use lineage_core::evidence::Why;
use lineage_core::fault::FaultCode;
use lineage_core::id::HostNanos;
use lineage_core::observation::{ActivityKind, ApiDomain, ApiId, Operation};

use super::joins::Judged;
use crate::derive::{Derived, JoinedOperation, Orphan, Process, Replay, Replayed};
use crate::describe::{about_operation, duration};
use crate::finding::{Finding, Findings};
use crate::options::Options;
use crate::validation::{Counts, template_name};

/// Launches of one executable graph that are held against one another.
const NEIGHBOURS: usize = 4;

pub(super) fn check(
    process: &Process<'_>,
    judged: &Judged,
    options: &Options,
    counts: &mut Counts,
    findings: &mut Findings,
) {
    let overlapping = overlapping(process, options);
    let mut iterating: BTreeMap<usize, bool> = BTreeMap::new();
    counts.graph_launches += process.graphs.replays.len() as u64;
    let operations = process.operations.operations.iter();
    for (number, (operation, replayed)) in operations.zip(&process.graphs.of_operation).enumerate()
    {
        let Some(replayed) = replayed else { continue };
        let replay = replayed.replay.map(|at| &process.graphs.replays[at]);
        match replayed.template {
            Ok(_) => counts.templates_known += 1,
            Err(why) => {
                let of_reason = counts.templates_unknown.entry(template_name(why));
                *of_reason.or_default() += 1;
            }
        }
        if replay.is_some_and(|replay| replay.pending) || options.evicted_observations > 0 {
            continue;
        }
        let call = operation.join.call();
        let is_lost = match call {
            Some(call) => judged.lost[call],
            None => process.orphan(operation) == Some(Orphan::Lost),
        };
        if let Err(why) = replayed.template
            && is_missing(why)
        {
            counts.lost += u64::from(!is_lost);
            findings.raise(FaultCode::L06, || {
                let detail = format!("who built its node is not known: {}", reason(why));
                about(process, operation, replay, FaultCode::L06, detail)
            });
        }
        let raised = findings.raised();
        let may_iterate = replayed.replay.is_some_and(|at| {
            *iterating
                .entry(at)
                .or_insert_with(|| process.graphs.may_iterate(&process.graphs.replays[at]))
        });
        let overlaps = overlapping.contains(&number);
        if let Some(what) = mismatch(process, operation, replayed, replay, may_iterate, overlaps) {
            findings.raise(FaultCode::W06, || {
                about(process, operation, replay, FaultCode::W06, what)
            });
        }
        if let Some(early) =
            replay.and_then(|replay| too_early(operation.seen.what, replay, options))
        {
            findings.raise(FaultCode::W08, || {
                let detail = format!(
                    "it ran {} before the executable graph that it is bound through was there",
                    duration(early)
                );
                about(process, operation, replay, FaultCode::W08, detail)
            });
        }
        let already = call.is_some_and(|call| judged.wrong[call]);
        if findings.raised() > raised && !already {
            counts.wrong += 1;
        }
    }
}

/// Whether a template that is not known for this reason should be.
fn is_missing(why: Why) -> bool {
    !matches!(why, Why::NotVisible | Why::NotCollected)
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::BeforeSession => "its graph is older than the session",
        Why::ExecUpdated => "its executable graph was updated, and nothing tells from which node",
        _ => "what was told of its graph is not complete",
    }
}

/// Why an operation cannot be of the launch that it is joined to.
fn mismatch(
    process: &Process<'_>,
    operation: &JoinedOperation<'_>,
    replayed: &Replayed,
    replay: Option<&Replay<'_>>,
    may_iterate: bool,
    overlaps: bool,
) -> Option<String> {
    let what = operation.seen.what;
    let call = operation.join.call();
    let Some(replay) = replay else {
        let called = &process.calls.calls[call?];
        let is_other = called
            .callbacks
            .first()
            .is_some_and(|seen| !launches_graphs(&seen.what.api));
        return is_other.then(|| {
            "it ran in a graph, and its call launches none: it may be captured".to_owned()
        });
    };
    if process.graphs.names_another(replay, what) {
        return Some("its node is none of the executable graph that its call launched".to_owned());
    }
    let kernel = what.kind == ActivityKind::Kernel;
    let is_own = replay.exec.is_ok() && replayed.template != Err(Why::Dropped);
    if kernel && is_own && replayed.iteration > 1 && !may_iterate {
        return Some("its node ran twice in one launch of a graph without loops".to_owned());
    }
    if overlaps {
        return Some(
            "it ran while another launch of the same executable graph did, and these wait for one \
             another"
                .to_owned(),
        );
    }
    let captured = replayed.template.ok()?.capture.epoch()?;
    match process.bindings[call?].derived {
        Derived::Disputed(one, other) if [one.epoch(), other.epoch()].contains(&Some(captured)) => {
            Some(format!(
                "one of its sources names epoch {captured}, which captured its node, and another \
                 names who replayed it"
            ))
        }
        _ => None,
    }
}

/// By how much an operation, or its launch, is older than the executable graph.
fn too_early(operation: &Operation, replay: &Replay<'_>, options: &Options) -> Option<i128> {
    let created = replay.exec.ok()?.created.at;
    let launched = created.since(replay.told.at);
    let began = operation.start.map_or(0, |start| created.since(start));
    let early = launched.max(began);
    (early > i128::from(options.clock_error_ns)).then_some(early)
}

fn launches_graphs(api: &ApiId) -> bool {
    const DRIVER: [u32; 2] = [514, 515];
    const RUNTIME: [u32; 2] = [311, 312];
    match &api.name {
        Some(name) => name.contains("GraphLaunch"),
        None if api.domain == ApiDomain::Driver => DRIVER.contains(&api.cbid),
        None => RUNTIME.contains(&api.cbid),
    }
}

/// Operations that ran while another launch of the same executable graph did.
///
/// The launches of each are laid out in the order of their calls; each must begin after all before it
/// have ended. Only the nearest of those before it are looked at.
fn overlapping(process: &Process<'_>, options: &Options) -> BTreeSet<usize> {
    let mut of_replay: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, replayed) in process.graphs.of_operation.iter().enumerate() {
        if let Some(replay) = replayed.as_ref().and_then(|replayed| replayed.replay) {
            of_replay.entry(replay).or_default().push(number);
        }
    }
    let mut overlapping = BTreeSet::new();
    let error = options.clock_error_ns;
    for mut launches in process.graphs.by_exec().into_values() {
        launches.sort_by_key(|&at| process.graphs.replays[at].told.at);
        // The last ends of the launches before, by device.
        let mut before: Vec<BTreeMap<u32, HostNanos>> = Vec::new();
        for launch in launches {
            let mut ends: BTreeMap<u32, HostNanos> = BTreeMap::new();
            for &number in of_replay.get(&launch).map_or(&[][..], Vec::as_slice) {
                let what = process.operations.operations[number].seen.what;
                let (Some(start), Some(end)) = (what.start, what.end) else {
                    continue;
                };
                if end < start {
                    continue;
                }
                let by_then = start.0.saturating_add(error);
                let mut earlier = before.iter().rev().take(NEIGHBOURS);
                if earlier.any(|ends| ends.get(&what.device).is_some_and(|end| end.0 > by_then)) {
                    overlapping.insert(number);
                    continue;
                }
                let last = ends.entry(what.device).or_insert(end);
                *last = end.max(*last);
            }
            before.push(ends);
        }
    }
    overlapping
}

fn about(
    process: &Process<'_>,
    operation: &JoinedOperation<'_>,
    replay: Option<&Replay<'_>>,
    code: FaultCode,
    detail: String,
) -> Finding {
    let what = operation.seen.what;
    let mut evidence = vec![process.node_evidence(what)];
    evidence.extend(replay.map(|replay| process.replay_evidence(replay)));
    if let Some(call) = operation.join.call() {
        evidence.extend(process.call_evidence(call));
    }
    Finding::new(code, process.ordinal, about_operation(what), detail)
        .at(what.start)
        .evidence(evidence)
}
