//! Epochs: what is known of each, whether it launched, and its handoffs.
//!
//! An epoch's state is dropped when nothing more can be said of it: it is retired, its faults are
//! decided, and no open call refers to it. Records of one moment come from the rings of several
//! threads, in any order, so a retired epoch is decided only after
//! [`AGED_AFTER`] further flushes, or at the end.
//!
//! * **L05** for each handoff that was sent and neither opened nor abandoned. A carrier keeps its
//!   epoch from retiring, so what is left over was forgotten; while the epoch lives, it is under
//!   way.
//! * **L04** if its work was handed on, it was not cancelled, and no call was made under it, nor
//!   under any epoch that was linked from it. Its work was handed on if a handoff of it was opened
//!   or forgotten, if another epoch was linked from it, if it was stepped, or if a launch boundary
//!   was entered for it: an epoch that ended where it was declared asked for no GPU work, and is
//!   only counted. A batch that still lives might yet launch: then this waits until every epoch
//!   that was linked from it is decided; at the end such an epoch is undecided. Without any device
//!   evidence no launch can be seen, and L04 is not claimed.
//!
//! What did not fit into a ring may have been the very record that is missed: neither is claimed
//! where records may have been lost since the handoff was sent, or since the epoch was declared.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::declared::DeclaredIds;
use super::emit::{Outbox, loose};
use super::limits::Limits;
use crate::fault::FaultCode;
use crate::id::{HandoffId, HostNanos, LaunchEpoch, ProcessOrdinal, TaskId, ThreadKey};
use crate::observation::{
    Declared, Gap, Handoff, LinkKind, Linked, Mark, Marked, Received, Retired, RetiredAs, Sent,
    Stepped,
};

/// Flushes after which no ring holds a record from before them any more: at most one is reported
/// between two readings of the rings.
pub(super) const AGED_AFTER: u64 = 2;

/// Retired epochs that wait to be decided where there is no device evidence, and so no flush.
const WAITING_WITHOUT_DEVICE: usize = 4_096;

/// `Ready` marks kept per epoch: of the newest versions.
const READY_MARKS: usize = 16;

/// A thread, and a task where known, that an epoch came to over a recorded edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    thread: ThreadKey,
    task: Option<TaskId>,
    at: HostNanos,
}

#[derive(Debug)]
struct Outstanding {
    id: HandoffId,
    /// `None` while only its other end was seen.
    sent: Option<HostNanos>,
}

#[derive(Debug, Default)]
pub(super) struct EpochState {
    declared: Option<HostNanos>,
    /// The newest version that is known to have been made.
    newest_version: u32,
    retired: Option<(HostNanos, LaunchEpoch)>,
    cancelled: bool,
    launched: bool,
    /// Whether anyone but its declarer's own code was to work on it.
    handed_on: bool,
    aged: bool,
    decided: bool,
    places: Vec<Place>,
    places_lost: bool,
    ready: VecDeque<(u32, HostNanos)>,
    outstanding: Vec<Outstanding>,
    /// Epochs that this one was linked from.
    from: Vec<u64>,
    /// Links to epochs that are not decided yet.
    undecided_links: u32,
    /// The same work under its earlier id: it retires with this one.
    continued: Option<u64>,
    open_calls: u32,
}

/// Whether recorded edges bring an epoch to a thread or task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Yes,
    No,
    /// Not all that came to it is known any more.
    Unknown,
}

impl EpochState {
    pub(super) fn declared(&self) -> Option<HostNanos> {
        self.declared
    }

    pub(super) fn retired(&self) -> Option<HostNanos> {
        self.retired.map(|(at, _)| at)
    }

    pub(super) fn ready(&self, version: u32) -> Option<HostNanos> {
        self.ready
            .iter()
            .find(|(marked, _)| *marked == version)
            .map(|(_, at)| *at)
    }

    /// Whether it came to any task.
    pub(super) fn is_in_tasks(&self) -> bool {
        self.places.iter().any(|place| place.task.is_some())
    }

    pub(super) fn reach(&self, thread: ThreadKey, task: Option<TaskId>, by: HostNanos) -> Reach {
        let here = |place: &Place| {
            place.at <= by && (place.thread == thread || (task.is_some() && place.task == task))
        };
        if self.places.iter().any(here) {
            Reach::Yes
        } else if self.places_lost {
            Reach::Unknown
        } else {
            Reach::No
        }
    }

