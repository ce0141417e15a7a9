//! Writers and readers of different versions: an older writer's directory is read, a newer one's as far
//! as it can be understood, with a count of what cannot, and one of a newer schema is refused by name.
//!
//! A table's stream is changed here with arrow-rs, not with the code under test.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use common::{Dice, KINDS, files, give, session};
use lineage_arrow::{ReadErrorKind, Reader, Summary, Writer};
use lineage_core::ledger::Entry;
use lineage_core::observation::{Event, Observation};
use lineage_core::source::Sink;

type Files = BTreeMap<String, Vec<u8>>;

const JOURNAL: &str = "000001/batches.jsonl";

/// A directory of one batch: a call, a handoff and a few rows, and what was given to it.
fn written() -> (Files, Vec<Entry>) {
    // Of some seeds a row is one that only a line of JSON can hold.
    let mut all = (21..).map(written_by);
    let all_in_columns = |files: &Files| {
        let journal = String::from_utf8_lossy(&files[JOURNAL]);
        journal.contains("\"launches\":{\"rows\":6,")
    };
    all.find(|(files, _)| all_in_columns(files))
        .expect("there is such a seed")
}

fn written_by(seed: u64) -> (Files, Vec<Entry>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.lineage");
    let mut dice = Dice::new(seed);
    let mut entries: Vec<Entry> = [13, 9, 15, 29, 29]
        .into_iter()
        .map(|kind| Entry::Observation(Observation::live(dice.event(kind))))
        .collect();
    entries.extend((0..6).map(|_| Entry::Row(dice.row())));
    let mut writer = Writer::new(&path);
    writer.begin(&session()).expect("begun");
    entries.iter().for_each(|entry| give(&mut writer, entry));
    writer.finish().expect("finished");
    (files(&path), entries)
}

/// What is read: entries, errors, summary.
fn read(files: Files) -> (Vec<Entry>, Vec<ReadErrorKind>, Summary) {
    let mut reader = Reader::in_memory(files).expect("opens");
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    for entry in &mut reader {
        match entry {
            Ok(Entry::Header(_) | Entry::End(_)) => {}
            Ok(entry) => entries.push(entry),
            Err(error) => errors.push(error.kind),
        }
    }
    (entries, errors, reader.summary().clone())
}

/// The table's only batch, changed.
fn change(files: &mut Files, table: &str, how: impl FnOnce(&RecordBatch) -> RecordBatch) {
    let file = format!("000001/{table}.arrows");
    let bytes = files[&file].as_slice();
    let stream = StreamReader::try_new(bytes, None).expect("a stream");
    let batches: Vec<RecordBatch> = stream.map(|batch| batch.expect("a batch")).collect();
    assert_eq!(batches.len(), 1, "{table} has one batch");
    let changed = how(&batches[0]);
    let zstd = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD));
    let options = zstd.expect("compiled with zstd");
    let schema = changed.schema();
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &schema, options).expect("a stream");
    writer.write(&changed).expect("in memory");
    let length = writer.get_ref().len();
    files.insert(file, writer.into_inner().expect("in memory"));
    let journal = String::from_utf8(files[JOURNAL].clone()).expect("text");
    let mut lines: Vec<serde_json::Value> = journal
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let part = &mut lines[0]["batch"]["tables"][table];
    assert!(part.is_object(), "{journal}");
    part["bytes"] = length.into();
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    files.insert(JOURNAL.to_owned(), lines.concat().into_bytes());
}

/// The batch with columns before these of its own.
fn with_columns(batch: &RecordBatch, more: Vec<(&str, DataType, ArrayRef)>) -> RecordBatch {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    let mut more = more.into_iter();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        // Between the known ones, too: places are not what columns are known by.
        if let Some((name, kind, cells)) = more.next() {
            fields.push(Arc::new(Field::new(name, kind, true)));
            columns.push(cells);
        }
        fields.push(Arc::clone(field));
        columns.push(Arc::clone(column));
    }
    let schema = Schema::new_with_metadata(fields, batch.schema().metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).expect("of equal length")
}

