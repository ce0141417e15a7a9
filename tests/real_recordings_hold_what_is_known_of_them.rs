//! Every real recording is imported, joined and validated through the libraries, and all of its counts
//! are those that other code found (`tests/traces/expected.tsv`): how many records of what kind, how
//! many launches and operations have no other half, and for each of these why.

mod real_recordings;

use std::collections::BTreeMap;

use lineage_core::fault::FaultCode;
use lineage_import::{EpochsFrom, Settings};
use real_recordings::{Expected, Joined, all_recordings, expected, import, join, path, table};

/// Compares all that is known of a recording.
fn compare(file: &str, how: &str, joined: &Joined) {
    let expected = &expected()[file];
    let counts = &joined.validation.counts;
    let fault = |code| {
        joined
            .validation
            .fault_counts
            .get(&code)
            .copied()
            .unwrap_or(0)
    };
    let found = [
        ("api_calls", counts.api_calls),
        ("kernels", counts.kernels),
        ("memcpys", counts.memcpys),
        ("memsets", counts.memsets),
        ("activity_without_launch", counts.activity_without_launch),
        ("before_recording", counts.before_recording),
        ("without_correlation", counts.asked_for_by_no_call),
        ("operations_lost", fault(FaultCode::L02)),
        ("launch_without_activity", counts.launch_without_activity),
        ("failed", counts.failed_calls),
        ("captured", counts.maybe_captured),
        ("maybe_without_work", counts.maybe_without_operation),
        ("not_recorded", counts.operations_not_collected),
        ("after_recording", counts.after_recording),
        ("calls_lost", fault(FaultCode::L03)),
        ("joined_kernels", counts.joined_kernels),
    ];
    let wrong: Vec<String> = found
        .iter()
        .filter(|(column, count)| expected.count(column) != *count)
        .map(|(column, count)| format!("{column} is {count}, not {}", expected.count(column)))
        .collect();
    assert!(wrong.is_empty(), "{file}, {how}: {wrong:#?}");

    // What is lost is a fault, and there is no other: no wrong join, no impossible time, nothing skipped.
    let losses = [
        (FaultCode::L02, expected.count("operations_lost")),
        (FaultCode::L03, expected.count("calls_lost")),
    ];
    let losses: BTreeMap<_, _> = losses.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(joined.validation.fault_counts, losses, "{file}, {how}");
    // The correlator gives a row for each operation and each call that has none, and says the same.
    assert_eq!(joined.validation.session_faults, losses, "{file}, {how}");
    let rows = counts.rows.expect("rows were given");
    assert_eq!(
        (rows.differing, rows.missing, rows.extra),
        (0, 0, 0),
        "{file}, {how}"
    );
}

fn holds(file: &str) {
    let Some(path) = path(file) else { return };
    let recording = import(&path, Settings::default());

    let holdings = recording.holdings();
    let expected = &expected()[file];
    let held = [
        ("api_calls", holdings.sum(|process| process.api_calls)),
        ("kernels", holdings.sum(|process| process.kernels)),
        ("memcpys", holdings.sum(|process| process.memcpys)),
        ("memsets", holdings.sum(|process| process.memsets)),
    ];
    for (column, count) in held {
        assert_eq!(
            count,
            expected.count(column),
            "{file}: {column} of the holdings"
        );
    }
    compare(file, "in one piece", &join(&recording, usize::MAX));

    // So little memory that records go through temporary files, and slices that are small: no join
    // may depend on where a recording is cut.
    let recording = import(&path, Settings::default().records_in_memory(100));
    let joined = join(&recording, 50);
    assert!(joined.slices >= 1);
    compare(file, "in slices of 50 records", &joined);

    // Candidate epochs bind more, and change nothing of that.
    let ranges = match file.split('/').next() {
        Some("nsys") => EpochsFrom::Nvtx,
        _ => EpochsFrom::Annotations,
    };
    let recording = import(&path, Settings::default().epochs_from(ranges));
    compare(file, "with candidate epochs", &join(&recording, 50));
}

