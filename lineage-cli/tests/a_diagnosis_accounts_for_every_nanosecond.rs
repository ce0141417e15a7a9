//! `lineage diagnose` on every recording there is: each operation has its time told from the first
//! stage to its end, the sums agree, and what is claimed is apart from what is not known.

mod common;

use std::path::{Path, PathBuf};

use common::recording::{Launch, Recording};
use common::schema::{differences, undocumented};
use common::{Scratch, kineto, ledger, lineage, on, run, sound};
use lineage_core::id::HostNanos;
use lineage_core::observation::{
    Collected, Event, Mark, Marked, Scheduled, SchedulerSession, StreamDescribed, StreamKind,
    SwitchedOff,
};
use serde_json::Value;

fn number(of: &Value) -> u64 {
    of.as_u64().expect("a number")
}

/// Every recording: the small ones in the repository, and those of `LINEAGE_TRACES`.
fn recordings() -> Vec<PathBuf> {
    let small = kineto("leimao_manual_capture.json.gz");
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces");
    let large = std::env::var_os("LINEAGE_TRACES").map_or(beside, PathBuf::from);
    let mut out = Vec::new();
    for folder in [
        small.parent().expect("it is in a folder").to_owned(),
        large.join("nsys"),
        large.join("kineto"),
    ] {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
            let required = required.split(',').any(|part| part.trim() == "traces");
            assert!(!required, "{} is not there", folder.display());
            eprintln!("skipped: {} is not there", folder.display());
            continue;
        };
        out.extend(entries.map(|entry| entry.expect("readable").path()));
    }
    out.sort();
    // The large folder has the small ones, too.
    out.dedup_by_key(|path| path.file_name().map(ToOwned::to_owned));
    out
}

/// Holds one file's object against what is true of any.
fn account(object: &Value, schema: &Value) {
    let file = object["file"].as_str().expect("text");
    assert_eq!(differences(schema, object), [""; 0], "{file}");
    assert_eq!(undocumented(schema, object), [""; 0], "{file}");
    assert_eq!(number(&object["rows_not_exact"]), 0, "{file}");
    let verdicts = object["verdicts"].as_object().expect("an object");
    let sum: u64 = verdicts.values().map(|of| number(&of["ns"])).sum();
    assert_eq!(sum, number(&object["whole_ns"]), "{file}");
    let faults = object["time_faults"].as_object().expect("an object");
    let without: u64 = faults.values().map(number).sum();
    let rows = number(&object["rows_with_path"])
        + without
        + number(&object["rows_without_times"])
        + number(&object["calls_without_operation"]);
    assert_eq!(
        rows,
        number(&object["rows"]),
        "{file}: each row is counted once"
    );
    // Recordings of other tools do not say which calls they left out.
    if object["format"] != "ledger" {
        assert_eq!(number(&object["complete_readiness"]), 0, "{file}");
        for kind in [
            "device_wait",
            "longer_than_its_kind",
            "submitter_late",
            "host_work",
        ] {
            assert!(verdicts.get(kind).is_none(), "{file} claims {kind}");
        }
    }
    for life in object["slowest"].as_array().expect("a list") {
        let segments = life["segments"].as_array().expect("a list");
        let ends: Vec<(u64, u64)> = segments
            .iter()
            .map(|of| (number(&of["from_ns"]), number(&of["to_ns"])))
            .collect();
        assert!(ends.iter().all(|(from, to)| from < to), "{file}");
        assert!(ends.windows(2).all(|two| two[0].1 == two[1].0), "{file}");
        let whole = ends.last().map_or(0, |of| of.1) - ends.first().map_or(0, |of| of.0);
        assert_eq!(whole, number(&life["whole_ns"]), "{file}");
        for segment in segments {
            let open = segment["verdict"] == "unresolved";
            let settles = segment["would_settle"].as_array().expect("a list");
            assert_eq!(open, !settles.is_empty(), "{file}: {segment}");
        }
    }
}

