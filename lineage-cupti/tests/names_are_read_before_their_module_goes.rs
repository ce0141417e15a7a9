//! The names of kernels are read before their module is unloaded, or not at all.
//!
//! The simulator overwrites names with `?` when their module goes, as a driver may.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lineage_core::Report;
use lineage_core::observation::{Event, Operation};
use lineage_core::source::{EvidenceSource, SourceContext, Tier};
use lineage_cupti::Cupti;
use lineage_sim::{Config, CuptiVersion, isolated};

mod common;
use common::gpu::{self, Program};

fn name(operation: &Operation) -> Option<&str> {
    operation.name.as_deref()
}

fn names(report: &Report) -> Vec<Option<&str>> {
    gpu::operations(report).into_iter().map(name).collect()
}

fn one_buffer_for_all() -> Config {
    Config::default()
}

fn one_buffer_per_thread() -> Config {
    Config::default().cupti_version(CuptiVersion::V13_5)
}

fn launch_and_leave_at_once(config: Config) {
    let (_sim, program) = Program::on(config);
    let session = gpu::session(Cupti::new());
    (0..100).for_each(|label| program.launch(label));
    program.synchronize();
    program.unload();
    program.release();
    let report = gpu::end(session);
    assert_eq!(names(&report), [Some("work"); 100]);
    assert_eq!(gpu::calls(&report).len(), 100, "unloading asks for no work");
    assert!(gpu::dropped(&report).is_empty());
}

#[test]
fn when_module_and_context_go_at_once() {
    isolated("when_module_and_context_go_at_once", || {
        launch_and_leave_at_once(one_buffer_for_all());
    });
}

#[test]
fn when_module_and_context_go_at_once_and_threads_have_buffers() {
    let name = "when_module_and_context_go_at_once_and_threads_have_buffers";
    isolated(name, || launch_and_leave_at_once(one_buffer_per_thread()));
}

#[test]
fn when_only_the_context_goes() {
    isolated("when_only_the_context_goes", || {
        let (_sim, program) = Program::on(one_buffer_for_all());
        let session = gpu::session(Cupti::new());
        (0..100).for_each(|label| program.launch(label));
        program.synchronize();
        program.release();
        assert_eq!(names(&gpu::end(session)), [Some("work"); 100]);
    });
}

#[test]
fn while_work_runs_that_keeps_the_buffer() {
    isolated("while_work_runs_that_keeps_the_buffer", || {
        let (_sim, busy) = Program::on(one_buffer_for_all());
        let other = Program::new();
        let session = gpu::session(Cupti::new());
        // Three seconds of work, on another stream.
        busy.launch_longest(0);
        other.launch(100);
        other.synchronize();
        let began = Instant::now();
        other.unload();
        // What could not be waited for is not waited for again.
        for _ in 0..20 {
            Program::new().unload();
        }
        assert!(
            began.elapsed() < Duration::from_millis(2_500),
            "it waits no longer than it may"
        );
        busy.synchronize();
        assert!(session.flush(Duration::from_secs(10)), "all is decoded");
        // In a buffer that was lent after the unload.
        busy.launch(200);
        busy.synchronize();
        let report = gpu::end(session);
        let mut expected = vec![None; 2];
        expected.push(Some("work"));
        assert_eq!(
            names(&report),
            expected,
            "none from the buffer that could not be waited for"
        );
    });
}

fn unload_during_flushes(config: Config) {
    const ROUNDS: usize = 30;
    let (_sim, _program) = Program::on(config);
    let session = gpu::session(Cupti::new());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                let program = Program::new();
                (0..5).for_each(|label| program.launch(label));
                program.synchronize();
                program.unload();
                program.release();
            }
            done.store(true, Ordering::Release);
        });
        // Keeps the drain thread flushing.
        while !done.load(Ordering::Acquire) {
            session.flush(Duration::from_millis(5));
        }
    });
    assert_eq!(names(&gpu::end(session)), [Some("work"); 5 * ROUNDS]);
}

#[test]
fn while_the_drain_thread_flushes() {
    isolated("while_the_drain_thread_flushes", || {
        unload_during_flushes(one_buffer_for_all());
    });
}

#[test]
fn while_the_drain_thread_flushes_and_threads_have_buffers() {
    let name = "while_the_drain_thread_flushes_and_threads_have_buffers";
    isolated(name, || unload_during_flushes(one_buffer_per_thread()));
}

fn clock() -> u64 {
    lineage_core::hook::now()
}

#[test]
fn and_not_later_when_nobody_drained() {
    isolated("and_not_later_when_nobody_drained", || {
        let (_sim, program) = Program::on(one_buffer_for_all());
        let mut source = Cupti::new();
        source
            .start(SourceContext::new(clock, Tier::Correlate))
            .expect("CUPTI is free");
        program.launch(1);
        program.synchronize();
        program.unload();
        let mut operations = Vec::new();
        source.stop(Duration::from_secs(10), &mut |observation| {
            if let Event::Operation(operation) = observation.event {
                operations.push(operation);
            }
        });
        let names: Vec<_> = operations.iter().map(name).collect();
        assert_eq!(names, [None]);
    });
}

#[test]
fn and_not_after_a_callback_panicked() {
    isolated("and_not_after_a_callback_panicked", || {
        let (_sim, program) = Program::on(one_buffer_for_all());
        let mut source = Cupti::new();
        source
            .start(SourceContext::new(clock, Tier::Correlate))
            .expect("CUPTI is free");
        program.launch(1);
        program.synchronize();
        lineage_cupti::testing::panic_in_next_callback();
        program.launch(2);
        program.synchronize();
        let began = Instant::now();
        program.unload();
        assert!(began.elapsed() < Duration::from_millis(200), "no waiting");
        let mut operations = Vec::new();
        source.stop(Duration::from_secs(10), &mut |observation| {
            if let Event::Operation(operation) = observation.event {
                operations.push(operation);
            }
        });
        let names: Vec<_> = operations.iter().map(name).collect();
        assert_eq!(names, [None, None]);
    });
}