/// The batch with this column replaced, or without it.
fn with(batch: &RecordBatch, name: &str, new: Option<(Field, ArrayRef)>) -> RecordBatch {
    let at = batch.schema().index_of(name).expect("there is the column");
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    let mut columns = batch.columns().to_vec();
    match new {
        Some((field, column)) => {
            fields[at] = Arc::new(field);
            columns[at] = column;
        }
        None => {
            fields.remove(at);
            columns.remove(at);
        }
    }
    let schema = Schema::new_with_metadata(fields, batch.schema().metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).expect("of equal length")
}

#[test]
fn what_a_stream_is_changed_to_here_is_read_as_the_writers_own() {
    let (mut same, entries) = written();
    change(&mut same, "launches", RecordBatch::clone);
    let (found, errors, summary) = read(same);
    assert!(found == entries && errors.is_empty() && summary.is_complete());
}

#[test]
fn a_newer_writers_columns_are_left_aside_and_counted() {
    let (mut newer, entries) = written();
    change(&mut newer, "launches", |batch| {
        let rows = batch.num_rows();
        let texts: Vec<Option<&str>> = (0..rows).map(|row| [None, Some("x")][row % 2]).collect();
        with_columns(
            batch,
            vec![
                (
                    "cluster",
                    DataType::UInt64,
                    Arc::new(UInt64Array::from(vec![u64::MAX; rows])),
                ),
                (
                    "priority",
                    DataType::Int32,
                    Arc::new(Int32Array::from(vec![None; rows])),
                ),
                (
                    "cooperative",
                    DataType::Boolean,
                    Arc::new(BooleanArray::from(vec![true; rows])),
                ),
                (
                    "partition",
                    DataType::Utf8,
                    Arc::new(StringArray::from(texts)),
                ),
            ],
        )
    });
    let (found, errors, summary) = read(newer);
    assert!(found == entries, "what is known is read as it was");
    assert!(errors.is_empty(), "{errors:?}");
    let counted: Vec<(&str, u64)> = summary
        .unknown_columns
        .iter()
        .map(|(name, rows)| (name.as_str(), *rows))
        .collect();
    let columns = ["cluster", "cooperative", "partition", "priority"];
    let expected: Vec<(String, u64)> = columns
        .iter()
        .map(|name| (format!("launches.{name}"), 6))
        .collect();
    let expected: Vec<(&str, u64)> = expected.iter().map(|(a, b)| (a.as_str(), *b)).collect();
    assert_eq!(counted, expected);
    assert!(!summary.is_complete(), "not all that was written was read");
    assert_eq!(summary.skipped(), 0, "no entry was skipped");
    let notes = summary.notes().concat();
    assert!(notes.contains("\"launches.cluster\" of 6 rows"), "{notes}");
}

#[test]
fn a_column_that_an_older_writer_did_not_have_is_null() {
    let (mut older, mut entries) = written();
    let newer = [
        "task",
        "registers_per_thread",
        "shared_bytes",
        "blocks_per_cluster",
    ];
    change(&mut older, "launches", |batch| {
        let batches = newer.iter();
        batches.fold(batch.clone(), |batch, name| with(&batch, name, None))
    });
    let mut footprints = 0;
    for entry in &mut entries {
        if let Entry::Row(row) = entry {
            if let Some(call) = &mut row.call {
                call.task = None;
            }
            if let Some(operation) = &mut row.operation {
                footprints += usize::from(operation.footprint.take().is_some());
            }
        }
    }
    assert!(footprints > 0, "there was something to leave out");
    let (found, errors, summary) = read(older);
    assert!(found == entries, "all the rest is as it was");
    assert!(errors.is_empty() && summary.is_complete(), "{errors:?}");
}

