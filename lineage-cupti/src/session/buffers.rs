//! Activity buffers: lent to CUPTI, handed over, decoded elsewhere, lent again.
//!
//! ```text
//!            requested                 completed               drain takes         drain gives back
//!   EMPTY ─┐                                                     
//!          ├──► BUSY ──► LENT ─────────► BUSY ──► DONE ────────► BUSY ─────────────► FREE ──┐
//!   FREE ──┘ ▲                                                                              │
//!            └──────────────────────────────────────────────────────────────────────────────┘
//! ```
//! Whoever moves a slot to BUSY by compare-and-exchange owns its fields until it stores the next
//! state with release. CUPTI alone touches the memory of a LENT buffer; the owner that of a BUSY one.
//! Neither callback locks, parses or waits. The number of slots in use is bounded: when all are lent
//! or wait for the drain, CUPTI is given none, drops the records itself and counts them.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use super::state;
use crate::options::Options;

const EMPTY: u8 = 0;
const FREE: u8 = 1;
const LENT: u8 = 2;
const DONE: u8 = 3;
const BUSY: u8 = 4;

struct Slot {
    state: AtomicU8,
    memory: AtomicPtr<u8>,
    capacity: AtomicUsize,
    valid: AtomicUsize,
    context: AtomicPtr<c_void>,
    stream: AtomicU32,
    /// The session it was lent in.
    session: AtomicU32,
    /// Number of its latest lending.
    lent: AtomicU64,
    /// Counts completions, so that they are decoded in order.
    order: AtomicU64,
}

impl Slot {
    const fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            memory: AtomicPtr::new(null_mut()),
            capacity: AtomicUsize::new(0),
            valid: AtomicUsize::new(0),
            context: AtomicPtr::new(null_mut()),
            stream: AtomicU32::new(0),
            session: AtomicU32::new(0),
            lent: AtomicU64::new(0),
            order: AtomicU64::new(0),
        }
    }

    /// Moves from a state to BUSY; `false` if it was not in that state.
    fn own(&self, from: u8) -> bool {
        self.state.load(Relaxed) == from
            && self
                .state
                .compare_exchange(from, BUSY, AcqRel, Relaxed)
                .is_ok()
    }
}

static SLOTS: [Slot; Options::MAX_BUFFERS] = [const { Slot::new() }; Options::MAX_BUFFERS];
/// How many of the slots may be used.
static LIMIT: AtomicUsize = AtomicUsize::new(0);
/// How large a buffer is.
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Counts lendings, from 0.
static LENDS: AtomicU64 = AtomicU64::new(0);
static COMPLETIONS: AtomicU64 = AtomicU64::new(0);
/// Requests that were denied, since the last look: a reason to ask CUPTI what it dropped.
static DENIED: AtomicU64 = AtomicU64::new(0);
/// Buffers given back that were never lent, since the last look.
static FOREIGN: AtomicU64 = AtomicU64::new(0);

/// Sets bounds for the session that starts.
pub(crate) fn configure(bytes: usize, limit: usize) {
    BYTES.store(bytes, Relaxed);
    LIMIT.store(limit.min(SLOTS.len()), Relaxed);
}

/// `CUpti_BuffersCallbackRequestFunc`.
///
/// # Safety
/// Called by CUPTI, with valid places.
pub(crate) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
) {
    let (memory, capacity) = state::guarded((null_mut(), 0), || {
        let lent = if state::is_recording() { lend() } else { None };
        lent.unwrap_or_else(|| {
            DENIED.fetch_add(1, Relaxed);
            (null_mut(), 0)
        })
    });
    // SAFETY: CUPTI passes valid places for all three.
    unsafe {
        *buffer = memory;
        *size = capacity;
        // As many as fit.
        *max_records = 0;
    }
}

