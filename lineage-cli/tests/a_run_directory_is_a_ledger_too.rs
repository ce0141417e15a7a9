//! Every command that reads a ledger reads a run directory, and says the same of it; and a ledger is
//! converted to one and back without a loss.

mod common;

use std::path::{Path, PathBuf};

use common::recording::Recording;
use common::{Folder, Scratch, lineage, on, run, sound};
use lineage_arrow::Writer;
use lineage_core::correlator::{Correlator, Limits};
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::Event;
use lineage_core::source::{SessionInfo, Sink};
use serde_json::Value;

fn convert(from: &Path, to: &Path) -> common::Ran {
    run(lineage().arg("convert").arg(from).arg(to))
}

#[test]
fn a_ledger_goes_to_a_run_directory_and_back_without_a_loss() {
    let folder = Folder::new("there_and_back");
    let ledger = Scratch::new("there_and_back.jsonl", &sound());
    let directory = folder.0.join("run.lineage");
    let back = folder.0.join("back.jsonl");
    let database = folder.0.join("run.sqlite");
    for (from, to) in [
        (&ledger.0, &directory),
        (&directory, &back),
        (&directory, &database),
    ] {
        let ran = convert(from, to);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    }
    let text = |path: &Path| std::fs::read_to_string(path).expect("there");
    let (before, after) = (text(&ledger.0), text(&back));
    assert!(before == after, "{before}\n\n{after}");

    let rows = before.lines().filter(|of| of.starts_with(r#"{"row""#));
    let counted: i64 = rusqlite::Connection::open(&database)
        .and_then(|of| of.query_row("SELECT count(*) FROM launches", [], |row| row.get(0)))
        .expect("a database with the table");
    assert_eq!(counted, rows.count() as i64);

    for command in ["validate", "show"] {
        let (of_lines, of_directory) = (on(&[command], &ledger.0), on(&[command], &directory));
        assert_eq!(of_lines.code, of_directory.code);
        // Lines are broken where names end, which differ.
        let less_the_name = |text: &str| {
            let rest = text.split_once('\n').map(|(_, rest)| rest);
            let words: Vec<&str> = rest.unwrap_or_default().split_whitespace().collect();
            words.join(" ")
        };
        let of_lines = less_the_name(&of_lines.out);
        let of_directory = less_the_name(&of_directory.out);
        let of_directory = of_directory.replace("lineage-arrow", "lineage-core");
        assert_eq!(of_lines, of_directory, "{command}");
    }
    // A folder of several is read as one.
    let again = folder.0.join("again.lineage");
    assert_eq!(convert(&directory, &again).code, Some(0));
    let ran = on(&["validate", "--json"], &folder.0);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let processes = &ran.objects()[0]["processes"];
    assert_eq!(processes.as_array().map(Vec::len), Some(2), "{processes}");
}

#[test]
fn what_a_crash_left_is_read_and_said() {
    let folder = Folder::new("crash");
    let ledger = Scratch::new("crash.jsonl", &sound());
    let directory = folder.0.join("run.lineage");
    assert_eq!(convert(&ledger.0, &directory).code, Some(0));
    let journal = directory.join("000001/batches.jsonl");
    let text = std::fs::read_to_string(&journal).expect("there");
    let batch = text.lines().next().expect("a batch");
    std::fs::write(&journal, format!("{batch}\n{{\"batch\":{{\"ba")).expect("written");
    let ran = on(&["show"], &directory);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.words().contains("the last batch was cut short"),
        "{}",
        ran.out
    );
    // What is converted lacks its end, too.
    let back = folder.0.join("back.jsonl");
    let ran = convert(&directory, &back);
    assert!(
        ran.code == Some(0) && ran.err.contains("cut short"),
        "{}",
        ran.err
    );
    let back = std::fs::read_to_string(back).expect("there");
    assert!(!back.contains(r#"{"end""#));
}

#[test]
fn what_cannot_be_converted_is_refused_and_nothing_is_overwritten() {
    let folder = Folder::new("refused");
    let ledger = Scratch::new("refused.jsonl", &sound());
    let there = folder.0.join("there.jsonl");
    std::fs::write(&there, "mine").expect("written");
    for (to, says) in [
        ("there.jsonl", "is there already"),
        ("run.csv", "its name says no form"),
        ("none", "its name says no form"),
        #[cfg(not(feature = "parquet"))]
        ("run.parquet", "was built without Parquet"),
    ] {
        let ran = convert(&ledger.0, &folder.0.join(to));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{to}");
        assert!(ran.err.contains(says), "{to}: {}", ran.err);
    }
    assert_eq!(std::fs::read_to_string(&there).expect("there"), "mine");
    assert!(!folder.0.join("run.parquet").exists());
    let ran = on(&["show"], &folder.0);
    assert!(
        ran.code == Some(2) && ran.err.contains("no run directory"),
        "{}",
        ran.err
    );
}

/// What values are in these tables is `lineage-arrow`'s to test.
#[cfg(feature = "parquet")]
#[test]
fn parquet_is_a_folder_with_a_file_for_each_table_that_has_rows() {
    let folder = Folder::new("parquet");
    let ledger = Scratch::new("parquet.jsonl", &sound());
    let tables = folder.0.join("run.parquet");
    let ran = convert(&ledger.0, &tables);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let mut names: Vec<String> = std::fs::read_dir(&tables)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    let expected = [
        "calls",
        "epochs",
        "externals",
        "facts",
        "operations",
        "scopes",
    ];
    assert_eq!(names, expected.map(|name| format!("{name}.parquet")));
    for name in names {
        let bytes = std::fs::read(tables.join(name)).expect("readable");
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }
}

/// What a process that saw this leaves: its rows, too.
fn leave(path: &Path, process: u128, service: &str, recording: &Recording) {
    let mut correlator = Correlator::new(Limits::default());
    for observation in &recording.observations {
        correlator.observe(observation);
    }
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    let mut writer = Writer::new(path);
    let session = SessionInfo::new(uuid::Uuid::from_u128(process), service, HostNanos(5));
    writer.begin(&session).expect("begun");
    writer
        .observations(&recording.observations)
        .expect("written");
    writer.rows(&rows, &faults).expect("written");
    writer.finish().expect("finished");
}

/// Three processes whose threads, correlation ids, contexts, streams, epochs and handoffs have the same
/// numbers: the first sends what nobody takes, the second takes what nobody sent, the third lost an
/// operation.
fn three_processes(folder: &Path) -> [PathBuf; 3] {
    let mut sends = Recording::sound();
    sends.send(1, 1, 10, 200);
    let mut receives = Recording::sound();
    receives.receive(1, 1, 10, 300);
    let loses = Recording::sound().ended().without(
        |event| matches!(event, Event::Operation(of) if of.correlation == CorrelationId(2)),
    );
    let recordings = [sends.ended(), receives.ended(), loses];
    let paths = ["a", "b", "c"].map(|name| folder.join(format!("{name}.lineage")));
    for (number, (path, recording)) in paths.iter().zip(&recordings).enumerate() {
        leave(
            path,
            number as u128 + 1,
            ["front", "engine", "engine"][number],
            recording,
        );
    }
    paths
}

/// Sums numbers at the same places of objects; what is no number has no part in it.
fn sum(into: &mut Value, of: &Value) {
    match (into, of) {
        (Value::Object(into), Value::Object(of)) => {
            for (name, value) in of {
                sum(into.entry(name).or_insert_with(|| 0.into()), value);
            }
        }
        (into, Value::Object(of)) => {
            *into = Value::Object(serde_json::Map::new());
            sum(into, &Value::Object(of.clone()));
        }
        (into, Value::Number(of)) => {
            let before = into.as_u64().unwrap_or(0);
            *into = (before + of.as_u64().expect("a count")).into();
        }
        _ => {}
    }
}

fn sum_of(objects: &[Value], pointer: &str) -> Value {
    let mut all = Value::Null;
    for object in objects {
        sum(&mut all, object.pointer(pointer).expect("it is there"));
    }
    all
}

#[test]
fn several_processes_directories_are_one_recording_whose_counts_are_their_sum() {
    let folder = Folder::new("several");
    let paths = three_processes(&folder.0);
    for (command, counts) in [
        ("validate", &["/summary", "/faults"][..]),
        (
            "diagnose",
            &[
                "/rows",
                "/rows_with_path",
                "/whole_ns",
                "/verdicts",
                "/covered_ns",
            ],
        ),
        (
            "service",
            &["/tokens/served/requests", "/tokens/served/tokens"],
        ),
    ] {
        let whole = on(&[command, "--json"], &folder.0);
        let parts = run(lineage().args([command, "--json"]).args(&paths));
        assert_eq!(whole.code, parts.code, "{command}: {}", whole.err);
        let (whole, parts) = (whole.objects().remove(0), parts.objects());
        assert_eq!(parts.len(), 3, "{command}");
        for pointer in counts {
            let summed = sum_of(&parts, pointer);
            assert_eq!(whole.pointer(pointer), Some(&summed), "{command} {pointer}");
        }
    }

    let whole = on(&["validate", "--json"], &folder.0).objects().remove(0);
    // Sent by one process and received by another under the same number: not the same handoff.
    assert_eq!(whole["faults"]["L05"], 1, "{whole}");
    assert_eq!(whole["summary"]["handoffs_without_sender"], 1, "{whole}");
    assert_eq!(whole["faults"]["L03"], 1, "{whole}");
    assert_eq!(whole["ledger"]["service"], "front, engine");
    let kernels: Vec<&Value> = whole["processes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|process| &process["summary"]["kernels"])
        .collect();
    assert_eq!(kernels, [3, 3, 2]);
    let served = on(&["service", "--json"], &folder.0).objects().remove(0);
    let processes: Vec<&Value> = served["devices"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|device| &device["process"])
        .collect();
    assert_eq!(processes, [0, 1, 2], "a device of each process's own");
}

#[test]
fn one_of_several_that_is_damaged_is_named_and_keeps_nobody_from_the_others() {
    let folder = Folder::new("damaged");
    let paths = three_processes(&folder.0);
    let table = paths[1].join("000001/operations.arrows");
    let bytes = std::fs::read(&table).expect("there");
    std::fs::write(&table, &bytes[..bytes.len() / 2]).expect("written");
    // As one: what it lacks would show as faults, so nothing is said of any.
    let ran = on(&["validate", "--json"], &folder.0);
    assert_eq!(ran.code, Some(2));
    let said = "b.lineage/000001/operations.arrows: batch 1 is damaged";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert!(ran.err.contains("take it out of the folder"), "{}", ran.err);
    // One by one: the others are read.
    let ran = run(lineage().args(["validate", "--json"]).args(&paths));
    assert_eq!(ran.code, Some(2));
    let objects = ran.objects();
    assert_eq!(objects[0]["summary"]["kernels"], 3);
    assert!(
        objects[1]["error"]
            .as_str()
            .is_some_and(|of| of.contains(said))
    );
    assert_eq!(objects[2]["summary"]["kernels"], 2);

    // What is half converted says so.
    let ran = convert(&paths[1], &folder.0.join("half.jsonl"));
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err.contains("half.jsonl, without an end: remove it"),
        "{}",
        ran.err
    );

    // One that was only cut short, as by a crash, is read with the others, and said.
    std::fs::write(&table, &bytes).expect("written");
    let journal = paths[2].join("000001/batches.jsonl");
    let text = std::fs::read_to_string(&journal).expect("there");
    let batch = text.lines().next().expect("a batch");
    std::fs::write(&journal, format!("{batch}\n")).expect("written");
    for command in ["validate", "show", "diagnose", "service"] {
        let ran = on(&[command], &folder.0);
        assert_ne!(ran.code, Some(2), "{command}: {}", ran.err);
        let said = "in 1 of 3 directories, and is left aside";
        assert!(ran.words().contains(said), "{command}: {}", ran.out);
    }
}

#[test]
fn what_was_removed_to_keep_within_a_size_is_said_by_every_command() {
    let folder = Folder::new("removed");
    let directory = folder.0.join("run.lineage");
    let mut writer = Writer::new(&directory).keep_bytes(20_000);
    let session = SessionInfo::new(uuid::Uuid::from_u128(7), "llm", HostNanos(5));
    writer.begin(&session).expect("begun");
    let mut recording = Recording::sound();
    let first = recording.observations.len();
    for number in 0..9_000_u32 {
        let called = 10_000 + u64::from(number) * 5_000;
        recording.launch(&common::recording::Launch::of(
            common::recording::epoch(1),
            10,
            number + 4,
            called,
        ));
    }
    recording.end(1, 100_000_000);
    assert!(recording.observations.len() > first + 40_000);
    writer
        .observations(&recording.observations)
        .expect("written");
    writer.finish().expect("finished");

    let object = on(&["validate", "--json"], &directory).objects().remove(0);
    assert_eq!(object["ledger"]["complete"], false, "{object}");
    // What is missing since it was removed is no fault of the recording.
    assert_eq!(object["faults"], serde_json::json!({}), "{object}");
    let both = [directory.clone(), directory.clone()];
    for (command, files) in [
        ("validate", &both[..1]),
        ("show", &both[..1]),
        ("diagnose", &both[..1]),
        ("service", &both[..1]),
        ("compare", &both[..]),
    ] {
        let ran = run(lineage().arg(command).args(files));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{command}");
        let said = "segments) were removed to keep within the size that was asked for";
        assert!(ran.words().contains(said), "{command}: {}", ran.out);
    }
    let back = convert(&directory, &folder.0.join("back.jsonl"));
    assert!(
        back.code == Some(0) && back.err.contains("were removed"),
        "{}",
        back.err
    );
}

#[test]
fn a_directory_of_a_newer_schema_is_refused_with_what_can_read_it() {
    let folder = Folder::new("newer");
    let ledger = Scratch::new("newer.jsonl", &sound());
    let directory = folder.0.join("run.lineage");
    assert_eq!(convert(&ledger.0, &directory).code, Some(0));
    let meta = directory.join("meta.json");
    let text = std::fs::read_to_string(&meta).expect("there");
    let newer = text
        .replace("\"schema\": 1", "\"schema\": 2")
        .replace(env!("CARGO_PKG_VERSION"), "9.1.0");
    std::fs::write(&meta, newer).expect("written");
    for command in ["validate", "show", "diagnose", "service"] {
        let ran = on(&[command], &directory);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{command}");
        let said = "schema 2, written by lineage-arrow 9.1.0; this build reads up to 1; \
                    use the `lineage` of that version or a later one";
        assert!(ran.err.contains(said), "{command}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
}
