//! Whatever is in a file, its import ends soon: with an error that says what is wrong, or with
//! counts of what could not be used.

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{CALLS, Export, KERNELS, PROCESS, STRINGS, THREAD, skipped};
use lineage_import::{Recording, Settings, Skip};
use lineage_nsys::{ImportError, Limits};
use tempfile::TempDir;

/// More than any of these files takes on a slow and busy machine.
const SOON: Duration = Duration::from_secs(20);

fn import(path: &Path) -> Result<Recording, ImportError> {
    lineage_nsys::import(path, Settings::default(), &mut |_| {})
}

fn from_bytes(bytes: &[u8]) -> Result<Recording, ImportError> {
    let limits = Limits::for_file_of(bytes.len() as u64).within(SOON);
    lineage_nsys::from_bytes(bytes, Settings::default(), Some(limits), &mut |_| {})
}

/// Writes a file, and what its import says.
fn error_of(name: &str, bytes: &[u8]) -> String {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("a file");
    import(&path).expect_err("no export").to_string()
}

/// An export with a call and a kernel.
fn sound() -> Export {
    let export = Export::new();
    export.run(CALLS).run(KERNELS);
    export.launch(THREAD, 41).kernel(PROCESS, 41);
    export
}

#[test]
fn what_is_no_database_is_said() {
    for (name, bytes, part) in [
        ("a.sqlite", &b""[..], "empty"),
        ("a.sqlite", b"SQLite format", "cut short"),
        (
            "a.sqlite",
            b"\x8f\x01\xfe\x22 encrypted or not a database",
            "encrypted",
        ),
        ("a.json", b"{\"traceEvents\": []}", "JSON"),
        ("a.json.gz", b"\x1f\x8b\x08\x00rest", "gzip"),
        (
            "report1.nsys-rep",
            b"whatever it begins with",
            "nsys export --type sqlite",
        ),
        (
            "report1.qdrep",
            b"whatever it begins with",
            "nsys export --type sqlite",
        ),
    ] {
        let error = error_of(name, bytes);
        assert!(error.contains(part), "{name}: {error}");
    }
    let folder = TempDir::new().expect("a folder");
    assert!(matches!(import(folder.path()), Err(ImportError::Io(_))));
    let missing = folder.path().join("missing.sqlite");
    assert!(matches!(import(&missing), Err(ImportError::Io(_))));
}

#[test]
fn a_database_of_somebody_elses_is_no_export() {
    let export = Export::empty();
    export.run("create table rocpd_api (id integer)");
    assert!(matches!(export.import(), Err(ImportError::NotAnExport)));
}

#[test]
fn a_header_alone_is_not_enough() {
    let mut bytes = sound().bytes();
    bytes[100..].fill(0xa5);
    let error = from_bytes(&bytes).expect_err("a damaged database");
    assert!(matches!(error, ImportError::Damaged { .. }), "{error:?}");
}

#[test]
fn a_file_cut_at_any_place_is_an_error() {
    let bytes = sound().bytes();
    for length in (0..bytes.len()).step_by(97) {
        let Err(error) = from_bytes(&bytes[..length]) else {
            panic!("{length} of {} bytes are no export", bytes.len());
        };
        assert!(
            matches!(error, ImportError::Empty | ImportError::Truncated { .. }),
            "{length}: {error:?}"
        );
    }
    assert!(from_bytes(&bytes).is_ok());
}

/// The header of an old writer does not say how long the file is.
#[test]
fn a_cut_that_the_header_does_not_show_is_an_error_or_less() {
    let mut bytes = sound().bytes();
    bytes[92..96].fill(0);
    let whole = from_bytes(&bytes).expect("an export").holdings().clone();
    for length in (100..bytes.len()).step_by(97) {
        let started = Instant::now();
        if let Ok(recording) = from_bytes(&bytes[..length]) {
            let calls = recording.holdings().sum(|process| process.api_calls);
            assert!(calls <= whole.sum(|process| process.api_calls));
        }
        assert!(started.elapsed() < SOON);
    }
}

