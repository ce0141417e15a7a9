//! Reading one segment, batch by batch, as far as its journal says that it is whole.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use lineage_core::ledger::{Counts, Entry};

use super::error::ReadErrorKind;
use super::place::Place;
use crate::decode::Decoder;
use crate::frame::{Cells, Frame};
use crate::journal::{Batch, Line};
use crate::limits::{JOURNAL, MAX_BATCH_BYTES, MAX_BATCH_ROWS, MAX_LINE, segment_name, table_file};
use crate::names::{MAX_NAME_BYTES, MAX_NAMES};
use crate::port::Bad;
use crate::tables::{Table, get, order_of};

/// A segment that is being read.
pub(super) struct Segment {
    place: Place,
    number: u64,
    journal: Option<BufReader<Bytes>>,
    line: u64,
    tables: BTreeMap<Table, TableFile>,
    names: Vec<Arc<str>>,
    name_bytes: usize,
    /// Bytes of the journal's last line, if it is cut short.
    torn_line: u64,
    /// Bytes read.
    pub(super) bytes: u64,
}

/// A file's bytes, as far as they were there when it was opened.
type Bytes = std::io::Take<Box<dyn Read + Send>>;

struct TableFile {
    bytes: Bytes,
    length: u64,
    at: u64,
    decoder: Decoder,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// What comes next in a segment.
#[derive(Debug)]
pub(super) enum Next {
    Batch(Entries),
    /// The session ended, with these counts.
    End(Counts),
    /// Another segment goes on.
    Continued,
    /// Nothing more: the segment has no end.
    Nothing,
}

/// An error, and the file it is in.
pub(super) type Failure = (String, ReadErrorKind);

impl Segment {
    pub(super) fn open(place: &Place, number: u64) -> Result<Self, Failure> {
        let file = format!("{}/{JOURNAL}", segment_name(number));
        let journal = place
            .open(&file)
            .map_err(|error| (file, ReadErrorKind::Io(error)))?;
        Ok(Self {
            place: place.clone(),
            number,
            journal: journal.map(|stream| BufReader::new(stream.bytes.take(stream.length))),
            line: 0,
            tables: BTreeMap::new(),
            names: Vec::new(),
            name_bytes: 0,
            torn_line: 0,
            bytes: 0,
        })
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", segment_name(self.number))
    }

