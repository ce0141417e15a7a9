//! Writing a ledger.

use std::io::{self, BufWriter, Write};

use super::format::{Counts, Header, LineOut, MAX_LINE_BYTES};
use crate::observation::Observation;
use crate::row::{LooseFault, Row};
use crate::source::{SessionInfo, Sink, SinkError};

/// Writes a session's ledger. Buffers on its own.
///
/// The header is written when the session begins, the end line when it finishes.
///
/// After a failed write the rest is not written (a line may have been cut in two), each call says
/// so, and the file has no end line.
#[derive(Debug)]
pub struct Writer<W: Write + Send> {
    inner: BufWriter<W>,
    line: Vec<u8>,
    counts: Counts,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Failed,
    Finished,
}

impl<W: Write + Send> Writer<W> {
    /// A writer of a ledger to this file, for one session.
    pub fn new(inner: W) -> Self {
        Self {
            inner: BufWriter::new(inner),
            line: Vec::with_capacity(512),
            counts: Counts::default(),
            state: State::New,
        }
    }

    /// What was written so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Writes one line; `false` if it is too long to be read back.
    fn put(&mut self, line: &LineOut<'_>) -> io::Result<bool> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        if self.line.len() > MAX_LINE_BYTES {
            // Not kept at that size.
            self.line = Vec::new();
            return Ok(false);
        }
        self.line.push(b'\n');
        self.inner.write_all(&self.line)?;
        Ok(true)
    }

    /// Writes lines, counting each by `count`.
    fn put_all<'a>(
        &mut self,
        lines: impl Iterator<Item = LineOut<'a>>,
        count: impl Fn(&mut Counts) -> &mut u64,
    ) -> Result<(), SinkError> {
        let mut too_long = 0_u64;
        for line in lines {
            match self.put(&line) {
                Ok(true) => *count(&mut self.counts) += 1,
                Ok(false) => too_long += 1,
                Err(error) => return Err(self.fail(&error)),
            }
        }
        self.counts.not_written += too_long;
        match too_long {
            0 => Ok(()),
            many => Err(SinkError::new(format!(
                "{many} entries were not written to the ledger: each is longer than a line may be \
                 ({MAX_LINE_BYTES} bytes)"
            ))),
        }
    }

    fn open(&self) -> Result<(), SinkError> {
        match self.state {
            State::Open => Ok(()),
            State::New => Err(SinkError::new(
                "the ledger has no header yet: its session did not begin",
            )),
            State::Failed => Err(SinkError::new(
                "the ledger is not written any further after a failed write",
            )),
            State::Finished => Err(SinkError::new("the ledger is already finished")),
        }
    }

    fn fail(&mut self, error: &io::Error) -> SinkError {
        self.state = State::Failed;
        SinkError::new(format!("the ledger could not be written: {error}"))
    }
}

impl<W: Write + Send> Sink for Writer<W> {
    fn begin(&mut self, session: &SessionInfo) -> Result<(), SinkError> {
        if self.state != State::New {
            return Err(SinkError::new(
                "a ledger holds one session, and this one has begun",
            ));
        }
        let header = Header::of(session);
        let written = self.put(&LineOut::Lineage(&header));
        match written.and_then(|fits| self.inner.flush().map(|()| fits)) {
            Ok(true) => {
                self.state = State::Open;
                Ok(())
            }
            Ok(false) => Err(SinkError::new(
                "the service's name is too long for a ledger's header",
            )),
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn observations(&mut self, batch: &[Observation]) -> Result<(), SinkError> {
        self.open()?;
        self.put_all(batch.iter().map(LineOut::Observation), |counts| {
            &mut counts.observations
        })
    }

    fn rows(&mut self, rows: &[Row], faults: &[LooseFault]) -> Result<(), SinkError> {
        self.open()?;
        let rows = self.put_all(rows.iter().map(LineOut::Row), |counts| &mut counts.rows);
        if self.state == State::Failed {
            return rows;
        }
        let faults = self.put_all(faults.iter().map(LineOut::Fault), |counts| {
            &mut counts.faults
        });
        rows.and(faults)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.open()?;
        let counts = self.counts;
        let written = self.put(&LineOut::End(&counts));
        match written.and_then(|_| self.inner.flush()) {
            Ok(()) => {
                self.state = State::Finished;
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }
}
