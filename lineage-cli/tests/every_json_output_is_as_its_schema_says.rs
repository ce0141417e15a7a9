//! `lineage schema` describes what `--json` prints, field by field, and the lines of a ledger.

mod common;

use common::schema::{differences, undocumented};
use common::{Scratch, faulty, kineto, lineage, run, sound};
use serde_json::Value;

fn schema(of: &str) -> Value {
    let ran = run(lineage().args(["schema", of]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.out).expect("JSON")
}

fn assert_fits(schema: &Value, value: &Value) {
    assert_eq!(differences(schema, value), [""; 0], "{value}");
    assert_eq!(undocumented(schema, value), [""; 0], "{value}");
}

#[test]
fn what_validate_and_show_print_is_documented() {
    let faulty = Scratch::new("schema-faulty.jsonl", &faulty());
    let sound = Scratch::new("schema-sound.jsonl", &sound());
    let none = Scratch::new("schema-none.txt", b"hello");
    for command in ["validate", "show"] {
        let ran = run(lineage()
            .args([command, "--json"])
            .args([&faulty.0, &sound.0, &none.0])
            .arg(kineto("leimao_manual_capture.json.gz"))
            .arg(kineto("trace_compare__test__test.json.gz")));
        assert_eq!(ran.code, Some(2));
        let schema = schema(command);
        let objects = ran.objects();
        assert_eq!(objects.len(), 5, "{}", ran.out);
        for object in &objects {
            assert_fits(&schema, object);
        }
        assert!(
            objects[2]["error"]
                .as_str()
                .is_some_and(|text| text.contains("not a recording"))
        );
    }
}

#[test]
fn what_service_and_compare_print_is_documented() {
    let sound = Scratch::new("schema-service.jsonl", &sound());
    let none = Scratch::new("schema-service-none.txt", b"hello");
    let ran = run(lineage()
        .args([
            "service",
            "--json",
            "--first-token",
            "1us",
            "--warm-up",
            "1ns",
        ])
        .args([&sound.0, &none.0])
        .arg(kineto("leimao_manual_capture.json.gz")));
    assert_eq!(ran.code, Some(2));
    let described = schema("service");
    assert_eq!(ran.objects().len(), 3, "{}", ran.out);
    for object in &ran.objects() {
        assert_fits(&described, object);
    }

    let described = schema("compare");
    let [before, after] =
        ["base", "test"].map(|side| kineto(&format!("trace_compare__{side}__{side}.json.gz")));
    for (files, code) in [([&before, &after], 0), ([&before, &none.0], 2)] {
        let ran = run(lineage().args(["compare", "--json"]).args(files));
        assert_eq!(ran.code, Some(code));
        let objects = ran.objects();
        assert_eq!(objects.len(), 1, "{}", ran.out);
        assert_fits(&described, &objects[0]);
    }
}

#[test]
fn what_the_doctor_prints_is_documented() {
    let ran = run(lineage().args(["doctor", "--json"]));
    let objects = ran.objects();
    assert_eq!(objects.len(), 1);
    assert_fits(&schema("doctor"), &objects[0]);
}

#[test]
fn what_the_lab_prints_is_documented() {
    for more in [
        &[][..],
        &["--graph"],
        &["--depth", "1", "--channels", "1", "--streams", "2"],
    ] {
        let ran = run(lineage().args(["lab", "--json"]).args(more));
        let objects = ran.objects();
        assert_eq!(objects.len(), 1);
        assert_fits(&schema("lab"), &objects[0]);
    }
}

#[test]
fn the_lines_of_a_ledger_are_documented() {
    let schema = schema("ledger");
    let ledger = String::from_utf8(faulty()).expect("UTF-8");
    let mut kinds = std::collections::BTreeSet::new();
    for line in ledger.lines() {
        let value: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(differences(&schema, &value), [""; 0], "{line}");
        kinds.extend(
            value
                .as_object()
                .into_iter()
                .flat_map(|object| object.keys().cloned()),
        );
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["end", "lineage", "observation"]
    );
}

#[test]
fn a_value_that_does_not_fit_is_found() {
    let validate = schema("validate");
    let file = Scratch::new("schema-bad.jsonl", &sound());
    let good = run(lineage().args(["validate", "--json"]).arg(&file.0))
        .objects()
        .remove(0);
    for (pointer, bad) in [
        ("/schema", Value::from(2)),
        ("/summary/kernels", Value::from("3")),
        ("/summary/kernels", Value::from(-3)),
        ("/format", Value::from("csv")),
        ("/faults", serde_json::json!({"X99": 1})),
        ("/ledger/complete", Value::Null),
    ] {
        let mut object = good.clone();
        *object.pointer_mut(pointer).expect("it is there") = bad;
        assert!(!differences(&validate, &object).is_empty(), "{pointer}");
    }
    let mut object = good;
    object["invented"] = Value::from(1);
    assert_eq!(undocumented(&validate, &object), ["/invented"]);
}
