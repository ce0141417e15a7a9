//! What a file is, by its first bytes: its name says nothing that can be relied on.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A kind of recording that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A JSON-lines ledger of lineage's own.
    Ledger,
    /// An SQLite database: an export of Nsight Systems.
    NsightSystems,
    /// Kineto's JSON, perhaps compressed.
    Kineto,
}

impl Format {
    /// The stable name, for JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::NsightSystems => "nsight_systems",
            Self::Kineto => "kineto",
        }
    }
}

/// A file that is no recording.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    Empty,
    LooksLike(&'static str),
}

/// Bytes that are looked at.
const HEAD: u64 = 4096;

pub(super) fn sniff(file: &mut (impl Read + Seek)) -> io::Result<Result<Format, Unknown>> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    Ok(of_head(&head))
}

fn of_head(head: &[u8]) -> Result<Format, Unknown> {
    if head.is_empty() {
        return Err(Unknown::Empty);
    }
    let looks_like = match head {
        _ if head.starts_with(b"SQLite format 3\0") => return Ok(Format::NsightSystems),
        [0x1f, 0x8b, ..] => return Ok(Format::Kineto),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd data: decompress it first",
        [b'P', b'K', 3, 4, ..] => "a zip archive: unpack it first",
        [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            "compressed data: decompress it first"
        }
        [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => "an Arrow file",
        [0x7f, b'E', b'L', b'F', ..] => "a program",
        _ => return of_text(head),
    };
    Err(Unknown::LooksLike(looks_like))
}

fn of_text(head: &[u8]) -> Result<Format, Unknown> {
    let text = String::from_utf8_lossy(head);
    let start = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    let key = start.strip_prefix('{').map(str::trim_start);
    let begins_with =
        |keys: &[&str]| key.is_some_and(|key| keys.iter().any(|of| key.starts_with(of)));
    if begins_with(&[r#""lineage""#]) {
        return Ok(Format::Ledger);
    }
    if begins_with(&[r#""observation""#, r#""row""#, r#""fault""#, r#""end""#]) {
        return Err(Unknown::LooksLike("a ledger without its first line"));
    }
    if start.starts_with(['{', '[']) {
        // What else JSON may be, its importer says best.
        return Ok(Format::Kineto);
    }
    Err(Unknown::LooksLike(if start.is_empty() {
        "white space"
    } else if head.contains(&0) || text.contains('\u{fffd}') {
        "binary data"
    } else {
        "other text"
    }))
}

/// What a file's name says it is, where its bytes say nothing.
pub(super) fn by_name(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
    Some(match extension.as_str() {
        "nsys-rep" | "qdrep" => {
            "an Nsight Systems report: export it with `nsys export --type sqlite FILE`, and name the export"
        }
        "ncu-rep" => {
            "an Nsight Compute report, which measures kernels one by one and records no launches"
        }
        "pftrace" | "perfetto-trace" => "a Perfetto trace",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_will_try_is_recognised() {
        for (head, expected) in [
            (
                b"SQLite format 3\0\x10\0".as_slice(),
                Ok(Format::NsightSystems),
            ),
            (b"\x1f\x8b\x08", Ok(Format::Kineto)),
            (b"{\n \"schemaVersion\": 1,", Ok(Format::Kineto)),
            (b"{\"traceEvents\": [", Ok(Format::Kineto)),
            (b"\xef\xbb\xbf [\n {\"ph\": \"X\"", Ok(Format::Kineto)),
            (b"{\"lineage\":{\"schema\":1}}\n", Ok(Format::Ledger)),
            (b"{ \"lineage\" :{\"schema\":9}}\n", Ok(Format::Ledger)),
            (b"", Err(Unknown::Empty)),
            (
                b"{\"row\":{}}",
                Err(Unknown::LooksLike("a ledger without its first line")),
            ),
            (b"hello", Err(Unknown::LooksLike("other text"))),
            (b" \n", Err(Unknown::LooksLike("white space"))),
            (b"\x00\x01", Err(Unknown::LooksLike("binary data"))),
            (
                b"PK\x03\x04",
                Err(Unknown::LooksLike("a zip archive: unpack it first")),
            ),
        ] {
            assert_eq!(
                of_head(head),
                expected,
                "{:?}",
                String::from_utf8_lossy(head)
            );
        }
    }

    #[test]
    fn a_report_of_nsight_systems_is_to_be_exported() {
        let looks_like = by_name(Path::new("my.nsys-rep"));
        assert!(looks_like.is_some_and(|text| text.contains("nsys export --type sqlite")));
        assert_eq!(by_name(Path::new("trace.json")), None);
    }
}
