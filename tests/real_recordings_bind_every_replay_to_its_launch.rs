//! Graphs in real recordings: each operation of a replay is joined to the launch of that replay, and to
//! no other; replays that were launched before the recording began are known as that; and where a
//! capture and its replay were recorded, capture order says which launch each operation comes from.
//!
//! The ids and counts are from the files themselves, read with Python.

mod real_recordings;

use std::collections::BTreeMap;

use lineage_core::evidence::Rule;
use lineage_core::row::{Binding, Row, Template, Unattributed};
use lineage_import::{Settings, TemplateMatch, infer_templates, match_templates};
use real_recordings::{expected, import, join, path};

/// How many operations each call has, by the recorder's number of the call.
fn operations_of_calls(rows: &[Row]) -> BTreeMap<u32, usize> {
    let mut operations = BTreeMap::new();
    for row in rows {
        let (Some(call), Some(operation)) = (&row.call, &row.operation) else {
            continue;
        };
        // The operation's own record names its call: the row may name no other.
        assert_eq!(call.correlation.wire(), operation.correlation);
        *operations.entry(operation.correlation.0).or_default() += 1;
    }
    operations
}

/// The operations whose call is older than the recording, by the number they name.
fn before_recording(rows: &[Row]) -> BTreeMap<u32, usize> {
    let mut operations = BTreeMap::new();
    for row in rows {
        let Some(operation) = row.operation.as_ref().filter(|_| row.call.is_none()) else {
            continue;
        };
        assert_eq!(
            row.binding,
            Binding::Unattributed(Unattributed::OutsideRecording)
        );
        assert!(row.faults.is_empty(), "{:?}", row.faults);
        *operations.entry(operation.correlation.0).or_default() += 1;
    }
    operations
}

/// Calls with more than one operation are the graph launches, all of them, and have what is due.
fn replays(file: &str, launches: &[(u32, usize)]) {
    let Some(path) = path(file) else { return };
    let recording = import(&path, Settings::default());
    let joined = join(&recording, usize::MAX);
    let mut found = operations_of_calls(&joined.rows);
    found.retain(|_, operations| *operations > 1);
    assert_eq!(
        found,
        BTreeMap::from_iter(launches.iter().copied()),
        "{file}"
    );
    let before: usize = before_recording(&joined.rows).values().sum();
    assert_eq!(
        before as u64,
        expected()[file].count("before_recording"),
        "{file}"
    );
    assert_eq!(
        recording.holdings().sum(|process| process.graph_launches),
        launches.len() as u64,
        "{file}"
    );
}

/// A V100; two graphs are launched in turn, six times each.
#[test]
fn twelve_launches_of_two_graphs() {
    let graph_of_339 = [
        1_941_222, 1_959_077, 1_977_374, 1_994_372, 2_010_964, 2_029_059,
    ];
    let graph_of_502 = [
        1_946_843, 1_965_140, 1_983_433, 1_998_755, 2_016_825, 2_035_118,
    ];
    let launches: Vec<_> = graph_of_339
        .map(|launch| (launch, 339))
        .into_iter()
        .chain(graph_of_502.map(|launch| (launch, 502)))
        .collect();
    replays("kineto/trace_diff__test__test.json.gz", &launches);
}

/// An RTX 5080; nine replays, of which two were launched before the recording began, the first of them
/// cut by it.
#[test]
fn seven_launches_and_two_before_the_recording() {
    let file = "kineto/leimao_manual_capture.json.gz";
    let launches = [9_146, 9_190, 9_234, 9_278, 9_322, 9_366, 9_410].map(|launch| (launch, 36));
    replays(file, &launches);
    let path = path(file).expect("it is in the repository");
    let joined = join(&import(&path, Settings::default()), usize::MAX);
    let mut before = before_recording(&joined.rows);
    before.retain(|_, operations| *operations > 1);
    assert_eq!(before, BTreeMap::from([(9_058, 35), (9_102, 36)]));
}

