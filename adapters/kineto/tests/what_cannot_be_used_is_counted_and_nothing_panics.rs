//! Hostile and damaged events: a counted skip each, and the rest of the file is read all the same.

mod traces;

use lineage_core::id::{CorrelationId, HostNanos};
use lineage_import::{Recording, Skip};

/// A sound kernel behind what is tried, with id 99: it must always be there.
const LAST: &str = r#"{"ph": "X", "cat": "kernel", "name": "last", "pid": 0, "tid": 7, "ts": 900,
    "dur": 1, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 99}}"#;

fn beside_a_sound_event(event: &str) -> Recording {
    let recording = traces::sound(traces::trace("", &[event, LAST]));
    let last = traces::operations(&recording).pop();
    assert_eq!(
        last.and_then(|last| last.name).as_deref(),
        Some("last"),
        "{event:.200}"
    );
    recording
}

fn kernel(ts: &str, dur: &str, correlation: &str) -> String {
    format!(
        r#"{{"ph": "X", "cat": "kernel", "name": "tried", "pid": 0, "tid": 7, "ts": {ts},
        "dur": {dur}, "args": {{"device": 0, "context": 1, "stream": 7, "correlation": {correlation}}}}}"#
    )
}

#[test]
fn an_id_that_cannot_be_used_loses_its_record() {
    for (correlation, why) in [
        ("4294967296", Skip::IdTooLarge),
        ("9223372036854775808", Skip::IdTooLarge),
        ("18446744073709551615", Skip::IdTooLarge),
        ("18446744073709551616", Skip::IdTooLarge),
        (
            "99999999999999999999999999999999999999999999999999",
            Skip::IdTooLarge,
        ),
        ("1e300", Skip::IdTooLarge),
        ("-7", Skip::BadNumber),
        ("NaN", Skip::BadNumber),
        ("-Infinity", Skip::BadNumber),
        ("1.5", Skip::BadNumber),
        ("\"seven\"", Skip::WrongType),
        ("[7]", Skip::WrongType),
        ("{\"a\": 7}", Skip::WrongType),
        ("true", Skip::WrongType),
    ] {
        let recording = beside_a_sound_event(&kernel("5", "1", correlation));
        assert_eq!(traces::skipped(&recording), [(why, 1)], "{correlation}");
        assert_eq!(traces::counts(&recording), [0, 1, 0, 0], "{correlation}");
    }
}

#[test]
fn an_id_in_any_notation_is_the_number_it_says() {
    for (correlation, id) in [
        ("7", 7),
        ("\"7\"", 7),
        ("7.0", 7),
        ("0.7e1", 7),
        ("4294967295", u32::MAX),
        ("-1", 0),
        ("null", 0),
    ] {
        let recording = beside_a_sound_event(&kernel("5", "1", correlation));
        let tried = traces::operations(&recording);
        let tried = tried
            .iter()
            .find(|one| one.name.as_deref() == Some("tried"));
        let tried = tried.map(|tried| tried.correlation);
        if id == u32::MAX {
            // It sorts behind the last one, which is looked for there.
            continue;
        }
        assert_eq!(tried, Some(CorrelationId(id)), "{correlation}");
        assert_eq!(traces::skipped(&recording), [], "{correlation}");
    }
}

#[test]
fn a_time_that_cannot_be_used_leaves_the_record_without_it() {
    for (ts, dur, start, end, fields) in [
        ("5", "1", Some(5_000), Some(6_000), 0),
        ("\"5.001\"", "\"0.002\"", Some(5_001), Some(5_003), 0),
        ("5", "null", Some(5_000), None, 0),
        ("null", "1", None, None, 0),
        ("5", "NaN", Some(5_000), None, 1),
        ("NaN", "1", None, None, 1),
        ("-5", "1", None, None, 2),
        ("5", "-1", Some(5_000), Some(4_000), 0),
        ("5", "-6", Some(5_000), None, 1),
        ("5", "1e30", Some(5_000), None, 1),
        ("1e400", "1", None, None, 1),
        ("[5]", "1", None, None, 1),
        (
            "18446744073709551.615",
            "0",
            Some(u64::MAX),
            Some(u64::MAX),
            0,
        ),
        ("18446744073709551.616", "0", None, None, 2),
    ] {
        let recording = beside_a_sound_event(&kernel(ts, dur, "7"));
        let tried = traces::operations(&recording).swap_remove(0);
        let what = format!("ts {ts}, dur {dur}");
        assert_eq!(tried.start, start.map(HostNanos), "{what}");
        assert_eq!(tried.end, end.map(HostNanos), "{what}");
        let expected: &[_] = if fields == 0 {
            &[]
        } else {
            &[(Skip::Field, fields)]
        };
        assert_eq!(traces::skipped(&recording), expected, "{what}");
    }
}

