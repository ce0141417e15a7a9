//! Threads launch, buffers fill and are drained, all at once: everything is recorded once, under the
//! right epoch.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::collections::HashMap;

use lineage_core::Epoch;
use lineage_core::observation::ApiDomain;
use lineage_cupti::Cupti;
use lineage_sim::{Config, CuptiVersion, isolated};

mod common;
use common::gpu::{self, Program};

const THREADS: u64 = 6;
const LAUNCHES: u64 = 500;

fn check(version: CuptiVersion) {
    let (sim, program) = Program::on(Config::default().cupti_version(version));
    // About fifteen launches a buffer, so that buffers go round many times.
    let session = gpu::session(Cupti::new().buffer_bytes(4096).buffer_limit(1024));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                program.use_here();
                for _ in 0..LAUNCHES {
                    let epoch = Epoch::declare("request");
                    let id = epoch.id().expect("recording").pack().bits();
                    epoch.launch(|| program.launch(id));
                }
            });
        }
    });
    program.synchronize();
    let report = gpu::end(session);
    assert!(
        gpu::dropped(&report).is_empty(),
        "{:?}",
        gpu::dropped(&report)
    );
    assert!(
        sim.counts().buffers_completed > 50,
        "{}",
        sim.counts().buffers_completed
    );

    let truth: HashMap<u32, u64> = sim
        .truth()
        .operations
        .iter()
        .filter_map(|operation| Some((operation.correlation_id, operation.label?)))
        .collect();
    let total = (THREADS * LAUNCHES) as usize;
    assert_eq!(truth.len(), total);
    let operations: HashMap<u32, u64> = gpu::operations(&report)
        .iter()
        .filter_map(|operation| Some((operation.correlation.0, operation.end?.0)))
        .collect();
    assert_eq!(
        (operations.len(), gpu::operations(&report).len()),
        (total, total),
        "once each"
    );
    let externals = gpu::external_records(&report);
    assert_eq!(externals.len(), total);
    for external in externals {
        let id = external.correlation.0;
        assert_eq!(truth.get(&id), Some(&external.external_id), "call {id}");
        assert!(external.beside.is_some());
    }
    let calls = gpu::calls(&report);
    assert_eq!(calls.len(), total);
    // Each record is of the thread that our callback saw.
    let threads: HashMap<u32, u64> = calls
        .iter()
        .map(|call| (call.correlation.0, call.thread.tid))
        .collect();
    for record in gpu::api_records(&report) {
        assert_eq!(record.api.domain, ApiDomain::Driver);
        assert_eq!(threads.get(&record.correlation.0), Some(&record.tid));
    }
}

#[test]
fn with_one_buffer_for_all() {
    isolated("with_one_buffer_for_all", || check(CuptiVersion::V12_9));
}

#[test]
fn with_a_buffer_for_each() {
    isolated("with_a_buffer_for_each", || check(CuptiVersion::V13_5));
}
