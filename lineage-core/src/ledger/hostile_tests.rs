//! A reader survives any file, and says what is wrong with it.

use super::*;

const HEADER: &str = r#"{"lineage":{"schema":1,"process":"00000000-0000-0000-0000-000000000000","service":"llm","started_ns":5,"writer":"w"}}"#;
const FLUSHED: &str =
    r#"{"observation":{"event":{"flushed":{"session":1,"asked":19,"returned":20,"last":false}}}}"#;

struct Read {
    entries: usize,
    errors: Vec<ReadError>,
    summary: ReadSummary,
}

fn read(file: &[u8]) -> Read {
    let mut reader = Reader::new(file);
    let (mut entries, mut errors) = (0, Vec::new());
    for entry in &mut reader {
        match entry {
            Ok(_) => entries += 1,
            Err(error) => errors.push(error),
        }
    }
    Read {
        entries,
        errors,
        summary: reader.summary().clone(),
    }
}

/// The one error of a file, which must be of this line.
fn only_error(file: &[u8], line: u64) -> ReadErrorKind {
    let mut read = read(file);
    assert_eq!(read.errors.len(), 1, "{:?}", read.errors);
    let error = read.errors.remove(0);
    assert_eq!(error.line, line, "{error}");
    error.kind
}

fn body(lines: &[&str]) -> Vec<u8> {
    let mut file = HEADER.to_owned();
    for line in lines {
        file.push('\n');
        file.push_str(line);
    }
    file.push('\n');
    file.into_bytes()
}

#[test]
fn an_empty_file_is_named_as_such() {
    assert!(matches!(only_error(b"", 1), ReadErrorKind::Empty));
}

#[test]
fn what_is_no_ledger_is_refused_at_its_first_line() {
    let deep = "[".repeat(100_000);
    let long = "x".repeat(MAX_LINE_BYTES + 1);
    for file in [
        b"SQLite format 3\0\x10\0".as_slice(),
        b"\x1f\x8b\x08\0\0",
        b"\n",
        b"{}",
        b"null",
        b"\xff\xfe{\0}\0",
        br#"{"traceEvents":[]}"#,
        br#"{"lineage":{"schema":0}}"#,
        br#"{"lineage":{"schema":-1}}"#,
        br#"{"lineage":{"schema":NaN}}"#,
        br#"{"lineage":{"schema":1}}"#,
        br#"{"lineage":{"schema":1,"process":"not a uuid","service":"","started_ns":0,"writer":""}}"#,
        FLUSHED.as_bytes(),
        deep.as_bytes(),
        long.as_bytes(),
    ] {
        let kind = only_error(file, 1);
        assert!(matches!(kind, ReadErrorKind::NotALedger { .. }), "{kind}");
    }
}

#[test]
fn a_newer_schema_is_refused_with_who_wrote_it_and_what_this_build_reads() {
    let file = br#"{"lineage":{"schema":7,"writer":"lineage-core 9.1.0","something":"else"}}"#;
    let kind = only_error(file, 1);
    assert_eq!(
        kind.to_string(),
        "the file has schema 7, written by lineage-core 9.1.0; this build reads up to 1"
    );
}

#[test]
fn kinds_that_a_newer_writer_added_are_skipped_and_counted_by_name() {
    let read = read(&body(&[
        r#"{"observation":{"event":{"teleported":{"tid":1}}}}"#,
        r#"{"observation":{"event":{"teleported":{"tid":2}}}}"#,
        r#"{"observation":{"event":{"dropped":{"site":"moon","count":1,"at":1}}}}"#,
        r#"{"footnote":{"text":"…"}}"#,
        r#"{"fault":{"process":0,"code":"L99","epoch":null,"at":null,"count":1,"detail":""}}"#,
        FLUSHED,
        r#"{"end":{"observations":4,"rows":0,"faults":1}}"#,
    ]));
    assert!(read.errors.is_empty(), "{:?}", read.errors);
    // The end line counts the observations and the fault among the skipped, not the footnote.
    let kinds: Vec<(&str, u64)> = read
        .summary
        .unknown_kinds
        .iter()
        .map(|(kind, &count)| (kind.as_str(), count))
        .collect();
    assert_eq!(
        kinds,
        [("L99", 1), ("footnote", 1), ("moon", 1), ("teleported", 2)]
    );
    assert_eq!(read.summary.read.observations, 1);
    assert!(!read.summary.is_complete());
}

