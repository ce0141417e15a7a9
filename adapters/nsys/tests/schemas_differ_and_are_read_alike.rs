//! Columns and tables come and go between schemas, and what is in a file is found all the same.

mod common;

use common::{
    CALLS, Export, KERNELS, OTHER_PROCESS, OTHER_THREAD, PROCESS, STRINGS, THREAD, observations,
    operations, skipped,
};
use lineage_core::observation::{
    ActivityKind, DeviceDescribed, Event, Footprint, Multiprocessors, SwitchedOff,
};
use lineage_import::{DeviceDescription, EpochsFrom, Settings, Skip};

#[test]
fn a_kernel_is_read_field_by_field() {
    let export = Export::new();
    export.run(CALLS).run(KERNELS);
    export.launch(THREAD, 41).kernel(PROCESS, 41);
    export.run("update CUPTI_ACTIVITY_KIND_KERNEL set graphNodeId = 12884901890, graphId = 3");
    let recording = export.import().expect("an export");
    let found = operations(&recording);
    let [(0, kernel)] = found.as_slice() else {
        panic!("one kernel of the first process: {found:?}");
    };
    assert_eq!(kernel.kind, ActivityKind::Kernel);
    assert_eq!(kernel.correlation.0, 41);
    assert_eq!((kernel.device, kernel.context, kernel.stream), (0, 1, 7));
    let times = (
        kernel.start.expect("a start").0,
        kernel.end.expect("an end").0,
    );
    assert_eq!(times, (150, 250));
    // Nsight Systems has no time of submission.
    assert_eq!((kernel.queued, kernel.submitted), (None, None));
    assert_eq!(kernel.name.as_deref(), Some("gemm(float*)"));
    // 3 * 2^32 + 2.
    assert_eq!(
        (kernel.graph_node, kernel.graph),
        (Some(12_884_901_890), Some(3))
    );
    assert_eq!((kernel.grid, kernel.block), ([4, 5, 6], [7, 8, 9]));
    assert_eq!(kernel.footprint, None);
    let process = &recording.holdings().processes[0];
    assert_eq!(process.description.pid, Some(1_000));
    assert_eq!(process.threads.iter().copied().collect::<Vec<_>>(), [1_000]);
}

/// Newer schemas have clusters, whose numbers are 0 for a kernel without.
#[test]
fn what_a_kernel_takes_is_read_where_it_is_there() {
    let footprint = |more: &str| {
        let export = Export::new();
        export.run(CALLS).run(KERNELS);
        export.launch(THREAD, 41).kernel(PROCESS, 41);
        export.run(
            "update CUPTI_ACTIVITY_KIND_KERNEL set registersPerThread = 122, \
             staticSharedMemory = 4096, dynamicSharedMemory = 65536",
        );
        export.run(more);
        let recording = export.import().expect("an export");
        operations(&recording)[0].1.footprint
    };
    let expected = |blocks_per_cluster| {
        Some(Footprint {
            registers_per_thread: 122,
            // 4,096 and 65,536.
            shared_bytes: 69_632,
            blocks_per_cluster,
        })
    };
    assert_eq!(footprint(""), expected(None));
    let clusters = |of: &str| {
        let columns = ["X", "Y", "Z"].map(|axis| {
            format!("alter table CUPTI_ACTIVITY_KIND_KERNEL add column cluster{axis} integer;")
        });
        footprint(&format!(
            "{} update CUPTI_ACTIVITY_KIND_KERNEL set {of}",
            columns.concat()
        ))
    };
    assert_eq!(
        clusters("clusterX = 0, clusterY = 0, clusterZ = 0"),
        expected(Some(1))
    );
    assert_eq!(
        clusters("clusterX = 2, clusterY = 4, clusterZ = 1"),
        expected(Some(8))
    );
    assert_eq!(clusters("clusterX = 2, clusterY = 4"), expected(None));
}

