//! Files: what one is, and what it holds.

mod batches;
mod import;
mod join;
mod ledger;
mod memory;
mod names;
mod progress;
mod refusal;
mod sniff;

use std::fs::File;
use std::path::Path;

pub(crate) use batches::{About, Batch};
pub(crate) use import::{Imported, import, notes};
pub(crate) use join::join;
pub(crate) use ledger::{Ledger, Read, header, load, read};
pub(crate) use progress::Progress;
pub(crate) use refusal::Refusal;
pub(crate) use sniff::Format;

/// Opens a file as far as to see what it is.
pub(crate) fn format(path: &Path) -> Result<Format, Refusal> {
    let open = |source| Refusal::Open {
        file: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(open)?;
    if file.metadata().map_err(open)?.is_dir() {
        return if is_run_directory(path) {
            Ok(Format::Ledger)
        } else {
            Err(Refusal::Directory {
                file: path.to_owned(),
            })
        };
    }
    match sniff::sniff(&mut file).map_err(open)? {
        Ok(format) => Ok(format),
        Err(sniff::Unknown::Empty) => Err(Refusal::Empty {
            file: path.to_owned(),
        }),
        Err(sniff::Unknown::LooksLike(looks_like)) => Err(Refusal::NotARecording {
            file: path.to_owned(),
            looks_like: sniff::by_name(path).unwrap_or(looks_like),
        }),
    }
}

/// Whether this is a run directory, or a folder of some.
fn is_run_directory(path: &Path) -> bool {
    let meta = |path: &Path| path.join(lineage_arrow::META).is_file();
    let inner = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut inner = inner.map(|entry| entry.path());
    let named = |path: &Path| {
        path.extension()
            .is_some_and(|of| of == lineage_arrow::EXTENSION)
    };
    meta(path) || inner.any(|path| named(&path) && meta(&path))
}
