//! A row of what was joined: its stages, and what is impossible about its times.
//!
//! Times are given as they were recorded: an impossible one is a fault, and is never clipped,
//! swapped or shifted into sense.

use super::emit::FaultSet;
use super::join::{CallEvidence, Joined};
use crate::evidence::{Evidence, TimeSource, Why};
use crate::fault::FaultCode;
use crate::id::{HostNanos, ProcessOrdinal, UnwrappedCorrelationId};
use crate::observation::{Operation, Recorder};
use crate::row::{Binding, JoinSources, Row, RowCall, RowGraph, Stages, Unattributed};

/// What a row is made of.
pub(super) struct Parts<'a> {
    pub(super) process: ProcessOrdinal,
    pub(super) session: u32,
    pub(super) correlation: UnwrappedCorrelationId,
    pub(super) evidence: CallEvidence<'a>,
    pub(super) joined: &'a Joined,
    /// The replay that it is of.
    pub(super) graph: Option<RowGraph>,
    /// Faults found outside of the join.
    pub(super) faults: FaultSet,
    pub(super) supersedes: bool,
    /// Why the stages of an operation that is not there are unknown.
    pub(super) no_operation: Why,
    /// Why the stages of a call that is not there are unknown.
    pub(super) no_call: Why,
    pub(super) epsilon_ns: u64,
    /// Whose recording it is, where it is another tool's.
    pub(super) imported: Option<Recorder>,
}

/// A join of nothing with nothing, for an operation without a call.
pub(super) fn unjoined(binding: Binding) -> Joined {
    let none = Evidence::Unknown {
        why: Why::NotApplicable,
    };
    Joined {
        binding,
        sources: JoinSources::default(),
        faults: FaultSet::default(),
        after_retirement: false,
        external_missing: false,
        declared: none,
        ready: none,
        scope_enter: none,
    }
}

/// A join for an operation whose call lies outside of the recording, or has none by nature.
pub(super) fn unattributed(why: Unattributed) -> Joined {
    unjoined(Binding::Unattributed(why))
}

/// The row, and all of its faults.
pub(super) fn build(parts: &Parts<'_>, operation: Option<Operation>) -> (Row, FaultSet) {
    let call = row_call(parts);
    let stages = stages(parts, operation.as_ref());
    let mut faults = parts.faults.with(parts.joined.faults);
    if let Some(operation) = &operation {
        if operation.start.is_none() || operation.end.is_none() {
            faults.add(FaultCode::L08);
        }
        // Where the id is in doubt, so is the call that the time is compared with.
        time_faults(&stages, operation, parts.epsilon_ns, &mut faults);
    }
    if let (Some(enter), Some(exit)) = (stages.api_enter.at(), stages.api_exit.at())
        && exit < enter
    {
        faults.add(FaultCode::T02);
    }
    let row = Row {
        process: parts.process,
        call,
        operation,
        graph: parts.graph,
        binding: parts.joined.binding,
        sources: parts.joined.sources,
        stages,
        faults: faults.to_vec(),
        after_retirement: parts.joined.after_retirement,
        supersedes: parts.supersedes,
    };
    (row, faults)
}

fn row_call(parts: &Parts<'_>) -> Option<RowCall> {
    let (session, correlation) = (parts.session, parts.correlation);
    match (parts.evidence.call, parts.evidence.api) {
        (Some(call), api) => {
            let mut id = call.api.clone();
            if id.name.is_none()
                && let Some(api) =
                    api.filter(|api| (api.api.domain, api.api.cbid) == (id.domain, id.cbid))
            {
                id.name = api.api.name.clone();
            }
            Some(RowCall {
                session,
                correlation,
                api: id,
                tid: call.thread.tid,
                task: call.task,
                result: call.result,
                in_boundary: Some(call.in_boundary),
            })
        }
        (None, Some(api)) => Some(RowCall {
            session,
            correlation,
            api: api.api.clone(),
            tid: api.tid,
            task: None,
            result: api.result,
            in_boundary: None,
        }),
        (None, None) => None,
    }
}

fn stages(parts: &Parts<'_>, operation: Option<&Operation>) -> Stages {
    let CallEvidence { call, api, .. } = parts.evidence;
    let absent = match (call, api) {
        (None, None) => parts.no_call,
        (_, Some(_)) => Why::ZeroTimestamp,
        (Some(_), None) => Why::NotCollected,
    };
    let enter = call
        .map(|call| call.entered)
        .or(api.and_then(|api| api.start));
    let exit = call
        .and_then(|call| call.exited)
        .or(api.and_then(|api| api.end));
    let of_operation = |at: fn(&Operation) -> Option<HostNanos>, source, absent| match operation {
        Some(operation) => Evidence::from_cupti(at(operation), source, absent),
        None => Evidence::Unknown {
            why: parts.no_operation,
        },
    };
    let [api_source, kernel_source, latency_source] = sources(parts.imported);
    Stages {
        declared: parts.joined.declared,
        ready: parts.joined.ready,
        scope_enter: parts.joined.scope_enter,
        api_enter: Evidence::from_cupti(enter, api_source, absent),
        api_exit: Evidence::from_cupti(exit, api_source, absent),
        queued: of_operation(|op| op.queued, latency_source, Why::NotCollected),
        submitted: of_operation(|op| op.submitted, latency_source, Why::NotCollected),
        start: of_operation(|op| op.start, kernel_source, Why::ZeroTimestamp),
        end: of_operation(|op| op.end, kernel_source, Why::ZeroTimestamp),
    }
}

/// Where the times of calls, of operations and of their submission come from.
fn sources(imported: Option<Recorder>) -> [TimeSource; 3] {
    match imported {
        Some(Recorder::NsightSystems) => [TimeSource::ImportNsys; 3],
        Some(Recorder::Kineto) => [TimeSource::ImportKineto; 3],
        None => [
            TimeSource::CuptiApi,
            TimeSource::CuptiKernel,
            TimeSource::CuptiLatency,
        ],
    }
}

fn time_faults(stages: &Stages, operation: &Operation, epsilon_ns: u64, faults: &mut FaultSet) {
    let before =
        |earlier: HostNanos, later: HostNanos| later.0.saturating_add(epsilon_ns) < earlier.0;
    if let (Some(start), Some(end)) = (operation.start, operation.end)
        && end < start
    {
        faults.add(FaultCode::T02);
    }
    if let (Some(enter), Some(start)) = (stages.api_enter.at(), operation.start)
        && before(enter, start)
        && !faults.has(FaultCode::W04)
    {
        faults.add(FaultCode::T01);
    }
    // Neighbours among what was observed; the pair of call and start is T01, start and end T02.
    let order = [
        stages.api_enter.at(),
        operation.queued,
        operation.submitted,
        operation.start,
    ];
    let mut last = None;
    for (stage, at) in order.into_iter().enumerate() {
        let Some(at) = at else { continue };
        if let Some((before_stage, earlier)) = last
            && (before_stage, stage) != (0, 3)
            && before(earlier, at)
        {
            faults.add(FaultCode::T04);
        }
        last = Some((stage, at));
    }
}
