//! Another subscriber, a failing CUPTI, another session: the program runs on, and the report says what
//! happened and what to do.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::ffi::c_void;
use std::ptr::null_mut;

use lineage_core::source::{EvidenceSource, SourceContext, Tier};
use lineage_core::{DeviceEvidence, Epoch, Lineage};
use lineage_cupti::Cupti;
use lineage_sim::{Config, Gpu, isolated};

mod common;
use common::gpu::{self, Program};

unsafe extern "C" fn other_tool(_: *mut c_void, _: u32, _: u32, _: *const c_void) {}

/// Runs a program under a session, and answers why the session has no evidence.
fn why(sim: &Gpu, program: &Program, session: Lineage) -> String {
    let epoch = Epoch::declare("request");
    epoch.launch(|| program.launch(7));
    program.synchronize();
    let report = gpu::end(session);
    let labels: Vec<_> = sim
        .truth()
        .operations
        .iter()
        .filter_map(|operation| operation.label)
        .collect();
    assert_eq!(labels, [7], "the program ran on");
    assert!(gpu::calls(&report).is_empty());
    match report.device {
        DeviceEvidence::Absent { why } => {
            eprintln!("{why}");
            why.to_string()
        }
        other => panic!("there should be no evidence: {other}"),
    }
}

#[test]
fn another_subscriber() {
    isolated("another_subscriber", || {
        let (sim, program) = Program::on(Config::default());
        let cupti = gpu::cupti().functions();
        let mut subscriber = null_mut();
        // SAFETY: a valid place and a function that lives for good.
        let code = unsafe { (cupti.subscribe)(&mut subscriber, other_tool, null_mut()) };
        assert_eq!(code, 0);

        let why = why(&sim, &program, gpu::session(Cupti::new()));
        assert!(
            why.contains("another subscriber has CUPTI (code 39)"),
            "{why}"
        );
        assert!(why.contains("run without it"), "{why}");
        assert_eq!(sim.counts().pushes, 0);

        // The other tool's subscription is untouched; when it goes, we can come.
        // SAFETY: the handle from above.
        assert_eq!(unsafe { (cupti.unsubscribe)(subscriber) }, 0);
        let session = gpu::session(Cupti::new());
        program.launch(8);
        program.synchronize();
        assert_eq!(gpu::calls(&gpu::end(session)).len(), 1);
    });
}

#[test]
fn a_driver_that_does_not_start() {
    isolated("a_driver_that_does_not_start", || {
        let (sim, program) = Program::on(Config::default().fail_subscribe_with(Some(15)));
        let why = why(&sim, &program, gpu::session(Cupti::new()));
        assert!(
            why.contains("cuptiSubscribe of libcupti.so (CUPTI version 28)"),
            "{why}"
        );
        assert!(why.contains("code 15 (not initialized)"), "{why}");
        assert!(
            why.contains("the NVIDIA driver (for CUDA 12.9) works"),
            "{why}"
        );
    });
}

#[test]
fn activity_that_cannot_be_enabled() {
    isolated("activity_that_cannot_be_enabled", || {
        let (sim, program) = Program::on(Config::default().activity_enable_fails_with(Some(35)));
        let why = why(&sim, &program, gpu::session(Cupti::new()));
        assert!(why.contains("cuptiActivityEnable"), "{why}");
        assert!(why.contains("code 35 (insufficient privileges)"), "{why}");
        assert!(why.contains("ERR_NVGPUCTRPERM"), "{why}");

        // CUPTI is free again: nothing of the failed start is left.
        let mut subscriber = null_mut();
        // SAFETY: a valid place and a function that lives for good.
        let code = unsafe {
            (gpu::cupti().functions().subscribe)(&mut subscriber, other_tool, null_mut())
        };
        assert_eq!(code, 0);
    });
}

fn clock() -> u64 {
    1
}

#[test]
fn another_session_of_this_process() {
    isolated("another_session_of_this_process", || {
        let (_sim, _program) = Program::on(Config::default());
        let context = SourceContext::new(clock, Tier::Correlate);
        let mut first = Cupti::new();
        first.start(context).expect("CUPTI is free");
        let mut second = Cupti::new();
        let why = second.start(context).expect_err("it is not").to_string();
        assert!(
            why.contains("another session of lineage in this process"),
            "{why}"
        );
        first.stop(std::time::Duration::ZERO, &mut |_| {});
        second.start(context).expect("now it is");
    });
}
