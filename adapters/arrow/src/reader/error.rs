//! Why something of a run directory cannot be read.

use std::io;

use lineage_core::ledger::Counts;

use crate::limits::SCHEMA;

/// Something of a run directory could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {kind}")]
#[non_exhaustive]
pub struct ReadError {
    /// What: the directory, or a file or segment of it.
    pub place: String,
    /// What is wrong with it.
    #[source]
    pub kind: ReadErrorKind,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// It could not be read at all.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
    /// There is no `meta.json` in it, or one that is none of ours.
    #[error("no run directory: {why}")]
    NotARunDirectory {
        /// Why not.
        why: String,
    },
    /// A newer lineage wrote it, in a way this one would misunderstand.
    #[error("schema {schema}, written by {writer}; this build reads up to {SCHEMA}")]
    NewerSchema {
        /// The directory's schema.
        schema: u64,
        /// Who wrote it, by its own account.
        writer: String,
    },
    /// A line of a segment's journal is damaged; the rest of the segment is left aside.
    #[error("line {line} of the journal is damaged: {why}; the rest of the segment is left aside")]
    Journal {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A batch of a table is damaged; the rest of the segment is left aside.
    #[error("batch {batch} is damaged: {why}; the rest of the segment is left aside")]
    Batch {
        /// The batch's number, from 1.
        batch: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A row of a table is not as it should be; it is left aside.
    #[error("row {row} of batch {batch} is left aside: {why}")]
    Row {
        /// The batch's number, from 1.
        batch: u64,
        /// The row's place in the batch, from 0.
        row: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Batches before this one are not there.
    #[error("batches {from} to {to} are missing")]
    MissingBatches {
        /// The first that is missing.
        from: u64,
        /// The last that is missing.
        to: u64,
    },
    /// The end of the journal counts otherwise than what is in the directory.
    #[error("its end says {said:?}, but there is {found:?}")]
    CountsDiffer {
        /// What the end says.
        said: Counts,
        /// What was read.
        found: Counts,
    },
}
