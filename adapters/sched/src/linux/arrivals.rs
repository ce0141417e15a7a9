//! Threads that begin to record: each opens its own ring, so that nothing of it is missed, and the
//! drain thread takes it from here.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use lineage_core::hook;
use lineage_core::id::{HostNanos, ThreadKey};
use lineage_core::source::NoEvidence;
use rustix::thread::Pid;

use super::ring::{OpenError, Ring};

/// How threads are to be observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    /// By rings with room for this many bytes.
    Rings { bytes: usize },
    /// Not: this is how it would end.
    Refused(OpenError),
}

impl Opening {
    /// Opens the ring of a thread, of the calling one if none is named.
    pub(super) fn open(&self, thread: Option<Pid>) -> Result<Ring, OpenError> {
        match self {
            Self::Rings { bytes } => Ring::open(thread, *bytes),
            Self::Refused(error) => Err(error.clone()),
        }
    }
}

/// A thread that made its first record.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) tid: u64,
    /// Every switch from here on is in the ring.
    pub(super) at: HostNanos,
    pub(super) ring: Result<Ring, OpenError>,
}

struct Arrivals {
    /// Number of the session that these are for, from 1.
    session: u64,
    opening: Opening,
    new: Vec<Arrival>,
}

/// The process in which a session collects, or 0: in a fork nothing here is touched.
static PROCESS: AtomicU32 = AtomicU32::new(0);

static ARRIVALS: Mutex<Arrivals> = Mutex::new(Arrivals {
    session: 0,
    opening: Opening::Rings { bytes: 0 },
    new: Vec::new(),
});

/// Whether the hook is ours. It is set once per process.
static HOOKED: OnceLock<bool> = OnceLock::new();

/// The list is ours from here on, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    session: u64,
}

impl Listening {
    pub(super) fn begin(opening: Opening) -> Result<Self, NoEvidence> {
        if !HOOKED.get_or_init(|| hook::set_thread_hook(thread_began).is_ok()) {
            return Err(NoEvidence::new(
                "another hook already waits for this process's threads to begin",
            ));
        }
        let until = Instant::now() + Duration::from_secs(1);
        let mut arrivals = loop {
            match ARRIVALS.try_lock() {
                Ok(arrivals) => break arrivals,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                // It is held for a few instructions, but by a thread that a fork does not copy perhaps.
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(NoEvidence::new(
                        "the list of threads is locked: was the process forked while a thread began \
                         to record?",
                    ));
                }
            }
        };
        arrivals.session += 1;
        arrivals.opening = opening;
        // After a fork these may be the parent's.
        arrivals.new.clear();
        PROCESS.store(std::process::id(), Ordering::Release);
        Ok(Self {
            session: arrivals.session,
        })
    }

    /// No thread opens a ring any more.
    pub(super) fn refuse(&self, why: OpenError) {
        let mut arrivals = ARRIVALS.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.opening = Opening::Refused(why);
    }

    /// Those that came since the last time.
    pub(super) fn take(&self) -> Vec<Arrival> {
        let mut arrivals = ARRIVALS.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut arrivals.new)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if PROCESS.load(Ordering::Acquire) != std::process::id() {
            return;
        }
        let mut arrivals = ARRIVALS.lock().unwrap_or_else(PoisonError::into_inner);
        if arrivals.session == self.session {
            PROCESS.store(0, Ordering::Release);
            arrivals.new.clear();
        }
    }
}

/// Called on a thread after its first record of a session.
fn thread_began(thread: ThreadKey) {
    if PROCESS.load(Ordering::Acquire) != std::process::id() {
        return;
    }
    let lock = || ARRIVALS.lock().unwrap_or_else(PoisonError::into_inner);
    let arrivals = lock();
    let (session, opening) = (arrivals.session, arrivals.opening.clone());
    drop(arrivals);
    // Two system calls, with nothing locked.
    let ring = opening.open(None);
    let arrival = Arrival {
        tid: thread.tid,
        at: HostNanos(hook::now()),
        ring,
    };
    let mut arrivals = lock();
    let is_ours = PROCESS.load(Ordering::Relaxed) != 0 && arrivals.session == session;
    if is_ours {
        arrivals.new.push(arrival);
    }
}
