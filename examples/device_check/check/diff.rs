//! Two runs, question by question: what a device does and what the simulator does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use super::options::{CuptiChoice, Files, name};
use super::scenarios::{PREFIX, words};

/// Prints what differs. Status 0 if nothing does, 1 if something does.
pub fn print(files: &Files) -> Result<ExitCode, String> {
    let (real, simulated) = (read(&files.real)?, read(&files.simulated)?);
    let (left, right) = (answers(&real), answers(&simulated));
    let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let (mut same, mut differing) = (0, 0);
    let shown =
        |value: Option<&Value>| value.map_or_else(|| "not answered".to_owned(), Value::to_string);
    for key in keys {
        let (left, right) = (left.get(key), right.get(key));
        if left == right {
            same += 1;
            continue;
        }
        differing += 1;
        println!("{key:<58} {:<16} {}", shown(left), shown(right));
    }
    println!("\n{same} answers are the same, {differing} differ (first file, second file)");
    let scenarios_differ = print_scenarios(&real, &simulated);
    let switches = switches(&real);
    if !switches.is_empty() {
        println!("\nthe simulator does as the first does with:");
        for (switch, value) in switches {
            println!("  {switch} {value}");
        }
    }
    Ok(if differing == 0 && !scenarios_differ {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints in words what the scenarios told differently; whether anything.
fn print_scenarios(first: &Value, second: &Value) -> bool {
    let names: BTreeSet<&String> = [first, second]
        .into_iter()
        .filter_map(|summary| summary["questions"].as_object())
        .flat_map(|questions| questions.keys())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    let (mut same, mut differing) = (0, 0);
    for name in names {
        let [first, second] = [first, second].map(|summary| &summary["questions"][name]);
        let differences = words::differences(first, second);
        if differences.is_empty() {
            same += 1;
            continue;
        }
        differing += 1;
        println!("\n{name}:");
        for difference in differences {
            println!("  {difference}");
        }
    }
    if same + differing > 0 {
        println!("\n{same} scenarios were told the same, {differing} differently");
    }
    differing > 0
}

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let summary: Value = serde_json::from_str(&text)
        .map_err(|error| format!("{} is no JSON: {error}", path.display()))?;
    if summary["questions"].is_object() {
        Ok(summary)
    } else {
        Err(format!("{} is no summary of device_check", path.display()))
    }
}

/// Every answer by its path, `question.field` or `question.field.field`; the status where there is none.
fn answers(summary: &Value) -> BTreeMap<String, Value> {
    let mut answers = BTreeMap::new();
    for (name, question) in summary["questions"].as_object().into_iter().flatten() {
        // They are compared in words.
        if name.starts_with(PREFIX) {
            continue;
        }
        match question.get("answer") {
            Some(answer) => flatten(name, answer, &mut answers),
            None => {
                answers.insert(name.clone(), question["status"].clone());
            }
        }
    }
    answers
}

fn flatten(path: &str, value: &Value, answers: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields
                .iter()
                .for_each(|(key, field)| flatten(&format!("{path}.{key}"), field, answers));
        }
        _ => {
            answers.insert(path.to_owned(), value.clone());
        }
    }
}

/// The simulator's switches, as this program takes them, that give what a run answered.
fn switches(summary: &Value) -> Vec<(&'static str, String)> {
    let answer = |pointer: &str| {
        summary["questions"]
            .pointer(pointer)
            .filter(|value| !value.is_null())
    };
    let mut switches = Vec::new();
    if let Some(counts) = answer("/push_inside_enter/answer/counts") {
        switches.push(("--sim-push-inside-enter", counts.to_string()));
    }
    if let Some(equal) = answer("/nested_ids/answer/equal").and_then(Value::as_bool) {
        switches.push((
            "--sim-runtime-calls",
            if equal { "same" } else { "own" }.to_owned(),
        ));
    }
    if let Some(per_thread) = answer("/buffers_by_thread/answer/per_thread") {
        switches.push(("--sim-per-thread-buffers", per_thread.to_string()));
    }
    if let Some(version) = summary["machine"]["cupti"]["cupti_version"].as_u64() {
        // A version between two that are simulated writes records as the older one does.
        switches.push(("--sim-cupti", name(&CuptiChoice::like(version))));
    }
    switches
}
