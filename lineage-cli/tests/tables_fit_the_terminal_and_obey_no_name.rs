//! No line is wider than the terminal, colours are used only where they are wanted, and nothing in a
//! file reaches the terminal as more than text.

mod common;

use common::recording::{Launch, Recording, epoch};
use common::{Ran, Scratch, faulty, kineto, ledger, lineage, on, run};

/// Columns of the widest line that could have been broken: one of a single word cannot.
fn widest(ran: &Ran) -> usize {
    let lines = ran
        .out
        .lines()
        .filter(|line| line.split_whitespace().count() > 1);
    lines.map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let faulty = Scratch::new("narrow.jsonl", &faulty());
    let files = [
        faulty.0.clone(),
        kineto("trace_compare__test__test.json.gz"),
        kineto("leimao_manual_capture.json.gz"),
    ];
    for columns in [60, 80, 100, 120] {
        for command in ["validate", "show"] {
            let ran = run(lineage()
                .env("COLUMNS", columns.to_string())
                .arg(command)
                .args(&files));
            // The path in its heading is one word.
            let widest = widest(&ran);
            assert!(
                widest <= columns,
                "{command} at {columns}: {widest}\n{}",
                ran.out
            );
        }
        for code in ["L01", "W02", "T03"] {
            let ran = run(lineage()
                .env("COLUMNS", columns.to_string())
                .args(["explain", code]));
            let prose = ran.out.lines().filter(|line| !line.starts_with("    "));
            let widest = prose.map(|line| line.chars().count()).max();
            assert!(
                widest.is_some_and(|widest| widest <= columns),
                "{}",
                ran.out
            );
        }
    }
}

/// Tables whose every column is wanted, and help that is laid out in columns.
#[test]
fn help_and_figures_fit_a_terminal_of_80_columns() {
    let (before, after) = ("param_dlrm_worker0.json.gz", "param_dlrm_worker1.json.gz");
    let folder = kineto(before);
    let folder = folder.parent().expect("it is in a folder");
    for (arguments, files) in [
        (&["--help"][..], &[][..]),
        (&["diagnose", "--help"], &[]),
        (&["diagnose", "-h"], &[]),
        (&["service"], &[before]),
        (&["compare"], &[before, after]),
    ] {
        let mut command = lineage();
        command.current_dir(folder).env("COLUMNS", "80");
        let ran = run(command.args(arguments).args(files));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        let widest = widest(&ran);
        assert!(widest <= 80, "{arguments:?}: {widest}\n{}", ran.out);
        // A line of the help's own columns that was broken begins with a word at its left.
        let broken = ran
            .out
            .lines()
            .find(|line| ["operation", "longest", "theirs", "busy", "why"].contains(&line.trim()));
        assert_eq!(broken, None, "{}", ran.out);
    }
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    let file = Scratch::new("colour.jsonl", &faulty());
    let validate = || {
        let mut command = lineage();
        command.arg("validate").arg(&file.0);
        command
    };
    let coloured = |command: &mut std::process::Command| run(command).out.contains('\u{1b}');
    assert!(!coloured(&mut validate()), "no colour in a pipe");
    assert!(coloured(validate().arg("--color=always")));
    assert!(coloured(validate().env("CLICOLOR_FORCE", "1")));
    assert!(!coloured(
        validate().env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")
    ));
    assert!(!coloured(
        validate().arg("--color=never").env("CLICOLOR_FORCE", "1")
    ));
    let doctor = || {
        let mut command = lineage();
        command.arg("doctor");
        command
    };
    assert!(!coloured(&mut doctor()));
    assert!(coloured(doctor().arg("--color=always")));
}

const HOSTILE: [char; 3] = ['\u{1b}', '\u{7}', '\u{202e}'];

#[test]
fn names_in_a_ledger_are_not_obeyed() {
    let mut recording = Recording::sound();
    let mut launch = Launch::of(epoch(1), 10, 4, 4_000);
    launch.external = Some(88);
    launch.operations[0].name = Some("\u{1b}]0;owned\u{7}\u{202e}".into());
    recording.launch(&launch);
    let file = Scratch::new("names.jsonl", &ledger(&recording.ended()));
    let ran = on(&["validate"], &file.0);
    assert_eq!(ran.code, Some(1));
    assert!(!ran.out.contains(HOSTILE), "{:?}", ran.out);
}

#[test]
fn names_in_other_tools_recordings_are_not_obeyed() {
    let trace = r#"{"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [
        {"ph": "X", "cat": "\u001b[31mcategory", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
        {"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {"name": "\u001b]0;owned\u0007"}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": 7, "ts": 10, "dur": 5, "args": {"correlation": 5}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": 7, "ts": 90, "dur": 5, "args": {"correlation": 9}},
        {"ph": "X", "cat": "kernel", "name": "\u001b[2J\u202ekernel", "pid": 0, "tid": 7, "ts": 20, "dur": 5, "args": {"correlation": 7, "device": 0, "stream": 7}},
        {"ph": "X", "cat": "kernel", "name": "plain", "pid": 0, "tid": 7, "ts": 95, "dur": 5, "args": {"correlation": 9, "device": 0, "stream": 7}}
    ]}"#;
    let file = Scratch::new("hostile.json", trace.as_bytes());
    for arguments in [
        vec!["validate"],
        vec!["validate", "--color=never"],
        vec!["show"],
    ] {
        let ran = on(&arguments, &file.0);
        assert_eq!(ran.err, "");
        assert!(!ran.out.contains(HOSTILE), "{:?}", ran.out);
        assert!(ran.out.contains("rank 3"), "{}", ran.out);
    }
    // The kernel of call 7 has no call, and its name is shown as what it is.
    let ran = on(&["validate"], &file.0);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(r"\u{1b}[2J\u{202e}kernel"), "{}", ran.out);
}

#[test]
fn a_files_own_name_is_not_obeyed() {
    let ran = run(lineage().args(["validate", "no\u{1b}[31m/such\u{7}"]));
    assert_eq!(ran.code, Some(2));
    assert!(!ran.err.contains(HOSTILE), "{:?}", ran.err);
}
