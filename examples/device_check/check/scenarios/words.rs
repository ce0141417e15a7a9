//! What two machines told differently of a scenario, in words.

use serde_json::{Map, Value};

/// One sentence for each difference of two summaries' entries for one scenario; none where nothing differs.
pub fn differences(first: &Value, second: &Value) -> Vec<String> {
    let (Some(left), Some(right)) = (first.get("answer"), second.get("answer")) else {
        let (left, right) = (outcome(first), outcome(second));
        return if left == right {
            Vec::new()
        } else {
            vec![format!("the first {left}, the second {right}")]
        };
    };
    let mut said = Vec::new();
    records(&left["records"], &right["records"], &mut said);
    order(left, right, &mut said);
    for (fact, words) in [
        (
            "correlationIdsRise",
            "correlation ids rise from call to call",
        ),
        (
            "correlationIdsComeOnce",
            "every call has a correlation id of its own",
        ),
    ] {
        if left[fact] != right[fact] {
            let (one, other) = if left[fact] == true {
                ("first", "second")
            } else {
                ("second", "first")
            };
            said.push(format!("{words} in the {one}, not in the {other}"));
        }
    }
    unknown_kinds(&left["counts"], &right["counts"], &mut said);
    // Calls that only one has are said above; the order of the others is left.
    if said.is_empty() && left != right {
        said.push(format!(
            "the calls come in another order: {} in the first, {} in the second",
            left["callsInOrder"], right["callsInOrder"]
        ));
    }
    said
}

/// What became of a scenario that has no answer.
fn outcome(entry: &Value) -> String {
    match (entry["status"].as_str(), entry["error"].as_str()) {
        (Some("answered"), _) => "was answered".to_owned(),
        (Some(status), Some(error)) => format!("was {status} ({error})"),
        (Some(status), None) => format!("was {status}"),
        (None, _) => "was not run".to_owned(),
    }
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn records(left: &Value, right: &Value, said: &mut Vec<String>) {
    for (name, fields) in object(left) {
        let Some(others) = right.get(name) else {
            said.push(format!("only the first has a record: {name}"));
            continue;
        };
        for (field, value) in object(fields) {
            match others.get(field) {
                Some(other) if other == value => {}
                Some(other) => said.push(format!(
                    "{name}: {field} is {} in the first, {} in the second",
                    plain(value),
                    plain(other)
                )),
                None => said.push(format!("{name}: only the first has a field {field}")),
            }
        }
        for (field, _) in object(others).filter(|(field, _)| fields.get(*field).is_none()) {
            said.push(format!("{name}: only the second has a field {field}"));
        }
    }
    for (name, _) in object(right).filter(|(name, _)| left.get(*name).is_none()) {
        said.push(format!("only the second has a record: {name}"));
    }
}

/// Of every two operations that both have.
fn order(left: &Value, right: &Value, said: &mut Vec<String>) {
    for (first, others) in object(&left["order"]) {
        for (second, relation) in object(others) {
            // Both tell a pair in the order of their calls, so that it is found, or one of the two has no record.
            let told = &right["order"][first][second];
            if !told.is_null() && told != relation {
                said.push(format!(
                    "{first} ran {} {second} in the first, {} it in the second",
                    plain(relation),
                    plain(told)
                ));
            }
        }
    }
}

/// Kinds that this program has no word for, so that their records are counted and no more.
fn unknown_kinds(left: &Value, right: &Value, said: &mut Vec<String>) {
    let count = |counts: &Value, word: &String| counts[word].as_u64().unwrap_or(0);
    let words: std::collections::BTreeSet<&String> = object(left)
        .chain(object(right))
        .map(|(word, _)| word)
        .collect();
    for word in words.into_iter().filter(|word| word.starts_with("kind ")) {
        let (left, right) = (count(left, word), count(right, word));
        if left != right {
            said.push(format!(
                "records of {word}: {left} in the first, {right} in the second"
            ));
        }
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