    /// The next line of the journal; `None` at its end, and where it is cut short.
    fn line(&mut self) -> Result<Option<Line>, ReadErrorKind> {
        let Some(journal) = &mut self.journal else {
            return Ok(None);
        };
        let mut line = Vec::new();
        self.line += 1;
        let limit = MAX_LINE as u64 + 1;
        journal
            .take(limit)
            .read_until(b'\n', &mut line)
            .map_err(ReadErrorKind::Io)?;
        self.bytes += line.len() as u64;
        let damaged = |why: String| ReadErrorKind::Journal {
            line: self.line,
            why,
        };
        match line.pop() {
            None => Ok(None),
            Some(b'\n') => serde_json::from_slice(&line)
                .map(Some)
                .map_err(|error| damaged(error.to_string())),
            Some(_) if line.len() as u64 + 1 == limit => {
                Err(damaged(format!("it is longer than {MAX_LINE} bytes")))
            }
            Some(_) => {
                self.torn_line = line.len() as u64 + 1;
                Ok(None)
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Next, Failure> {
        let line = self.line();
        let line = line.map_err(|kind| (self.file(JOURNAL), kind))?;
        Ok(match line {
            None => Next::Nothing,
            Some(Line::End(counts)) => Next::End(counts),
            Some(Line::Continued(_)) => Next::Continued,
            Some(Line::Batch(batch)) => Next::Batch(self.batch(&batch)?),
        })
    }

    fn batch(&mut self, batch: &Batch) -> Result<Entries, Failure> {
        let mut entries = Entries {
            batch: batch.batch,
            segment: self.number,
            frames: Vec::new(),
            order: Vec::new(),
            at: 0,
            names: Vec::new(),
            unknown: Vec::new(),
            unknown_columns: Vec::new(),
        };
        for (name, part) in &batch.tables {
            let Some(table) = Table::of_name(name) else {
                entries.unknown.push((name.clone(), part.rows));
                continue;
            };
            let frame = self
                .table(table, batch.batch, part.bytes, part.rows)
                .map_err(|kind| (self.file(&table_file(name)), kind))?;
            entries.frames.push((table, frame));
            let columns = self
                .tables
                .get(&table)
                .map(|of| of.decoder.unknown_columns());
            for column in columns.into_iter().flatten() {
                let column = format!("{name}.{column}");
                entries.unknown_columns.push((column, part.rows));
            }
        }
        if let Some((_, frame)) = entries.frames.iter().find(|of| of.0 == Table::Names) {
            let damaged = |why: &str| {
                let why = why.to_owned();
                let batch = batch.batch;
                (
                    format!("{}/{}", segment_name(self.number), table_file("names")),
                    ReadErrorKind::Batch { batch, why },
                )
            };
            let texts = match frame.columns.first() {
                Some(Cells::Texts(texts)) => texts,
                _ => return Err(damaged("it has no texts")),
            };
            self.name_bytes += texts.bytes.len();
            // A full segment is only followed by another after its batch.
            if self.names.len() + frame.rows > MAX_NAMES + MAX_BATCH_ROWS
                || self.name_bytes > 2 * MAX_NAME_BYTES
            {
                return Err(damaged("there are more names than a segment may have"));
            }
            let texts = (0..frame.rows).map(|row| texts.get(row).unwrap_or_default());
            self.names.extend(texts.map(Arc::from));
        }
        entries.put_in_order();
        // Lent to the batch, and given back with it.
        entries.names = std::mem::take(&mut self.names);
        Ok(entries)
    }

    /// Takes back what a batch was lent.
    pub(super) fn give_back(&mut self, entries: Entries) {
        self.names = entries.names;
    }

    fn table(
        &mut self,
        table: Table,
        batch: u64,
        end: u64,
        rows: u64,
    ) -> Result<Frame, ReadErrorKind> {
        let damaged = |why: String| ReadErrorKind::Batch { batch, why };
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.tables.entry(table) {
            let file = format!("{}/{}", segment_name(self.number), table_file(table.name()));
            let stream = self.place.open(&file).map_err(ReadErrorKind::Io)?;
            let stream = stream.ok_or_else(|| damaged("the file is not there".to_owned()))?;
            vacant.insert(TableFile {
                bytes: stream.bytes.take(stream.length),
                length: stream.length,
                at: 0,
                decoder: Decoder::new(table.columns()),
            });
        }
        let Some(file) = self.tables.get_mut(&table) else {
            return Err(damaged("the file is not there".to_owned()));
        };
        if end > file.length {
            return Err(damaged(format!(
                "the file has {} bytes, and its journal says {end}",
                file.length
            )));
        }
        let length = end
            .checked_sub(file.at)
            .filter(|length| *length <= MAX_BATCH_BYTES)
            .ok_or_else(|| damaged("its journal gives it an impossible length".to_owned()))?;
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        let read = (&mut file.bytes).take(length).read_to_end(&mut bytes);
        let read = read.map_err(ReadErrorKind::Io)? as u64;
        file.at += read;
        self.bytes += read;
        if read < length {
            return Err(damaged("the file became shorter".to_owned()));
        }
        let frame = file
            .decoder
            .batch(&bytes)
            .map_err(|why| damaged(why.to_string()))?;
        if frame.rows as u64 != rows {
            return Err(damaged(format!(
                "it has {} rows, and its journal says {rows}",
                frame.rows
            )));
        }
        Ok(frame)
    }

    /// Bytes after the last batch that is whole: of a batch that was cut short.
    pub(super) fn left_over(&self) -> u64 {
        let tables = Table::ALL.into_iter().map(|table| {
            if let Some(file) = self.tables.get(&table) {
                return file.length - file.at.min(file.length);
            }
            let file = self.file(&table_file(table.name()));
            let file = self.place.open(&file).ok().flatten();
            file.map_or(0, |file| file.length)
        });
        tables.fold(self.torn_line, u64::saturating_add)
    }
}

/// The entries of a batch.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) batch: u64,
    pub(super) segment: u64,
    frames: Vec<(Table, Frame)>,
    /// Order in the batch, frame, row.
    order: Vec<(u64, u32, u32)>,
    at: usize,
    names: Vec<Arc<str>>,
    /// Tables that this build does not know, and their rows.
    pub(super) unknown: Vec<(String, u64)>,
    /// Columns that this build does not know, as `TABLE.COLUMN`, and their rows.
    pub(super) unknown_columns: Vec<(String, u64)>,
}

/// An entry that cannot be read: its table and row, and why.
pub(super) type BadEntry = (Table, u64, Bad);

impl Entries {
    fn put_in_order(&mut self) {
        for (at, (table, frame)) in self.frames.iter().enumerate() {
            if *table == Table::Names {
                continue;
            }
            // Both are small: tables are thirteen, and rows at most 16,384.
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let rows = u32::try_from(frame.rows).unwrap_or(u32::MAX);
            self.order.extend((0..rows).map(|row| {
                let order = order_of(frame, row as usize).unwrap_or(u64::MAX);
                (order, at, row)
            }));
        }
        self.order.sort_unstable();
    }

    /// The next entry, in the order in which they came.
    pub(super) fn next(&mut self) -> Option<Result<Entry, BadEntry>> {
        let (_, frame, row) = *self.order.get(self.at)?;
        self.at += 1;
        let (table, frame) = self.frames.get(frame as usize)?;
        let entry = get(*table, frame, &self.names, row as usize);
        Some(entry.map_err(|bad| (*table, u64::from(row), bad)))
    }
}
