//! What the tests share: one recording session at a time, its handoffs, and a steal that is certain.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lineage_core::id::{Attribution, LaunchEpoch};
use lineage_core::observation::{CarrierKind, Event};
use lineage_core::{Lineage, Report};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Runs `body` in a session of its own and hands back what was recorded. Sessions are one per
/// process, so tests of one binary take turns.
pub(crate) fn recorded<R>(body: impl FnOnce() -> R) -> (R, Report) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let lineage = Lineage::builder()
        .service("test")
        .keep_in_memory(1_000_000)
        .start()
        .expect("no other session is running");
    let result = body();
    assert_eq!(lineage_core::current(), Attribution::None);
    let report = lineage.shutdown(Duration::from_secs(10));
    assert_eq!(report.not_kept, 0);
    (result, report)
}

/// The epoch that is current here.
pub(crate) fn current() -> Option<LaunchEpoch> {
    lineage_core::current().epoch()
}

pub(crate) fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("a pool")
}

/// Makes sure that nothing is current on any of the pool's threads.
pub(crate) fn assert_nothing_is_current_on(pool: &ThreadPool) {
    for left in pool.broadcast(|_| lineage_core::current()) {
        assert_eq!(left, Attribution::None, "an epoch stayed on a thread");
    }
}

/// How many handoffs of an epoch went each way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handoffs {
    pub(crate) sent: usize,
    pub(crate) received: usize,
    pub(crate) abandoned: usize,
}

/// The handoffs of this epoch. All are a pool's.
pub(crate) fn handoffs(report: &Report, epoch: LaunchEpoch) -> Handoffs {
    let mut handoffs = Handoffs::default();
    for observation in &report.observations {
        let (handoff, count) = match &observation.event {
            Event::Sent(sent) => (sent.handoff, &mut handoffs.sent),
            Event::Received(received) => (received.handoff, &mut handoffs.received),
            Event::Abandoned(abandoned) => (abandoned.handoff, &mut handoffs.abandoned),
            _ => continue,
        };
        if handoff.epoch == epoch {
            assert_eq!(handoff.carrier, CarrierKind::Pool);
            *count += 1;
        }
    }
    handoffs
}

/// Keeps one of the pool's threads busy until the sender is used.
pub(crate) fn keep_one_busy(pool: &ThreadPool) -> Sender<()> {
    let (release, released) = channel();
    let (busy, is_busy) = channel();
    pool.spawn(move || {
        busy.send(()).expect("it waits");
        released.recv().expect("it is released");
    });
    is_busy.recv().expect("a thread is free");
    release
}

/// In whose functions a job waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Waits {
    InRayon,
    InLineage,
}

/// Waits in a `join` on this thread of a pool until the thread has run a job in the meantime: the
/// one that `spawn` makes, on another thread, and that uses the sender when it is done.
///
/// It cannot happen otherwise if all but two of the pool's threads are busy: the second closure
/// has to be stolen, since this thread does not come to it; the thief spawns the job and is itself
/// busy until it has run; so this thread, which looks for work while it waits, takes it.
pub(crate) fn in_the_midst(waits: Waits, spawn: impl FnOnce(Sender<()>) + Send) {
    let (stolen, is_stolen) = channel();
    let first = move || is_stolen.recv().expect("the second closure lives");
    let second = move || {
        stolen.send(()).expect("the first closure waits");
        let (done, is_done) = channel();
        spawn(done);
        is_done.recv().expect("the job is run");
    };
    match waits {
        Waits::InRayon => rayon::join(first, second),
        Waits::InLineage => lineage_rayon::join(first, second),
    };
}
