//! To whom a call belongs: what each source says, and what follows.
//!
//! Two sources are observed: CUPTI's external record, and our own read in the API callback. Where
//! they name different epochs the row keeps both (W03). Containment in a scope is inferred; it
//! binds only where no observed source exists. All three read the same thread-local, so recorded
//! edges are asked besides whether the epoch came to this thread or task at all.

use super::calls::is_internal;
use super::emit::FaultSet;
use super::epochs::{EpochState, Epochs, Reach};
use super::rows::unattributed;
use super::threads::{Containment, SeenScope, ThreadState, Threads};
use crate::evidence::{Evidence, Rule, TimeSource, Why};
use crate::fault::FaultCode;
use crate::id::{Attribution, HostNanos, LaunchEpoch, PackedEpoch};
use crate::observation::{ApiRecord, Call};
use crate::row::{Binding, JoinSources, Unattributed};

/// What is known of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallEvidence<'a> {
    pub(super) call: Option<&'a Call>,
    pub(super) api: Option<&'a ApiRecord>,
    pub(super) external: Option<PackedEpoch>,
    pub(super) other_external: Option<PackedEpoch>,
    pub(super) containment: Containment,
    /// Whether calls inside a boundary have external records in this session.
    pub(super) external_expected: bool,
    /// Whether our own callbacks record calls in this session.
    pub(super) call_expected: bool,
}

/// What follows.
#[derive(Debug, Clone)]
pub(super) struct Joined {
    pub(super) binding: Binding,
    pub(super) sources: JoinSources,
    pub(super) faults: FaultSet,
    pub(super) after_retirement: bool,
    pub(super) external_missing: bool,
    pub(super) declared: Evidence,
    pub(super) ready: Evidence,
    pub(super) scope_enter: Evidence,
}

/// Evidence that may still come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Missing {
    /// Our own record of the call.
    pub(super) call: bool,
    /// CUPTI's record of the call.
    pub(super) api: bool,
    /// The external record of a call inside a boundary.
    pub(super) external: bool,
    /// What the call's own ring or another thread's may still hold: the scope, the declaration, the
    /// edge that brought the epoch here.
    pub(super) host: bool,
    /// Changes of graphs from before a launch of one.
    pub(super) changes: bool,
    /// Launches of the graph from before this one, which other rings may hold.
    pub(super) order: bool,
}

/// What the process is known to have.
pub(super) struct Known<'a> {
    pub(super) epochs: &'a Epochs,
    pub(super) threads: &'a Threads,
    /// Whether lineage itself recorded anything.
    pub(super) host_evidence: bool,
    /// Whether epochs are only candidates, made of another tool's ranges: then none is ever due.
    pub(super) candidates: bool,
    /// Whether records of any thread are known to be lost.
    pub(super) gaps: bool,
}

/// The reading of the sources, before anything is checked.
struct Reading {
    binding: Binding,
    faults: FaultSet,
}

