//! From Arrow IPC streams to frames, whatever the bytes are.
//!
//! Message headers are flatbuffers, which are verified before anything in them is looked at. Every
//! length is held against what the bytes can hold before memory is taken for it: a batch has at most
//! 16,384 rows, and a column of numbers no more bytes than its rows ask for.

use arrow_buffer::Buffer as Aligned;
use arrow_ipc::{
    BodyCompressionMethod, CompressionType, Field, Message, MessageHeader, RecordBatch, Schema,
    Type, root_as_message,
};

use crate::column::{CODING_KEY, Coding, Column};
use crate::encode::numbers_of;
use crate::frame::{Cells, Frame, Numbers, Texts, decoded};
use crate::limits::{MAX_BATCH_ROWS, MAX_COLUMN_TEXT, MAX_COLUMNS};

/// Why bytes are no batch of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Undecodable(String);

fn bad(why: impl Into<String>) -> Undecodable {
    Undecodable(why.into())
}

/// How a column is laid out on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Whole numbers of so many bytes, sign or none.
    Fixed(usize),
    Bits,
    Text,
}

/// A column of a stream: its layout, and which of the table's columns it is, if this build knows it.
#[derive(Debug, Clone, Copy)]
struct OnDisk {
    layout: Layout,
    known: Option<usize>,
}

/// Reads a table's stream, batch by batch.
#[derive(Debug)]
pub(crate) struct Decoder {
    columns: &'static [Column],
    on_disk: Option<Vec<OnDisk>>,
    /// Columns of the file that this build does not know, by their names.
    unknown: Vec<String>,
}

impl Decoder {
    pub(crate) fn new(columns: &'static [Column]) -> Self {
        Self {
            columns,
            on_disk: None,
            unknown: Vec::new(),
        }
    }

    /// Columns of the file that this build does not know, whose cells it leaves aside.
    pub(crate) fn unknown_columns(&self) -> &[String] {
        &self.unknown
    }

    /// Whether the stream's first batch, which the schema comes before, is still to be read.
    pub(crate) const fn is_at_schema(&self) -> bool {
        self.on_disk.is_none()
    }

    /// Reads no more of the first batch than the schema before it.
    pub(crate) fn schema(&mut self, bytes: &mut &[u8]) -> Result<(), Undecodable> {
        let header = message_header(bytes)?;
        let message = verified(&header)?;
        let schema = message
            .header_as_schema()
            .ok_or_else(|| bad("the stream does not begin with a schema"))?;
        let (on_disk, unknown) = schema_of(schema, self.columns)?;
        self.on_disk = Some(on_disk);
        self.unknown = unknown;
        Ok(())
    }

    /// Reads what was written as one batch: the first time the schema, and then one record batch.
    pub(crate) fn batch(&mut self, bytes: &[u8]) -> Result<Frame, Undecodable> {
        let mut rest = bytes;
        if self.on_disk.is_none() {
            self.schema(&mut rest)?;
        }
        let header = message_header(&mut rest)?;
        let message = verified(&header)?;
        if message.header_type() != MessageHeader::RecordBatch {
            return Err(bad("a message is no record batch"));
        }
        let batch = message
            .header_as_record_batch()
            .ok_or_else(|| bad("a message is no record batch"))?;
        let body = usize::try_from(message.bodyLength())
            .ok()
            .and_then(|length| rest.get(..length))
            .ok_or_else(|| bad("a record batch is longer than its file"))?;
        if body.len() != rest.len() {
            return Err(bad("there is more in a batch than one record batch"));
        }
        let on_disk = self.on_disk.as_deref().unwrap_or_default();
        frame(self.columns, on_disk, batch, body)
    }
}

/// Takes the header of a message off the bytes: the marker, its length, and itself, aligned as
/// flatbuffers ask.
fn message_header(bytes: &mut &[u8]) -> Result<Aligned, Undecodable> {
    let cut = || bad("a message is cut short");
    let (prefix, rest) = bytes.split_at_checked(8).ok_or_else(cut)?;
    let (marker, length) = prefix.split_at(4);
    if marker != [0xff; 4] {
        return Err(bad("a message does not begin as one"));
    }
    let length = <[u8; 4]>::try_from(length).map(u32::from_le_bytes);
    let length = length.ok().and_then(|length| usize::try_from(length).ok());
    let (header, rest) = length
        .and_then(|length| rest.split_at_checked(length))
        .ok_or_else(cut)?;
    *bytes = rest;
    Ok(Aligned::from(header))
}

fn verified(header: &Aligned) -> Result<Message<'_>, Undecodable> {
    root_as_message(header.as_slice()).map_err(|_| bad("a message's header is damaged"))
}

