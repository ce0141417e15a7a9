//! Cut short anywhere, with any byte changed, or its writer killed: a run directory opens, gives what
//! is whole, says what is not, and nothing panics.

mod common;

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use common::{Dice, files, give, session};
use lineage_arrow::{ReadErrorKind, Reader, Summary, Writer};
use lineage_core::ledger::Entry;
use lineage_core::observation::{Event, Observation};
use lineage_core::source::Sink;

type Files = BTreeMap<String, Vec<u8>>;

/// A small directory of two batches, and its entries.
fn small() -> (Files, Vec<Entry>) {
    static SMALL: OnceLock<(Files, Vec<Entry>)> = OnceLock::new();
    SMALL.get_or_init(write_small).clone()
}

fn write_small() -> (Files, Vec<Entry>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.lineage");
    let mut dice = Dice::new(11);
    let mut writer = Writer::new(&path);
    writer.begin(&session()).expect("begun");
    let mut entries: Vec<Entry> = [2, 13, 20, 21]
        .into_iter()
        .map(|kind| Entry::Observation(Observation::live(dice.event(kind))))
        .collect();
    entries.push(Entry::Row(dice.row()));
    entries.iter().for_each(|entry| give(&mut writer, entry));
    // The next entry finds that the batch is due; what follows is the second.
    std::thread::sleep(lineage_arrow::BATCH_AGE);
    for _ in 0..3 {
        let late = Entry::Row(dice.row());
        give(&mut writer, &late);
        entries.push(late);
    }
    writer.finish().expect("finished");
    (files(&path), entries)
}

/// What can be read: entries, how many errors, and the summary.
fn read(files: Files) -> Option<(Vec<Entry>, u64, Summary)> {
    let mut reader = Reader::in_memory(files).ok()?;
    let mut entries = Vec::new();
    let mut errors = 0;
    for entry in &mut reader {
        match entry {
            Ok(Entry::Header(_) | Entry::End(_)) => {}
            Ok(entry) => entries.push(entry),
            Err(_) => errors += 1,
        }
    }
    Some((entries, errors, reader.summary().clone()))
}

#[test]
fn cut_short_at_any_byte_a_directory_gives_its_whole_batches_and_says_that_it_is_cut_short() {
    let (whole, entries) = small();
    let (all, errors, summary) = read(whole.clone()).expect("whole");
    assert!(all == entries && errors == 0 && summary.is_complete());
    let journal = "000001/batches.jsonl";

    // As a killed writer leaves it: whole tables, and a journal that ends anywhere.
    for length in 0..whole[journal].len() {
        let mut cut = whole.clone();
        cut.get_mut(journal).expect("there").truncate(length);
        let (some, errors, summary) = read(cut).expect("opens");
        assert_eq!(errors, 0, "{length}");
        assert!(entries.starts_with(&some), "{length}");
        assert!(!summary.is_complete() && summary.not_ended == 1, "{length}");
        let end_line_only = whole[journal].len() - length <= 60 && some == entries;
        assert!(end_line_only || summary.cut_short == 1, "{length}");
        assert!(!summary.notes().is_empty());
    }

    // A table that is shorter than its journal says is damaged, and that is an error, never a loss that
    // nobody speaks of.
    for (file, bytes) in &whole {
        if !file.ends_with(".arrows") {
            continue;
        }
        for length in (0..bytes.len().saturating_sub(8)).step_by(101) {
            let mut cut = whole.clone();
            cut.get_mut(file).expect("there").truncate(length);
            let (some, errors, summary) = read(cut).expect("opens");
            assert!(errors > 0, "{file} {length}");
            assert!(entries.starts_with(&some), "{file} {length}");
            assert!(!summary.is_complete());
        }
    }
}

#[test]
fn any_byte_may_be_changed_and_nothing_panics() {
    let (whole, _) = small();
    let mut noticed = 0;
    let mut tried = 0;
    let mut dice = Dice::new(12);
    for (file, bytes) in &whole {
        let step = (bytes.len() / 40).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut changed = whole.clone();
            changed.get_mut(file).expect("there")[at] ^= (dice.roll() as u8).max(1);
            tried += 1;
            noticed += u64::from(
                read(changed)
                    .is_none_or(|(_, errors, summary)| errors > 0 || !summary.is_complete()),
            );
        }
    }
    // Padding, names and numbers may change unseen; what holds the file together may not.
    assert!(noticed * 3 > tried, "{noticed} of {tried}");
}