#[test]
fn a_field_that_cannot_be_used_is_left_out_and_counted() {
    let event = r#"{"ph": "X", "cat": "kernel", "name": "tried", "pid": "GPU", "tid": "stream seven",
        "ts": 5, "dur": 1, "args": {"context": 4294967296, "correlation": 7, "bytes": -3,
        "grid": [1, "2", {"z": 3}], "block": "128", "graph node id": 1.5, "graph id": 0}}"#;
    let recording = beside_a_sound_event(event);
    let tried = traces::operations(&recording).swap_remove(0);
    // No device, stream or context, whose place says so; 1 and 2 of the grid; nothing else.
    assert_eq!(
        (tried.device, tried.context, tried.stream),
        (0, 0, u32::MAX)
    );
    assert_eq!((tried.grid, tried.block), ([1, 2, 0], [0; 3]));
    assert_eq!(
        (tried.bytes, tried.graph_node, tried.graph),
        (0, None, None)
    );
    // Device, stream, context, bytes, the grid's third, the block, the node.
    assert_eq!(traces::skipped(&recording), [(Skip::Field, 7)]);
}

#[test]
fn a_queued_time_is_counted_and_not_used() {
    let queued = |time: &str| {
        kernel("5", "1", "7").replace(r#""device""#, &format!(r#""queued": {time}, "device""#))
    };
    for (time, times) in [
        ("0", None),
        ("1606910596350464", Some(&1)),
        ("NaN", Some(&1)),
    ] {
        let recording = beside_a_sound_event(&queued(time));
        let others = &recording.holdings().others;
        assert_eq!(others.get("queued times (not used)"), times, "{time}");
        assert_eq!(traces::operations(&recording).swap_remove(0).queued, None);
    }
}

#[test]
fn sizes_may_be_the_text_of_a_list() {
    let event = r#"{"ph": "X", "cat": "kernel", "name": "tried", "ts": 5, "args": {"device": 0,
        "stream": 0, "correlation": 7, "grid": "[4, 5, 6]", "block": [32]}}"#;
    let tried = traces::operations(&beside_a_sound_event(event)).swap_remove(0);
    assert_eq!((tried.grid, tried.block), ([4, 5, 6], [32, 0, 0]));
}

#[test]
fn elements_that_are_no_events_are_counted() {
    for (element, why) in [
        ("7", Skip::WrongType),
        ("null", Skip::WrongType),
        ("\"text } with ] brackets\"", Skip::WrongType),
        ("[{\"ph\": \"X\"}]", Skip::WrongType),
        ("{\"ph\" \"X\"}", Skip::Malformed),
        ("{\"ph\": \"X\", \"cat\": \"kernel\", }", Skip::Malformed),
        (
            "{\"ph\": \"X\", \"cat\": \"kernel\", \"args\": {\"a\": }}",
            Skip::Malformed,
        ),
        (
            "{\"ph\": \"X\", \"cat\": \"kernel\", \"args\": {'a': 1}}",
            Skip::Malformed,
        ),
    ] {
        let recording = beside_a_sound_event(element);
        assert_eq!(traces::skipped(&recording), [(why, 1)], "{element}");
        assert_eq!(traces::counts(&recording), [0, 1, 0, 0], "{element}");
    }
    let recording = beside_a_sound_event("{}");
    assert_eq!(traces::skipped(&recording), []);
}

#[test]
fn members_of_other_types_than_expected_are_passed_over() {
    let event = r#"{"ph": 7, "cat": ["kernel"], "name": {"a": 1}, "args": [1, 2], "ts": {}}"#;
    let recording = beside_a_sound_event(event);
    assert_eq!(traces::counts(&recording), [0, 1, 0, 0]);
    assert_eq!(recording.holdings().others["without a category"], 1);
    let event =
        r#"{"ph": "X", "cat": "kernel", "name": 5, "args": "none", "ts": 1, "pid": 1, "tid": 2}"#;
    let recording = beside_a_sound_event(event);
    assert_eq!(traces::counts(&recording), [0, 2, 0, 0]);
    let tried = traces::operations(&recording).swap_remove(0);
    assert_eq!((tried.name, tried.correlation), (None, CorrelationId(0)));
}

