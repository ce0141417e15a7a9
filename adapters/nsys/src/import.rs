//! From a database to a recording.

use std::path::Path;

use lineage_import::{Collector, Recorder, Recording, Settings};

use crate::about::{self, GraphTrace};
use crate::activities::{COPIES, GRAPHS, KERNELS, SETS};
use crate::calls::CALLS;
use crate::database::Database;
use crate::host::{self, OS_CALLS};
use crate::names::Names;
use crate::order::{EVENTS, GRAPH_NODES, WAITS};
use crate::processes::Processes;
use crate::progress::{Meter, Progress};
use crate::ranges::RANGES;
use crate::reading::{Pass, Reading, Source};
use crate::tables::{Schema, Table};
use crate::waits::Waits;
use crate::{ImportError, Limits};

/// Calls and operations first, so that waits find their calls and the scheduler's events their
/// processes.
const FIRST: [Source; 7] = [CALLS, KERNELS, COPIES, SETS, GRAPHS, EVENTS, GRAPH_NODES];
/// What refers to them.
const THEN: [Source; 3] = [WAITS, OS_CALLS, RANGES];

/// Tables one of which every export has.
const TELLING: [&str; 5] = [
    "StringIds",
    "META_DATA_EXPORT",
    "EXPORT_META_DATA",
    "TARGET_INFO_SESSION_START_TIME",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
];

/// Imports an export of Nsight Systems.
///
/// The file is opened read-only and nothing is written beside it. `progress` is called now and then
/// while it is read.
///
/// # Errors
///
/// If the file is no export (what it is instead is said), is cut short or damaged, or would take
/// more work than a file of its size may; if a temporary file cannot be written. Rows that cannot be
/// used are no error: the recording counts them.
pub fn import(
    path: &Path,
    settings: Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, ImportError> {
    import_within(path, settings, None, progress)
}

/// Like [`import`], with limits of the caller's; `None` for those of the file's size.
///
/// # Errors
///
/// As [`import`]'s.
pub fn import_within(
    path: &Path,
    settings: Settings,
    limits: Option<Limits>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, ImportError> {
    read(&Database::open(path, limits)?, settings, progress)
}

/// Imports an export that is in memory. It is copied once.
///
/// # Errors
///
/// As [`import`]'s.
pub fn from_bytes(
    bytes: &[u8],
    settings: Settings,
    limits: Option<Limits>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, ImportError> {
    read(&Database::from_bytes(bytes, limits)?, settings, progress)
}

fn read(
    database: &Database,
    settings: Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, ImportError> {
    let schema = Schema::read(database)?;
    if !TELLING.iter().any(|table| schema.has(table)) {
        return Err(ImportError::NotAnExport);
    }
    let mut collector = Collector::new(Recorder::NsightSystems, settings);
    let names = Names::open(database, &schema, &mut collector)?;
    let mut reading = Reading {
        collector,
        names,
        processes: Processes::read(database, &schema)?,
        waits: Waits::default(),
        meter: Meter::new(database.bytes, progress),
        nameless: 0,
    };
    let [first, then] = [
        present(database, &schema, &FIRST)?,
        present(database, &schema, &THEN)?,
    ];
    let scheduled = schema.table(database, host::SCHEDULED)?;
    let tables = first.iter().chain(&then).map(|(_, table)| table);
    for table in tables.chain(&scheduled) {
        reading.meter.expect(database, table);
    }
    describe(database, &schema, &mut reading)?;
    read_sources(database, &first, &mut reading)?;
    read_sources(database, &then, &mut reading)?;
    if let Some(table) = &scheduled {
        host::read_scheduled(database, &schema, table, &mut reading)?;
    }
    about::read_devices(database, &schema, &mut reading)?;
    about::count_others(database, &schema, &mut reading)?;
    if reading.waits.forgotten > 0 {
        let note = format!(
            "of the calls that wait, {} came after as many as are remembered: what they wait for is unknown",
            reading.waits.forgotten
        );
        reading.collector.note(note);
    }
    reading.meter.finish();
    Ok(reading.collector.finish()?)
}

/// The sources whose tables the file has.
fn present<'s>(
    database: &Database,
    schema: &Schema,
    sources: &'s [Source],
) -> Result<Vec<(&'s Source, Table)>, ImportError> {
    let mut found = Vec::with_capacity(sources.len());
    for source in sources {
        if let Some(table) = schema.table(database, source.table)? {
            found.push((source, table));
        }
    }
    Ok(found)
}

/// Reads tables: first the rows that name their process, then the others.
fn read_sources(
    database: &Database,
    sources: &[(&Source, Table)],
    reading: &mut Reading<'_>,
) -> Result<(), ImportError> {
    let mut again = Vec::new();
    for (source, table) in sources {
        let names_processes = table.has(source.process_column);
        if names_processes {
            reading.nameless = 0;
            (source.read)(database, table, reading, Pass::Named)?;
        }
        if !names_processes || reading.nameless > 0 {
            again.push((source, table));
        }
    }
    for (source, table) in again {
        let only = reading.processes.only(&mut reading.collector);
        (source.read)(database, table, reading, Pass::Nameless(only))?;
    }
    Ok(())
}

/// Says what the file says of itself, and what it cannot say.
fn describe(
    database: &Database,
    schema: &Schema,
    reading: &mut Reading<'_>,
) -> Result<(), ImportError> {
    match about::schema_version(database, schema)? {
        Some(version) => {
            if let Some(note) = about::note_on_version(&version) {
                reading.collector.note(note);
            }
            reading.collector.version(format!("schema {version}"));
        }
        None => reading.collector.note(
            "the export does not say which schema it has: its tables are read by name all the same",
        ),
    }
    for name in &schema.not_tables {
        let source = FIRST
            .iter()
            .chain(&THEN)
            .find(|source| source.table == name);
        if let Some(source) = source {
            let note = format!("{} is no table but a view, and is not read", source.table);
            reading.collector.note(note);
        }
    }
    if about::graph_trace(database, schema)? == Some(GraphTrace::Graph) && schema.has(GRAPHS.table)
    {
        reading.collector.note(
            "graphs were traced as wholes: what ran inside of them is not in the file; `nsys profile --cuda-graph-trace=node` records it",
        );
    }
    about::read_diagnostics(database, schema, reading)
}
