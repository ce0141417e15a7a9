//! Names and bounds of the format, for writer and reader alike.

use std::time::Duration;

/// The format's schema that this build writes, and the newest it reads. It rises only when an old
/// reader would misunderstand a new directory: new tables, columns and values do not raise it.
pub const SCHEMA: u32 = 1;

/// Rows of one table that end a batch.
pub const BATCH_ROWS: usize = 8_192;

/// How long an entry waits in memory before its batch is written.
pub const BATCH_AGE: Duration = Duration::from_secs(1);

/// Rows of one table that a batch may have for it to be read.
pub(crate) const MAX_BATCH_ROWS: usize = 2 * BATCH_ROWS;
/// Bytes of texts in one table that end a batch.
pub(crate) const BATCH_TEXT_BYTES: usize = 4 << 20;
/// Bytes of the longest text of its own; an entry with a longer one is not written, and counted.
pub(crate) const MAX_TEXT: usize = 1 << 20;
/// Bytes of texts that a column of one batch may have for it to be read: what ends a batch, what one
/// entry adds to it, and as much again.
pub(crate) const MAX_COLUMN_TEXT: usize = 2 * (BATCH_TEXT_BYTES + MAX_TEXT);
/// Bytes that a batch of one table may take on disk for it to be read.
pub(crate) const MAX_BATCH_BYTES: u64 = 64 << 20;
/// Columns that a table may have for it to be read.
pub(crate) const MAX_COLUMNS: usize = 512;
/// Bytes of the longest line of a journal, and of `meta.json`.
pub(crate) const MAX_LINE: usize = 1 << 16;
/// Segments that a directory may have.
pub(crate) const MAX_SEGMENTS: usize = 1 << 20;
/// Directories that are read as one.
pub(crate) const MAX_DIRECTORIES: usize = 1 << 12;

/// What a run directory's name ends with.
pub const EXTENSION: &str = "lineage";
/// The file that says what a directory is.
pub const META: &str = "meta.json";
/// The journal of a segment.
pub(crate) const JOURNAL: &str = "batches.jsonl";
/// What the name of a table's file ends with.
pub(crate) const ARROW: &str = "arrows";
/// What is written before it takes its name.
pub(crate) const META_NEW: &str = "meta.json.new";

/// The folder of a segment.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:06}")
}

/// The number of a segment, by its folder's name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|_| digits)
}

/// The file of a table.
pub(crate) fn table_file(table: &str) -> String {
    format!("{table}.{ARROW}")
}