/// Numbers that look random and are the same each time (Marsaglia's xorshift).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn damaged_bytes_never_panic_nor_hang() {
    let export = sound();
    export.run("create table NVTX_EVENTS (start integer, end integer, eventType integer, text text, globalTid integer, textId integer)");
    export.run(&format!(
        "insert into NVTX_EVENTS values (1, 2, 59, 'a', {THREAD}, null)"
    ));
    let sound = export.bytes();
    let mut state = 0x5eed_0001;
    let (mut errors, mut recordings) = (0, 0);
    for _ in 0..600 {
        let mut bytes = sound.clone();
        for _ in 0..=random(&mut state) % 8 {
            let at = random(&mut state) as usize % bytes.len();
            bytes[at] = random(&mut state) as u8;
        }
        let started = Instant::now();
        match from_bytes(&bytes) {
            Ok(_) => recordings += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                errors += 1;
            }
        }
        assert!(started.elapsed() < SOON);
    }
    assert_eq!(errors + recordings, 600);
    assert!(
        errors > 0 && recordings > 0,
        "{errors} errors, {recordings} recordings"
    );
}

/// A view that would give a billion rows, under the name of a table.
#[test]
fn a_view_in_place_of_a_table_is_not_read() {
    let export = Export::new();
    export.run(CALLS).launch(THREAD, 41);
    export.run(
        "create view CUPTI_ACTIVITY_KIND_KERNEL as with recursive n(i) as \
         (select 1 union all select i + 1 from n where i < 1000000000) \
         select i as start, i as end, 0 as deviceId, 1 as contextId, 7 as streamId, i as correlationId from n, n as m",
    );
    let started = Instant::now();
    let holdings = export.holdings();
    assert!(started.elapsed() < SOON);
    assert_eq!(holdings.sum(|process| process.api_calls), 1);
    assert_eq!(holdings.sum(|process| process.kernels), 0);
    let notes = &holdings.notes;
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("CUPTI_ACTIVITY_KIND_KERNEL is no table")),
        "{notes:?}"
    );
}

#[test]
fn a_virtual_table_in_place_of_a_table_is_not_read() {
    let export = Export::new();
    export.run(
        "create virtual table CUPTI_ACTIVITY_KIND_KERNEL using fts5(start, end, correlationId)",
    );
    export.run("insert into CUPTI_ACTIVITY_KIND_KERNEL values (1, 2, 3)");
    let holdings = export.holdings();
    assert!(holdings.processes.is_empty());
    assert!(
        holdings
            .notes
            .iter()
            .any(|note| note.contains("is no table"))
    );
}

/// A column that is computed when it is read: an expression of the file's would run.
#[test]
fn a_generated_column_is_not_read() {
    let export = Export::new();
    export.run(
        "create table CUPTI_ACTIVITY_KIND_KERNEL (globalPid integer, correlationId integer, \
         start integer generated always as (length(printf('%.*c', 90000000, 'x'))) virtual, end integer)",
    );
    export.run(&format!(
        "insert into CUPTI_ACTIVITY_KIND_KERNEL (globalPid, correlationId, end) values ({PROCESS}, 3, 9)"
    ));
    let started = Instant::now();
    let holdings = export.holdings();
    assert!(started.elapsed() < SOON);
    let process = &holdings.processes[0];
    assert_eq!((process.kernels, process.operations_without_times), (1, 1));
}

/// A view under the entry of a table: SQLite checks that an entry is what it says.
#[test]
fn an_entry_of_the_schema_that_is_something_else_is_an_error() {
    let export = sound();
    export.run("create view sham as select 1");
    export.run(
        "pragma writable_schema = on; \
         update sqlite_master set type = 'table', rootpage = 2 where name = 'sham'; \
         pragma writable_schema = off;",
    );
    let error = export.import().expect_err("a damaged schema");
    assert!(matches!(error, ImportError::Damaged { .. }), "{error:?}");
}

