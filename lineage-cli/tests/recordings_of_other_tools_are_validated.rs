//! Kineto and Nsight Systems: found out by their bytes, joined, validated, and what is no loss said
//! to be none. The counts were made with other code (tests/traces/expected.tsv, and by hand).

mod common;

use common::{Scratch, kineto, large_trace, lineage, on, run};
use serde_json::Value;

fn validated(arguments: &[&str], file: &std::path::Path) -> (Option<i32>, Value) {
    let arguments = [&["validate", "--json"], arguments].concat();
    let ran = on(&arguments, file);
    (ran.code, ran.objects().remove(0))
}

fn assert_counts(object: &Value, counts: &[(&str, u64)]) {
    for (field, count) in counts {
        assert_eq!(
            object["summary"][field], *count,
            "{field} of {}",
            object["file"]
        );
    }
}

#[test]
fn kernels_older_than_the_recording_are_no_loss() {
    let (code, object) = validated(&[], &kineto("leimao_manual_capture.json.gz"));
    assert_eq!(code, Some(0), "{object}");
    assert_eq!(object["format"], "kineto");
    assert_eq!(object["sound"], true);
    assert_counts(
        &object,
        &[
            ("api_calls", 57),
            ("kernels", 321),
            ("memcpys", 16),
            ("memsets", 18),
            ("activity_without_launch", 75),
            ("before_recording", 75),
            ("launch_without_activity", 0),
            ("lost", 0),
        ],
    );
}

#[test]
fn operations_without_their_call_inside_the_recording_are_lost() {
    let file = kineto("trace_compare__base__base.json.gz");
    let (code, object) = validated(&[], &file);
    assert_eq!(code, Some(1));
    // 16 have no call, and 10 of them lie inside the range of recorded ids.
    assert_counts(
        &object,
        &[
            ("activity_without_launch", 16),
            ("before_recording", 6),
            ("lost", 10),
        ],
    );
    assert_eq!(object["faults"], serde_json::json!({"L02": 10}));
    let ran = on(&["validate"], &file);
    assert!(
        ran.out.contains("6 before the recording, 10 lost"),
        "{}",
        ran.out
    );
}

#[test]
fn all_kernels_of_a_graph_launch_are_joined_to_it() {
    let (code, object) = validated(&[], &kineto("sglang_decode_qwen3_30b_a3b_B300.json.gz"));
    assert_eq!(code, Some(0), "{object}");
    assert_counts(&object, &[("kernels", 713), ("joined_kernels", 713)]);
    assert_eq!(object["graph_replays"]["launches"], 1);
    assert_eq!(object["graph_replays"]["kernels"], 676);
}

#[test]
fn ranks_are_files_of_their_own_and_are_added_up() {
    let ran = run(lineage()
        .env("COLUMNS", "100")
        .arg("validate")
        .arg(kineto("param_dlrm_worker0.json.gz"))
        .arg(kineto("param_dlrm_worker1.json.gz")));
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    // 245 + 16 and 310 + 16 operations; 64 of the second are older than the recording.
    let total = "2 files 1,052 calls, 587 operations, 523 joined, 0 lost, 0 wrong";
    assert!(ran.words().ends_with(total), "{}", ran.out);
}

#[test]
fn annotations_become_candidate_epochs_only_if_asked_for() {
    let file = kineto("critical_path__alexnet__benchmark_result_2869224_1695835535_trace.json.gz");
    let (_, plain) = validated(&[], &file);
    assert_counts(&plain, &[("epochs", 0), ("bound", 0)]);
    let (code, object) = validated(&["--epochs-from", "annotations"], &file);
    assert_eq!(code, Some(0), "{object}");
    // Counted by hand: of 8 annotations two (`clear_cache`) hold no launch, copy or set, and one holds
    // all 100 of these.
    assert_counts(
        &object,
        &[
            ("epochs", 8),
            ("ended_without_gpu_work", 2),
            ("bound_by_containment", 100),
            ("unattributed", 0),
        ],
    );
    let (_, none) = validated(
        &[
            "--epochs-from",
            "annotations",
            "--epoch-name",
            "no such name",
        ],
        &file,
    );
    assert_counts(&none, &[("epochs", 0)]);
    assert!(
        none["nothing_joined_because"]
            .as_str()
            .is_some_and(|why| why.contains("candidate"))
    );
}

#[test]
fn a_bare_list_of_events_is_a_trace_and_needs_no_name() {
    let trace = br#"[
        {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": "7", "ts": "10", "dur": 5, "args": {"correlation": "5"}},
        {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 20, "dur": 5, "args": {"correlation": 5}},
        {}
    ]"#;
    let file = Scratch::new("a-trace-by-another-name.txt", trace);
    let (code, object) = validated(&[], &file.0);
    assert_eq!(code, Some(0), "{object}");
    assert_counts(
        &object,
        &[("api_calls", 1), ("kernels", 1), ("joined_kernels", 1)],
    );
}

