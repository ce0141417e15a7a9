//! From frames to Arrow IPC streams.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MetadataVersion};
use arrow_schema::{ArrowError, DataType, Schema};

use crate::column::{Coding, Column, arrow_schema};
use crate::frame::{Cells, Frame, Numbers, Texts, coded, position};

/// A table's stream, whose bytes are taken out after each batch.
pub(crate) struct Stream {
    schema: Arc<Schema>,
    columns: &'static [Column],
    writer: StreamWriter<Vec<u8>>,
}

impl Stream {
    /// A stream of a table with these columns. Its first bytes are the schema's.
    pub(crate) fn new(table: &str, columns: &'static [Column]) -> Result<Self, ArrowError> {
        let schema = Arc::new(arrow_schema(table, columns));
        let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?
            .try_with_compression(Some(CompressionType::ZSTD))?;
        let writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
        Ok(Self {
            schema,
            columns,
            writer,
        })
    }

    /// The bytes of one batch; of the first one with the schema's before them.
    pub(crate) fn batch(&mut self, frame: &Frame) -> Result<Vec<u8>, ArrowError> {
        let arrays = self.columns.iter().zip(&frame.columns);
        let arrays: Vec<ArrayRef> = arrays
            .map(|(column, cells)| match cells {
                Cells::Texts(texts) => text_array(texts),
                Cells::Numbers(numbers) => {
                    let other = match column.coding {
                        Coding::After(name) => numbers_of(self.columns, frame, name),
                        Coding::Plain | Coding::Delta => None,
                    };
                    number_array(*column, numbers, other)
                }
            })
            .collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        self.writer.write(&batch)?;
        Ok(std::mem::take(self.writer.get_mut()))
    }

    /// The bytes that end the stream.
    pub(crate) fn end(&mut self) -> Result<Vec<u8>, ArrowError> {
        self.writer.finish()?;
        Ok(std::mem::take(self.writer.get_mut()))
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// The numbers of a column that others count from.
pub(crate) fn numbers_of<'a>(
    columns: &[Column],
    frame: &'a Frame,
    name: &str,
) -> Option<&'a Numbers> {
    match frame.columns.get(position(columns, name)?)? {
        Cells::Numbers(numbers) => Some(numbers),
        Cells::Texts(_) => None,
    }
}

fn nulls(valid: &[bool]) -> Option<NullBuffer> {
    let nulls = NullBuffer::from(valid);
    (nulls.null_count() > 0).then_some(nulls)
}

fn number_array(column: Column, numbers: &Numbers, other: Option<&Numbers>) -> ArrayRef {
    let nulls = nulls(&numbers.valid);
    let plain = &numbers.values;
    // What does not fit its type was never put into such a column: they are filled from it.
    let narrow = |value: &u64| u32::try_from(*value).unwrap_or(u32::MAX);
    match column.data_type() {
        DataType::Int64 => {
            let values = coded(column, numbers, other);
            let values: Vec<i64> = values.into_iter().map(u64::cast_signed).collect();
            Arc::new(Int64Array::new(values.into(), nulls)) as ArrayRef
        }
        DataType::UInt32 => {
            let values: Vec<u32> = plain.iter().map(narrow).collect();
            Arc::new(UInt32Array::new(values.into(), nulls))
        }
        DataType::Boolean => {
            let values: BooleanBuffer = plain.iter().map(|value| *value != 0).collect();
            Arc::new(BooleanArray::new(values, nulls))
        }
        _ => Arc::new(UInt64Array::new(plain.clone().into(), nulls)),
    }
}

fn text_array(texts: &Texts) -> ArrayRef {
    let ends = texts.ends.iter();
    let offsets: Vec<i32> = std::iter::once(0)
        .chain(ends.map(|end| i32::try_from(*end).unwrap_or(i32::MAX)))
        .collect();
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let bytes = Buffer::from(texts.bytes.as_bytes());
    // Texts are UTF-8, and end where a text ends.
    match StringArray::try_new(offsets, bytes, nulls(&texts.valid)) {
        Ok(array) => Arc::new(array),
        Err(_) => Arc::new(StringArray::new_null(texts.ends.len())),
    }
}
