//! What is said where there is less to be had, with folders in the place of `/proc/self/task`.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use lineage_core::observation::{Event, RunQueue};
use rustix::io::Errno;

use super::*;

/// A clock that counts its readings.
fn clock() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A folder that is removed at the end.
struct Tasks(PathBuf);

impl Tasks {
    fn new(name: &str) -> Self {
        let folder = format!("lineage-sched-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn put(&self, tid: u64, schedstat: Option<&str>) {
        let thread = self.0.join(tid.to_string());
        std::fs::create_dir_all(&thread).expect("a folder");
        if let Some(text) = schedstat {
            std::fs::write(thread.join("schedstat"), text).expect("written");
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What comes of this.
fn seen(does: impl FnOnce(Out<'_>)) -> Vec<Event> {
    let mut events = Vec::new();
    does(&mut |observation| events.push(observation.event));
    events
}

fn refused(tasks: &Tasks) -> Threads {
    let opening = Opening::Refused(OpenError::Filtered);
    Threads::new(opening, tasks.path().to_owned(), clock)
}

fn arrival(tid: u64, error: OpenError) -> Arrival {
    Arrival {
        tid,
        at: HostNanos(clock()),
        ring: Err(error),
    }
}

fn waits(events: &[Event]) -> Vec<&RunQueue> {
    let waits = events.iter().filter_map(|event| match event {
        Event::RunQueue(waits) => Some(waits),
        _ => None,
    });
    waits.collect()
}

#[test]
fn a_thread_whose_switches_are_forbidden_has_its_run_queue_delay_and_the_reason() {
    let tasks = Tasks::new("forbidden");
    tasks.put(71, Some("1000 200 3\n"));
    let mut threads = refused(&tasks);
    let events = seen(|out| threads.arrive(arrival(71, OpenError::Paranoid), out));
    let [Event::SchedulerSession(SchedulerSession::RunQueueOnly { tid: 71, why, at })] = &*events
    else {
        panic!("{events:?}");
    };
    assert!(why.contains("kernel.perf_event_paranoid"), "{why}");
    assert!(why.contains("CAP_PERFMON"), "{why}");
    let first = *at;

    tasks.put(71, Some("1500 900 5\n"));
    let events = seen(|out| threads.sample(out));
    let [waits] = *waits(&events) else {
        panic!("{events:?}");
    };
    let numbers = (waits.tid, waits.waited_ns, waits.ran_ns, waits.turns);
    assert_eq!(numbers, (71, 700, 500, 2));
    assert_eq!(waits.not_before, first);
    assert!(waits.not_after > first);

    std::fs::remove_dir_all(tasks.path().join("71")).expect("removed");
    let events = seen(|out| threads.sample(out));
    assert!(
        matches!(
            *events,
            [Event::SchedulerSession(SchedulerSession::ThreadEnded {
                tid: 71,
                ..
            })]
        ),
        "{events:?}"
    );
    assert_eq!(seen(|out| threads.sample(out)), [], "it is let go");
}

#[test]
fn a_thread_of_which_nothing_is_to_be_had_says_both_reasons_and_is_tried_again() {
    let tasks = Tasks::new("nothing");
    tasks.put(72, None);
    tasks.put(73, Some("0 0 0\n"));
    let mut threads = refused(&tasks);
    for tid in [72, 73] {
        let events = seen(|out| threads.arrive(arrival(tid, OpenError::NoDescriptor), out));
        let [Event::SchedulerSession(SchedulerSession::Unwatched { why, .. })] = &*events else {
            panic!("{events:?}");
        };
        assert!(why.contains("ulimit -n"), "{why}");
        assert!(why.contains("CONFIG_SCHED_INFO"), "{why}");
    }
    assert_eq!(seen(|out| threads.sample(out)), []);
    tasks.put(72, Some("5 6 7\n"));
    let events = seen(|out| threads.sample(out));
    let [Event::SchedulerSession(SchedulerSession::RunQueueOnly { tid: 72, why, .. })] = &*events
    else {
        panic!("{events:?}");
    };
    assert!(why.contains("ulimit -n"), "{why}");
}

#[test]
fn a_scan_finds_every_thread_once() {
    let tasks = Tasks::new("scan");
    tasks.put(74, Some("1 1 1"));
    tasks.put(75, Some("1 1 1"));
    std::fs::create_dir_all(tasks.path().join("no-thread")).expect("a folder");
    let mut threads = refused(&tasks);
    let mut found: Vec<u64> = seen(|out| threads.scan(out))
        .iter()
        .map(|event| match event {
            Event::SchedulerSession(SchedulerSession::RunQueueOnly { tid, .. }) => *tid,
            other => panic!("{other:?}"),
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, [74, 75]);
    assert_eq!(seen(|out| threads.scan(out)), []);
}

#[test]
fn threads_that_are_given_up_are_told_of_and_not_taken_up_again() {
    let tasks = Tasks::new("clock");
    tasks.put(76, Some("1 1 1"));
    let mut threads = refused(&tasks);
    seen(|out| threads.arrive(arrival(76, OpenError::Filtered), out));
    let why = OpenError::OtherClock { apart_ns: 123_456 };
    let events = seen(|out| threads.give_up(&why, out));
    let unwatched = |events: &[Event], expected| match events {
        [Event::SchedulerSession(SchedulerSession::Unwatched { tid, why, .. })] => {
            assert_eq!(*tid, expected);
            assert!(why.contains("123456 ns"), "{why}");
        }
        other => panic!("{other:?}"),
    };
    unwatched(&events, 76);
    let events = seen(|out| threads.arrive(arrival(77, why.clone()), out));
    unwatched(&events, 77);
    assert_eq!(seen(|out| threads.sample(out)), []);
}

#[test]
fn each_refusal_of_the_system_has_a_reason_that_helps() {
    let reason = |errno| OpenError::of_open(errno).to_string();
    assert!(reason(Errno::ACCESS).contains("sysctl kernel.perf_event_paranoid=2"));
    assert!(reason(Errno::PERM).contains("seccomp"));
    assert!(reason(Errno::NOSYS).contains("CONFIG_PERF_EVENTS"));
    assert!(reason(Errno::MFILE).contains("ulimit -n"));
    assert!(
        OpenError::of_map(Errno::PERM)
            .to_string()
            .contains("ulimit -l")
    );
}
