//! Processes, devices, streams, counts, and each kind of evidence that is not there with what that
//! leaves open.

mod common;

use common::recording::Recording;
use common::{Scratch, kineto, large_trace, ledger, on, sound};
use lineage_core::id::HostNanos;
use lineage_core::observation::SchedulerSession;
use serde_json::Value;

fn evidence<'o>(object: &'o Value, name: &str) -> &'o Value {
    let all = object["evidence"].as_array().expect("a list");
    let found = all.iter().find(|of| of["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {object}"))
}

#[test]
fn a_ledger_has_epochs_and_lacks_the_scheduler() {
    let file = Scratch::new("show.jsonl", &sound());
    let object = on(&["show", "--json"], &file.0).objects().remove(0);
    assert_eq!(object["format"], "ledger");
    let process = &object["processes"][0];
    assert_eq!(
        (&process["name"], &process["kernels"]),
        (&"llm".into(), &3.into())
    );
    assert_eq!(process["streams"][0]["operations"], 3);
    for (name, presence, count) in [
        ("epochs", "here", 1),
        ("calls", "here", 3),
        ("operations", "here", 3),
        ("call results", "here", 3),
        ("scheduler", "missing", 0),
    ] {
        let of = evidence(&object, name);
        assert_eq!(
            (&of["presence"], &of["count"]),
            (&presence.into(), &count.into()),
            "{name}"
        );
        assert_eq!(of["leaves_open"].is_null(), presence == "here", "{name}");
    }
    let ran = on(&["show"], &file.0);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(
        ran.words().contains(
            "missing scheduler whether a thread that submitted late was off its processor"
        ),
        "{}",
        ran.out
    );
}

#[test]
fn why_a_threads_switches_are_not_known_is_said() {
    let mut recording = Recording::sound();
    for tid in [10, 11] {
        recording.saw(SchedulerSession::Unwatched {
            tid,
            why: "perf_event_paranoid is 4\u{1b}[2J".into(),
            at: HostNanos(20),
        });
    }
    let file = Scratch::new("show-unwatched.jsonl", &ledger(&recording.ended()));
    let ran = on(&["show"], &file.0);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let said = "of 2 threads whether they were off their processors is not known: perf_event_paranoid is 4";
    assert!(ran.words().contains(said), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);
    let object = on(&["show", "--json"], &file.0).objects().remove(0);
    let notes = object["notes"].to_string();
    assert!(notes.contains("of 2 threads"), "{notes}");
}

#[test]
fn a_kineto_trace_says_whose_it_is_and_cannot_tell_failed_launches() {
    let file = kineto("leimao_manual_capture.json.gz");
    let object = on(&["show", "--json"], &file).objects().remove(0);
    assert_eq!(
        (&object["format"], &object["recorder"]),
        (&"kineto".into(), &"Kineto".into())
    );
    assert_eq!(object["devices"][0]["name"], "NVIDIA GeForce RTX 5080");
    let process = &object["processes"][0];
    assert_eq!(
        (&process["api_calls"], &process["kernels"]),
        (&57.into(), &321.into())
    );
    assert_eq!(evidence(&object, "call results")["presence"], "missing");
    let ran = on(&["show"], &file);
    let said = "call results which launches failed: without it those cannot be told from lost ones";
    assert!(ran.words().contains(said), "{}", ran.out);
}

#[test]
fn an_export_of_nsight_systems_has_results_and_its_own_warnings() {
    let Some(file) = large_trace("nsys/Donovoi__ripgrep__report1.sqlite") else {
        return;
    };
    let object = on(&["show", "--json"], &file).objects().remove(0);
    assert_eq!(object["version"], "schema 3.20.3");
    assert_eq!(evidence(&object, "call results")["presence"], "here");
    assert_eq!(evidence(&object, "operations")["presence"], "missing");
    assert_eq!(evidence(&object, "scheduler")["presence"], "here");
    let notes = object["notes"].to_string();
    assert!(notes.contains("Unified Memory cannot be traced"), "{notes}");
}
