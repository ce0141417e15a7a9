//! To whom each call belongs, by which sources.

use std::collections::BTreeMap;

use lineage_core::id::{Attribution, HostNanos, LaunchEpoch, PackedEpoch, ThreadKey};
use lineage_core::observation::{OperationsDue, Scope};
use lineage_core::row::Unattributed;

use super::calls::{Calls, LogicalCall};
use super::epochs::Epochs;
use super::gather::Gathered;
use super::sessions::Sessions;
use super::threads::Threads;

/// What names an epoch for a call. Each list is without repetitions and nearly always of one.
#[derive(Debug, Default)]
pub(crate) struct Sources<'a> {
    /// External correlation records of our kind.
    pub(crate) external: Vec<Attribution>,
    /// Our own reads in the callback.
    pub(crate) callback: Vec<Attribution>,
    /// The scope that was current on the thread.
    pub(crate) containment: Option<&'a Scope>,
    /// Whether recorded edges bring the epoch to the thread or task.
    pub(crate) reachable: Option<bool>,
}

/// To whom a call belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derived {
    /// To this epoch.
    Bound(LaunchEpoch),
    /// Two observed sources differ, and at least one names an epoch.
    Disputed(Attribution, Attribution),
    /// To none, and that is no fault.
    Unattributed(Unattributed),
    /// To an epoch that is not known.
    Lost,
    /// The evidence has not all come yet.
    Unsettled,
}

/// A call's binding, and what it rests on.
#[derive(Debug)]
pub(crate) struct CallBinding<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) derived: Derived,
    /// The thread, as lineage numbers it; `None` if lineage never saw it.
    pub(crate) thread: Option<ThreadKey>,
    /// Whether all that its thread did until then has come.
    pub(crate) settled: bool,
}

impl Sources<'_> {
    fn observed(&self) -> impl Iterator<Item = Attribution> + Clone + '_ {
        let all = self.external.iter().chain(&self.callback).copied();
        all.filter(|attribution| !matches!(attribution, Attribution::Foreign(_)))
    }

    /// Whether the external record spoke, and whether our own callback did.
    pub(crate) fn spoke(&self) -> (bool, bool) {
        let ours = |of: &Attribution| !matches!(of, Attribution::Foreign(_));
        (
            self.external.iter().any(ours),
            self.callback.iter().any(ours),
        )
    }
}

/// Binds every call of a process.
pub(crate) fn bind<'a>(
    gathered: &Gathered<'a>,
    calls: &Calls<'a>,
    threads: &Threads<'a>,
    epochs: &Epochs<'a>,
    sessions: &Sessions,
    evicted: bool,
) -> Vec<CallBinding<'a>> {
    let context = Context {
        epochs,
        threads,
        has_callbacks: !gathered.calls.is_empty(),
        evicted,
    };
    let containment = containment(calls, threads);
    let bind =
        |(call, scope): (&LogicalCall<'a>, Option<&'a Scope>)| context.bind(call, scope, sessions);
    calls.calls.iter().zip(containment).map(bind).collect()
}

/// The scope around each call, thread by thread.
fn containment<'a>(calls: &Calls<'a>, threads: &Threads<'a>) -> Vec<Option<&'a Scope>> {
    /// Calls of a thread, by number, each from when to when.
    type Intervals = Vec<(usize, (HostNanos, HostNanos))>;
    let mut by_thread: BTreeMap<ThreadKey, Intervals> = BTreeMap::new();
    for (number, call) in calls.calls.iter().enumerate() {
        let Some(interval) = call.interval() else {
            continue;
        };
        if let Some(thread) = thread_of(call, threads) {
            by_thread
                .entry(thread)
                .or_default()
                .push((number, interval));
        }
    }
    let mut around = vec![None; calls.calls.len()];
    for (key, of_thread) in by_thread {
        let Some(thread) = threads.get(key) else {
            continue;
        };
        let intervals: Vec<_> = of_thread.iter().map(|(_, interval)| *interval).collect();
        for ((number, _), scope) in of_thread.iter().zip(thread.scopes_around(&intervals)) {
            around[*number] = scope;
        }
    }
    around
}

fn thread_of(call: &LogicalCall<'_>, threads: &Threads<'_>) -> Option<ThreadKey> {
    let by_time = || {
        threads
            .bearing(call.tid, call.start?)
            .map(|thread| thread.key)
    };
    call.thread.or_else(by_time)
}

struct Context<'c, 'a> {
    epochs: &'c Epochs<'a>,
    threads: &'c Threads<'a>,
    has_callbacks: bool,
    evicted: bool,
}

