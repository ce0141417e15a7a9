//! One segment: a folder with a file for each table, and a journal.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::ArrowError;
use lineage_core::ledger::Counts;
use lineage_core::part::Times;

use super::files;
use crate::encode::Stream;
use crate::frame::{Cells, Frame};
use crate::journal::{Batch, Continued, Line, Part};
use crate::limits::{JOURNAL, segment_name, table_file};
use crate::tables::Table;

/// Why a batch is not on disk.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotWrite {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Arrow(#[from] ArrowError),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Segment {
    folder: PathBuf,
    journal: File,
    tables: [Option<TableFile>; Table::ALL.len()],
    bytes: u64,
    entries: u64,
}

/// A segment that is written.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) folder: PathBuf,
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

#[derive(Debug)]
struct TableFile {
    file: File,
    stream: Stream,
    bytes: u64,
}

impl Segment {
    /// Makes the segment of this number.
    pub(super) fn create(directory: &Path, number: u64) -> Result<Self, CannotWrite> {
        let folder = directory.join(segment_name(number));
        std::fs::create_dir(&folder)?;
        let journal = files::create(&folder.join(JOURNAL))?;
        Ok(Self {
            folder,
            journal,
            tables: Default::default(),
            bytes: 0,
            entries: 0,
        })
    }

    /// Bytes on disk.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes a batch: names first, since the other tables refer to them, and the journal last.
    pub(super) fn batch(
        &mut self,
        number: u64,
        new_names: &[Arc<str>],
        frames: &[Frame],
        entries: u64,
        times: Option<Times>,
    ) -> Result<(), CannotWrite> {
        let mut batch = Batch {
            batch: number,
            times: times.map(Into::into),
            ..Batch::default()
        };
        let names = names_frame(new_names);
        for (table, frame) in Table::ALL.into_iter().zip(frames) {
            let frame = match table {
                Table::Names => &names,
                _ => frame,
            };
            if frame.rows > 0 {
                let part = self.table(table, frame)?;
                batch.tables.insert(table.name().to_owned(), part);
            }
        }
        self.journal_line(&Line::Batch(batch))?;
        self.entries += entries;
        Ok(())
    }

    fn table(&mut self, table: Table, frame: &Frame) -> Result<Part, CannotWrite> {
        let slot = &mut self.tables[table as usize];
        let out = match slot {
            Some(out) => out,
            None => {
                let file = files::create(&self.folder.join(table_file(table.name())))?;
                slot.insert(TableFile {
                    file,
                    stream: Stream::new(table.name(), table.columns())?,
                    bytes: 0,
                })
            }
        };
        let bytes = out.stream.batch(frame)?;
        out.write(&bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(Part {
            rows: frame.rows as u64,
            bytes: out.bytes,
        })
    }

    fn journal_line(&mut self, line: &Line) -> Result<(), CannotWrite> {
        let bytes = line.to_bytes()?;
        self.journal.write_all(&bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Ends the segment, and says which one goes on.
    pub(super) fn close(mut self, next: Option<u64>) -> Result<Closed, CannotWrite> {
        if let Some(segment) = next {
            self.journal_line(&Line::Continued(Continued { segment }))?;
        }
        for table in self.tables.iter_mut().flatten() {
            let bytes = table.stream.end()?;
            table.write(&bytes)?;
            self.bytes += bytes.len() as u64;
        }
        Ok(Closed {
            folder: self.folder,
            bytes: self.bytes,
            entries: self.entries,
        })
    }

    /// Leaves the segment as it is, after a failed write.
    pub(super) fn abandon(self) -> Closed {
        Closed {
            folder: self.folder,
            bytes: self.bytes,
            entries: self.entries,
        }
    }

    /// Ends the session.
    pub(super) fn end(mut self, counts: Counts) -> Result<(), CannotWrite> {
        self.journal_line(&Line::End(counts))?;
        self.close(None).map(|_| ())
    }
}

impl TableFile {
    /// One write at the end of the file. The system has it then: it outlives the process, not a power
    /// failure.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

fn names_frame(new: &[Arc<str>]) -> Frame {
    let mut frame = Frame::new(Table::Names.columns());
    if let Some(Cells::Texts(texts)) = frame.columns.first_mut() {
        for name in new {
            texts.push(Some(name));
        }
        frame.rows = new.len();
    }
    frame
}
