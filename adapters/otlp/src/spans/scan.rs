//! What is over, what is decided, and what can be let go: looked at as often as the session says how
//! far it has come.
//!
//! Every epoch that is held is looked at. That is a few nanoseconds for each, a few times a second, and
//! spares every event the bookkeeping of who waits for whom.

use std::collections::BTreeSet;

use lineage_core::id::{EpochId, HostNanos, LaunchEpoch};

use super::Spans;
use super::decide::{Because, Detail, Outcome};
use super::epoch::{Epoch, Known, Shared};
use super::operation::Operation;
use super::past::Gone;
use crate::spans::epoch::Place;

impl Spans {
    /// The session has come this far.
    pub(crate) fn progress(&mut self, read_until: HostNanos, settled_before: HostNanos) {
        self.read_until = read_until;
        self.settled_before = settled_before;
        self.scan(false);
    }

    /// Nothing comes any more.
    pub(crate) fn end(&mut self) {
        self.read_until = HostNanos(u64::MAX);
        self.settled_before = HostNanos(u64::MAX);
        self.scan(true);
    }

    pub(super) fn scan(&mut self, last: bool) {
        self.complete(last);
        self.decide();
        self.let_go();
        while self.is_over_bounds() && self.decide_oldest() {
            self.decide();
            self.let_go();
        }
    }

    fn is_over_bounds(&self) -> bool {
        // With the quarter that may come before the next look.
        self.held_bytes > self.hold_bytes / 4 * 3 || self.epochs.len() > self.hold_epochs
    }

    /// Marks what is over. What is over inside ends what is over outside.
    fn complete(&mut self, last: bool) {
        let before = self.read_until.min(self.settled_before);
        loop {
            let is_over = |epoch: &Epoch| {
                !epoch.complete
                    && epoch.open == 0
                    && (last || epoch.retired.is_some_and(|(at, _)| at < before))
            };
            let over = self.epochs.iter().filter(|(_, epoch)| is_over(epoch));
            let over: Vec<u64> = over.map(|(&id, _)| id).collect();
            if !over.is_empty() {
                over.into_iter().for_each(|id| self.complete_one(id));
            } else if last && self.epochs.values().any(|epoch| !epoch.complete) {
                // Only records that contradict one another keep anything open here.
                self.epochs.values_mut().for_each(|epoch| epoch.open = 0);
            } else {
                return;
            }
        }
    }

    fn complete_one(&mut self, id: u64) {
        let top = self.top(id);
        let Some(epoch) = self.epochs.get_mut(&id) else {
            return;
        };
        epoch.complete = true;
        let (late, mut sums) = (epoch.late, epoch.sums);
        sums.merge(&epoch.parts);
        let faulty = epoch.faulty || sums.faults > 0;
        let shared = epoch.shared;
        if epoch.is_batch() {
            let members: Vec<LaunchEpoch> =
                epoch.members.iter().map(|member| member.epoch).collect();
            let of_batch = Shared {
                sums,
                share_ns: 0,
                steps: u64::from(epoch.version),
            };
            let whole_ns = sums.device_time_ns.saturating_add(shared.share_ns);
            let share_ns = whole_ns / members.len() as u64;
            // A request may take part with several of its parts.
            let mut told = BTreeSet::new();
            for member in members {
                if let Some(member) = self.epochs.get_mut(&member.id.get()) {
                    member.in_batches = member.in_batches.saturating_sub(1);
                }
                let top = self.top(member.id.get());
                let is_first = told.insert(top);
                if let Some(top) = self.epochs.get_mut(&top) {
                    top.open = top.open.saturating_sub(1);
                    top.shared.share_ns = top.shared.share_ns.saturating_add(share_ns);
                    if is_first {
                        top.shared.merge(&of_batch);
                        top.shared.merge(&Shared {
                            share_ns: 0,
                            ..shared
                        });
                    }
                    top.late |= late;
                    top.faulty |= faulty;
                }
            }
        } else if top != id
            && let Some(top) = self.epochs.get_mut(&top)
        {
            top.open = top.open.saturating_sub(1);
            top.parts.merge(&sums);
            top.shared.merge(&shared);
            top.late |= late;
            top.faulty |= faulty;
        }
    }

