//! `--from`, `--to` and `--last` look at a part of a recording, and say so; what is claimed of it is in
//! `lineage-core/tests/verdicts_are_right_or_unresolved/parts.rs` held against truth.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::recording::{Launch, Recording, epoch};
use common::schema::{differences, undocumented};
use common::{Folder, Scratch, kineto, lineage, on, run};
use lineage_arrow::Writer;
use lineage_core::correlator::{Correlator, Limits};
use lineage_core::fault::FaultCode;
use lineage_core::id::HostNanos;
use lineage_core::ledger;
use lineage_core::observation::Observation;
use lineage_core::row::Row;
use lineage_core::source::{SessionInfo, Sink};
use serde_json::Value;

const SECOND: u64 = 1_000_000_000;
/// When the run started, on its own clock: 2026-11-30T02:00:00Z by the wall clock.
const START: u64 = 77 * SECOND;
const STARTED_UNIX_NS: u64 = 1_796_004_000 * SECOND;

/// A run of 60 s: every 100 ms a request of its own, with one launch 10 ms after its declaration, whose kernel
/// ends within 1 ms.
fn minute() -> (Vec<Observation>, Vec<Row>) {
    let mut recording = Recording::new();
    recording.thread(10, START);
    for number in 0..600_u32 {
        let declared = START + u64::from(number) * SECOND / 10;
        let id = u64::from(number) + 1;
        recording.declare(id, 10, declared);
        recording.launch(&Launch::of(
            epoch(id),
            10,
            number + 1,
            declared + SECOND / 100,
        ));
        recording.retire(id, declared + SECOND / 20);
    }
    // Its last flush returned 5 ns before.
    recording.end(1, START + 60 * SECOND + 5);
    let mut correlator = Correlator::new(Limits::default());
    let observations = recording.observations;
    observations.iter().for_each(|of| correlator.observe(of));
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    assert_eq!((rows.len(), faults.len()), (600, 0));
    (observations, rows)
}

fn session(wall_clock: bool) -> SessionInfo {
    let session = SessionInfo::new(uuid::Uuid::from_u128(7), "llm", HostNanos(START));
    if wall_clock {
        session.started_at_unix_ns(STARTED_UNIX_NS)
    } else {
        session
    }
}

/// Rows each follow what they were joined from, as a session gives them.
fn give(sink: &mut dyn Sink, wall_clock: bool, observations: &[Observation], rows: &[Row]) {
    sink.begin(&session(wall_clock)).expect("begun");
    let mut rows = rows.iter();
    for some in observations.chunks(60) {
        sink.observations(some).expect("written");
        for row in rows.by_ref().take(6) {
            sink.rows(std::slice::from_ref(row), &[]).expect("written");
        }
    }
    sink.rows(rows.as_slice(), &[]).expect("written");
    sink.finish().expect("finished");
}

fn lines(wall_clock: bool, observations: &[Observation], rows: &[Row]) -> Vec<u8> {
    let mut file = Vec::new();
    give(
        &mut ledger::Writer::new(&mut file),
        wall_clock,
        observations,
        rows,
    );
    file
}

fn diagnosed(arguments: &[&str], file: &Path) -> Value {
    let mut all = vec!["diagnose", "--json"];
    all.extend(arguments);
    let ran = on(&all, file);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{arguments:?}");
    ran.objects().remove(0)
}

fn of_part(object: &Value) -> [u64; 5] {
    ["from_ns", "to_ns", "run_ns", "rows", "rows_outside"]
        .map(|name| object["part"][name].as_u64().expect("a number"))
}

