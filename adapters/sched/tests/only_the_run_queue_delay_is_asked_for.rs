//! Without switches: how much a thread waited for its processor is known, though not when.
#![cfg(target_os = "linux")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lineage_core::Epoch;
use lineage_core::observation::{Event, RunQueue, SchedulerSession};
use lineage_sched::Scheduler;

#[test]
fn only_the_run_queue_delay_is_asked_for() {
    let scheduler = Scheduler::new()
        .switches(false)
        .run_queue_every(Duration::from_millis(20));
    let files = common::open_files();
    let lineage = common::session(scheduler).start().expect("a session");
    let done = AtomicBool::new(false);
    let (tid, began, from, to) = std::thread::scope(|scope| {
        scope.spawn(|| {
            common::pin(0);
            while !done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let victim = scope.spawn(|| {
            common::pin(0);
            let began = common::now_ns();
            let _epoch = Epoch::declare("request");
            // Not told of: nobody watches a thread before the drain thread has come.
            std::thread::sleep(Duration::from_millis(100));
            let from = common::now_ns();
            while common::now_ns() < from + 600_000_000 {
                std::hint::spin_loop();
            }
            (common::tid(), began, from, common::now_ns())
        });
        let truth = victim.join().expect("no panic");
        done.store(true, Ordering::Relaxed);
        truth
    });
    assert_eq!(common::open_files(), files, "it needs none");
    let report = common::end(lineage);
    let sessions = common::scheduler_sessions(&report);
    let only = sessions.iter().filter(
        |session| matches!(session, SchedulerSession::RunQueueOnly { tid: it, .. } if *it == tid),
    );
    assert_eq!(only.count(), 1);
    let mut waits: Vec<RunQueue> = Vec::new();
    for seen in &report.observations {
        match &seen.event {
            Event::RunQueue(wait) if wait.tid == tid => waits.push(wait.clone()),
            Event::Scheduled(switch) => panic!("{switch:?}"),
            _ => {}
        }
    }
    // Intervals follow one another without a gap.
    for pair in waits.windows(2) {
        assert!(pair[1].not_before <= pair[0].not_after, "{pair:?}");
        assert!(pair[1].not_before >= pair[0].not_before, "{pair:?}");
    }
    // Half of the time the other one ran. It may be a little less, where the thread was blocked.
    let within = waits
        .iter()
        .filter(|wait| wait.not_after.0 >= from && wait.not_before.0 <= to);
    let waited: u64 = within.map(|wait| wait.waited_ns).sum();
    assert!(waited > (to - from) / 8, "{waited} ns of {} ns", to - from);
    let all: u64 = waits.iter().map(|wait| wait.waited_ns).sum();
    assert!(all <= to - began, "{all} ns of {} ns", to - began);
}
