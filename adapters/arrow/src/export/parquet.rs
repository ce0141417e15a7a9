//! The tables as Parquet files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lineage_core::ledger::{Counts, Entry};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::{Backend, Cell, ExportError, Gather, Rows};
use crate::column::{Column, Kind};
use crate::tables::Table;

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// A folder with a Parquet file for each table of the run directory that has rows.
pub struct Parquet {
    gather: Gather,
    folder: Folder,
}

struct Folder {
    path: PathBuf,
    tables: [Option<SerializedFileWriter<File>>; Table::ALL.len()],
}

impl Parquet {
    /// A new folder, which must not be there.
    ///
    /// # Errors
    /// [`ExportError`] where it is there, or cannot be made.
    pub fn create(path: &Path) -> Result<Self, ExportError> {
        std::fs::create_dir(path).map_err(ExportError::new)?;
        Ok(Self {
            gather: Gather::of_rows(GROUP_ROWS),
            folder: Folder {
                path: path.to_owned(),
                tables: Default::default(),
            },
        })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`ExportError`] where the files do not take it.
    pub fn add(&mut self, entry: &Entry) -> Result<(), ExportError> {
        self.gather.add(entry, &mut self.folder)
    }

    /// Ends the files, and says what is in them.
    ///
    /// # Errors
    /// [`ExportError`] where the files do not take the rest.
    pub fn finish(mut self) -> Result<Counts, ExportError> {
        self.gather.flush(&mut self.folder)?;
        for writer in self.folder.tables.into_iter().flatten() {
            writer.close().map_err(ExportError::new)?;
        }
        Ok(self.gather.counts)
    }
}

impl std::fmt::Debug for Parquet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parquet").finish_non_exhaustive()
    }
}

fn schema(table: Table) -> Result<TypePtr, ParquetError> {
    let fields = table.columns().iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Bool => (PhysicalType::BOOLEAN, None),
            Kind::Name | Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::U32 | Kind::U64 => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let group = Type::group_type_builder(table.name()).with_fields(fields);
    group.build().map(Arc::new)
}

impl Folder {
    fn write(&mut self, table: Table, rows: &Rows<'_>) -> Result<(), ParquetError> {
        let slot = &mut self.tables[table as usize];
        let writer = match slot {
            Some(writer) => writer,
            None => {
                let file = File::create_new(self.path.join(format!("{}.parquet", table.name())))?;
                let level = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(level);
                slot.insert(SerializedFileWriter::new(
                    file,
                    schema(table)?,
                    Arc::new(properties.build()),
                )?)
            }
        };
        let mut group = writer.next_row_group()?;
        for (at, column) in table.columns().iter().enumerate() {
            let Some(mut out) = group.next_column()? else {
                break;
            };
            let levels = levels(rows, *column, at);
            match column.kind {
                Kind::Bool => {
                    let values = cells(rows, *column, at, |cell| match cell {
                        Cell::Bool(value) => Some(value),
                        _ => None,
                    });
                    out.typed::<BoolType>()
                        .write_batch(&values, Some(&levels), None)?;
                }
                Kind::Name | Kind::Text => {
                    let values = cells(rows, *column, at, |cell| match cell {
                        Cell::Text(text) => Some(ByteArray::from(text.as_bytes().to_vec())),
                        _ => None,
                    });
                    out.typed::<ByteArrayType>()
                        .write_batch(&values, Some(&levels), None)?;
                }
                Kind::U32 | Kind::U64 => {
                    let values = cells(rows, *column, at, |cell| match cell {
                        Cell::Number(number) => Some(number.cast_signed()),
                        _ => None,
                    });
                    out.typed::<Int64Type>()
                        .write_batch(&values, Some(&levels), None)?;
                }
            }
            out.close()?;
        }
        group.close()?;
        Ok(())
    }
}

/// 1 for each row that has a value, 0 for the others.
fn levels(rows: &Rows<'_>, column: Column, at: usize) -> Vec<i16> {
    let has = |row| !matches!(rows.cell(column, at, row), Cell::Null);
    (0..rows.len()).map(|row| i16::from(has(row))).collect()
}

/// The values of the rows that have one.
fn cells<T>(
    rows: &Rows<'_>,
    column: Column,
    at: usize,
    value: impl Fn(Cell<'_>) -> Option<T>,
) -> Vec<T> {
    let cells = (0..rows.len()).map(|row| rows.cell(column, at, row));
    cells.filter_map(value).collect()
}

impl Backend for Folder {
    fn rows(&mut self, table: Table, rows: &Rows<'_>) -> Result<(), ExportError> {
        self.write(table, rows).map_err(ExportError::new)
    }
}
