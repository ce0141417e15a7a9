//! The command as it is used: real processes, their output and their exit codes.

// The same hand-made recordings as the validator's own tests.
#[path = "../../validator/tests/recording/mod.rs"]
mod recording;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::ledger::Writer;
use lineage_core::observation::{DeviceSession, Event};
use lineage_core::source::{SessionInfo, Sink};
use recording::{Launch, Recording, epoch};

fn lineage() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineage"));
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(command: &mut Command) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the command runs");
    Ran {
        code: status.code(),
        out: String::from_utf8(stdout).expect("UTF-8"),
        err: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// A file of this test's own, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file = folder.join(format!("{}-{name}", std::process::id()));
        std::fs::write(&file, bytes).expect("the target folder can be written");
        Self(file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn ledger(recording: &Recording) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file);
    let session = SessionInfo::new(uuid::Uuid::from_u128(7), "llm", HostNanos(5));
    writer.begin(&session).expect("in memory");
    writer
        .observations(&recording.observations)
        .expect("in memory");
    writer.finish().expect("in memory");
    drop(writer);
    file
}

/// 13 launches without an epoch, and one call without its operation.
fn faulty() -> Recording {
    let mut recording = Recording::sound();
    for number in 4..17 {
        recording.launch(&Launch::of_none(
            10,
            number,
            10_000 + u64::from(number) * 500,
        ));
    }
    recording.ended().without(
        |event| matches!(event, Event::Operation(of) if of.correlation == CorrelationId(2)),
    )
}

#[test]
fn a_sound_ledger_is_fine() {
    let file = Scratch::new("sound.jsonl", &ledger(&Recording::sound().ended()));
    let ran = run(lineage().arg("validate").arg(&file.0));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for part in [
        "recording     llm, process 00000000-0000-0000-0000-000000000007, written by lineage-core",
        "calls                   3\n",
        "joined                  3  kernels 3\n",
        "bound                   3  by two sources 3\n",
        "lost                    0\n",
        "no fault: the records agree with one another; only truth can tell whether they are right",
    ] {
        assert!(ran.out.contains(part), "{part:?} is not in:\n{}", ran.out);
    }
    assert!(!ran.out.contains('\u{1b}'), "no colour in a pipe");
    assert!(!ran.out.contains("note"), "{}", ran.out);
}

#[test]
fn a_faulty_ledger_says_what_where_and_what_to_do() {
    let file = Scratch::new("faulty.jsonl", &ledger(&faulty()));
    let ran = run(lineage().arg("validate").arg(&file.0));
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    for part in [
        "  L01            13  launch-without-epoch: a call had no epoch",
        "  L03             1  call-without-operation: ",
        "  L01 call 4 (cuLaunchKernel) on thread 10: a launch on a thread that uses lineage belongs",
        "do next      carry the epoch to this thread",
        "and 8 more findings: see them with `--list 8`",
        "14 faults; `lineage explain L01` says",
    ] {
        assert!(ran.out.contains(part), "{part:?} is not in:\n{}", ran.out);
    }
    let widest = ran.out.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|columns| columns <= 100), "{}", ran.out);
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
        let ran = run(lineage().arg("validate").arg(&file.0));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
        let out = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains("no operation was joined to an epoch"), "{out}");
        assert!(out.contains(why), "{why:?} is not in {out}");
        assert!(!out.contains("the records agree"), "{out}");
        assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);

        let required = run(lineage()
            .args(["validate", "--require-joins", "--json"])
            .arg(&file.0));
        assert_eq!(required.code, Some(1), "{name}");
        let object: serde_json::Value = serde_json::from_str(&required.out).expect("JSON");
        assert_eq!(
            (&object["sound"], &object["operations_with_epoch"]),
            (&true.into(), &0.into())
        );
        let because = object["nothing_joined_because"]
            .as_str()
            .expect("it says why");
        assert!(because.contains(why), "{because}");
    }

    let file = Scratch::new("required.jsonl", &ledger(&Recording::sound().ended()));
    let ran = run(lineage().args(["validate", "--require-joins"]).arg(&file.0));
    assert_eq!(ran.code, Some(0), "{}", ran.out);
}