#[test]
fn a_schema_of_very_many_tables_is_an_error() {
    // Written into the list of tables itself, which takes a moment; statements take many.
    let with_tables = |tables: u32| {
        let export = sound();
        export.run(&format!(
            "pragma writable_schema = on; \
             with recursive n(i) as (select 1 union all select i + 1 from n where i < {tables}) \
             insert into sqlite_master select 'table', 't' || i, 't' || i, 2, 'CREATE TABLE t' || i || ' (a)' from n; \
             pragma writable_schema = off;"
        ));
        export.import()
    };
    assert!(with_tables(1_500).is_ok());
    let started = Instant::now();
    let error = with_tables(2_500).expect_err("too many tables");
    assert!(started.elapsed() < SOON);
    let ImportError::Damaged { message, .. } = error else {
        panic!("{error:?}");
    };
    assert!(message.contains("too many"), "{message}");
}

/// An inner page of a b-tree: so many children, all of them the same page.
fn inner_page(page_bytes: usize, child: u32, children: usize) -> Vec<u8> {
    let mut page = vec![0; page_bytes];
    let cells = children - 1;
    // A cell is the child's number and a row id of one byte.
    let first_cell = page_bytes - 5 * cells;
    page[0] = 5;
    page[3..5].copy_from_slice(&(cells as u16).to_be_bytes());
    page[5..7].copy_from_slice(&(first_cell as u16).to_be_bytes());
    page[8..12].copy_from_slice(&child.to_be_bytes());
    for cell in 0..cells {
        let at = first_cell + 5 * cell;
        page[12 + 2 * cell..14 + 2 * cell].copy_from_slice(&(at as u16).to_be_bytes());
        page[at..at + 4].copy_from_slice(&child.to_be_bytes());
        page[at + 4] = cell as u8 & 0x7f;
    }
    page
}

/// Three levels of pages, each 500 times the next: 125 million times the rows of one page, in a file
/// of some 50 kB.
#[test]
fn pages_that_stand_for_billions_of_rows_are_an_error() {
    const PAGE: usize = 4_096;
    let export = Export::new();
    export.run(CALLS).launch(THREAD, 41);
    // Three more pages, which become the three levels.
    export.run("create table a (x); create table b (x); create table c (x)");
    let connection = rusqlite::Connection::open(export.path()).expect("the file");
    let root = |table: &str| -> u32 {
        let select = "select rootpage from sqlite_master where name = ?1";
        let found = connection.query_row(select, [table], |row| row.get(0));
        found.expect("the table's root page")
    };
    let [calls, a, b] = ["CUPTI_ACTIVITY_KIND_RUNTIME", "a", "b"].map(root);
    let mut bytes = export.bytes();
    let page_bytes = u16::from_be_bytes([bytes[16], bytes[17]]);
    assert_eq!(usize::from(page_bytes), PAGE);
    let at = |page: u32| (page as usize - 1) * PAGE;
    // The rows move to page `a`; `b` points to them, and the table's root to `b`.
    bytes.copy_within(at(calls)..at(calls) + PAGE, at(a));
    for (page, child) in [(b, a), (calls, b)] {
        bytes[at(page)..at(page) + PAGE].copy_from_slice(&inner_page(PAGE, child, 500));
    }
    let started = Instant::now();
    let error = from_bytes(&bytes).expect_err("a hostile database");
    assert!(started.elapsed() < SOON);
    let ImportError::TooManyRows { table, limit } = error else {
        panic!("{error:?}");
    };
    assert_eq!(table, "CUPTI_ACTIVITY_KIND_RUNTIME");
    assert_eq!(limit, bytes.len() as u64 / 8 + 1_000);
}