#[test]
fn unknown_kinds_do_not_fill_the_memory() {
    let lines: Vec<String> = (0..500)
        .map(|number| format!(r#"{{"kind{number}{}":0}}"#, "x".repeat(100)))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let read = read(&body(&lines));
    assert_eq!(read.summary.skipped(), 500);
    assert_eq!(read.summary.unknown_kinds.len(), 33);
    assert!(
        read.summary
            .unknown_kinds
            .keys()
            .all(|kind| kind.len() <= 48)
    );
}

#[test]
fn a_bad_line_is_an_error_with_its_number_and_the_next_one_is_read() {
    let deep = format!(
        r#"{{"observation":{{"event":{{"device_session":{{"state":{}1{}}}}}}}}}"#,
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    for bad in [
        "nonsense",
        r#"{"observation":{"event":{"flushed":{"session":NaN,"asked":1,"returned":2,"last":true}}}}"#,
        r#"{"observation":{"event":{"flushed":{"session":4294967296,"asked":1,"returned":2,"last":true}}}}"#,
        r#"{"observation":{"event":{"flushed":{"session":-1,"asked":1,"returned":2,"last":true}}}}"#,
        r#"{"observation":{"event":{"flushed":{"session":"1","asked":1,"returned":2,"last":true}}}}"#,
        r#"{"observation":{"event":{"flushed":{"session":1,"asked":1e300,"returned":2,"last":true}}}}"#,
        r#"{"observation":{"event":{"flushed":{"session":1,"asked":1}}}}"#,
        r#"{"observation":{"event":{"retired":{"epoch":{"id":0,"version":1},"how":"done","at":1}}}}"#,
        r#"{"observation":{"event":{"retired":{"epoch":{"id":1099511627775,"version":1},"how":"done","at":1}}}}"#,
        r#"{"observation":{"event":{"retired":{"epoch":{"id":1,"version":16777216},"how":"done","at":1}}}}"#,
        r#"{"observation":{"event":{"flushed":[]}}}"#,
        r#"{"observation":null}"#,
        r#"{"end":{"observations":"all"}}"#,
        "[]",
        "{}",
        "\u{feff}{}",
        &deep,
    ] {
        let file = body(&[FLUSHED, bad, FLUSHED]);
        let kind = only_error(&file, 3);
        assert!(matches!(kind, ReadErrorKind::Malformed(_)), "{bad}: {kind}");
        assert_eq!(read(&file).summary.read.observations, 2, "{bad}");
    }
}

#[test]
fn text_that_is_not_utf8_is_an_error_of_its_line() {
    let mut file = body(&[FLUSHED]);
    file.extend_from_slice(b"{\"observation\":\"\xc3\x28\"}\n");
    assert!(matches!(only_error(&file, 3), ReadErrorKind::NotUtf8));
}

#[test]
fn an_over_long_line_is_an_error_and_not_memory() {
    let long = format!(r#"{{"observation":"{}"}}"#, "x".repeat(3 * MAX_LINE_BYTES));
    let file = body(&[&long, FLUSHED]);
    let mut reader = Reader::new(file.as_slice());
    let errors = reader.by_ref().filter(Result::is_err).count();
    assert_eq!(errors, 1);
    assert_eq!(reader.summary().read.observations, 1);
    assert!(matches!(only_error(&file, 2), ReadErrorKind::TooLong));
}

#[test]
fn a_second_header_and_anything_after_the_end_are_errors() {
    let kind = only_error(&body(&[HEADER]), 2);
    assert!(matches!(kind, ReadErrorKind::SecondHeader));
    let end = r#"{"end":{"observations":0,"rows":0,"faults":0}}"#;
    let kind = only_error(&body(&[end, FLUSHED]), 3);
    assert!(matches!(kind, ReadErrorKind::AfterEnd));
    // Empty lines hold nothing and are no error.
    assert!(read(&body(&["", end, "", "  "])).errors.is_empty());
}

#[test]
fn an_end_that_counts_otherwise_is_an_error() {
    for end in [
        r#"{"end":{"observations":2,"rows":0,"faults":0}}"#,
        r#"{"end":{"observations":0,"rows":1,"faults":0}}"#,
        r#"{"end":{"observations":18446744073709551615,"rows":18446744073709551615,"faults":1}}"#,
    ] {
        let kind = only_error(&body(&[FLUSHED, end]), 3);
        assert!(matches!(kind, ReadErrorKind::CountsDiffer { .. }), "{kind}");
    }
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_the_cut() {
    let file = body(&[
        FLUSHED,
        FLUSHED,
        r#"{"end":{"observations":2,"rows":0,"faults":0}}"#,
    ]);
    let after_header = HEADER.len() + 1;
    let line = FLUSHED.len() + 1;
    for cut in after_header..file.len() {
        let read = read(&file[..cut]);
        assert!(read.errors.is_empty(), "cut at {cut}: {:?}", read.errors);
        // A line counts as whole with or without its line feed.
        let whole = (cut + 1 - after_header) / line;
        let observations = whole.min(2) as u64;
        assert_eq!(read.summary.read.observations, observations, "cut at {cut}");
        let whole_end = cut == file.len() - 1;
        assert_eq!(read.summary.ended, whole_end, "cut at {cut}");
        let into_the_line = (cut - after_header) % line;
        let in_an_observation = into_the_line > 0 && into_the_line < FLUSHED.len();
        let in_the_end = cut - after_header > 2 * line;
        let inside_a_line = in_an_observation || in_the_end;
        assert_eq!(
            read.summary.last_line_truncated,
            inside_a_line && !whole_end,
            "cut at {cut}"
        );
    }
}

#[test]
fn no_change_of_one_byte_makes_the_reader_panic() {
    let file = body(&[
        FLUSHED,
        r#"{"observation":{"event":{"device_session":{"state":"absent","why":"w","at":1}}}}"#,
        r#"{"end":{"observations":2,"rows":0,"faults":0}}"#,
    ]);
    for place in 0..file.len() {
        for byte in [0, b'"', b'{', b'}', b'\n', b'9', b'-', b'e', 0x80, 0xff] {
            let mut changed = file.clone();
            changed[place] = byte;
            let read = read(&changed);
            assert!(read.entries + read.errors.len() <= 6);
        }
    }
}

/// A file whose medium fails.
struct Broken;

impl std::io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the medium failed"))
    }
}

#[test]
fn a_failing_medium_ends_the_reading() {
    let mut reader = Reader::new(std::io::BufReader::new(Broken));
    let error = reader.next().expect("an error").expect_err("an error");
    assert_eq!(
        error.to_string(),
        "line 1: the file could not be read: the medium failed"
    );
    assert!(reader.next().is_none());
}
