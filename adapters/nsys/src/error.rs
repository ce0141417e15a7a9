//! Why a file could not be imported.

use std::io;

/// A file could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file could not be opened or read.
    #[error("the file could not be read: {0}")]
    Io(#[source] io::Error),
    /// There is nothing in the file.
    #[error("the file is empty")]
    Empty,
    /// A report of Nsight Systems that was not exported.
    #[error(
        "a report that was not exported: `nsys export --type sqlite REPORT` writes the file to give here"
    )]
    NotExported,
    /// Something else than an SQLite database.
    #[error("not an SQLite database, or an encrypted one: {found}")]
    NotADatabase {
        /// What it looks like.
        found: &'static str,
    },
    /// An SQLite database of somebody else's.
    #[error("an SQLite database, but no export of Nsight Systems: it has none of its tables")]
    NotAnExport,
    /// The file ends before the database does.
    #[error(
        "the file is cut short: its header speaks of {expected_bytes} bytes and it has {found_bytes}"
    )]
    Truncated {
        /// Bytes that the database has by its header.
        expected_bytes: u64,
        /// Bytes that the file has.
        found_bytes: u64,
    },
    /// A journal lies beside the file: whoever wrote the database did not finish.
    #[error("{journal} lies beside it: the export still runs or was cut off; export once more")]
    Unfinished {
        /// The journal's file name.
        journal: String,
    },
    /// The last changes are in a file of their own, which is not read.
    #[error(
        "its last changes are in {log}: `sqlite3 FILE 'pragma journal_mode=delete'` puts them into the database"
    )]
    WriteAheadLog {
        /// The log's file name.
        log: String,
    },
    /// The database contradicts itself.
    #[error("the database is damaged{}: {message}", in_table(table.as_deref()))]
    Damaged {
        /// The table that was being read, if one was.
        table: Option<String>,
        /// What SQLite says.
        message: String,
    },
    /// A value is longer than any that an export holds.
    #[error("a value in {table} is longer than {limit_bytes} bytes")]
    ValueTooLong {
        /// The table that was being read.
        table: String,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// More rows than a file of this size can hold.
    #[error(
        "{table} goes on after {limit} rows, which is more than a file of this size can hold: it is damaged, or made to be"
    )]
    TooManyRows {
        /// The table that was being read.
        table: String,
        /// How many rows were granted.
        limit: u64,
    },
    /// Reading took more work than a file of this size may cause.
    #[error(
        "reading {} takes more work than a file of this size may cause: it is damaged, or made to be",
        table.as_deref().unwrap_or("its list of tables")
    )]
    TooMuchWork {
        /// The table that was being read, if one was.
        table: Option<String>,
    },
    /// What was read could not be kept.
    #[error(transparent)]
    Collect(#[from] lineage_import::CollectError),
}

fn in_table(table: Option<&str>) -> String {
    table.map_or_else(String::new, |table| format!(" in {table}"))
}
