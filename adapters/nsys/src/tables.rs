//! Which tables a database has, and one pass over one of them.

use rusqlite::types::ValueRef;

use crate::ImportError;
use crate::database::Database;
use crate::text;

/// A value as it is stored; types are not to be relied on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    /// `NULL`, or the table of this schema has no such column.
    Absent,
    /// An integer.
    Integer(i64),
    /// A text, which may be no UTF-8.
    Text(&'a [u8]),
    /// Something that no column of an export holds: a real or a blob.
    Other,
}

impl<'a> From<ValueRef<'a>> for Value<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Null => Self::Absent,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Text(text) => Self::Text(text),
            ValueRef::Real(_) | ValueRef::Blob(_) => Self::Other,
        }
    }
}

/// A real table: no view, and no virtual table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// Stored columns; generated ones are not read.
    columns: Vec<String>,
    /// Whether a row can be found by the value of its `id` without a pass over the table.
    pub(crate) id_is_key: bool,
}

impl Table {
    /// Whether this schema has a column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|found| found == column)
    }
}

/// What a database consists of.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// Names of real tables.
    tables: Vec<String>,
    /// Names of what can be read like a table and is none.
    pub(crate) not_tables: Vec<String>,
}

impl Schema {
    /// Lists the tables. SQLite has checked that type and name of each entry are those of its
    /// statement; a virtual table has no root page.
    pub(crate) fn read(database: &Database) -> Result<Self, ImportError> {
        let list = "select type, name, rootpage from main.sqlite_master";
        let mut schema = Self::default();
        run(database, list, None, [0, 1, 2], |[kind, name, root]| {
            if let (Value::Text(kind), Value::Text(name)) = (kind, name) {
                let name = String::from_utf8_lossy(name).into_owned();
                match (kind, root) {
                    (b"table", Value::Integer(1..)) => schema.tables.push(name),
                    (b"table" | b"view", _) => schema.not_tables.push(name),
                    _ => {}
                }
            }
            Ok(())
        })?;
        Ok(schema)
    }

    /// Whether there is a real table of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table == name)
    }

    /// A table with its columns; `None` if the database has none of that name.
    pub(crate) fn table(
        &self,
        database: &Database,
        name: &str,
    ) -> Result<Option<Table>, ImportError> {
        if !self.has(name) {
            return Ok(None);
        }
        let mut table = Table {
            name: name.to_owned(),
            columns: Vec::new(),
            id_is_key: false,
        };
        let list = format!("pragma main.table_xinfo({})", quoted(name));
        let mut keys = 0;
        let mut id_is_integer_key = false;
        // Columns of the answer: cid, name, type, notnull, dflt_value, pk, hidden.
        run(
            database,
            &list,
            Some(name),
            [1, 2, 5, 6],
            |[column, kind, key, hidden]| {
                if let (Value::Text(column), Value::Integer(0)) = (column, hidden) {
                    let is_key = matches!(key, Value::Integer(1..));
                    keys += u32::from(is_key);
                    let is_integer =
                        matches!(kind, Value::Text(kind) if kind.eq_ignore_ascii_case(b"integer"));
                    id_is_integer_key |= is_key && is_integer && column == b"id";
                    table
                        .columns
                        .push(String::from_utf8_lossy(column).into_owned());
                }
                Ok(())
            },
        )?;
        table.id_is_key = id_is_integer_key && keys == 1;
        Ok(Some(table))
    }
}

/// Calls `each` with the wanted columns of every row, in the order in which the rows are stored.
/// Columns that the table lacks are [`Value::Absent`].
pub(crate) fn scan<const N: usize>(
    database: &Database,
    table: &Table,
    columns: [&str; N],
    each: impl FnMut([Value<'_>; N]) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    // `null` stands for a column that is not there, so that positions are those of `columns`.
    let list = columns.map(|column| match table.has(column) {
        true => quoted(column),
        false => "null".to_owned(),
    });
    let statement = format!(
        "select {} from main.{} not indexed",
        list.join(", "),
        quoted(&table.name)
    );
    let positions = std::array::from_fn(|at| at);
    run(database, &statement, Some(&table.name), positions, each)
}

/// The `value` of the first row of that `name`, as one line.
pub(crate) fn first_value(
    database: &Database,
    table: &Table,
    name: &str,
) -> Result<Option<String>, ImportError> {
    let failed = |error| database.failure(error, Some(&table.name));
    let statement = format!(
        "select value from main.{} not indexed where name = ?1",
        quoted(&table.name)
    );
    let mut statement = database.connection.prepare(&statement).map_err(failed)?;
    let mut rows = statement.query([name]).map_err(failed)?;
    match rows.next().map_err(failed)? {
        Some(row) => Ok(text::note(row.get_ref(0).map_err(failed)?.into())),
        None => Ok(None),
    }
}

/// The number of a table's last row: about how many it has, in a table that was written once. 0 if
/// that cannot be told.
pub(crate) fn last_row_number(database: &Database, table: &Table) -> u64 {
    let name = quoted(&table.name);
    let statement = format!("select rowid from main.{name} order by rowid desc limit 1");
    let last = database
        .connection
        .query_row(&statement, [], |row| row.get::<_, i64>(0));
    last.map_or(0, |last| u64::try_from(last).unwrap_or(0))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn run<const N: usize>(
    database: &Database,
    statement: &str,
    table: Option<&str>,
    positions: [usize; N],
    mut each: impl FnMut([Value<'_>; N]) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let failed = |error| database.failure(error, table);
    let mut statement = database.connection.prepare(statement).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if !database.budget.take_row() {
            return Err(ImportError::TooManyRows {
                table: table.unwrap_or("the list of tables").to_owned(),
                limit: database.budget.rows_granted(),
            });
        }
        let mut values = [Value::Absent; N];
        for (value, position) in values.iter_mut().zip(positions) {
            *value = row.get_ref(position).map_err(failed)?.into();
        }
        each(values)?;
    }
    Ok(())
}