#[test]
fn time_that_is_up_is_an_error() {
    let export = sound();
    export.run("with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into CUPTI_ACTIVITY_KIND_RUNTIME select i, i + 1, 0, null, i, 1, 0, null from n");
    let limits = Limits::for_file_of(1 << 20).within(Duration::ZERO);
    let error = lineage_nsys::import_within(
        &export.path(),
        Settings::default(),
        Some(limits),
        &mut |_| {},
    )
    .expect_err("no time");
    assert!(
        matches!(error, ImportError::TooMuchWork { .. }),
        "{error:?}"
    );
}

#[test]
fn a_value_that_is_too_long_is_an_error() {
    let export = sound();
    // 17 MiB.
    export.run("update StringIds set value = printf('%.*c', 17825792, 'x') where id = 2");
    let error = export.import().expect_err("a name of 17 MiB");
    let ImportError::ValueTooLong { table, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(table, "StringIds");
}

#[test]
fn a_log_or_a_journal_beside_the_file_is_an_error() {
    let export = sound();
    for (suffix, part) in [
        ("-wal", "journal_mode=delete"),
        ("-journal", "export once more"),
    ] {
        let beside = format!("{}{suffix}", export.path().display());
        fs::write(&beside, b"something").expect("a file");
        let error = export.import().expect_err("not all of it").to_string();
        assert!(
            error.contains(part) && error.contains("report.sqlite-"),
            "{error}"
        );
        fs::write(&beside, b"").expect("a file");
        assert!(export.import().is_ok(), "an empty one holds nothing");
        fs::remove_file(&beside).expect("the file");
    }
}

/// A database that once had a write-ahead log and was left in order.
#[test]
fn a_database_in_wal_mode_without_a_log_is_read() {
    let export = sound();
    let folder = TempDir::new().expect("a folder");
    let copy = folder.path().join("copy.sqlite");
    let mut bytes = export.bytes();
    // Versions of the format for writing and reading: 2 is the write-ahead log.
    (bytes[18], bytes[19]) = (2, 2);
    fs::write(&copy, bytes).expect("a file");
    let recording = import(&copy).expect("an export");
    assert_eq!(recording.holdings().sum(|process| process.kernels), 1);
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "nothing is written beside it: {left:?}");
}

#[test]
fn a_file_that_another_connection_has_locked_is_read() {
    let export = sound();
    let connection = rusqlite::Connection::open(export.path()).expect("the file");
    connection.execute_batch("begin exclusive").expect("a lock");
    assert_eq!(export.holdings().sum(|process| process.kernels), 1);
}

/// Columns of any type: SQLite keeps what it is given where it cannot convert it.
#[test]
fn values_of_wrong_types_are_counted_and_the_rest_is_kept() {
    let export = sound();
    for (field, value) in [
        // Of a call: without its id it is of no use, without a time or a name it is of some.
        ("correlationId", "'forty-one'"),
        ("correlationId", "x'0102'"),
        ("correlationId", "-1"),
        ("correlationId", "4294967296"),
        ("globalTid", "'a thread'"),
        ("returnValue", "'failed'"),
        ("start", "'soon'"),
        ("end", "1.5"),
        ("start", "-5"),
        ("nameId", "'cudaLaunchKernel'"),
    ] {
        export.launch(THREAD, 50);
        export.run(&format!(
            "update CUPTI_ACTIVITY_KIND_RUNTIME set {field} = {value} where rowid = (select max(rowid) from CUPTI_ACTIVITY_KIND_RUNTIME)"
        ));
    }
    let holdings = export.holdings();
    // The sound one, and the four whose time or name cannot be used.
    assert_eq!(holdings.sum(|process| process.api_calls), 5);
    // Two ids, the thread and the result.
    assert_eq!(skipped(&holdings, Skip::WrongType), 4);
    assert_eq!(skipped(&holdings, Skip::BadNumber), 1);
    assert_eq!(skipped(&holdings, Skip::IdTooLarge), 1);
    assert_eq!(skipped(&holdings, Skip::Field), 4);
    assert_eq!(holdings.lost_records(), 6);
}

