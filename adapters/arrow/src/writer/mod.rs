//! Writing a run directory.

mod files;
mod segment;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lineage_core::ledger::{Counts, Header};
use lineage_core::observation::Observation;
use lineage_core::part::Times;
use lineage_core::row::{LooseFault, Row};
use lineage_core::source::{Progress, SessionInfo, Sink, SinkError};
use lineage_core::totals::Totals;

use crate::frame::Frame;
use crate::limits::{BATCH_AGE, BATCH_ROWS, BATCH_TEXT_BYTES, SCHEMA};
use crate::meta::{CLOCK, Collected, Ended, Meta, Removed};
use crate::names::Names;
use crate::tables::{Given, Table, put};
use segment::{Closed, Segment};

/// Bytes of a segment, unless the writer is told otherwise.
const SEGMENT_BYTES: u64 = 256 << 20;
/// Bytes of the longest service name.
const MAX_SERVICE: usize = 4_096;

/// Writes a session's run directory: a [`Sink`].
///
/// Entries wait in memory for a batch, which ends with 8,192 rows in a table or after a second, is
/// written with one system call for each table, and then entered in the segment's journal. Writing is
/// done by the session's drain thread; the program's threads have no part in it.
///
/// A batch that could not be written is counted ([`Counts::not_written`]), said once, and writing goes
/// on in a new segment: a disk that was full for a while costs what came meanwhile.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    replace: bool,
    segment_bytes: u64,
    keep_bytes: Option<u64>,
    state: State,
    meta: Meta,
    meta_changed: bool,
    frames: Vec<Frame>,
    names: Names,
    scratch: String,
    /// Entries in memory, by kind.
    pending: Counts,
    /// From when to when they were.
    pending_times: Option<Times>,
    /// When the first of them came.
    since: Option<Instant>,
    counts: Counts,
    batches: u64,
    segment: Option<Segment>,
    segments: u64,
    closed: VecDeque<Closed>,
    totals: Option<Totals>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Finished,
}

