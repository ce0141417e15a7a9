//! Tables and objects of ledgers: what was examined, and each fault with its evidence.

mod common;

use common::recording::{Launch, Recording};
use common::{Scratch, faulty, ledger, lineage, on, run, sound};
use lineage_core::id::HostNanos;
use lineage_core::observation::{DeviceSession, Event};

#[test]
fn a_sound_ledger_is_told_in_a_few_lines() {
    let file = Scratch::new("sound.jsonl", &sound());
    let ran = on(&["validate"], &file.0);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for part in [
        "recording    llm, process 00000000-0000-0000-0000-000000000007, written by lineage-core",
        "\n  calls        3\n",
        "\n  joined       3  3 kernels\n",
        "\n  bound        3  3 by two sources\n",
        "\n  lost         0\n",
        "no fault: the records agree with one another; only truth can tell whether they are right",
    ] {
        assert!(ran.out.contains(part), "{part:?} is not in:\n{}", ran.out);
    }
    assert!(!ran.out.contains("note"), "{}", ran.out);
}

#[test]
fn a_faulty_ledger_says_what_where_and_what_to_do() {
    let file = Scratch::new("faulty.jsonl", &faulty());
    let ran = on(&["validate"], &file.0);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    for part in [
        "  L01      13  launch-without-epoch: a call had no epoch",
        "  L03       1  call-without-operation: ",
        "  L01 call 4 (cuLaunchKernel) on thread 10: a launch on a thread that uses lineage belongs",
        "do next      carry the epoch to this thread",
        // All are 14: five of 13 are listed, and one of one.
        "and 8 more findings: see them with `--list 14`",
        "14 faults; `lineage explain L01` says",
    ] {
        assert!(ran.out.contains(part), "{part:?} is not in:\n{}", ran.out);
    }
}

#[test]
fn json_has_every_count_by_its_name() {
    let faulty = Scratch::new("json-faulty.jsonl", &faulty());
    let sound = Scratch::new("json-sound.jsonl", &sound());
    let ran = run(lineage()
        .args(["validate", "--json", "--list", "1"])
        .args([&faulty.0, &sound.0]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let objects = ran.objects();
    assert_eq!(objects.len(), 2);
    let first = &objects[0];
    assert_eq!(first["schema"], 1);
    assert_eq!(first["file"], faulty.0.display().to_string());
    assert_eq!(first["format"], "ledger");
    assert_eq!(first["sound"], false);
    assert_eq!(first["ledger"]["complete"], true);
    let summary = &first["summary"];
    for (field, count) in [
        ("api_calls", 16),
        ("calls", 16),
        ("kernels", 15),
        ("memcpys", 0),
        ("memsets", 0),
        ("joined_kernels", 15),
        ("activity_without_launch", 0),
        ("launch_without_activity", 1),
        ("before_recording", 0),
        ("after_recording", 0),
        ("bound", 3),
        ("lost", 14),
        ("wrong", 0),
        ("unattributed", 0),
        ("pending", 0),
    ] {
        assert_eq!(summary[field], count, "{field}");
    }
    assert_eq!(first["faults"], serde_json::json!({"L01": 13, "L03": 1}));
    assert_eq!(first["findings"].as_array().map(Vec::len), Some(2));
    assert_eq!(first["findings_not_listed"], 12);
    let finding = &first["findings"][0];
    assert_eq!(finding["code"], "L01");
    assert_eq!(finding["name"], "launch-without-epoch");
    assert_eq!(finding["at_ns"], 11_995);
    assert_eq!(
        finding["about"],
        serde_json::json!({"kind": "call", "session": 1, "correlation": 4, "api": "cuLaunchKernel", "tid": 10})
    );
    assert_eq!(objects[1]["sound"], true);
    assert_eq!(objects[1]["faults"], serde_json::json!({}));
}

#[test]
fn a_recording_in_which_nothing_was_joined_says_so_and_why() {
    let mut blind = Recording::default();
    blind.saw(DeviceSession::Absent {
        why: "libcupti was not found\u{1b}[31m".into(),
        at: HostNanos(10),
    });
    blind.declare(1, 10, 100);
    let blind = ledger(&blind);

    // Its calls came, and none of its operations before it was cut.
    let pending = ledger(&Recording::sound().without(|event| matches!(event, Event::Operation(_))));
    let mut cut: Vec<&[u8]> = pending.split_inclusive(|&byte| byte == b'\n').collect();
    cut.pop();
    let cut = cut.concat();

    let mut undeclared = Recording::new();
    undeclared.launch(&Launch::of_none(77, 1, 1_000));
    let undeclared = ledger(&undeclared.ended());

    for (name, bytes, why) in [
        ("blind", blind, "no device evidence: libcupti was not found"),
        (
            "pending",
            cut,
            "the file is not complete: 3 calls and operations undecided",
        ),
        (
            "undeclared",
            undeclared,
            "no epoch was ever declared: is `lineage.layer()` installed",
        ),
    ] {
        let file = Scratch::new(name, &bytes);
        let ran = on(&["validate"], &file.0);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
        let out = ran.words();
        assert!(out.contains("no operation was joined to an epoch"), "{out}");
        assert!(out.contains(why), "{why:?} is not in {out}");
        assert!(!out.contains("the records agree"), "{out}");
        assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);

        let required = on(&["validate", "--require-joins", "--json"], &file.0);
        assert_eq!(required.code, Some(1), "{name}");
        let object = required.objects().remove(0);
        assert_eq!(
            (&object["sound"], &object["operations_with_epoch"]),
            (&true.into(), &0.into())
        );
        let because = object["nothing_joined_because"]
            .as_str()
            .expect("it says why");
        assert!(because.contains(why), "{because}");
    }

    let file = Scratch::new("required.jsonl", &sound());
    let ran = on(&["validate", "--require-joins"], &file.0);
    assert_eq!(ran.code, Some(0), "{}", ran.out);
}
