//! What a file is instead, or what is wrong with it, in one line and without a backtrace.

mod common;

use common::recording::Recording;
use common::{Scratch, ledger, lineage, on, run, sound};

#[test]
fn a_file_that_is_none_is_refused_with_what_it_is() {
    for (name, bytes, says) in [
        (
            "notes.txt",
            b"hello\n".as_slice(),
            "not a recording, but other text",
        ),
        (
            "noise",
            b"\xff\x00\x12\n\x80",
            "not a recording, but binary data",
        ),
        (
            "trace.zip",
            b"PK\x03\x04",
            "not a recording, but a zip archive: unpack it first",
        ),
        (
            "my.nsys-rep",
            b"\x00\x01\x02\x03",
            "export it with `nsys export --type sqlite FILE`",
        ),
        (
            "rows.jsonl",
            b"{\"row\":{}}\n",
            "a ledger without its first line",
        ),
        ("empty", b"", "the file is empty"),
        ("other.json", b"{\"a\": 1}\n", "no trace of Kineto's"),
        ("half.gz", b"\x1f\x8b\x08\0\0\0\0\0", ""),
        ("db.sqlite", b"SQLite format 3\0\x10\0\x01\x01", ""),
    ] {
        let file = Scratch::new(name, bytes);
        for command in ["validate", "show"] {
            let ran = on(&[command], &file.0);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{name}");
            assert!(ran.err.starts_with("lineage: "), "{}", ran.err);
            assert!(ran.err.contains(says), "{name}: {}", ran.err);
            assert_eq!(ran.err.lines().count(), 1, "one message: {}", ran.err);
        }
    }
}

#[test]
fn bad_ledgers_are_refused_with_their_line_and_no_backtrace() {
    let sound = sound();
    let header = sound
        .split_inclusive(|&byte| byte == b'\n')
        .next()
        .expect("a header");
    let with = |line: &[u8]| [header, line, b"\n{}"].concat();
    let newer = br#"{"lineage":{"schema":7,"writer":"lineage-core 9.1.0"}}"#;
    let deep = "[".repeat(200_000);
    let long = "x".repeat((1 << 20) + 1);
    for (name, bytes, says) in [
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
fn a_ledger_that_was_cut_short_is_read_and_said_to_be() {
    let whole = ledger(&Recording::sound().ended());
    let file = Scratch::new("cut.jsonl", &whole[..whole.len() - 80]);
    let ran = on(&["validate"], &file.0);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    assert!(
        ran.out.contains("the last line was cut short"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("the file has no end line"), "{}", ran.out);
    let object = on(&["validate", "--json"], &file.0).objects().remove(0);
    assert_eq!(object["ledger"]["complete"], false);
    assert_eq!(object["ledger"]["last_line_truncated"], true);
}

#[test]
fn what_a_newer_writer_added_is_skipped_and_said() {
    let whole = String::from_utf8(sound()).expect("UTF-8");
    let (header, rest) = whole.split_once('\n').expect("lines");
    let newer = r#"{"footnote":{"text":"\u001b[31m"}}"#;
    let bytes = format!("{header}\n{newer}\n{rest}");
    let file = Scratch::new("added.jsonl", bytes.as_bytes());
    for command in ["validate", "show"] {
        let ran = on(&[command], &file.0);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
        let said = "1 line with `footnote`, which this version does not know, was skipped";
        assert!(ran.words().contains(said), "{}", ran.out);
    }
}
