//! The tables of a run directory for other programs, with the values as they are: times in nanoseconds
//! of the session's clock, names as text.
//!
//! An export is not read back by lineage: it has no order between tables beyond the column `order`,
//! and batches are not kept apart.

#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::sync::Arc;

use lineage_core::ledger::{Counts, Entry};

#[cfg(feature = "parquet")]
pub use self::parquet::Parquet;
#[cfg(feature = "sqlite")]
pub use self::sqlite::Sqlite;

use crate::column::{Column, Kind};
use crate::frame::{Cells, Frame};
use crate::limits::BATCH_TEXT_BYTES;
use crate::names::Names;
use crate::tables::{Given, Table, put};

/// An export could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
#[non_exhaustive]
pub struct ExportError(String);

impl ExportError {
    fn new(why: impl std::fmt::Display) -> Self {
        Self(why.to_string())
    }
}

/// Where rows of tables go.
trait Backend {
    fn rows(&mut self, table: Table, rows: &Rows<'_>) -> Result<(), ExportError>;
}

/// Some rows of a table, with their names.
struct Rows<'a> {
    frame: &'a Frame,
    names: &'a [Arc<str>],
}

/// A cell.
enum Cell<'a> {
    Null,
    Number(u64),
    Bool(bool),
    Text(&'a str),
}

impl Rows<'_> {
    fn len(&self) -> usize {
        self.frame.rows
    }

    fn cell(&self, column: Column, at: usize, row: usize) -> Cell<'_> {
        let number = match self.frame.columns.get(at) {
            Some(Cells::Texts(texts)) => return texts.get(row).map_or(Cell::Null, Cell::Text),
            Some(Cells::Numbers(numbers)) => numbers.get(row),
            None => None,
        };
        match (number, column.kind) {
            (None, _) => Cell::Null,
            (Some(number), Kind::Bool) => Cell::Bool(number != 0),
            (Some(place), Kind::Name) => usize::try_from(place)
                .ok()
                .and_then(|place| self.names.get(place))
                .map_or(Cell::Null, |name| Cell::Text(name)),
            (Some(number), _) => Cell::Number(number),
        }
    }
}

/// Gathers entries into rows.
struct Gather {
    frames: Vec<Frame>,
    names: Names,
    scratch: String,
    order: u64,
    counts: Counts,
    /// Rows of a table that are given away together.
    rows: usize,
}

impl Gather {
    fn of_rows(rows: usize) -> Self {
        let frames = Table::ALL.into_iter();
        Self {
            frames: frames.map(|table| Frame::new(table.columns())).collect(),
            names: Names::default(),
            scratch: String::new(),
            order: 0,
            counts: Counts::default(),
            rows,
        }
    }

    fn add(&mut self, entry: &Entry, backend: &mut impl Backend) -> Result<(), ExportError> {
        let (given, count) = match entry {
            Entry::Observation(of) => (Given::Observation(of), &mut self.counts.observations),
            Entry::Row(of) => (Given::Row(of), &mut self.counts.rows),
            Entry::Fault(of) => (Given::Fault(of), &mut self.counts.faults),
            _ => return Ok(()),
        };
        *count += 1;
        let order = self.order;
        self.order += 1;
        let Self {
            frames,
            names,
            scratch,
            ..
        } = self;
        let table = [given.table(), Table::Facts].into_iter().find(|table| {
            let frame = &mut frames[*table as usize];
            put(*table, frame, names, scratch, order, given)
        });
        let Some(table) = table else {
            self.counts.not_written += 1;
            return Ok(());
        };
        let frame = &self.frames[table as usize];
        let (_, name_bytes) = self.names.new_names();
        let full = frame.rows >= self.rows
            || frame.text_bytes >= BATCH_TEXT_BYTES
            || name_bytes >= BATCH_TEXT_BYTES;
        if full { self.flush(backend) } else { Ok(()) }
    }

    fn flush(&mut self, backend: &mut impl Backend) -> Result<(), ExportError> {
        let names = self.names.take_new();
        // Names are told by their place among all: each round begins with none.
        self.names = Names::default();
        for (table, frame) in Table::ALL.into_iter().zip(&mut self.frames) {
            if frame.rows > 0 {
                let rows = Rows {
                    frame,
                    names: &names,
                };
                backend.rows(table, &rows)?;
            }
            frame.truncate(0);
        }
        Ok(())
    }
}
