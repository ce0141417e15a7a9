//! The helper for tests: what it says when a session is faulty, and when it could not tell.

mod recording;

use lineage_core::id::*;
use lineage_core::observation::*;
use lineage_core::{DeviceEvidence, Report};
use lineage_validator::{Accept, JoinFaults, assert_joins, check_joins, check_joins_with};
use recording::*;

/// A report of these observations, without rows of its own.
fn report(recording: &Recording) -> Report {
    let mut report = Report::empty(uuid::Uuid::nil());
    report.observations = recording.observations.clone();
    report.device = DeviceEvidence::Present {
        cupti_version: 28,
        external_correlation: Some(true),
    };
    report
}

#[track_caller]
fn refused(report: &Report) -> JoinFaults {
    check_joins(report).expect_err("it must not pass")
}

#[test]
fn a_sound_session_passes() {
    // While it runs, rows may be missing.
    let report = report(&Recording::sound());
    assert_joins(&report);
    assert_eq!(check_joins(&report).expect("sound").counts.bound, 3);
}

#[test]
fn a_session_that_was_not_observed_fails_and_says_why() {
    let mut blind = report(&Recording::sound());
    blind.device = DeviceEvidence::Absent {
        why: "libcupti was not found".into(),
    };
    let faults = refused(&blind);
    assert_eq!(faults.obstacles.len(), 1);
    let text = faults.to_string();
    assert!(
        text.starts_with("no device evidence: libcupti was not found"),
        "{text}"
    );
    assert!(text.contains("Accept::no_device_evidence"), "{text}");
    assert!(check_joins_with(&blind, &Accept::nothing().no_device_evidence()).is_ok());
}

#[test]
fn a_report_that_does_not_hold_everything_fails() {
    let mut partial = report(&Recording::sound());
    partial.not_kept = 17;
    let text = refused(&partial).to_string();
    assert!(text.starts_with("the report does not hold 17"), "{text}");
    assert!(text.contains("keep_in_memory"), "{text}");
    // What a cut recording lacks would show as faults: none is shown.
    let mut cut = report(&faulty());
    cut.not_kept = 17;
    assert_eq!(refused(&cut).to_string(), text);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(check_joins_with(&partial, &Accept::nothing().evicted_observations()).is_ok());
}

#[test]
fn a_report_of_nothing_fails() {
    let text = refused(&report(&Recording::default())).to_string();
    assert!(
        text.starts_with("the report holds no observations"),
        "{text}"
    );
}

#[test]
fn a_session_in_which_nothing_was_joined_fails() {
    let mut recording = Recording::new();
    recording.launch(&Launch::of_none(77, 1, 1_000));
    let undeclared = report(&recording);
    let text = refused(&undeclared).to_string();
    assert!(
        text.starts_with(
            "no epoch was ever declared: is `lineage.layer()` installed, or are the spans filtered out?"
        ),
        "{text}"
    );
    assert!(
        text.contains("1 call, 1 operation (1 kernel, 0 copies, 0 sets)"),
        "{text}"
    );
    assert!(check_joins_with(&undeclared, &Accept::nothing().nothing_joined()).is_ok());

    recording.declare(1, 10, 2_000);
    let unjoined = report(&recording);
    let text = refused(&unjoined).to_string();
    assert!(
        text.starts_with("no operation was joined to an epoch"),
        "{text}"
    );
    assert!(check_joins_with(&unjoined, &Accept::nothing().nothing_joined()).is_ok());
}

/// 13 launches without an epoch, on a thread that had opened one.
fn faulty() -> Recording {
    let mut recording = Recording::sound();
    recording.send(1, 1, 10, 200);
    recording.receive(1, 1, 10, 300);
    for number in 4..=16 {
        recording.launch(&Launch::of_none(
            10,
            number,
            10_000 + u64::from(number) * 500,
        ));
    }
    recording
}

#[test]
fn a_faulty_session_fails_with_the_calls_their_evidence_and_what_to_do() {
    let text = refused(&report(&faulty())).to_string();
    assert!(
        text.starts_with("13 faults in the session's launch joins\n"),
        "{text}"
    );
    assert_eq!(
        text.matches("L01 launch-without-epoch: call").count(),
        3,
        "{text}"
    );
    for part in [
        "L01 launch-without-epoch: call 4 (cuLaunchKernel) on thread 10",
        "a launch on a thread that uses lineage belongs to no epoch",
        "call        cuLaunchKernel on thread 10 \"engine\", +0.011945 ms … +0.012055 ms",
        "callback    no epoch, outside any launch boundary",
        "do next     carry the epoch to this thread",
        "opened      epoch 1.1 was opened on this thread and let go before this call: keep it and launch inside `epoch.launch(..)`",
        "and 10 more L01\n",
        "13  L01 launch-without-epoch",
        "only truth can tell whether they are right",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn no_code_crowds_out_another_and_one_fault_is_one_fault() {
    let mut recording = faulty();
    recording.launch(&Launch {
        external: Some(88),
        ..Launch::of(epoch(1), 10, 20, 30_000)
    });
    let text = refused(&report(&recording)).to_string();
    assert!(text.starts_with("14 faults in"), "{text}");
    assert!(text.contains("W05 foreign-external-id: call 20"), "{text}");

    let mut recording = Recording::sound();
    recording.launch(&Launch::of_none(10, 4, 4_000));
    let text = refused(&report(&recording)).to_string();
    assert!(
        text.starts_with("1 fault in the session's launch joins\n"),
        "{text}"
    );
    assert!(!text.contains("was opened on this thread"), "{text}");
    assert!(!text.contains("more L01"), "{text}");
}

#[test]
fn the_chain_of_epochs_above_a_faulty_call_is_shown() {
    let mut recording = Recording::sound();
    recording.send(1, 1, 10, 150);
    recording.receive(1, 1, 10, 160);
    recording.declare(2, 10, 200);
    recording.link(2, LinkKind::Merge, 1, 201);
    recording.launch(&Launch {
        task: Some(6),
        scope_task: Some(5),
        ..Launch::of(epoch(2), 10, 4, 4_000)
    });
    let text = refused(&report(&recording)).to_string();
    for part in [
        "its scope was entered by task 5, and the call was made by task 6",
        "epoch       2.1 \"generate\" declared at src/server.rs:41:9 on thread 10 \"engine\"",
        "serves      1.1 \"generate\" declared at src/server.rs:41:9",
        "sent        on thread 10 \"engine\" at src/queue.rs:7:1",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
#[should_panic(expected = "L03 call-without-operation: call 2 (cuLaunchKernel) on thread 10")]
fn the_assertion_panics_with_that_text() {
    let recording = Recording::sound().ended().without(
        |event| matches!(event, Event::Operation(of) if of.correlation == CorrelationId(2)),
    );
    assert_joins(&report(&recording));
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let mut recording = Recording::sound();
    let mut launch = Launch::of_none(10, 4, 4_000);
    launch.operations[0].name = Some("\u{1b}]0;owned\u{7}\u{202e}".into());
    recording.launch(&launch);
    recording.saw(Named {
        reason: DetachedReason(1),
        name: "\u{1b}[31m".into(),
    });
    let text = refused(&report(&recording)).to_string();
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    assert!(text.contains("\\u{1b}]0;owned"), "{text}");
}