    fn came_to(&mut self, place: Place, bound: usize) {
        let known = |known: &&mut Place| (known.thread, known.task) == (place.thread, place.task);
        if let Some(known) = self.places.iter_mut().find(known) {
            known.at = known.at.min(place.at);
            return;
        }
        if self.places.len() >= bound.max(1) {
            self.places.remove(0);
            self.places_lost = true;
        }
        self.places.push(place);
    }
}

/// All epochs of one process.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    states: FxHashMap<u64, EpochState>,
    /// In the order they were first seen; may name epochs that are dropped already.
    order: VecDeque<u64>,
    /// Retired, with the count of flushes by then.
    retired: VecDeque<(u64, u64)>,
    first_declared: Option<HostNanos>,
    known: DeclaredIds,
    /// Records of some thread may have been lost until then.
    lost_until: Option<HostNanos>,
    /// A callback panicked: calls made since are not seen any more.
    calls_unseen: bool,
    /// Whether launches can be seen at all.
    pub(super) device_seen: bool,
    /// Whether they are only candidates, made of another tool's ranges: then none has to launch.
    pub(super) candidates: bool,
}

/// What a decision needs beside the epochs.
pub(super) struct Deciding<'a> {
    pub(super) process: ProcessOrdinal,
    pub(super) limits: &'a Limits,
    pub(super) flushes: u64,
    pub(super) out: &'a mut Outbox,
}

impl Deciding<'_> {
    /// Records of declaration and retirement may come in either order.
    fn count_live(&mut self) {
        let epochs = &mut self.out.totals.epochs;
        epochs.live = epochs.declared.saturating_sub(epochs.retired);
    }
}

impl Epochs {
    pub(super) fn get(&self, epoch: LaunchEpoch) -> Option<&EpochState> {
        self.states.get(&epoch.id.get())
    }

    /// Whether anything ever said that it exists: its declaration, a link or a step. Of one whose
    /// declaration is not held any more the versions are not known.
    pub(super) fn was_declared(&self, epoch: LaunchEpoch) -> bool {
        match self.get(epoch) {
            Some(state) if state.declared.is_some() && state.newest_version > 0 => {
                epoch.version.get() <= state.newest_version
            }
            _ => self.known.contains(epoch.id.get()),
        }
    }

    /// When the first epoch was declared, as far as it is known.
    pub(super) fn first_declared(&self) -> Option<HostNanos> {
        self.first_declared
    }

    pub(super) fn declare(&mut self, declared: &Declared, context: &mut Deciding<'_>) {
        context.out.totals.epochs.declared += 1;
        context.count_live();
        self.first_declared = Some(
            self.first_declared
                .map_or(declared.at, |first| first.min(declared.at)),
        );
        self.known.insert(declared.epoch.id.get());
        let places = context.limits.places_per_epoch;
        let state = self.state(declared.epoch.id.get(), context);
        state.declared = Some(declared.at);
        state.newest_version = state.newest_version.max(declared.epoch.version.get());
        let (thread, task, at) = (declared.thread, declared.task, declared.at);
        state.came_to(Place { thread, task, at }, places);
    }

    pub(super) fn step(&mut self, stepped: &Stepped, context: &mut Deciding<'_>) {
        self.known.insert(stepped.epoch.id.get());
        let places = context.limits.places_per_epoch;
        let state = self.state(stepped.epoch.id.get(), context);
        state.newest_version = state.newest_version.max(stepped.epoch.version.get());
        state.handed_on = true;
        let (thread, at) = (stepped.thread, stepped.at);
        state.came_to(
            Place {
                thread,
                task: None,
                at,
            },
            places,
        );
    }

    pub(super) fn mark(&mut self, marked: &Marked, context: &mut Deciding<'_>) {
        let state = self.state(marked.epoch.id.get(), context);
        match marked.mark {
            Mark::Cancelled => state.cancelled = true,
            Mark::Ready => {
                let version = marked.epoch.version.get();
                match state.ready.iter_mut().find(|(known, _)| *known == version) {
                    // The version was ready from the first time this was said.
                    Some((_, at)) => *at = (*at).min(marked.at),
                    None => state.ready.push_back((version, marked.at)),
                }
                if state.ready.len() > READY_MARKS {
                    state.ready.pop_front();
                }
            }
            Mark::Expected | Mark::BatchFormed => {}
        }
    }

