//! What a trace says of a record is what comes out, worked out by hand.

mod traces;

use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{ActivityKind, Footprint, SynchronizationKind};
use lineage_import::{DeviceDescription, ProcessDescription};

/// As Kineto writes it since 2024.
const API: &str = r#"{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
    "pid": 900, "tid": 901, "ts": 4203669604595.407, "dur": 340.024,
    "args": {"External id": 5, "cbid": 211, "correlation": 41}}"#;
const KERNEL: &str = r#"{"ph": "X", "cat": "kernel", "name": "void gemm<float>(float*)",
    "pid": 3, "tid": 7, "ts": 4203669605000.25, "dur": 17,
    "args": {"External id": 5, "queued": 0, "device": 3, "context": 2, "stream": 7,
    "correlation": 41, "registers per thread": 122, "shared memory": 69632, "blocks per SM": NaN,
    "grid": [8, 16, 5], "block": [128, 2, 1], "graph id": 6, "graph node id": 25769803780}}"#;

#[test]
fn a_launch_and_its_kernel() {
    let text = traces::trace(
        r#""baseTimeNanoseconds": 1735632360000000000,"#,
        &[API, KERNEL],
    );
    let recording = traces::sound(text);
    let base = 1_735_632_360_000_000_000;

    let [call] = &traces::calls(&recording)[..] else {
        panic!("one call")
    };
    assert_eq!(call.correlation, CorrelationId(41));
    assert_eq!(call.api.name.as_deref(), Some("cudaLaunchKernel"));
    assert_eq!(call.tid, 901);
    assert_eq!(call.start, Some(HostNanos(base + 4_203_669_604_595_407)));
    assert_eq!(call.end, Some(HostNanos(base + 4_203_669_604_935_431)));
    assert_eq!(call.result, 0);

    let [kernel] = &traces::operations(&recording)[..] else {
        panic!("one operation")
    };
    assert_eq!(kernel.kind, ActivityKind::Kernel);
    assert_eq!(kernel.correlation, CorrelationId(41));
    assert_eq!(kernel.name.as_deref(), Some("void gemm<float>(float*)"));
    assert_eq!((kernel.device, kernel.context, kernel.stream), (3, 2, 7));
    assert_eq!(kernel.start, Some(HostNanos(base + 4_203_669_605_000_250)));
    assert_eq!(kernel.end, Some(HostNanos(base + 4_203_669_605_017_250)));
    assert_eq!((kernel.queued, kernel.submitted), (None, None));
    assert_eq!((kernel.grid, kernel.block), ([8, 16, 5], [128, 2, 1]));
    let expected = Footprint {
        registers_per_thread: 122,
        shared_bytes: 69_632,
        blocks_per_cluster: None,
    };
    assert_eq!(kernel.footprint, Some(expected));
    assert_eq!(kernel.graph_node, Some(25_769_803_780));
    assert_eq!(kernel.graph, Some(6));

    let process = &recording.holdings().processes[0];
    assert_eq!(process.description.pid, Some(900));
    assert_eq!(process.first_ns, Some(base + 4_203_669_604_595_407));
    assert_eq!(process.last_ns, Some(base + 4_203_669_605_017_250));
    assert_eq!(recording.holdings().others["NaN and infinite values"], 1);
}

#[test]
fn the_base_of_times_may_come_after_the_events() {
    let before = traces::trace(
        r#""baseTimeNanoseconds": 1700000000000000000,"#,
        &[API, KERNEL],
    );
    let after = format!(
        r#"{{"traceEvents": [{API}, {KERNEL}], "baseTimeNanoseconds": 1700000000000000000}}"#
    );
    let [before, after] = [before, after].map(traces::sound);
    assert_eq!(traces::events(&before), traces::events(&after));
    assert_eq!(before.holdings(), after.holdings());
    let [call] = &traces::calls(&after)[..] else {
        panic!("one call")
    };
    assert_eq!(
        call.start,
        Some(HostNanos(1_700_000_000_000_000_000 + 4_203_669_604_595_407))
    );
}

