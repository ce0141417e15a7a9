//! Reading run directories, whatever is in them.

mod error;
mod part;
mod place;
mod segment;
mod summary;

use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::ledger::{Counts, Entry, Header};

pub use error::{ReadError, ReadErrorKind};
pub use part::{BatchHeld, Survey};
pub use summary::Summary;

use crate::limits::{MAX_LINE, META, SCHEMA, segment_name, table_file};
use crate::meta::{AnyMeta, Meta, Removed};
use crate::port::Bad;
use crate::tables::Table;
use part::Selection;
use place::Place;
use segment::{Entries, Next, Segment};

/// Streams the entries of a run directory, in the order in which its session had them; of several
/// directories one after the other, their processes told apart by their ordinals. Memory is bounded
/// by one batch, and the names of one segment.
///
/// An error is not the end: the iteration goes on with what can still be read if asked to.
#[derive(Debug)]
pub struct Reader {
    metas: Vec<Meta>,
    directories: VecDeque<Directory>,
    current: Option<Open>,
    summary: Summary,
    /// The first process of the directory that is read, and one above the last.
    processes: (u32, u32),
    began: bool,
    ended: bool,
}

#[derive(Debug)]
struct Directory {
    place: Place,
    meta: Meta,
    segments: Vec<u64>,
    selection: Selection,
}

/// A directory that is being read.
#[derive(Debug)]
struct Open {
    place: Place,
    removed: Removed,
    selection: Selection,
    segments: VecDeque<u64>,
    /// The batch that was read last.
    batch: u64,
    segment: Option<Segment>,
    entries: Option<Entries>,
    /// What was read of this directory.
    read: Counts,
    skipped: u64,
    passed_over: u64,
    errors: u64,
    cut_short: bool,
    ended: bool,
}

