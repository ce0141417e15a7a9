//! Threads: their scopes, their gaps, and whether they have lineage events.
//!
//! A scope's record is written when it ends, so a call's record comes before those of the scopes
//! that contain it, and an inner scope's before the outer one's unless guards end out of order.
//! Calls therefore wait here for their scope. The innermost scope is the one with the greatest
//! token among those that contain the whole call; a call stops waiting when a scope names what our
//! own callback read, since what is current *is* the innermost scope.
//!
//! Nothing is inferred across a gap: where records were lost between the call and the end of the
//! scope, the lost one may have been the innermost.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::calls::CallRef;
use crate::id::{Attribution, HostNanos, ScopeToken, TaskId, ThreadKey};
use crate::observation::{Gap, Scope};

/// Gaps kept per thread; beyond them the two oldest become one that covers both.
const GAPS: usize = 64;

/// Scopes looked at to find the innermost for a call that only CUPTI saw.
const SCOPES_TRIED: usize = 256;

/// A scope that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenScope {
    pub(super) attribution: Attribution,
    pub(super) token: ScopeToken,
    pub(super) entered: HostNanos,
    pub(super) exited: HostNanos,
    pub(super) task: Option<TaskId>,
    /// It was open when its thread first launched: `entered` is only the latest it can have begun.
    pub(super) open_at_first_launch: bool,
}

/// A call that waits for its scope to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaiting {
    pub(super) call: CallRef,
    pub(super) session: u32,
    pub(super) entered: HostNanos,
    pub(super) exited: HostNanos,
    pub(super) task: Option<TaskId>,
    pub(super) attribution: Attribution,
}

/// The scope of a call, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Containment {
    /// None has ended yet that contains it.
    #[default]
    NotYet,
    /// The innermost of those that have ended.
    In(SeenScope),
    /// Records were lost that could have said so.
    AcrossGap,
}

impl Containment {
    pub(super) fn scope(self) -> Option<SeenScope> {
        match self {
            Self::In(scope) => Some(scope),
            Self::NotYet | Self::AcrossGap => None,
        }
    }

    /// With one more scope that contains the call.
    pub(super) fn or_inner(self, other: SeenScope) -> Self {
        match self {
            Self::In(scope) if scope.token > other.token => self,
            Self::In(_) | Self::NotYet => Self::In(other),
            Self::AcrossGap => self,
        }
    }
}

#[derive(Debug)]
pub(super) struct ThreadState {
    pub(super) key: ThreadKey,
    started: HostNanos,
    ended: Option<HostNanos>,
    /// The first event that a server's use of lineage makes here: a call alone is none.
    first_event: Option<HostNanos>,
    /// The first of them that names an epoch, and so proves a declaration.
    first_epoch_event: Option<HostNanos>,
    /// The earliest scope entry or call: from then on the thread's scopes are recorded.
    launching_since: Option<HostNanos>,
    /// By the time of their end.
    scopes: VecDeque<SeenScope>,
    gaps: VecDeque<(u64, u64)>,
    /// By the time of entry.
    awaiting: VecDeque<Awaiting>,
}

impl ThreadState {
    fn new(key: ThreadKey, started: HostNanos) -> Self {
        Self {
            key,
            started,
            ended: None,
            first_event: None,
            first_epoch_event: None,
            launching_since: None,
            scopes: VecDeque::new(),
            gaps: VecDeque::new(),
            awaiting: VecDeque::new(),
        }
    }

    /// Notes a lineage event of this thread.
    pub(super) fn event(&mut self, at: HostNanos, names_epoch: bool) {
        let earliest = |known: Option<HostNanos>| Some(known.map_or(at, |known| known.min(at)));
        self.first_event = earliest(self.first_event);
        if names_epoch {
            self.first_epoch_event = earliest(self.first_epoch_event);
        }
    }

    /// Whether it had a lineage event by then.
    pub(super) fn has_events_by(&self, at: HostNanos) -> bool {
        self.first_event.is_some_and(|first| first <= at)
    }

    /// Whether it had an event by then that proves an earlier declaration.
    pub(super) fn saw_an_epoch_by(&self, at: HostNanos) -> bool {
        self.first_epoch_event.is_some_and(|first| first <= at)
    }

    /// Whether records of this thread from before then are lost.
    pub(super) fn lost_records_before(&self, at: HostNanos) -> bool {
        self.gaps.iter().any(|&(not_before, _)| not_before < at.0)
    }

    pub(super) fn launches(&mut self, at: HostNanos) {
        self.launching_since = Some(self.launching_since.map_or(at, |since| since.min(at)));
    }

    pub(super) fn end(&mut self, at: HostNanos) {
        self.ended = Some(at);
    }

    pub(super) fn gap(&mut self, gap: &Gap) {
        let window = (
            gap.not_before.map_or(0, |at| at.0),
            gap.not_after.map_or(u64::MAX, |at| at.0),
        );
        self.gaps.push_back(window);
        if self.gaps.len() > GAPS
            && let (Some(first), Some(second)) = (self.gaps.pop_front(), self.gaps.pop_front())
        {
            self.gaps
                .push_front((first.0.min(second.0), first.1.max(second.1)));
        }
    }

    /// Whether a gap's window meets this interval.
    fn gap_meets(&self, from: HostNanos, to: HostNanos) -> bool {
        self.gaps
            .iter()
            .any(|&(not_before, not_after)| not_before < to.0 && from.0 < not_after)
    }