macro_rules! recordings {
    ($($name:ident: $file:literal),+ $(,)?) => {
        $(#[test]
        fn $name() {
            holds($file);
        })+

        #[test]
        fn none_of_the_known_recordings_is_left_out() {
            let tested = [$($file),+];
            assert_eq!(expected().keys().map(String::as_str).collect::<Vec<_>>(), tested);
        }
    };
}

recordings! {
    kineto_2021_resnet50: "kineto/2021-01_resnet50_nw0.pt.trace.json.gz",
    kineto_amd_mi250: "kineto/amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    kineto_alexnet: "kineto/critical_path__alexnet__benchmark_result_2869224_1695835535_trace.json.gz",
    kineto_event_sync: "kineto/critical_path__cuda_event_sync__event_sync_trace.json.gz",
    kineto_event_sync_of_several_streams: "kineto/critical_path__cuda_event_sync_multi_stream__event_sync_trace.json.gz",
    kineto_simple_add: "kineto/critical_path__simple_add__benchmark_result_493459_1694039959_trace.json.gz",
    kineto_h100_qwen: "kineto/h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    kineto_vllm_graph_capture: "kineto/inference__vllm_decode_full__graph_capture.json.gz",
    kineto_vllm_graph_execution: "kineto/inference__vllm_decode_full__graph_execution.json.gz",
    kineto_leimao_manual_capture: "kineto/leimao_manual_capture.json.gz",
    kineto_blackwell_mixture_of_experts: "kineto/nv_moe_03.json.gz",
    kineto_dlrm_rank_0: "kineto/param_dlrm_worker0.json.gz",
    kineto_dlrm_rank_1: "kineto/param_dlrm_worker1.json.gz",
    kineto_blackwell_sglang: "kineto/sglang_decode_qwen3_30b_a3b_B300.json.gz",
    kineto_cut_by_hand_base: "kineto/trace_compare__base__base.json.gz",
    kineto_cut_by_hand_test: "kineto/trace_compare__test__test.json.gz",
    kineto_v100_graphs: "kineto/trace_diff__test__test.json.gz",
    kineto_triton: "kineto/triton_example__triton_example.json.gz",
    nsys_four_streams: "nsys/0x822a5b87__test-cuda__report1.sqlite",
    nsys_failed_launches: "nsys/Butter-gpw__CUDA__build__report1.sqlite",
    nsys_no_device_activity: "nsys/Donovoi__ripgrep__report1.sqlite",
    nsys_h100_fuser: "nsys/NVIDIA__Fuser__8fa9ec2_report1.sqlite",
    nsys_managed_memory: "nsys/cestwc__balinski-and-gomory-cuda__report11.sqlite",
    nsys_two_processes: "nsys/nsysai_mfu_2gpu_before.sqlite",
    nsys_two_api_records_per_call: "nsys/pipit_saxpy_mpi_cuda_perlmutter.sqlite",
}

/// The table in the repository is the work of `truth.py`. Beside the recordings lie two that somebody
/// else counted: where both count the same thing they agree.
#[test]
fn what_is_known_agrees_with_what_others_counted() {
    let Some(folder) = all_recordings() else {
        return;
    };
    let ours = expected();
    let agree = |file: &str, theirs: &Expected, columns: &[(&str, &str)]| {
        for (their_column, column) in columns {
            assert_eq!(
                theirs.count(their_column),
                ours[file].count(column),
                "{file}: {column}"
            );
        }
    };
    for (file, theirs) in table(&folder.join("expected_kineto.tsv")) {
        let columns = [
            "api_calls",
            "kernels",
            "memcpys",
            "memsets",
            "activity_without_launch",
            "launch_without_activity",
        ];
        agree(&file, &theirs, &columns.map(|column| (column, column)));
    }
    for (file, theirs) in table(&folder.join("expected_nsys.tsv")) {
        // Their joins count a pair of records, so two for a kernel whose call has two API records.
        let columns = [
            ("api", "api_calls"),
            ("kernel", "kernels"),
            ("memcpy", "memcpys"),
            ("memset", "memsets"),
            ("act_without_launch", "activity_without_launch"),
            ("launch_without_act", "launch_without_activity"),
            ("failed_api", "failed"),
        ];
        agree(&format!("nsys/{file}"), &theirs, &columns);
    }
}
