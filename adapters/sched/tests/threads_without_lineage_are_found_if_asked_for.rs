//! `all_threads`: a thread that does not use lineage is found and observed, and only once where it
//! does later.
#![cfg(target_os = "linux")]

mod common;

use std::sync::mpsc;
use std::time::Duration;

use lineage_core::observation::{SchedulerSession, SwitchedOff};
use lineage_core::{Epoch, Report};
use lineage_sched::Scheduler;

#[test]
fn threads_without_lineage_are_found_if_asked_for() {
    if !common::can_observe() {
        return;
    }
    let (go_on, waits) = mpsc::channel::<()>();
    let (says, tid) = mpsc::channel();
    let stranger = std::thread::spawn(move || {
        says.send(common::tid()).expect("received");
        while waits.recv_timeout(Duration::from_millis(5)).is_err() {}
        drop(Epoch::declare("late"));
    });
    let tid = tid.recv().expect("sent");
    let scheduler = Scheduler::new().all_threads(true);
    let lineage = common::session(scheduler).start().expect("a session");
    let says = |report: &Report, is: fn(&SchedulerSession) -> Option<u64>| {
        let sessions = common::scheduler_sessions(report);
        sessions.iter().any(|session| is(session) == Some(tid))
    };
    common::until(&lineage, |report| {
        says(report, |session| match session {
            SchedulerSession::Watched { tid, .. } => Some(*tid),
            _ => None,
        })
    });
    std::thread::sleep(Duration::from_millis(200));
    go_on.send(()).expect("received");
    stranger.join().expect("no panic");
    common::until(&lineage, |report| {
        says(report, |session| match session {
            SchedulerSession::ThreadEnded { tid, .. } => Some(*tid),
            _ => None,
        })
    });
    let report = common::end(lineage);

    let sessions = common::scheduler_sessions(&report);
    let watched = sessions.iter().filter(|session| {
        matches!(session, SchedulerSession::Watched { tid: it, running: None, .. } if *it == tid)
    });
    assert_eq!(watched.count(), 1);
    let ended = sessions.iter().filter(
        |session| matches!(session, SchedulerSession::ThreadEnded { tid: it, .. } if *it == tid),
    );
    assert_eq!(ended.count(), 1);
    let switches = common::switches(&report, tid);
    let blocked = common::off_times(&switches)
        .iter()
        .filter(|off| off.why == SwitchedOff::Blocked)
        .count();
    assert!(blocked >= 5, "it slept 5 ms again and again: {blocked}");
}
