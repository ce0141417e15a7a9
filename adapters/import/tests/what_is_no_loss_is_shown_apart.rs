//! Launches without an operation that miss nothing are counted by why, and are no fault.

mod common;

use common::{call, collector, examine, kernel};
use lineage_core::fault::FaultCode;
use lineage_import::{Settings, Skip};

#[test]
fn captured_failed_empty_and_late_calls_are_told_apart_from_lost_ones() {
    let (mut collector, process) = collector(Settings::default());
    let [launch, begin, end, set, copy] = [
        "cuLaunchKernel",
        "cuStreamBeginCapture_v2",
        "cuStreamEndCapture",
        "cuMemsetD32Async",
        "cuMemcpyHtoDAsync_v2",
    ]
    .map(|name| collector.name(name));
    let mut id = 0;
    let mut give = |name, result| {
        id += 1;
        let mut call = call(process, id, name, 1_000 * id);
        call.result = result;
        collector.api(call).expect("kept");
        id
    };
    let first = give(launch, 0);
    // Three while a capture is open; the copy among them goes on outside of it.
    give(begin, 0);
    give(launch, 0);
    give(launch, 0);
    let relaxed = give(copy, 0);
    give(end, 0);
    // Two failed, one set of nobody knows how many bytes, one lost.
    give(launch, 222);
    give(copy, 1);
    give(set, 0);
    let lost = give(launch, 0);
    let last = give(launch, 0);
    // Two after the last operation.
    give(launch, 0);
    give(copy, 0);
    for with_operation in [first, relaxed, last] {
        let executed = kernel(process, with_operation, 1_000 * with_operation + 50);
        collector.activity(executed).expect("kept");
    }
    let recording = collector.finish().expect("sorted");
    for records in [1, 3, 1_000] {
        let examined = examine(&recording, records);
        let counts = examined.counts();
        assert_eq!(counts.launch_without_activity, 2 + 2 + 1 + 1 + 2);
        assert_eq!(counts.maybe_captured, 2);
        assert_eq!(counts.failed_calls, 2);
        assert_eq!(counts.maybe_without_operation, 1);
        assert_eq!(counts.after_recording, 2);
        assert_eq!(counts.calls_without_operation, 1);
        let faults: Vec<_> = examined.validation.fault_counts.iter().collect();
        assert_eq!(faults, [(&FaultCode::L03, &1)]);
        let mut faulty = examined.rows.iter().filter(|row| !row.faults.is_empty());
        let call = faulty.next().and_then(|row| row.call.as_ref());
        assert_eq!(call.map(|call| call.correlation.0), Some(lost));
    }
}

#[test]
fn where_no_operation_was_recorded_at_all_none_is_lost() {
    let (mut collector, process) = collector(Settings::default());
    let launch = collector.name("cudaLaunchKernel_v7000");
    for id in 1..=5 {
        let call = call(process, id, launch, 1_000 * id);
        collector.api(call).expect("kept");
    }
    let recording = collector.finish().expect("sorted");
    for records in [1, 100] {
        let examined = examine(&recording, records);
        assert!(examined.validation.fault_counts.is_empty());
        assert!(examined.validation.session_faults.is_empty());
        assert_eq!(examined.counts().operations_not_collected, 5);
        assert_eq!(examined.counts().launch_without_activity, 5);
    }
}

#[test]
fn processes_are_never_joined_to_one_another() {
    let (mut collector, first) = collector(Settings::default());
    let second = collector.process(lineage_import::ProcessDescription::default());
    let launch = collector.name("cudaLaunchKernel_v7000");
    for id in 1..=4 {
        // The calls 1 to 4 of one, the kernels 2 to 4 of the other, and its own calls 3 and 4.
        collector
            .api(call(first, id, launch, 1_000 * id))
            .expect("kept");
        if id > 2 {
            collector
                .api(call(second, id, launch, 1_000 * id))
                .expect("kept");
        }
        if id > 1 {
            let executed = kernel(second, id, 1_000 * id + 50);
            collector.activity(executed).expect("kept");
        }
    }
    let examined = examine(&collector.finish().expect("sorted"), 100);
    assert_eq!(examined.counts().joined_kernels, 2);
    assert_eq!(examined.counts().before_recording, 1);
    assert_eq!(examined.counts().operations_not_collected, 4);
    assert!(examined.validation.fault_counts.is_empty());
}

