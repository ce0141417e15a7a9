//! 0 fine, 1 faults, 2 bad input or use; the worst of several files decides.

mod common;

use common::{Scratch, faulty, lineage, on, run, sound};

#[test]
fn a_sound_ledger_is_fine_and_a_faulty_one_is_not() {
    let sound = Scratch::new("code-sound.jsonl", &sound());
    let faulty = Scratch::new("code-faulty.jsonl", &faulty());
    assert_eq!(on(&["validate"], &sound.0).code, Some(0));
    assert_eq!(on(&["validate"], &faulty.0).code, Some(1));
    assert_eq!(
        run(lineage().arg("validate").args([&faulty.0, &sound.0])).code,
        Some(1)
    );
    assert_eq!(
        on(&["show"], &faulty.0).code,
        Some(0),
        "to show is not to judge"
    );
}

#[test]
fn one_bad_file_does_not_hide_another_ones_result() {
    let file = Scratch::new("code-beside.jsonl", &sound());
    let ran = run(lineage()
        .args(["validate", "no/such/file.jsonl"])
        .arg(&file.0));
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("no fault"), "{}", ran.out);
    assert!(
        ran.words().ends_with("0 wrong, 1 file could not be read"),
        "{}",
        ran.out
    );
}

#[test]
fn wrong_use_is_bad_input() {
    for arguments in [
        vec![],
        vec!["validate"],
        vec!["show"],
        vec!["explain", "X99"],
        vec!["schema", "nothing"],
        vec!["completions", "dos"],
        vec!["man", "nothing"],
        vec!["validate", "--frobnicate", "x"],
        vec!["validate", "--epochs-from", "dreams", "x"],
        vec!["validate", "--epoch-name", "step", "x"],
        vec!["nonsense"],
    ] {
        let ran = run(lineage().args(&arguments));
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(!ran.err.is_empty());
    }
    let unknown = run(lineage().args(["explain", "X99"]));
    assert!(
        unknown.err.contains("`lineage explain` lists them"),
        "{}",
        unknown.err
    );
    assert_eq!(run(lineage().arg("--help")).code, Some(0));
    assert_eq!(run(lineage().arg("--version")).code, Some(0));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::Stdio;
    let file = Scratch::new("code-pipe.jsonl", &faulty());
    let mut child = lineage()
        .args(["validate", "--list", "100000"])
        .arg(&file.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_file_where_a_command_is_wanted_is_answered_with_the_command() {
    let file = Scratch::new("code-no-command.jsonl", &sound());
    let ran = run(lineage().arg(&file.0));
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    let said = format!("`lineage diagnose {}`", file.0.display());
    assert!(ran.err.contains(&said), "{}", ran.err);
    // What is neither is still clap's to answer.
    let ran = run(lineage().arg("no_such_command"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("unrecognized subcommand"), "{}", ran.err);
}
