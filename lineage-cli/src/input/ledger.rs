//! Ledgers of lineage's own.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use lineage_core::ledger::{Entry, Header, ReadSummary, Reader};
use lineage_core::observation::Observation;
use lineage_core::row::{LooseFault, Row};

use super::{Progress, Refusal};

/// What was read of a ledger beside its entries.
pub(crate) struct Read {
    pub(crate) header: Header,
    pub(crate) summary: ReadSummary,
}

/// A ledger in memory.
pub(crate) struct Ledger {
    pub(crate) read: Read,
    pub(crate) observations: Vec<Observation>,
    pub(crate) rows: Vec<Row>,
    pub(crate) faults: Vec<LooseFault>,
}

/// Reads a ledger, entry by entry. The first bad line is refused: what a damaged file lacks would
/// show as faults.
pub(crate) fn read(path: &Path, mut each: impl FnMut(Entry)) -> Result<Read, Refusal> {
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
    for entry in &mut reader {
        each(entry.map_err(refuse)?);
    }
    Ok(Read {
        header,
        summary: reader.summary().clone(),
    })
}

/// Reads a ledger into memory.
pub(crate) fn load(path: &Path) -> Result<Ledger, Refusal> {
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