    /// A call waits for its scope. The oldest gives way if there are too many; whether one did.
    pub(super) fn await_scope(&mut self, awaiting: Awaiting, bound: usize) -> bool {
        // A thread's calls come in order, but for those whose clock was set back.
        let at = match self.awaiting.back() {
            Some(last) if last.entered > awaiting.entered => self
                .awaiting
                .partition_point(|known| known.entered <= awaiting.entered),
            _ => self.awaiting.len(),
        };
        self.awaiting.insert(at, awaiting);
        let surplus = self.awaiting.len() > bound.max(1);
        if surplus {
            self.awaiting.pop_front();
        }
        surplus
    }

    /// A scope ended: calls it with each that it contains, and with what is known of its scope by
    /// that.
    pub(super) fn scope_ended(
        &mut self,
        scope: &Scope,
        bound: usize,
        mut contains: impl FnMut(&Awaiting, Containment),
    ) {
        self.launches(scope.entered);
        self.event(scope.entered, scope.attribution.epoch().is_some());
        let seen = SeenScope {
            attribution: scope.attribution,
            token: scope.token,
            entered: scope.entered,
            exited: scope.exited,
            task: scope.task,
            open_at_first_launch: !scope.boundary && self.launching_since == Some(scope.entered),
        };
        self.scopes.push_back(seen);
        if self.scopes.len() > bound {
            self.scopes.pop_front();
        }
        let mut others = Vec::new();
        while let Some(call) = self.awaiting.back().copied() {
            if call.entered < scope.entered {
                break;
            }
            self.awaiting.pop_back();
            if call.exited > scope.exited {
                others.push(call);
                continue;
            }
            if self.gap_meets(call.entered, scope.exited) {
                contains(&call, Containment::AcrossGap);
                continue;
            }
            contains(&call, Containment::In(seen));
            if call.attribution != scope.attribution {
                others.push(call);
            }
        }
        self.awaiting.extend(others.into_iter().rev());
    }

    /// The innermost ended scope that contains this interval.
    pub(super) fn containing(&self, from: HostNanos, to: HostNanos) -> Containment {
        let first = self.scopes.partition_point(|scope| scope.exited < to);
        let candidates = self.scopes.range(first..).take(SCOPES_TRIED);
        let innermost = candidates
            .filter(|scope| scope.entered <= from && to <= scope.exited)
            .max_by_key(|scope| scope.token);
        match innermost {
            Some(scope) if self.gap_meets(from, scope.exited) => Containment::AcrossGap,
            Some(scope) => Containment::In(*scope),
            None if self.gap_meets(from, HostNanos(u64::MAX)) => Containment::AcrossGap,
            None => Containment::NotYet,
        }
    }
}

/// All threads of one process that had lineage events.
#[derive(Debug, Default)]
pub(super) struct Threads {
    by_key: FxHashMap<ThreadKey, ThreadState>,
    by_tid: FxHashMap<u64, Vec<ThreadKey>>,
    order: VecDeque<ThreadKey>,
    /// Live threads that gave way since this was last asked.
    forgotten: u64,
}

impl Threads {
    /// The thread, made if it is new. The oldest gives way if there are too many.
    pub(super) fn of(&mut self, key: ThreadKey, seen: HostNanos, bound: usize) -> &mut ThreadState {
        if !self.by_key.contains_key(&key) {
            if self.order.len() >= bound.max(1) {
                self.give_way();
            }
            self.order.push_back(key);
            self.by_tid.entry(key.tid).or_default().push(key);
        }
        let state = self
            .by_key
            .entry(key)
            .or_insert_with(|| ThreadState::new(key, seen));
        state.started = state.started.min(seen);
        state
    }

    pub(super) fn get(&self, key: ThreadKey) -> Option<&ThreadState> {
        self.by_key.get(&key)
    }

    /// The thread that bore this system id at this time.
    pub(super) fn by_tid(&self, tid: u64, at: HostNanos) -> Option<&ThreadState> {
        let bearers = self
            .by_tid
            .get(&tid)?
            .iter()
            .filter_map(|key| self.by_key.get(key));
        // A thread is first seen at its first event, which a call that only CUPTI saw may precede.
        let alive = bearers.filter(|thread| thread.ended.is_none_or(|ended| at <= ended));
        alive.min_by_key(|thread| (thread.started > at, thread.started.0.abs_diff(at.0)))
    }

    /// How many live threads were forgotten since this was last asked.
    pub(super) fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.forgotten)
    }

    /// Forgets the oldest thread that has ended, or else the oldest.
    fn give_way(&mut self) {
        let ended = |key: &ThreadKey| {
            self.by_key
                .get(key)
                .is_none_or(|thread| thread.ended.is_some())
        };
        let oldest = self.order.iter().take(1_024).position(ended).unwrap_or(0);
        let Some(key) = self.order.remove(oldest) else {
            return;
        };
        if self
            .by_key
            .remove(&key)
            .is_some_and(|thread| thread.ended.is_none())
        {
            self.forgotten += 1;
        }
        if let Some(bearers) = self.by_tid.get_mut(&key.tid) {
            bearers.retain(|bearer| *bearer != key);
            if bearers.is_empty() {
                self.by_tid.remove(&key.tid);
            }
        }
    }
}
