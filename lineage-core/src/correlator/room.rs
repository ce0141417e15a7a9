//! Keeping within the limits: what is kept, for how long, and what gives way.
//!
//! An entry is *open* while something is still to come to it. One that is *joined*, or was given as
//! *lost*, is kept for a while in case more comes after all, and then forgotten without a fault.
//! When there are too many open ones the oldest is given as it stands, with L07.

use super::calls::{CallRef, Kept, Waiting};
use super::emit::{Effect, FaultSet};
use super::rows::{build, unjoined};
use super::session::{Context, Session};
use crate::evidence::Why;
use crate::fault::FaultCode;
use crate::row::Binding;

impl Session {
    /// Changes what an entry is kept for. Those kept longest give way, without a fault.
    pub(super) fn keep(&mut self, slot: u32, kept: Kept, context: &mut Context<'_>) {
        let reference = self.calls.reference(slot);
        let entry = self.calls.get_mut(slot);
        if entry.kept == kept || !entry.is_live() {
            return;
        }
        self.open_count -= usize::from(entry.kept == Kept::Open);
        entry.kept = kept;
        if kept != Kept::Open && entry.graph.is_some() {
            self.close_launch(slot);
        }
        let entry = self.calls.get_mut(slot);
        if kept == Kept::Joined
            && std::mem::take(&mut entry.holds_epoch)
            && let Some(epoch) = entry
                .host
                .as_ref()
                .and_then(|call| call.attribution.epoch())
        {
            context.epochs.release(epoch);
        }
        if kept == Kept::Open {
            return;
        }
        let remembered = entry.remembered();
        let before = std::mem::replace(&mut entry.kept_operations, remembered);
        self.kept_operations = self.kept_operations + remembered as usize - before as usize;
        match kept {
            Kept::Open => {}
            Kept::Joined => self.joined.push_back(reference),
            Kept::Lost => self.lost.push_back(reference),
        }
        self.let_go(Kept::Joined, context);
        self.let_go(Kept::Lost, context);
    }

    /// Forgets those kept longest for this while there are too many, or too many operations of them.
    fn let_go(&mut self, kept: Kept, context: &mut Context<'_>) {
        let limits = context.limits;
        let bound = match kept {
            Kept::Joined => limits.joined_calls,
            _ => limits.lost_calls,
        };
        loop {
            let list = match kept {
                Kept::Joined => &mut self.joined,
                _ => &mut self.lost,
            };
            let has_room = list.len() <= bound.max(1);
            if (has_room && self.kept_operations <= limits.kept_operations) || list.len() <= 1 {
                break;
            }
            let Some(oldest) = list.pop_front() else {
                break;
            };
            if let Some(slot) = self.calls.at(oldest)
                && self.calls.get(slot).kept == kept
            {
                self.evict(slot, context);
            }
        }
    }

    /// Something is to come to this entry after all.
    pub(super) fn reopen(&mut self, slot: u32) {
        let entry = self.calls.get_mut(slot);
        if entry.kept != Kept::Open {
            entry.kept = Kept::Open;
            self.kept_operations -= std::mem::take(&mut entry.kept_operations) as usize;
            self.open.push_back(self.calls.reference(slot));
            self.open_count += 1;
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
        self.prune_launches();
    }

    /// Forgets an entry; if its row is not given yet it is given as it stands, with L07.
    pub(super) fn evict(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        let kept = entry.kept;
        let silent = !entry.pending && (kept != Kept::Open || entry.operations_given == 0);
        if !silent {
            context.out.forget(context.process, 1);
            let waiting = std::mem::take(&mut self.calls.get_mut(slot).waiting);
            let (joined, _, speaker) = self.join(slot, context);
            let mut faults = FaultSet::default();
            faults.add(FaultCode::L07);
            let is_call = self.calls.get(slot).is_call();
            if waiting.is_empty() && self.calls.get(slot).pending {
                self.give_call(slot, speaker, &joined, faults, Why::Dropped, context);
            } else if is_call {
                for waiting in waiting {
                    self.give_one(slot, speaker, &joined, waiting, faults, context);
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
                    let mut faults = faults;
                    let epsilon_ns = context.limits.epsilon_ns;
                    let graph =
                        self.graph_of(slot, Some(&operation), &joined, &mut faults, epsilon_ns);
                    let parts = self.callless_parts(
                        &joined,
                        graph,
                        faults,
                        Why::Dropped,
                        supersedes.is_some(),
                        context,
                    );
                    let (row, faults) = build(&parts, Some(operation));
                    let effect = Effect::of(&joined, faults, row.graph.as_ref());
                    context.out.row(row, effect, supersedes);
                }
            }
        }
        self.forget(slot, context);
    }

    pub(super) fn leave_timeline(&mut self, slot: u32) {
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
        if !self.calls.get(slot).is_live() {
            return;
        }
        self.leave_timeline(slot);
        self.close_launch(slot);
        let entry = self.calls.remove(slot);
        self.open_count -= usize::from(entry.kept == Kept::Open);
        self.kept_operations -= entry.kept_operations as usize;
        if entry.pending {
            context.out.totals.pending = context.out.totals.pending.saturating_sub(1);
        }
        if entry.holds_epoch
            && let Some(epoch) = entry.host.and_then(|call| call.attribution.epoch())
        {
            context.epochs.release(epoch);
        }
    }
}