#[test]
fn every_recording_is_accounted_for() {
    let schema: Value =
        serde_json::from_str(&run(lineage().args(["schema", "diagnose"])).out).expect("JSON");
    let files = recordings();
    assert!(files.len() >= 14, "{files:?}");
    let ran = run(lineage()
        .args(["diagnose", "--json", "--slowest", "3", "--partial"])
        .args(&files));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let objects = ran.objects();
    assert_eq!(objects.len(), files.len());
    for object in &objects {
        account(object, &schema);
    }
    let of = |name: &str| {
        let found = objects
            .iter()
            .find(|of| of["file"].as_str().is_some_and(|file| file.contains(name)));
        found.unwrap_or_else(|| panic!("{name} is there"))
    };
    // As counted by other code: 321 kernels, 34 copies and sets.
    assert_eq!(number(&of("leimao_manual_capture")["rows_with_path"]), 355);
    // 713 kernels, 4 copies, 1 set; inside of its one graph launch nothing is known to be ordered.
    let b300 = of("sglang_decode");
    assert!(b300["verdicts"].get("dependency_wait").is_none(), "{b300}");
    // A folder's object that cannot be read is an error, and documented.
    let refused = run(lineage()
        .args(["diagnose", "--json"])
        .arg(files[0].with_file_name("no")));
    assert_eq!(refused.code, Some(2));
    assert_eq!(differences(&schema, &refused.objects()[0]), [""; 0]);
}

/// An epoch that was ready at 200 and whose first call came at 1,000, its thread preempted from 300 to
/// 900: three launches by calls of their own, on a stream that nothing else is on.
fn preempted() -> Vec<u8> {
    let mut recording = Recording::sound();
    let at = HostNanos;
    let epoch = common::recording::epoch(1);
    let thread = common::recording::thread(10);
    recording.saw(Collected {
        session: 1,
        at: at(1),
        order_calls: true,
        latency: true,
        events: true,
        overheads: true,
        launch_attributes: true,
    });
    recording.saw(Marked {
        epoch,
        mark: Mark::Ready,
        thread,
        at: at(200),
    });
    recording.saw(SchedulerSession::Watched {
        tid: 10,
        at: at(1),
        running: Some(true),
    });
    for (ns, running) in [(300, false), (900, true)] {
        recording.saw(Scheduled {
            tid: 10,
            at: at(ns),
            cpu: Some(3),
            running,
            off: (!running).then_some(SwitchedOff::Preempted),
            state: None,
        });
    }
    let streams: Vec<(u32, u32)> = recording
        .observations
        .iter()
        .filter_map(|of| match &of.event {
            Event::Operation(of) => Some((of.context, of.stream)),
            _ => None,
        })
        .collect();
    for (context, stream) in streams {
        recording.saw(StreamDescribed {
            session: 1,
            device: 0,
            context,
            stream,
            kind: StreamKind::NonBlocking,
            made: Some(at(1)),
        });
    }
    recording.saw(SchedulerSession::Ended { at: at(50_000) });
    ledger(&recording.ended())
}

#[test]
fn a_preempted_thread_is_found_and_the_claim_says_what_would_falsify_it() {
    let file = Scratch::new("diagnose-preempted.jsonl", &preempted());
    let object = on(&["diagnose", "--json"], &file.0).objects().remove(0);
    let late = &object["verdicts"]["submitter_late"];
    assert_eq!(
        (number(&late["ns"]), number(&late["rows"])),
        (1_800, 3),
        "{object}"
    );
    let late = &object["verdicts"]["application_late"];
    // From the declaration at 100 to the mark at 200.
    assert_eq!(number(&late["ns"]), 300, "{object}");
    let ran = on(&["diagnose"], &file.0);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let words = ran.words();
    for said in [
        "submitter late: its thread was preempted",
        "os_scheduler",
        "would be falsified by: the thread running for this work in that window",
        "keep other work off the processor",
    ] {
        assert!(words.contains(said), "{said}: {}", ran.out);
    }
    // Without the switches nothing is claimed of the thread.
    let text = String::from_utf8(preempted()).expect("UTF-8");
    let left: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("\"scheduled\"") && !line.contains("scheduler_session"))
        .collect();
    let left = left[..left.len() - 1].join("\n") + "\n";
    let file = Scratch::new("diagnose-blind.jsonl", left.as_bytes());
    let object = on(&["diagnose", "--json"], &file.0).objects().remove(0);
    assert!(
        object["verdicts"].get("submitter_late").is_none(),
        "{object}"
    );
    assert!(
        object["would_settle"].get("scheduler evidence").is_some(),
        "{object}"
    );
}

