//! SQLite and Parquet tables hold what was given: every entry once, every value exactly, null where there
//! is none.
#![cfg(any(feature = "sqlite", feature = "parquet"))]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{Dice, KINDS};
use lineage_arrow::export::ExportError;
use lineage_arrow::{Column, Table};
use lineage_core::evidence::Evidence;
use lineage_core::fault::FaultCode;
use lineage_core::id::*;
use lineage_core::ledger::{Counts, Entry};
use lineage_core::observation::*;
use lineage_core::row::{Binding, LooseFault, Row};

/// A cell as it is read back, whatever the form. Truth values are 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Null,
    Number(u64),
    Text(String),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Number(value.into())
    }
}

impl From<HostNanos> for Value {
    fn from(at: HostNanos) -> Self {
        Self::Number(at.0)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row by the names of its columns.
type Cells = BTreeMap<String, Value>;
/// Tables by their names.
type Tables = BTreeMap<&'static str, Vec<Cells>>;

fn columns(table: Table) -> impl Iterator<Item = &'static Column> {
    table.columns().iter()
}

/// Every table but the names: an export has its texts in place.
fn tables() -> impl Iterator<Item = Table> {
    Table::ALL
        .into_iter()
        .filter(|table| *table != Table::Names)
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use super::*;
    use lineage_arrow::export::Sqlite;
    use rusqlite::types::ValueRef;

    fn value(of: ValueRef<'_>) -> Value {
        match of {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Number(number.cast_unsigned()),
            ValueRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).expect("UTF-8")),
            other => panic!("no export has {other:?}"),
        }
    }

    pub(super) fn export(path: &Path, entries: &[Entry]) -> Result<Counts, ExportError> {
        let mut out = Sqlite::create(path)?;
        entries.iter().try_for_each(|entry| out.add(entry))?;
        out.finish()
    }

    pub(super) fn read(path: &Path) -> Tables {
        let database = rusqlite::Connection::open(path).expect("a database");
        let read = |table: Table| {
            let all = format!("SELECT * FROM {} ORDER BY rowid", table.name());
            let mut all = database.prepare(&all).expect("there is the table");
            let names: Vec<String> = all.column_names().map(str::to_owned).collect();
            let rows = all.query_map([], |row| {
                let cells = names.iter().enumerate();
                let cells = cells.map(|(at, name)| Ok((name.clone(), value(row.get_ref(at)?))));
                cells.collect::<rusqlite::Result<Cells>>()
            });
            let rows = rows.expect("readable").map(|row| row.expect("readable"));
            (table.name(), rows.collect())
        };
        tables().map(read).collect()
    }
}

#[cfg(feature = "parquet")]
mod parquet {
    use super::*;
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use ::parquet::record::Field;
    use lineage_arrow::Kind;
    use lineage_arrow::export::Parquet;

    /// The cell, which has its column's own type in the file.
    fn value(of: &Field, kind: Kind) -> Value {
        match (of, kind) {
            (Field::Null, _) => Value::Null,
            (Field::Bool(value), Kind::Bool) => (*value).into(),
            (Field::ULong(number), Kind::U64 | Kind::U32) => (*number).into(),
            (Field::Str(text), Kind::Name | Kind::Text) => text.as_str().into(),
            other => panic!("no column has {other:?}"),
        }
    }

    pub(super) fn export(path: &Path, entries: &[Entry]) -> Result<Counts, ExportError> {
        let mut out = Parquet::create(path)?;
        entries.iter().try_for_each(|entry| out.add(entry))?;
        out.finish()
    }

    pub(super) fn reader(
        folder: &Path,
        table: Table,
    ) -> Option<SerializedFileReader<std::fs::File>> {
        let file = folder.join(format!("{}.parquet", table.name()));
        let file = std::fs::File::open(file).ok()?;
        Some(SerializedFileReader::new(file).expect("a Parquet file"))
    }

    pub(super) fn read(folder: &Path) -> Tables {
        let read = |table: Table| {
            let Some(reader) = reader(folder, table) else {
                return (table.name(), Vec::new());
            };
            let rows = reader.get_row_iter(None).expect("rows").map(|row| {
                let row = row.expect("readable");
                let cells = row.get_column_iter().zip(columns(table));
                let cells = cells.map(|((name, field), column)| {
                    assert_eq!(name, column.name);
                    (name.clone(), value(field, column.kind))
                });
                cells.collect()
            });
            (table.name(), rows.collect())
        };
        tables().map(read).collect()
    }
}