#[test]
fn a_call_is_read_field_by_field() {
    let export = Export::new();
    export.run(CALLS);
    export.run(&format!(
        "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (7, 9, 0, {}, 4294967295, 1, 222, null)",
        THREAD + 5
    ));
    let recording = export.import().expect("an export");
    let calls: Vec<_> = observations(&recording)
        .into_iter()
        .filter_map(|seen| match seen.event {
            Event::Api(call) => Some(call),
            _ => None,
        })
        .collect();
    let [call] = calls.as_slice() else {
        panic!("one call: {calls:?}");
    };
    assert_eq!(call.api.name.as_deref(), Some("cudaLaunchKernel_v7000"));
    assert_eq!(
        (call.correlation.0, call.tid, call.result),
        (4_294_967_295, 1_005, 222)
    );
    assert_eq!(call.start.map(|at| at.0), Some(7));
    assert_eq!(call.end.map(|at| at.0), Some(9));
}

#[test]
fn equal_ids_of_two_processes_stay_apart() {
    let export = Export::new();
    export.run(CALLS).run(KERNELS);
    export.run("create table PROCESSES (globalPid integer, pid integer, name text)");
    export.run(&format!("insert into PROCESSES values ({PROCESS}, 1000, 'rank 0'), ({OTHER_PROCESS}, 1001, 'rank 1'), (5, 6, 'idle')"));
    export.launch(THREAD, 9).launch(OTHER_THREAD, 9);
    export.kernel(OTHER_PROCESS, 9);
    let recording = export.import().expect("an export");
    let names: Vec<_> = recording
        .holdings()
        .processes
        .iter()
        .map(|process| process.description.name.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(names, ["rank 0", "rank 1"]);
    assert_eq!(operations(&recording)[0].0, 1);
}

/// Two machines' processes of one number differ in the bits above it.
#[test]
fn equal_pids_of_two_machines_stay_apart() {
    let export = Export::new();
    export.run(CALLS);
    export.launch(THREAD, 1).launch(THREAD + (1 << 48), 1);
    let holdings = export.holdings();
    let pids: Vec<_> = holdings
        .processes
        .iter()
        .map(|process| (process.description.pid, process.api_calls))
        .collect();
    assert_eq!(pids, [(Some(1_000), 1), (Some(1_000), 1)]);
}

#[test]
fn kernels_without_a_process_are_the_only_ones() {
    let export = Export::new();
    export.run(CALLS);
    export.run("create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer, deviceId integer, contextId integer, streamId integer, correlationId integer, demangledName integer)");
    export.run("insert into CUPTI_ACTIVITY_KIND_KERNEL values (150, 250, 0, 1, 7, 41, 2)");
    export.launch(THREAD, 41);
    let recording = export.import().expect("an export");
    let found = operations(&recording);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].0, found[0].1.correlation.0), (0, 41));
    assert_eq!(recording.holdings().processes.len(), 1);
}

#[test]
fn kernels_without_a_process_are_nobodys_if_there_are_two() {
    let export = Export::new();
    export.run(CALLS).run(KERNELS);
    export.launch(THREAD, 41).launch(OTHER_THREAD, 42);
    export.kernel(PROCESS, 41).kernel(OTHER_PROCESS, 42);
    export.run("update CUPTI_ACTIVITY_KIND_KERNEL set globalPid = null where correlationId = 42");
    let holdings = export.holdings();
    assert_eq!(holdings.sum(|process| process.kernels), 1);
    assert_eq!(skipped(&holdings, Skip::NoProcess), 1);
}

#[test]
fn a_file_that_names_no_process_is_one_process() {
    let export = Export::new();
    export.run(CALLS).run(KERNELS);
    export.launch(THREAD, 41).kernel(PROCESS, 41);
    export.run("update CUPTI_ACTIVITY_KIND_KERNEL set globalPid = null");
    export.run("update CUPTI_ACTIVITY_KIND_RUNTIME set globalTid = null");
    let holdings = export.holdings();
    assert_eq!(holdings.processes.len(), 1);
    let process = &holdings.processes[0];
    assert_eq!((process.api_calls, process.kernels), (1, 1));
    assert_eq!(process.description.pid, None);
    assert_eq!(holdings.skipped.len(), 0);
}

#[test]
fn the_version_is_found_under_its_old_name() {
    let export = Export::empty();
    export.run(STRINGS);
    export.run("create table EXPORT_META_DATA (name text, value text)");
    export.run("insert into EXPORT_META_DATA values ('EXPORT_PRODUCT_VERSION', '2022.2'), ('EXPORT_SCHEMA_VERSION', '2.9.1')");
    assert_eq!(export.holdings().version.as_deref(), Some("schema 2.9.1"));
}

