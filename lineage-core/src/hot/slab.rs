//! Live epochs: slots with a reference count, reused without allocation.
//!
//! # Protocol
//!
//! A slot is free or live. Free slots form a stack (`FREE`: a tag that rises with every change in
//! the high half, so that a slot that was taken and given back in between is noticed; the slot's
//! number plus one in the low half), but for one per thread, which the thread that gave it back
//! keeps for its own next declaration. Whoever takes a slot owns it alone until it stores a count
//! above 0 with release; from then on it is live.
//!
//! A handle stands for one count. The handle that brings the count from 1 to 0 retires the epoch
//! and gives the slot back. [`acquire`] makes a handle from a place that may be stale: it raises
//! the count only while that is above 0 and then compares incarnations, which count how often the
//! slot was taken, so it never revives a slot or takes a later epoch for an earlier one.
//!
//! `latest` is the packed epoch at its highest version. It changes by compare-exchange alone, so
//! two steps at once get two versions, and exactly one of them moves on to a fresh id when the
//! versions are used up.
//!
//! A slot's memory is never freed, so a place is a reference: a handle is cloned and dropped by one
//! atomic operation, without a lookup.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::thread;
use crate::id::{Attribution, EpochId, LaunchEpoch, MAX_VERSION, PackedEpoch, W3cParent};

const CHUNK: usize = 4096;
const CHUNKS: usize = 256;

/// The greatest number of epochs that can be live at a time, less one for each thread that keeps a
/// slot.
pub(crate) const MAX_LIVE: usize = CHUNK * CHUNKS;

/// A cache line of its own, so that the handles of two epochs do not slow each other.
#[repr(align(64))]
pub(crate) struct Slot {
    handles: AtomicU32,
    incarnation: AtomicU32,
    session: AtomicU32,
    /// Which slot it is.
    number: u32,
    latest: AtomicU64,
    parent_trace: [AtomicU64; 2],
    parent_span: AtomicU64,
    next_free: AtomicU32,
    cancelled: AtomicBool,
    parent_state: AtomicU8,
    parent_flags: AtomicU8,
}

/// Where an epoch lives: its slot, and how often that had been taken by then.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    slot: &'static Slot,
    incarnation: u32,
}

impl Place {
    #[inline]
    pub(crate) fn slot(self) -> &'static Slot {
        self.slot
    }
}

const PARENT_NONE: u8 = 0;
const PARENT_BEING_SET: u8 = 1;
const PARENT_SET: u8 = 2;

static CHUNKED: [OnceLock<Box<[Slot]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
static FREE: AtomicU64 = AtomicU64::new(0);
static UNUSED: AtomicU32 = AtomicU32::new(0);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Why no epoch could be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// All 2^40 ids were given out.
    Ids,
    /// [`MAX_LIVE`] epochs are live.
    Slots,
}

fn slot(number: u32) -> &'static Slot {
    let chunk = number as usize / CHUNK;
    let first = (chunk * CHUNK) as u32;
    let slots = CHUNKED[chunk].get_or_init(|| (first..).take(CHUNK).map(Slot::unused).collect());
    &slots[number as usize % CHUNK]
}

#[inline]
fn take_free() -> Option<&'static Slot> {
    thread::take_kept_slot().or_else(take_shared)
}

#[inline(never)]
fn take_shared() -> Option<&'static Slot> {
    let mut free = FREE.load(Ordering::Acquire);
    while let Some(number) = (free as u32).checked_sub(1) {
        let taken = slot(number);
        let changed = tagged(free, taken.next_free.load(Ordering::Relaxed));
        match FREE.compare_exchange_weak(free, changed, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(taken),
            Err(now) => free = now,
        }
    }
    let number = UNUSED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| {
        ((number as usize) < MAX_LIVE).then_some(number + 1)
    });
    number.ok().map(slot)
}

/// Gives a free slot to whichever thread declares next.
pub(super) fn give_back(slot: &'static Slot) {
    let mut free = FREE.load(Ordering::Relaxed);
    loop {
        slot.next_free.store(free as u32, Ordering::Relaxed);
        let changed = tagged(free, slot.number + 1);
        match FREE.compare_exchange_weak(free, changed, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => free = now,
        }
    }
}

fn tagged(free: u64, low: u32) -> u64 {
    (((free >> 32) + 1) << 32) | u64::from(low)
}

#[inline]
fn fresh_id() -> Option<EpochId> {
    // Beyond the last id the counter goes on, which it can for centuries.
    EpochId::new(NEXT_ID.fetch_add(1, Ordering::Relaxed))
}