/// Writes the entries in every form that is compiled, and gives what each holds.
fn exported(entries: &[Entry]) -> Vec<Tables> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut all = Vec::new();
    let mut counted = Vec::new();
    #[cfg(feature = "sqlite")]
    {
        let path = folder.path().join("run.sqlite");
        counted.push(sqlite::export(&path, entries).expect("written"));
        all.push(sqlite::read(&path));
    }
    #[cfg(feature = "parquet")]
    {
        let path = folder.path().join("run.parquet");
        counted.push(parquet::export(&path, entries).expect("written"));
        all.push(parquet::read(&path));
    }
    let many = |wanted: fn(&Entry) -> bool| entries.iter().filter(|of| wanted(of)).count() as u64;
    for counts in counted {
        assert_eq!(counts.rows, many(|of| matches!(of, Entry::Row(_))));
        assert_eq!(counts.faults, many(|of| matches!(of, Entry::Fault(_))));
        let observations = many(|of| matches!(of, Entry::Observation(_)));
        assert_eq!((counts.observations, counts.not_written), (observations, 0));
    }
    all
}

/// A row's cells, by hand: those of the table's columns that are not named are null.
fn cells(table: Table, named: &[(&str, Value)]) -> Cells {
    let mut cells: Cells = columns(table)
        .map(|column| (column.name.to_owned(), Value::Null))
        .collect();
    for (name, value) in named {
        let cell = cells.get_mut(*name);
        *cell.unwrap_or_else(|| panic!("no column {name}")) = value.clone();
    }
    cells
}

fn observed(process: u32, event: impl Into<Event>) -> Entry {
    Entry::Observation(Observation {
        process: ProcessOrdinal(process),
        event: event.into(),
    })
}

/// A row in which nothing is known.
fn bare() -> Row {
    let mut row = Dice::new(1).row();
    row.process = ProcessOrdinal(2);
    row.binding = Binding::Lost;
    (row.call, row.operation, row.graph) = (None, None, None);
    row.sources = lineage_core::row::JoinSources {
        external: None,
        callback: None,
        containment: None,
        reachable: None,
    };
    let unknown = Evidence::Unknown {
        why: lineage_core::evidence::Why::NotCollected,
    };
    for stage in [
        &mut row.stages.declared,
        &mut row.stages.ready,
        &mut row.stages.scope_enter,
        &mut row.stages.api_enter,
        &mut row.stages.api_exit,
        &mut row.stages.queued,
        &mut row.stages.submitted,
        &mut row.stages.start,
        &mut row.stages.end,
    ] {
        *stage = unknown;
    }
    row.faults = Vec::new();
    (row.after_retirement, row.supersedes) = (false, true);
    row
}

#[test]
fn each_value_is_as_it_was_given_and_null_where_there_was_none() {
    let full = HostNanos(u64::MAX);
    let (scope, bare_row) = (
        Scope {
            thread: ThreadKey {
                tid: u64::MAX,
                generation: u32::MAX,
            },
            attribution: Attribution::Epoch(LaunchEpoch::from_numbers(3, 7).expect("in range")),
            token: ScopeToken(0),
            entered: HostNanos(5),
            exited: full,
            task: None,
            boundary: true,
            pushed: false,
        },
        bare(),
    );
    let mut started = bare_row.clone();
    started.binding = Binding::Disputed(
        LaunchEpoch::from_numbers(1, 1).expect("in range"),
        LaunchEpoch::from_numbers(MAX_EPOCH_ID, MAX_VERSION).expect("in range"),
    );
    started.stages.start = Evidence::Observed {
        at: full,
        source: lineage_core::evidence::TimeSource::CuptiKernel,
    };
    started.faults = vec![FaultCode::L01, FaultCode::T03];
    let fault = LooseFault {
        process: ProcessOrdinal(0),
        code: FaultCode::L07,
        epoch: None,
        at: None,
        count: u64::MAX,
        detail: "a\n\"\0\u{1f600}".to_owned(),
    };
    let switch = Scheduled {
        tid: 0,
        at: HostNanos(0),
        cpu: None,
        running: false,
        off: None,
        state: Some(u32::MAX),
    };
    let entries = [
        observed(u32::MAX, scope),
        observed(0, switch),
        Entry::Row(bare_row),
        Entry::Row(started),
        Entry::Fault(fault),
    ];
    let unknown = "unknown:not_collected";
    let how = |start: &str| {
        let mut all = [unknown; 9];
        all[7] = start;
        Value::Text(all.join(" "))
    };
    let row = |order: u64, more: &[(&str, Value)]| {
        let common = [
            ("order", order.into()),
            ("process", 2_u32.into()),
            ("after_retirement", false.into()),
            ("supersedes", true.into()),
        ];
        cells(Table::Launches, &[&common, more].concat())
    };
    let expected = [
        (
            "scopes",
            vec![cells(
                Table::Scopes,
                &[
                    ("order", 0_u64.into()),
                    ("process", u32::MAX.into()),
                    ("tid", u64::MAX.into()),
                    ("thread_generation", u32::MAX.into()),
                    ("attribution", (3_u64 << 24 | 7).into()),
                    ("token", 0_u64.into()),
                    ("entered_ns", 5_u64.into()),
                    ("exited_ns", u64::MAX.into()),
                    ("boundary", true.into()),
                    ("pushed", false.into()),
                ],
            )],
        ),
        (
            "switches",
            vec![cells(
                Table::Switches,
                &[
                    ("order", 1_u64.into()),
                    ("process", 0_u32.into()),
                    ("tid", 0_u64.into()),
                    ("at_ns", 0_u64.into()),
                    ("running", false.into()),
                    ("state", u32::MAX.into()),
                ],
            )],
        ),
        (
            "launches",
            vec![
                row(2, &[("binding", "lost".into()), ("how", how(unknown))]),
                row(
                    3,
                    &[
                        ("binding", "disputed".into()),
                        ("epoch", (1_u64 << 24 | 1).into()),
                        (
                            "other_epoch",
                            (MAX_EPOCH_ID << 24 | u64::from(MAX_VERSION)).into(),
                        ),
                        ("how", how("observed:cupti_kernel")),
                        ("start_ns", u64::MAX.into()),
                        ("faults", "L01,T03".into()),
                    ],
                ),
            ],
        ),
        (
            "faults",
            vec![cells(
                Table::Faults,
                &[
                    ("order", 4_u64.into()),
                    ("process", 0_u32.into()),
                    ("code", "L07".into()),
                    ("count", u64::MAX.into()),
                    ("detail", "a\n\"\0\u{1f600}".into()),
                ],
            )],
        ),
    ];
    for found in exported(&entries) {
        for (table, rows) in &expected {
            assert_eq!(&found[table], rows, "{table}");
        }
        let others = found
            .iter()
            .filter(|(table, _)| expected.iter().all(|of| of.0 != **table));
        assert!(others.clone().count() == 8 && others.clone().all(|(_, rows)| rows.is_empty()));
    }
}

