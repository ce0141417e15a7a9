//! A clock that leaves `CLOCK_MONOTONIC` while the session runs: from there on nothing is claimed.
#![cfg(target_os = "linux")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lineage_core::Epoch;
use lineage_core::observation::SchedulerSession;
use lineage_sched::Scheduler;

static AHEAD_NS: AtomicU64 = AtomicU64::new(0);

fn clock() -> u64 {
    common::now_ns() + AHEAD_NS.load(Ordering::Relaxed)
}

#[test]
fn a_clock_that_goes_astray_ends_the_evidence() {
    if !common::can_observe() {
        return;
    }
    let lineage = common::session(Scheduler::new())
        .clock(clock)
        .start()
        .expect("a session");
    let _epoch = Epoch::declare("request");
    std::thread::sleep(Duration::from_millis(50));
    AHEAD_NS.store(1_000_000_000, Ordering::Relaxed);
    common::until(&lineage, |report| {
        let sessions = common::scheduler_sessions(report);
        let mut sessions = sessions.iter();
        sessions.any(|session| matches!(session, SchedulerSession::Unwatched { .. }))
    });
    std::thread::sleep(Duration::from_millis(600));
    let late = std::thread::spawn(|| {
        drop(Epoch::declare("late"));
        common::tid()
    });
    let late = late.join().expect("no panic");
    let report = common::end(lineage);

    let sessions = common::scheduler_sessions(&report);
    let of = |tid| {
        let of = sessions.iter().filter(move |session| match session {
            SchedulerSession::Watched { tid: it, .. }
            | SchedulerSession::Unwatched { tid: it, .. } => *it == tid,
            _ => false,
        });
        of.collect::<Vec<_>>()
    };
    let here = of(common::tid());
    let [
        SchedulerSession::Watched { .. },
        SchedulerSession::Unwatched { why, .. },
    ] = &*here
    else {
        panic!("{here:?}");
    };
    assert!(why.contains("CLOCK_MONOTONIC"), "{why}");
    let late = of(late);
    assert!(
        matches!(*late, [SchedulerSession::Unwatched { .. }]),
        "{late:?}"
    );
    // Of the last sleep nothing was seen: nobody looked any more.
    let switches = common::switches(&report, common::tid());
    let longest = common::off_times(&switches)
        .iter()
        .map(common::Off::ns)
        .max();
    assert!(longest.is_some_and(|ns| ns < 500_000_000), "{longest:?}");
}
