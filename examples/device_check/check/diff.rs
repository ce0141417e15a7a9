//! Two runs, question by question: what a device does and what the simulator does.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use super::options::Files;

/// Prints what differs. Status 0 if nothing does, 1 if something does.
pub fn print(files: &Files) -> Result<ExitCode, String> {
    let (real, simulated) = (read(&files.real)?, read(&files.simulated)?);
    let (left, right) = (answers(&real), answers(&simulated));
    let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
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
    let switches = switches(&real);
    if !switches.is_empty() {
        println!("\nthe simulator does as the first does with:");
        for (switch, value) in switches {
            println!("  {switch} {value}");
        }
    }
    Ok(if differing == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
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
        // The layouts that the simulator writes are those of 12.9 and 13.5; a version between is read by prefix.
        switches.push((
            "--sim-cupti",
            if version >= 130_000 { "13.5" } else { "12.9" }.to_owned(),
        ));
    }
    switches
}