#[test]
fn a_bare_list_of_2021_that_ends_in_an_empty_object() {
    let text = r#"[
    {"ph": "X", "cat": "Runtime", "name": "cudaMemcpyAsync", "pid": 67844, "tid": "4093687616",
     "ts": 1606910596350464, "dur": 2494,
     "args": {"cbid": 41, "correlation": 65460, "external id": 862, "external ts": 1606910596350436}},
    {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0,
     "tid": "stream 7", "ts": 1606910596350714, "dur": 2353,
     "args": {"device": "0", "context": "1", "correlation": "65460", "bytes": "19267584"}},
    {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 1, "tid": "stream 9",
     "ts": 1606910596288081, "dur": 1, "args": {"correlation": 60031, "bytes": 1048576}},
    {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7",
     "ts": "1606910596288085", "dur": "379", "args": {"correlation": 60032}},
    {"ph": "X", "cat": "Operator", "name": "aten::empty", "pid": 67844, "tid": "4093687616",
     "ts": 1606910596297023, "dur": 13, "args": {"Device": 0}},
    {}
    ]"#;
    let recording = traces::sound(text);
    assert_eq!(traces::counts(&recording), [1, 1, 1, 1]);
    assert_eq!(traces::skipped(&recording), []);
    let [call] = &traces::calls(&recording)[..] else {
        panic!("one call")
    };
    assert_eq!(call.tid, 4_093_687_616);
    assert_eq!(call.start, Some(HostNanos(1_606_910_596_350_464_000)));
    assert_eq!(call.end, Some(HostNanos(1_606_910_596_352_958_000)));
    let [set, kernel, copy] = &traces::operations(&recording)[..] else {
        panic!("three operations")
    };
    assert_eq!(
        (set.kind, set.device, set.stream),
        (ActivityKind::Set, 1, 9)
    );
    assert_eq!(set.bytes, 1_048_576);
    assert_eq!((kernel.kind, kernel.stream), (ActivityKind::Kernel, 7));
    assert_eq!(kernel.end, Some(HostNanos(1_606_910_596_288_464_000)));
    assert_eq!(
        (copy.kind, copy.context, copy.stream),
        (ActivityKind::Copy, 1, 7)
    );
    assert_eq!((copy.bytes, copy.copies), (19_267_584, 1));
    assert_eq!(
        copy.name.as_deref(),
        Some("Memcpy HtoD (Pageable -> Device)")
    );
    let others: Vec<_> = recording.holdings().others.iter().collect();
    assert_eq!(others, [(&"Operator".to_owned(), &1)]);
}

#[test]
fn the_order_of_members_does_not_matter() {
    let text = traces::trace(
        "",
        &[
            r#"{"args": {"stream": 7, "device": 1, "correlation": 9}, "cat": "kernel", "dur": 2,
            "name": "k", "ph": "X", "pid": 1, "tid": 7, "ts": 5}"#,
            r#"{"args": {"correlation": 1}, "cat": "cpu_op", "ph": "X"}"#,
        ],
    );
    let [kernel] = &traces::operations(&traces::sound(text))[..] else {
        panic!("one operation")
    };
    assert_eq!(kernel.correlation, CorrelationId(9));
    assert_eq!((kernel.device, kernel.stream), (1, 7));
    assert_eq!(kernel.start, Some(HostNanos(5_000)));
    assert_eq!(kernel.end, Some(HostNanos(7_000)));
}

#[test]
fn a_launch_of_hip_names_its_kernel_and_a_copy_between_devices_its_own() {
    let text = traces::trace(
        "",
        &[
            r#"{"ph": "X", "cat": "cuda_runtime", "name": "hipModuleLaunchKernel", "pid": 851,
            "tid": 852, "ts": 10.5, "dur": 1.25, "args": {"cid": 60, "correlation": 33924,
            "kernel": "gemm", "grid": [1, 1, 1], "stream": "0x0"}}"#,
            r#"{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "pid": 4,
            "tid": 5, "ts": 12, "dur": 1, "args": {"fromDevice": 1, "inDevice": 2, "toDevice": 3,
            "fromContext": 11, "inContext": 12, "toContext": 13, "stream": 21, "correlation": 7,
            "bytes": 64, "memory bandwidth (GB/s)": "N/A"}}"#,
        ],
    );
    let recording = traces::sound(text);
    let [call] = &traces::calls(&recording)[..] else {
        panic!("one call")
    };
    assert_eq!(call.tid, 852);
    assert_eq!(call.start, Some(HostNanos(10_500)));
    assert_eq!(call.end, Some(HostNanos(11_750)));
    let [copy] = &traces::operations(&recording)[..] else {
        panic!("one operation")
    };
    assert_eq!((copy.device, copy.context, copy.stream), (2, 12, 21));
    assert_eq!(traces::skipped(&recording), []);
}

