//! Calls without an operation, and operations without a call.

use super::calls::{CallRef, Entry, Kept, Waiting};
use super::emit::{Effect, FaultSet};
use super::graphs::UNDER_WAY;
use super::join::{CallEvidence, Joined};
use super::rows::{Parts, build, unattributed, unjoined};
use super::session::{Context, Session};
use super::settle::Allowed;
use crate::evidence::Why;
use crate::fault::FaultCode;
use crate::id::UnwrappedCorrelationId;
use crate::observation::{Operation, OperationsDue};
use crate::row::{Binding, RowGraph, Unattributed};

impl Session {
    /// Says of a call that it has no operation, unless another one has it.
    pub(super) fn give_without(&mut self, slot: u32, allowed: Allowed, context: &mut Context<'_>) {
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
        let due = match entry.due() {
            None => return,
            Some(OperationsDue::One | OperationsDue::Many) if self.may_be_captured(entry) => {
                OperationsDue::MaybeCaptured
            }
            Some(due) => due,
        };
        if due == OperationsDue::None {
            self.settle(slot, context);
            return;
        }
        let one_is_due = matches!(due, OperationsDue::One | OperationsDue::Many)
            && !entry.failed()
            && !self.may_launch_nothing(slot);
        let first_key = entry
            .parent
            .map_or(entry.key(), |outer| outer.min(entry.key()));
        let newest = self.newest_operation(first_key);
        let beyond_device = newest.is_none_or(|newest| first_key > newest);
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
        // Above the last operation it is the edge of the recording, if there was any operation.
        let not_collected = self.without_operations();
        let never_recorded = newest.is_none() && self.ended && !not_collected;
        let lost = one_is_due && (!beyond_device || never_recorded);
        let mut faults = FaultSet::default();
        if lost {
            faults.add(FaultCode::L03);
        }
        let no_operation = match (lost, one_is_due) {
            (true, _) => Why::Dropped,
            (false, true) if not_collected => Why::NotCollected,
            (false, true) => Why::Pending,
            (false, false) if due == OperationsDue::MaybeCaptured => Why::MaybeCaptured,
            (false, false) => Why::NotApplicable,
        };
        self.give_call(slot, speaker, &joined, faults, no_operation, context);
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

    /// Whether neither our own record of a call nor the change that would tell of its node need have
    /// come: both may be lost.
    fn may_be_captured(&self, entry: &Entry) -> bool {
        let during = entry.start().zip(entry.end());
        entry.host.is_none() && during.is_some_and(|(from, to)| self.graphs.may_have_lost(from, to))
    }

    pub(super) fn give_call(
        &mut self,
        slot: u32,
        speaker: u32,
        joined: &Joined,
        mut faults: FaultSet,
        no_operation: Why,
        context: &mut Context<'_>,
    ) {
        self.resolve_doubt(slot);
        let superseded = self.calls.get_mut(slot).without.take();
        if self.calls.get(slot).reused {
            faults.add(FaultCode::W04);
        }
        let epsilon_ns = context.limits.epsilon_ns;
        let graph = self.graph_of(slot, None, joined, &mut faults, epsilon_ns);
        let parts = Parts {
            process: context.process,
            session: self.number,
            correlation: self.calls.get(speaker).correlation(),
            evidence: self.evidence(slot, speaker),
            joined,
            graph,
            faults,
            supersedes: superseded.is_some(),
            no_operation,
            no_call: Why::Dropped,
            epsilon_ns: context.limits.epsilon_ns,
            imported: self.imported,
        };
        let (row, faults) = build(&parts, None);
        let mut effect = Effect::of(joined, faults, row.graph.as_ref());
        effect.after_recording = no_operation == Why::Pending;
        context.out.row(row, effect, superseded);
        self.calls.get_mut(slot).without = Some(effect);
    }

    /// This call was captured: nothing of it runs, and no operation of it is missed.
    pub(super) fn capture(&mut self, key: u64, context: &mut Context<'_>) {
        // As many as calls that may be open.
        self.captured.insert(key, context.limits.open_calls);
        let Some(slot) = self.calls.find(key) else {
            return;
        };
        let entry = self.calls.get_mut(slot);
        entry.captured = true;
        if entry.without.is_some_and(|row| row.has(FaultCode::L03)) {
            let (mut joined, _, speaker) = self.join(slot, context);
            if joined.binding == Binding::Lost {
                // It launched nothing that could belong to an epoch.
                joined = unattributed(Unattributed::NoEpochEvidence);
            }
            let (faults, none_due) = (FaultSet::default(), Why::NotApplicable);
            self.give_call(slot, speaker, &joined, faults, none_due, context);
            self.count(slot, context);
        } else {
            self.changed(slot, context);
        }
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
            if entry.is_settled() {
                self.conclude(slot, Allowed::FENCED, context);
                self.leave_timeline(slot);
                if self.calls.get(slot).kept == Kept::Open {
                    // One of many may still come, from a buffer that was held for a long time.
                    self.keep(slot, Kept::Joined, context);
                }
            } else if entry.end().is_some_and(|end| end.0 <= fenced) {
                // A runtime call that made it may have been under way at the fence.
                if entry.fenced || !entry.is_doubtful() {
                    self.conclude(slot, Allowed::FENCED, context);
                }
                self.calls.get_mut(slot).fenced = true;
            }
        }
    }

