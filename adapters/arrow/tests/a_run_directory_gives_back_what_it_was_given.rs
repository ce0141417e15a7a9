//! What is written is what is read, in the same order, through any number of batches and segments.

mod common;

use std::path::Path;

use common::{Dice, KINDS, files, give, kind, session};
use lineage_arrow::{Reader, SCHEMA, Table, Writer};
use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::ledger::{Counts, Entry};
use lineage_core::observation::{Event, Observation, Scheduled};
use lineage_core::part::Times;
use lineage_core::source::Sink;
use proptest::prelude::*;

fn write(path: &Path, entries: &[Entry], segment_bytes: u64) {
    let mut writer = Writer::new(path).segment_bytes(segment_bytes);
    writer.begin(&session()).expect("begun");
    entries.iter().for_each(|entry| give(&mut writer, entry));
    writer.finish().expect("finished");
}

/// All entries between header and end, and whether all is there.
fn read(path: &Path) -> (Vec<Entry>, bool) {
    let mut reader = Reader::open(path).expect("a run directory");
    let all: Vec<Entry> = reader
        .by_ref()
        .map(|entry| entry.expect("readable"))
        .collect();
    let complete = reader.summary().is_complete();
    let entries = all
        .into_iter()
        .filter(|entry| !matches!(entry, Entry::Header(_) | Entry::End(_)));
    (entries.collect(), complete)
}

#[test]
fn every_kind_of_entry_comes_back_with_any_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.lineage");
    let mut dice = Dice::new(1);
    let mut entries = Vec::new();
    for round in 0..20 {
        for number in 0..KINDS {
            let event = dice.event(number);
            assert_eq!(kind(&event), Some(number), "the test's own list");
            entries.push(Entry::Observation(Observation {
                process: ProcessOrdinal(round % 3),
                event,
            }));
        }
        entries.push(Entry::Row(dice.row()));
        entries.push(Entry::Fault(dice.fault()));
    }
    write(&path, &entries, u64::MAX);
    let (found, complete) = read(&path);
    assert!(
        found == entries,
        "first difference: {:?}",
        difference(&found, &entries)
    );
    assert!(complete);
    for table in Table::ALL {
        let file = path.join(format!("000001/{}.arrows", table.name()));
        assert!(file.exists(), "{}", table.name());
    }
}

fn difference<'a>(
    found: &'a [Entry],
    expected: &'a [Entry],
) -> Option<(usize, &'a Entry, &'a Entry)> {
    let mut pairs = found.iter().zip(expected).enumerate();
    pairs
        .find(|(_, (found, expected))| found != expected)
        .map(|(at, (found, expected))| (at, found, expected))
}

#[test]
fn batches_follow_each_other_in_segments_of_the_size_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("many.lineage");
    let mut dice = Dice::new(2);
    // Over two batches of 8,192 rows in the table of scopes.
    let entries: Vec<Entry> = (0..20_000)
        .map(|_| Entry::Observation(Observation::live(dice.event(12))))
        .collect();
    write(&path, &entries, 1);
    let (found, complete) = read(&path);
    assert!(found == entries && complete);
    let segments = std::fs::read_dir(&path).expect("there").count() - 1;
    assert!(
        segments >= 3,
        "each batch fills a segment of one byte: {segments}"
    );
}

#[test]
fn the_oldest_segments_make_room_and_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.lineage");
    let mut writer = Writer::new(&path).keep_bytes(600_000);
    writer.begin(&session()).expect("begun");
    let mut dice = Dice::new(3);
    let mut last = Vec::new();
    for _ in 0..60_000_u32 {
        let observation = Observation::live(dice.event(12));
        give(&mut writer, &Entry::Observation(observation.clone()));
        last.push(observation);
    }
    writer.finish().expect("finished");
    let bytes: usize = files(&path).values().map(Vec::len).sum();
    assert!(bytes < 900_000, "{bytes}");

    let mut reader = Reader::open(&path).expect("a run directory");
    let found: Vec<Observation> = reader
        .by_ref()
        .filter_map(|entry| match entry.expect("readable") {
            Entry::Observation(of) => Some(of),
            _ => None,
        })
        .collect();
    let removed = reader.summary().removed;
    assert!(removed.segments > 0 && removed.entries > 0);
    assert_eq!(found.len() as u64 + removed.entries, 60_000);
    assert!(
        found == last[last.len() - found.len()..],
        "the newest are kept"
    );
    assert!(!reader.summary().is_complete());
    assert!(reader.summary().notes()[0].contains("removed"));
}

