//! In the child of a fork CUPTI does not work, and its threads and locks are not there: callbacks and
//! boundaries do nothing, and a session says why it has no evidence.
#![cfg(all(target_os = "linux", feature = "record"))]

use lineage_core::{Epoch, Lineage};
use lineage_cupti::Cupti;
use lineage_sim::{Config, isolated};

mod common;
use common::gpu::{self, Program};

#[test]
fn callbacks_and_boundaries_do_nothing_there() {
    isolated("callbacks_and_boundaries_do_nothing_there", || {
        let (sim, program) = Program::on(Config::default());
        let session = gpu::session(Cupti::new());
        let epoch = Epoch::declare("request");
        epoch.launch(|| program.launch(1));
        program.synchronize();
        let before = sim.counts();

        // SAFETY: the child calls nothing that another thread could have locked at this moment: this
        // thread is the only one that is not asleep.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let code = epoch.launch(|| program.try_launch(2));
                assert_ne!(
                    code, 0,
                    "as a real driver, this one refuses to work in a fork"
                );
                let after = sim.counts();
                assert_eq!(after.pushes, before.pushes, "nothing is pushed");
                assert_eq!(after.pops, before.pops, "nothing is popped");

                let own = Lineage::builder()
                    .device(Cupti::new())
                    .start()
                    .expect("a session");
                let why = own.report().device.to_string();
                assert!(why.contains("is a fork"), "{why}");
                own.shutdown(std::time::Duration::from_secs(1));
            }));
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(i32::from(outcome.is_err())) };
        }
        assert!(child > 0, "forked");
        let mut status = 0;
        // SAFETY: waits for the child just made.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((waited, status), (child, 0), "the child's checks passed");

        // The parent's session is as it was.
        epoch.launch(|| program.launch(3));
        program.synchronize();
        let report = gpu::end(session);
        assert_eq!(gpu::calls(&report).len(), 2);
        assert_eq!(gpu::operations(&report).len(), 2);
    });
}

#[test]
fn a_boundary_that_is_open_across_the_fork_is_left_alone_there() {
    isolated(
        "a_boundary_that_is_open_across_the_fork_is_left_alone_there",
        || {
            let (sim, _program) = Program::on(Config::default());
            let session = gpu::session(Cupti::new());
            let epoch = Epoch::declare("request");
            let boundary = epoch.enter_for_launch();
            // SAFETY: as above.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let before = sim.counts().pops;
                    drop(boundary);
                    assert_eq!(sim.counts().pops, before);
                }));
                // SAFETY: as above.
                unsafe { libc::_exit(i32::from(outcome.is_err())) };
            }
            let mut status = 0;
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0, "the child's checks passed");
            drop(boundary);
            assert_eq!(sim.counts().pops, 1);
            gpu::end(session);
        },
    );
}
