//! What the tests share: sessions, and the truth about a thread from elsewhere than the code under
//! test.
#![allow(dead_code, reason = "each test file uses a part")]
#![cfg(target_os = "linux")]

use std::time::Duration;

use lineage_core::observation::{Event, Scheduled, SchedulerSession, SwitchedOff};
use lineage_core::{Lineage, LineageBuilder, Report};
use lineage_sched::Scheduler;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Whether the system lets switches be collected here: a test that needs them says that it is skipped,
/// unless `LINEAGE_REQUIRE` names `switches`.
pub(crate) fn can_observe() -> bool {
    let Err(why) = Scheduler::check() else {
        return true;
    };
    let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
    let required = required.split(',').any(|part| part == "switches");
    assert!(
        !required,
        "switches are required, and cannot be collected: {}",
        why.why
    );
    eprintln!("skipped: {}", why.why);
    false
}

/// A session that keeps all it sees.
pub(crate) fn session(scheduler: Scheduler) -> LineageBuilder {
    Lineage::builder()
        .service("test")
        .scheduler(scheduler)
        .keep_in_memory(1 << 20)
}

pub(crate) fn end(lineage: Lineage) -> Report {
    lineage.shutdown(Duration::from_secs(10))
}

pub(crate) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn tid() -> u64 {
    rustix::thread::gettid().as_raw_nonzero().get() as u64
}

/// Keeps the calling thread on one of the processors that it may run on; which one.
pub(crate) fn pin(to: usize) -> usize {
    let allowed = sched_getaffinity(None).expect("asked");
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect();
    let cpu = cpus[to % cpus.len()];
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("pinned");
    cpu
}

/// How often a thread was switched off, as the kernel counts it: waiting, and while it could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SwitchCounts {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

/// Those of the calling thread so far.
pub(crate) fn switch_counts() -> SwitchCounts {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("read");
    let count = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok())
            .expect("a count")
    };
    SwitchCounts {
        voluntary: count("voluntary_ctxt_switches:"),
        involuntary: count("nonvoluntary_ctxt_switches:"),
    }
}

pub(crate) fn scheduler_sessions(report: &Report) -> Vec<SchedulerSession> {
    let events = report.observations.iter().map(|seen| &seen.event);
    let sessions = events.filter_map(|event| match event {
        Event::SchedulerSession(session) => Some(session.clone()),
        _ => None,
    });
    sessions.collect()
}

/// The switches of a thread, in order.
pub(crate) fn switches(report: &Report, tid: u64) -> Vec<Scheduled> {
    let events = report.observations.iter().map(|seen| &seen.event);
    let switches = events.filter_map(|event| match event {
        Event::Scheduled(switch) if switch.tid == tid => Some(switch.clone()),
        _ => None,
    });
    switches.collect()
}

/// A time in which a thread was off its processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Off {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) why: SwitchedOff,
    /// Where it went on.
    pub(crate) cpu: Option<u32>,
}

impl Off {
    pub(crate) fn ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// From switches in order to the times between off and on.
pub(crate) fn off_times(switches: &[Scheduled]) -> Vec<Off> {
    let mut times = Vec::new();
    let mut off: Option<&Scheduled> = None;
    for switch in switches {
        match (switch.running, off.take()) {
            (false, _) => off = Some(switch),
            (true, Some(from)) => times.push(Off {
                from_ns: from.at.0,
                to_ns: switch.at.0,
                why: from.off.expect("a switch off has a reason"),
                cpu: switch.cpu,
            }),
            (true, None) => {}
        }
    }
    times
}

/// Waits until a session's report says this.
pub(crate) fn until(lineage: &Lineage, says: impl Fn(&Report) -> bool) {
    let begun = std::time::Instant::now();
    while !says(&lineage.report()) {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{}",
            lineage.report()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How many files this process has open.
pub(crate) fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("read").count()
}

/// How many rings this process has mapped.
pub(crate) fn mapped_rings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("read");
    let rings = maps.lines().filter(|line| line.contains("[perf_event]"));
    rings.count()
}
