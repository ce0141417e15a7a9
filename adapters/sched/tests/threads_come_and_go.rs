//! Threads that begin and end while a session runs: each is told of, and nothing is left over.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use lineage_core::Epoch;
use lineage_core::observation::SchedulerSession;
use lineage_sched::Scheduler;

#[test]
fn threads_come_and_go_and_leave_nothing_behind() {
    if !common::can_observe() {
        return;
    }
    let files = common::open_files();
    let lineage = common::session(Scheduler::new())
        .start()
        .expect("a session");
    let mut lives: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut threads = 0;
    for _ in 0..20 {
        let ten: Vec<_> = (0..10)
            .map(|_| {
                std::thread::spawn(|| {
                    let began = common::now_ns();
                    drop(Epoch::declare("request"));
                    std::thread::sleep(Duration::from_millis(2));
                    (common::tid(), began, common::now_ns())
                })
            })
            .collect();
        for thread in ten {
            let (tid, began, ended) = thread.join().expect("no panic");
            // A system id that is given out again stands for the last one who had it.
            lives.insert(tid, (began, ended));
            threads += 1;
        }
    }
    // A thread that was waited for may still have to end in the kernel.
    common::until(&lineage, |_| common::mapped_rings() == 0);
    // One event is held from start to end, for which no thread is observed: without any, the kernel
    // would switch its hooks off, and the next thread would wait until they are on again.
    assert_eq!(common::open_files(), files + 1);

    let report = common::end(lineage);
    assert_eq!(common::open_files(), files);
    let (mut watched, mut ended) = (Vec::new(), BTreeMap::new());
    for session in common::scheduler_sessions(&report) {
        match session {
            SchedulerSession::Watched { tid, running, .. } => {
                assert_eq!(running, Some(true));
                watched.push(tid);
            }
            SchedulerSession::ThreadEnded { tid, at } => {
                ended.insert(tid, at.0);
            }
            SchedulerSession::Started { .. } | SchedulerSession::Ended { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(watched.len(), threads);
    for (tid, (began, last_seen)) in lives {
        assert!(watched.contains(&tid));
        let at = ended[&tid];
        assert!(
            at >= last_seen,
            "{tid} ended at {at}, and lived at {last_seen}"
        );
        // It slept once.
        let switches = common::switches(&report, tid);
        let off = common::off_times(&switches);
        let sleeps = off.iter().filter(|off| off.ns() >= 1_000_000);
        assert!(sleeps.count() >= 1, "{tid} slept after {began}");
    }
    assert_eq!(report.totals.dropped.total(), 0);
}