#[test]
fn records_that_could_not_be_used_are_lost_records() {
    let (mut collector, process) = collector(Settings::default());
    let launch = collector.name("cudaLaunchKernel_v7000");
    collector.api(call(process, 1, launch, 5)).expect("kept");
    collector
        .api(call(process, 1 << 32, launch, 9))
        .expect("counted");
    collector.activity(kernel(process, 1, 20)).expect("kept");
    collector.skip_many(Skip::NoTime, 3);
    collector.skip(Skip::UnclosedRange);
    let recording = collector.finish().expect("sorted");
    assert_eq!(
        recording.holdings().skipped.get(&Skip::IdTooLarge),
        Some(&1)
    );
    assert_eq!(recording.holdings().lost_records(), 4);
    let examined = examine(&recording, 100);
    assert_eq!(
        examined.validation.fault_counts.get(&FaultCode::L07),
        Some(&4)
    );
}

#[test]
fn launches_without_an_id_are_neither_lost_nor_one_another() {
    let (mut collector, process) = collector(Settings::default());
    let launch = collector.name("cudaLaunchKernel_v7000");
    // Id 0 is no smaller id, so the last of them does not turn the clock back.
    for at in [1_000, 2_000, 9_000] {
        collector.api(call(process, 0, launch, at)).expect("kept");
    }
    collector
        .api(call(process, 9, launch, 4_000))
        .expect("kept");
    for (id, at) in [(0, 1_050), (0, 2_050), (9, 4_050)] {
        collector.activity(kernel(process, id, at)).expect("kept");
    }
    let recording = collector.finish().expect("sorted");
    for records in [1, 100] {
        let examined = examine(&recording, records);
        let counts = examined.counts();
        assert_eq!((counts.calls, counts.joined_kernels), (4, 1));
        assert_eq!(counts.asked_for_by_no_call, 2);
        assert_eq!(counts.launch_without_activity, 3);
        assert_eq!(counts.calls_without_operation, 0);
        assert!(
            examined.validation.fault_counts.is_empty(),
            "{}",
            examined.validation
        );
        assert!(examined.validation.session_faults.is_empty());
    }
}

#[test]
fn operations_of_a_process_without_any_call_are_not_after_the_recording() {
    let (mut collector, first) = collector(Settings::default());
    let second = collector.process(lineage_import::ProcessDescription::default());
    let launch = collector.name("cudaLaunchKernel_v7000");
    for id in 1..=3 {
        collector
            .api(call(first, id, launch, 1_000 * id))
            .expect("kept");
        collector
            .activity(kernel(first, id, 1_000 * id + 50))
            .expect("kept");
        collector
            .activity(kernel(second, id, 1_000 * id + 60))
            .expect("kept");
    }
    let examined = examine(&collector.finish().expect("sorted"), 100);
    assert_eq!(examined.counts().calls_not_collected, 3);
    assert_eq!(examined.counts().operations_after_recording, 0);
    assert_eq!(examined.counts().activity_without_launch, 3);
}

#[test]
fn what_has_no_id_is_given_once_however_much_it_is() {
    let (mut collector, process) = collector(Settings::default().records_in_memory(1_000));
    let launch = collector.name("cudaLaunchKernel_v7000");
    for id in 1..=10 {
        collector
            .api(call(process, id, launch, 1_000 * id))
            .expect("kept");
        collector
            .activity(kernel(process, id, 1_000 * id + 50))
            .expect("kept");
    }
    for at_ns in 0..20_000 {
        let switch = lineage_import::Scheduled {
            process: Some(process),
            tid: 7,
            at_ns,
            cpu: None,
            running: at_ns % 2 == 0,
            off: None,
            state: None,
        };
        collector.scheduled(switch).expect("kept");
    }
    let recording = collector.finish().expect("sorted");
    let mut times = Vec::new();
    for slice in recording.slices(4).expect("readable") {
        let slice = slice.expect("readable");
        assert!(slice.observations.len() < 5_000);
        times.extend(slice.observations.iter().filter_map(|of| match &of.event {
            lineage_core::observation::Event::Scheduled(switch) => Some(switch.at.0),
            _ => None,
        }));
    }
    assert_eq!(times, (0..20_000).collect::<Vec<_>>());
}
