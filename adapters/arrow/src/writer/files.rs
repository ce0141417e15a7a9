//! Making, replacing and removing what a run directory consists of, and nothing else.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::limits::{JOURNAL, META, META_NEW, segment_number, table_file};
use crate::meta::Meta;
use crate::tables::Table;

/// Why a directory cannot be begun.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotBegin {
    #[error("the run directory {path:?} cannot be made: {source}")]
    Make { path: PathBuf, source: io::Error },
    #[error(
        "{path:?} is there already and not empty: name another run directory, or remove it; a directory holds one session"
    )]
    InUse { path: PathBuf },
    #[error(
        "{path:?} holds {other:?}, which no run directory has: it is not replaced; name another run directory"
    )]
    NotOurs { path: PathBuf, other: String },
}

/// Makes an empty directory, in place of an older run directory if that is asked for.
pub(super) fn prepare(path: &Path, replace: bool) -> Result<(), CannotBegin> {
    let cannot = |source| CannotBegin::Make {
        path: path.to_owned(),
        source,
    };
    match fs::create_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(CannotBegin::InUse {
                path: path.to_owned(),
            });
        }
        outcome => outcome.map_err(cannot)?,
    }
    let segments = ours(path)?;
    let empty = segments.is_empty() && !path.join(META).exists();
    if empty {
        return Ok(());
    }
    if !replace {
        return Err(CannotBegin::InUse {
            path: path.to_owned(),
        });
    }
    for segment in segments {
        remove_segment(&segment).map_err(cannot)?;
    }
    remove_if_there(&path.join(META_NEW)).map_err(cannot)?;
    remove_if_there(&path.join(META)).map_err(cannot)
}

/// The segments of a directory that holds nothing but what this format has.
fn ours(path: &Path) -> Result<Vec<PathBuf>, CannotBegin> {
    let cannot = |source| CannotBegin::Make {
        path: path.to_owned(),
        source,
    };
    let not_ours = |other: &Path| CannotBegin::NotOurs {
        path: path.to_owned(),
        other: other
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
    };
    let names = |folder: &Path| -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    };
    let mut segments = Vec::new();
    for entry in names(path).map_err(cannot)? {
        let name = entry.file_name().and_then(|name| name.to_str());
        match name {
            Some(META | META_NEW) => {}
            Some(name) if segment_number(name).is_some() => {
                for file in names(&entry).map_err(|_| not_ours(&entry))? {
                    let name = file.file_name().and_then(|name| name.to_str());
                    if !name.is_some_and(is_a_segments) {
                        return Err(not_ours(&file));
                    }
                }
                segments.push(entry);
            }
            _ => return Err(not_ours(&entry)),
        }
    }
    Ok(segments)
}

fn is_a_segments(name: &str) -> bool {
    name == JOURNAL
        || Table::ALL
            .iter()
            .any(|table| table_file(table.name()) == name)
}

/// Removes a segment's files, then its folder, which fails if it holds anything else.
pub(super) fn remove_segment(folder: &Path) -> io::Result<()> {
    for table in Table::ALL {
        remove_if_there(&folder.join(table_file(table.name())))?;
    }
    remove_if_there(&folder.join(JOURNAL))?;
    fs::remove_dir(folder)
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A new file that is only ever written at its end.
pub(super) fn create(file: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).open(file)
}

/// Writes `meta.json` so that at every moment there is a whole one.
pub(super) fn write_meta(directory: &Path, meta: &Meta) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(meta)?;
    text.push(b'\n');
    let new = directory.join(META_NEW);
    fs::write(&new, text)?;
    fs::rename(&new, directory.join(META))
}