    pub(super) fn send(&mut self, sent: &Sent, context: &mut Deciding<'_>) {
        context.out.totals.handoffs.sent += 1;
        let (process, bound) = (context.process, context.limits.handoffs_per_epoch);
        let state = self.state(sent.handoff.epoch.id.get(), context);
        if let Some(at) = state
            .outstanding
            .iter()
            .position(|known| known.id == sent.handoff.id)
        {
            // Its other end came first: both are known now.
            state.outstanding.remove(at);
            return;
        }
        state.outstanding.push(Outstanding {
            id: sent.handoff.id,
            sent: Some(sent.at),
        });
        if state.outstanding.len() > bound {
            state.outstanding.remove(0);
            context.out.forget(process, 1);
        }
    }

    pub(super) fn receive(&mut self, received: &Received, context: &mut Deciding<'_>) {
        context.out.totals.handoffs.received += 1;
        let places = context.limits.places_per_epoch;
        self.arrive(received.handoff, context);
        let state = self.state(received.handoff.epoch.id.get(), context);
        state.handed_on = true;
        let (thread, task, at) = (received.thread, received.task, received.at);
        state.came_to(Place { thread, task, at }, places);
    }

    pub(super) fn abandon(&mut self, handoff: Handoff, context: &mut Deciding<'_>) {
        context.out.totals.handoffs.abandoned += 1;
        self.arrive(handoff, context);
    }

    fn arrive(&mut self, handoff: Handoff, context: &mut Deciding<'_>) {
        let (process, bound) = (context.process, context.limits.handoffs_per_epoch);
        let state = self.state(handoff.epoch.id.get(), context);
        match state
            .outstanding
            .iter()
            .position(|known| known.id == handoff.id)
        {
            // Channels give in order, so this is mostly among the first.
            Some(at) => {
                if state.outstanding[at].sent.is_some() {
                    state.outstanding.remove(at);
                }
            }
            None => state.outstanding.push(Outstanding {
                id: handoff.id,
                sent: None,
            }),
        }
        if state.outstanding.len() > bound {
            state.outstanding.remove(0);
            context.out.forget(process, 1);
        }
    }

    pub(super) fn link(&mut self, linked: &Linked, context: &mut Deciding<'_>) {
        let (later, from) = (linked.epoch.id.get(), linked.from.id.get());
        self.known.insert(later);
        let state = self.state(later, context);
        state.newest_version = state.newest_version.max(linked.epoch.version.get());
        if later == from {
            return; // Another version of the same work.
        }
        if !self.known.contains(from) {
            // Its declaration is in a ring that is read later than the one with the link.
            self.state(from, context);
        }
        if let Some(earlier) = self.states.get_mut(&from) {
            earlier.handed_on = true;
        }
        let earlier = self.states.get(&from);
        let places = earlier.map(|state| (state.places.clone(), state.places_lost));
        let decided = earlier.is_none_or(|state| state.decided);
        let bound = context.limits.places_per_epoch;
        let state = self.state(later, context);
        if linked.kind == LinkKind::Continues {
            state.declared.get_or_insert(linked.at);
            state.continued = Some(from);
            // The same work: where it had come to, it still is.
            let (places, lost) = places.unwrap_or((Vec::new(), true));
            places
                .into_iter()
                .for_each(|place| state.came_to(place, bound));
            state.places_lost |= lost;
        }
        let (launched, later_decided) = (state.launched, state.decided);
        if !decided {
            if !later_decided {
                state.from.push(from);
                if let Some(earlier) = self.states.get_mut(&from) {
                    earlier.undecided_links += 1;
                }
            }
            if launched {
                self.launch_id(from, context);
            }
        }
    }

    /// A launch boundary was entered for this epoch.
    pub(super) fn enter_boundary(&mut self, epoch: LaunchEpoch, context: &mut Deciding<'_>) {
        let id = epoch.id.get();
        // Of one that was declared and is not held any more everything is said.
        if self.states.contains_key(&id) || !self.known.contains(id) {
            self.state(id, context).handed_on = true;
        }
    }