#[test]
fn deep_nesting_is_counted_and_costs_no_stack() {
    let nested = |depth: usize| {
        // The event and its args are two levels.
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(
            r#"{{"ph": "X", "cat": "kernel", "name": "tried", "ts": 5,
            "args": {{"correlation": 7, "x": {open}{close}}}}}"#
        )
    };
    for (depth, kernels) in [(128, 2), (129, 1), (1_000_000, 1)] {
        let recording = beside_a_sound_event(&nested(depth));
        assert_eq!(traces::counts(&recording), [0, kernels, 0, 0], "{depth}");
        let expected: &[_] = if kernels == 2 {
            &[]
        } else {
            &[(Skip::TooDeep, 1)]
        };
        assert_eq!(traces::skipped(&recording), expected, "{depth}");
    }
    // One that needs no join is counted as what it is only if it is sound.
    let deep = nested(500).replace("kernel", "cpu_op");
    assert_eq!(
        traces::skipped(&beside_a_sound_event(&deep)),
        [(Skip::TooDeep, 1)]
    );
}

#[test]
fn a_long_event_is_counted_and_not_held() {
    let long = |bytes: usize| {
        let event =
            r#"{"ph": "X", "cat": "kernel", "ts": 5, "args": {"correlation": 7}, "name": ""}"#;
        event.replace("\"\"", &format!("\"{}\"", "k".repeat(bytes - event.len())))
    };
    let limit = 16 << 20;
    let recording = beside_a_sound_event(&long(limit));
    assert_eq!(traces::counts(&recording), [0, 2, 0, 0]);
    // A name of this length is cut.
    assert_eq!(traces::skipped(&recording), [(Skip::NameNotKept, 1)]);
    for bytes in [limit + 1, limit + 300_000, 3 * limit] {
        let recording = beside_a_sound_event(&long(bytes));
        assert_eq!(traces::counts(&recording), [0, 1, 0, 0], "{bytes}");
        assert_eq!(traces::skipped(&recording), [(Skip::TooLong, 1)], "{bytes}");
    }
}

#[test]
fn names_of_any_bytes_are_kept_as_text() {
    let mut text = traces::trace("", &[&kernel("5", "1", "7"), LAST]).into_bytes();
    let at = text
        .windows(5)
        .position(|bytes| bytes == b"tried")
        .expect("the name");
    text[at..at + 5].copy_from_slice(b"\xff\x00\n\xc3\x1b");
    let recording = traces::sound(text);
    let tried = traces::operations(&recording).swap_remove(0);
    assert_eq!(tried.name.as_deref(), Some("\u{fffd}\0\n\u{fffd}\u{1b}"));
}

#[test]
fn other_members_of_the_trace_may_be_anything() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let long = "x".repeat(2 << 20);
    let members = format!(
        r#""deviceProperties": 7, "distributedInfo": {{"rank": "none"}}, "schemaVersion": {{}},
        "baseTimeNanoseconds": "soon", "INFO": {deep}, "metadata": "{long}", "": null,"#
    );
    let recording = traces::sound(traces::trace(&members, &[LAST]));
    assert_eq!(traces::counts(&recording), [0, 1, 0, 0]);
    assert_eq!(recording.holdings().processes[0].description.rank, None);
    let unread = [
        "deviceProperties",
        "schemaVersion",
        "baseTimeNanoseconds",
        "INFO",
        "metadata",
    ];
    let expected = unread.map(|key| format!("the member `{key}` of the trace could not be read"));
    assert_eq!(recording.holdings().notes, expected);
}

#[test]
fn several_processes_in_one_file_are_told_of() {
    let call = |pid: u32| {
        format!(
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {pid},
            "tid": 1, "ts": 5, "dur": 1, "args": {{"correlation": {pid}}}}}"#
        )
    };
    let one = traces::sound(traces::trace("", &[&call(8), &call(8)]));
    assert_eq!(one.holdings().notes, [""; 0]);
    let two = traces::sound(traces::trace("", &[&call(8), &call(9), &call(9)]));
    assert_eq!(two.holdings().notes.len(), 1);
    assert!(two.holdings().notes[0].contains("several processes"));
    assert_eq!(two.holdings().processes[0].description.pid, Some(9));
}
