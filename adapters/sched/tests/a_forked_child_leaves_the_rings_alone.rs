//! In the child of a fork a ring's memory is not there: nothing reads or unmaps it, and a session of
//! the child's own observes the child.
#![cfg(target_os = "linux")]

mod common;

use std::time::Duration;

use lineage_core::observation::SchedulerSession;
use lineage_core::{Epoch, SchedulerEvidence, hook};
use lineage_sched::Scheduler;

#[test]
fn a_forked_child_leaves_the_rings_alone() {
    if !common::can_observe() {
        return;
    }
    // Its ring waits for the drain thread when the process is forked.
    let lineage = common::session(Scheduler::new())
        .drain_every(Duration::from_secs(600))
        .start()
        .expect("a session");
    // The drain thread has taken what was there, and sleeps.
    std::thread::sleep(Duration::from_millis(200));
    drop(Epoch::declare("parent"));
    assert_eq!(common::mapped_rings(), 1);

    // SAFETY: no other thread holds a lock at this moment: the drain thread and the test harness are
    // asleep.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // As a handler of pthread_atfork would.
            hook::mark_forked_child();
            assert_eq!(common::mapped_rings(), 0, "the kernel did not copy it");
            let own = common::session(Scheduler::new())
                .start()
                .expect("a session");
            drop(Epoch::declare("child"));
            std::thread::sleep(Duration::from_millis(20));
            let report = common::end(own);
            let present = matches!(
                report.scheduler,
                SchedulerEvidence::Present { watched: 1, .. }
            );
            assert!(present, "{}", report.scheduler);
            let slept = common::switches(&report, common::tid());
            let longest = common::off_times(&slept).iter().map(common::Off::ns).max();
            assert!(longest.is_some_and(|ns| ns >= 19_000_000), "{longest:?}");
            // The parent's session ends here without a word.
            drop(lineage);
        }));
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(outcome.is_err())) };
    }
    assert!(child > 0, "forked");
    let mut status = 0;
    // SAFETY: waits for the child just made.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child's checks passed");

    // The parent's evidence is whole: its wait for the child among it.
    let report = common::end(lineage);
    let watched = common::scheduler_sessions(&report).into_iter().filter(
        |session| matches!(session, SchedulerSession::Watched { tid, .. } if *tid == common::tid()),
    );
    assert_eq!(watched.count(), 1);
    let waited = common::switches(&report, common::tid());
    let waited: u64 = common::off_times(&waited).iter().map(common::Off::ns).sum();
    assert!(waited >= 15_000_000, "it waited for the child: {waited} ns");
}