#[test]
fn a_newer_schema_is_read_and_noted() {
    let export = Export::new();
    export.run("update META_DATA_EXPORT set value = '3.26.0'");
    // Other columns, in another order.
    export.run("create table CUPTI_ACTIVITY_KIND_RUNTIME (novelty text, nameId integer, correlationId integer, returnValue integer, globalTid integer, end integer, start integer)");
    export.run(&format!(
        "insert into CUPTI_ACTIVITY_KIND_RUNTIME values ('new', 1, 8, 0, {THREAD}, 200, 100)"
    ));
    let holdings = export.holdings();
    assert_eq!(holdings.processes[0].api_calls, 1);
    assert_eq!(holdings.processes[0].launches, 1);
    assert_eq!(
        (
            holdings.processes[0].first_ns,
            holdings.processes[0].last_ns
        ),
        (Some(100), Some(200))
    );
    let notes = &holdings.notes;
    assert!(
        notes.iter().any(|note| note.contains("3.26 is newer")),
        "{notes:?}"
    );
}

#[test]
fn an_export_without_any_record_is_empty_and_no_error() {
    let holdings = Export::new().holdings();
    assert!(holdings.processes.is_empty());
    assert!(!holdings.results_recorded);
}

#[test]
fn names_are_found_where_their_numbers_are_no_key() {
    let export = Export::empty();
    export.run("create table StringIds (id integer, value text)");
    export.run("insert into StringIds values (2, 'gemm'), (1, 'cudaLaunchKernel_v7000')");
    export.run(CALLS).launch(THREAD, 4);
    let holdings = export.holdings();
    assert_eq!(holdings.processes[0].launches, 1);
    assert_eq!(skipped(&holdings, Skip::UnknownName), 0);
}

#[test]
fn a_name_without_a_row_is_counted_and_its_record_kept() {
    let export = Export::new();
    export.run(CALLS).run(KERNELS);
    export
        .launch(THREAD, 41)
        .kernel(PROCESS, 41)
        .kernel(PROCESS, 42);
    export.run("update CUPTI_ACTIVITY_KIND_RUNTIME set nameId = 77");
    export.run("update CUPTI_ACTIVITY_KIND_KERNEL set demangledName = 78, shortName = 79 where correlationId = 41");
    export.run("update CUPTI_ACTIVITY_KIND_KERNEL set demangledName = 78 where correlationId = 42");
    let recording = export.import().expect("an export");
    let holdings = recording.holdings();
    assert_eq!(holdings.processes[0].api_calls, 1);
    // The call's name and all names of the first kernel; the second has its short name.
    assert_eq!(skipped(holdings, Skip::UnknownName), 2);
    let names: Vec<_> = operations(&recording)
        .into_iter()
        .map(|(_, kernel)| kernel.name.as_deref().map(str::to_owned))
        .collect();
    assert_eq!(names, [None, Some("gemm".to_owned())]);
}