#[test]
fn several_processes_directories_are_read_as_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut dice = Dice::new(4);
    let mut one = |process| {
        Entry::Observation(Observation {
            process: ProcessOrdinal(process),
            event: dice.event(12),
        })
    };
    let (a, b) = ([one(0), one(2)], [one(0), one(1)]);
    write(&folder.path().join("a.lineage"), &a, u64::MAX);
    write(&folder.path().join("b.lineage"), &b, u64::MAX);
    // What is no run directory is left alone.
    std::fs::create_dir(folder.path().join("c.lineage")).expect("made");
    let (found, complete) = read(folder.path());
    let processes: Vec<u32> = found
        .iter()
        .filter_map(|entry| match entry {
            Entry::Observation(of) => Some(of.process.0),
            _ => None,
        })
        .collect();
    assert_eq!(
        processes,
        [0, 2, 3, 4],
        "no process of one is one of the other's"
    );
    assert!(complete);
}

#[test]
fn the_end_counts_what_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("counted.lineage");
    let mut dice = Dice::new(5);
    let entries = [
        Entry::Row(dice.row()),
        Entry::Fault(dice.fault()),
        Entry::Row(dice.row()),
    ];
    write(&path, &entries, u64::MAX);
    let reader = Reader::open(&path).expect("a run directory");
    let header = reader.header();
    assert_eq!((header.schema, header.service.as_str()), (SCHEMA, "llm"));
    assert_eq!(header.process, uuid::Uuid::from_u128(7));
    let all: Vec<Entry> = reader.map(|entry| entry.expect("readable")).collect();
    assert_eq!(all[0], Entry::Header(header));
    let counts = Counts {
        observations: 0,
        rows: 2,
        faults: 1,
        not_written: 0,
    };
    assert_eq!(all.last(), Some(&Entry::End(counts)));
    let meta = files(&path).remove("meta.json").expect("there");
    let meta: serde_json::Value = serde_json::from_slice(&meta).expect("JSON");
    assert_eq!(meta["ended"]["counts"]["rows"], 2);
    assert_eq!(meta["collected"]["device"], "not_asked");
}

#[test]
fn an_entry_that_is_too_long_is_counted_and_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.lineage");
    let mut writer = Writer::new(&path);
    writer.begin(&session()).expect("begun");
    let mut fault = Dice::new(6).fault();
    fault.detail = "x".repeat((1 << 20) + 1);
    let error = writer.rows(&[], &[fault]).expect_err("too long");
    assert!(error.to_string().contains("longer than an entry may be"));
    writer.finish().expect("finished");
    let mut reader = Reader::open(&path).expect("a run directory");
    assert!(reader.by_ref().all(|entry| entry.is_ok()));
    assert_eq!(reader.summary().not_written, 1);
    assert!(!reader.summary().is_complete());
}

#[test]
fn a_directory_holds_one_session_and_nothing_of_anyone_elses_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("once.lineage");
    write(&path, &[], u64::MAX);
    let error = Writer::new(&path).begin(&session()).expect_err("in use");
    assert!(error.to_string().contains("not empty"), "{error}");
    let mut again = Writer::new(&path).replace(true);
    again.begin(&session()).expect("replaced");
    again.finish().expect("finished");

    std::fs::write(path.join("000001/notes.txt"), "mine").expect("written");
    let error = Writer::new(&path).replace(true).begin(&session());
    let error = error.expect_err("not ours").to_string();
    assert!(error.contains("notes.txt"), "{error}");
    assert!(path.join("meta.json").exists(), "nothing was removed");
}