impl Writer {
    /// A writer of this directory, whose name should end in `.lineage`. It is made when the session
    /// begins, and must not be there, or be empty.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let frames = Table::ALL.into_iter();
        Self {
            path: path.into(),
            replace: false,
            segment_bytes: SEGMENT_BYTES,
            keep_bytes: None,
            state: State::New,
            meta: Meta {
                lineage_directory: Header::of(&SessionInfo::new(
                    uuid::Uuid::nil(),
                    "",
                    lineage_core::id::HostNanos(0),
                )),
                clock: CLOCK.to_owned(),
                collected: Collected::default(),
                removed: Removed::default(),
                not_written: 0,
                ended: None,
            },
            meta_changed: false,
            frames: frames.map(|table| Frame::new(table.columns())).collect(),
            names: Names::default(),
            scratch: String::new(),
            pending: Counts::default(),
            pending_times: None,
            since: None,
            counts: Counts::default(),
            batches: 0,
            segment: None,
            segments: 0,
            closed: VecDeque::new(),
            totals: None,
        }
    }

    /// Whether a run directory of that name is removed first. Only what this format has in it is
    /// removed: a directory that holds anything else is left, and the session does not begin.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// After how many bytes another segment is begun; 256 MiB unless told otherwise.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes.max(1);
        self
    }

    /// Keeps the directory at about this many bytes by removing its oldest segments, which is counted
    /// in `meta.json`. A segment is then at most a quarter of it. Without this nothing is removed.
    #[must_use]
    pub fn keep_bytes(mut self, bytes: u64) -> Self {
        self.keep_bytes = Some(bytes);
        self.segment_bytes = self.segment_bytes.min((bytes / 4).max(1));
        self
    }

    /// What was taken so far, and is on disk or waits for its batch.
    pub fn counts(&self) -> Counts {
        let (written, pending) = (self.counts, self.pending);
        Counts {
            observations: written.observations + pending.observations,
            rows: written.rows + pending.rows,
            faults: written.faults + pending.faults,
            not_written: written.not_written,
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> Result<(), SinkError> {
        match self.state {
            State::Open => Ok(()),
            State::New => Err(SinkError::new(
                "the run directory is not made yet: its session did not begin",
            )),
            State::Finished => Err(SinkError::new("the run directory is already finished")),
        }
    }

    fn take(&mut self, given: Given<'_>) -> Result<(), SinkError> {
        let order = entries(self.pending);
        let Self {
            frames,
            names,
            scratch,
            ..
        } = self;
        // What the columns cannot hold exactly is kept as a line of JSON.
        let own = given.table();
        let table = [own, Table::Facts].into_iter().find(|table| {
            put(
                *table,
                &mut frames[*table as usize],
                names,
                scratch,
                order,
                given,
            )
        });
        let Some(table) = table else {
            self.counts.not_written += 1;
            return Err(SinkError::new(
                "an entry was not written to the run directory: it is longer than an entry may be",
            ));
        };
        let times = match given {
            Given::Observation(of) => {
                self.pending.observations += 1;
                Times::of_observation(of)
            }
            Given::Row(of) => {
                self.pending.rows += 1;
                Times::of_row(of)
            }
            Given::Fault(_) => {
                self.pending.faults += 1;
                None
            }
        };
        self.pending_times = match (self.pending_times, times) {
            (Some(all), Some(times)) => Some(all.and(times)),
            (all, times) => all.or(times),
        };
        let frame = &self.frames[table as usize];
        let (names, name_bytes) = self.names.new_names();
        if frame.rows >= BATCH_ROWS
            || frame.text_bytes >= BATCH_TEXT_BYTES
            || names >= BATCH_ROWS
            || name_bytes >= BATCH_TEXT_BYTES
        {
            return self.write_batch();
        }
        Ok(())
    }

    /// Takes all, and says the first of what went wrong.
    fn take_all<'a>(&mut self, all: impl Iterator<Item = Given<'a>>) -> Result<(), SinkError> {
        self.open()?;
        let mut outcome = Ok(());
        for given in all {
            let taken = self.take(given);
            outcome = outcome.and(taken);
        }
        outcome.and(self.write_if_due())
    }

    fn write_if_due(&mut self) -> Result<(), SinkError> {
        if entries(self.pending) == 0 {
            return Ok(());
        }
        match self.since {
            None => {
                self.since = Some(Instant::now());
                Ok(())
            }
            Some(since) if since.elapsed() >= BATCH_AGE => self.write_batch(),
            Some(_) => Ok(()),
        }
    }

    /// Writes what waits in memory, and what that entails.
    fn write_batch(&mut self) -> Result<(), SinkError> {
        self.since = None;
        let meta = self.write_meta_if_changed();
        if entries(self.pending) == 0 {
            return meta;
        }
        let pending = std::mem::take(&mut self.pending);
        let times = self.pending_times.take();
        let written = self.write_frames(entries(pending), times);
        for frame in &mut self.frames {
            frame.truncate(0);
        }
        if let Err(error) = written {
            // The segment may end in half a batch, and its names are not those in memory any more.
            let abandoned = self.segment.take().map(Segment::abandon);
            self.closed.extend(abandoned);
            self.names = Names::default();
            self.counts.not_written += entries(pending);
            self.meta_changed = true;
            return Err(SinkError::new(format!(
                "{} entries were not written to the run directory: {error}",
                entries(pending)
            )));
        }
        self.counts.observations += pending.observations;
        self.counts.rows += pending.rows;
        self.counts.faults += pending.faults;
        let full = self
            .segment
            .as_ref()
            .is_some_and(|segment| segment.bytes() >= self.segment_bytes);
        let rotated = if full || self.names.is_full() {
            self.close_segment()
        } else {
            Ok(())
        };
        meta.and(rotated)
    }

    fn write_frames(
        &mut self,
        entries: u64,
        times: Option<Times>,
    ) -> Result<(), segment::CannotWrite> {
        let segment = match &mut self.segment {
            Some(segment) => segment,
            None => {
                self.segments += 1;
                let segment = Segment::create(&self.path, self.segments)?;
                self.segment.insert(segment)
            }
        };
        let new = self.names.take_new();
        segment.batch(self.batches + 1, &new, &self.frames, entries, times)?;
        self.batches += 1;
        Ok(())
    }

    /// Ends the segment: another goes on. Removes the oldest where there is too much.
    fn close_segment(&mut self) -> Result<(), SinkError> {
        self.names = Names::default();
        let Some(segment) = self.segment.take() else {
            return Ok(());
        };
        let closed = segment.close(Some(self.segments + 1));
        self.closed.push_back(closed.map_err(said)?);
        let Some(keep) = self.keep_bytes else {
            return Ok(());
        };
        // A new segment may grow to its full size until the next time.
        let room = keep.saturating_sub(self.segment_bytes);
        let mut outcome = Ok(());
        while self.closed.iter().map(|of| of.bytes).sum::<u64>() > room {
            let Some(oldest) = self.closed.pop_front() else {
                break;
            };
            // Said before it is done, so that a crash in between leaves no gap that nobody counted.
            self.meta.removed.segments += 1;
            self.meta.removed.bytes += oldest.bytes;
            self.meta.removed.entries += oldest.entries;
            let said_so = self.write_meta();
            let removed = files::remove_segment(&oldest.folder).map_err(said);
            outcome = outcome.and(said_so).and(removed);
        }
        outcome
    }

    fn write_meta_if_changed(&mut self) -> Result<(), SinkError> {
        if std::mem::take(&mut self.meta_changed) {
            return self.write_meta();
        }
        Ok(())
    }

    fn write_meta(&mut self) -> Result<(), SinkError> {
        self.meta.not_written = self.counts.not_written;
        files::write_meta(&self.path, &self.meta).map_err(said)
    }
}

