//! How far an import has come.

use crate::database::Database;
use crate::tables::{self, Table};

/// Rows between two reports.
const ROWS_PER_REPORT: u64 = 16_384;

/// How far an import has come, in bytes of the file.
///
/// A database is not read from its begin to its end. What is given here is the file's size times the
/// share of rows that were read, of as many as the tables' last row numbers speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are done with; never more than `of`.
    pub done: u64,
    /// Bytes of the file.
    pub of: u64,
}

/// Reports progress.
pub(crate) struct Meter<'a> {
    report: &'a mut dyn FnMut(Progress),
    bytes: u64,
    rows_in_all: u64,
    rows: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(bytes: u64, report: &'a mut dyn FnMut(Progress)) -> Self {
        Self {
            report,
            bytes,
            rows_in_all: 0,
            rows: 0,
        }
    }

    /// Counts on the rows of a table.
    pub(crate) fn expect(&mut self, database: &Database, table: &Table) {
        let most = database.budget.rows_granted();
        let rows = tables::last_row_number(database, table).min(most);
        self.rows_in_all = self.rows_in_all.saturating_add(rows);
    }

    /// A row was read.
    pub(crate) fn row(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_PER_REPORT) {
            let rows_in_all = u128::from(self.rows_in_all.max(self.rows));
            let done = u128::from(self.bytes) * u128::from(self.rows) / rows_in_all;
            self.tell(u64::try_from(done).unwrap_or(self.bytes));
        }
    }

    /// All is read.
    pub(crate) fn finish(&mut self) {
        self.tell(self.bytes);
    }

    fn tell(&mut self, done: u64) {
        let of = self.bytes;
        (self.report)(Progress { done, of });
    }
}