#[test]
fn waits_say_for_what_and_events_by_whom_they_were_recorded() {
    let text = traces::trace(
        "",
        &[
            r#"{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 20,
            "ts": 5, "dur": 2, "args": {"cuda_sync_kind": "Stream Wait Event",
            "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 30,
            "wait_on_cuda_event_id": 9, "stream": 20, "correlation": 31, "context": 1}}"#,
            r#"{"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "pid": 0, "tid": -1,
            "ts": 6, "dur": 2, "args": {"cuda_sync_kind": "Event Sync", "wait_on_stream": -1,
            "wait_on_cuda_event_record_corr_id": -1, "wait_on_cuda_event_id": 9, "stream": -1,
            "correlation": 32, "device": 0, "context": 1}}"#,
            r#"{"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "ts": 7,
            "args": {"stream": 8, "correlation": 33}}"#,
            r#"{"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "ts": 8,
            "args": {"cuda_sync_kind": "Context Sync", "correlation": 34}}"#,
            r#"{"ph": "X", "cat": "cuda_sync", "name": "Something Sync", "ts": 9,
            "args": {"correlation": 35}}"#,
            r#"{"ph": "X", "cat": "cuda_event", "name": "cudaEventRecord", "ts": 4,
            "args": {"event_id": 9, "stream": 7, "context": 1, "correlation": 30}}"#,
        ],
    );
    let recording = traces::sound(text);
    let [wait, event, stream, context, unknown] = &traces::waits(&recording)[..] else {
        panic!("five waits")
    };
    assert_eq!(wait.kind, SynchronizationKind::StreamWait);
    assert_eq!(wait.correlation, CorrelationId(31));
    assert_eq!(
        (wait.context, wait.stream, wait.event),
        (Some(1), Some(20), Some(9))
    );
    assert_eq!(wait.recorded_by, Some(CorrelationId(30)));
    assert_eq!(
        (wait.start, wait.end),
        (Some(HostNanos(5_000)), Some(HostNanos(7_000)))
    );
    assert_eq!(event.kind, SynchronizationKind::Event);
    assert_eq!(
        (event.stream, event.event, event.recorded_by),
        (None, Some(9), None)
    );
    assert_eq!(
        (stream.kind, stream.stream),
        (SynchronizationKind::Stream, Some(8))
    );
    assert_eq!((stream.start, stream.end), (Some(HostNanos(7_000)), None));
    assert_eq!(context.kind, SynchronizationKind::Context);
    assert_eq!(unknown.kind, SynchronizationKind::Unknown);
    let [record] = &traces::event_records(&recording)[..] else {
        panic!("one record")
    };
    assert_eq!(record.correlation, CorrelationId(30));
    assert_eq!(
        (record.context, record.stream, record.event),
        (Some(1), Some(7), Some(9))
    );
    assert_eq!(record.device, None);
    assert_eq!(traces::skipped(&recording), []);
}

#[test]
fn the_trace_describes_its_process_its_devices_and_its_versions() {
    let text = format!(
        r#"{{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "NVIDIA \u00c0100",
        "totalGlobalMem": 42297524224}}, {{"id": 3, "name": ""}}], "cupti_version": 130001,
        "INFO": ["a", {{"b": [1, 2]}}], "traceEvents": [
        {{"name": "process_name", "ph": "M", "ts": 1.5, "pid": 900, "tid": 0, "args": {{"name": "VLLM::Engine"}}}},
        {{"name": "process_name", "ph": "M", "ts": 1.5, "pid": 0, "tid": 0, "args": {{"name": "python"}}}},
        {{"name": "thread_name", "ph": "M", "ts": 1.5, "pid": 900, "tid": 0, "args": {{"name": "thread 1"}}}},
        {API}], "traceName": "x.json", "distributedInfo": {{"backend": "nccl", "rank": 5,
        "world_size": 8, "pg_config": [{{"ranks": [0]}}]}}, "roctracer_version": 4.1}}"#
    );
    let recording = traces::sound(text);
    let holdings = recording.holdings();
    assert_eq!(
        holdings.processes[0].description,
        ProcessDescription {
            pid: Some(900),
            name: Some("VLLM::Engine".to_owned()),
            rank: Some(5),
        }
    );
    let device = |ordinal, name: Option<&str>| DeviceDescription {
        process: None,
        ordinal,
        name: name.map(str::to_owned),
        ..DeviceDescription::default()
    };
    assert_eq!(
        holdings.devices,
        [device(0, Some("NVIDIA \u{c0}100")), device(3, None)]
    );
    assert_eq!(
        holdings.version.as_deref(),
        Some("schema 1, CUPTI 130001, roctracer 4.1")
    );
    assert_eq!(holdings.others["metadata"], 3);
    assert_eq!(holdings.notes, [""; 0]);
    assert!(!holdings.results_recorded);
}

#[test]
fn what_needs_no_join_is_counted_by_its_own_name() {
    let text = traces::trace(
        "",
        &[
            r#"{"ph": "X", "cat": "cpu_op", "name": "aten::add", "args": {"a": "}]\"{["}}"#,
            r#"{"ph": "X", "cat": "cpu_op", "name": "aten::mul"}"#,
            r#"{"ph": "s", "id": 41, "cat": "ac2g", "name": "ac2g"}"#,
            r#"{"ph": "f", "id": 41, "cat": "ac2g", "name": "ac2g", "bp": "e"}"#,
            r#"{"ph": "X", "cat": "python_function", "name": "f.py(1): g"}"#,
            r#"{"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "ts": 5}"#,
            r#"{"ph": "X", "cat": "gpu_user_annotation", "name": "step", "ts": 5, "dur": 1}"#,
        ],
    );
    let recording = traces::sound(text);
    let others: Vec<_> = recording.holdings().others.clone().into_iter().collect();
    let expected = [
        ("ac2g", 2),
        ("cpu_op", 2),
        ("gpu_user_annotation", 1),
        ("python_function", 1),
        ("without a category", 1),
    ];
    assert_eq!(
        others,
        expected.map(|(name, count)| (name.to_owned(), count))
    );
    assert_eq!(traces::counts(&recording), [0; 4]);
}