/// How many entries these are.
fn entries(counts: Counts) -> u64 {
    counts.observations + counts.rows + counts.faults
}

fn said(error: impl std::fmt::Display) -> SinkError {
    SinkError::new(format!("the run directory could not be written: {error}"))
}

impl Sink for Writer {
    fn begin(&mut self, session: &SessionInfo) -> Result<(), SinkError> {
        if self.state != State::New {
            return Err(SinkError::new(
                "a run directory holds one session, and this one has begun",
            ));
        }
        if session.service.len() > MAX_SERVICE {
            return Err(SinkError::new(
                "the service's name is too long for a run directory",
            ));
        }
        files::prepare(&self.path, self.replace)
            .map_err(|error| SinkError::new(error.to_string()))?;
        self.meta.lineage_directory = Header {
            schema: SCHEMA,
            writer: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..Header::of(session)
        };
        self.write_meta()?;
        self.state = State::Open;
        Ok(())
    }

    fn observations(&mut self, batch: &[Observation]) -> Result<(), SinkError> {
        for observation in batch {
            self.meta_changed |= self.meta.collected.learn(observation);
        }
        self.take_all(batch.iter().map(Given::Observation))
    }

    fn rows(&mut self, rows: &[Row], faults: &[LooseFault]) -> Result<(), SinkError> {
        let rows = rows.iter().map(Given::Row);
        self.take_all(rows.chain(faults.iter().map(Given::Fault)))
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        self.open()?;
        self.totals = Some(progress.totals.clone());
        self.write_if_due()
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.open()?;
        let batch = self.write_batch();
        self.state = State::Finished;
        let counts = self.counts;
        // An end line needs a segment, if only for itself.
        let segment = match self.segment.take() {
            Some(segment) => Ok(segment),
            None => {
                self.segments += 1;
                Segment::create(&self.path, self.segments)
            }
        };
        let ended = segment
            .and_then(|segment| segment.end(counts))
            .map_err(said);
        self.meta.ended = Some(Ended {
            counts,
            totals: self.totals.take(),
        });
        let meta = self.write_meta();
        batch.and(ended).and(meta)
    }
}

/// What waits in memory is written. The directory has no end then, and a reader says so.
impl Drop for Writer {
    fn drop(&mut self) {
        if self.state == State::Open {
            // There is nobody to tell: the missing end says it.
            let _ = self.write_batch();
        }
    }
}