#[test]
fn copies_and_sets_say_what_was_moved() {
    let export = Export::new();
    export.run("create table CUPTI_ACTIVITY_KIND_MEMCPY (start integer, end integer, deviceId integer, contextId integer, streamId integer, correlationId integer, globalPid integer, bytes integer, copyKind integer, copyCount integer)");
    export.run(&format!("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (1, 2, 0, 1, 7, 10, {PROCESS}, 4096, 1, null), (3, 4, 0, 1, 7, 11, {PROCESS}, 64, 10, 3), (5, 6, 0, 1, 7, 12, {PROCESS}, 1, 99, 1)"));
    export.run("create table CUPTI_ACTIVITY_KIND_MEMSET (start integer, end integer, deviceId integer, contextId integer, streamId integer, correlationId integer, globalPid integer, value integer, bytes integer, graphNodeId integer, memKind integer)");
    export.run(&format!(
        "insert into CUPTI_ACTIVITY_KIND_MEMSET values (7, 8, 0, 1, 7, 13, {PROCESS}, 0, 512, null, 2)"
    ));
    let recording = export.import().expect("an export");
    let found: Vec<_> = operations(&recording)
        .into_iter()
        .map(|(_, found)| {
            let name = found.name.as_deref().unwrap_or_default().to_owned();
            (
                found.correlation.0,
                found.kind,
                name,
                found.bytes,
                found.copies,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (10, ActivityKind::Copy, "memcpy HtoD".to_owned(), 4_096, 1),
            (11, ActivityKind::Copy, "memcpy PtoP".to_owned(), 64, 3),
            (12, ActivityKind::Copy, "memcpy unknown".to_owned(), 1, 1),
            (13, ActivityKind::Set, "memset".to_owned(), 512, 1),
        ]
    );
}

#[test]
fn a_launch_of_a_graph_that_was_traced_as_a_whole_is_one_operation() {
    let export = Export::new();
    export.run("create table META_DATA_CAPTURE (name text, value text)");
    export.run(
        "insert into META_DATA_CAPTURE values ('PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Graph')",
    );
    export.run("create table CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start integer, end integer, deviceId integer, contextId integer, greenContextId integer, streamId integer, correlationId integer, globalPid integer, graphId integer, graphExecId integer)");
    export.run(&format!("insert into CUPTI_ACTIVITY_KIND_GRAPH_TRACE values (0, 0, 0, 1, 0, 7, 20, {PROCESS}, 3, 5), (10, 90, 2147483647, 2147483647, 0, 7, 21, {PROCESS}, 3, null)"));
    let recording = export.import().expect("an export");
    let found: Vec<_> = operations(&recording)
        .into_iter()
        .map(|(_, found)| {
            (
                found.kind,
                found.device,
                found.graph,
                found.start,
                found.end,
            )
        })
        .map(|(kind, device, graph, start, end)| {
            (
                kind,
                device,
                graph,
                start.map(|at| at.0),
                end.map(|at| at.0),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            // Both times 0: they were not collected.
            (ActivityKind::Graph, 0, Some(5), None, None),
            // A graph that begins on the host.
            (
                ActivityKind::Graph,
                2_147_483_647,
                Some(3),
                Some(10),
                Some(90)
            ),
        ]
    );
    let notes = &recording.holdings().notes;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("--cuda-graph-trace=node")),
        "{notes:?}"
    );
}

#[test]
fn the_making_of_graph_nodes_is_an_observation() {
    let export = Export::new();
    export.run(CALLS).launch(THREAD, 1);
    export.run("create table CUDA_GRAPH_NODE_EVENTS (start integer, end integer, eventClass integer, globalTid integer, nameId integer, graphNodeId integer, originalGraphNodeId integer)");
    export.run(&format!("insert into CUDA_GRAPH_NODE_EVENTS values (120, 121, 0, {THREAD}, 1, 4294967297, null), (300, 301, 0, {THREAD}, 1, 8589934593, 4294967297), (300, 301, 0, {THREAD}, 1, null, null)"));
    let recording = export.import().expect("an export");
    let nodes: Vec<_> = observations(&recording)
        .into_iter()
        .filter_map(|seen| match seen.event {
            Event::GraphNode(node) => Some((node.tid, node.at.0, node.node, node.original)),
            _ => None,
        })
        .collect();
    assert_eq!(
        nodes,
        [
            (1_000, 120, 4_294_967_297, None),
            (1_000, 300, 8_589_934_593, Some(4_294_967_297))
        ]
    );
    assert_eq!(skipped(recording.holdings(), Skip::OtherRecord), 1);
}

