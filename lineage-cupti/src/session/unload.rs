//! Before modules go, the names of their kernels are read.
//!
//! A record of a kernel points to the kernel's name, which is there for as long as its module is
//! loaded. So the calls that may unload modules are watched, and when one is entered, its thread
//! asks the drain thread for a flush and waits until every buffer that was lent before is decoded.
//! If none is out, it does not wait; it never waits longer than [`WITHIN`]. When it can wait no
//! longer (work still runs, so that CUPTI keeps the buffers; or nobody drains), it goes on, and
//! names that those buffers point to are not read any more: their operations have no name.
//!
//! The waiting thread holds no lock and calls nothing of CUPTI's. Unloading that no public function
//! of the driver is called for (by the runtime, at exit of the process) is not seen.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::{buffers, state};
use crate::decode::LoadedNames;

/// How long a call that unloads is held up at most.
const WITHIN: Duration = Duration::from_millis(250);
/// The first pause between two looks; each is twice the one before, up to the last.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LAST_PAUSE: Duration = Duration::from_millis(10);

/// The names of the process's kernels. Watched while a session records.
pub(crate) static NAMES: LoadedNames = LoadedNames::none();
/// Whether a flush is asked for.
static ASKED: AtomicBool = AtomicBool::new(false);
/// The thread that drains, once one has.
static DRAIN: Mutex<Option<Thread>> = Mutex::new(None);

/// A call that may unload modules was entered. Called on the unloading thread.
pub(super) fn entered() {
    // Those before are never read, so there is no waiting for them again.
    let lent = NAMES.first()..buffers::lends();
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    while buffers::are_out_of(&lent) {
        if began.elapsed() + pause > WITHIN || !state::is_recording() || !ask() {
            // With those lent meanwhile, since CUPTI may write late.
            NAMES.gone_before(buffers::lends());
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

/// Asks the drain thread for a flush; `false` if this is the drain thread.
fn ask() -> bool {
    let drain = match DRAIN.try_lock() {
        Ok(drain) => drain.clone(),
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().clone(),
        // It is draining right now.
        Err(TryLockError::WouldBlock) => None,
    };
    ASKED.store(true, Release);
    match drain {
        Some(drain) if drain.id() == std::thread::current().id() => false,
        Some(drain) => {
            drain.unpark();
            true
        }
        None => true,
    }
}

/// Wakes the drain thread, if it is known and not draining right now.
pub(super) fn wake_drain() {
    if let Ok(drain) = DRAIN.try_lock()
        && let Some(drain) = &*drain
    {
        drain.unpark();
    }
}

/// Whether a flush is asked for, since the last call. Called on the drain thread.
pub(super) fn take_asked() -> bool {
    let here = std::thread::current();
    let mut drain = DRAIN.lock().unwrap_or_else(PoisonError::into_inner);
    if drain.as_ref().is_none_or(|drain| drain.id() != here.id()) {
        *drain = Some(here);
    }
    drop(drain);
    ASKED.swap(false, AcqRel)
}