#[test]
fn a_row_without_what_every_row_has_is_left_aside_and_said() {
    let (mut strange, entries) = written();
    change(&mut strange, "switches", |batch| {
        with(batch, "running", None)
    });
    let (found, errors, summary) = read(strange);
    let others: Vec<&Entry> = entries
        .iter()
        .filter(
            |of| !matches!(of, Entry::Observation(of) if matches!(of.event, Event::Scheduled(_))),
        )
        .collect();
    assert!(found.iter().eq(others), "the rest is read");
    assert_eq!(errors.len(), 2, "{errors:?}");
    for error in &errors {
        assert!(
            matches!(error, ReadErrorKind::Row { why, .. } if why.contains("`running` is missing")),
            "{error}"
        );
    }
    assert_eq!(summary.errors, 2);
}

#[test]
fn a_column_that_means_something_else_is_an_error_and_not_a_guess() {
    let plain = |kind| Field::new("start_ns", kind, true);
    let coded = |coding: &str| {
        let metadata = [("lineage.coding".to_owned(), coding.to_owned())];
        plain(DataType::Int64).with_metadata(std::collections::HashMap::from(metadata))
    };
    let zeros = |rows| Arc::new(Int64Array::from(vec![0; rows])) as ArrayRef;
    let texts = |rows| Arc::new(StringArray::from(vec!["0"; rows])) as ArrayRef;
    type Cells = fn(usize) -> ArrayRef;
    let changes: [(Field, Cells); 3] = [
        (plain(DataType::Int64), zeros),
        (coded("after:end_ns"), zeros),
        (plain(DataType::Utf8), texts),
    ];
    for (field, cells) in changes {
        let (mut strange, _) = written();
        let said = format!("{field}");
        change(&mut strange, "launches", |batch| {
            with(batch, "start_ns", Some((field, cells(batch.num_rows()))))
        });
        let (found, errors, _) = read(strange);
        assert!(found.is_empty(), "no row of the batch is made up: {said}");
        assert!(
            matches!(&errors[0], ReadErrorKind::Batch { why, .. } if why.contains("`start_ns` is not as this build knows it")),
            "{said}: {errors:?}"
        );
    }
}

#[test]
fn a_value_that_a_newer_writer_has_costs_its_row_alone_and_is_counted_by_its_name() {
    let (mut newer, entries) = written();
    change(&mut newer, "names", |batch| {
        let texts = batch.column(0).as_any().downcast_ref::<StringArray>();
        let texts = texts.expect("texts").iter();
        let newer: Vec<Option<&str>> = texts
            .map(|text| text.map(|text| if text == "sent" { "teleported" } else { text }))
            .collect();
        assert!(newer.contains(&Some("teleported")));
        let field = batch.schema().field(0).clone();
        with(
            batch,
            "text",
            Some((field, Arc::new(StringArray::from(newer)))),
        )
    });
    let (found, errors, summary) = read(newer);
    let others: Vec<&Entry> = entries
        .iter()
        .filter(|of| !matches!(of, Entry::Observation(of) if matches!(of.event, Event::Sent(_))))
        .collect();
    assert!(found.iter().eq(others));
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(summary.unknown["teleported"], 1);
    assert!(!summary.is_complete());
}

#[test]
fn a_newer_writers_tables_and_events_are_skipped_and_counted() {
    let (mut newer, entries) = written();
    let journal = String::from_utf8(newer[JOURNAL].clone()).expect("text");
    let more = "\"tables\":{\"clusters\":{\"rows\":3,\"bytes\":64},";
    let journal = journal
        .replace("\"tables\":{", more)
        .replace("\"observations\":5", "\"observations\":8");
    assert!(journal.contains("\"observations\":8"), "{journal}");
    newer.insert(JOURNAL.to_owned(), journal.into_bytes());
    change(&mut newer, "facts", |batch| {
        let at = batch.schema().index_of("json").expect("there");
        let texts = batch.column(at).as_any().downcast_ref::<StringArray>();
        let texts = texts.expect("texts").iter();
        let newer: Vec<Option<String>> = texts
            .map(|text| text.map(|text| text.replace("{\"named\":", "{\"renamed\":")))
            .collect();
        let field = batch.schema().field(at).clone();
        with(
            batch,
            "json",
            Some((field, Arc::new(StringArray::from(newer)))),
        )
    });
    let (found, errors, summary) = read(newer);
    let others: Vec<&Entry> = entries
        .iter()
        .filter(|of| !matches!(of, Entry::Observation(of) if matches!(of.event, Event::Named(_))))
        .collect();
    assert!(found.iter().eq(others));
    // What was skipped is what is missing from the end's count: that is no error.
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(summary.unknown["clusters"], 3);
    assert_eq!(summary.unknown["renamed"], 1);
    assert_eq!((summary.skipped(), summary.is_complete()), (4, false));
}