impl<'a> Context<'_, 'a> {
    fn bind(
        &self,
        call: &LogicalCall<'a>,
        containment: Option<&'a Scope>,
        sessions: &Sessions,
    ) -> CallBinding<'a> {
        let distinct = |found: &mut dyn Iterator<Item = Attribution>| {
            let mut distinct: Vec<Attribution> = Vec::new();
            for attribution in found {
                if !distinct.contains(&attribution) {
                    distinct.push(attribution);
                }
            }
            distinct
        };
        let externals = call.externals.iter().map(|external| external.external_id);
        let mut externals = externals.map(|id| PackedEpoch::from_bits(id).unpack());
        let mut callbacks = call.callbacks.iter().map(|seen| seen.what.attribution);
        let mut sources = Sources {
            external: distinct(&mut externals),
            callback: distinct(&mut callbacks),
            containment,
            reachable: None,
        };
        let thread = thread_of(call, self.threads);
        let settled = sessions.has_come(call.session, call.tid, call.end.or(call.start));
        let derived = self.derive(call, &sources, thread, settled, sessions);
        if let (Derived::Bound(epoch), Some((entered, _))) = (derived, call.interval()) {
            sources.reachable = self.reachable(call, epoch, containment, thread, entered);
        }
        CallBinding {
            sources,
            derived,
            thread,
            settled,
        }
    }

    /// Whether the epoch came to where the call was made: declared, received or stepped there, or
    /// polled there by the very task that made the call.
    fn reachable(
        &self,
        call: &LogicalCall<'_>,
        epoch: LaunchEpoch,
        scope: Option<&Scope>,
        thread: Option<ThreadKey>,
        entered: HostNanos,
    ) -> Option<bool> {
        let task = call.task();
        let polled_here = scope.is_some_and(|scope| {
            task.is_some() && scope.task == task && scope.attribution.epoch() == Some(epoch)
        });
        if polled_here {
            return Some(true);
        }
        let seen_by_us = !call.callbacks.is_empty();
        let reached = self
            .epochs
            .reached(epoch.id, thread, task, seen_by_us, entered);
        let thread = thread.and_then(|key| self.threads.get(key));
        let may_be_lost = thread.is_some_and(|thread| thread.lost_records_before(entered));
        reached.filter(|reached| *reached || !may_be_lost)
    }

    fn derive(
        &self,
        call: &LogicalCall<'_>,
        sources: &Sources<'_>,
        thread: Option<ThreadKey>,
        settled: bool,
        sessions: &Sessions,
    ) -> Derived {
        if call.is_internal() {
            return Derived::Unattributed(Unattributed::InternalLaunch);
        }
        let named = sources.observed().find_map(Attribution::epoch);
        if let Some(epoch) = named {
            let mut all = sources.observed();
            return match all.find(|other| *other != Attribution::Epoch(epoch)) {
                Some(other) => Derived::Disputed(Attribution::Epoch(epoch), other),
                None => Derived::Bound(epoch),
            };
        }
        let said_nothing = sources.observed().next().is_none();
        let contained = sources.containment.filter(|_| said_nothing);
        if let Some(epoch) = contained.and_then(|scope| scope.attribution.epoch()) {
            return Derived::Bound(epoch);
        }
        let detached = |attribution| matches!(attribution, Attribution::Detached(_));
        let in_detached_scope = contained.is_some_and(|scope| detached(scope.attribution));
        if sources.observed().any(detached) || in_detached_scope {
            return Derived::Unattributed(Unattributed::Detached);
        }
        // What our own callback saw is here; without one more may come.
        if call.callbacks.is_empty() && !settled {
            return Derived::Unsettled;
        }
        let boundary = |attribution| attribution == Attribution::BoundaryWithoutEpoch;
        if call.in_boundary() == Some(true) || sources.observed().any(boundary) {
            return Derived::Lost;
        }
        if sessions.imported {
            return Derived::Unattributed(Unattributed::NoEpochEvidence);
        }
        let called = call.interval().map(|(entered, _)| entered);
        let declared = self.epochs.first_declaration;
        let before = declared.is_none_or(|first| called.is_some_and(|called| called < first));
        if before && !self.evicted {
            return Derived::Unattributed(if declared.is_some() || self.has_callbacks {
                Unattributed::BeforeFirstDeclaration
            } else {
                Unattributed::NoEpochEvidence
            });
        }
        let thread = thread.and_then(|key| self.threads.get(key));
        let knows_lineage = thread
            .zip(called)
            .is_some_and(|(thread, called)| thread.has_lineage_by(called));
        if knows_lineage {
            Derived::Lost
        } else {
            Derived::Unattributed(Unattributed::ForeignThread)
        }
    }
}

impl CallBinding<'_> {
    /// Whether the call asked for work and should have had an epoch.
    pub(crate) fn is_launch_without_epoch(&self, call: &LogicalCall<'_>) -> bool {
        self.derived == Derived::Lost && call.due() != OperationsDue::None
    }
}