impl Reader {
    /// A reader of the run directory of this path, or, where it is a folder of several
    /// `NAME.lineage`, of all of them, in order of their names.
    ///
    /// # Errors
    /// [`ReadError`] where a directory is none of ours, or its schema is newer than this build's.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::open_all([path])
    }

    /// A reader of the run directories of these paths, as one recording of several processes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_all<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self, ReadError> {
        let mut places = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let all = place::directories(path).map_err(|error| ReadError {
                place: path.display().to_string(),
                kind: ReadErrorKind::Io(error),
            })?;
            places.extend(all.into_iter().map(Place::Folder));
        }
        Self::of(places)
    }

    /// A reader of a run directory's files in memory, by their paths in it such as
    /// `000001/launches.arrows`: for tests and fuzzing.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn in_memory(files: BTreeMap<String, Vec<u8>>) -> Result<Self, ReadError> {
        Self::of(vec![Place::Memory(Arc::new(files))])
    }

    fn of(places: Vec<Place>) -> Result<Self, ReadError> {
        let mut directories = VecDeque::new();
        for place in places {
            let meta = read_meta(&place).map_err(|kind| ReadError {
                place: place.name(),
                kind,
            })?;
            let segments = place.segments().map_err(|error| ReadError {
                place: place.name(),
                kind: ReadErrorKind::Io(error),
            })?;
            directories.push_back(Directory {
                place,
                meta,
                segments,
                selection: Selection::default(),
            });
        }
        Ok(Self {
            metas: directories.iter().map(|of| of.meta.clone()).collect(),
            directories,
            current: None,
            summary: Summary::default(),
            processes: (0, 0),
            began: false,
            ended: false,
        })
    }

    /// What the directories say of themselves, in the order in which they are read.
    pub fn metas(&self) -> &[Meta] {
        &self.metas
    }

    /// One header for all: the first one's, with the names of the others' services.
    pub fn header(&self) -> Header {
        let mut headers = self.metas.iter().map(|meta| &meta.lineage_directory);
        let Some(first) = headers.next() else {
            // No paths, no directories.
            return Header {
                schema: SCHEMA,
                process: uuid::Uuid::nil(),
                service: String::new(),
                started: lineage_core::id::HostNanos(0),
                started_unix_ns: None,
                writer: String::new(),
            };
        };
        let mut header = first.clone();
        let mut services = vec![header.service.as_str()];
        for other in headers {
            if !services.contains(&other.service.as_str()) && services.len() < 8 {
                services.push(&other.service);
            }
        }
        header.service = services.join(", ");
        header
    }

    /// Reads of the directory of this number, from 0 in the order of [`metas`](Self::metas), no more than what
    /// was between these times of its session's clock, both included: whole batches that were outside of them
    /// are passed over without being read, and counted in [`Summary::passed_over`]. What describes devices,
    /// streams, graphs and epochs, and faults, are read all the same, as is what else is in a batch that
    /// reaches into that time.
    pub fn read_between(&mut self, directory: usize, from: HostNanos, to: HostNanos) {
        if let Some(directory) = self.directories.get_mut(directory) {
            directory.selection.between = Some((from, to));
        }
    }

    /// Reads nothing of these tables, and counts what is in them in [`Summary::passed_over`].
    /// [`Table::Names`], which the others refer to, is read all the same.
    pub fn leave_out(&mut self, tables: &[Table]) {
        for directory in &mut self.directories {
            directory.selection.without = tables.to_vec();
        }
    }

    /// The number of the directory that was read last, from 0 in the order of [`metas`](Self::metas).
    pub fn directory(&self) -> usize {
        let begun = usize::try_from(self.summary.directories).unwrap_or(usize::MAX);
        begun.saturating_sub(1)
    }

    /// What the journals of the directories that are still to be read say of their batches: how many entries
    /// of which kind, and from when to when they were. It reads nothing else, and takes a journal for no
    /// longer than it is sound: reading the directory says where it is not.
    pub fn survey(&self) -> Vec<Survey> {
        let directories = self.directories.iter();
        let survey = directories.map(|of| Survey::of(&of.place, &of.segments));
        survey.collect()
    }

    /// Bytes of tables in the batches that are to be read, by the journals: of those that are passed over
    /// little more than what describes epochs is read.
    pub fn bytes_wanted(&self) -> u64 {
        let all = self.directories.iter().zip(self.survey());
        let all = all.flat_map(|(directory, survey)| {
            let selection = &directory.selection;
            let batches = survey.batches.into_iter();
            batches.filter(|of| !selection.is_outside(of.times))
        });
        all.fold(0, |sum, batch| sum.saturating_add(batch.bytes))
    }

    /// What was met so far. Complete once the iteration has ended.
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    fn error(&mut self, place: String, kind: ReadErrorKind) -> ReadError {
        self.summary.errors += 1;
        ReadError { place, kind }
    }

    /// Begins with the next directory; `false` if there is none.
    fn next_directory(&mut self) -> bool {
        let Some(directory) = self.directories.pop_front() else {
            return false;
        };
        let removed = directory.meta.removed;
        let total = &mut self.summary.removed;
        total.segments = total.segments.saturating_add(removed.segments);
        total.bytes = total.bytes.saturating_add(removed.bytes);
        total.entries = total.entries.saturating_add(removed.entries);
        // A crash may have come before the end's own count.
        let not_written = directory.meta.not_written;
        self.summary.not_written = self.summary.not_written.saturating_add(not_written);
        self.summary.directories += 1;
        self.processes.0 = self.processes.1;
        self.current = Some(Open {
            place: directory.place,
            removed,
            selection: directory.selection,
            segments: directory.segments.into(),
            batch: 0,
            segment: None,
            entries: None,
            read: Counts::default(),
            skipped: 0,
            passed_over: 0,
            errors: 0,
            cut_short: false,
            ended: false,
        });
        true
    }

    /// Ends the directory that is being read.
    fn end_directory(&mut self) {
        if let Some(open) = self.current.take() {
            self.summary.not_ended += u64::from(!open.ended);
            self.summary.cut_short += u64::from(open.cut_short && !open.ended);
        }
    }

    /// Takes an entry in: counts it, and tells its process apart from other directories'.
    fn take(&mut self, mut entry: Entry) -> Entry {
        let first = self.processes.0;
        let count = |counts: &mut Counts| match &entry {
            Entry::Row(_) => counts.rows += 1,
            Entry::Fault(_) => counts.faults += 1,
            _ => counts.observations += 1,
        };
        count(&mut self.summary.read);
        if let Some(open) = &mut self.current {
            count(&mut open.read);
        }
        let process: Option<&mut ProcessOrdinal> = match &mut entry {
            Entry::Observation(of) => Some(&mut of.process),
            Entry::Row(of) => Some(&mut of.process),
            Entry::Fault(of) => Some(&mut of.process),
            _ => None,
        };
        if let Some(process) = process {
            process.0 = process.0.saturating_add(first);
            self.processes.1 = self.processes.1.max(process.0.saturating_add(1));
        }
        entry
    }

    /// The next entry of the batch that is being read.
    fn next_of_batch(&mut self) -> Option<Result<Entry, ReadError>> {
        loop {
            let open = self.current.as_mut()?;
            let entries = open.entries.as_mut()?;
            let (batch, segment) = (entries.batch, entries.segment);
            match entries.next() {
                None => {
                    let entries = open.entries.take()?;
                    if let Some(segment) = &mut open.segment {
                        segment.give_back(entries);
                    }
                    return None;
                }
                Some(Ok(entry)) => return Some(Ok(self.take(entry))),
                Some(Err((_, _, Bad::Unknown(_, value)))) => {
                    open.skipped += 1;
                    self.summary.skip(&value, 1);
                }
                Some(Err((table, row, bad))) => {
                    open.errors += 1;
                    let file = table_file(table.name());
                    let place = format!("{}/{}/{file}", open.place.name(), segment_name(segment));
                    let why = bad.to_string();
                    let kind = ReadErrorKind::Row { batch, row, why };
                    return Some(Err(self.error(place, kind)));
                }
            }
        }
    }

    /// Goes on to the next batch of the directory; `None` at its end.
    fn next_batch(&mut self) -> Option<Result<(), ReadError>> {
        let open = self.current.as_mut()?;
        let Some(segment) = &mut open.segment else {
            let number = open.segments.pop_front()?;
            let place = open.place.name();
            match Segment::open(&open.place, number, &open.selection) {
                Ok(segment) => open.segment = Some(segment),
                Err((file, kind)) => {
                    open.errors += 1;
                    return Some(Err(self.error(format!("{place}/{file}"), kind)));
                }
            }
            return Some(Ok(()));
        };
        let before = segment.bytes;
        let next = segment.next();
        self.summary.bytes += segment.bytes - before;
        match next {
            Ok(Next::Batch(mut entries)) => {
                for (name, rows) in entries.unknown.drain(..) {
                    open.skipped = open.skipped.saturating_add(rows);
                    self.summary.skip(&name, rows);
                }
                for (name, rows) in entries.unknown_columns.drain(..) {
                    self.summary.skip_column(&name, rows);
                }
                let over = std::mem::take(&mut entries.passed_over);
                let both = over.rows.saturating_add(over.observations);
                open.passed_over = open.passed_over.saturating_add(both);
                let total = &mut self.summary.passed_over;
                total.rows = total.rows.saturating_add(over.rows);
                total.observations = total.observations.saturating_add(over.observations);
                let last = std::mem::replace(&mut open.batch, entries.batch);
                let next = entries.batch;
                open.entries = Some(*entries);
                // The oldest may have been removed on purpose.
                let oldest = last == 0 && open.removed.segments > 0;
                if oldest || Some(next) == last.checked_add(1) {
                    return Some(Ok(()));
                }
                open.errors += 1;
                let place = open.place.name();
                let (from, to) = (last.saturating_add(1), next.saturating_sub(1));
                let kind = ReadErrorKind::MissingBatches { from, to };
                Some(Err(self.error(place, kind)))
            }
            Ok(Next::Continued) => {
                open.segment = None;
                Some(Ok(()))
            }
            Ok(Next::Nothing) => {
                let left_over = segment.left_over();
                self.summary.bytes_cut_short =
                    self.summary.bytes_cut_short.saturating_add(left_over);
                open.cut_short |= left_over > 0;
                open.segment = None;
                Some(Ok(()))
            }
            Ok(Next::End(said)) => {
                open.segment = None;
                open.segments.clear();
                open.ended = true;
                let found = open.read;
                if fits(said, found, open) {
                    return Some(Ok(()));
                }
                let place = open.place.name();
                let kind = ReadErrorKind::CountsDiffer { said, found };
                Some(Err(self.error(place, kind)))
            }
            Err((file, kind)) => {
                open.errors += 1;
                open.segment = None;
                let place = format!("{}/{file}", open.place.name());
                Some(Err(self.error(place, kind)))
            }
        }
    }
}

