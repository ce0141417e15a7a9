//! However a recording is cut, and however little of it fits into memory, its parts together say
//! the same.

mod common;

use common::{call, collector, examine, kernel};
use lineage_core::fault::FaultCode;
use lineage_import::{Recording, Settings};

/// 3,000 launches with ids from 100, one kernel each, on two threads; by hand:
///
/// * ids 40 and 50: kernels of calls from before the recording;
/// * every 300th launch, from 300, has no kernel: 2,999 / 300 = 9 are lost (300, 600 … 2,700);
/// * every 500th call, from 250, is missing: 6 kernels are lost (250, 750 … 2,750);
/// * the last 4 launches have no kernel: the edge;
/// * every launch with a number of 7 past a multiple of 10 is a runtime call (its own id) around the
///   driver call, which has the next id and the kernel: 300 times, one call each.
fn recording(records_in_memory: usize, first: u32) -> Recording {
    let settings = Settings::default().records_in_memory(records_in_memory);
    let (mut collector, process) = collector(settings);
    let runtime = collector.name("cudaLaunchKernel_v7000");
    let driver = collector.name("cuLaunchKernel");
    let id = |number: u32| u64::from(first.wrapping_add(number));
    let mut keep = |orphan: u64, at| {
        let orphan = kernel(process, orphan, at);
        collector.activity(orphan).expect("kept");
    };
    keep(id(40), 5);
    keep(id(50), 8);
    for number in 0..3_000_u32 {
        let at = u64::from(number) * 1_000 + 1_000_000;
        let own = id(100 + 2 * number);
        let mut launch = call(process, own, runtime, at);
        launch.tid = 7 + u64::from(number % 2);
        if number % 500 != 250 {
            collector.api(launch).expect("kept");
        }
        let mut with_kernel = own;
        if number % 10 == 7 {
            let mut inner = call(process, own + 1, driver, at + 3);
            (inner.tid, inner.end_ns) = (launch.tid, Some(at + 6));
            collector.api(inner).expect("kept");
            with_kernel = own + 1;
        }
        let lost = number % 300 == 0 && number > 0;
        if !lost && number < 2_996 {
            let executed = kernel(process, with_kernel, at + 50);
            collector.activity(executed).expect("kept");
        }
    }
    collector.finish().expect("sorted")
}

#[test]
fn the_counts_are_those_worked_out_by_hand_however_it_is_cut() {
    for (records_in_memory, records, at_least) in [
        (100_000, 100_000, 1),
        (100_000, 700, 8),
        (500, 1, 2_000),
        (37, 64, 80),
    ] {
        let examined = examine(&recording(records_in_memory, 0), records);
        let counts = examined.counts();
        assert!(examined.slices >= at_least, "{} slices", examined.slices);
        assert_eq!(counts.api_calls, 3_000 - 6 + 300);
        assert_eq!(counts.calls, 3_000 - 6);
        assert_eq!(counts.kernels, 2 + 3_000 - 9 - 4);
        assert_eq!(counts.activity_without_launch, 2 + 6);
        assert_eq!(counts.before_recording, 2);
        assert_eq!(counts.operations_after_recording, 0);
        assert_eq!(counts.launch_without_activity, 9 + 4);
        assert_eq!(counts.calls_without_operation, 9);
        assert_eq!(counts.after_recording, 4);
        let faults = &examined.validation.fault_counts;
        assert_eq!(faults.get(&FaultCode::L02), Some(&6));
        assert_eq!(faults.get(&FaultCode::L03), Some(&9));
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert_eq!(examined.validation.session_faults, *faults);
        let joined = examined
            .rows
            .iter()
            .filter(|row| row.call.is_some() && row.operation.is_some());
        assert_eq!(joined.count(), 3_000 - 9 - 4 - 6);
    }
}

#[test]
fn ids_that_wrap_in_the_recording_change_nothing() {
    // Launch 1,000 has the last id before the wrap. Id 0 is none's.
    let first = 0_u32.wrapping_sub(100 + 2 * 1_000 + 1);
    for (records_in_memory, records) in [(100_000, 100_000), (500, 300)] {
        let recording = recording(records_in_memory, first);
        let examined = examine(&recording, records);
        let counts = examined.counts();
        assert_eq!(counts.kernels, 2 + 3_000 - 9 - 4);
        assert_eq!(counts.before_recording, 2);
        assert_eq!(counts.operations_after_recording, 0);
        assert_eq!(counts.calls_without_operation, 9);
        assert_eq!(counts.after_recording, 4);
        assert_eq!(
            examined.validation.fault_counts.get(&FaultCode::L02),
            Some(&6)
        );
    }
}