#[test]
fn every_entry_is_in_one_table_once_and_in_every_form_alike() {
    let mut dice = Dice::new(31);
    let mut entries = Vec::new();
    for round in 0..10 {
        entries.extend((0..KINDS).map(|kind| observed(round % 3, dice.event(kind))));
        entries.push(Entry::Row(dice.row()));
        entries.push(Entry::Fault(dice.fault()));
    }
    let forms = exported(&entries);
    for found in &forms {
        let rows = found.values().flatten();
        let mut order: Vec<u64> = rows
            .map(|row| match row["order"] {
                Value::Number(order) => order,
                _ => panic!("a row without its place: {row:?}"),
            })
            .collect();
        order.sort_unstable();
        assert!(order.into_iter().eq(0..entries.len() as u64));
        for table in ["epochs", "calls", "operations", "launches", "facts"] {
            assert!(!found[table].is_empty(), "{table}");
        }
    }
    for other in &forms[1..] {
        for table in tables().map(Table::name) {
            for (one, other) in forms[0][table].iter().zip(&other[table]) {
                assert_eq!(one, other, "{table}");
            }
            assert_eq!(forms[0][table].len(), other[table].len(), "{table}");
        }
    }
}

/// Beyond what is held in memory at a time: names keep their texts, and rows their order.
#[test]
fn what_is_written_in_parts_is_one_table() {
    let long = |number: usize| LooseFault {
        process: ProcessOrdinal(0),
        code: FaultCode::L05,
        epoch: None,
        at: None,
        count: number as u64,
        detail: number.to_string().repeat(300_000),
    };
    // A part ends with 4 MiB of text.
    let entries: Vec<Entry> = (10..60)
        .flat_map(|number| {
            let named = Declared {
                epoch: LaunchEpoch::from_numbers(number as u64, 1).expect("in range"),
                thread: ThreadKey {
                    tid: 1,
                    generation: 1,
                },
                task: None,
                at: HostNanos(number as u64),
                name: format!("request {}", number % 7).into(),
                site: None,
            };
            [observed(0, named), Entry::Fault(long(number))]
        })
        .collect();
    for found in exported(&entries) {
        let (faults, epochs) = (&found["faults"], &found["epochs"]);
        assert_eq!((faults.len(), epochs.len()), (50, 50));
        for (at, number) in (10..60).enumerate() {
            assert_eq!(
                faults[at]["detail"],
                Value::Text(number.to_string().repeat(300_000))
            );
            assert_eq!(
                epochs[at]["name"],
                Value::Text(format!("request {}", number % 7))
            );
            assert_eq!(epochs[at]["order"], Value::Number(2 * at as u64));
        }
    }
    #[cfg(feature = "parquet")]
    {
        use ::parquet::file::reader::FileReader as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.parquet");
        parquet::export(&path, &entries).expect("written");
        let reader = parquet::reader(&path, Table::Faults).expect("there");
        assert!(reader.num_row_groups() > 1, "it was written in parts");
        assert!(
            parquet::reader(&path, Table::Links).is_none(),
            "no rows, no file"
        );
    }
}

#[test]
fn nothing_that_is_there_is_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let there = folder.path().join("there");
    std::fs::write(&there, "mine").expect("written");
    #[cfg(feature = "sqlite")]
    sqlite::export(&there, &[]).expect_err("is there");
    #[cfg(feature = "parquet")]
    parquet::export(&there, &[]).expect_err("is there");
    assert_eq!(std::fs::read(&there).expect("there"), b"mine");
}