/// Makes a live epoch with one handle.
#[inline]
pub(crate) fn declare(session: u32) -> Result<(Place, LaunchEpoch), Exhausted> {
    let slot = take_free().ok_or(Exhausted::Slots)?;
    let Some(id) = fresh_id() else {
        give_back(slot);
        return Err(Exhausted::Ids);
    };
    let epoch = LaunchEpoch::first(id);
    let incarnation = slot
        .incarnation
        .load(Ordering::Relaxed)
        .wrapping_add(1)
        .max(1);
    slot.incarnation.store(incarnation, Ordering::Relaxed);
    slot.session.store(session, Ordering::Relaxed);
    slot.latest.store(epoch.pack().bits(), Ordering::Relaxed);
    slot.cancelled.store(false, Ordering::Relaxed);
    slot.parent_state.store(PARENT_NONE, Ordering::Relaxed);
    slot.handles.store(1, Ordering::Release);
    Ok((Place { slot, incarnation }, epoch))
}

/// Makes one more handle of a place that may have been reused: `false` if its epoch retired.
#[inline]
pub(crate) fn acquire(place: Place) -> bool {
    let slot = place.slot;
    let raised = slot
        .handles
        .fetch_update(Ordering::Acquire, Ordering::Relaxed, |handles| {
            (handles > 0).then_some(handles + 1)
        });
    if raised.is_err() {
        return false;
    }
    let same = slot.incarnation.load(Ordering::Relaxed) == place.incarnation;
    if !same {
        // The other epoch may have lost its owner meanwhile: then this was its last handle, and it
        // retires here like anywhere else.
        if let Some(released) = release(place) {
            thread::record_retired(&released);
        }
    }
    same
}

/// Gives up one handle. `Some` with what retires if it was the last.
#[inline]
pub(crate) fn release(place: Place) -> Option<Released> {
    if place.slot.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
        Some(retire(place.slot))
    } else {
        None
    }
}

fn retire(slot: &'static Slot) -> Released {
    let released = Released {
        packed: slot.latest_packed(),
        session: slot.session(),
        cancelled: slot.cancelled.load(Ordering::Relaxed),
    };
    if !thread::keep_slot(slot) {
        give_back(slot);
    }
    released
}

/// An epoch whose last handle is gone.
pub(crate) struct Released {
    pub(crate) packed: PackedEpoch,
    pub(crate) session: u32,
    pub(crate) cancelled: bool,
}

/// What a step led to.
pub(crate) struct Step {
    pub(crate) epoch: LaunchEpoch,
    /// The versions of this epoch were used up: the new one continues it.
    pub(crate) continues: Option<LaunchEpoch>,
}

impl Slot {
    /// A slot that no epoch had yet.
    fn unused(number: u32) -> Self {
        Self {
            handles: AtomicU32::new(0),
            incarnation: AtomicU32::new(0),
            session: AtomicU32::new(0),
            number,
            latest: AtomicU64::new(0),
            parent_trace: [const { AtomicU64::new(0) }; 2],
            parent_span: AtomicU64::new(0),
            next_free: AtomicU32::new(0),
            cancelled: AtomicBool::new(false),
            parent_state: AtomicU8::new(PARENT_NONE),
            parent_flags: AtomicU8::new(0),
        }
    }

    /// One more handle, from one that exists.
    #[inline]
    pub(crate) fn clone_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn session(&self) -> u32 {
        self.session.load(Ordering::Relaxed)
    }

    fn latest_packed(&self) -> PackedEpoch {
        PackedEpoch::from_bits(self.latest.load(Ordering::Relaxed))
    }

    fn latest(&self) -> LaunchEpoch {
        match self.latest_packed().unpack() {
            Attribution::Epoch(epoch) => epoch,
            // A slot holds an epoch from its first declaration on.
            _ => unreachable!("a slot that was never declared has no handle"),
        }
    }

