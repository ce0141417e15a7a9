//! A database that is read and not trusted.
//!
//! The file may come from anywhere, so SQLite is given as little as it needs: the file is opened
//! read-only and immutable (no lock is taken and no file is written beside it), the schema's own
//! expressions are not run, statements may only read, and only columns that are stored in tables are
//! read at all, each table in one pass from its first row to its last. There is no join, no sorting
//! and no view in any statement, so there is no plan that a file could make expensive; what a
//! damaged tree of pages could still cost is bounded by [`Limits`].

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::budget::Budget;
use crate::header::{self, HEADER_BYTES};
use crate::{ImportError, Limits};

/// The longest value that is read.
pub(crate) const LONGEST_VALUE_BYTES: i32 = 16 << 20;
/// Tables, views, indices and triggers that a schema may have. A full export has about 200.
const MOST_SCHEMA_OBJECTS: i32 = 2_000;
/// Bytes of a statement, those of the schema too. The longest of an export has 6,000.
const LONGEST_STATEMENT_BYTES: i32 = 50_000;

/// An open database.
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) budget: Budget,
    pub(crate) bytes: u64,
}

impl Database {
    /// Opens a file.
    pub(crate) fn open(path: &Path, limits: Option<Limits>) -> Result<Self, ImportError> {
        let path = path.canonicalize().map_err(ImportError::Io)?;
        let bytes = look_at_file(&path)?;
        refuse_unfinished(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(immutable_uri(&path), flags)
            .map_err(|error| failure(error, None))?;
        Self::harden(connection, bytes, limits)
    }

    /// Takes a database that is in memory.
    pub(crate) fn from_bytes(bytes: &[u8], limits: Option<Limits>) -> Result<Self, ImportError> {
        let length = bytes.len() as u64;
        header::check(&bytes[..bytes.len().min(HEADER_BYTES)], length)?;
        let mut connection = Connection::open_in_memory().map_err(|error| failure(error, None))?;
        connection
            .deserialize_read_exact("main", bytes, bytes.len(), true)
            .map_err(|error| failure(error, None))?;
        Self::harden(connection, length, limits)
    }

    fn harden(
        mut connection: Connection,
        bytes: u64,
        limits: Option<Limits>,
    ) -> Result<Self, ImportError> {
        let limits = limits.unwrap_or_else(|| Limits::for_file_of(bytes));
        let budget = Budget::watch(&mut connection, &limits)
            .and_then(|budget| restrict(&mut connection).map(|()| budget))
            .map_err(|error| failure(error, None))?;
        Ok(Self {
            connection,
            budget,
            bytes,
        })
    }

    /// What an error of SQLite's means while `table` is read, or the schema.
    pub(crate) fn failure(&self, error: rusqlite::Error, table: Option<&str>) -> ImportError {
        if self.budget.is_exhausted() {
            let table = table.map(str::to_owned);
            return ImportError::TooMuchWork { table };
        }
        failure(error, table)
    }
}

/// Looks at the file's kind and header, and returns its size.
fn look_at_file(path: &Path) -> Result<u64, ImportError> {
    let file = File::open(path).map_err(ImportError::Io)?;
    let metadata = file.metadata().map_err(ImportError::Io)?;
    if !metadata.is_file() {
        let kind = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
        return Err(ImportError::Io(kind));
    }
    let mut first = Vec::with_capacity(HEADER_BYTES);
    file.take(HEADER_BYTES as u64)
        .read_to_end(&mut first)
        .map_err(ImportError::Io)?;
    header::check(&first, metadata.len()).map_err(|error| match error {
        ImportError::NotADatabase { .. } if is_report(path) => ImportError::NotExported,
        error => error,
    })?;
    Ok(metadata.len())
}

/// Whether the file is named like Nsight Systems' own reports.
fn is_report(path: &Path) -> bool {
    const REPORTS: [&str; 3] = ["nsys-rep", "qdrep", "qdstrm"];
    let extension = path.extension().unwrap_or_default();
    REPORTS.iter().any(|report| extension == *report)
}

/// An immutable database is read without its journals: where one holds something, say so.
fn refuse_unfinished(path: &Path) -> Result<(), ImportError> {
    let beside = |suffix: &str| -> Option<String> {
        let mut name = OsString::from(path.as_os_str());
        name.push(suffix);
        let journal = PathBuf::from(name);
        let holds_something = journal.metadata().is_ok_and(|found| found.len() > 0);
        let name = journal.file_name()?.to_string_lossy().into_owned();
        holds_something.then_some(name)
    };
    if let Some(journal) = beside("-journal") {
        return Err(ImportError::Unfinished { journal });
    }
    if let Some(log) = beside("-wal") {
        return Err(ImportError::WriteAheadLog { log });
    }
    Ok(())
}

/// `file:` URI of an absolute path, as <https://www.sqlite.org/uri.html> describes it.
fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file://");
    let text = path.as_os_str().as_encoded_bytes();
    if !text.starts_with(b"/") {
        uri.push('/');
    }
    for &byte in text {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'/' | b':' | b'-' | b'_' | b'.' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    uri
}

/// Takes from a connection whatever reading tables does not need.
fn restrict(connection: &mut Connection) -> rusqlite::Result<()> {
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        // A name in double quotes is a column or an error, never a text.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
    ] {
        connection.set_db_config(config, value)?;
    }
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE_BYTES),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, LONGEST_STATEMENT_BYTES),
        (Limit::SQLITE_LIMIT_COLUMN, 500),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 50),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 2),
        (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 8),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        (Limit::SQLITE_LIMIT_SCHEMA, MOST_SCHEMA_OBJECTS),
    ] {
        connection.set_limit(limit, most)?;
    }
    // Pages are read, not mapped: a file that shrinks while it is read must not be a signal. Cells
    // are checked as pages come in.
    connection.execute_batch(
        "pragma mmap_size = 0; pragma cell_size_check = on; pragma query_only = on;",
    )?;
    connection.authorizer(Some(only_reads))
}

/// Statements may read columns of tables and list them; nothing may be read on a view's behalf.
fn only_reads(context: AuthContext<'_>) -> Authorization {
    let reads = match context.action {
        AuthAction::Select | AuthAction::Read { .. } => context.accessor.is_none(),
        AuthAction::Pragma { pragma_name, .. } => pragma_name == "table_xinfo",
        _ => false,
    };
    if reads {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

fn failure(error: rusqlite::Error, table: Option<&str>) -> ImportError {
    let table = table.map(str::to_owned);
    match error.sqlite_error_code() {
        Some(ErrorCode::TooBig) => ImportError::ValueTooLong {
            table: table.unwrap_or_else(|| "the list of tables".to_owned()),
            limit_bytes: LONGEST_VALUE_BYTES.unsigned_abs().into(),
        },
        Some(ErrorCode::NotADatabase) => ImportError::NotADatabase {
            found: "its header is not a valid one",
        },
        Some(ErrorCode::OperationInterrupted) => ImportError::TooMuchWork { table },
        _ => ImportError::Damaged {
            table,
            message: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri_that_says_the_same() {
        assert_eq!(
            immutable_uri(Path::new("/traces/a b?c#d%.sqlite")),
            "file:///traces/a%20b%3fc%23d%25.sqlite?mode=ro&immutable=1"
        );
    }
}
