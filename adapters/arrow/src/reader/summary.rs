//! What a reader met besides its entries.

use std::collections::BTreeMap;

use lineage_core::ledger::Counts;

use crate::meta::Removed;

/// Different unknown kinds that are counted by name; more are counted together.
const MAX_UNKNOWN: usize = 32;
/// Characters of an unknown kind's name that are kept.
const MAX_NAME_CHARS: usize = 48;

/// What a reader met besides its entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Entries read.
    pub read: Counts,
    /// Entries skipped since a newer writer's table, event or value is in them, by its name.
    pub unknown: BTreeMap<String, u64>,
    /// Rows that were read without what a newer writer says in a column of its own, by that column as
    /// `TABLE.COLUMN`.
    pub unknown_columns: BTreeMap<String, u64>,
    /// What was an error.
    pub errors: u64,
    /// Directories that were read as one.
    pub directories: u64,
    /// Of these, those whose session was not shut down, or whose end is lost.
    pub not_ended: u64,
    /// Those of them where a batch was cut short in the middle; it was left aside.
    pub cut_short: u64,
    /// Bytes of batches that were cut short.
    pub bytes_cut_short: u64,
    /// Entries that the writers say they could not write.
    pub not_written: u64,
    /// What the writers removed to keep within the size they were given.
    pub removed: Removed,
    /// Bytes read.
    pub bytes: u64,
    /// Entries that were not read, since no more was asked for
    /// ([`Reader::read_between`](super::Reader::read_between), [`Reader::leave_out`](super::Reader::leave_out)):
    /// rows, and all others as observations.
    pub passed_over: Counts,
}

impl Summary {
    /// Entries skipped since something in them is not known to this build.
    pub fn skipped(&self) -> u64 {
        self.unknown.values().sum()
    }

    /// Whether all that the sessions wrote was read.
    pub fn is_complete(&self) -> bool {
        self.not_ended == 0
            && self.errors == 0
            && self.skipped() == 0
            && self.unknown_columns.is_empty()
            && self.not_written == 0
            && self.removed == Removed::default()
    }

    /// What a person should know of how it was read; nothing where all is there.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let of = match self.directories {
            0 | 1 => String::new(),
            several => format!(" in {} of {several} directories", self.not_ended),
        };
        if self.cut_short > 0 {
            notes.push(format!(
                "the last batch was cut short{of}, and is left aside ({} bytes): its process was killed while it \
                 wrote, or writes just now; everything before is here",
                self.bytes_cut_short
            ));
        }
        if self.not_ended > self.cut_short {
            notes.push(format!(
                "there is no end{of}: the session was not shut down, or still runs; what came after the last batch, at \
                 most a second or 8,192 rows of a table, is not here"
            ));
        }
        if self.not_written > 0 {
            notes.push(format!(
                "the writer says that it could not write {} entries",
                self.not_written
            ));
        }
        if self.removed != Removed::default() {
            notes.push(format!(
                "the oldest {} entries ({} segments) were removed to keep within the size that was asked for",
                self.removed.entries, self.removed.segments
            ));
        }
        for (kind, count) in &self.unknown {
            notes.push(format!(
                "{count} entries with {kind:?}, which this version does not know, were skipped"
            ));
        }
        for (column, rows) in &self.unknown_columns {
            notes.push(format!(
                "the column {column:?} of {rows} rows, which this version does not know, was left aside"
            ));
        }
        notes
    }

    pub(super) fn skip(&mut self, kind: &str, count: u64) {
        count_by_name(&mut self.unknown, kind, count);
    }

    pub(super) fn skip_column(&mut self, column: &str, rows: u64) {
        count_by_name(&mut self.unknown_columns, column, rows);
    }
}

/// Counts what a file names, however many names it has and however long they are.
fn count_by_name(counts: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    let name = if counts.contains_key(&name) || counts.len() < MAX_UNKNOWN {
        name
    } else {
        "(others)".to_owned()
    };
    let counted = counts.entry(name).or_default();
    *counted = counted.saturating_add(count);
}