/// `CUpti_BuffersCallbackCompleteFunc`. Also called when recording is off: what was lent is taken
/// back whenever it comes.
///
/// # Safety
/// Called by CUPTI, which no longer writes to the buffer.
pub(crate) unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    if state::is_forked_child() || buffer.is_null() {
        return;
    }
    state::guarded((), || take_back(context, stream, buffer, valid));
}

fn lend() -> Option<(*mut u8, usize)> {
    let bytes = BYTES.load(Relaxed);
    for slot in &SLOTS[..LIMIT.load(Relaxed)] {
        if !(slot.own(FREE) || slot.own(EMPTY)) {
            continue;
        }
        let mut memory = slot.memory.load(Relaxed);
        let capacity = slot.capacity.load(Relaxed);
        if memory.is_null() || capacity != bytes {
            // SAFETY: this thread owns the slot, so nobody uses its memory.
            unsafe { release(memory, capacity) };
            memory = allocate(bytes);
            slot.memory.store(memory, Relaxed);
            slot.capacity.store(bytes, Relaxed);
            if memory.is_null() {
                slot.state.store(EMPTY, Release);
                return None;
            }
        }
        // With release, for `are_out_of`: who sees these sees that what was lent before is decoded.
        slot.session.store(state::session(), Release);
        slot.lent.store(LENDS.fetch_add(1, Relaxed), Release);
        slot.state.store(LENT, Release);
        return Some((memory, bytes));
    }
    None
}

fn take_back(context: *mut c_void, stream: u32, buffer: *mut u8, valid: usize) {
    for slot in &SLOTS {
        if slot.memory.load(Relaxed) != buffer || !slot.own(LENT) {
            continue;
        }
        slot.valid
            .store(valid.min(slot.capacity.load(Relaxed)), Relaxed);
        slot.context.store(context, Relaxed);
        slot.stream.store(stream, Relaxed);
        let state = if valid == 0 {
            FREE
        } else {
            slot.order.store(COMPLETIONS.fetch_add(1, Relaxed), Relaxed);
            DONE
        };
        slot.state.store(state, Release);
        return;
    }
    FOREIGN.fetch_add(1, Relaxed);
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, Options::BUFFER_ALIGNMENT).ok()
}

fn allocate(bytes: usize) -> *mut u8 {
    match layout(bytes) {
        // SAFETY: the size is not 0.
        Some(layout) if bytes > 0 => unsafe { alloc(layout) },
        _ => null_mut(),
    }
}

/// # Safety
/// Null, or from [`allocate`] of as many bytes, and used by nobody.
unsafe fn release(memory: *mut u8, bytes: usize) {
    if let (false, Some(layout)) = (memory.is_null(), layout(bytes)) {
        // SAFETY: the caller's word.
        unsafe { dealloc(memory, layout) };
    }
}

/// A completed buffer, owned by the drain until it is dropped, which frees its slot.
pub(crate) struct Completed {
    slot: &'static Slot,
}

impl Completed {
    /// Where its records begin.
    pub(crate) fn start(&self) -> *mut u8 {
        self.slot.memory.load(Relaxed)
    }

    /// How many bytes of records it holds.
    pub(crate) fn valid(&self) -> usize {
        self.slot.valid.load(Relaxed)
    }

    /// The context and stream that CUPTI named when it gave the buffer back.
    pub(crate) fn scope(&self) -> (*mut c_void, u32) {
        (
            self.slot.context.load(Relaxed),
            self.slot.stream.load(Relaxed),
        )
    }

    /// The number of its lending.
    pub(crate) fn lent(&self) -> u64 {
        self.slot.lent.load(Relaxed)
    }

    /// The session it was lent in.
    pub(crate) fn session(&self) -> u32 {
        self.slot.session.load(Relaxed)
    }
}

impl Drop for Completed {
    fn drop(&mut self) {
        self.slot.state.store(FREE, Release);
    }
}

