//! No file descriptor is left when a thread begins: the session says so and goes on, and has what
//! `/proc` gives as soon as it can be read.
#![cfg(target_os = "linux")]

mod common;

use lineage_core::observation::SchedulerSession;
use lineage_core::{Epoch, Report};
use lineage_sched::Scheduler;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn without_file_descriptors_the_reason_is_given() {
    if !common::can_observe() {
        return;
    }
    let lineage = common::session(Scheduler::new())
        .start()
        .expect("a session");
    let limit = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(3),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, none).expect("limited");
    drop(Epoch::declare("request"));
    let here = common::tid();
    let says = |report: &Report, is: fn(&SchedulerSession) -> Option<u64>| {
        let sessions = common::scheduler_sessions(report);
        sessions.iter().any(|session| is(session) == Some(here))
    };
    common::until(&lineage, |report| {
        says(report, |session| match session {
            SchedulerSession::Unwatched { tid, .. } => Some(*tid),
            _ => None,
        })
    });
    setrlimit(Resource::Nofile, limit).expect("as it was");
    common::until(&lineage, |report| {
        says(report, |session| match session {
            SchedulerSession::RunQueueOnly { tid, .. } => Some(*tid),
            _ => None,
        })
    });
    let report = common::end(lineage);

    let sessions = common::scheduler_sessions(&report);
    let of_here = sessions.iter().filter(|session| match session {
        SchedulerSession::Watched { tid, .. }
        | SchedulerSession::RunQueueOnly { tid, .. }
        | SchedulerSession::Unwatched { tid, .. } => *tid == here,
        _ => false,
    });
    let of_here: Vec<_> = of_here.collect();
    let [
        SchedulerSession::Unwatched { why, .. },
        SchedulerSession::RunQueueOnly { why: again, .. },
    ] = &*of_here
    else {
        panic!("{of_here:?}");
    };
    for why in [why, again] {
        assert!(why.contains("ulimit -n"), "{why}");
    }
    assert!(why.contains("schedstat could not be read"), "{why}");
    let text = report.scheduler.to_string();
    assert!(text.contains("ulimit -n"), "{text}");
}