#[test]
fn what_no_writer_writes_is_refused_without_taking_memory_for_it() {
    let refused = |files: Files| Reader::in_memory(files).expect_err("refused").kind;
    assert!(matches!(
        refused(Files::new()),
        ReadErrorKind::NotARunDirectory { .. }
    ));
    let one = |text: &str| Files::from([("meta.json".to_owned(), text.as_bytes().to_vec())]);
    for text in ["", "{}", "[1]", "{\"lineage_directory\":{\"schema\":0}}"] {
        let kind = refused(one(text));
        assert!(
            matches!(kind, ReadErrorKind::NotARunDirectory { .. }),
            "{text}"
        );
    }
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(100_000));
    assert!(matches!(
        refused(one(&long)),
        ReadErrorKind::NotARunDirectory { .. }
    ));

    let (whole, _) = small();
    let change = |file: &str, from: &[u8], to: &[u8]| {
        let mut changed = whole.clone();
        let bytes = changed.get_mut(file).expect("there");
        let at = bytes.windows(from.len()).position(|part| part == from);
        let at = at.expect("in the file");
        bytes.splice(at..at + from.len(), to.iter().copied());
        read(changed).expect("opens")
    };
    let journal = "000001/batches.jsonl";
    // A batch of nearly all the memory there is.
    let huge = b"\"bytes\":18446744073709551615";
    let text = String::from_utf8_lossy(&whole[journal]).into_owned();
    let start = text.find("\"bytes\":").expect("there");
    let digits = text[start + 8..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    let (_, errors, _) = change(journal, &text.as_bytes()[start..start + 8 + digits], huge);
    assert!(errors > 0);
    let (_, errors, _) = change(journal, b"{\"batch\"", b"[[[[[[[[\"batch\"");
    assert!(errors > 0);
    let (_, errors, _) = change(journal, b"{\"batch\"", "{".repeat(100_000).as_bytes());
    assert!(errors > 0);
    // A message header of 2 GiB, and one of nothing.
    for length in [[0xff, 0xff, 0xff, 0x7f], [0, 0, 0, 0]] {
        let mut changed = whole.clone();
        let bytes = changed.get_mut("000001/calls.arrows").expect("there");
        bytes[4..8].copy_from_slice(&length);
        let (_, errors, _) = read(changed).expect("opens");
        assert!(errors > 0);
    }
}

#[test]
fn a_batch_that_is_missing_between_others_is_said() {
    let (whole, _) = small();
    let mut missing = whole.clone();
    let journal = missing.get_mut("000001/batches.jsonl").expect("there");
    let text = String::from_utf8(journal.clone()).expect("text");
    let text: Vec<String> = text
        .lines()
        .map(|line| line.replace("{\"batch\":{\"batch\":2,", "{\"batch\":{\"batch\":7,") + "\n")
        .collect();
    *journal = text.concat().into_bytes();
    let reader = Reader::in_memory(missing).expect("opens");
    let errors: Vec<ReadErrorKind> = reader.filter_map(|of| of.err()).map(|of| of.kind).collect();
    assert!(
        matches!(errors[0], ReadErrorKind::MissingBatches { from: 2, to: 6 }),
        "{errors:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_what_came_meanwhile_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("full.lineage");
    let mut dice = Dice::new(13);
    let mut writer = Writer::new(&path);
    writer.begin(&session()).expect("begun");
    // Where the first segment should go there is a file, as good as a disk that takes nothing.
    std::fs::write(path.join("000001"), "in the way").expect("written");
    let mut scope = || Observation::live(dice.event(12));
    let given: Vec<Observation> = (0..20_000).map(|_| scope()).collect();
    let error = writer.observations(&given).expect_err("cannot be written");
    assert!(
        error.to_string().contains("entries were not written"),
        "{error}"
    );
    writer.finish().expect("finished");

    let mut reader = Reader::open(&path).expect("a run directory");
    let mut found = Vec::new();
    let mut errors = 0;
    for entry in &mut reader {
        match entry {
            Ok(Entry::Observation(of)) => found.push(of),
            Ok(_) => {}
            Err(_) => errors += 1,
        }
    }
    assert!(!found.is_empty() && found == given[given.len() - found.len()..]);
    assert_eq!(errors, 1, "the file in the way is no segment");
    let not_written = reader.summary().not_written;
    assert!(not_written >= 8_192);
    assert_eq!(not_written + found.len() as u64, 20_000);
}

const WHERE: &str = "LINEAGE_TEST_WRITES_UNTIL_IT_IS_KILLED";

/// Not a test by itself: it writes until it is killed.
#[test]
fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(WHERE) else {
        return;
    };
    let mut writer = Writer::new(path).segment_bytes(400_000);
    writer.begin(&session()).expect("begun");
    for number in 0.. {
        let mut dice = Dice::new(number);
        let scope = Observation::live(dice.event(12));
        let call = Observation::live(dice.event(13));
        let operation = Observation::live(dice.event(20));
        writer
            .observations(&[scope, call, operation])
            .expect("written");
        writer.rows(&[dice.row()], &[]).expect("written");
        if number % 512 == 511 {
            println!("given {}", (number + 1) * 4);
        }
    }
}