#[test]
fn waits_and_events_keep_what_joins_them() {
    let export = Export::new();
    export.run("insert into StringIds values (10, 'cudaStreamWaitEvent_v3020')");
    export.run(CALLS).run(&format!(
        "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (1, 2, 0, {THREAD}, 30, 10, 0, null)"
    ));
    // 4 stands for a context's synchronisation in the enumeration of every file.
    export.run("create table CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start integer, end integer, deviceId integer, contextId integer, greenContextId integer, streamId integer, correlationId integer, globalPid integer, deprecatedSyncType integer, syncType integer, eventId integer, eventSyncId integer)");
    export.run(&format!("insert into CUPTI_ACTIVITY_KIND_SYNCHRONIZATION values (1, 2, 0, 1, null, 7, 30, {PROCESS}, null, 4, 5, 16836), (3, 4, 0, 1, null, 4294967295, 31, {PROCESS}, null, 4, 4294967295, 0)"));
    export.run("create table CUPTI_ACTIVITY_KIND_CUDA_EVENT (timestamp integer, deviceId integer, contextId integer, streamId integer, correlationId integer, globalPid integer, eventId integer, eventSyncId integer)");
    export.run(&format!("insert into CUPTI_ACTIVITY_KIND_CUDA_EVENT values (0, 0, 1, 9, 28, {PROCESS}, 5, 16836), (77, 0, 1, 9, 29, {PROCESS}, 5, 16837)"));
    let recording = export.import().expect("an export");
    let mut waits = Vec::new();
    let mut records = Vec::new();
    for seen in observations(&recording) {
        match seen.event {
            Event::Synchronization(wait) => waits.push((
                wait.correlation.0,
                format!("{:?}", wait.kind),
                wait.stream,
                wait.event,
                wait.event_sync,
            )),
            Event::EventRecord(record) => records.push((
                record.correlation.0,
                record.stream,
                record.event_sync,
                record.device.map(|at| at.0),
            )),
            _ => {}
        }
    }
    assert_eq!(
        waits,
        [
            (30, "StreamWait".to_owned(), Some(7), Some(5), Some(16_836)),
            // Its call is not in the file.
            (31, "Unknown".to_owned(), None, None, None),
        ]
    );
    assert_eq!(
        records,
        [
            (28, Some(9), Some(16_836), None),
            (29, Some(9), Some(16_837), Some(77))
        ]
    );
}