/// The columns of a stream, and the names of those that this build does not know.
fn schema_of(
    schema: Schema<'_>,
    columns: &[Column],
) -> Result<(Vec<OnDisk>, Vec<String>), Undecodable> {
    let fields = schema
        .fields()
        .ok_or_else(|| bad("a schema has no fields"))?;
    if fields.len() > MAX_COLUMNS {
        return Err(bad(format!("a table has over {MAX_COLUMNS} columns")));
    }
    let mut seen = vec![false; columns.len()];
    let mut on_disk = Vec::with_capacity(fields.len());
    let mut unknown = Vec::new();
    for field in fields {
        let layout = layout_of(field)?;
        let known = field
            .name()
            .and_then(|name| columns.iter().position(|column| column.name == name));
        if let Some(at) = known {
            let column = columns[at];
            let coding = coding_of(field);
            if std::mem::replace(&mut seen[at], true)
                || layout != expected(column)
                || coding != column.coding_text()
            {
                return Err(bad(format!(
                    "the column `{}` is not as this build knows it",
                    column.name
                )));
            }
        }
        if known.is_none() {
            unknown.push(field.name().unwrap_or("(unnamed)").to_owned());
        }
        on_disk.push(OnDisk { layout, known });
    }
    Ok((on_disk, unknown))
}

fn expected(column: Column) -> Layout {
    use arrow_schema::DataType;
    match column.data_type() {
        DataType::UInt32 => Layout::Fixed(4),
        DataType::Boolean => Layout::Bits,
        DataType::Utf8 => Layout::Text,
        _ => Layout::Fixed(8),
    }
}

fn layout_of(field: Field<'_>) -> Result<Layout, Undecodable> {
    let unknown = || bad("a column is of a type that this build does not read");
    if field.dictionary().is_some() || field.children().is_some_and(|of| !of.is_empty()) {
        return Err(unknown());
    }
    match field.type_type() {
        Type::Int => {
            let bits = field.type_as_int().ok_or_else(unknown)?.bitWidth();
            match bits {
                8 | 16 | 32 | 64 => Ok(Layout::Fixed(usize::from(bits.unsigned_abs() as u8) / 8)),
                _ => Err(unknown()),
            }
        }
        Type::Bool => Ok(Layout::Bits),
        Type::Utf8 => Ok(Layout::Text),
        _ => Err(unknown()),
    }
}

fn coding_of(field: Field<'_>) -> String {
    let all = field.custom_metadata().into_iter().flatten();
    let mut ours = all.filter(|pair| pair.key() == Some(CODING_KEY));
    ours.next()
        .and_then(|pair| pair.value())
        .unwrap_or_default()
        .to_owned()
}

fn frame(
    columns: &[Column],
    on_disk: &[OnDisk],
    batch: RecordBatch<'_>,
    body: &[u8],
) -> Result<Frame, Undecodable> {
    let rows = usize::try_from(batch.length())
        .ok()
        .filter(|rows| *rows <= MAX_BATCH_ROWS)
        .ok_or_else(|| bad(format!("a batch has over {MAX_BATCH_ROWS} rows")))?;
    let compressed = match batch.compression() {
        None => false,
        Some(how)
            if how.codec() == CompressionType::ZSTD
                && how.method() == BodyCompressionMethod::BUFFER =>
        {
            true
        }
        Some(_) => return Err(bad("a batch is compressed by other means than zstd")),
    };
    if batch.nodes().map_or(0, |nodes| nodes.len()) != on_disk.len() {
        return Err(bad("a batch has not as many columns as its schema"));
    }
    let mut buffers = Buffers {
        all: batch.buffers().into_iter().flatten(),
        body,
        compressed,
    };
    let mut frame = Frame::new(columns);
    frame.rows = rows;
    for column in on_disk {
        let cells = match column.layout {
            Layout::Text => Cells::Texts(texts(&mut buffers, rows)?),
            layout => Cells::Numbers(numbers(&mut buffers, rows, layout)?),
        };
        if let Some(at) = column.known {
            frame.columns[at] = cells;
        }
    }
    for (at, column) in columns.iter().enumerate() {
        let of_file = on_disk.iter().any(|column| column.known == Some(at));
        match &mut frame.columns[at] {
            // A column that the file does not have: an older writer's.
            Cells::Numbers(numbers) if !of_file => {
                numbers.values = vec![0; rows];
                numbers.valid = vec![false; rows];
            }
            Cells::Texts(texts) if !of_file => {
                texts.ends = vec![0; rows];
                texts.valid = vec![false; rows];
            }
            _ => {}
        }
        // What a column counts from comes before it, and is decoded by now.
        let Cells::Numbers(numbers) = &frame.columns[at] else {
            continue;
        };
        let values = match column.coding {
            Coding::Plain => continue,
            Coding::Delta => decoded(*column, numbers, None),
            Coding::After(name) => decoded(*column, numbers, numbers_of(columns, &frame, name)),
        };
        if let Cells::Numbers(numbers) = &mut frame.columns[at] {
            numbers.values = values;
        }
    }
    Ok(frame)
}

/// The buffers of a record batch, in order.
struct Buffers<'a, I> {
    all: I,
    body: &'a [u8],
    compressed: bool,
}