/// All buffers that are completed by now, in the order of their completion.
pub(crate) fn take_completed() -> Vec<Completed> {
    let mut taken: Vec<Completed> = SLOTS
        .iter()
        .filter(|slot| slot.own(DONE))
        .map(|slot| Completed { slot })
        .collect();
    taken.sort_by_key(|completed| completed.slot.order.load(Relaxed));
    taken
}

/// How many buffers CUPTI holds.
pub(crate) fn lent() -> usize {
    let is_lent = |slot: &&Slot| slot.state.load(Acquire) == LENT;
    SLOTS.iter().filter(is_lent).count()
}

/// How many times a buffer was lent since the process began.
pub(crate) fn lends() -> u64 {
    LENDS.load(Relaxed)
}

/// Whether any of the buffers that this session lent, of these lendings, is lent still or not decoded.
pub(crate) fn are_out_of(lendings: &Range<u64>) -> bool {
    let session = state::session();
    SLOTS.iter().any(|slot| {
        // A slot that is being lent just now may count as out: its number is not set yet.
        !matches!(slot.state.load(Acquire), EMPTY | FREE)
            && slot.session.load(Acquire) == session
            && lendings.contains(&slot.lent.load(Acquire))
    })
}

/// Counts all buffers that CUPTI gave back with records in them since the process began.
pub(crate) fn completions() -> u64 {
    COMPLETIONS.load(Relaxed)
}

/// Requests denied since the last call.
pub(crate) fn take_denied() -> u64 {
    DENIED.swap(0, Relaxed)
}

/// Buffers that were given back though they were never lent, since the last call.
pub(crate) fn take_foreign() -> u64 {
    FOREIGN.swap(0, Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::state;

    fn request() -> (*mut u8, usize) {
        let (mut buffer, mut size, mut records) = (null_mut(), 7, 7);
        // SAFETY: three valid places.
        unsafe { requested(&mut buffer, &mut size, &mut records) };
        assert_eq!(records, 0);
        (buffer, size)
    }

    fn complete(buffer: *mut u8, valid: usize) {
        // SAFETY: nobody writes to the buffer.
        unsafe { completed(null_mut(), 0, buffer, 0, valid) };
    }

    /// One test, since the slots are the process's.
    #[test]
    fn buffers_are_lent_up_to_the_limit_taken_back_in_order_and_lent_again() {
        configure(4096, 2);
        assert_eq!(request(), (null_mut(), 0), "none while nothing records");
        state::switch_on();

        let (first, size) = request();
        let (second, _) = request();
        assert_eq!(size, 4096);
        assert!(!first.is_null() && !second.is_null() && first != second);
        assert_eq!(first as usize % 8, 0, "CUPTI asks for 8-byte alignment");
        assert_eq!(request(), (null_mut(), 0), "the limit is two");
        assert_eq!(take_denied(), 2);
        assert_eq!(lent(), 2);
        let lends = lends();
        let both = lends - 2..lends;
        assert!(are_out_of(&both));
        assert!(!are_out_of(&(0..lends - 2)), "lent later");
        assert!(!are_out_of(&(lends..u64::MAX)), "lent before");

        complete(second, 100);
        complete(first, 1 << 20);
        complete(first, 8);
        complete(8 as *mut u8, 8);
        assert_eq!(take_foreign(), 2, "twice, and never lent");
        assert_eq!(request(), (null_mut(), 0), "they wait for the drain");

        let taken = take_completed();
        let found: Vec<_> = taken
            .iter()
            .map(|buffer| (buffer.start(), buffer.valid()))
            .collect();
        assert_eq!(
            found,
            [(second, 100), (first, 4096)],
            "in order, never beyond the end"
        );
        assert!(take_completed().is_empty());
        assert!(are_out_of(&both), "they are being decoded");
        drop(taken);
        assert!(!are_out_of(&both));

        configure(8192, 2);
        let (again, size) = request();
        assert_eq!(size, 8192, "another session's size");
        complete(again, 0);
        assert!(take_completed().is_empty(), "nothing in it");
        assert_eq!(lent(), 0);
        state::switch_off();
    }
}
