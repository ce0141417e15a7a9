//! What a boundary does on CUPTI's stack of its thread: it pops only what it pushed, gives back what is
//! not its own, and reports it.
#![cfg(all(target_os = "linux", feature = "record"))]

use lineage_core::observation::MisuseKind;
use lineage_core::{Attribution, Epoch};
use lineage_cupti::{Cupti, ExternalKind};
use lineage_sim::{Config, Gpu, isolated};

mod common;
use common::gpu::{self, Program};

const CUSTOM0: u32 = 3;
const CUSTOM2: u32 = 5;

fn push(kind: u32, id: u64) {
    // SAFETY: takes numbers.
    let code = unsafe {
        (gpu::cupti()
            .functions()
            .activity_push_external_correlation_id)(kind, id)
    };
    assert_eq!(code, 0);
}

/// The id popped, or CUPTI's code.
fn pop(kind: u32) -> Result<u64, u32> {
    let mut id = 0;
    // SAFETY: a valid place.
    match unsafe {
        (gpu::cupti()
            .functions()
            .activity_pop_external_correlation_id)(kind, &mut id)
    } {
        0 => Ok(id),
        code => Err(code),
    }
}

/// External ids that were recorded with kernels' calls, under our kind.
fn recorded(report: &lineage_core::Report) -> Vec<u64> {
    let externals = gpu::external_records(report).into_iter();
    externals
        .filter(|record| record.own_kind)
        .map(|record| record.external_id)
        .collect()
}

fn on_gpu(name: &str, body: impl FnOnce(Gpu, Program)) {
    isolated(name, || {
        let (sim, program) = Program::on(Config::default());
        body(sim, program);
    });
}

#[test]
fn an_id_that_was_left_on_top_is_given_back_and_reported() {
    on_gpu(
        "an_id_that_was_left_on_top_is_given_back_and_reported",
        |sim, program| {
            let session = gpu::session(Cupti::new());
            let epoch = Epoch::declare("request");
            let id = epoch.id().expect("recording");
            epoch.launch(|| {
                program.launch(1);
                // Somebody forgets to pop.
                push(CUSTOM2, 99);
            });
            assert_eq!(pop(CUSTOM2), Ok(99), "given back");
            assert_eq!(pop(CUSTOM2), Ok(id.pack().bits()), "ours is under it");
            program.synchronize();
            let report = gpu::end(session);
            let misuses = gpu::misuses(&report);
            let found: Vec<_> = misuses
                .iter()
                .map(|misuse| (misuse.kind, misuse.attribution, misuse.value))
                .collect();
            assert_eq!(
                found,
                [(MisuseKind::ForeignExternalId, Attribution::Epoch(id), 99)],
                "W05, with what was expected and what was found"
            );
            assert!(sim.counts().stacks.is_empty());
        },
    );
}

#[test]
fn an_id_that_somebody_popped_is_reported() {
    on_gpu("an_id_that_somebody_popped_is_reported", |sim, _program| {
        let session = gpu::session(Cupti::new());
        let epoch = Epoch::declare("request");
        epoch.launch(|| pop(CUSTOM2).expect("ours"));
        let report = gpu::end(session);
        assert_eq!(gpu::misuses(&report).len(), 1);
        assert_eq!(sim.counts().pops_of_empty_stacks, 1);
    });
}

#[test]
fn another_tools_kind_is_another_stack() {
    on_gpu("another_tools_kind_is_another_stack", |sim, program| {
        let session = gpu::session(Cupti::new());
        let epoch = Epoch::declare("request");
        push(CUSTOM0, 1);
        epoch.launch(|| {
            push(CUSTOM0, 2);
            program.launch(1);
        });
        assert_eq!(pop(CUSTOM0), Ok(2));
        assert_eq!(pop(CUSTOM0), Ok(1));
        program.synchronize();
        let report = gpu::end(session);
        assert_eq!(
            recorded(&report),
            [epoch.id().expect("recording").pack().bits()]
        );
        let others: Vec<_> = gpu::external_records(&report)
            .into_iter()
            .filter(|record| !record.own_kind)
            .map(|record| (record.kind, record.external_id))
            .collect();
        assert_eq!(others, [(CUSTOM0, 2)]);
        assert!(gpu::misuses(&report).is_empty());
        assert!(sim.counts().stacks.is_empty());
    });
}