    /// Decides what can be decided, until nothing more follows from it.
    fn decide(&mut self) {
        let wanted = self.wanted();
        loop {
            let undecided = self.epochs.iter().filter(|(_, epoch)| {
                epoch.decided.is_none() && (epoch.origin.is_none() || epoch.is_batch())
            });
            let undecided: Vec<u64> = undecided.map(|(&id, _)| id).collect();
            let mut changed = false;
            for id in undecided {
                let outcome = if self.epochs.get(&id).is_some_and(Epoch::is_batch) {
                    self.outcome_of_batch(id)
                } else {
                    self.outcome_of_request(id, wanted.contains(&id))
                };
                if let Some(outcome) = outcome {
                    self.set_outcome(id, outcome);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// The tops whose head is asked now, since something of theirs could be let go.
    fn wanted(&self) -> BTreeSet<u64> {
        let is_ready = |epoch: &Epoch| {
            let mut operations = epoch.steps.iter().flat_map(|step| &step.operations);
            operations.any(|operation| self.is_ready(operation))
        };
        let ready = self.epochs.iter().filter(|(_, epoch)| is_ready(epoch));
        let mut open: Vec<u64> = ready.map(|(&id, _)| id).collect();
        let (mut wanted, mut seen) = (BTreeSet::new(), BTreeSet::new());
        while let Some(id) = open.pop() {
            let top = self.top(id);
            if !seen.insert(top) {
                continue;
            }
            match self.epochs.get(&top) {
                Some(epoch) if epoch.is_batch() => {
                    open.extend(epoch.members.iter().map(|member| member.epoch.id.get()));
                }
                _ => {
                    wanted.insert(top);
                }
            }
        }
        wanted
    }

    /// Whether all that was recorded before its call was handed on, so that its epoch is known as
    /// far as it was then.
    fn is_ready(&self, operation: &Operation) -> bool {
        operation.asked_at() < self.read_until
    }

    /// In full for one member is in full.
    fn outcome_of_batch(&self, id: u64) -> Option<Outcome> {
        let epoch = self.epochs.get(&id)?;
        let known = || epoch.members.iter().map(|member| member.known);
        let outcomes = || {
            known().filter_map(|known| match known {
                Known::Decided(_, outcome) => Some(outcome),
                Known::Waiting | Known::Lost => None,
            })
        };
        if let Some(full) = outcomes().find(|outcome| outcome.is_full()) {
            return Some(full);
        }
        if known().any(|known| known == Known::Waiting) {
            return None;
        }
        match outcomes().next() {
            Some(_) if outcomes().all(|outcome| outcome == Outcome::Nothing) => {
                Some(Outcome::Nothing)
            }
            Some(_) => Some(Outcome::Sums),
            // All its members are lost: it speaks for itself.
            None => {
                let trace = self.ids.trace(first_of(id)?);
                Some(match self.volume.at_head(epoch.parent, trace) {
                    Detail::Everything => Outcome::Full(Because::Sampled),
                    Detail::Nothing => Outcome::Nothing,
                    Detail::Sums | Detail::SumsAndLate => Outcome::Sums,
                })
            }
        }
    }

    fn outcome_of_request(&mut self, id: u64, wanted: bool) -> Option<Outcome> {
        let trace = self.ids.trace(first_of(id)?);
        let volume = self.volume;
        let epoch = self.epochs.get_mut(&id)?;
        if !(epoch.complete || wanted) {
            return None;
        }
        if epoch.declared.is_none() {
            return epoch.complete.then_some(Outcome::Nothing);
        }
        let parent = epoch.parent;
        let head = *epoch
            .head
            .get_or_insert_with(|| volume.at_head(parent, trace));
        match head {
            Detail::Nothing => Some(Outcome::Nothing),
            Detail::Sums => Some(Outcome::Sums),
            Detail::Everything => Some(Outcome::Full(Because::Sampled)),
            Detail::SumsAndLate if epoch.complete => Some(self.outcome_at_tail(id)),
            Detail::SumsAndLate => None,
        }
    }

    /// By what is known of it now.
    fn outcome_at_tail(&mut self, id: u64) -> Outcome {
        let Some(epoch) = self.epochs.get(&id) else {
            return Outcome::Nothing;
        };
        let end = epoch.end();
        let is_slow = epoch.declared.as_ref().is_some_and(|declared| {
            let took_ns = end.0.saturating_sub(declared.at.0);
            let launched = epoch.sums.operations + epoch.parts.operations;
            launched + epoch.shared.sums.operations > 0 && self.slow.see(&declared.name, took_ns)
        });
        if epoch.late {
            Outcome::Full(Because::Late)
        } else if is_slow {
            Outcome::Full(Because::Slow)
        } else if epoch.faulty {
            Outcome::Full(Because::Fault)
        } else {
            Outcome::Sums
        }
    }

    /// Decided for good: those that wait for it are told.
    fn set_outcome(&mut self, id: u64, outcome: Outcome) {
        let Some(epoch) = self.epochs.get_mut(&id) else {
            return;
        };
        epoch.decided = Some(outcome);
        let is_lost = epoch.declared.is_none();
        for (batch, at) in std::mem::take(&mut epoch.awaited_by) {
            let member = self.epochs.get(&batch);
            let member = member.and_then(|batch| batch.members.get(at as usize));
            let Some(of) = member.map(|member| member.epoch) else {
                continue;
            };
            let known = if is_lost {
                self.counts.members_unknown += 1;
                Known::Lost
            } else {
                Known::Decided(self.place(of), outcome)
            };
            if let Some(batch) = self.epochs.get_mut(&batch) {
                batch.members[at as usize].known = known;
            }
        }
    }

    /// Decides the oldest by what is known; `false` if there is none.
    fn decide_oldest(&mut self) -> bool {
        let undecided = self.epochs.iter().filter(|(_, epoch)| {
            epoch.decided.is_none() && epoch.origin.is_none() && !epoch.is_batch()
        });
        let mut oldest: Vec<u64> = undecided.map(|(&id, _)| id).collect();
        oldest.truncate((oldest.len() / 8).max(16));
        let excess = self.epochs.len().saturating_sub(self.hold_epochs);
        let too_many = self.epochs.iter().filter(|(_, epoch)| !epoch.complete);
        let too_many: Vec<u64> = too_many.map(|(&id, _)| id).take(excess).collect();
        for &id in &oldest {
            let outcome = if self.epochs[&id].declared.is_none() {
                Outcome::Nothing
            } else {
                self.outcome_of_request(id, true)
                    .unwrap_or_else(|| self.outcome_at_tail(id))
            };
            if let Some(epoch) = self.epochs.get_mut(&id) {
                epoch.decided_early = true;
            }
            self.counts.decided_early += 1;
            self.set_outcome(id, outcome);
        }
        for &id in &too_many {
            if let Some(epoch) = self.epochs.get_mut(&id) {
                epoch.open = 0;
            }
            self.complete_one(id);
        }
        !(oldest.is_empty() && too_many.is_empty())
    }

    /// Makes the spans of what is decided, and forgets it.
    fn let_go(&mut self) {
        let ids: Vec<u64> = self.epochs.keys().copied().collect();
        for &id in &ids {
            if let Some(outcome) = self.outcome(id) {
                self.let_operations_go(id, outcome);
                self.let_steps_go(id, outcome);
            }
        }
        // Parts before what they are part of.
        loop {
            let done = ids.iter().copied().filter(|&id| self.is_done(id));
            let done: Vec<u64> = done.collect();
            if done.is_empty() {
                break;
            }
            done.into_iter().for_each(|id| self.remove(id));
        }
        self.held_bytes = self.epochs.values().map(Epoch::held_bytes).sum();
        self.grown_bytes = 0;
    }

    fn outcome(&self, id: u64) -> Option<Outcome> {
        self.epochs.get(&self.top(id))?.decided
    }

    fn let_operations_go(&mut self, id: u64, outcome: Outcome) {
        let read_until = self.read_until;
        let Some(epoch) = self.epochs.get_mut(&id) else {
            return;
        };
        let is_ready = |operation: &mut Operation| operation.asked_at() < read_until;
        let mut ready: Vec<Operation> = Vec::new();
        for step in &mut epoch.steps {
            if !step.operations.is_empty() {
                ready.extend(step.operations.extract_if(.., is_ready));
            }
        }
        match outcome {
            Outcome::Nothing => self.counts.operations_not_sampled += ready.len() as u64,
            Outcome::Sums => self.counts.operations_summed += ready.len() as u64,
            Outcome::Full(_) => {
                // Operations of one version come one after the other.
                let mut parent: Option<(LaunchEpoch, Place)> = None;
                for operation in &ready {
                    let of = operation.epoch;
                    let place = match parent {
                        Some((same, place)) if same == of => place,
                        _ => self.place(of),
                    };
                    parent = Some((of, place));
                    self.operation(operation, place);
                }
            }
        }
    }

    fn let_steps_go(&mut self, id: u64, outcome: Outcome) {
        loop {
            let Some(epoch) = self.epochs.get_mut(&id) else {
                return;
            };
            let next = epoch.steps.get(1).map(|next| next.began);
            let is_over = epoch.complete || next.is_some_and(|at| at < self.settled_before);
            let waits = |epoch: &Epoch| {
                let mut members = epoch.members.iter();
                members.any(|member| member.known == Known::Waiting)
            };
            let Some(step) = epoch.steps.front() else {
                return;
            };
            if !is_over || !step.operations.is_empty() || waits(epoch) {
                return;
            }
            let Some(step) = epoch.steps.pop_front() else {
                return;
            };
            if outcome.is_full() {
                self.step(id, &step, next, outcome);
            } else if epoch.is_batch() {
                // What happened to it is told with its steps, and they are not.
                epoch.moments.take_before(next);
            }
        }
    }

    fn is_done(&self, id: u64) -> bool {
        let is_done = |epoch: &Epoch| {
            epoch.complete
                && epoch.steps.is_empty()
                && epoch.live_parts == 0
                && epoch.in_batches == 0
                && self.outcome(id).is_some()
        };
        self.epochs.get(&id).is_some_and(is_done)
    }

    fn remove(&mut self, id: u64) {
        let (Some(of), Some(outcome)) = (first_of(id), self.outcome(id)) else {
            return;
        };
        let place = self.place(of);
        let Some(epoch) = self.epochs.remove(&id) else {
            return;
        };
        if let Some((origin, _)) = epoch.origin
            && let Some(origin) = self.epochs.get_mut(&origin.id.get())
        {
            origin.live_parts = origin.live_parts.saturating_sub(1);
        }
        let own_traces = epoch.is_batch() && epoch.parent.is_none();
        let gone = Gone {
            trace: (!own_traces).then_some(place.trace),
            outcome,
            lost: epoch.declared.is_none(),
        };
        self.past.add(of.id, gone);
        if gone.lost {
            self.counts.operations_without_epoch += epoch.sums.operations;
        } else if outcome == Outcome::Nothing {
            self.counts.epochs_not_sampled += 1;
        } else if !epoch.is_batch() {
            self.request(of, epoch, place, outcome);
        }
    }
}

/// The first version of an epoch by number.
fn first_of(id: u64) -> Option<LaunchEpoch> {
    EpochId::new(id).map(LaunchEpoch::first)
}
