//! The tables as an SQLite database.

use std::path::Path;

use lineage_core::ledger::{Counts, Entry};
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use super::{Backend, Cell, ExportError, Gather, Rows};
use crate::limits::BATCH_ROWS;
use crate::tables::Table;

/// An SQLite database with a table for each table of the run directory.
///
/// SQLite's integers are signed: a number above 2^63 (a packed epoch of detached work, a foreign
/// external id) is stored as what is 2^64 less.
pub struct Sqlite {
    gather: Gather,
    database: Database,
}

struct Database(Connection);

impl Sqlite {
    /// A new database, whose file must not be there.
    ///
    /// # Errors
    /// [`ExportError`] where it is there, or cannot be made.
    pub fn create(path: &Path) -> Result<Self, ExportError> {
        if path.exists() {
            return Err(ExportError::new("there is such a file already"));
        }
        let connection = Connection::open(path).map_err(ExportError::new)?;
        let mut statements =
            String::from("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;");
        for table in Table::ALL
            .into_iter()
            .filter(|table| *table != Table::Names)
        {
            let columns: Vec<String> = table
                .columns()
                .iter()
                .map(|column| format!("\"{}\"", column.name))
                .collect();
            statements += &format!("CREATE TABLE {} ({});", table.name(), columns.join(", "));
        }
        connection
            .execute_batch(&statements)
            .map_err(ExportError::new)?;
        Ok(Self {
            gather: Gather::of_rows(BATCH_ROWS),
            database: Database(connection),
        })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`ExportError`] where the database does not take it.
    pub fn add(&mut self, entry: &Entry) -> Result<(), ExportError> {
        self.gather.add(entry, &mut self.database)
    }

    /// Ends the database, and says what is in it.
    ///
    /// # Errors
    /// [`ExportError`] where the database does not take the rest.
    pub fn finish(mut self) -> Result<Counts, ExportError> {
        self.gather.flush(&mut self.database)?;
        self.database
            .0
            .execute_batch("COMMIT;")
            .map_err(ExportError::new)?;
        Ok(self.gather.counts)
    }
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").finish_non_exhaustive()
    }
}

impl Backend for Database {
    fn rows(&mut self, table: Table, rows: &Rows<'_>) -> Result<(), ExportError> {
        let columns = table.columns();
        let marks = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO {} VALUES ({marks})", table.name());
        let mut insert = self.0.prepare(&insert).map_err(ExportError::new)?;
        for row in 0..rows.len() {
            let cells = columns.iter().enumerate();
            let cells = cells.map(|(at, column)| match rows.cell(*column, at, row) {
                Cell::Null => ToSqlOutput::Owned(Value::Null),
                Cell::Number(number) => ToSqlOutput::Owned(Value::Integer(number.cast_signed())),
                Cell::Bool(value) => ToSqlOutput::Owned(Value::Integer(value.into())),
                Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            });
            insert
                .execute(rusqlite::params_from_iter(cells))
                .map_err(ExportError::new)?;
        }
        Ok(())
    }
}
