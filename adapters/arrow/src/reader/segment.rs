//! Reading one segment, batch by batch, as far as its journal says that it is whole.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, SeekFrom};
use std::sync::Arc;

use lineage_core::ledger::{Counts, Entry};

use super::error::ReadErrorKind;
use super::part::{Selection, is_of_one_moment};
use super::place::{Place, ReadSeek};
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
    selection: Selection,
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
type Bytes = std::io::Take<Box<dyn ReadSeek>>;

struct TableFile {
    bytes: Box<dyn ReadSeek>,
    /// Its length when it was opened: no more of it is read.
    length: u64,
    /// Where the last batch ends, that was read or passed over.
    at: u64,
    /// Where the file is read on from.
    read_to: u64,
    decoder: Decoder,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// The lines of a segment's journal, as far as they are sound.
pub(super) fn journal_of(place: &Place, number: u64) -> impl Iterator<Item = Line> {
    let mut segment = Segment::open(place, number, &Selection::default()).ok();
    std::iter::from_fn(move || segment.as_mut()?.line().ok().flatten())
}

/// What comes next in a segment.
#[derive(Debug)]
pub(super) enum Next {
    Batch(Box<Entries>),
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
    pub(super) fn open(place: &Place, number: u64, selection: &Selection) -> Result<Self, Failure> {
        let file = format!("{}/{JOURNAL}", segment_name(number));
        let journal = place
            .open(&file)
            .map_err(|error| (file, ReadErrorKind::Io(error)))?;
        Ok(Self {
            place: place.clone(),
            number,
            selection: selection.clone(),
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
            Some(Line::Batch(batch)) => Next::Batch(Box::new(self.batch(&batch)?)),
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
            passed_over: Counts::default(),
        };
        let is_outside = self.selection.is_outside(batch.times.map(Into::into));
        for (name, part) in &batch.tables {
            let Some(table) = Table::of_name(name) else {
                entries.unknown.push((name.clone(), part.rows));
                continue;
            };
            if self.selection.passes_over(table, is_outside) {
                self.pass_over(table, batch.batch, part.bytes)
                    .map_err(|kind| (self.file(&table_file(name)), kind))?;
                let count = match table {
                    Table::Launches => &mut entries.passed_over.rows,
                    _ => &mut entries.passed_over.observations,
                };
                *count = count.saturating_add(part.rows);
                continue;
            }
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
        entries.put_in_order(is_outside.then_some(&self.names));
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
        let bytes = self.bytes_of(table, batch, end)?;
        let Some(file) = self.tables.get_mut(&table) else {
            return Err(damaged("the file is not there".to_owned()));
        };
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

    /// Leaves a batch of a table unread, but for the schema where that comes before it.
    fn pass_over(&mut self, table: Table, batch: u64, end: u64) -> Result<(), ReadErrorKind> {
        let damaged = |why: String| ReadErrorKind::Batch { batch, why };
        let known = self.tables.get(&table);
        if self.selection.leaves_out(table) {
            // Not one batch of it will be read.
            return Ok(());
        }
        if known.is_none_or(|file| file.decoder.is_at_schema()) {
            let bytes = self.bytes_of(table, batch, end)?;
            if let Some(file) = self.tables.get_mut(&table) {
                let schema = file.decoder.schema(&mut bytes.as_slice());
                schema.map_err(|why| damaged(why.to_string()))?;
            }
            return Ok(());
        }
        let file = self.file_of(table, batch, end)?;
        file.at = end;
        Ok(())
    }

    /// The file of a table, which has a batch that ends there.
    fn file_of(
        &mut self,
        table: Table,
        batch: u64,
        end: u64,
    ) -> Result<&mut TableFile, ReadErrorKind> {
        let damaged = |why: String| ReadErrorKind::Batch { batch, why };
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.tables.entry(table) {
            let file = format!("{}/{}", segment_name(self.number), table_file(table.name()));
            let stream = self.place.open(&file).map_err(ReadErrorKind::Io)?;
            let stream = stream.ok_or_else(|| damaged("the file is not there".to_owned()))?;
            vacant.insert(TableFile {
                bytes: stream.bytes,
                length: stream.length,
                at: 0,
                read_to: 0,
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
        if end
            .checked_sub(file.at)
            .is_none_or(|length| length > MAX_BATCH_BYTES)
        {
            return Err(damaged(
                "its journal gives it an impossible length".to_owned(),
            ));
        }
        Ok(file)
    }

    /// The bytes of a table's next batch, which ends there.
    fn bytes_of(&mut self, table: Table, batch: u64, end: u64) -> Result<Vec<u8>, ReadErrorKind> {
        let file = self.file_of(table, batch, end)?;
        if file.read_to != file.at {
            let at = file.bytes.seek(SeekFrom::Start(file.at));
            file.read_to = at.map_err(ReadErrorKind::Io)?;
        }
        let length = end - file.at;
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        let read = (&mut file.bytes).take(length).read_to_end(&mut bytes);
        let read = read.map_err(ReadErrorKind::Io)? as u64;
        file.at += read;
        file.read_to = file.at;
        self.bytes += read;
        if read < length {
            return Err(ReadErrorKind::Batch {
                batch,
                why: "the file became shorter".to_owned(),
            });
        }
        Ok(bytes)
    }

    /// Bytes after the last batch that is whole: of a batch that was cut short.
    pub(super) fn left_over(&self) -> u64 {
        let read = Table::ALL.into_iter();
        let read = read.filter(|table| !self.selection.leaves_out(*table));
        let tables = read.map(|table| {
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
    /// Entries that were not looked at, since they were not asked for.
    pub(super) passed_over: Counts,
}

/// An entry that cannot be read: its table and row, and why.
pub(super) type BadEntry = (Table, u64, Bad);

impl Entries {
    /// Puts the rows in the order in which they came; with names, without facts that are of one moment.
    fn put_in_order(&mut self, outside: Option<&Vec<Arc<str>>>) {
        for (at, (table, frame)) in self.frames.iter().enumerate() {
            if *table == Table::Names {
                continue;
            }
            // Both are small: tables are thirteen, and rows at most 16,384.
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let rows = u32::try_from(frame.rows).unwrap_or(u32::MAX);
            let wanted = (0..rows).filter(|row| {
                let of_one_moment = *table == Table::Facts
                    && outside.is_some_and(|names| is_of_one_moment(frame, names, *row as usize));
                self.passed_over.observations += u64::from(of_one_moment);
                !of_one_moment
            });
            self.order.extend(wanted.map(|row| {
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