#[test]
fn one_story_is_asked_for_by_epoch_request_or_kernel() {
    let file = Scratch::new("diagnose-sound.jsonl", &sound());
    let slowest = |arguments: &[&str]| {
        let mut all = vec!["diagnose", "--json", "--slowest", "9"];
        all.extend(arguments);
        let object = on(&all, &file.0).objects().remove(0);
        object["slowest"].as_array().expect("a list").len()
    };
    assert_eq!(slowest(&[]), 3);
    assert_eq!(slowest(&["--epoch", "1"]), 3);
    assert_eq!(slowest(&["--epoch", "1.1"]), 3);
    assert_eq!(slowest(&["--epoch", "1.2"]), 0);
    assert_eq!(slowest(&["--epoch", "2"]), 0);
    assert_eq!(slowest(&["--kernel", "no such kernel"]), 0);
    assert_eq!(slowest(&["--request", "no such request"]), 0);
    let none = on(&["diagnose", "--epoch", "2"], &file.0);
    assert!(
        none.words().contains("is one of those that were asked for"),
        "{}",
        none.out
    );
    let bad = on(&["diagnose", "--epoch", "one"], &file.0);
    assert_eq!(bad.code, Some(2));
}

#[test]
fn the_slowest_are_those_with_most_of_the_time_that_is_asked_for() {
    // One is called at 10,000, begins 5,000 later and runs for 100; the other is called at 30,000, begins
    // 1,000 later and runs for 3,000. Each is of an epoch of its own, declared 200 before.
    let mut recording = Recording::sound();
    for (number, called, name, start, end) in [
        (4, 10_000, "waits<int, float>", 15_000, 15_100),
        (5, 30_000, "runs<int, float>", 31_000, 34_000),
    ] {
        recording.declare(u64::from(number), 10, called - 200);
        let epoch = common::recording::epoch(number.into());
        let mut launch = Launch::of(epoch, 10, number, called);
        let operation = &mut launch.operations[0];
        operation.name = Some(name.into());
        (operation.start, operation.end) = (Some(HostNanos(start)), Some(HostNanos(end)));
        recording.launch(&launch);
    }
    let file = Scratch::new("diagnose-slowest.jsonl", &ledger(&recording.ended()));
    let first = |arguments: &[&str]| {
        let mut all = vec!["diagnose", "--json"];
        all.extend(arguments);
        let object = on(&all, &file.0).objects().remove(0);
        let operation = object["slowest"][0]["operation"].as_str();
        operation.unwrap_or_default().to_owned()
    };
    assert!(first(&["--by", "running"]).starts_with("runs"));
    assert!(first(&["--by", "waiting"]).starts_with("waits"));
    // As a name is shown where it is cut.
    assert!(first(&["--kernel", "runs<int, fl…"]).starts_with("runs"));
    assert_eq!(first(&["--kernel", "runs…waits"]), "");
}

#[test]
fn a_diagnosis_fits_the_terminal() {
    let files = [
        kineto("leimao_manual_capture.json.gz"),
        kineto("nv_moe_03.json.gz"),
    ];
    for columns in [60, 100] {
        let ran = run(lineage()
            .env("COLUMNS", columns.to_string())
            .args(["diagnose", "--slowest", "2"])
            .args(&files));
        assert_eq!(ran.code, Some(0));
        let lines = ran.out.lines();
        let broken = lines.filter(|line| line.split_whitespace().count() > 1);
        let widest = broken.map(|line| line.chars().count()).max();
        assert!(
            widest.is_some_and(|of| of <= columns),
            "{columns}: {widest:?}\n{}",
            ran.out
        );
    }
}

#[test]
fn each_verdict_has_a_page() {
    let list = run(lineage().arg("explain"));
    for &verdict in lineage_core::verdict::VerdictKind::ALL {
        assert!(list.out.contains(verdict.name()), "{verdict}");
        let page = run(lineage().args(["explain", verdict.name()]));
        assert_eq!((page.code, page.err.as_str()), (Some(0), ""));
        assert!(page.out.starts_with(verdict.name()), "{}", page.out);
        assert!(page.out.contains("What would falsify it"), "{}", page.out);
    }
    let unknown = run(lineage().args(["explain", "bad-luck"]));
    assert_eq!(unknown.code, Some(2));
}

/// What only a session of lineage's own collects is not recommended to users of other recorders without
/// a word.
#[test]
fn what_another_recorder_cannot_give_is_not_asked_of_it() {
    let theirs = kineto("leimao_manual_capture.json.gz");
    let ran = run(lineage().env("COLUMNS", "200").arg("diagnose").arg(theirs));
    assert!(ran.out.contains("tier explain"), "{}", ran.out);
    let said = "no setting of this recorder gives it";
    assert!(ran.out.contains(said), "{}", ran.out);
}