    /// Records of a thread did not fit into its ring.
    pub(super) fn gap(&mut self, gap: &Gap) {
        if gap.count > 0 {
            let until = gap.not_after.unwrap_or(HostNanos(u64::MAX));
            self.lost_until = self.lost_until.max(Some(until));
        }
    }

    /// From now on launches may have been made that nobody saw.
    pub(super) fn calls_are_unseen(&mut self) {
        self.calls_unseen = true;
    }

    pub(super) fn retire(&mut self, retired: &Retired, context: &mut Deciding<'_>) {
        context.out.totals.epochs.retired += 1;
        context.count_live();
        let mut next = Some(retired.epoch.id.get());
        let mut work = Some(retired.epoch);
        while let Some(id) = next {
            let flushes = context.flushes;
            let state = self.state(id, context);
            if state.retired.is_some() {
                return;
            }
            let epoch = work
                .take()
                .or_else(|| LaunchEpoch::from_numbers(id, crate::id::MAX_VERSION));
            state.retired = epoch.map(|epoch| (retired.at, epoch));
            state.cancelled |= retired.how == RetiredAs::Cancelled;
            next = state.continued;
            self.retired.push_back((id, flushes));
        }
        // Where flushes are rare, or there are none for want of a device, many later retirements
        // stand in for them.
        let waiting = context.limits.epochs / 2;
        let waiting = if self.device_seen {
            waiting
        } else {
            waiting.min(WAITING_WITHOUT_DEVICE)
        };
        while self.retired.len() > waiting {
            if let Some((id, _)) = self.retired.pop_front() {
                self.age(id, context);
                self.decide(id, false, context);
            }
        }
    }

    /// A call was made under this epoch.
    pub(super) fn launch(&mut self, epoch: LaunchEpoch, context: &mut Deciding<'_>) {
        self.launch_id(epoch.id.get(), context);
    }

    fn launch_id(&mut self, id: u64, context: &mut Deciding<'_>) {
        match self.states.get_mut(&id) {
            Some(state) if state.launched => return,
            _ => {}
        }
        let mut launched = vec![id];
        let mut to_decide = Vec::new();
        while let Some(id) = launched.pop() {
            let Some(state) = self.states.get_mut(&id) else {
                continue;
            };
            if !std::mem::replace(&mut state.launched, true) {
                launched.extend_from_slice(&state.from);
                if state.aged {
                    to_decide.push(id);
                }
            }
        }
        // Only now that all that launched by this are known to have.
        for id in to_decide {
            self.decide(id, false, context);
        }
    }

    /// A call that names this epoch is open: its state stays until the call is done with.
    pub(super) fn hold(&mut self, epoch: LaunchEpoch, context: &mut Deciding<'_>) {
        self.state(epoch.id.get(), context).open_calls += 1;
    }

    pub(super) fn release(&mut self, epoch: LaunchEpoch) {
        let id = epoch.id.get();
        if let Some(state) = self.states.get_mut(&id) {
            state.open_calls = state.open_calls.saturating_sub(1);
            if state.decided && state.open_calls == 0 {
                self.states.remove(&id);
            }
        }
    }

    /// Decides those that were retired long enough ago.
    pub(super) fn flushed(&mut self, context: &mut Deciding<'_>) {
        while let Some(&(id, at)) = self.retired.front() {
            if context.flushes < at + AGED_AFTER {
                break;
            }
            self.retired.pop_front();
            self.age(id, context);
            self.decide(id, false, context);
        }
    }

    /// Decides everything.
    pub(super) fn end(&mut self, context: &mut Deciding<'_>) {
        let retired: Vec<u64> = self.retired.drain(..).map(|(id, _)| id).collect();
        retired.into_iter().for_each(|id| self.age(id, context));
        let mut ids: Vec<u64> = self.states.keys().copied().collect();
        ids.sort_unstable();
        // First those that wait for none that lives, and with them those that wait for these.
        for ending in [false, true] {
            ids.iter().for_each(|&id| self.decide(id, ending, context));
        }
        let live = self.states.values_mut();
        for state in live.filter(|state| state.retired.is_none()) {
            let outstanding = std::mem::take(&mut state.outstanding);
            let sent = outstanding.iter().filter(|handoff| handoff.sent.is_some());
            context.out.totals.handoffs.under_way += sent.count() as u64;
        }
    }

