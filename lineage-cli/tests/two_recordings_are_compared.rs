//! `lineage compare` says which reasons grew, how sure that is, and whether the work was the same.

mod common;

use std::path::Path;

use common::{kineto, lineage, run};
use serde_json::Value;

fn compared(before: &Path, after: &Path) -> Value {
    let ran = run(lineage().args(["compare", "--json"]).args([before, after]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    ran.objects().remove(0)
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let same = kineto("sglang_decode_qwen3_30b_a3b_B300.json.gz");
    let of = compared(&same, &same);
    assert_eq!(
        (&of["same_mix"], &of["mix_apart"]),
        (&true.into(), &0.0.into())
    );
    assert!(of["before"]["units"].as_u64() >= Some(30), "{of}");
    let verdicts = of["verdicts"].as_object().expect("by name");
    assert!(!verdicts.is_empty());
    for difference in verdicts.values().chain([&of["whole"]]) {
        assert_eq!(difference["before_ns"], difference["after_ns"]);
        assert_eq!(difference["sure"], false, "nothing differs");
        assert!(difference["interval_ns"][0].as_f64() <= Some(0.0));
        assert!(difference["interval_ns"][1].as_f64() >= Some(0.0));
    }
}

#[test]
fn other_work_is_said_to_be_other_work() {
    let dlrm = kineto("param_dlrm_worker0.json.gz");
    let decode = kineto("inference__vllm_decode_full__graph_execution.json.gz");
    let of = compared(&dlrm, &decode);
    assert_eq!(of["same_mix"], false);
    assert!(of["mix_apart"].as_f64() > Some(0.9), "{of}");
    let ran = run(lineage().arg("compare").args([&dlrm, &decode]));
    assert!(
        ran.out.contains("not the same mix of operations"),
        "{}",
        ran.out
    );
}

#[test]
fn few_units_have_no_interval() {
    let of = compared(
        &kineto("trace_compare__base__base.json.gz"),
        &kineto("trace_compare__test__test.json.gz"),
    );
    assert_eq!(of["whole"]["interval_ns"], Value::Null);
    assert_eq!(of["whole"]["sure"], false);
}
