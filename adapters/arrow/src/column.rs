//! What a table's columns are, and how they are coded on disk.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};

/// What a column's cells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of up to 64 bits.
    U64,
    /// A whole number of up to 32 bits.
    U32,
    /// True or false.
    Bool,
    /// A text that comes again and again: its place in the segment's table of names, from 0.
    Name,
    /// A text of its own.
    Text,
}

/// How a column's numbers are coded within a batch. A null cell has no part in any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// As they are.
    Plain,
    /// Each as its difference from the one before it in the batch; the first from 0. A cumulative
    /// sum over the batch gives the values.
    Delta,
    /// Each as its difference from this column of the same row, which comes earlier in the schema;
    /// where that is null, from the last value that it had before in the batch; from 0 if it had none.
    After(&'static str),
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// Its name. Times end in `_ns`.
    pub name: &'static str,
    /// What its cells are.
    pub kind: Kind,
    /// How they are coded.
    pub coding: Coding,
}

impl Column {
    const fn new(name: &'static str, kind: Kind, coding: Coding) -> Self {
        Self { name, kind, coding }
    }

    pub(crate) const fn u64(name: &'static str) -> Self {
        Self::new(name, Kind::U64, Coding::Plain)
    }

    pub(crate) const fn u32(name: &'static str) -> Self {
        Self::new(name, Kind::U32, Coding::Plain)
    }

    pub(crate) const fn bool(name: &'static str) -> Self {
        Self::new(name, Kind::Bool, Coding::Plain)
    }

    pub(crate) const fn name(name: &'static str) -> Self {
        Self::new(name, Kind::Name, Coding::Plain)
    }

    pub(crate) const fn text(name: &'static str) -> Self {
        Self::new(name, Kind::Text, Coding::Plain)
    }

    /// A number that mostly rises by little from row to row: a time, an id.
    pub(crate) const fn delta(name: &'static str) -> Self {
        Self::new(name, Kind::U64, Coding::Delta)
    }

    /// A number that is mostly near to that of another column.
    pub(crate) const fn after(name: &'static str, other: &'static str) -> Self {
        Self::new(name, Kind::U64, Coding::After(other))
    }

    /// The type on disk.
    pub(crate) fn data_type(self) -> DataType {
        match (self.coding, self.kind) {
            (Coding::Delta | Coding::After(_), _) => DataType::Int64,
            (_, Kind::U64) => DataType::UInt64,
            (_, Kind::U32 | Kind::Name) => DataType::UInt32,
            (_, Kind::Bool) => DataType::Boolean,
            (_, Kind::Text) => DataType::Utf8,
        }
    }

    /// The coding as the field's metadata says it.
    pub(crate) fn coding_text(self) -> String {
        match (self.coding, self.kind) {
            (Coding::Plain, Kind::Name) => "name".to_owned(),
            (Coding::Plain, _) => String::new(),
            (Coding::Delta, _) => "delta".to_owned(),
            (Coding::After(other), _) => format!("after:{other}"),
        }
    }
}

/// Key of a field's metadata that says how its cells are coded.
pub(crate) const CODING_KEY: &str = "lineage.coding";
/// Key of a stream's metadata that says which table it is.
pub(crate) const TABLE_KEY: &str = "lineage.table";

/// The Arrow schema of a table.
pub(crate) fn arrow_schema(table: &str, columns: &[Column]) -> Schema {
    let fields: Vec<Field> = columns
        .iter()
        .map(|column| {
            let field = Field::new(column.name, column.data_type(), true);
            match column.coding_text() {
                coding if coding.is_empty() => field,
                coding => field.with_metadata(HashMap::from([(CODING_KEY.to_owned(), coding)])),
            }
        })
        .collect();
    Schema::new_with_metadata(
        fields,
        HashMap::from([(TABLE_KEY.to_owned(), table.to_owned())]),
    )
}