impl<'a, I: Iterator<Item = &'a arrow_ipc::Buffer>> Buffers<'a, I> {
    /// The next buffer as it is on disk.
    fn raw(&mut self) -> Result<&'a [u8], Undecodable> {
        let buffer = self
            .all
            .next()
            .ok_or_else(|| bad("a batch has too few buffers"))?;
        let start = usize::try_from(buffer.offset()).ok();
        let length = usize::try_from(buffer.length()).ok();
        start
            .zip(length)
            .and_then(|(start, length)| self.body.get(start..start.checked_add(length)?))
            .ok_or_else(|| bad("a buffer lies outside its batch"))
    }

    /// The next buffer, which has at least `least` bytes and at most `most`.
    fn next(&mut self, least: usize, most: usize) -> Result<Vec<u8>, Undecodable> {
        let raw = self.raw()?;
        let bytes = if !self.compressed {
            raw.get(..raw.len().min(most)).map(<[u8]>::to_vec)
        } else if raw.is_empty() {
            Some(Vec::new())
        } else {
            inflate(raw, most)
        };
        bytes
            .filter(|bytes| bytes.len() >= least)
            .ok_or_else(|| bad("a buffer has not the length that its rows ask for"))
    }
}

/// Decompresses a buffer: eight bytes with the length, -1 where it is not compressed, and the data.
fn inflate(raw: &[u8], most: usize) -> Option<Vec<u8>> {
    // Writers may pad what they compress to 64 bytes.
    const PADDING: usize = 64;
    let (prefix, data) = raw.split_at_checked(8)?;
    let length = i64::from_le_bytes(prefix.try_into().ok()?);
    if length == -1 {
        return data.get(..data.len().min(most)).map(<[u8]>::to_vec);
    }
    let length = usize::try_from(length).ok()?;
    if length > most.checked_add(PADDING)? {
        return None;
    }
    let bytes = zstd::bulk::decompress(data, length).ok()?;
    (bytes.len() == length).then_some(bytes)
}

fn valid<'a>(
    buffers: &mut Buffers<'a, impl Iterator<Item = &'a arrow_ipc::Buffer>>,
    rows: usize,
) -> Result<Vec<bool>, Undecodable> {
    let bits = buffers.next(0, rows.div_ceil(8))?;
    if bits.is_empty() {
        return Ok(vec![true; rows]);
    }
    if bits.len() < rows.div_ceil(8) {
        return Err(bad("a buffer has not the length that its rows ask for"));
    }
    Ok((0..rows).map(|row| bit(&bits, row)).collect())
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

fn numbers<'a>(
    buffers: &mut Buffers<'a, impl Iterator<Item = &'a arrow_ipc::Buffer>>,
    rows: usize,
    layout: Layout,
) -> Result<Numbers, Undecodable> {
    let valid = valid(buffers, rows)?;
    let mut values: Vec<u64> = match layout {
        Layout::Fixed(width) => {
            let bytes = buffers.next(rows * width, rows * width)?;
            let cells = bytes.chunks_exact(width).take(rows);
            cells
                .map(|cell| {
                    let mut value = [0; 8];
                    value[..width].copy_from_slice(cell);
                    u64::from_le_bytes(value)
                })
                .collect()
        }
        _ => {
            let bits = buffers.next(rows.div_ceil(8), rows.div_ceil(8))?;
            (0..rows).map(|row| u64::from(bit(&bits, row))).collect()
        }
    };
    for (value, valid) in values.iter_mut().zip(&valid) {
        if !valid {
            *value = 0;
        }
    }
    Ok(Numbers { values, valid })
}

fn texts<'a>(
    buffers: &mut Buffers<'a, impl Iterator<Item = &'a arrow_ipc::Buffer>>,
    rows: usize,
) -> Result<Texts, Undecodable> {
    let valid = valid(buffers, rows)?;
    let offsets = buffers.next(0, (rows + 1) * 4)?;
    let bytes = buffers.next(0, MAX_COLUMN_TEXT)?;
    if rows == 0 {
        return Ok(Texts::default());
    }
    let offset = |at: usize| {
        let four = offsets.get(at * 4..at * 4 + 4)?;
        usize::try_from(u32::from_le_bytes(four.try_into().ok()?)).ok()
    };
    let mut texts = Texts::default();
    for (row, valid) in valid.iter().enumerate() {
        let text = offset(row)
            .zip(offset(row + 1))
            .and_then(|(start, end)| bytes.get(start..end))
            .ok_or_else(|| bad("a text lies outside its buffer"))?;
        let text = std::str::from_utf8(text).map_err(|_| bad("a text is not UTF-8"))?;
        if texts.bytes.len() + text.len() > MAX_COLUMN_TEXT {
            return Err(bad("a batch has too much text"));
        }
        texts.push(valid.then_some(text));
    }
    Ok(texts)
}
