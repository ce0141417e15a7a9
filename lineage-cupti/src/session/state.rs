//! What CUPTI's callbacks and the boundary hook share with the session: statics, and atomics only.
//!
//! CUPTI calls back on any thread at any time: while a session starts and stops, in a forked child,
//! and from its own exit handler after `main` has returned. So nothing here is ever freed, and
//! nothing is behind a lock, but for the one of [`LoadedNames`](crate::decode::LoadedNames), which
//! is held for as long as a name takes to be read, and the one of the [queue](super::graph) of what
//! happens to graphs, which no launch takes.
//!
//! | what | written by | read by |
//! | --- | --- | --- |
//! | [`MODE`] | start, stop, `Drop`; a callback that panicked; the atfork handler | every callback, the hook |
//! | [`SESSION`], [`EXTERNAL_KIND`], [`FUNCTIONS`], [`CLOCK`] | start, before `MODE` is [`ON`] | likewise, after `MODE` said [`ON`] |
//! | [`PANICS`] | a callback that panicked | drain |
//!
//! `MODE` is stored with release and loaded with acquire, so whoever sees [`ON`] sees the rest.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

use super::{graph, unload};
use crate::sys::Functions;

/// Nothing is recorded.
pub(crate) const OFF: u8 = 0;
/// A session records.
pub(crate) const ON: u8 = 1;
/// A session records, and the next API callback panics: for the test of that.
pub(crate) const PANIC_NEXT: u8 = 2;

/// Whether a session records.
static MODE: AtomicU8 = AtomicU8::new(OFF);
/// A session exists: claimed by start, left by stop and by `Drop`.
static CLAIMED: AtomicBool = AtomicBool::new(false);
/// Number of the latest session of this process, from 1.
static SESSION: AtomicU32 = AtomicU32::new(0);
/// CUPTI's kind that the session pushes under.
static EXTERNAL_KIND: AtomicU32 = AtomicU32::new(0);
/// The loaded library's functions: null, or leaked.
static FUNCTIONS: AtomicPtr<Functions> = AtomicPtr::new(std::ptr::null_mut());
/// The session's clock: null, or a `fn() -> u64`.
static CLOCK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
/// Callbacks that panicked and were not reported yet.
static PANICS: AtomicU64 = AtomicU64::new(0);
/// This process is a fork of one that recorded.
static FORKED: AtomicBool = AtomicBool::new(false);

pub(crate) fn mode() -> u8 {
    MODE.load(Acquire)
}

/// Whether callbacks and the hook are to do anything.
pub(crate) fn is_recording() -> bool {
    mode() != OFF
}

pub(crate) fn is_forked_child() -> bool {
    FORKED.load(Relaxed)
}

/// For the atfork handler: stores only.
pub(crate) fn mark_forked_child() {
    FORKED.store(true, Relaxed);
    MODE.store(OFF, Release);
}

/// Claims the one session that a process may have; `false` if it has one.
pub(crate) fn claim() -> bool {
    CLAIMED
        .compare_exchange(false, true, AcqRel, Relaxed)
        .is_ok()
}

/// Leaves the claim.
pub(crate) fn unclaim() {
    CLAIMED.store(false, Release);
}

/// Sets everything that callbacks need, before any of them can come.
pub(crate) fn prepare(functions: &'static Functions, external_kind: u32, clock: fn() -> u64) {
    EXTERNAL_KIND.store(external_kind, Relaxed);
    FUNCTIONS.store(std::ptr::from_ref(functions).cast_mut(), Relaxed);
    CLOCK.store(clock as *mut (), Release);
}

/// Lets callbacks record, under the session number that this answers.
pub(crate) fn switch_on() -> u32 {
    let session = SESSION.load(Relaxed).wrapping_add(1).max(1);
    SESSION.store(session, Relaxed);
    unload::NAMES.watched();
    graph::open(session);
    MODE.store(ON, Release);
    session
}

/// Makes callbacks return at once. Unloading is not seen from now on, so no name is read any more.
pub(crate) fn switch_off() {
    // In a forked child a thread that was not copied may hold the lock; and nothing is decoded there.
    if !is_forked_child() {
        unload::NAMES.unwatched();
    }
    MODE.store(OFF, Release);
}

/// Number of the session that records, or of the last one that did.
pub(crate) fn session() -> u32 {
    SESSION.load(Relaxed)
}

/// CUPTI's kind that the session pushes under.
pub(crate) fn external_kind() -> u32 {
    EXTERNAL_KIND.load(Relaxed)
}

/// The loaded library's functions; `None` before the first session.
pub(crate) fn functions() -> Option<&'static Functions> {
    let functions = FUNCTIONS.load(Acquire);
    // SAFETY: null, or stored by `prepare` from a reference that lives for good.
    unsafe { functions.as_ref() }
}

/// Now, by the session's clock; 0 before the first session.
pub(crate) fn now() -> u64 {
    let clock = CLOCK.load(Acquire);
    if clock.is_null() {
        return 0;
    }
    // SAFETY: not null, so stored by `prepare` from a function of this type.
    let clock = unsafe { std::mem::transmute::<*mut (), fn() -> u64>(clock) };
    clock()
}

/// Panics not reported yet, and forgets them.
pub(crate) fn take_panics() -> u64 {
    PANICS.swap(0, Relaxed)
}

/// Runs the body of a callback. A panic ends here: it is counted, and nothing is recorded any more.
pub(crate) fn guarded<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    // What the body touches is atomics and `Copy` cells: valid at every step.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            switch_off();
            PANICS.fetch_add(1, Relaxed);
            // A payload whose own destructor panics would unwind into C.
            std::mem::forget(payload);
            fallback
        }
    }
}

/// Makes the next API callback panic. For tests of what happens then.
#[doc(hidden)]
pub fn panic_in_next_callback() {
    let _ = MODE.compare_exchange(ON, PANIC_NEXT, AcqRel, Relaxed);
}
