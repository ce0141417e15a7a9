//! When a row is given.
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
use super::rows::{Parts, build};
use super::session::{Context, Session};
use crate::evidence::Why;
use crate::fault::FaultCode;
use crate::id::{Attribution, PackedEpoch};
use crate::observation::OperationsDue;
use crate::row::Binding;

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
    pub(super) operations: bool,
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
    pub(super) const FENCED: Self = Self {
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

    pub(super) fn permits(self, missing: Missing) -> bool {
        (self.call || !(missing.call || missing.order))
            && (self.device || !(missing.api || missing.external || missing.changes))
            && (self.host || !missing.host)
    }
}

impl Session {
    /// Something came to this entry: gives what can be given.
    pub(super) fn changed(&mut self, slot: u32, context: &mut Context<'_>) {
        self.evaluate(slot, Allowed::NOTHING, context);
    }

    pub(super) fn evaluate(&mut self, slot: u32, allowed: Allowed, context: &mut Context<'_>) {
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

    pub(super) fn evidence(&self, slot: u32, speaker: u32) -> CallEvidence<'_> {
        let (entry, speaking) = (self.calls.get(slot), self.calls.get(speaker));
        let parent = speaking.parent.and_then(|parent| self.calls.find(parent));
        let parent = parent
            .filter(|&parent| parent != slot)
            .map(|parent| self.calls.get(parent));
        let of_parent = parent.and_then(|parent| parent.external);
        let (own, second, of_entry) = (speaking.external, speaking.other_external, entry.external);
        let external = own.or(second).or(of_entry).or(of_parent);
        let other = |named: Option<PackedEpoch>| named.filter(|_| named != external);
        CallEvidence {
            call: speaking.host.as_ref(),
            api: speaking.api().or(entry.api()),
            external,
            other_external: other(second).or(other(of_entry)).or(other(of_parent)),
            containment: speaking.containment,
            external_expected: self.external_seen,
            call_expected: self.call_expected(),
        }
    }

    pub(super) fn join(&self, slot: u32, context: &Context<'_>) -> (Joined, Missing, u32) {
        let speaker = self.speaker(slot);
        let known = Known {
            epochs: context.epochs,
            threads: context.threads,
            host_evidence: context.host_evidence,
            candidates: self.imported.is_some(),
            gaps: context.gaps,
        };
        let (joined, mut missing) = join(&self.evidence(slot, speaker), &known);
        // Only the record of a runtime call could say that it made several calls of one id.
        missing.api |= self.calls.get(slot).is_doubtful();
        let launch = self.launch_missing(slot, context);
        missing.changes = launch.changes;
        missing.order = launch.order;
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
        self.resolve_doubt(slot);
        let mut waiting = std::mem::take(&mut self.calls.get_mut(slot).waiting);
        waiting.sort_by_key(|waiting| waiting.operation.start);
        let mut faults = FaultSet::default();
        if self.calls.get(slot).reused || self.calls.get(speaker).reused {
            faults.add(FaultCode::W04);
        }
        for waiting in waiting {
            self.give_one(slot, speaker, &joined, waiting, faults, context);
        }
        self.satisfy_nested(slot, context);
        self.settle(slot, context);
    }

    /// Only other rings can have what is missing: it is waited for no longer than two flushes.
    pub(super) fn hold(&mut self, slot: u32, missing: Missing, context: &Context<'_>) {
        if Allowed::AGED.permits(missing) && !self.calls.get(slot).held {
            self.calls.get_mut(slot).held = true;
            self.held
                .push_back((self.calls.reference(slot), context.flushes));
        }
    }

    pub(super) fn give_one(
        &mut self,
        slot: u32,
        speaker: u32,
        joined: &Joined,
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
        let epsilon_ns = context.limits.epsilon_ns;
        let graph = self.graph_of(slot, Some(&operation), joined, &mut faults, epsilon_ns);
        let entry = self.calls.get(slot);
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
            graph,
            faults,
            supersedes: superseded.is_some(),
            no_operation: Why::NotApplicable,
            no_call: Why::Dropped,
            epsilon_ns: context.limits.epsilon_ns,
            imported: self.imported,
        };
        let (row, faults) = build(&parts, Some(operation));
        if let (Binding::Bound(epoch), None) = (joined.binding, joined.sources.callback) {
            context.launched(epoch);
        }
        let effect = Effect::of(joined, faults, row.graph.as_ref());
        context.out.row(row, effect, superseded);
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
    pub(super) fn settle(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        let complete = match entry.due() {
            Some(OperationsDue::One) => {
                entry.operations_given as usize >= entry.room() || entry.satisfied
            }
            Some(OperationsDue::None) => true,
            Some(OperationsDue::Many | OperationsDue::Any | OperationsDue::MaybeCaptured)
            | None => false,
        };
        if complete && entry.waiting.is_empty() {
            self.keep(slot, Kept::Joined, context);
        }
    }

    /// Brings the totals in line with what is known of this entry by now.
    pub(super) fn count(&mut self, slot: u32, context: &mut Context<'_>) {
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

    /// A row is given although no runtime call is known that made the several calls of its id.
    pub(super) fn resolve_doubt(&mut self, slot: u32) {
        let entry = self.calls.get_mut(slot);
        entry.reused |= entry.is_doubtful();
    }

    /// Decides an entry of which nothing more will come.
    pub(super) fn conclude(&mut self, slot: u32, allowed: Allowed, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        if !entry.is_call() {
            return;
        }
        if entry.is_given() && entry.is_doubtful() && !entry.reused {
            self.reuse(slot, context);
        }
        let entry = self.calls.get(slot);
        if !entry.waiting.is_empty() {
            self.evaluate(slot, allowed, context);
        } else if !entry.is_given() && !entry.satisfied {
            self.give_without(slot, allowed, context);
            self.count(slot, context);
        }
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

    /// Decides all calls, and where nothing more comes at all, everything.
    pub(super) fn finish(&mut self, allowed: Allowed, context: &mut Context<'_>) {
        self.retry_timeless(context);
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
