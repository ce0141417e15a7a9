//! Several records, one call.
//!
//! A runtime call makes a driver call, and CUPTI records both; whether the two have one id or two is
//! not documented. With one id they meet in one entry. With two, the driver call is nested in the
//! runtime call of its thread that surrounds it in time: one call, whose operation may carry either
//! id. The middle of the inner call decides, so that a small difference between the clocks of
//! callbacks and records does not matter.
//!
//! A runtime call may also make several driver calls, which bear its id where ids are shared: then
//! they follow one another with no other call of the thread between them.

use super::calls::{CallRef, Calls, Entry};
use super::emit::loose;
use super::session::{Context, Session};
use super::settle::Allowed;
use crate::fault::FaultCode;
use crate::id::HostNanos;
use crate::observation::Call;

/// Runtime records that may enclose a driver call: those that began last before it.
const ENCLOSING_TRIED: usize = 8;

/// What a call's own record is to an entry.
pub(super) enum Same {
    /// The entry has none yet.
    Free,
    /// It is the same record.
    Duplicate,
    /// Both interfaces gave one for the same call.
    Outer,
    /// Another part of the same runtime call.
    Part,
    /// It is another call.
    Other,
}

/// How much before its runtime call a driver call may seem to begin.
const SLACK_NS: u64 = 100_000;

/// The middle of a call, as twice its time.
fn twice_middle(entry: &Entry) -> Option<u128> {
    let (start, end) = (entry.start()?, entry.end()?);
    Some(u128::from(start.0) + u128::from(end.0))
}

fn encloses(outer: &Entry, inner: &Entry) -> bool {
    let (Some(start), Some(end), Some(middle)) = (outer.start(), outer.end(), twice_middle(inner))
    else {
        return false;
    };
    2 * u128::from(start.0) <= middle && middle <= 2 * u128::from(end.0)
}

/// Whether it is a runtime call that can have made a driver call of another id.
fn can_enclose(entry: &Entry) -> bool {
    entry.is_runtime_only() && entry.asks_for_work()
}

/// Whether it is a driver call that asks for work, or did when it was captured: our own callback
/// records no other.
fn can_be_nested(entry: &Entry) -> bool {
    entry.is_driver()
        && !entry.is_internal()
        && entry.parent.is_none()
        && (entry.asks_for_work() || entry.host.is_some() || entry.captured)
}

impl Session {
    /// What a call's own record is to an entry that has one already.
    pub(super) fn same_call(&self, slot: u32, call: &Call) -> Same {
        let entry = self.calls.get(slot);
        let Some(known) = &entry.host else {
            return Same::Free;
        };
        if known == call {
            return Same::Duplicate;
        }
        let nested = |outer: &Call, inner: &Call| {
            outer.thread == inner.thread
                && outer.api.domain != inner.api.domain
                && outer.entered <= inner.entered
                && inner.exited.unwrap_or(inner.entered)
                    <= outer.exited.unwrap_or(HostNanos(u64::MAX))
        };
        if nested(call, known) || nested(known, call) {
            Same::Outer
        } else if call.thread == known.thread
            && self.is_adjacent(
                slot,
                call.thread.tid,
                Some(known.entered),
                Some(call.entered),
            )
        {
            Same::Part
        } else {
            Same::Other
        }
    }

    /// Whether no other call of the thread began between these two records of one id: then a
    /// runtime call made both, and gave them its id.
    pub(super) fn is_adjacent(
        &self,
        slot: u32,
        tid: u64,
        first: Option<HostNanos>,
        second: Option<HostNanos>,
    ) -> bool {
        let key = self.calls.get(slot).key();
        let (Some(first), Some(second), Some(lane)) = (first, second, self.lanes.get(tid)) else {
            return false;
        };
        let (from, to) = (first.min(second).0, first.max(second).0);
        let mut between = lane
            .timeline
            .range((from, 0)..=(to, u64::MAX))
            .map(|(&(_, key), _)| key);
        self.calls
            .get(slot)
            .on_timeline
            .is_some_and(|(known, _)| known == tid)
            && between.all(|other| other == key)
    }

    /// Two calls of one domain bear one id.
    pub(super) fn reuse(&mut self, slot: u32, context: &mut Context<'_>) {
        let entry = self.calls.get_mut(slot);
        entry.reused = true;
        if entry.is_given() {
            let at = entry.start();
            let detail = "another call with the id of a call whose row was given".to_owned();
            context.out.totals.wrong += 1;
            context
                .out
                .fault(loose(context.process, FaultCode::W04, None, at, 1, detail));
        }
    }

    /// Two different calls bear one id: the earlier is given as it stands, and both are W04.
    pub(super) fn replace(&mut self, slot: u32, context: &mut Context<'_>) -> u32 {
        let key = self.calls.get(slot).key();
        self.calls.get_mut(slot).reused = true;
        self.conclude(slot, Allowed::ALL, context);
        self.forget(slot, context);
        let slot = self.create(key, context);
        self.calls.get_mut(slot).reused = true;
        slot
    }

    /// Puts a call on its thread's timeline, and finds what it is nested in or what is nested in it.
    pub(super) fn register(&mut self, slot: u32, tid: u64, context: &mut Context<'_>) {
        let entry = self.calls.get(slot);
        let (Some(start), Some(end)) = (entry.start(), entry.end()) else {
            return;
        };
        let this = self.calls.reference(slot);
        let lane = self.lanes.lane(tid, context.limits.threads);
        if entry.on_timeline.is_none() {
            lane.timeline.insert((start.0, this.key), slot);
            self.calls.get_mut(slot).on_timeline = Some((tid, start.0));
        }
        if !self.runtime_seen {
            return;
        }
        let entry = self.calls.get(slot);
        if can_be_nested(entry) {
            // Begun before the end of this one: its middle is not after that.
            let begun = lane.timeline.range(..=(end.0.max(start.0), u64::MAX));
            let others = begun
                .rev()
                .map(|(_, &other)| other)
                .filter(|&other| other != slot);
            let outer = others.take(ENCLOSING_TRIED).find(|&outer| {
                can_enclose(self.calls.get(outer)) && encloses(self.calls.get(outer), entry)
            });
            if let Some(outer) = outer {
                let outer = self.calls.reference(outer);
                self.nest(this, outer, context);
            }
        } else if can_enclose(entry) {
            let nested = |calls: &Calls, inner: u32| {
                inner != slot
                    && can_be_nested(calls.get(inner))
                    && encloses(entry, calls.get(inner))
            };
            let within = lane.timeline.range(..=(end.0, u64::MAX)).rev();
            let inner: Vec<CallRef> = within
                .take_while(|&(&(begun, _), _)| begun.saturating_add(SLACK_NS) >= start.0)
                .map(|(_, &inner)| inner)
                .filter(|&inner| nested(&self.calls, inner))
                .map(|inner| self.calls.reference(inner))
                .collect();
            for inner in inner.into_iter().rev() {
                self.nest(inner, this, context);
            }
        }
    }

    fn nest(&mut self, inner: CallRef, outer: CallRef, context: &mut Context<'_>) {
        if let (Some(inner_slot), Some(outer_slot)) = (self.calls.at(inner), self.calls.at(outer)) {
            self.calls.get_mut(inner_slot).parent = Some(outer.key);
            self.calls.get_mut(outer_slot).children.push(inner.key);
            self.changed(outer_slot, context);
        }
    }
}