    /// The next version, or the first of a fresh id; `None` if the ids are used up as well.
    pub(crate) fn step(&self) -> Option<Step> {
        let mut latest = self.latest();
        loop {
            let used_up = latest.version.get() == MAX_VERSION;
            let next = if used_up {
                LaunchEpoch::first(fresh_id()?)
            } else {
                LaunchEpoch::from_numbers(latest.id.get(), latest.version.get() + 1)?
            };
            let (from, to) = (latest.pack().bits(), next.pack().bits());
            match self
                .latest
                .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => {
                    return Some(Step {
                        epoch: next,
                        continues: used_up.then_some(latest),
                    });
                }
                Err(_) => latest = self.latest(),
            }
        }
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Keeps the parent; `false` if one was set before.
    pub(crate) fn set_parent(&self, parent: W3cParent) -> bool {
        let state = &self.parent_state;
        let begun = state.compare_exchange(
            PARENT_NONE,
            PARENT_BEING_SET,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if begun.is_err() {
            return false;
        }
        self.parent_trace[0].store((parent.trace_id >> 64) as u64, Ordering::Relaxed);
        self.parent_trace[1].store(parent.trace_id as u64, Ordering::Relaxed);
        self.parent_span.store(parent.span_id, Ordering::Relaxed);
        self.parent_flags.store(parent.flags, Ordering::Relaxed);
        state.store(PARENT_SET, Ordering::Release);
        true
    }

    pub(crate) fn parent(&self) -> Option<W3cParent> {
        if self.parent_state.load(Ordering::Acquire) != PARENT_SET {
            return None;
        }
        let [high, low] = &self.parent_trace;
        let half = |word: &AtomicU64| u128::from(word.load(Ordering::Relaxed));
        Some(W3cParent {
            trace_id: (half(high) << 64) | half(low),
            span_id: self.parent_span.load(Ordering::Relaxed),
            flags: self.parent_flags.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_at_once_get_different_versions_and_one_continues_under_a_fresh_id() {
        let (place, epoch) = declare(1).expect("room");
        let near_the_end = LaunchEpoch::from_numbers(epoch.id.get(), MAX_VERSION - 100);
        let bits = near_the_end.expect("in range").pack().bits();
        place.slot().latest.store(bits, Ordering::Relaxed);
        let steps: Vec<Step> = std::thread::scope(|scope| {
            let stepper = || {
                (0..100)
                    .filter_map(|_| place.slot().step())
                    .collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(stepper)).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        let mut packed: Vec<u64> = steps.iter().map(|step| step.epoch.pack().bits()).collect();
        packed.sort_unstable();
        packed.dedup();
        assert_eq!(packed.len(), 400, "no version is given twice");
        let continuing: Vec<_> = steps.iter().filter_map(|step| step.continues).collect();
        assert_eq!(continuing.len(), 1, "exactly one step moves on");
        assert_eq!(
            (continuing[0].id, continuing[0].version.get()),
            (epoch.id, MAX_VERSION)
        );
        let (old, new): (Vec<&Step>, Vec<&Step>) =
            steps.iter().partition(|step| step.epoch.id == epoch.id);
        assert_eq!((old.len(), new.len()), (100, 300));
        assert!(acquire(place), "the place outlives the change of id");
        assert!(release(place).is_none());
        assert!(release(place).is_some());
    }

    #[test]
    fn a_stale_place_is_not_acquired_even_when_its_slot_is_live_again() {
        let (first, _) = declare(1).expect("room");
        assert!(release(first).is_some());
        let reused = std::iter::repeat_with(|| declare(1).expect("room"));
        let taken: Vec<_> = reused.take(64).collect();
        assert!(!acquire(first));
        for (place, _) in taken {
            assert!(acquire(place));
            assert!(release(place).is_none());
            assert!(release(place).is_some());
        }
    }

    #[test]
    fn the_slot_that_a_thread_kept_is_given_back_when_it_ends() {
        const THREADS: u32 = 3_000;
        let used_before = UNUSED.load(Ordering::Relaxed);
        for _ in 0..THREADS {
            let declaring = std::thread::spawn(|| {
                thread::next_handoff(); // From here on the thread has an end.
                let (place, _) = declare(1).expect("room");
                assert!(release(place).is_some());
                let kept = thread::take_kept_slot().expect("the thread keeps it");
                assert!(std::ptr::eq(kept, place.slot()) && thread::keep_slot(kept));
                assert!(!thread::keep_slot(kept), "one at a time");
            });
            declaring.join().expect("no panic");
        }
        // Other tests of this process use some meanwhile.
        let used = UNUSED.load(Ordering::Relaxed) - used_before;
        assert!(used < THREADS / 2, "{used} slots for {THREADS} threads");
    }

    #[test]
    fn slots_survive_being_taken_and_given_back_by_many_threads() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let (place, epoch) = declare(1).expect("room");
                        assert_eq!(place.slot().latest(), epoch);
                        assert!(
                            release(place).is_some_and(|released| released.packed == epoch.pack())
                        );
                    }
                });
            }
        });
    }
}
