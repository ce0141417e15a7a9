//! A thread's switches, told by reason, are as many as the kernel counts of it elsewhere
//! (`/proc/thread-self/status`).
#![cfg(target_os = "linux")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use common::SwitchCounts;
use lineage_core::observation::SwitchedOff;
use lineage_core::{Epoch, SchedulerEvidence};
use lineage_sched::Scheduler;

const BLOCK: Duration = Duration::from_millis(20);
const SLACK_NS: u64 = 5_000_000;

/// Blocks for 20 ms in a way, and says between which times.
type Way = (&'static str, fn());

fn sleep() {
    std::thread::sleep(BLOCK);
}

fn wait_for_a_lock() {
    let (lock, wakes) = (Mutex::new(()), Condvar::new());
    let until = Instant::now() + BLOCK;
    let mut held = lock.lock().expect("not poisoned");
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        held = wakes.wait_timeout(held, left).expect("not poisoned").0;
    }
}

fn read_a_pipe() {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(BLOCK);
            rustix::io::write(&writer, b"x").expect("written");
        });
        let mut byte = [0];
        rustix::io::read(&reader, &mut byte).expect("read");
    });
}

fn wait_for_a_message() {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(BLOCK);
            send.send(()).expect("received");
        });
        receive.recv().expect("sent");
    });
}

const WAYS: [Way; 4] = [
    ("a sleep", sleep),
    ("a lock", wait_for_a_lock),
    ("a pipe", read_a_pipe),
    ("a message", wait_for_a_message),
];

/// What a thread did, and what the kernel counted meanwhile.
struct Truth {
    tid: u64,
    /// The two times that each block lies between.
    blocks: Vec<(&'static str, u64, u64)>,
    /// Of a loop that never waits, beside a competitor.
    spun: (u64, u64),
    before: Counted,
    after: Counted,
}

/// The kernel's counts, and between which times they were read.
struct Counted {
    counts: SwitchCounts,
    from: u64,
    to: u64,
}

fn count() -> Counted {
    let from = common::now_ns();
    let counts = common::switch_counts();
    let to = common::now_ns();
    Counted { counts, from, to }
}

fn victim(competes: &AtomicBool) -> Truth {
    common::pin(0);
    let _epoch = Epoch::declare("request");
    let before = count();
    let block = |&(name, block): &Way| {
        let from = common::now_ns();
        block();
        (name, from, common::now_ns())
    };
    let blocks = WAYS.iter().map(block).collect();
    competes.store(true, Ordering::Release);
    let from = common::now_ns();
    // Long enough for a scheduler that gives turns of up to 100 ms.
    while common::now_ns() < from + 400_000_000 {
        std::hint::spin_loop();
    }
    let spun = (from, common::now_ns());
    competes.store(false, Ordering::Release);
    Truth {
        tid: common::tid(),
        blocks,
        spun,
        before,
        after: count(),
    }
}

#[test]
fn every_switch_is_seen_with_its_reason() {
    if !common::can_observe() {
        return;
    }
    let lineage = common::session(Scheduler::new())
        .start()
        .expect("a session");
    let (competes, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let truth = std::thread::scope(|scope| {
        scope.spawn(|| {
            common::pin(0);
            while !done.load(Ordering::Acquire) {
                if !competes.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let victim = scope.spawn(|| victim(&competes));
        let truth = victim.join().expect("no panic");
        done.store(true, Ordering::Release);
        truth
    });
    let report = common::end(lineage);
    assert!(
        matches!(
            report.scheduler,
            SchedulerEvidence::Present {
                watched: 1,
                run_queue_only: 0,
                unwatched: 0,
                why: None,
                ..
            }
        ),
        "{}",
        report.scheduler
    );
    let switches = common::switches(&report, truth.tid);
    let off_times = common::off_times(&switches);

    for (name, from, to) in truth.blocks {
        let inside: Vec<_> = off_times
            .iter()
            .filter(|off| off.from_ns >= from && off.to_ns <= to)
            .collect();
        // It did next to nothing but wait, if only for its turn to begin waiting.
        let off: u64 = inside.iter().map(|off| off.ns()).sum();
        let all = to - from;
        assert!(
            off + SLACK_NS >= all,
            "{name}: off for {off} ns of {all} ns"
        );
        let blocked = inside.iter().filter(|off| off.why == SwitchedOff::Blocked);
        let blocked: u64 = blocked.map(|off| off.ns()).sum();
        assert!(blocked >= SLACK_NS, "{name}: blocked for {blocked} ns");
    }

    let (from, to) = truth.spun;
    let spinning: Vec<_> = off_times
        .iter()
        .filter(|off| off.from_ns >= from && off.to_ns <= to)
        .collect();
    let preempted = spinning
        .iter()
        .filter(|off| off.why == SwitchedOff::Preempted);
    let preempted: Vec<u64> = preempted.map(|off| off.ns()).collect();
    // Two threads that never wait share the processor: each has about half of it.
    let sum: u64 = preempted.iter().sum();
    assert!(sum > (to - from) / 8, "{sum} ns of {} ns", to - from);
    let blocked = spinning.len() - preempted.len();
    assert!(
        blocked <= 2,
        "a loop that never waits was blocked {blocked} times"
    );

    // As many of each kind as the kernel counted between its two readings.
    let seen = |why, from, to| {
        let off = switches.iter().filter(|switch| switch.off == Some(why));
        off.filter(|switch| (from..=to).contains(&switch.at.0))
            .count() as u64
    };
    let (before, after) = (truth.before, truth.after);
    for (why, counted) in [
        (
            SwitchedOff::Blocked,
            after.counts.voluntary - before.counts.voluntary,
        ),
        (
            SwitchedOff::Preempted,
            after.counts.involuntary - before.counts.involuntary,
        ),
    ] {
        let least = seen(why, before.to, after.from);
        let most = seen(why, before.from, after.to);
        assert!(
            (least..=most).contains(&counted),
            "{why:?}: {least} to {most} seen, {counted} counted"
        );
        assert!(counted >= 4, "{why:?}: {counted}");
    }

    // On and off take turns, in order of time.
    for pair in switches.windows(2) {
        assert_ne!(pair[0].running, pair[1].running, "{pair:?}");
        assert!(pair[0].at <= pair[1].at, "{pair:?}");
    }
    assert_eq!(report.totals.dropped.total(), 0);
}