pub(super) fn join(evidence: &CallEvidence<'_>, known: &Known<'_>) -> (Joined, Missing) {
    if evidence.call.is_none() && evidence.api.is_some_and(is_internal) {
        return (internal(evidence), Missing::default());
    }
    let place = Place::of(evidence, known);
    let scope = place.containment.scope();
    let external = evidence.external.map(PackedEpoch::unpack);
    let other = evidence.other_external.map(PackedEpoch::unpack);
    let callback = evidence.call.map(|call| call.attribution);
    let contained = scope.map(|scope| scope.attribution);

    let mut missing = Missing {
        call: evidence.call.is_none() && evidence.call_expected,
        api: evidence.api.is_none(),
        external: false,
        host: false,
        ..Missing::default()
    };
    let in_boundary = evidence.call.is_some_and(|call| call.in_boundary);
    let external_missing = in_boundary && external.is_none() && evidence.external_expected;
    missing.external = external_missing;
    if let Some(call) = evidence.call {
        let scope_due = call.in_boundary || call.attribution != Attribution::None;
        missing.host = scope_due && place.containment == Containment::NotYet;
    }

    let Reading {
        binding,
        mut faults,
    } = read(external, other, callback, contained, &place, known);
    let epoch = match binding {
        Binding::Bound(epoch) => Some(epoch),
        _ => None,
    };

    // An epoch that nobody declared: its record may be in another ring, or was lost with others.
    let observed = [external, other, callback];
    let observed = observed.into_iter().flatten().filter_map(|of| of.epoch());
    let undeclared = |epoch: LaunchEpoch| !known.epochs.was_declared(epoch);
    // Mostly all of them name the same one.
    let mut others = observed.filter(|&named| Some(named) != epoch);
    if known.host_evidence && (epoch.is_some_and(undeclared) || others.any(undeclared)) {
        missing.host = true;
        if !known.gaps {
            faults.add(FaultCode::W05);
        }
    }
    if let (Some(scope), Some(call)) = (scope, evidence.call)
        && scope.task.is_some()
        && scope.task != call.task
    {
        faults.add(FaultCode::W02);
    }

    let state = epoch.and_then(|epoch| known.epochs.get(epoch));
    let reachable = epoch.and_then(|epoch| reach(epoch, state, evidence, &place, scope, known));
    let declared = state.and_then(|state| state.declared());
    if epoch.is_some() && (declared.is_none() || reachable == Some(false)) {
        missing.host = true;
    }
    let mut after_retirement = false;
    if let (Some(at), Some(state)) = (place.at, state) {
        // Both times are of one clock.
        if declared.is_some_and(|declared| declared > at) {
            faults.add(FaultCode::W01);
        }
        after_retirement = state.retired().is_some_and(|retired| retired < at);
    }
    let ready = epoch.and_then(|epoch| state.and_then(|state| state.ready(epoch.version.get())));
    let joined = Joined {
        binding,
        sources: JoinSources {
            external,
            callback,
            containment: contained,
            reachable,
        },
        faults,
        after_retirement,
        external_missing,
        declared: stage(epoch, declared, TimeSource::RuntimeHook, Why::Dropped),
        ready: stage(epoch, ready, TimeSource::Application, Why::NotCollected),
        scope_enter: scope_enter(&place, scope, missing.host),
    };
    (joined, missing)
}

/// What the driver launched for itself belongs to nobody, whatever was current around it.
fn internal(evidence: &CallEvidence<'_>) -> Joined {
    let mut joined = unattributed(Unattributed::InternalLaunch);
    joined.sources.external = evidence.external.map(PackedEpoch::unpack);
    joined
}

/// Where and when the call was made.
struct Place<'a> {
    thread: Option<&'a ThreadState>,
    at: Option<HostNanos>,
    containment: Containment,
    in_boundary: bool,
}

impl<'a> Place<'a> {
    fn of(evidence: &CallEvidence<'_>, known: &Known<'a>) -> Self {
        let (thread, at, until) = match (evidence.call, evidence.api) {
            (Some(call), _) => {
                let thread = known.threads.get(call.thread);
                (
                    thread,
                    Some(call.entered),
                    call.exited.or(Some(call.entered)),
                )
            }
            (None, Some(api)) => {
                let at = api.start.or(api.end);
                let thread = at.and_then(|at| known.threads.by_tid(api.tid, at));
                (thread, at, api.end.or(api.start))
            }
            (None, None) => (None, None, None),
        };
        let mut containment = evidence.containment;
        let waits = evidence
            .call
            .is_some_and(|call| call.in_boundary || call.attribution != Attribution::None);
        if let (Containment::NotYet, false) = (containment, waits)
            && let (Some(thread), Some(at), Some(until)) = (thread, at, until)
        {
            containment = thread.containing(at, until);
        }
        Self {
            thread,
            at,
            containment,
            in_boundary: evidence.call.is_some_and(|call| call.in_boundary),
        }
    }
}

fn read(
    external: Option<Attribution>,
    other: Option<Attribution>,
    callback: Option<Attribution>,
    contained: Option<Attribution>,
    place: &Place<'_>,
    known: &Known<'_>,
) -> Reading {
    let mut faults = FaultSet::default();
    let foreign = |named: Option<Attribution>| {
        matches!(named, Some(Attribution::Foreign(_) | Attribution::None))
    };
    if foreign(external) || foreign(other) {
        faults.add(FaultCode::W05);
    }
    // What is not ours says nothing of whose the work is.
    let ours = |named: Option<Attribution>| named.filter(|_| !foreign(named));
    let mut observed = [ours(external), ours(other), callback]
        .into_iter()
        .flatten();
    let Some(first) = observed.next() else {
        // No observed source: inferred evidence binds.
        return match contained {
            Some(Attribution::Epoch(epoch)) => Reading {
                binding: Binding::Bound(epoch),
                faults,
            },
            contained => no_epoch(contained.unwrap_or_default(), None, place, known, faults),
        };
    };
    let mut last = first;
    for next in observed {
        if next.epoch() != first.epoch() {
            faults.add(FaultCode::W03);
            let binding = match (first.epoch(), next.epoch()) {
                (Some(first), Some(next)) => Binding::Disputed(first, next),
                // One says which epoch, the other that there was none.
                _ => Binding::Lost,
            };
            return Reading { binding, faults };
        }
        last = next;
    }
    match last {
        Attribution::Epoch(epoch) => Reading {
            binding: Binding::Bound(epoch),
            faults,
        },
        last => no_epoch(last, Some(first), place, known, faults),
    }
}