    /// It has been retired for long enough that every host record of it has come.
    fn age(&mut self, id: u64, context: &mut Deciding<'_>) {
        if let Some(state) = self.states.get_mut(&id) {
            state.aged = true;
            self.lose_handoffs(id, context);
        }
    }

    fn lose_handoffs(&mut self, id: u64, context: &mut Deciding<'_>) {
        let Some(state) = self.states.get_mut(&id) else {
            return;
        };
        let epoch = state.retired.map_or_else(
            || LaunchEpoch::from_numbers(id, 1),
            |(_, epoch)| Some(epoch),
        );
        for lost in std::mem::take(&mut state.outstanding) {
            if let Some(sent) = lost.sent {
                if self.lost_until >= Some(sent) {
                    context.out.totals.handoffs.undecided += 1;
                    continue;
                }
                state.handed_on = true;
                context.out.totals.lost += 1;
                let detail = format!(
                    "handoff {} was sent and neither opened nor abandoned",
                    lost.id.0
                );
                let fault = loose(
                    context.process,
                    FaultCode::L05,
                    epoch,
                    Some(sent),
                    1,
                    detail,
                );
                context.out.fault(fault);
            }
        }
    }

    /// Decides L04 for a retired epoch if that can be done, and with it for those it waits for.
    fn decide(&mut self, id: u64, ending: bool, context: &mut Deciding<'_>) {
        let mut candidates = vec![id];
        while let Some(id) = candidates.pop() {
            let Some(state) = self.states.get_mut(&id) else {
                continue;
            };
            let excused = state.launched || state.cancelled || !self.device_seen;
            // One that was cancelled misses nothing, but what came of it may launch for its members.
            let under_way = !state.launched && self.device_seen && state.undecided_links > 0;
            let waits = under_way && !ending;
            if state.decided || !state.aged || waits {
                continue;
            }
            state.decided = true;
            // Where its declaration is not known, it may have been lost as well.
            let gap = self.lost_until.is_some() && self.lost_until >= state.declared;
            let gap = gap || self.calls_unseen;
            if excused {
                // Nothing is missed.
            } else if gap || under_way {
                context.out.totals.epochs.undecided += 1;
            } else if !state.handed_on || self.candidates {
                context.out.totals.epochs.ended_without_gpu_work += 1;
            } else {
                let (at, epoch) = match state.retired {
                    Some((at, epoch)) => (Some(at), Some(epoch)),
                    None => (None, None),
                };
                let detail =
                    "it was retired, and no call was made under it or what was linked from it";
                let fault = loose(
                    context.process,
                    FaultCode::L04,
                    epoch,
                    at,
                    1,
                    detail.to_owned(),
                );
                context.out.fault(fault);
            }
            let (from, open_calls) = (std::mem::take(&mut state.from), state.open_calls);
            if open_calls == 0 {
                self.states.remove(&id);
            }
            if under_way {
                continue; // So are those that it was linked from.
            }
            for from in from {
                if let Some(earlier) = self.states.get_mut(&from) {
                    earlier.undecided_links = earlier.undecided_links.saturating_sub(1);
                    candidates.push(from);
                }
            }
        }
    }

    /// The state of an epoch, made if it is new; the oldest gives way if there are too many.
    fn state(&mut self, id: u64, context: &mut Deciding<'_>) -> &mut EpochState {
        if !self.states.contains_key(&id) {
            while self.states.len() >= context.limits.epochs.max(1) {
                let Some(oldest) = self.order.pop_front() else {
                    break;
                };
                if let Some(state) = self.states.remove(&oldest) {
                    self.give_way(&state, context);
                }
            }
            if self.order.len() > 2 * self.states.len() + 1_024 {
                self.order.retain(|id| self.states.contains_key(id));
            }
            self.order.push_back(id);
        }
        self.states.entry(id).or_default()
    }

    fn give_way(&mut self, state: &EpochState, context: &mut Deciding<'_>) {
        for from in &state.from {
            if let Some(earlier) = self.states.get_mut(from) {
                earlier.undecided_links = earlier.undecided_links.saturating_sub(1);
            }
        }
        // Of one that launched and has nothing outstanding nothing more was to be said but, to
        // calls that are still open, when it was declared.
        let undecided = self.device_seen && !(state.launched || state.cancelled || state.decided);
        if undecided || !state.outstanding.is_empty() || state.open_calls > 0 {
            context.out.forget(context.process, 1);
        }
    }
}
