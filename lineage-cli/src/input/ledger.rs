//! Ledgers of lineage's own, as JSON lines or as run directories.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use lineage_arrow::Table;
use lineage_core::id::HostNanos;
use lineage_core::ledger::{Entry, Header, ReadSummary, Reader};
use lineage_core::observation::Observation;
use lineage_core::row::{LooseFault, Row};
use lineage_validator::printable;

use super::memory::Need;
use super::names::Names;
use super::{Progress, Refusal};
use crate::text::counted;

/// What was read of a ledger beside its entries.
pub(crate) struct Read {
    pub(crate) header: Header,
    pub(crate) summary: ReadSummary,
    /// Of a run directory: what its reader says of how it was read.
    notes: Vec<String>,
    /// Of a run directory: entries that its writer removed to keep within the size it was given.
    pub(crate) removed: u64,
    /// Of a run directory: rows that were not read, since no more was wanted.
    pub(crate) passed_over_rows: u64,
    /// Whether it is a run directory, or several.
    pub(crate) directory: bool,
    /// Whether all that the sessions wrote was read.
    pub(crate) complete: bool,
}

impl Read {
    /// What a person should know of how it was read; nothing where all is there.
    pub(crate) fn notes(&self) -> Vec<String> {
        if self.directory {
            return self.notes.clone();
        }
        let summary = &self.summary;
        let mut notes = Vec::new();
        if summary.last_line_truncated {
            notes.push("the last line was cut short, and is left aside".to_owned());
        }
        if !summary.ended {
            notes.push(
                "the file has no end line: its session was not shut down, or the file was cut short"
                    .to_owned(),
            );
        }
        if summary.not_written > 0 {
            notes.push(format!(
                "its writer says that it could not write {}",
                counted(summary.not_written, "entry", "entries")
            ));
        }
        for (kind, count) in &summary.unknown_kinds {
            let kind = printable(kind);
            let (lines, were) = (
                counted(*count, "line", "lines"),
                if *count == 1 { "was" } else { "were" },
            );
            notes.push(format!(
                "{lines} with `{kind}`, which this version does not know, {were} skipped"
            ));
        }
        notes
    }
}

/// A ledger in memory.
pub(crate) struct Ledger {
    pub(crate) read: Read,
    pub(crate) observations: Vec<Observation>,
    pub(crate) rows: Vec<Row>,
    pub(crate) faults: Vec<LooseFault>,
}

/// What is read of a ledger.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Of a run directory, of each process's: batches that reach into these times. Nothing is asked of
    /// the whole.
    pub(crate) between: Vec<(HostNanos, HostNanos)>,
    /// Of a run directory: tables of which nothing is wanted.
    pub(crate) without: Vec<Table>,
}

/// Reads a ledger, entry by entry. The first bad line or batch is refused: what a damaged file lacks
/// would show as faults.
pub(crate) fn read(path: &Path, mut each: impl FnMut(Entry)) -> Result<Read, Refusal> {
    read_wanted(path, &Wanted::default(), |_, entry| each(entry))
}

/// Reads what is wanted of a ledger, and no less, entry by entry with the number of the directory that it is
/// in; of a file, which has no batches to pass over, all.
pub(crate) fn read_wanted(
    path: &Path,
    wanted: &Wanted,
    mut each: impl FnMut(usize, Entry),
) -> Result<Read, Refusal> {
    if path.is_dir() {
        return read_directory(path, wanted, each);
    }
    let open = |source| Refusal::Open {
        file: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(open)?;
    let progress = Progress::of(path, file.metadata().map_err(open)?.len());
    let mut reader = Reader::new(BufReader::with_capacity(1 << 16, progress.reader(file)));
    let refuse = |error| Refusal::of(path, error);
    let header = match reader.next() {
        Some(Ok(Entry::Header(header))) => header,
        Some(Err(error)) => return Err(refuse(error)),
        // A reader begins with the header or an error.
        Some(Ok(_)) | None => {
            return Err(Refusal::Empty {
                file: path.to_owned(),
            });
        }
    };
    let mut names = Names::default();
    for entry in &mut reader {
        let mut entry = entry.map_err(refuse)?;
        names.share(&mut entry);
        each(0, entry);
    }
    let summary = reader.summary().clone();
    Ok(Read {
        header,
        complete: summary.is_complete(),
        summary,
        notes: Vec::new(),
        removed: 0,
        passed_over_rows: 0,
        directory: false,
    })
}

/// Reads a run directory, or those in a folder as one.
fn read_directory(
    path: &Path,
    wanted: &Wanted,
    mut each: impl FnMut(usize, Entry),
) -> Result<Read, Refusal> {
    /// Entries between two looks at how far it is.
    const STEP: u32 = 4_096;
    let mut reader = lineage_arrow::Reader::open(path).map_err(Refusal::RunDirectory)?;
    let header = reader.header();
    reader.leave_out(&wanted.without);
    for (directory, (from, to)) in wanted.between.iter().enumerate() {
        reader.read_between(directory, *from, *to);
    }
    let bytes: u64 = reader.bytes_wanted();
    let progress = Progress::of(path, bytes);
    let mut entries = 0_u32;
    while let Some(entry) = reader.next() {
        entries = entries.wrapping_add(1);
        if entries.is_multiple_of(STEP) {
            progress.bytes(reader.summary().bytes, None);
        }
        match entry.map_err(Refusal::RunDirectory)? {
            Entry::Header(_) => {}
            entry => each(reader.directory(), entry),
        }
    }
    let met = reader.summary();
    let mut summary = ReadSummary::default();
    summary.read = met.read;
    summary.unknown_kinds = met.unknown.clone();
    summary.last_line_truncated = met.cut_short > 0;
    summary.ended = met.not_ended == 0;
    summary.not_written = met.not_written;
    summary.bytes = met.bytes;
    Ok(Read {
        header,
        summary,
        notes: met.notes(),
        removed: met.removed.entries,
        passed_over_rows: met.passed_over.rows,
        directory: true,
        complete: met.is_complete(),
    })
}

/// Reads no more of a ledger than what it says of itself.
pub(crate) fn header(path: &Path) -> Result<Header, Refusal> {
    if path.is_dir() {
        let reader = lineage_arrow::Reader::open(path).map_err(Refusal::RunDirectory)?;
        return Ok(reader.header());
    }
    let file = File::open(path).map_err(|source| Refusal::Open {
        file: path.to_owned(),
        source,
    })?;
    match Reader::new(BufReader::new(file)).next() {
        Some(Ok(Entry::Header(header))) => Ok(header),
        Some(Err(error)) => Err(Refusal::of(path, error)),
        Some(Ok(_)) | None => Err(Refusal::Empty {
            file: path.to_owned(),
        }),
    }
}

/// Reads a ledger into memory.
pub(crate) fn load(path: &Path) -> Result<Ledger, Refusal> {
    Need::of(path, &Wanted::default()).warn_of_whole(path);
    let (mut observations, mut rows, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    let read = read(path, |entry| match entry {
        Entry::Observation(observation) => observations.push(observation),
        Entry::Row(row) => rows.push(row),
        Entry::Fault(fault) => faults.push(fault),
        _ => {}
    })?;
    Ok(Ledger {
        read,
        observations,
        rows,
        faults,
    })
}
