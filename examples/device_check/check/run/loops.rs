//! The launch loop in its four forms, in turn, so that a machine that warms up or is disturbed does not favour one.

use serde_json::{Map, Value, json};

use super::Asker;
use crate::check::questions::LOOPS;

/// Runs all forms in rounds and compares their medians.
pub(super) fn ask(asker: &Asker<'_>) -> Value {
    let mut rounds: Map<String, Value> = Map::new();
    let mut answers: Map<String, Value> = Map::new();
    // In the order in which they came.
    let mut problems: Vec<(&str, Value)> = Vec::new();
    for _ in 0..asker.run.rounds {
        for form in LOOPS {
            let outcome = asker.ask(form, &asker.run.of);
            if outcome["status"] != "answered" {
                problems.push((form.name, outcome));
                continue;
            }
            if let Value::Array(list) = rounds.entry(form.name).or_insert_with(|| json!([])) {
                list.push(outcome["measured"].clone());
            }
            answers.insert(form.name.to_owned(), outcome["answer"].clone());
        }
    }
    // A round that there was no time for is no failure if another one was there.
    let is_whole = rounds.len() == LOOPS.len();
    let problem = problems
        .iter()
        .find(|(_, outcome)| !is_whole || outcome["status"] != "skipped");
    let status = problem.map_or_else(
        || json!("answered"),
        |(_, outcome)| outcome["status"].clone(),
    );
    let error = problems.first().map(|(form, outcome)| {
        let error = outcome["error"].as_str().unwrap_or_default();
        format!("{form}: {error}")
    });
    if rounds.is_empty() {
        return json!({ "status": status, "error": error });
    }
    // What has no answer of its own is not compared.
    answers.retain(|_, answer| answer.as_object().is_some_and(|fields| !fields.is_empty()));
    let mut compared = Map::new();
    for (name, pointer) in [
        ("wall_ns_per_launch", "/wall_ns_per_launch/p50"),
        ("thread_cpu_ns_per_launch", "/thread_cpu_ns_per_launch/p50"),
        ("process_cpu_ns_per_launch", "/process_cpu_ns_per_launch"),
    ] {
        compared.insert(name.to_owned(), compare(&rounds, pointer));
    }
    json!({
        "status": status,
        "error": error,
        "answer": answers,
        "measured": { "medians": compared, "rounds": rounds },
    })
}

/// The median of each form over its rounds, and by how much each is over another.
fn compare(rounds: &Map<String, Value>, pointer: &str) -> Value {
    let median = |form: &str| {
        let list = rounds.get(form)?.as_array()?;
        let mut numbers: Vec<f64> = list
            .iter()
            .filter_map(|round| round.pointer(pointer)?.as_f64())
            .collect();
        numbers.sort_by(f64::total_cmp);
        numbers.get(numbers.len() / 2).copied()
    };
    let over = |form: &str, base: &str| {
        let (form, base) = (median(form)?, median(base)?);
        (base > 0.0).then(|| ((form / base - 1.0) * 1e4).round() / 1e2)
    };
    json!({
        "off": median("off"),
        "cupti": median("cupti"),
        "lineage": median("lineage"),
        "lineage_step": median("lineage_step"),
        "cupti_over_off_percent": over("cupti", "off"),
        "lineage_over_cupti_percent": over("lineage", "cupti"),
        "lineage_step_over_cupti_percent": over("lineage_step", "cupti"),
    })
}