#[test]
fn kernels_of_wrong_types_are_counted_and_the_rest_is_kept() {
    let export = sound();
    for (field, value) in [
        ("deviceId", "'gpu'"),
        ("streamId", "-7"),
        ("correlationId", "2.5"),
        ("globalPid", "x'00'"),
        ("gridX", "-1"),
        ("graphNodeId", "'node'"),
        ("start", "-9223372036854775808"),
        ("end", "9223372036854775807"),
    ] {
        export.kernel(PROCESS, 50);
        export.run(&format!(
            "update CUPTI_ACTIVITY_KIND_KERNEL set {field} = {value} where rowid = (select max(rowid) from CUPTI_ACTIVITY_KIND_KERNEL)"
        ));
    }
    let holdings = export.holdings();
    // The sound one, three with a field less, and one that ends very late.
    assert_eq!(holdings.sum(|process| process.kernels), 5);
    assert_eq!(skipped(&holdings, Skip::WrongType), 3);
    assert_eq!(skipped(&holdings, Skip::BadNumber), 1);
    assert_eq!(skipped(&holdings, Skip::Field), 3);
}

#[test]
fn other_rows_that_cannot_be_used_are_no_losses() {
    let export = sound();
    export.run("create table SCHED_EVENTS (start integer, cpu integer, isSchedIn integer, globalTid integer)");
    export.run(&format!("insert into SCHED_EVENTS values (null, 1, 1, {THREAD}), (5, 1, 'in', {THREAD}), (5, 1, 1, null), (-5, 1, 1, {THREAD})"));
    export.run("create table NVTX_EVENTS (start integer, end integer, eventType integer, text text, globalTid integer, textId integer)");
    export.run(&format!("insert into NVTX_EVENTS values ('x', 2, 59, 'a', {THREAD}, null), (1, 2, 'push', 'a', {THREAD}, null)"));
    let holdings = export.holdings();
    assert_eq!(skipped(&holdings, Skip::OtherRecord), 6);
    assert_eq!(holdings.lost_records(), 0);
}

/// Each row of a process of its own.
#[test]
fn very_many_processes_are_bounded() {
    let export = Export::new();
    export.run(CALLS);
    export.run(&format!("with recursive n(i) as (select 0 union all select i + 1 from n where i < 6999) insert into CUPTI_ACTIVITY_KIND_RUNTIME select i, i + 1, 0, {THREAD} + (i << 24), 1, 1, 0, null from n"));
    let holdings = export.holdings();
    let kept = holdings.processes.len() as u64;
    assert!(kept < 7_000, "{kept}");
    assert_eq!(holdings.sum(|process| process.api_calls), kept);
    assert_eq!(skipped(&holdings, Skip::NoProcess), 7_000 - kept);
}

#[test]
fn texts_of_the_recorders_cannot_command_a_terminal() {
    let export = Export::empty();
    export.run(STRINGS);
    export.run("create table DIAGNOSTIC_EVENT (timestamp integer, timestampType integer, source integer, severity integer, text text, globalPid integer)");
    export.run("insert into DIAGNOSTIC_EVENT values (0, 0, 0, 2, 'red ' || char(27) || '[31m' || char(10) || 'next', null), (0, 0, 0, 1, 'small talk', null), (0, 0, 0, 3, x'ff', null)");
    export.run("with recursive n(i) as (select 1 union all select i + 1 from n where i < 500) insert into DIAGNOSTIC_EVENT select 0, 0, 0, 3, 'error ' || i, null from n");
    let holdings = export.holdings();
    assert_eq!(
        holdings.notes[1],
        "a warning of the recorder's: red [31m next"
    );
    // The missing version, 32 texts, and how many more there are: 501 - 32.
    assert_eq!(holdings.notes.len(), 34);
    assert!(
        holdings.notes[33].ends_with(": 469"),
        "{}",
        holdings.notes[33]
    );
}
