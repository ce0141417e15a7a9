//! A ledger read into memory, with a progress bar where there is somebody to see it.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use lineage_core::ledger::{Entry, Header, ReadSummary, Reader};
use lineage_core::observation::Observation;
use lineage_core::row::{LooseFault, Row};

use crate::refusal::Refusal;

/// Files below this many bytes are read before a bar would be seen.
const WORTH_A_BAR: u64 = 8 << 20;

/// A ledger in memory.
pub(crate) struct Ledger {
    pub(crate) file: PathBuf,
    pub(crate) header: Header,
    pub(crate) observations: Vec<Observation>,
    pub(crate) rows: Vec<Row>,
    pub(crate) faults: Vec<LooseFault>,
    pub(crate) summary: ReadSummary,
}

/// Reads a ledger. The first bad line is refused: what a damaged file lacks would show as faults.
pub(crate) fn load(path: &Path) -> Result<Ledger, Refusal> {
    let open = |source| Refusal::Open {
        file: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(open)?;
    let metadata = file.metadata().map_err(open)?;
    if metadata.is_dir() {
        return Err(Refusal::Directory {
            file: path.to_owned(),
        });
    }
    let bar = bar(path, metadata.len());
    let mut reader = Reader::new(BufReader::with_capacity(1 << 16, bar.wrap_read(file)));
    let refuse = |error| {
        bar.finish_and_clear();
        Refusal::of(path, error)
    };
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
    let mut ledger = Ledger {
        file: path.to_owned(),
        header,
        observations: Vec::new(),
        rows: Vec::new(),
        faults: Vec::new(),
        summary: ReadSummary::default(),
    };
    for entry in &mut reader {
        match entry.map_err(&refuse)? {
            Entry::Observation(observation) => ledger.observations.push(observation),
            Entry::Row(row) => ledger.rows.push(row),
            Entry::Fault(fault) => ledger.faults.push(fault),
            _ => {}
        }
    }
    bar.finish_and_clear();
    ledger.summary = reader.summary().clone();
    Ok(ledger)
}

/// A bar on standard error, hidden where that is no terminal.
fn bar(path: &Path, bytes: u64) -> ProgressBar {
    if bytes < WORTH_A_BAR {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(bytes);
    let template = "{msg} {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    bar.set_message(lineage_validator::printable(&name.to_string_lossy()));
    bar
}
