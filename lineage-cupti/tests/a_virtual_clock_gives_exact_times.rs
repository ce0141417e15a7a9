//! A session whose clock is the simulator's virtual one records the times that the model says, to the nanosecond, and the same in
//! each run: what a test of one's own can compare with numbers worked out by hand.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::collections::HashSet;

use lineage_core::{Epoch, Lineage};
use lineage_cupti::Cupti;
use lineage_sim::{Config, Settings, isolated};

mod common;
use common::gpu::{self, Program};

/// Calls of 3 µs and kernels of 8: from the first call on, the calls last from 0 to 3, 3 to 6, 6 to 9 and 9 to 12, and the kernels run from 3, 11, 19
/// and 27.
#[test]
fn a_session_sees_the_numbers_worked_out_by_hand() {
    isolated("a_session_sees_the_numbers_worked_out_by_hand", || {
        let settings = Settings::default().work_call_ns(3_000);
        let (sim, program) = Program::on(Config::default().model(settings).virtual_clock());
        sim.kernel("work")
            .label_argument(0)
            .duration_ns(8_000)
            .timed()
            .expect("a valid name");
        let session = Lineage::builder()
            .service("test")
            .clock(lineage_sim::now_ns)
            .keep_in_memory(1 << 20)
            .device(Cupti::new())
            .start()
            .expect("no other session is alive");
        let begin_ns = sim.now_ns();
        for _ in 0..4 {
            let epoch = Epoch::declare("request");
            let id = epoch.id().expect("recording").pack().bits();
            epoch.launch(|| program.launch(id));
        }
        program.synchronize();
        let report = gpu::end(session);
        assert!(gpu::dropped(&report).is_empty());

        let truth = sim.truth();
        let launches: HashSet<u32> = truth.calls.iter().map(|call| call.correlation_id).collect();
        let mut calls: Vec<(u64, u64)> = gpu::api_records(&report)
            .iter()
            .filter(|record| launches.contains(&record.correlation.0))
            .filter_map(|record| Some((record.start?.0 - begin_ns, record.end?.0 - begin_ns)))
            .collect();
        calls.sort_unstable();
        assert_eq!(
            calls,
            [(0, 3_000), (3_000, 6_000), (6_000, 9_000), (9_000, 12_000)]
        );
        let mut kernels: Vec<(u64, u64)> = gpu::operations(&report)
            .iter()
            .filter_map(|operation| {
                Some((operation.start?.0 - begin_ns, operation.end?.0 - begin_ns))
            })
            .collect();
        kernels.sort_unstable();
        assert_eq!(
            kernels,
            [
                (3_000, 11_000),
                (11_000, 19_000),
                (19_000, 27_000),
                (27_000, 35_000)
            ]
        );
    });
}
