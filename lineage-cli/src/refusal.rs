//! Why a file cannot be validated: what happened, to what, and what to do next.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use lineage_core::ledger::{ReadError, ReadErrorKind, SCHEMA};

/// A file that cannot be validated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Refusal {
    #[error("{}: cannot be opened: {source}", file.display())]
    Open {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: is a directory; name the ledger file in it", file.display())]
    Directory { file: PathBuf },
    #[error("{}: the file is empty: was its session shut down, or given a ledger as a sink?", file.display())]
    Empty { file: PathBuf },
    #[error(
        "{}: not a ledger, but {looks_like}; `lineage validate` reads JSON-lines ledgers of schema {SCHEMA} so far, as \
         `lineage_core::ledger::Writer` writes them",
        file.display()
    )]
    NotALedger { file: PathBuf, looks_like: String },
    #[error("{}: {source}; use the `lineage` of that version or a later one", file.display())]
    NewerSchema {
        file: PathBuf,
        #[source]
        source: ReadErrorKind,
    },
    #[error("{}: {source}{}", file.display(), remedy(&source.kind))]
    Line {
        file: PathBuf,
        #[source]
        source: ReadError,
    },
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

impl Refusal {
    /// The refusal of a file for what its reader says.
    pub(crate) fn of(file: &Path, error: ReadError) -> Self {
        let file = file.to_owned();
        match error.kind {
            ReadErrorKind::Empty => Self::Empty { file },
            ReadErrorKind::NotALedger { .. } => {
                let looks_like = look_at(&file).unwrap_or_else(|_| "something else".to_owned());
                Self::NotALedger { file, looks_like }
            }
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

/// What a file looks like by its first bytes.
fn look_at(file: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(file)?;
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(4096).read_to_end(&mut head)?;
    Ok(looks_like(&head).to_owned())
}

fn looks_like(head: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(head);
    let start = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    let kineto = [
        "\"traceEvents\"",
        "\"deviceProperties\"",
        "\"schemaVersion\"",
    ];
    match head {
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "an SQLite database, as Nsight Systems exports",
        [0x1f, 0x8b, ..] => "gzip data, as of a compressed Kineto trace",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd data",
        [b'P', b'K', 3, 4, ..] => "a zip archive",
        [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => "an Arrow file",
        [0x7f, b'E', b'L', b'F', ..] => "a program",
        _ if kineto.iter().any(|key| text.contains(key)) => "a Chrome or Kineto trace",
        _ if start.starts_with(r#"{"observation""#) || start.starts_with(r#"{"row""#) => {
            "a ledger without its first line"
        }
        _ if start.starts_with(['{', '[']) => "other JSON",
        _ if head.contains(&0) || text.contains('\u{fffd}') => "binary data",
        _ => "other text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_will_try_is_recognised() {
        for (head, expected) in [
            (
                b"SQLite format 3\0".as_slice(),
                "an SQLite database, as Nsight Systems exports",
            ),
            (
                b"\x1f\x8b\x08",
                "gzip data, as of a compressed Kineto trace",
            ),
            (b"{\n \"schemaVersion\": 1,", "a Chrome or Kineto trace"),
            (b"{\"traceEvents\": [", "a Chrome or Kineto trace"),
            (b"{\"observation\":{}}", "a ledger without its first line"),
            (b"{\"a\":1}", "other JSON"),
            (b"hello", "other text"),
            (b"\x00\x01", "binary data"),
        ] {
            assert_eq!(looks_like(head), expected);
        }
    }
}