/// Whether what the end says agrees with what was read. What was left aside or removed may be of any
/// kind, and where a batch or segment is missing nothing can be said.
fn fits(said: Counts, found: Counts, open: &Open) -> bool {
    if open.errors > 0 {
        return true;
    }
    let all = |counts: Counts| {
        [counts.observations, counts.rows, counts.faults]
            .into_iter()
            .fold(0_u64, u64::saturating_add)
    };
    let each_fits = found.observations <= said.observations
        && found.rows <= said.rows
        && found.faults <= said.faults;
    let missing = all(said).saturating_sub(all(found));
    let left_aside = open.skipped.saturating_add(open.passed_over);
    each_fits && missing == left_aside.saturating_add(open.removed.entries)
}

impl Iterator for Reader {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !std::mem::replace(&mut self.began, true) {
            return Some(Ok(Entry::Header(self.header())));
        }
        loop {
            if self.current.is_none() && !self.next_directory() {
                let all_ended = self.summary.not_ended == 0 && self.summary.directories > 0;
                let last = !std::mem::replace(&mut self.ended, true);
                let end = Counts {
                    not_written: self.summary.not_written,
                    ..self.summary.read
                };
                return (all_ended && last).then_some(Ok(Entry::End(end)));
            }
            if let Some(entry) = self.next_of_batch() {
                return Some(entry);
            }
            match self.next_batch() {
                Some(Ok(())) => {}
                Some(Err(error)) => return Some(Err(error)),
                None => self.end_directory(),
            }
        }
    }
}

fn read_meta(place: &Place) -> Result<Meta, ReadErrorKind> {
    let not = |why: String| ReadErrorKind::NotARunDirectory { why };
    let stream = place.open(META).map_err(ReadErrorKind::Io)?;
    let stream = stream.ok_or_else(|| not(format!("it has no {META}")))?;
    let mut text = Vec::new();
    stream
        .bytes
        .take(MAX_LINE as u64 + 1)
        .read_to_end(&mut text)
        .map_err(ReadErrorKind::Io)?;
    if text.len() > MAX_LINE {
        return Err(not(format!("its {META} is longer than any of ours")));
    }
    let json = |error: serde_json::Error| not(format!("{META}: {error}"));
    let any: AnyMeta = serde_json::from_slice(&text).map_err(json)?;
    let header = any.lineage_directory;
    if header.schema > u64::from(SCHEMA) {
        let writer = match header.writer {
            name if name.is_empty() => "an unnamed writer".to_owned(),
            name => name.chars().take(48).collect(),
        };
        return Err(ReadErrorKind::NewerSchema {
            schema: header.schema,
            writer,
        });
    }
    if header.schema == 0 {
        return Err(not("schema 0 does not exist".to_owned()));
    }
    serde_json::from_slice(&text).map_err(json)
}