#[test]
fn a_trace_that_was_cut_off_is_refused_unless_its_part_is_wanted() {
    let trace = br#"{"traceEvents": [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 10, "dur": 5, "args": {"correlation": 5}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 5, "args": {"correlation": 5}},
        {"ph": "X", "cat": "ker"#;
    let file = Scratch::new("cut.json", trace);
    let ran = on(&["validate"], &file.0);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert!(ran.err.contains("cut off"), "{}", ran.err);
    assert!(
        ran.err.contains("`--partial` takes what there is of it"),
        "{}",
        ran.err
    );
    let ran = on(&["validate", "--partial", "--json"], &file.0);
    let object = ran.objects().remove(0);
    assert_counts(&object, &[("api_calls", 1), ("joined_kernels", 1)]);
    assert_eq!(object["import"]["skipped"]["truncated"], 1);
    // Records may be missing, which is a fault.
    assert_eq!(ran.code, Some(1), "{object}");
    assert_eq!(object["faults"], serde_json::json!({"L07": 1}));
}

#[test]
fn a_capture_in_one_file_tells_the_templates_of_a_replay_in_the_next() {
    let Some(capture) = large_trace("kineto/inference__vllm_decode_full__graph_capture.json.gz")
    else {
        return;
    };
    let replay = kineto("inference__vllm_decode_full__graph_execution.json.gz");
    let ran = run(lineage()
        .args(["validate", "--json"])
        .args([&capture, &replay]));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let objects = ran.objects();
    assert_counts(
        &objects[0],
        &[
            ("maybe_captured", 421),
            ("launch_without_activity", 421),
            ("lost", 0),
        ],
    );
    let replays = &objects[1]["graph_replays"];
    assert_eq!(
        (&replays["kernels"], &replays["by_capture_order"]),
        (&421.into(), &421.into())
    );
    let alone = on(&["validate", "--json"], &replay).objects().remove(0);
    assert_eq!(alone["graph_replays"]["unknown"], 421);
}

#[test]
fn two_processes_of_one_file_are_kept_apart() {
    let Some(file) = large_trace("nsys/nsysai_mfu_2gpu_before.sqlite") else {
        return;
    };
    let (code, object) = validated(&[], &file);
    assert_eq!(code, Some(0), "{object}");
    assert_eq!(object["format"], "nsight_systems");
    assert_counts(
        &object,
        &[
            ("api_calls", 7466),
            ("kernels", 4010),
            ("joined_kernels", 3986),
            ("wrong", 0),
        ],
    );
    let processes = object["processes"].as_array().expect("a list");
    let joined = |of: &Value| of["summary"]["joined_kernels"].as_u64().unwrap_or(0);
    assert_eq!(processes.len(), 2);
    assert_eq!(processes.iter().map(joined).sum::<u64>(), 3986);
    assert!(processes.iter().all(|of| joined(of) > 0));
    let ran = run(lineage().env("COLUMNS", "100").arg("validate").arg(&file));
    assert!(
        ran.out
            .contains("  process      calls  kernels  copies  sets  joined  lost  wrong"),
        "{}",
        ran.out
    );
}

#[test]
fn a_file_without_device_activity_has_lost_nothing() {
    let Some(file) = large_trace("nsys/Donovoi__ripgrep__report1.sqlite") else {
        return;
    };
    let (code, object) = validated(&[], &file);
    assert_eq!(
        (code, &object["no_device_activity"]),
        (Some(0), &true.into()),
        "{object}"
    );
    assert_counts(
        &object,
        &[
            ("api_calls", 411),
            ("lost", 0),
            ("launch_without_activity", 5),
        ],
    );
    let ran = on(&["validate"], &file);
    assert!(
        ran.words()
            .contains("no device activity recorded: 411 API calls, 5 of them"),
        "{}",
        ran.out
    );
    assert_eq!(on(&["validate", "--require-joins"], &file).code, Some(1));
}

#[test]
fn launches_that_failed_are_said_to_have() {
    let Some(file) = large_trace("nsys/Butter-gpw__CUDA__build__report1.sqlite") else {
        return;
    };
    let (code, object) = validated(&[], &file);
    assert_eq!(code, Some(0), "{object}");
    assert_counts(
        &object,
        &[
            ("failed_calls", 21),
            ("launch_without_activity", 21),
            ("lost", 0),
        ],
    );
    let ran = on(&["validate"], &file);
    assert!(
        ran.out.contains("no operation 21  21 failed"),
        "{}",
        ran.out
    );
}

#[test]
fn work_that_no_call_asked_for_is_counted_apart() {
    let Some(file) = large_trace("nsys/cestwc__balinski-and-gomory-cuda__report11.sqlite") else {
        return;
    };
    let (code, object) = validated(&[], &file);
    assert_eq!(code, Some(0), "{object}");
    // 99 migrations of managed memory have no correlation id.
    assert_counts(
        &object,
        &[
            ("activity_without_launch", 99),
            ("asked_for_by_no_call", 99),
            ("joined_kernels", 6039),
            ("lost", 0),
        ],
    );
}
