//! When a row is given, and what is said of calls and operations that stay alone.
//!
//! A row is given as soon as everything that is due has come: the operation, both records of the
//! call, the scope around it, the declaration of its epoch and the edge that brought it here, and
//! the external record if the call was made inside a boundary of a session that has such records.
//! What is missing is waited for no longer than this:
//!
//! | missing | until |
//! | --- | --- |
//! | scope, declaration, edge | two further flushes: every ring was emptied since |
//! | either record of the call, its external record, its operation | the fence of its thread |
//! | the call of an operation | the fence of any thread |
//! | any of them | the end of the session, or of all |

use super::calls::{CallRef, Kept, Waiting};
use super::emit::{Effect, FaultSet, loose};
use super::epochs::AGED_AFTER;
use super::join::{CallEvidence, Joined, Known, Missing, join};
use super::rows::{Parts, build, unattributed, unjoined};
use super::session::{Context, Session};
use crate::evidence::Why;
use crate::fault::FaultCode;
use crate::id::{Attribution, UnwrappedCorrelationId};
use crate::observation::{Operation, OperationsDue};
use crate::row::{Binding, Unattributed};

/// What a row may be given without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    /// Our own record of the call.
    call: bool,
    /// What CUPTI records of the call.
    device: bool,
    /// What other rings may hold.
    host: bool,
    /// No operation is to come any more, wherever the device is.
    operations: bool,
}

impl Allowed {
    const NOTHING: Self = Self {
        call: false,
        device: false,
        host: false,
        operations: false,
    };
    const AGED: Self = Self {
        host: true,
        ..Self::NOTHING
    };
    const FENCED: Self = Self {
        call: true,
        device: true,
        host: true,
        operations: false,
    };
    /// The device's session is over; the rings are read once more after it.
    pub(super) const DEVICE_ENDED: Self = Self {
        device: true,
        operations: true,
        ..Self::NOTHING
    };
    pub(super) const ALL: Self = Self {
        call: true,
        device: true,
        host: true,
        operations: true,
    };

    fn permits(self, missing: Missing) -> bool {
        (self.call || !missing.call)
            && (self.device || !(missing.api || missing.external))
            && (self.host || !missing.host)
    }
}

impl Session {
    /// Something came to this entry: gives what can be given.
    pub(super) fn changed(&mut self, slot: u32, context: &mut Context<'_>) {
        self.evaluate(slot, Allowed::NOTHING, context);
    }

    fn evaluate(&mut self, slot: u32, allowed: Allowed, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        if entry.waiting.is_empty() {
            let due = entry.due();
            let is_over = due.is_some() && (due == Some(OperationsDue::None) || entry.failed());
            if is_over && !entry.is_given() {
                self.give_without(slot, allowed, context);
            }
        } else {
            self.give_waiting(slot, allowed, context);
        }
        self.count(slot, context);
        // An operation that carries the runtime call's id waits for what the driver call knows.
        let parent = self
            .calls
            .get(slot)
            .parent
            .and_then(|parent| self.calls.find(parent));
        if let Some(parent) = parent
            && !self.calls.get(parent).waiting.is_empty()
        {
            self.give_waiting(parent, allowed, context);
            self.count(parent, context);
        }
    }

    /// The entry whose records speak for this one: its own, or those of a driver call nested in it.
    fn speaker(&self, slot: u32) -> u32 {
        let entry = self.calls.get(slot);
        if entry.host.is_some() {
            return slot;
        }
        let nested = entry
            .children
            .iter()
            .filter_map(|&child| self.calls.find(child));
        nested
            .into_iter()
            .find(|&child| self.calls.get(child).host.is_some())
            .unwrap_or(slot)
    }