#[test]
fn a_part_is_named_by_times_of_the_run_or_of_the_wall_clock() {
    let folder = Folder::new("parts");
    let (observations, rows) = minute();
    let file = Scratch::new("parts.jsonl", &lines(true, &observations, &rows));
    let directory = folder.0.join("parts.lineage");
    // A segment a batch.
    let mut writer = Writer::new(&directory).segment_bytes(1);
    give(&mut writer, true, &observations, &rows);
    let schema: Value =
        serde_json::from_str(&run(lineage().args(["schema", "diagnose"])).out).expect("JSON");
    // Kernels end 10 to 11 ms after each tenth of a second.
    for (arguments, expected) in [
        (&["--last", "10s"][..], [50, 60, 60, 100, 500]),
        (&["--from=-10s"], [50, 60, 60, 100, 500]),
        (&["--from", "12s", "--to", "20s"], [12, 20, 60, 80, 520]),
        (&["--from", "0m12s", "--to=-40s"], [12, 20, 60, 80, 520]),
        (
            &[
                "--from",
                "2026-11-30T02:00:12Z",
                "--to",
                "2026-11-30T03:00:20+01:00",
            ],
            [12, 20, 60, 80, 520],
        ),
        (&["--to", "1s"], [0, 1, 60, 10, 590]),
        // Longer than the run is: all of it.
        (&["--last", "10m"], [0, 60, 60, 600, 0]),
        (&["--from", "2026-11-29T00:00:00Z"], [0, 60, 60, 600, 0]),
    ] {
        let mut both = Vec::new();
        for of in [&file.0, &directory] {
            let mut object = diagnosed(arguments, of);
            assert_eq!(differences(&schema, &object), [""; 0]);
            assert_eq!(undocumented(&schema, &object), [""; 0]);
            let [from, to, run, rows, outside] = expected;
            let seconds = [from, to, run].map(|of| of * SECOND);
            assert_eq!(
                of_part(&object),
                [seconds[0], seconds[1], seconds[2], rows, outside],
                "{arguments:?} of {}",
                of.display()
            );
            assert_eq!(object["rows"], rows);
            object["file"] = Value::Null;
            both.push(object);
        }
        assert_eq!(both[0], both[1], "{arguments:?}: a file and a directory");
    }
    let whole = diagnosed(&[], &file.0);
    assert_eq!(whole["part"], Value::Null);
    assert_eq!(differences(&schema, &whole), [""; 0]);
    let ran = on(&["diagnose", "--last", "10s"], &file.0);
    let said = "10.00 s of 60.00 s: from 50.00 s to 60.00 s after the start; 500 rows outside not looked at";
    assert!(ran.words().contains(said), "{}", ran.out);
}

/// However a run is cut, each row is in one part; and what is told of a row of an epoch that was declared in the
/// lead-in is what is told of it in the whole.
#[test]
fn the_parts_of_a_run_are_together_the_whole() {
    let (observations, rows) = minute();
    let file = Scratch::new("together.jsonl", &lines(true, &observations, &rows));
    let whole = diagnosed(&[], &file.0);
    let mut sum = 0;
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    for (from, to) in [
        ("0s", "17s"),
        ("17000000001ns", "17s50ms"),
        ("17050000001ns", "60s"),
    ] {
        let of = diagnosed(&["--from", from, "--to", to], &file.0);
        sum += of["whole_ns"].as_u64().expect("a number");
        for (name, of) in of["verdicts"].as_object().expect("by name") {
            *counted.entry(name.clone()).or_default() += of["ns"].as_u64().expect("a number");
        }
    }
    assert_eq!(whole["whole_ns"], sum);
    for (name, of) in whole["verdicts"].as_object().expect("by name") {
        assert_eq!(of["ns"], counted.remove(name).unwrap_or(0), "{name}");
    }
    assert_eq!(counted, BTreeMap::new());
}

/// Another tool's recording is judged as a whole, and what lies outside is not counted: so what is told of parts
/// adds up to what is told of the whole.
#[test]
fn the_parts_of_another_tools_recording_add_up_to_the_whole() {
    let file = kineto("leimao_manual_capture.json.gz");
    let whole = diagnosed(&[], &file);
    let run_ns = of_part(&diagnosed(&["--from", "0s"], &file))[2];
    let cuts = 3;
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut rows = 0;
    for cut in 0..cuts {
        let from = format!("{}ns", cut * run_ns / cuts + u64::from(cut > 0));
        let to = format!("{}ns", (cut + 1) * run_ns / cuts);
        let of = diagnosed(&["--from", &from, "--to", &to], &file);
        rows += of["rows"].as_u64().expect("a number");
        for (name, of) in of["verdicts"].as_object().expect("by name") {
            *sums.entry(name.clone()).or_default() += of["ns"].as_u64().expect("a number");
        }
    }
    assert_eq!(whole["rows"], rows);
    for (name, of) in whole["verdicts"].as_object().expect("by name") {
        assert_eq!(of["ns"], sums.remove(name).unwrap_or(0), "{name}");
    }
}

