//! Times that cannot be compared are no evidence: the session says so and goes on.
#![cfg(target_os = "linux")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use lineage_core::observation::{Event, SchedulerSession};
use lineage_core::{Epoch, SchedulerEvidence};
use lineage_sched::Scheduler;

fn virtual_clock() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1_000, Ordering::Relaxed)
}

#[test]
fn a_clock_of_another_kind_gives_no_evidence() {
    let lineage = common::session(Scheduler::new())
        .clock(virtual_clock)
        .start()
        .expect("a session");
    drop(Epoch::declare("request"));
    let report = common::end(lineage);
    let SchedulerEvidence::Absent { why } = &report.scheduler else {
        panic!("{}", report.scheduler);
    };
    assert!(why.contains("CLOCK_MONOTONIC"), "{why}");
    let sessions = common::scheduler_sessions(&report);
    let [SchedulerSession::Absent { why: told, .. }] = &*sessions else {
        panic!("{sessions:?}");
    };
    assert_eq!(told, why);
    let text = report.to_string();
    assert!(
        text.contains("no scheduler evidence: the session's clock"),
        "{text}"
    );
    let declared = report
        .observations
        .iter()
        .filter(|seen| matches!(seen.event, Event::Declared(_)));
    assert_eq!(declared.count(), 1, "the session goes on");
}
