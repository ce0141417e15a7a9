//! How much work one file may cause.

use std::time::Duration;

/// Bytes of a table page that one row takes at the least: two for its pointer and two for a payload
/// size and a row id. Every row of an export has at least four columns besides.
const LEAST_BYTES_PER_ROW: u64 = 8;
/// Virtual machine instructions that SQLite may spend on one row: a column is one or two.
const STEPS_PER_ROW: u64 = 256;
/// Steps that are granted whatever the file's size: what an ordinary schema takes, many times over.
const STEPS_AT_LEAST: u64 = 10_000_000;
/// Seconds that are granted whatever the file's size.
const SECONDS_AT_LEAST: u64 = 30;
/// Bytes that are read in a second at the least, on slow disks too.
const SLOWEST_BYTES_PER_SECOND: u64 = 1 << 20;

/// How much work one file may cause before its import ends with an error.
///
/// A database is a graph of pages. In a damaged or hostile one a few pages can stand for billions of
/// rows, so what a file may cost is derived from its size: no sound export comes near.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Rows that are read in all, over all tables.
    pub rows: u64,
    /// Instructions of SQLite's virtual machine, in all.
    pub steps: u64,
    /// Wall time.
    pub time: Duration,
}

impl Limits {
    /// The limits for a file of so many bytes.
    pub fn for_file_of(bytes: u64) -> Self {
        let rows = bytes / LEAST_BYTES_PER_ROW + 1_000;
        Self {
            rows,
            steps: rows.saturating_mul(STEPS_PER_ROW).max(STEPS_AT_LEAST),
            time: Duration::from_secs(SECONDS_AT_LEAST + bytes / SLOWEST_BYTES_PER_SECOND),
        }
    }

    /// The same limits with another time.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_grow_with_the_file() {
        // 8 GiB: 2^33 / 8 = 2^30 rows, and 8,192 MiB at one a second.
        let large = Limits::for_file_of(8 << 30);
        assert_eq!(large.rows, (1 << 30) + 1_000);
        assert_eq!(large.time, Duration::from_secs(30 + 8_192));
        let none = Limits::for_file_of(0);
        assert_eq!(
            (none.rows, none.steps, none.time.as_secs()),
            (1_000, 10_000_000, 30)
        );
    }
}
