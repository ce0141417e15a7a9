//! What the first bytes of a file say, before SQLite sees it.
//!
//! The layout is SQLite's "Database File Format", section 1.3: page size at 16, file change counter
//! at 24, size in pages at 28, the counter for which that size is right at 92.

use crate::ImportError;

/// Bytes of a database's header.
pub(crate) const HEADER_BYTES: usize = 100;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// What is not a database, by its first bytes.
const OTHERS: &[(&[u8], &str)] = &[
    (&[0x1f, 0x8b], "it is compressed with gzip"),
    (b"PK\x03\x04", "it is a zip archive"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "it is compressed with zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "it is compressed with xz"),
    (&[0x89, b'H', b'D', b'F'], "it is an HDF5 file"),
    (b"PAR1", "it is a Parquet file"),
    (b"{", "it looks like JSON"),
    (b"[", "it looks like JSON"),
    (
        b"version https://git-lfs",
        "it is a pointer of Git LFS, not the file itself",
    ),
];

/// Looks at the first bytes (up to [`HEADER_BYTES`]) of a file of `found_bytes`.
pub(crate) fn check(first: &[u8], found_bytes: u64) -> Result<(), ImportError> {
    if first.is_empty() {
        return Err(ImportError::Empty);
    }
    if !first.starts_with(MAGIC) {
        let begins_like_one = MAGIC.starts_with(first);
        if begins_like_one {
            return Err(ImportError::Truncated {
                expected_bytes: HEADER_BYTES as u64,
                found_bytes,
            });
        }
        let found = OTHERS
            .iter()
            .find(|(magic, _)| first.starts_with(magic))
            .map_or("its first bytes are not SQLite's", |(_, found)| found);
        return Err(ImportError::NotADatabase { found });
    }
    let expected_bytes = expected_bytes(first).unwrap_or(HEADER_BYTES as u64);
    if found_bytes < expected_bytes {
        return Err(ImportError::Truncated {
            expected_bytes,
            found_bytes,
        });
    }
    Ok(())
}

/// Bytes of the whole database, where the header can be trusted to know.
fn expected_bytes(header: &[u8]) -> Option<u64> {
    let number = |at: usize| -> Option<u32> {
        let bytes = header.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let page_bytes = match u16::from_be_bytes(header.get(16..18)?.try_into().ok()?) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let pages = number(28)?;
    // Versions of SQLite before 3.7.0 did not keep the size.
    let known = number(24)? == number(92)? && pages != 0;
    known.then(|| page_bytes * u64::from(pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(page_bytes: u16, pages: u32, changes: u32, valid_for: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..18].copy_from_slice(&page_bytes.to_be_bytes());
        bytes[24..28].copy_from_slice(&changes.to_be_bytes());
        bytes[28..32].copy_from_slice(&pages.to_be_bytes());
        bytes[92..96].copy_from_slice(&valid_for.to_be_bytes());
        bytes
    }

    #[test]
    fn a_file_shorter_than_its_header_says_is_cut_short() {
        // 3 pages of 4,096 bytes are 12,288.
        let header = header(4_096, 3, 7, 7);
        assert!(check(&header, 12_288).is_ok());
        let Err(ImportError::Truncated {
            expected_bytes,
            found_bytes,
        }) = check(&header, 12_287)
        else {
            panic!("12,287 bytes are too few");
        };
        assert_eq!((expected_bytes, found_bytes), (12_288, 12_287));
    }

    #[test]
    fn a_page_size_of_one_stands_for_65_536() {
        assert!(matches!(
            check(&header(1, 2, 1, 1), 131_071),
            Err(ImportError::Truncated {
                expected_bytes: 131_072,
                ..
            })
        ));
    }

    #[test]
    fn a_size_of_an_old_writer_is_not_believed() {
        assert!(check(&header(4_096, 900, 8, 7), 4_096).is_ok());
    }

    #[test]
    fn what_is_no_database_is_named() {
        assert!(matches!(check(b"", 0), Err(ImportError::Empty)));
        assert!(matches!(
            check(b"SQLite for", 10),
            Err(ImportError::Truncated { .. })
        ));
        for (bytes, part) in [
            (&b"{\"traceEvents\": ["[..], "JSON"),
            (&[0x1f, 0x8b, 8, 0], "gzip"),
            (b"PK\x03\x04....", "zip"),
            (b"\xd4\x3e\x01\x99random", "not SQLite's"),
        ] {
            let Err(error) = check(bytes, bytes.len() as u64) else {
                panic!("{bytes:?} is no database");
            };
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