    fn evidence(&self, slot: u32, speaker: u32) -> CallEvidence<'_> {
        let (entry, speaking) = (self.calls.get(slot), self.calls.get(speaker));
        let parent = speaking.parent.and_then(|parent| self.calls.find(parent));
        let parent = parent
            .filter(|&parent| parent != slot)
            .map(|parent| self.calls.get(parent));
        let mut externals = [
            speaking.external,
            speaking.other_external,
            entry.external,
            parent.and_then(|parent| parent.external),
        ]
        .into_iter()
        .flatten();
        let external = externals.next();
        CallEvidence {
            call: speaking.host.as_ref(),
            api: speaking.api().or(entry.api()),
            external,
            other_external: externals.find(|&other| Some(other) != external),
            containment: speaking.containment,
            external_expected: self.external_seen,
            call_expected: self.call_expected(),
        }
    }

    fn join(&self, slot: u32, context: &Context<'_>) -> (Joined, Missing, u32) {
        let speaker = self.speaker(slot);
        let known = Known {
            epochs: context.epochs,
            threads: context.threads,
            host_evidence: context.host_evidence,
            epsilon_ns: context.limits.epsilon_ns,
        };
        let (joined, missing) = join(&self.evidence(slot, speaker), &known);
        (joined, missing, speaker)
    }

    /// Gives the rows of the operations that wait, if what is missing may be missing.
    fn give_waiting(&mut self, slot: u32, allowed: Allowed, context: &mut Context<'_>) {
        if !self.calls.get(slot).is_call() {
            return;
        }
        let (joined, missing, speaker) = self.join(slot, context);
        if !allowed.permits(missing) {
            self.hold(slot, missing, context);
            return;
        }
        let mut waiting = std::mem::take(&mut self.calls.get_mut(slot).waiting);
        waiting.sort_by_key(|waiting| waiting.operation.start);
        let mut faults = FaultSet::default();
        if self.calls.get(slot).reused || self.calls.get(speaker).reused {
            faults.add(FaultCode::W04);
        }
        for waiting in waiting {
            self.give_one(slot, speaker, joined.clone(), waiting, faults, context);
        }
        self.satisfy_nested(slot, context);
        self.settle(slot, context);
    }

    /// Only other rings can have what is missing: it is waited for no longer than two flushes.
    fn hold(&mut self, slot: u32, missing: Missing, context: &Context<'_>) {
        if Allowed::AGED.permits(missing) && !self.calls.get(slot).held {
            self.calls.get_mut(slot).held = true;
            self.held
                .push_back((self.calls.reference(slot), context.flushes));
        }
    }

    fn give_one(
        &mut self,
        slot: u32,
        speaker: u32,
        joined: Joined,
        waiting: Waiting,
        mut faults: FaultSet,
        context: &mut Context<'_>,
    ) {
        let Waiting {
            operation,
            supersedes,
            ambiguous,
        } = waiting;
        if ambiguous {
            faults.add(FaultCode::W04);
        }
        let superseded = supersedes.or_else(|| self.take_without(slot));
        let entry = self.calls.get_mut(slot);
        entry.operations_given = entry.operations_given.saturating_add(1);
        // A call one wrap earlier that is retained too could as well be meant.
        if let (Some(earlier), Some(start), Some(enter)) = (
            entry
                .key()
                .checked_sub(1 << 32)
                .and_then(|earlier| self.calls.find(earlier)),
            operation.start,
            self.calls.get(speaker).start(),
        ) && self.calls.get(earlier).is_call()
            && start.0.saturating_add(context.limits.epsilon_ns) < enter.0
        {
            faults.add(FaultCode::W04);
        }
        let parts = Parts {
            process: context.process,
            session: self.number,
            correlation: self.calls.get(speaker).correlation(),
            evidence: self.evidence(slot, speaker),
            joined,
            faults,
            supersedes: superseded.is_some(),
            no_operation: Why::NotApplicable,
            no_call: Why::Dropped,
            epsilon_ns: context.limits.epsilon_ns,
        };
        let (row, joined, faults) = build(parts, Some(operation));
        if let (Binding::Bound(epoch), None) = (joined.binding, joined.sources.callback) {
            context.launched(epoch);
        }
        context
            .out
            .row(row, Effect::of(&joined, faults), superseded);
    }

    /// The row that said that this call has no operation, or the one it is nested in or that is
    /// nested in it.
    fn take_without(&mut self, slot: u32) -> Option<Effect> {
        if let Some(effect) = self.calls.get_mut(slot).without.take() {
            return Some(effect);
        }
        let entry = self.calls.get(slot);
        let mut related = entry
            .children
            .iter()
            .chain(&entry.parent)
            .filter_map(|&key| self.calls.find(key));
        let other = related.find(|&other| self.calls.get(other).without.is_some())?;
        self.calls.get_mut(other).without.take()
    }

    /// An operation of a runtime call is that of the driver calls nested in it, and the other way
    /// round.
    fn satisfy_nested(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        let related = entry.children.iter().chain(&entry.parent);
        let related: Vec<u32> = related.filter_map(|&key| self.calls.find(key)).collect();
        let from_child = entry.parent.is_some();
        for other in related {
            let other_entry = self.calls.get_mut(other);
            if from_child || other_entry.operations_given == 0 {
                other_entry.satisfied = true;
            }
            self.settle(other, context);
            self.count(other, context);
        }
    }

    /// Moves an entry to those that only wait for duplicates, if nothing else can come to it.
    fn settle(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        let complete = match entry.due() {
            Some(OperationsDue::One) => {
                entry.operations_given as usize >= entry.room() || entry.satisfied
            }
            Some(OperationsDue::None) => true,
            Some(OperationsDue::Many | OperationsDue::Any) | None => false,
        };
        if complete && entry.waiting.is_empty() {
            self.keep(slot, Kept::Joined, context);
        }
    }

    /// Changes what an entry is kept for. Those kept longest give way, without a fault.
    fn keep(&mut self, slot: u32, kept: Kept, context: &mut Context<'_>) {
        let reference = self.calls.reference(slot);
        let entry = self.calls.get_mut(slot);
        if entry.kept == kept {
            return;
        }
        self.open_count -= usize::from(entry.kept == Kept::Open);
        entry.kept = kept;
        if kept == Kept::Joined
            && std::mem::take(&mut entry.holds_epoch)
            && let Some(epoch) = entry
                .host
                .as_ref()
                .and_then(|call| call.attribution.epoch())
        {
            context.epochs.release(epoch);
        }
        let (list, bound) = match kept {
            Kept::Open => return,
            Kept::Joined => (&mut self.joined, context.limits.joined_calls),
            Kept::Lost => (&mut self.lost, context.limits.lost_calls),
        };
        list.push_back(reference);
        while list.len() > bound.max(1) {
            let Some(oldest) = list.pop_front() else {
                break;
            };
            if let Some(slot) = self.calls.at(oldest)
                && self.calls.get(slot).kept == kept
            {
                self.forget(slot, context);
                break;
            }
        }
    }

    /// Brings the totals in line with what is known of this entry by now.
    fn count(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get_mut(slot);
        let alone = entry.children.is_empty();
        let has_operation = entry.operations_given > 0 || !entry.waiting.is_empty();
        let asks = entry.is_call() && (entry.asks_for_work() || has_operation);
        let call = asks && alone;
        let without_work = entry.is_call() && !asks && alone;
        let given = entry.is_given() || entry.satisfied;
        let pending = !entry.waiting.is_empty() || (call && !given);
        let totals = &mut context.out.totals;
        for (now, before, count) in [
            (call, &mut entry.counted, &mut totals.calls),
            (
                without_work,
                &mut entry.counted_without_work,
                &mut totals.calls_without_work,
            ),
            (pending, &mut entry.pending, &mut totals.pending),
        ] {
            if now != *before {
                *before = now;
                *count = if now {
                    *count + 1
                } else {
                    count.saturating_sub(1)
                };
            }
        }
    }

    /// Decides an entry of which nothing more will come.
    pub(super) fn conclude(&mut self, slot: u32, allowed: Allowed, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        if !entry.is_call() {
            return;
        }
        if !entry.waiting.is_empty() {
            self.evaluate(slot, allowed, context);
        } else if !entry.is_given() && !entry.satisfied {
            self.give_without(slot, allowed, context);
            self.count(slot, context);
        }
    }

    /// Says of a call that it has no operation, unless another one has it.
    fn give_without(&mut self, slot: u32, allowed: Allowed, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        let elsewhere = |key: &u64| {
            self.calls.find(*key).is_some_and(|other| {
                let other = self.calls.get(other);
                other.operations_given > 0 || !other.waiting.is_empty()
            })
        };
        if !entry.children.is_empty() || entry.parent.as_ref().is_some_and(elsewhere) {
            self.calls.get_mut(slot).satisfied = true;
            self.settle(slot, context);
            return;
        }
        let Some(due) = entry.due() else { return };
        if due == OperationsDue::None {
            self.settle(slot, context);
            return;
        }
        let one_is_due = matches!(due, OperationsDue::One | OperationsDue::Many) && !entry.failed();
        let beyond_device = self
            .newest_operation
            .is_none_or(|newest| entry.key() > newest);
        if one_is_due && beyond_device && !allowed.operations {
            return; // The device may not be that far.
        }
        let (joined, missing, speaker) = self.join(slot, context);
        if !allowed.permits(missing) {
            if !one_is_due && self.calls.get(slot).failed() {
                self.hold(slot, missing, context);
            }
            return;
        }
        let lost = one_is_due && !(beyond_device && !self.ended);
        let mut faults = FaultSet::default();
        if lost {
            faults.add(FaultCode::L03);
        }
        let no_operation = match (lost, one_is_due) {
            (true, _) => Why::Dropped,
            (false, true) => Why::Pending,
            (false, false) => Why::NotApplicable,
        };
        self.give_call(slot, speaker, joined, faults, no_operation, context);
        self.keep(slot, Kept::Lost, context);
        if let Some(parent) = self
            .calls
            .get(slot)
            .parent
            .and_then(|parent| self.calls.find(parent))
        {
            // A late operation may carry the runtime call's id.
            self.keep(parent, Kept::Lost, context);
        }
    }

    fn give_call(
        &mut self,
        slot: u32,
        speaker: u32,
        joined: Joined,
        mut faults: FaultSet,
        no_operation: Why,
        context: &mut Context<'_>,
    ) {
        if self.calls.get(slot).reused {
            faults.add(FaultCode::W04);
        }
        let parts = Parts {
            process: context.process,
            session: self.number,
            correlation: self.calls.get(speaker).correlation(),
            evidence: self.evidence(slot, speaker),
            joined,
            faults,
            supersedes: false,
            no_operation,
            no_call: Why::Dropped,
            epsilon_ns: context.limits.epsilon_ns,
        };
        let (row, joined, faults) = build(parts, None);
        let effect = Effect::of(&joined, faults);
        context.out.row(row, effect, None);
        self.calls.get_mut(slot).without = Some(effect);
    }

    /// The fence of a thread moved: what lies before it is decided, and what was decided by the
    /// fence before this one is let go.
    pub(super) fn fence(&mut self, tid: u64, context: &mut Context<'_>) {
        let Some(lane) = self.lanes.get_mut(tid) else {
            return;
        };
        let Some(fenced) = lane.fenced else { return };
        let before: Vec<CallRef> = lane
            .timeline
            .range(..=(fenced, u64::MAX))
            .map(|(&(_, key), &slot)| CallRef { slot, key })
            .collect();
        for call in before {
            let Some(slot) = self.calls.at(call) else {
                continue;
            };
            let entry = self.calls.get(slot);
            let given = entry.is_given() || entry.satisfied;
            if entry.fenced && given && entry.waiting.is_empty() {
                self.leave_timeline(slot);
                match self.calls.get(slot).kept {
                    // One of many may still come, from a buffer that was held for a long time.
                    Kept::Open => self.keep(slot, Kept::Joined, context),
                    Kept::Joined => self.forget(slot, context),
                    Kept::Lost => {}
                }
            } else if entry.end().is_some_and(|end| end.0 <= fenced) {
                self.conclude(slot, Allowed::FENCED, context);
                self.calls.get_mut(slot).fenced = true;
            }
        }
    }

    /// Operations that came before this flush and have no call by now have none.
    pub(super) fn fence_callless(&mut self, proven_by: u64, context: &mut Context<'_>) {
        let due = self
            .callless
            .iter()
            .take_while(|(_, since)| since + 1 <= proven_by)
            .count();
        let due: Vec<(CallRef, u64)> = self.callless.drain(..due).collect();
        let mut later = Vec::new();
        for (call, since) in due {
            let Some(slot) = self.calls.at(call) else {
                continue;
            };
            if self.calls.get(slot).is_call() {
                continue;
            }
            if self
                .recorded
                .is_none_or(|(_, greatest)| call.key > greatest)
            {
                // Its call may be yet to come.
                later.push((call, since));
                continue;
            }
            self.give_callless(slot, context);
        }
        for later in later.into_iter().rev() {
            self.callless.push_front(later);
        }
    }

    /// Gives the operations of an entry that has no call.
    fn give_callless(&mut self, slot: u32, context: &mut Context<'_>) {
        let waiting = std::mem::take(&mut self.calls.get_mut(slot).waiting);
        if waiting.is_empty() && self.calls.get(slot).orphaned.is_empty() {
            let externals = u64::from(self.calls.get(slot).external.is_some());
            context.out.totals.external_unplaced += externals;
            self.forget(slot, context);
            return;
        }
        let key = self.calls.get(slot).key();
        let (joined, faults, no_call) = self.callless(key, Some(slot), context);
        for Waiting {
            operation,
            supersedes,
            ..
        } in waiting
        {
            let parts =
                self.callless_parts(&joined, faults, no_call, supersedes.is_some(), context);
            let (row, joined, faults) = build(parts, Some(operation.clone()));
            let effect = Effect::of(&joined, faults);
            context.out.row(row, effect, supersedes);
            self.calls.get_mut(slot).orphaned.push((operation, effect));
        }
        self.keep(slot, Kept::Lost, context);
        self.count(slot, context);
    }

    /// What is said of an operation with this id and no call.
    fn callless(
        &self,
        key: u64,
        slot: Option<u32>,
        context: &Context<'_>,
    ) -> (Joined, FaultSet, Why) {
        let mut faults = FaultSet::default();
        let inside = self
            .recorded
            .map(|(smallest, greatest)| smallest <= key && key <= greatest);
        if inside == Some(true) {
            faults.add(FaultCode::L02);
        }
        let external = slot.and_then(|slot| self.calls.get(slot).external);
        let joined = match (external, inside) {
            (Some(_), _) => slot.map(|slot| self.join(slot, context).0),
            (None, Some(true)) => Some(unjoined(Binding::Lost)),
            (None, Some(false)) => Some(unattributed(Unattributed::OutsideRecording)),
            (None, None) => None,
        };
        let joined = joined.unwrap_or_else(|| unattributed(Unattributed::NoEpochEvidence));
        let no_call = if inside == Some(true) {
            Why::Dropped
        } else {
            Why::NotVisible
        };
        (joined, faults, no_call)
    }

    fn callless_parts(
        &self,
        joined: &Joined,
        faults: FaultSet,
        no_call: Why,
        supersedes: bool,
        context: &Context<'_>,
    ) -> Parts<'static> {
        Parts {
            process: context.process,
            session: self.number,
            correlation: UnwrappedCorrelationId(0),
            evidence: CallEvidence::default(),
            joined: joined.clone(),
            faults,
            supersedes,
            no_operation: Why::NotApplicable,
            no_call,
            epsilon_ns: context.limits.epsilon_ns,
        }
    }

    /// The driver or the device launched it for itself: it has no call by nature.
    pub(super) fn give_internal(&mut self, operation: Operation, context: &mut Context<'_>) {
        let joined = unattributed(Unattributed::InternalLaunch);
        let parts = self.callless_parts(
            &joined,
            FaultSet::default(),
            Why::NotApplicable,
            false,
            context,
        );
        let (row, joined, faults) = build(parts, Some(operation));
        context.out.row(row, Effect::of(&joined, faults), None);
    }

    /// An operation without times that no call is known for.
    pub(super) fn give_unplaced(
        &mut self,
        operation: Operation,
        evicted: bool,
        context: &mut Context<'_>,
    ) {
        context.out.totals.operations.add(operation.kind);
        let key = self.place_by_newest(operation.correlation);
        let (joined, mut faults, no_call) = self.callless(key, None, context);
        if evicted {
            faults.add(FaultCode::L07);
            context.out.forget(context.process, 1);
        }
        let parts = self.callless_parts(&joined, faults, no_call, false, context);
        let (row, joined, faults) = build(parts, Some(operation));
        context.out.row(row, Effect::of(&joined, faults), None);
    }

    /// The call of operations that were given without one has come: they wait again.
    pub(super) fn recall_orphans(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get_mut(slot);
        if entry.orphaned.is_empty() {
            return;
        }
        for (operation, effect) in std::mem::take(&mut entry.orphaned) {
            let supersedes = Some(effect);
            entry.waiting.push(Waiting {
                operation,
                supersedes,
                ambiguous: false,
            });
        }
        if entry.kept != Kept::Open {
            entry.kept = Kept::Open;
            self.open.push_back(self.calls.reference(slot));
            self.open_count += 1;
        }
        self.count(slot, context);
    }

    /// An external id came for a call whose row is given: does it agree?
    pub(super) fn check_given(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        let (Some(call), Some(external)) = (&entry.host, entry.external) else {
            return;
        };
        let (said, named) = (call.attribution.epoch(), external.unpack());
        if entry.is_given() && said != named.epoch() {
            let code = match named {
                Attribution::Foreign(_) => FaultCode::W05,
                _ => FaultCode::W03,
            };
            let detail = format!("an external id that came after the call's row names {named:?}");
            let (epoch, at) = (said.or(named.epoch()), Some(call.entered));
            context.out.totals.wrong += 1;
            context
                .out
                .fault(loose(context.process, code, epoch, at, 1, detail));
        }
    }

    /// Gives what waited for other rings for two flushes.
    pub(super) fn release_held(&mut self, context: &mut Context<'_>) {
        while let Some(&(call, since)) = self.held.front() {
            if context.flushes < since + AGED_AFTER {
                break;
            }
            self.held.pop_front();
            if let Some(slot) = self.calls.at(call) {
                self.calls.get_mut(slot).held = false;
                self.evaluate(slot, Allowed::AGED, context);
            }
        }
    }

    /// Makes room for one more entry.
    pub(super) fn make_room(&mut self, context: &mut Context<'_>) {
        while self.open_count >= context.limits.open_calls.max(2) {
            let Some(oldest) = self.open.pop_front() else {
                break;
            };
            if let Some(slot) = self.calls.at(oldest)
                && self.calls.get(slot).kept == Kept::Open
            {
                self.evict(slot, context);
            }
        }
        let calls = &self.calls;
        let is_open = |call: &CallRef| {
            calls
                .at(*call)
                .is_some_and(|slot| calls.get(slot).kept == Kept::Open)
        };
        if self.open.len() > 2 * self.open_count + 1_024 {
            self.open.retain(is_open);
        }
        if self.callless.len() > 2 * self.open_count + 1_024 {
            self.callless.retain(|(call, _)| is_open(call));
        }
        if self.held.len() > 2 * self.open_count + 1_024 {
            self.held.retain(|(call, _)| is_open(call));
        }
    }

    /// Forgets an entry; if its row is not given yet it is given as it stands, with L07.
    pub(super) fn evict(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        let kept = entry.kept;
        let silent = kept != Kept::Open || !(entry.pending || entry.operations_given > 0);
        if !silent {
            context.out.forget(context.process, 1);
            let waiting = std::mem::take(&mut self.calls.get_mut(slot).waiting);
            let (joined, _, speaker) = self.join(slot, context);
            let mut faults = FaultSet::default();
            faults.add(FaultCode::L07);
            let is_call = self.calls.get(slot).is_call();
            if waiting.is_empty() && self.calls.get(slot).pending {
                self.give_call(slot, speaker, joined, faults, Why::Dropped, context);
            } else if is_call {
                for waiting in waiting {
                    self.give_one(slot, speaker, joined.clone(), waiting, faults, context);
                }
            } else {
                let bound = unjoined(Binding::Lost);
                let joined = if self.calls.get(slot).external.is_some() {
                    joined
                } else {
                    bound
                };
                for Waiting {
                    operation,
                    supersedes,
                    ..
                } in waiting
                {
                    let parts = self.callless_parts(
                        &joined,
                        faults,
                        Why::Dropped,
                        supersedes.is_some(),
                        context,
                    );
                    let (row, joined, faults) = build(parts, Some(operation));
                    context
                        .out
                        .row(row, Effect::of(&joined, faults), supersedes);
                }
            }
        }
        self.forget(slot, context);
    }

    fn leave_timeline(&mut self, slot: u32) {
        let entry = self.calls.get_mut(slot);
        let key = entry.key();
        if let Some((tid, start)) = entry.on_timeline.take()
            && let Some(lane) = self.lanes.get_mut(tid)
        {
            lane.timeline.remove(&(start, key));
        }
    }

    /// Removes an entry.
    pub(super) fn forget(&mut self, slot: u32, context: &mut Context<'_>) {
        self.leave_timeline(slot);
        let entry = self.calls.remove(slot);
        self.open_count -= usize::from(entry.kept == Kept::Open);
        if entry.pending {
            context.out.totals.pending = context.out.totals.pending.saturating_sub(1);
        }
        if entry.holds_epoch
            && let Some(epoch) = entry.host.and_then(|call| call.attribution.epoch())
        {
            context.epochs.release(epoch);
        }
    }

    /// Decides all calls, and where nothing more comes at all, everything.
    pub(super) fn finish(&mut self, allowed: Allowed, context: &mut Context<'_>) {
        let slots: Vec<CallRef> = self
            .calls
            .slots()
            .into_iter()
            .map(|slot| self.calls.reference(slot))
            .collect();
        for call in &slots {
            if let Some(slot) = self.calls.at(*call) {
                self.conclude(slot, allowed, context);
            }
        }
        if allowed == Allowed::ALL {
            for call in &slots {
                if let Some(slot) = self.calls.at(*call)
                    && !self.calls.get(slot).is_call()
                {
                    self.give_callless(slot, context);
                }
            }
            self.end_unplaced(context);
        }
    }
}
