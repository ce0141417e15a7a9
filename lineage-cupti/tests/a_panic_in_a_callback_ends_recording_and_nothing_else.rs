//! A panic in the callback does not cross into CUDA: the call goes on, recording ends, and the report
//! says why.
#![cfg(all(target_os = "linux", feature = "record"))]

use lineage_core::Epoch;
use lineage_core::observation::DropSite;
use lineage_cupti::Cupti;
use lineage_sim::{Config, isolated};

mod common;
use common::gpu::{self, Program};

#[test]
fn the_program_runs_on() {
    isolated("the_program_runs_on", || {
        let (sim, program) = Program::on(Config::default());
        let session = gpu::session(Cupti::new());
        let epoch = Epoch::declare("request");
        epoch.launch(|| {
            program.launch(1);
            lineage_cupti::testing::panic_in_next_callback();
            // Panics at entry, inside the boundary, whose id is popped all the same.
            program.launch(2);
            program.launch(3);
        });
        epoch.launch(|| program.launch(4));
        program.synchronize();
        let report = gpu::end(session);

        let labels: Vec<_> = sim
            .truth()
            .operations
            .iter()
            .filter_map(|operation| operation.label)
            .collect();
        assert_eq!(labels, [1, 2, 3, 4], "all of the program's work was done");
        assert_eq!(sim.counts().panics_caught, 0, "no panic reached the driver");

        let panics: Vec<_> = gpu::dropped(&report)
            .into_iter()
            .filter(|dropped| dropped.site == DropSite::CallbackPanic)
            .map(|dropped| dropped.count)
            .collect();
        assert_eq!(panics, [1], "recording is off after the first");
        assert_eq!(gpu::calls(&report).len(), 1, "the calls before it");
        assert_eq!(sim.counts().pushes, 1, "nothing is pushed any more");
        assert!(
            sim.counts().stacks.is_empty(),
            "what was pushed before was popped"
        );
    });
}

#[test]
fn a_later_session_records_again() {
    isolated("a_later_session_records_again", || {
        let (_sim, program) = Program::on(Config::default());
        let session = gpu::session(Cupti::new());
        lineage_cupti::testing::panic_in_next_callback();
        program.launch(1);
        program.synchronize();
        assert!(gpu::calls(&gpu::end(session)).is_empty());

        let session = gpu::session(Cupti::new());
        program.launch(2);
        program.synchronize();
        let report = gpu::end(session);
        assert_eq!(gpu::calls(&report).len(), 1);
        assert_eq!(gpu::operations(&report).len(), 1);
    });
}