/// The reason of each switch off, with its time, of a file with these rows: time, whether it runs from
/// then on, state, reason.
fn reasons(export: &Export, rows: &str) -> Vec<(u64, Option<SwitchedOff>)> {
    export.run(CALLS).launch(THREAD, 1);
    export.run("create table SCHED_EVENTS (start integer, isSchedIn integer, threadState integer, threadBlock integer, cpu integer, globalTid integer)");
    export.run(&format!("with seen(start, runs, state, block) as (values {rows}) insert into SCHED_EVENTS select start, runs, state, block, 2, {THREAD} from seen"));
    let recording = export.import().expect("an export");
    let mut found = Vec::new();
    for seen in observations(&recording) {
        if let Event::Scheduled(at) = seen.event {
            found.push((at.at.0, at.off));
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn why_a_thread_was_taken_off_is_what_state_and_reason_agree_on() {
    let (preempted, blocked) = (Some(SwitchedOff::Preempted), Some(SwitchedOff::Blocked));
    // Numbers as in every file that names them: 1 running, 2 interruptible, 3 uninterruptible, 4
    // stopped, 5 terminated, 7 waiting; 4 nanosleep, 44 preempted.
    let rows = "(1, 0, 1, null), (2, 0, 2, null), (3, 0, 3, null), (4, 0, 4, null), (5, 0, 5, null), \
         (6, 0, 7, null), (7, 0, 0, null), (8, 0, 0, 4), (9, 0, 0, 44), (10, 0, 2, 4), (11, 0, 1, 4), \
         (12, 0, 99, null), (13, 0, null, null), (14, 0, 'x', 1.5), (15, 1, 2, 4)";
    let expected = [
        (1, preempted),
        (2, blocked),
        (3, blocked),
        (4, blocked),
        // It ended.
        (5, None),
        (6, blocked),
        (7, None),
        (8, blocked),
        (9, preempted),
        (10, blocked),
        // The two contradict each other.
        (11, None),
        (12, None),
        (13, None),
        (14, None),
        // It runs.
        (15, None),
    ];
    assert_eq!(reasons(&Export::new(), rows), expected);
}

#[test]
fn the_names_of_states_are_those_of_the_file_itself() {
    let export = Export::new();
    export.run("create table ENUM_SAMPLING_THREAD_STATE (id integer, name text, label text)");
    export.run("insert into ENUM_SAMPLING_THREAD_STATE values (1, 'Interruptible', ''), (2, 'Running', ''), (3, 'Soaring', '')");
    export.run("create table ENUM_SCHEDULING_THREAD_BLOCK (id integer, name text, label text)");
    export.run("insert into ENUM_SCHEDULING_THREAD_BLOCK values (7, 'QuantumEnd', '')");
    assert_eq!(
        reasons(
            &export,
            "(1, 0, 1, null), (2, 0, 2, null), (3, 0, 3, null), (4, 0, 4, 7), (5, 0, 4, 4)"
        ),
        [
            (1, Some(SwitchedOff::Blocked)),
            (2, Some(SwitchedOff::Preempted)),
            (3, None),
            (4, Some(SwitchedOff::Preempted)),
            (5, None)
        ]
    );
}

#[test]
fn the_scheduler_and_the_systems_calls_are_told_from_the_rest() {
    let export = Export::new();
    export.run("insert into StringIds values (0, '[Unknown]'), (20, 'poll')");
    export.run(CALLS).launch(THREAD, 1);
    export.run("create table SCHED_EVENTS (start integer, cpu integer, isSchedIn integer, globalTid integer, threadState integer, threadBlock integer)");
    // The second thread is of a process that no other record speaks of.
    export.run(&format!("insert into SCHED_EVENTS values (5, 2, 1, {THREAD}, 0, null), (6, 3, 0, {OTHER_THREAD}, 5, null)"));
    export.run("create table OSRT_API (start integer, end integer, eventClass integer, globalTid integer, nameId integer)");
    export.run(&format!("insert into OSRT_API values (7, 8, 27, {THREAD}, 20), (1, 1, 31, {THREAD}, 0), (9, 9, 32, {THREAD}, 0)"));
    let recording = export.import().expect("an export");
    let mut scheduled = Vec::new();
    let mut calls = Vec::new();
    for seen in observations(&recording) {
        match seen.event {
            Event::Scheduled(at) => {
                scheduled.push((at.at.0, at.tid, at.cpu, at.running, at.state));
            }
            Event::OsCall(call) => calls.push((call.name.to_string(), call.start.0, call.tid)),
            _ => {}
        }
    }
    scheduled.sort_unstable();
    assert_eq!(
        scheduled,
        [
            (5, 1_000, Some(2), true, None),
            (6, 1_001, Some(3), false, Some(5))
        ]
    );
    assert_eq!(calls, [("poll".to_owned(), 7, 1_000)]);
    let holdings = recording.holdings();
    assert_eq!(holdings.processes.len(), 1);
    assert_eq!(holdings.others["marks of the OS runtime's tracing"], 2);
}

#[test]
fn ranges_have_their_text_in_the_row_or_by_number() {
    let export = Export::new();
    export.run("insert into StringIds values (30, 'request 12')");
    export.run("create table NVTX_EVENTS (start integer, end integer, eventType integer, text text, globalTid integer, endGlobalTid integer, textId integer)");
    export.run(&format!(
        "insert into NVTX_EVENTS values \
         (10, 20, 59, 'request 11', {THREAD}, null, null), \
         (30, 40, 59, null, {THREAD}, null, 30), \
         (50, null, 59, 'request 13', {THREAD}, null, null), \
         (60, 70, 60, 'request 14', {THREAD}, {OTHER_THREAD}, null), \
         (80, null, 34, 'a mark', {THREAD}, null, null), \
         (0, null, 75, 'a domain', {THREAD}, null, null), \
         (90, 80, 59, 'request 15', {THREAD}, null, null)"
    ));
    // A launch inside of each of the first two, which are at 10 to 20 and 30 to 40 ns.
    export.run(CALLS).launch(THREAD, 1).launch(THREAD, 2);
    export.run("update CUPTI_ACTIVITY_KIND_RUNTIME set start = correlationId * 20 - 8, end = correlationId * 20 - 6");
    let settings = Settings::default()
        .epochs_from(EpochsFrom::Nvtx)
        .epoch_name("request");
    let recording = export.import_with(settings).expect("an export");
    let declared: Vec<_> = observations(&recording)
        .into_iter()
        .filter_map(|seen| match seen.event {
            Event::Declared(declared) => Some(declared.name.to_string()),
            _ => None,
        })
        .collect();
    let holdings = recording.holdings();
    assert_eq!(holdings.sum(|process| process.ranges), 5);
    assert_eq!(holdings.sum(|process| process.epochs), 2);
    // One without an end, and one that ends before it begins.
    assert_eq!(skipped(holdings, Skip::UnclosedRange), 2);
    assert_eq!(holdings.others["NVTX marks"], 1);
    assert_eq!(holdings.others["NVTX names and domains"], 1);
    assert_eq!(declared, ["request 11", "request 12"]);

    // By their requests' ids, the same two are the epochs 11 and 12.
    let by_request = Settings::default().epochs_from(EpochsFrom::RequestIds);
    let recording = export.import_with(by_request).expect("an export");
    let declared: Vec<_> = observations(&recording)
        .into_iter()
        .filter_map(|seen| match seen.event {
            Event::Declared(declared) => Some(declared.name.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(declared, ["11", "12"]);
}

/// An A100's numbers, as `cuDeviceGetAttribute` gives them: 64 warps of 32 threads.
#[test]
fn what_a_device_holds_is_read_where_it_is_there() {
    let export = Export::new();
    export.run(CALLS).launch(THREAD, 1);
    export.run(
        "create table TARGET_INFO_GPU (id integer, name text, cuDevice integer, smCount integer, \
         maxWarpsPerSm integer, threadsPerWarp integer, maxRegistersPerSm integer, maxShmemPerSm integer, \
         maxBlocksPerSm integer, asyncEngines integer)",
    );
    export.run(
        "insert into TARGET_INFO_GPU values (0, 'A100', 0, 108, 64, 32, 65536, 167936, 32, 5)",
    );
    let recording = export.import().expect("an export");
    let described: Vec<DeviceDescribed> = observations(&recording)
        .into_iter()
        .filter_map(|seen| match seen.event {
            Event::DeviceDescribed(of) => Some(of),
            _ => None,
        })
        .collect();
    let expected = DeviceDescribed {
        device: 0,
        copy_engines: Some(5),
        tenancy: None,
        multiprocessors: Some(Multiprocessors {
            count: Some(108),
            threads: Some(2_048),
            registers: Some(65_536),
            shared_bytes: Some(167_936),
            blocks: Some(32),
        }),
    };
    assert_eq!(described, [expected]);
}

#[test]
fn devices_have_the_numbers_that_their_process_gives_them() {
    let export = Export::new();
    export.run(CALLS).launch(THREAD, 1);
    export.run("create table TARGET_INFO_GPU (id integer, name text, cuDevice integer)");
    export.run("insert into TARGET_INFO_GPU values (0, 'H100', 1), (1, 'A10', 0)");
    let ordinal = |process, ordinal, name: &str| DeviceDescription {
        process,
        ordinal,
        name: Some(name.to_owned()),
        ..DeviceDescription::default()
    };
    assert_eq!(
        export.holdings().devices,
        [ordinal(None, 1, "H100"), ordinal(None, 0, "A10")]
    );
    export.run("create table TARGET_INFO_CUDA_DEVICE (gpuId integer, cudaId integer, pid integer)");
    export.run("insert into TARGET_INFO_CUDA_DEVICE values (0, 0, 1000), (1, 0, 4711)");
    let process = Some(export.holdings().processes[0].ordinal);
    assert_eq!(export.holdings().devices, [ordinal(process, 0, "H100")]);
}

#[test]
fn records_that_no_join_needs_are_counted_by_their_tables_names() {
    let export = Export::new();
    export.run("create table PROFILER_OVERHEAD (start integer, end integer)");
    export.run("insert into PROFILER_OVERHEAD values (1, 2), (3, 4)");
    assert_eq!(export.holdings().others["PROFILER_OVERHEAD"], 2);
}

/// Settings and the environment can hold secrets: a value there that cannot be read is not missed.
#[test]
fn the_environment_and_other_settings_are_not_read() {
    let export = Export::new();
    // 20 MB are more than a value may have.
    export.run("create table TARGET_INFO_SYSTEM_ENV (name text, value text)");
    export.run(
        "insert into TARGET_INFO_SYSTEM_ENV values ('EnvironmentVariables', zeroblob(20000000))",
    );
    export.run("create table META_DATA_CAPTURE (name text, value text)");
    export.run("insert into META_DATA_CAPTURE values ('SESSION:ENV', zeroblob(20000000)), ('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Node')");
    export.run("insert into META_DATA_EXPORT values ('EXPORT_COMMAND', zeroblob(20000000))");
    let holdings = export.holdings();
    assert_eq!(holdings.version.as_deref(), Some("schema 3.25.0"));
}