#[test]
fn nothing_is_known_of_an_event_only_by_its_place() {
    // The tables hold the order of entries among each other, which is that of the stream.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("order.lineage");
    let mut dice = Dice::new(9);
    let entries: Vec<Entry> = [20, 13, 20, 5, 13, 2]
        .into_iter()
        .map(|kind| Entry::Observation(Observation::live(dice.event(kind))))
        .collect();
    write(&path, &entries, u64::MAX);
    let (found, _) = read(&path);
    let kinds: Vec<Option<usize>> = found
        .iter()
        .map(|entry| match entry {
            Entry::Observation(Observation { event, .. }) => kind(event),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [20, 13, 20, 5, 13, 2].map(Some));
    let is_declared = |entry: &Entry| matches!(entry, Entry::Observation(of) if matches!(of.event, Event::Declared(_)));
    assert!(is_declared(&found[5]));
}

#[test]
fn the_page_on_the_format_names_every_table_and_column() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-directory.md");
    let page = std::fs::read_to_string(page).expect("there");
    for table in Table::ALL {
        let name = format!("**{}**", table.name());
        let described = page.split_once(&name).map(|(_, after)| after);
        let described = described.unwrap_or_else(|| panic!("{name} is not described"));
        let described = described.split("\n**").next().unwrap_or_default();
        for column in table.columns().iter().map(|column| column.name) {
            let all_have_it = ["order", "process"].contains(&column);
            let said = described.contains(&format!("`{column}`"));
            assert!(all_have_it || said, "{name}: `{column}` is not described");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_entries_come_back_in_their_order(seed in any::<u64>(), many in 0..200_usize, segment in 1..100_000_u64) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("any.lineage");
        let mut dice = Dice::new(seed);
        let entries: Vec<Entry> = (0..many).map(|_| dice.entry()).collect();
        write(&path, &entries, segment);
        let (found, complete) = read(&path);
        prop_assert_eq!(found, entries);
        prop_assert!(complete);
    }
}

fn switch(at: u64) -> Entry {
    let event = Scheduled {
        tid: 7,
        at: HostNanos(at),
        cpu: None,
        running: true,
        off: None,
        state: None,
    };
    Entry::Observation(Observation::live(event))
}

/// Batches outside of a part are passed over: their bytes are not even looked at, but for what holds on.
#[test]
fn of_a_part_no_more_is_read_than_reaches_into_it_and_what_holds_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("part.lineage");
    let mut dice = Dice::new(9);
    // Batches of 8,192 switches, one a nanosecond; each has an epoch's declaration, a fault, a fact that
    // holds on and one of its moment.
    let of_kind = |dice: &mut Dice, kind| Entry::Observation(Observation::live(dice.event(kind)));
    let mut entries = Vec::new();
    for at in 0..40_960_u64 {
        if at % 8_192 == 100 {
            entries.push(of_kind(&mut dice, 2));
            entries.push(Entry::Fault(dice.fault()));
            // Without a time, so that they widen no batch: a device's session, and an extent.
            entries.push(of_kind(&mut dice, 17));
            entries.push(of_kind(&mut dice, 23));
        }
        entries.push(switch(at));
    }
    // Times of the dice's own would widen the batches.
    entries.retain(|entry| match entry {
        Entry::Observation(of) => match Times::of_observation(of) {
            Some(_) => matches!(of.event, Event::Scheduled(_)),
            None => true,
        },
        _ => true,
    });
    for segment_bytes in [1, u64::MAX] {
        let mut writer = Writer::new(&path)
            .replace(true)
            .segment_bytes(segment_bytes);
        writer.begin(&session()).expect("begun");
        entries.iter().for_each(|entry| give(&mut writer, entry));
        writer.finish().expect("finished");
        let mut reader = Reader::open(&path).expect("a run directory");
        let survey = reader.survey();
        assert!(survey[0].says_when());
        let times: Vec<(u64, u64)> = survey[0]
            .batches
            .iter()
            .filter_map(|of| of.times)
            .map(|of| (of.from.0, of.to.0))
            .collect();
        assert_eq!(times.len(), 5);
        assert_eq!((times[2], times[4].1), ((16_384, 24_575), 40_959));
        // The last of the third batch, and the first of the fourth.
        reader.read_between(0, HostNanos(24_575), HostNanos(24_576));
        let found: Vec<Entry> = reader
            .by_ref()
            .map(|entry| entry.expect("readable"))
            .filter(|entry| !matches!(entry, Entry::Header(_) | Entry::End(_)))
            .collect();
        let held = |entry: &&Entry| match entry {
            Entry::Observation(Observation {
                event: Event::Scheduled(of),
                ..
            }) => (16_384..32_768).contains(&of.at.0),
            _ => true,
        };
        let expected: Vec<Entry> = entries.iter().filter(held).cloned().collect();
        assert!(found == expected, "{:?}", difference(&found, &expected));
        let summary = reader.summary();
        assert_eq!(summary.passed_over.observations, 3 * 8_192);
        assert!(summary.is_complete(), "{summary:?}");
        assert_eq!(reader.directory(), 0);
        let all: u64 = std::fs::read_dir(&path)
            .expect("there")
            .flat_map(|of| std::fs::read_dir(of.expect("readable").path()))
            .flatten()
            .map(|of| of.expect("readable").metadata().expect("there").len())
            .sum();
        assert!(summary.bytes < all, "{} of {all} bytes", summary.bytes);
    }
}