#[test]
fn a_newer_schema_is_refused_by_name_before_anything_of_it_is_read() {
    let (whole, _) = written();
    let meta = String::from_utf8(whole["meta.json"].clone()).expect("text");
    let with = |from: &str, to: &str| {
        assert!(meta.contains(from), "{meta}");
        let mut files = whole.clone();
        files.insert("meta.json".to_owned(), meta.replace(from, to).into_bytes());
        files
    };
    // What else a newer `meta.json` has need not be what this build knows.
    let newer = with("\"schema\": 1,", "\"schema\": 2, \"process\": 7,");
    let refused = Reader::in_memory(newer).expect_err("newer");
    assert!(
        matches!(&refused.kind, ReadErrorKind::NewerSchema { schema: 2, writer } if writer.starts_with("lineage-arrow")),
        "{refused}"
    );
    let text = refused.to_string();
    assert!(
        text.contains("schema 2, written by lineage-arrow"),
        "{text}"
    );
    assert!(text.contains("this build reads up to 1"), "{text}");
    let huge = with("\"schema\": 1,", "\"schema\": 18446744073709551615,");
    let refused = Reader::in_memory(huge).expect_err("newer").kind;
    assert!(matches!(refused, ReadErrorKind::NewerSchema { .. }));

    // A field that a newer writer added is no reason to refuse.
    let added = with("\"schema\": 1,", "\"schema\": 1, \"host\": {\"cpus\": 4},");
    let (found, errors, summary) = read(added);
    assert!(found.len() == 11 && errors.is_empty() && summary.is_complete());
}

/// A directory of schema 1 as the first version wrote it, and its entries as JSON: later versions read it
/// alike. `LINEAGE_WRITE_FIXTURE` writes both anew, which only a new schema may ask for.
#[test]
fn the_first_versions_directory_is_read_as_it_was() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema_1.lineage");
    if std::env::var_os("LINEAGE_WRITE_FIXTURE").is_some() {
        let mut writer = Writer::new(&path).replace(true);
        writer.begin(&session()).expect("begun");
        fixture().iter().for_each(|entry| give(&mut writer, entry));
        writer.finish().expect("finished");
        let lines: Vec<String> = fixture().iter().map(text_of).collect();
        let json = lines.join("\n") + "\n";
        std::fs::write(path.with_extension("jsonl"), json).expect("written");
    }
    let (found, errors, summary) = read(files(&path));
    let json = std::fs::read_to_string(path.with_extension("jsonl")).expect("there");
    let text: Vec<String> = found.iter().map(text_of).collect();
    assert_eq!(text, json.lines().collect::<Vec<_>>());
    assert!(errors.is_empty() && summary.is_complete(), "{errors:?}");
}

/// An entry as its line of the JSON-lines ledger, less the line's own key.
fn text_of(entry: &Entry) -> String {
    match entry {
        Entry::Observation(of) => serde_json::to_string(of),
        Entry::Row(of) => serde_json::to_string(of),
        Entry::Fault(of) => serde_json::to_string(of),
        _ => Ok(String::new()),
    }
    .expect("JSON")
}

fn fixture() -> Vec<Entry> {
    let mut dice = Dice::new(8);
    let mut entries: Vec<Entry> = (0..KINDS)
        .map(|kind| Entry::Observation(Observation::live(dice.event(kind))))
        .filter(|entry| text_of(entry).len() < 10_000)
        .collect();
    entries.extend((0..3).map(|_| Entry::Row(dice.row())));
    entries.push(Entry::Fault(dice.fault()));
    entries
}
