//! The same as any user: what the system allows is collected, and what cannot be mapped is told.
#![cfg(target_os = "linux")]

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Barrier;
use std::time::Duration;

use lineage_core::observation::{SchedulerSession, SwitchedOff};
use lineage_core::{Epoch, SchedulerEvidence};
use lineage_sched::Scheduler;
use rustix::process::{Resource, Rlimit, setrlimit};

const NOBODY: u32 = 65534;
const RING_BYTES: usize = 256 << 10;

#[test]
fn without_privilege_too() {
    if !rustix::process::geteuid().is_root() {
        return as_anyone();
    }
    // A copy, since nobody may not enter the folder that this program is in.
    let copy = std::env::temp_dir().join(format!("lineage-sched-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().expect("known"), &copy).expect("copied");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).expect("set");
    let output = Command::new(&copy)
        .args(["--exact", "without_privilege_too", "--nocapture"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    std::fs::remove_file(&copy).expect("removed");
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return eprintln!("skipped: no program may run from the folder for temporary files");
        }
        output => output.expect("run"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}");
    print!("{errors}");
}

fn number(path: &str) -> i64 {
    let text = std::fs::read_to_string(path).expect("read");
    text.trim().parse().expect("a number")
}

fn as_anyone() {
    let is_forbidden = number("/proc/sys/kernel/perf_event_paranoid") > 2;
    if !is_forbidden && !common::can_observe() {
        return;
    }
    // From here on only what the system lets everyone lock: that much for each processor.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Memlock, none).expect("limited");
    let cpus = std::thread::available_parallelism().expect("known").get();
    let lockable = number("/proc/sys/kernel/perf_event_mlock_kb") as usize * 1024 * cpus;
    // Each takes a half of what is left once a whole ring does not fit: a few more than fit.
    let threads = lockable / RING_BYTES + 16;

    let scheduler = Scheduler::new().ring_bytes(RING_BYTES);
    let lineage = common::session(scheduler).start().expect("a session");
    let together = Barrier::new(threads);
    let tids: Vec<u64> = std::thread::scope(|scope| {
        let live = || {
            drop(Epoch::declare("request"));
            together.wait();
            std::thread::sleep(Duration::from_millis(30));
            common::tid()
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(live)).collect();
        all.into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let report = common::end(lineage);
    eprintln!("as any user: {}", report.scheduler);
    let SchedulerEvidence::Present {
        watched,
        run_queue_only,
        unwatched,
        why: Some(why),
        ..
    } = &report.scheduler
    else {
        panic!("{}", report.scheduler);
    };
    assert_eq!((watched + run_queue_only, *unwatched), (threads as u64, 0));

    if is_forbidden {
        assert_eq!(*watched, 0);
        assert!(why.contains("perf_event_paranoid"), "{why}");
        return;
    }
    assert!(*watched > 0 && *run_queue_only > 0, "{}", report.scheduler);
    assert!(why.contains("ulimit -l"), "{why}");
    assert!(why.contains("perf_event_mlock_kb"), "{why}");
    // Who is watched is watched well, also in a small ring.
    for session in common::scheduler_sessions(&report) {
        if let SchedulerSession::Watched { tid, .. } = session {
            assert!(tids.contains(&tid));
            let off = common::off_times(&common::switches(&report, tid));
            let blocked = off.iter().filter(|off| off.why == SwitchedOff::Blocked);
            let longest = blocked.map(common::Off::ns).max();
            assert!(longest.is_some_and(|ns| ns >= 25_000_000), "{longest:?}");
        }
    }
}
