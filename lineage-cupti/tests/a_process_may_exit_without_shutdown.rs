//! A process that ends in the middle of a session ends: no crash, no deadlock, whatever CUPTI still
//! calls while it does.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lineage_core::Epoch;
use lineage_cupti::Cupti;
use lineage_sim::Config;

mod common;
use common::gpu::{self, Program};

const CHILD: &str = "LINEAGE_CUPTI_EXITING_TEST";

/// Runs `body` in a process of its own, which it ends; answers what that printed.
fn exits(name: &str, body: impl FnOnce()) -> String {
    if std::env::var_os(CHILD).is_some() {
        body();
        unreachable!("the body ends the process");
    }
    let program = std::env::current_exe().expect("the test binary has a path");
    let mut child = Command::new(program)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test binary can be started again");
    let until = Instant::now() + Duration::from_secs(30);
    while child.try_wait().expect("a child of ours").is_none() {
        if Instant::now() > until {
            child.kill().expect("a child of ours");
            panic!("{name} hangs at exit");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("it has ended");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

fn print(text: &str) {
    // SAFETY: a plain write, which needs nothing of the standard library while the process ends.
    unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
}

#[test]
fn with_work_under_way() {
    exits("with_work_under_way", || {
        let (_sim, program) = Program::on(Config::default());
        std::mem::forget(gpu::session(Cupti::new()));
        let epoch = Epoch::declare("request");
        let _boundary = epoch.enter_for_launch();
        program.launch(1);
        program.launch_long(2);
        std::process::exit(0);
    });
}

#[test]
fn while_other_threads_launch() {
    exits("while_other_threads_launch", || {
        let (_sim, program) = Program::on(Config::default());
        std::mem::forget(gpu::session(Cupti::new().buffer_bytes(4096)));
        let program: &'static Program = Box::leak(Box::new(program));
        for _ in 0..3 {
            std::thread::spawn(move || {
                program.use_here();
                let epoch = Epoch::declare("request");
                loop {
                    epoch.launch(|| program.launch(1));
                }
            });
        }
        std::thread::sleep(Duration::from_millis(100));
        std::process::exit(0);
    });
}

/// What CUPTI's own exit handler may do: give all buffers back, after `main` and after the
/// thread's locals are gone.
extern "C" fn flush_at_exit() {
    // SAFETY: takes a number.
    let code = unsafe { (gpu::cupti().functions().activity_flush_all)(1) };
    print(if code == 0 {
        "flushed at exit\n"
    } else {
        "not flushed\n"
    });
}

#[test]
fn when_buffers_come_back_after_main() {
    let printed = exits("when_buffers_come_back_after_main", || {
        let (_sim, program) = Program::on(Config::default());
        gpu::cupti();
        // SAFETY: the handler is a function of this binary.
        unsafe { libc::atexit(flush_at_exit) };
        std::mem::forget(gpu::session(Cupti::new()));
        (0..100).for_each(|label| program.launch(label));
        program.synchronize();
        std::process::exit(0);
    });
    assert!(printed.contains("flushed at exit"), "{printed}");
}

/// A call that is made while a thread's locals are torn down.
struct LaunchesWhenDropped(&'static Program);

impl Drop for LaunchesWhenDropped {
    fn drop(&mut self) {
        self.0.launch(1);
        print("launched\n");
    }
}

thread_local! {
    static LAST: std::cell::RefCell<Option<LaunchesWhenDropped>> =
        const { std::cell::RefCell::new(None) };
}

#[test]
fn when_a_thread_local_launches_while_it_is_dropped() {
    let printed = exits("when_a_thread_local_launches_while_it_is_dropped", || {
        let (_sim, program) = Program::on(Config::default());
        let program: &'static Program = Box::leak(Box::new(program));
        let session = gpu::session(Cupti::new());
        let thread = std::thread::spawn(move || {
            // Made first, so dropped last: lineage's own locals are gone by then.
            LAST.with(|last| *last.borrow_mut() = Some(LaunchesWhenDropped(program)));
            program.use_here();
            program.launch(0);
        });
        thread.join().expect("no panic");
        program.synchronize();
        let report = gpu::end(session);
        assert_eq!(gpu::operations(&report).len(), 2, "both launches");
        print("ended\n");
        std::process::exit(0);
    });
    assert!(
        printed.contains("launched") && printed.contains("ended"),
        "{printed}"
    );
}
