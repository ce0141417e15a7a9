//! Why a file cannot be read: what happened, to what, and what to do next.

use std::io;
use std::path::{Path, PathBuf};

use lineage_core::ledger::{ReadError, ReadErrorKind, SCHEMA};

use serde::Serialize;

use crate::text::{json_line, printable_path, printable_text};

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Refusal {
    #[error("{}: cannot be opened: {source}", printable_path(file))]
    Open {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{}: is a directory, and no run directory (`NAME.lineage`) or folder of some; name the ledger file in it",
        printable_path(file)
    )]
    Directory { file: PathBuf },
    #[error(
        "{}: the file is empty: was its session shut down, or given a ledger as a sink?",
        printable_path(file)
    )]
    Empty { file: PathBuf },
    #[error(
        "{}: not a recording, but {looks_like}; `lineage` reads JSON-lines ledgers of schema {SCHEMA}, run directories, SQLite \
         exports of Nsight Systems, and Kineto's JSON, plain or gzipped",
        printable_path(file)
    )]
    NotARecording {
        file: PathBuf,
        looks_like: &'static str,
    },
    #[error("{}{}", printable_text(&.0.to_string()), directory_remedy(&.0.kind))]
    RunDirectory(#[source] lineage_arrow::ReadError),
    #[error("{}: {why}", printable_path(file))]
    Part { file: PathBuf, why: String },
    #[error("{}: {}", printable_path(file), printable_text(why))]
    Import { file: PathBuf, why: String },
    #[error(
        "{}: {}; use the `lineage` of that version or a later one",
        printable_path(file),
        printable_text(&source.to_string())
    )]
    NewerSchema {
        file: PathBuf,
        #[source]
        source: ReadErrorKind,
    },
    #[error(
        "{}: {}{}",
        printable_path(file),
        printable_text(&source.to_string()),
        remedy(&source.kind)
    )]
    Line {
        file: PathBuf,
        #[source]
        source: ReadError,
    },
}

/// What to do about a run directory that cannot be read.
fn directory_remedy(kind: &lineage_arrow::ReadErrorKind) -> &'static str {
    use lineage_arrow::ReadErrorKind as Kind;
    match kind {
        Kind::NewerSchema { .. } => "; use the `lineage` of that version or a later one",
        Kind::Io(_) | Kind::NotARunDirectory { .. } => "",
        _ => {
            "; the directory was damaged or edited after it was written: copy it again, or, of several, take it out of the folder"
        }
    }
}

/// What to do about a bad line.
fn remedy(kind: &ReadErrorKind) -> &'static str {
    match kind {
        ReadErrorKind::Io(_) => "",
        ReadErrorKind::SecondHeader => {
            "; split the file before each header, and validate the parts"
        }
        ReadErrorKind::AfterEnd => "; remove what comes after the end line",
        ReadErrorKind::CountsDiffer { .. } => {
            "; lines were added or taken away after it was written"
        }
        _ => {
            "; the file was damaged or edited after it was written: copy it again, or take the line out"
        }
    }
}

/// What `--json` prints of a file that cannot be read.
#[derive(Serialize)]
struct RefusedObject {
    schema: u32,
    file: String,
    error: String,
}

impl Refusal {
    /// The refusal of this file as a line of JSON, in an output of this schema.
    pub(crate) fn object(&self, schema: u32, file: &Path) -> String {
        json_line(&RefusedObject {
            schema,
            file: file.display().to_string(),
            error: self.to_string(),
        })
    }

    /// The refusal of a ledger for what its reader says.
    pub(crate) fn of(file: &Path, error: ReadError) -> Self {
        let file = file.to_owned();
        match error.kind {
            ReadErrorKind::Empty => Self::Empty { file },
            ReadErrorKind::NotALedger { .. } => Self::NotARecording {
                file,
                looks_like: "something like a ledger, whose first line is none of ours",
            },
            newer @ ReadErrorKind::NewerSchema { .. } => Self::NewerSchema {
                file,
                source: newer,
            },
            kind => Self::Line {
                file,
                source: ReadError { kind, ..error },
            },
        }
    }
}
