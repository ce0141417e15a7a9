//! Every call inside a launch boundary is joined to its epoch twice: by CUPTI's external correlation
//! record and by our own callback. Both agree with the truth, which is carried by a kernel argument.
//!
//! With both versions of CUPTI, both answers to whether a push inside the API-enter callback counts,
//! and with and without runtime calls around the driver's, under one correlation id or two.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::collections::HashMap;

use lineage_core::observation::{ActivityKind, ApiDomain, OperationsDue};
use lineage_core::{Attribution, Epoch};
use lineage_cupti::Cupti;
use lineage_sim::{Config, CuptiVersion, RuntimeCalls, isolated};

mod common;
use common::gpu::{self, Program};

const LAUNCHES: u64 = 200;

fn check(config: Config) {
    let runtime_calls = config.runtime_calls;
    let (sim, program) = Program::on(config);
    let session = gpu::session(Cupti::new().buffer_bytes(16 << 10));

    let mut epochs = Vec::new();
    for _ in 0..LAUNCHES {
        let epoch = Epoch::declare("request");
        let id = epoch.id().expect("recording");
        epoch.launch(|| {
            program.launch(id.pack().bits());
            program.set(64);
        });
        epochs.push(id);
    }
    program.synchronize();
    let report = gpu::end(session);

    // By truth: which correlation id the work of which epoch has.
    let truth: HashMap<u32, u64> = sim
        .truth()
        .operations
        .iter()
        .filter_map(|operation| Some((operation.correlation_id, operation.label?)))
        .collect();
    assert_eq!(truth.len() as u64, LAUNCHES);

    let operations = gpu::operations(&report);
    let kernels: Vec<_> = operations
        .iter()
        .filter(|operation| operation.kind == ActivityKind::Kernel)
        .collect();
    assert_eq!(kernels.len() as u64, LAUNCHES);
    assert_eq!(
        operations.len() as u64,
        2 * LAUNCHES,
        "a kernel and a set each"
    );
    assert!(
        kernels
            .iter()
            .all(|kernel| kernel.name.as_deref() == Some("work"))
    );
    assert!(
        kernels
            .iter()
            .all(|kernel| kernel.grid == [2, 1, 1] && kernel.block == [64, 1, 1])
    );

    // Our callback.
    let calls = gpu::calls(&report);
    assert_eq!(calls.len() as u64, 2 * LAUNCHES);
    let mut by_callback = HashMap::new();
    for call in &calls {
        assert!(call.in_boundary);
        assert_eq!(call.due, OperationsDue::One);
        assert_eq!(call.result, 0);
        assert!(call.exited.expect("left") >= call.entered);
        let Attribution::Epoch(epoch) = call.attribution else {
            panic!("a call inside a boundary belongs to {:?}", call.attribution);
        };
        by_callback.insert(call.correlation.0, epoch.pack().bits());
    }

    // CUPTI's external correlation.
    let externals = gpu::external_records(&report);
    let mut by_external = HashMap::new();
    for external in &externals {
        assert!(external.own_kind);
        assert!(
            external.beside.is_some(),
            "its API record is in the same buffer"
        );
        by_external.insert(external.correlation.0, external.external_id);
    }
    let api_records = gpu::api_records(&report);
    assert_eq!(
        externals.len(),
        api_records.len(),
        "one for each API record"
    );

    // Each driver call has both, and they agree.
    let driver_records: Vec<_> = api_records
        .iter()
        .filter(|record| record.api.domain == ApiDomain::Driver)
        .collect();
    assert_eq!(driver_records.len(), calls.len());
    // SAFETY: asks for a number.
    let tid = unsafe { libc::gettid() } as u64;
    for record in &driver_records {
        assert_eq!(record.tid, tid, "the system's thread id");
        let id = record.correlation.0;
        assert_eq!(by_callback.get(&id), by_external.get(&id), "call {id}");
    }
    let runtime_records = api_records.len() - driver_records.len();
    let wrapped = runtime_calls != RuntimeCalls::Off;
    assert_eq!(runtime_records, if wrapped { calls.len() } else { 0 });

    // Each kernel's id is that of a call with an external record, which says what the truth says.
    for kernel in &kernels {
        let id = kernel.correlation.0;
        assert_eq!(by_external.get(&id), truth.get(&id), "kernel of call {id}");
    }
    // And every epoch got its own.
    let mut found: Vec<u64> = truth.values().copied().collect();
    found.sort_unstable();
    assert_eq!(
        found,
        epochs
            .iter()
            .map(|epoch| epoch.pack().bits())
            .collect::<Vec<_>>()
    );

    let counts = sim.counts();
    assert_eq!(counts.pushes, LAUNCHES);
    assert_eq!(counts.pops, LAUNCHES);
    assert!(
        counts.stacks.is_empty(),
        "nothing is left on CUPTI's stacks: {:?}",
        counts.stacks
    );
}

macro_rules! combinations {
    ($($name:ident: $version:ident, $push:literal, $runtime:ident;)+) => {
        $(#[test]
        fn $name() {
            isolated(stringify!($name), || {
                check(
                    Config::default()
                        .cupti_version(CuptiVersion::$version)
                        .push_inside_enter_counts($push)
                        .runtime_calls(RuntimeCalls::$runtime),
                );
            });
        })+
    };
}

combinations! {
    in_12_9: V12_9, false, Off;
    in_12_9_where_a_push_inside_enter_counts: V12_9, true, Off;
    in_12_9_under_runtime_calls_of_the_same_id: V12_9, false, SameCorrelationId;
    in_12_9_under_runtime_calls_of_their_own_id: V12_9, true, OwnCorrelationId;
    in_13_5: V13_5, true, Off;
    in_13_5_where_a_push_inside_enter_does_not_count: V13_5, false, Off;
    in_13_5_under_runtime_calls_of_the_same_id: V13_5, true, SameCorrelationId;
    in_13_5_under_runtime_calls_of_their_own_id: V13_5, false, OwnCorrelationId;
}