#[test]
fn the_kind_can_be_chosen() {
    on_gpu("the_kind_can_be_chosen", |_sim, program| {
        let session = gpu::session(Cupti::new().external_kind(ExternalKind::Custom0));
        let epoch = Epoch::declare("request");
        epoch.launch(|| program.launch(1));
        program.synchronize();
        let report = gpu::end(session);
        let kinds: Vec<_> = gpu::external_records(&report)
            .iter()
            .map(|record| record.kind)
            .collect();
        assert_eq!(kinds, [CUSTOM0]);
    });
}

#[test]
fn nested_boundaries_show_the_inner_epoch_and_then_the_outer_again() {
    let name = "nested_boundaries_show_the_inner_epoch_and_then_the_outer_again";
    on_gpu(name, |sim, program| {
        let session = gpu::session(Cupti::new());
        let (outer, inner) = (Epoch::declare("outer"), Epoch::declare("inner"));
        outer.launch(|| {
            program.launch(1);
            inner.launch(|| program.launch(2));
            lineage_core::detached("warm-up", || program.launch(3));
            program.launch(4);
        });
        program.synchronize();
        let ids = [&outer, &inner].map(|epoch| epoch.id().expect("recording").pack().bits());
        let report = gpu::end(session);
        let found = recorded(&report);
        assert_eq!(found.len(), 4);
        assert_eq!([found[0], found[1], found[3]], [ids[0], ids[1], ids[0]]);
        // Reserved: the highest 40-bit id.
        assert_eq!(
            found[2] >> 24,
            (1 << 40) - 1,
            "detached work does not show the outer epoch"
        );
        assert!(sim.counts().stacks.is_empty());
    });
}

#[test]
fn a_boundary_that_outlives_its_session_leaves_nothing_behind() {
    on_gpu(
        "a_boundary_that_outlives_its_session_leaves_nothing_behind",
        |sim, program| {
            let session = gpu::session(Cupti::new());
            let epoch = Epoch::declare("request");
            let boundary = epoch.enter_for_launch();
            gpu::end(session);
            drop(boundary);
            assert!(sim.counts().stacks.is_empty(), "{:?}", sim.counts().stacks);

            let session = gpu::session(Cupti::new());
            program.launch(1);
            program.synchronize();
            let report = gpu::end(session);
            assert!(
                recorded(&report).is_empty(),
                "the next session sees no stale id"
            );
            assert!(gpu::misuses(&report).is_empty());
        },
    );
}

#[test]
fn a_boundary_that_began_before_the_session_pops_nothing() {
    on_gpu(
        "a_boundary_that_began_before_the_session_pops_nothing",
        |sim, _program| {
            let first = gpu::session(Cupti::new());
            gpu::end(first);
            let boundary = lineage_core::enter_for_launch();
            let session = gpu::session(Cupti::new());
            drop(boundary);
            gpu::end(session);
            let counts = sim.counts();
            assert_eq!(
                (counts.pushes, counts.pops, counts.pops_of_empty_stacks),
                (0, 0, 0)
            );
        },
    );
}

#[test]
fn what_another_tool_pushes_after_the_session_is_its_own_affair() {
    let name = "what_another_tool_pushes_after_the_session_is_its_own_affair";
    on_gpu(name, |_sim, _program| {
        let session = gpu::session(Cupti::new());
        let epoch = Epoch::declare("request");
        let boundary = epoch.enter_for_launch();
        gpu::end(session);
        push(CUSTOM2, 99);
        let session = gpu::session(Cupti::new());
        drop(boundary);
        let report = gpu::end(session);
        assert_eq!(pop(CUSTOM2), Ok(99), "still on top");
        assert!(gpu::misuses(&report).is_empty());
    });
}
