//! A ring that nobody reads in time: what it could not hold is told of, thread and time, and adds up
//! with what was seen to what the kernel counts elsewhere.
#![cfg(target_os = "linux")]

mod common;

use std::time::Duration;

use lineage_core::Epoch;
use lineage_core::observation::{DropSite, SchedulerSession};
use lineage_sched::Scheduler;

#[test]
fn a_full_ring_counts_what_it_drops() {
    if !common::can_observe() {
        return;
    }
    // One page, of 32 bytes a switch, read once in ten minutes and when the session ends.
    let lineage = common::session(Scheduler::new().ring_bytes(1))
        .drain_every(Duration::from_secs(600))
        .start()
        .expect("a session");
    let room = rustix::param::page_size() / 32;
    let victim = std::thread::spawn(move || {
        let _epoch = Epoch::declare("request");
        let before = common::switch_counts();
        for _ in 0..room * 2 {
            std::thread::sleep(Duration::from_micros(1));
        }
        let after = common::switch_counts();
        let sum = |counts: common::SwitchCounts| counts.voluntary + counts.involuntary;
        (common::tid(), sum(after) - sum(before))
    });
    let (tid, off) = victim.join().expect("no panic");
    let report = common::end(lineage);

    let switches = common::switches(&report, tid);
    // As much as it holds, and what the session's first reading found if that was late.
    assert!(switches.len() < room * 2, "{} in {room}", switches.len());
    let mut lost = 0;
    let mut last = None;
    for session in common::scheduler_sessions(&report) {
        if let SchedulerSession::Lost {
            tid: it,
            count,
            not_before,
            not_after,
        } = session
        {
            assert_eq!(it, tid);
            assert!(not_before.is_some_and(|at| at >= switches[0].at));
            assert_eq!(not_after, None, "no record came after");
            lost += count;
            last = not_before;
        }
    }
    assert_eq!(last, switches.last().map(|switch| switch.at));
    assert_eq!(report.totals.dropped[DropSite::SchedulerRing], lost);
    // On and off for each, some before the first reading and after the second, and the thread's end.
    let records = switches.len() as u64 + lost;
    assert!(
        (off * 2 - 1..=off * 2 + 20).contains(&records),
        "{records} records of {off} times off"
    );
    assert!(lost > off, "{lost} lost of {off} times off");

    // The end was lost as well, and is known all the same.
    let ended = common::scheduler_sessions(&report)
        .iter()
        .filter(|it| matches!(it, SchedulerSession::ThreadEnded { tid: it, .. } if *it == tid))
        .count();
    assert_eq!(ended, 1);
}