/// A B300; 674 of the graph's 676 kernels begin before the one before them on their stream has ended:
/// inside of a graph launch only edges order, so that is no fault.
#[test]
fn one_launch_of_676_kernels_that_overlap() {
    let file = "kineto/sglang_decode_qwen3_30b_a3b_B300.json.gz";
    replays(file, &[(1_922_260, 676)]);
    let path = path(file).expect("it is in the repository");
    let joined = join(&import(&path, Settings::default()), usize::MAX);
    assert!(
        joined.validation.fault_counts.is_empty(),
        "{:?}",
        joined.validation.fault_counts
    );
}

/// HIP, in two recordings of one program: the capture of a graph and its replay. Nothing in either says
/// which node an operation is; the order does, by inference.
#[test]
fn capture_order_names_the_template_of_421_operations() {
    let replayed = "kineto/inference__vllm_decode_full__graph_execution.json.gz";
    replays(replayed, &[(505_113, 421)]);
    let Some(capture) = path("kineto/inference__vllm_decode_full__graph_capture.json.gz") else {
        return;
    };
    let recorded = |path| {
        import(path, Settings::default())
            .captures_and_replays()
            .expect("records fit into memory")
    };
    let (captures, none_replayed) = recorded(&capture);
    let (none_captured, replays) = recorded(&path(replayed).expect("it is in the repository"));
    assert_eq!((none_replayed.len(), none_captured.len()), (0, 0));
    assert_eq!((captures.len(), replays.len()), (1, 1));
    assert_eq!(captures[0].launches.len(), 421);
    assert_eq!(replays[0].kernels.len(), 421);
    assert_eq!(
        match_templates(&captures, &replays),
        [TemplateMatch::ByCaptureOrder { capture: 0 }]
    );
    // What it rests on: the same names in the same order.
    for (launch, kernel) in captures[0].launches.iter().zip(&replays[0].kernels) {
        assert!(kernel.is_some());
        assert_eq!(&launch.kernel, kernel);
    }
    // The rows say so too, and that it is inferred.
    let replayed = import(&path(replayed).expect("it is there"), Settings::default());
    let mut rows = join(&replayed, usize::MAX).rows;
    assert_eq!(infer_templates(&mut rows, &captures, &replays), 421);
    for row in &mut rows {
        row.operation
            .take_if(|operation| operation.correlation.0 != 505_113);
    }
    rows.retain(|row| row.operation.is_some());
    rows.sort_by_key(|row| row.operation.as_ref().and_then(|operation| operation.start));
    assert_eq!(rows.len(), 421);
    for (row, (order, launch)) in rows.iter().zip((1..).zip(&captures[0].launches)) {
        let Some(Template::Inferred { node, rule }) = row.graph.map(|graph| graph.template) else {
            panic!("{row:?}");
        };
        assert_eq!((node.order, rule), (order, Rule::CaptureOrder));
        let captured_by = node.captured_by.map(|call| call.wire().0);
        assert_eq!(captured_by, Some(launch.correlation));
        let name = row
            .operation
            .as_ref()
            .and_then(|operation| operation.name.clone());
        assert_eq!(name, launch.kernel);
    }
    // One kernel less, and nothing is said.
    let mut cut = replays;
    cut[0].kernels.pop();
    assert_eq!(match_templates(&captures, &cut), [TemplateMatch::None]);
}

/// Two processes that use the same ids: by id alone 4,280 kernels would find a call, 294 of them
/// the other process' call.
#[test]
fn no_join_goes_from_one_process_to_the_other() {
    let Some(path) = path("nsys/nsysai_mfu_2gpu_before.sqlite") else {
        return;
    };
    let recording = import(&path, Settings::default());
    let processes = &recording.holdings().processes;
    assert_eq!(processes.len(), 2);
    let joined = join(&recording, usize::MAX);
    assert_eq!(joined.validation.counts.joined_kernels, 3_986);
    for row in &joined.rows {
        if let Some(call) = &row.call {
            let process = &processes[row.process.0 as usize];
            assert!(process.threads.contains(&call.tid), "{row:?}");
        }
    }
    let threads_in_common = processes[0].threads.intersection(&processes[1].threads);
    assert_eq!(threads_in_common.count(), 0);
}