/// The small version: `.ci/long` asks for 50.
#[cfg(unix)]
#[test]
fn killed_at_any_moment_a_writer_loses_at_most_its_last_batch() {
    let times = std::env::var("LINEAGE_KILLS").map_or(5, |times| times.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let mut dice = Dice::new(std::process::id().into());
    let mut cut_short = 0;
    for time in 0..times {
        let path = folder.path().join(format!("{time}.lineage"));
        let mut writer = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "writes_until_it_is_killed", "--nocapture"])
            .env(WHERE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let said = writer.stdout.take().expect("piped");
        let given = std::thread::spawn(move || last_given(said));
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while !has_a_batch(&path) && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_micros(dice.roll() % 300_000));
        writer.kill().expect("killed");
        writer.wait().expect("ended");
        let (read, cut) = killed(&path);
        let given = given.join().expect("read");
        // A batch ends with the 8,192nd row of a table, of which each round has one, some as facts.
        assert!(read + 4 * 2 * 8_192 >= given, "{read} read of {given}");
        cut_short += cut;
    }
    println!("{times} writers were killed, {cut_short} of them in the middle of a batch");
}

fn has_a_batch(path: &Path) -> bool {
    let journal = path.join("000001/batches.jsonl");
    std::fs::metadata(journal).is_ok_and(|of| of.len() > 0)
}

/// How many entries the writer had given when it said so last.
fn last_given(said: impl std::io::Read) -> u64 {
    let lines = std::io::BufReader::new(said).lines();
    let numbers = lines.map_while(Result::ok).filter_map(|line| {
        let number = line.rsplit_once("given ")?.1;
        number.parse().ok()
    });
    numbers.last().unwrap_or(0)
}

/// What a killed writer left: how many entries, and 1 if it was cut short in the middle of a batch.
fn killed(path: &Path) -> (u64, u64) {
    let mut reader = Reader::open(path).expect("opens");
    let mut read = 0_u64;
    for entry in &mut reader {
        // The writer's entries are known: four by four, of one seed each.
        let mut dice = Dice::new(read / 4);
        match entry.expect("what is whole is readable") {
            Entry::Header(_) => continue,
            Entry::Observation(of) => {
                let events: [Event; 3] = [12, 13, 20].map(|kind| dice.event(kind));
                assert!(of.event == events[(read % 4) as usize], "entry {read}");
            }
            Entry::Row(of) => {
                let _: [Event; 3] = [12, 13, 20].map(|kind| dice.event(kind));
                assert!(read % 4 == 3 && of == dice.row(), "entry {read}");
            }
            other => panic!("an unexpected entry: {other:?}"),
        }
        read += 1;
    }
    let summary = reader.summary();
    assert!(read > 0 && !summary.is_complete());
    assert_eq!((summary.errors, summary.not_ended), (0, 1));
    assert!(!summary.notes().is_empty(), "it says so");
    (read, summary.cut_short)
}