#[test]
fn json_is_one_stable_object_per_file() {
    let faulty = Scratch::new("json-faulty.jsonl", &ledger(&faulty()));
    let sound = Scratch::new("json-sound.jsonl", &ledger(&Recording::sound().ended()));
    let ran = run(lineage()
        .args(["validate", "--json", "--list", "1"])
        .args([&faulty.0, &sound.0]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let objects: Vec<serde_json::Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(objects.len(), 2);
    let first = &objects[0];
    assert_eq!(first["schema"], 1);
    assert_eq!(first["file"], faulty.0.display().to_string());
    assert_eq!(first["sound"], false);
    assert_eq!(first["ledger"]["complete"], true);
    let summary = &first["summary"];
    for (field, count) in [
        ("api_calls", 16),
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
fn colours_are_used_only_where_they_are_wanted() {
    let file = Scratch::new("colour.jsonl", &ledger(&faulty()));
    let validate = || {
        let mut command = lineage();
        command.arg("validate").arg(&file.0);
        command
    };
    let coloured = |command: &mut Command| run(command).out.contains('\u{1b}');
    assert!(!coloured(&mut validate()));
    assert!(coloured(validate().arg("--color=always")));
    assert!(coloured(validate().env("CLICOLOR_FORCE", "1")));
    assert!(!coloured(
        validate().env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")
    ));
    assert!(!coloured(
        validate().arg("--color=never").env("CLICOLOR_FORCE", "1")
    ));
}

#[test]
fn a_file_that_is_no_ledger_is_refused_with_what_it_is() {
    for (name, bytes, looks_like) in [
        (
            "db.sqlite",
            b"SQLite format 3\0\x10\0\x01\x01".as_slice(),
            "an SQLite database, as Nsight Systems exports",
        ),
        ("trace.json.gz", b"\x1f\x8b\x08\0\0\0\0\0", "gzip data"),
        (
            "trace.json",
            b"{\n\"schemaVersion\": 1,\n\"traceEvents\": []}",
            "a Chrome or Kineto trace",
        ),
        ("other.json", b"{\"a\": 1}\n", "other JSON"),
        ("notes.txt", b"hello\n", "other text"),
        ("noise", b"\xff\x00\x12\n\x80", "binary data"),
    ] {
        let file = Scratch::new(name, bytes);
        let ran = run(lineage().arg("validate").arg(&file.0));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{name}");
        assert!(
            ran.err.contains(&format!("not a ledger, but {looks_like}")),
            "{}",
            ran.err
        );
        assert!(
            ran.err
                .contains("reads JSON-lines ledgers of schema 1 so far"),
            "{}",
            ran.err
        );
        assert_eq!(ran.err.lines().count(), 1, "one message: {}", ran.err);
    }
}

#[test]
fn bad_files_are_refused_with_their_line_and_no_backtrace() {
    let sound = ledger(&Recording::sound().ended());
    let header = sound
        .split_inclusive(|&byte| byte == b'\n')
        .next()
        .expect("a header");
    let with = |line: &[u8]| [header, line, b"\n{}"].concat();
    let newer = br#"{"lineage":{"schema":7,"writer":"lineage-core 9.1.0"}}"#;
    let deep = "[".repeat(200_000);
    let long = "x".repeat((1 << 20) + 1);
    for (name, bytes, says) in [
        ("empty", Vec::new(), "the file is empty"),
        (
            "newer",
            newer.to_vec(),
            "schema 7, written by lineage-core 9.1.0; this build reads up to 1",
        ),
        ("syntax", with(b"{\"observation\":"), "line 2: "),
        (
            "type",
            with(br#"{"end":{"observations":"all","rows":0,"faults":0}}"#),
            "line 2: invalid type",
        ),
        ("nan", with(br#"{"end":{"observations":NaN}}"#), "line 2: "),
        (
            "range",
            with(br#"{"end":{"observations":1e400,"rows":0,"faults":0}}"#),
            "line 2: number out of range",
        ),
        (
            "deep",
            with(format!("{{\"row\":{deep}").as_bytes()),
            "line 2: ",
        ),
        (
            "long",
            with(long.as_bytes()),
            "line 2: the line is longer than 1048576 bytes",
        ),
        ("utf8", with(b"\xff\xff"), "line 2: the line is not UTF-8"),
        (
            "twice",
            [sound.clone(), sound.clone()].concat(),
            "there is more after the end line",
        ),
        ("second", [header, header].concat(), "a second header"),
        (
            "count",
            with(br#"{"end":{"observations":9,"rows":0,"faults":0}}"#),
            "the end line says",
        ),
    ] {
        let file = Scratch::new(name, &bytes);
        let ran = run(lineage()
            .env("RUST_BACKTRACE", "1")
            .arg("validate")
            .arg(&file.0));
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(2), ""),
            "{name}: {}",
            ran.err
        );
        assert!(ran.err.contains(says), "{name}: {}", ran.err);
        assert!(ran.err.starts_with("lineage: "), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "one message: {}", ran.err);
    }
}

#[test]
fn a_file_that_is_not_there_or_a_folder_is_refused() {
    let ran = run(lineage().args(["validate", "no/such/file.jsonl"]));
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err
            .starts_with("lineage: no/such/file.jsonl: cannot be opened: "),
        "{}",
        ran.err
    );
    let ran = run(lineage().arg("validate").arg(env!("CARGO_TARGET_TMPDIR")));
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("is a directory"), "{}", ran.err);
}

#[test]
fn one_bad_file_does_not_hide_another_ones_result() {
    let file = Scratch::new("beside.jsonl", &ledger(&Recording::sound().ended()));
    let ran = run(lineage()
        .args(["validate", "no/such/file.jsonl"])
        .arg(&file.0));
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("no fault"), "{}", ran.out);
}

#[test]
fn a_ledger_that_was_cut_short_is_read_and_said_to_be() {
    let whole = ledger(&Recording::sound().ended());
    let file = Scratch::new("cut.jsonl", &whole[..whole.len() - 80]);
    let ran = run(lineage().arg("validate").arg(&file.0));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    assert!(
        ran.out.contains("the last line was cut short"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("the file has no end line"), "{}", ran.out);
    let ran = run(lineage().args(["validate", "--json"]).arg(&file.0));
    let object: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(object["ledger"]["complete"], false);
    assert_eq!(object["ledger"]["last_line_truncated"], true);
}

#[test]
fn what_a_newer_writer_added_is_skipped_and_said() {
    let whole = String::from_utf8(ledger(&Recording::sound().ended())).expect("UTF-8");
    let (header, rest) = whole.split_once('\n').expect("lines");
    let newer = r#"{"footnote":{"text":"\u001b[31m"}}"#;
    let file = Scratch::new(
        "added.jsonl",
        format!("{header}\n{newer}\n{rest}").as_bytes(),
    );
    let ran = run(lineage().arg("validate").arg(&file.0));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    assert!(
        ran.out
            .contains("1 lines with `footnote`, which this version does not know"),
        "{}",
        ran.out
    );
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let mut recording = Recording::sound();
    let mut launch = Launch::of(epoch(1), 10, 4, 4_000);
    launch.external = Some(88);
    launch.operations[0].name = Some("\u{1b}]0;owned\u{7}\u{202e}".into());
    recording.launch(&launch);
    let file = Scratch::new("names.jsonl", &ledger(&recording.ended()));
    let ran = run(lineage().arg("validate").arg(&file.0));
    assert_eq!(ran.code, Some(1));
    assert!(
        !ran.out.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{:?}",
        ran.out
    );
}

#[test]
fn explain_has_a_page_for_each_code_and_lists_them() {
    let ran = run(lineage().arg("explain"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    for &code in lineage_core::fault::FaultCode::ALL {
        assert!(ran.out.contains(code.name()), "{code}");
        // Codes are read in either case.
        let page = run(lineage().args(["explain", &code.code().to_lowercase()]));
        assert_eq!((page.code, page.err.as_str()), (Some(0), ""));
        assert!(page.out.starts_with(&code.to_string()), "{}", page.out);
        assert!(page.out.contains("How to mend it"), "{}", page.out);
        let named = run(lineage().args(["explain", code.name()]));
        assert_eq!((named.code, &named.out), (Some(0), &page.out));
    }
}

#[test]
fn wrong_use_is_bad_input() {
    for arguments in [
        vec![],
        vec!["validate"],
        vec!["explain", "X99"],
        vec!["validate", "--frobnicate", "x"],
        vec!["nonsense"],
    ] {
        let ran = run(lineage().args(&arguments));
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(!ran.err.is_empty());
    }
    assert!(
        run(lineage().args(["explain", "X99"]))
            .err
            .contains("`lineage explain` lists them")
    );
    assert_eq!(run(lineage().arg("--help")).code, Some(0));
    assert_eq!(run(lineage().arg("--version")).code, Some(0));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::Stdio;
    let file = Scratch::new("pipe.jsonl", &ledger(&faulty()));
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