#[test]
fn what_names_no_part_of_the_run_is_refused_with_what_the_run_is() {
    let (observations, rows) = minute();
    let dated = Scratch::new("dated.jsonl", &lines(true, &observations, &rows));
    let undated = Scratch::new("undated.jsonl", &lines(false, &observations, &rows));
    for (arguments, file, said) in [
        (
            &["--from", "20s", "--to", "12s"][..],
            &dated,
            "the part ends before it begins: `--from` is 20.00 s after the start, `--to` 12.00 s",
        ),
        (
            &["--from", "2m"],
            &dated,
            "the part lies outside of it: the run is 60.00 s long, from 2026-11-30T02:00:00Z to 2026-11-30T02:01:00Z",
        ),
        (
            &["--to", "2026-11-30T01:59:00Z"],
            &dated,
            "the part lies outside of it: the run is 60.00 s long, from 2026-11-30T02:00:00Z",
        ),
        (
            &["--from", "2m"],
            &undated,
            "the part lies outside of it: the run is 60.00 s long",
        ),
        (
            &["--from", "2026-11-30T02:00:12Z"],
            &undated,
            "it does not say when it started by the wall clock, so no date can be placed in it: name a time after its \
             start (`--from 12m30s`)",
        ),
        (
            &["--last", "10"],
            &dated,
            "a length of time is wanted, as 10m, 1h30m or 2.5s",
        ),
        (
            &["--from", "noon"],
            &dated,
            "a date with its zone, as 2026-11-30T02:14:00Z",
        ),
        (
            &["--from", "2026-02-30T00:00:00Z"],
            &dated,
            "a time of the run is wanted",
        ),
        (
            &["--last", "1m", "--from", "3s"],
            &dated,
            "cannot be used with",
        ),
    ] {
        let mut all = vec!["diagnose"];
        all.extend(arguments);
        let ran = on(&all, &file.0);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.err.contains(said), "{arguments:?}: {}", ran.err);
    }
    // And as an object.
    let ran = on(&["diagnose", "--json", "--from", "2m"], &dated.0);
    assert!(
        ran.out.contains("the part lies outside of it"),
        "{}",
        ran.out
    );
    let both = [&dated.0, &dated.0];
    let ran = run(lineage().args(["compare", "--from", "2m"]).args(both));
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}

/// A device's clock that steps makes times that cannot be. They neither move the run's end nor take their row
/// out of the part in which it was called.
#[test]
fn a_clock_that_steps_moves_no_part() {
    let (observations, mut rows) = minute();
    for row in &mut rows[595..598] {
        let operation = row.operation.as_mut().expect("a launch");
        operation.start = Some(HostNanos(START + 5_000_000 * SECOND));
        operation.end = Some(HostNanos(START + 4_000_000 * SECOND));
        row.faults.push(FaultCode::T02);
    }
    let file = Scratch::new("steps.jsonl", &lines(true, &observations, &rows));
    let of = diagnosed(&["--last", "10s"], &file.0);
    assert_eq!(
        of_part(&of),
        [50 * SECOND, 60 * SECOND, 60 * SECOND, 100, 500]
    );
    assert_eq!(of["time_faults"], serde_json::json!({"T02": 3}));
}

/// Requests that reach out of a part are no whole units, and are not compared as if they were.
#[test]
fn a_request_that_a_part_cuts_is_no_unit() {
    let (observations, rows) = minute();
    let file = Scratch::new("units.jsonl", &lines(true, &observations, &rows));
    let compared = |from: &str, to: &str| {
        let ran = run(lineage()
            .args(["compare", "--json", "--from", from, "--to", to])
            .args([&file.0, &file.0]));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        ran.objects().remove(0)
    };
    let schema: Value =
        serde_json::from_str(&run(lineage().args(["schema", "compare"])).out).expect("JSON");
    // From just behind the declaration of the request at 20 s, whose kernel ends later.
    let of = compared("20s1ms", "30s");
    assert_eq!(differences(&schema, &of), [""; 0]);
    assert_eq!(undocumented(&schema, &of), [""; 0]);
    for side in ["before", "after"] {
        assert_eq!(of[side]["part"]["rows"], 100, "{of}");
        assert_eq!(of[side]["units"], 99, "{of}");
        assert_eq!(of[side]["rows_left_out"], 1, "{of}");
    }
    assert_eq!(of["whole"]["before_ns"], of["whole"]["after_ns"]);
}