    /// Operations that came before this flush and have no call by now have none.
    pub(super) fn fence_callless(&mut self, proven_by: u64, context: &mut Context<'_>) {
        let due = self
            .callless
            .iter()
            .take_while(|(_, since)| *since < proven_by)
            .count();
        let due: Vec<(CallRef, u64)> = self.callless.drain(..due).collect();
        let mut later = Vec::new();
        for (call, since) in due {
            let Some(slot) = self.calls.at(call) else {
                continue;
            };
            let entry = self.calls.get(slot);
            if entry.is_call() {
                continue;
            }
            let may_be_under_way = entry.graph.is_some()
                && entry.waiting.is_empty()
                && self.lanes.flushes() < since + UNDER_WAY;
            if may_be_under_way {
                later.push((call, since));
                continue;
            }
            let recorded = self.recorded(call.key);
            if recorded.is_none_or(|(_, greatest)| call.key > greatest) {
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
    pub(super) fn give_callless(&mut self, slot: u32, context: &mut Context<'_>) {
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
            let mut faults = faults;
            let epsilon_ns = context.limits.epsilon_ns;
            let graph = self.graph_of(slot, Some(&operation), &joined, &mut faults, epsilon_ns);
            let parts = self.callless_parts(
                &joined,
                graph,
                faults,
                no_call,
                supersedes.is_some(),
                context,
            );
            let (row, faults) = build(&parts, Some(operation.clone()));
            let effect = Effect::of(&joined, faults, row.graph.as_ref());
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
        let recorded = self.recorded(key);
        let inside = recorded.map(|(smallest, greatest)| smallest <= key && key <= greatest);
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

    pub(super) fn callless_parts<'a>(
        &self,
        joined: &'a Joined,
        graph: Option<RowGraph>,
        faults: FaultSet,
        no_call: Why,
        supersedes: bool,
        context: &Context<'_>,
    ) -> Parts<'a> {
        Parts {
            process: context.process,
            session: self.number,
            correlation: UnwrappedCorrelationId(0),
            evidence: CallEvidence::default(),
            joined,
            graph,
            faults,
            supersedes,
            no_operation: Why::NotApplicable,
            no_call,
            epsilon_ns: context.limits.epsilon_ns,
            imported: self.imported,
        }
    }

    /// The driver or the device launched it for itself: it has no call by nature.
    pub(super) fn give_internal(&mut self, operation: Operation, context: &mut Context<'_>) {
        let joined = unattributed(Unattributed::InternalLaunch);
        let mut faults = FaultSet::default();
        let graph = self.graph_by_node(&operation, &mut faults);
        let parts = self.callless_parts(&joined, graph, faults, Why::NotApplicable, false, context);
        let (row, faults) = build(&parts, Some(operation));
        let effect = Effect::of(&joined, faults, row.graph.as_ref());
        context.out.row(row, effect, None);
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
        let graph = self.graph_by_node(&operation, &mut faults);
        let parts = self.callless_parts(&joined, graph, faults, no_call, false, context);
        let (row, faults) = build(&parts, Some(operation));
        let effect = Effect::of(&joined, faults, row.graph.as_ref());
        context.out.row(row, effect, None);
    }

    /// The call of operations that were given without one has come: they wait again.
    pub(super) fn recall_orphans(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get_mut(slot);
        if entry.orphaned.is_empty() {
            return;
        }
        // Their nodes run anew, as operations of the call.
        if let Some(graph) = &mut entry.graph {
            graph.forget_runs();
        }
        for (operation, effect) in std::mem::take(&mut entry.orphaned) {
            let supersedes = Some(effect);
            entry.waiting.push(Waiting {
                operation,
                supersedes,
                ambiguous: false,
            });
        }
        self.reopen(slot);
        self.count(slot, context);
    }
}
