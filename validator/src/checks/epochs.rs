//! Epochs and handoffs: `L04`, `L05`, and what contradicts itself.

use lineage_core::fault::FaultCode;
use lineage_core::id::{Attribution, EpochId, PackedEpoch};
use lineage_core::observation::RetiredAs;

use crate::derive::{Handoffs, Process};
use crate::describe::duration;
use crate::finding::{About, EvidenceLine, Finding, Findings};
use crate::options::Options;
use crate::validation::Counts;

pub(super) fn check(
    process: &Process<'_>,
    options: &Options,
    counts: &mut Counts,
    findings: &mut Findings,
) {
    counts.epochs += process.gathered.declared.len() as u64;
    never_launched(process, options, counts, findings);
    for handoff in process.epochs.handoffs() {
        not_received(process, handoff, options, counts, findings);
        contradicting(process, handoff, counts, findings);
    }
}

/// Every epoch that any source of any call names, and those whose work went on in one of them.
fn launched(process: &Process<'_>) -> Vec<EpochId> {
    let mut launched: Vec<EpochId> = Vec::new();
    for (_, _, binding) in process.calls() {
        let sources = &binding.sources;
        let scope = sources.containment.map(|scope| &scope.attribution);
        let named = sources
            .external
            .iter()
            .chain(&sources.callback)
            .chain(scope);
        launched.extend(named.filter_map(|of| of.epoch()).map(|epoch| epoch.id));
    }
    // Their calls are lost, but they were made.
    let unplaced = process
        .externals
        .unplaced
        .iter()
        .map(|external| external.external_id);
    let named = unplaced.filter_map(|id| match PackedEpoch::from_bits(id).unpack() {
        Attribution::Epoch(epoch) => Some(epoch.id),
        _ => None,
    });
    launched.extend(named);
    process.epochs.with_forerunners(launched)
}

/// Epochs whose work was given to someone: a handoff of theirs was opened or forgotten, another
/// epoch was linked from them, they were stepped, or a launch boundary was entered for them. One
/// that ended where it was declared, or whose carriers were all dropped with their work, asked for
/// no GPU work.
fn handed_on(process: &Process<'_>) -> Vec<EpochId> {
    let gathered = &process.gathered;
    let received = gathered.received.iter();
    let mut handed_on: Vec<EpochId> = received.map(|seen| seen.what.handoff.epoch.id).collect();
    let forgotten = process.epochs.handoffs().iter();
    let forgotten = forgotten.filter(|handoff| handoff.is_outstanding());
    handed_on.extend(forgotten.filter_map(|handoff| Some(handoff.sent?.handoff.epoch.id)));
    let linked = gathered.linked.iter().map(|seen| seen.what);
    let linked = linked.filter(|linked| linked.from.id != linked.epoch.id);
    handed_on.extend(linked.map(|linked| linked.from.id));
    handed_on.extend(gathered.stepped.iter().map(|seen| seen.what.epoch.id));
    let scopes = gathered.scopes.iter().map(|seen| seen.what);
    let boundaries = scopes.filter(|scope| scope.boundary);
    handed_on.extend(boundaries.filter_map(|scope| Some(scope.attribution.epoch()?.id)));
    handed_on.sort_unstable();
    handed_on.dedup();
    handed_on
}

fn never_launched(
    process: &Process<'_>,
    options: &Options,
    counts: &mut Counts,
    findings: &mut Findings,
) {
    let (launched, handed_on) = (launched(process), handed_on(process));
    let under_way = process.epochs.under_way();
    let mut before = None;
    for seen in process.epochs.retirements() {
        let retired = seen.what;
        let id = retired.epoch.id;
        if before.replace(id) == Some(id) {
            counts.duplicate_records += 1;
            continue;
        }
        let cancelled = retired.how == RetiredAs::Cancelled || process.epochs.was_cancelled(id);
        if cancelled || launched.binary_search(&id).is_ok() {
            continue;
        }
        let declared = process.epochs.declaration(id);
        let seen_throughout = declared
            .is_some_and(|declared| process.sessions.launches_seen(declared.at, retired.at));
        let since = declared.map(|declared| declared.at);
        let undecidable =
            process.host_records_missing_since(since, options) || process.calls_are_unseen();
        if undecidable || !seen_throughout || under_way.binary_search(&id).is_ok() {
            counts.not_decidable += 1;
            continue;
        }
        if handed_on.binary_search(&id).is_err() || process.sessions.imported {
            counts.ended_without_gpu_work += 1;
            continue;
        }
        findings.raise(FaultCode::L04, || {
            let detail =
                "its work was handed on, and it ended without a launch and was not cancelled"
                    .to_owned();
            let mut evidence = process.epoch_evidence(retired.epoch);
            evidence.extend(process.successor_evidence(id));
            evidence.push(EvidenceLine {
                label: "retired",
                text: process.time(retired.at),
            });
            Finding::new(
                FaultCode::L04,
                process.ordinal,
                About::Epoch(retired.epoch),
                detail,
            )
            .at(Some(retired.at))
            .evidence(evidence)
        });
    }
}

fn not_received(
    process: &Process<'_>,
    handoff: &Handoffs<'_>,
    options: &Options,
    counts: &mut Counts,
    findings: &mut Findings,
) {
    counts.handoffs += u64::from(handoff.sent.is_some());
    let Some(sent) = handoff.sent else {
        counts.handoffs_without_sender += 1;
        return;
    };
    if !handoff.is_outstanding() {
        return;
    }
    // A carrier keeps its epoch alive: while the epoch lives, it may be under way.
    let Some(retired) = process.epochs.retirement(sent.handoff.epoch.id) else {
        counts.handoffs_under_way += 1;
        return;
    };
    let undecidable = process.host_records_missing_since(Some(sent.at), options);
    if undecidable || !process.host_has_come(retired.place) {
        counts.not_decidable += 1;
        return;
    }
    findings.raise(FaultCode::L05, || {
        let kind = format!("{:?}", sent.handoff.carrier).to_lowercase();
        let detail = format!(
            "the {kind} was sent with epoch {}, and its epoch was never taken out",
            sent.handoff.epoch
        );
        let mut evidence = process.handoff_evidence(handoff);
        evidence.extend(process.epoch_evidence(sent.handoff.epoch));
        Finding::new(
            FaultCode::L05,
            process.ordinal,
            About::Handoff(handoff.id),
            detail,
        )
        .at(Some(sent.at))
        .evidence(evidence)
    });
}

fn contradicting(
    process: &Process<'_>,
    handoff: &Handoffs<'_>,
    counts: &mut Counts,
    findings: &mut Findings,
) {
    counts.duplicate_records += (handoff.received.len() as u64).saturating_sub(1);
    let (Some(sent), Some(received)) = (handoff.sent, handoff.received.first()) else {
        return;
    };
    let raise = |findings: &mut Findings, code, detail: String| {
        findings.raise(code, || {
            Finding::new(code, process.ordinal, About::Handoff(handoff.id), detail)
                .at(Some(sent.at))
                .evidence(process.handoff_evidence(handoff))
        });
    };
    if sent.handoff.epoch != received.handoff.epoch {
        let detail = format!(
            "it was sent with epoch {}, and received with {}",
            sent.handoff.epoch, received.handoff.epoch
        );
        raise(findings, FaultCode::W03, detail);
    }
    if received.at < sent.at {
        let early = duration(sent.at.since(received.at));
        raise(
            findings,
            FaultCode::T04,
            format!("it was received {early} before it was sent"),
        );
    }
}