/// Whether a call without an epoch is a lost join, or rightly belongs to none.
fn no_epoch(
    said: Attribution,
    also_said: Option<Attribution>,
    place: &Place<'_>,
    known: &Known<'_>,
    mut faults: FaultSet,
) -> Reading {
    let said_any = |wanted: fn(Attribution) -> bool| wanted(said) || also_said.is_some_and(wanted);
    let unattributed = |why| Binding::Unattributed(why);
    let binding = if said_any(|said| matches!(said, Attribution::Detached(_))) {
        unattributed(Unattributed::Detached)
    } else if place.in_boundary || said_any(|said| said == Attribution::BoundaryWithoutEpoch) {
        Binding::Lost
    } else if !known.host_evidence || known.candidates {
        unattributed(Unattributed::NoEpochEvidence)
    } else {
        let by = place.at.unwrap_or(HostNanos(u64::MAX));
        let declared = known
            .epochs
            .first_declared()
            .is_some_and(|first| first <= by);
        match place.thread {
            Some(thread) if thread.saw_an_epoch_by(by) => Binding::Lost,
            Some(thread) if declared && thread.has_events_by(by) => Binding::Lost,
            _ if declared => unattributed(Unattributed::ForeignThread),
            _ => unattributed(Unattributed::BeforeFirstDeclaration),
        }
    };
    if binding == Binding::Lost {
        faults.add(FaultCode::L01);
    }
    Reading { binding, faults }
}

fn reach(
    epoch: LaunchEpoch,
    state: Option<&EpochState>,
    evidence: &CallEvidence<'_>,
    place: &Place<'_>,
    scope: Option<SeenScope>,
    known: &Known<'_>,
) -> Option<bool> {
    let (thread, at) = (place.thread?, place.at?);
    let task = evidence.call.and_then(|call| call.task);
    let polled_here = scope.is_some_and(|scope| {
        task.is_some() && scope.task == task && scope.attribution.epoch() == Some(epoch)
    });
    if polled_here {
        return Some(true);
    }
    let declared = state.and_then(|state| state.declared());
    // Where it came to was dropped when all else of it was decided.
    let forgotten = declared.is_none() && known.epochs.was_declared(epoch);
    // CUPTI's record does not say in which task.
    let task_unknown = evidence.call.is_none() && state.is_some_and(|state| state.is_in_tasks());
    let reach = state.map_or(Reach::No, |state| state.reach(thread.key, task, at));
    match reach {
        Reach::Yes => Some(true),
        Reach::No if forgotten || task_unknown => None,
        Reach::No if !thread.lost_records_before(at) => Some(false),
        Reach::No | Reach::Unknown => None,
    }
}

fn stage(
    epoch: Option<LaunchEpoch>,
    at: Option<HostNanos>,
    source: TimeSource,
    absent: Why,
) -> Evidence {
    match (epoch, at) {
        (Some(_), Some(at)) => Evidence::Observed { at, source },
        (Some(_), None) => Evidence::Unknown { why: absent },
        (None, _) => Evidence::Unknown {
            why: Why::NotApplicable,
        },
    }
}

fn scope_enter(place: &Place<'_>, scope: Option<SeenScope>, still_due: bool) -> Evidence {
    match scope {
        Some(scope) if scope.open_at_first_launch => Evidence::Bounded {
            not_before: None,
            not_after: Some(scope.entered),
            rule: Rule::OpenAtFirstLaunch,
        },
        Some(scope) => Evidence::Observed {
            at: scope.entered,
            source: TimeSource::RuntimeHook,
        },
        None => Evidence::Unknown {
            why: match place.containment {
                Containment::AcrossGap => Why::Dropped,
                _ if still_due => Why::Pending,
                _ => Why::NotApplicable,
            },
        },
    }
}