/// What is passed over is not decoded: damage in it is not met. What is read is held to what it says.
#[test]
fn a_batch_that_is_passed_over_may_be_damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("part.lineage");
    let entries: Vec<Entry> = (0..30_000).map(switch).collect();
    write(&path, &entries, u64::MAX);
    let file = path.join("000001/switches.arrows");
    let mut bytes = std::fs::read(&file).expect("there");
    // In the middle: in the second or third of four batches.
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xaa);
    std::fs::write(&file, bytes).expect("written");
    let errors = |between: Option<(u64, u64)>| {
        let mut reader = Reader::open(&path).expect("a run directory");
        if let Some((from, to)) = between {
            reader.read_between(0, HostNanos(from), HostNanos(to));
        }
        let read: Vec<_> = reader.by_ref().collect();
        let found = read
            .iter()
            .filter(|of| matches!(of, Ok(Entry::Observation(_))));
        (found.count(), read.iter().filter(|of| of.is_err()).count())
    };
    assert!(errors(None).1 > 0);
    assert_eq!(errors(Some((29_000, 29_999))), (30_000 - 3 * 8_192, 0));
    assert_eq!(errors(Some((0, 10))), (8_192, 0));
}

#[test]
fn tables_that_are_not_wanted_are_left_out_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("less.lineage");
    let mut dice = Dice::new(4);
    let entries: Vec<Entry> = (0..2_000).map(|_| dice.entry()).collect();
    write(&path, &entries, 1);
    let mut reader = Reader::open(&path).expect("a run directory");
    reader.leave_out(&[Table::Operations, Table::Launches, Table::Names]);
    let found: Vec<Entry> = reader
        .by_ref()
        .map(|entry| entry.expect("readable"))
        .filter(|entry| !matches!(entry, Entry::Header(_) | Entry::End(_)))
        .collect();
    let is_left_out = |entry: &Entry| match entry {
        Entry::Row(_) => true,
        Entry::Observation(of) => matches!(of.event, Event::Operation(_)),
        _ => false,
    };
    let over = reader.summary().passed_over;
    let rows = entries
        .iter()
        .filter(|of| matches!(of, Entry::Row(_)))
        .count() as u64;
    // What the columns cannot hold is among the facts, and read.
    let rows_found = found
        .iter()
        .filter(|of| matches!(of, Entry::Row(_)))
        .count() as u64;
    assert_eq!(over.rows + rows_found, rows);
    assert!(over.rows > rows / 2);
    let others = |all: &[Entry]| all.iter().filter(|of| !is_left_out(of)).count();
    assert_eq!(others(&found), others(&entries));
    assert!(reader.summary().is_complete());
}
