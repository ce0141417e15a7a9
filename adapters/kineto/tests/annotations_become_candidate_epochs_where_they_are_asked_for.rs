//! `record_function` ranges are counted, and become epochs only if the settings say so.

mod traces;

use lineage_core::id::HostNanos;
use lineage_import::{EpochsFrom, Skip};
use lineage_kineto::Settings;

fn import(events: &[&str], from: EpochsFrom) -> lineage_import::Recording {
    let settings = Settings::from(lineage_import::Settings::default().epochs_from(from));
    let text = traces::trace("", events);
    traces::import_with(text.as_bytes(), settings).expect("a sound trace")
}

const LAUNCH: &str = r#"{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
    "pid": 1, "tid": 2, "ts": 15, "dur": 1, "args": {"correlation": 4}}"#;

#[test]
fn an_annotation_is_a_scope_on_its_thread() {
    let step = r#"{"ph": "X", "cat": "user_annotation", "name": "forward", "pid": 1, "tid": 2,
        "ts": 10.5, "dur": 20, "args": {"External id": 1}}"#;
    let recording = import(&[step, LAUNCH], EpochsFrom::Annotations);
    let [scope] = &traces::scopes(&recording)[..] else {
        panic!("one scope")
    };
    assert_eq!(scope.thread.tid, 2);
    assert_eq!(
        (scope.entered, scope.exited),
        (HostNanos(10_500), HostNanos(30_500))
    );
    let process = &recording.holdings().processes[0];
    assert_eq!(
        (process.ranges, process.epochs, process.requests),
        (1, 1, 0)
    );

    let recording = import(&[step, LAUNCH], EpochsFrom::Nothing);
    assert_eq!(traces::scopes(&recording), []);
    assert_eq!(recording.holdings().processes[0].ranges, 1);
}

#[test]
fn a_request_id_may_stand_in_the_name_or_in_the_args() {
    let events = [
        r#"{"ph": "X", "cat": "user_annotation", "name": "decode request_id=a7", "pid": 1, "tid": 2,
        "ts": 10, "dur": 8}"#,
        r#"{"ph": "X", "cat": "user_annotation", "name": "decode", "pid": 1, "tid": 2,
        "ts": 20, "dur": 8, "args": {"request_id": "a7"}}"#,
        r#"{"ph": "X", "cat": "user_annotation", "name": "decode", "pid": 1, "tid": 2,
        "ts": 30, "dur": 8, "args": {"req_id": 12}}"#,
        r#"{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#6", "pid": 1, "tid": 2,
        "ts": 40, "dur": 8}"#,
        LAUNCH,
    ];
    let recording = import(&events, EpochsFrom::RequestIds);
    let process = &recording.holdings().processes[0];
    // Two requests: one of two ranges, one of one. The step is none.
    assert_eq!(
        (process.ranges, process.requests, process.epochs),
        (4, 3, 2)
    );
}

#[test]
fn a_range_may_begin_and_end_as_two_events() {
    let begin = |name: &str, ts: u32| {
        format!(
            r#"{{"ph": "B", "cat": "user_annotation", "name": "{name}", "pid": 1, "tid": 2, "ts": {ts}}}"#
        )
    };
    let end = |ts: u32| format!(r#"{{"ph": "E", "pid": 1, "tid": 2, "ts": {ts}}}"#);
    let other_thread = r#"{"ph": "E", "pid": 1, "tid": 3, "ts": 13}"#;
    let operator =
        r#"{"ph": "B", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 2, "ts": 12}"#;
    let events = [
        begin("outer", 10),
        begin("inner", 11),
        operator.to_owned(),
        other_thread.to_owned(),
        end(13),
        end(14),
        LAUNCH.to_owned(),
        end(20),
        begin("never ended", 21),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let recording = import(&events, EpochsFrom::Annotations);
    let mut times: Vec<_> = traces::scopes(&recording)
        .iter()
        .map(|scope| (scope.entered.0, scope.exited.0))
        .collect();
    times.sort_unstable();
    // The operator ended at 13, the inner at 14 and so before the only call, the outer at 20.
    assert_eq!(times, [(10_000, 20_000)]);
    let holdings = recording.holdings();
    assert_eq!(holdings.processes[0].ranges, 3);
    assert_eq!(holdings.others["cpu_op"], 1);
    // The end on another thread, and the range that never ended.
    assert_eq!(traces::skipped(&recording), [(Skip::UnclosedRange, 2)]);
}
