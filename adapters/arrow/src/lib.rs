//! The run directory: `NAME.lineage/`, what a session observed and concluded, as Arrow IPC streams that
//! are appended while the server runs, and can be read at any time and after a crash, up to the last
//! batch (8,192 rows or one second).
//!
//! ```text
//! NAME.lineage/
//!   meta.json                 process, service, clocks, what was collected and what was not
//!   000001/                   a segment; retention by size removes the oldest
//!     batches.jsonl           one line for each batch that is on disk as a whole
//!     names.arrows            texts that the other tables refer to
//!     launches.arrows         a row for each executed operation, and for each call that has none
//!     operations.arrows, calls.arrows, epochs.arrows, links.arrows, handoffs.arrows, …
//! ```
//!
//! [`Writer`] is a [`Sink`](lineage_core::source::Sink) for a session, [`Reader`] streams the same
//! entries back, in the same order as the JSON-lines ledger would have them: nothing is lost between
//! the two. `docs/run-directory.md` in the repository describes every column, and how to read them with
//! pyarrow or DuckDB.
//!
//! ```
//! use lineage_arrow::{Reader, Writer};
//! use lineage_core::id::HostNanos;
//! use lineage_core::ledger::Entry;
//! use lineage_core::source::{SessionInfo, Sink};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("llm.lineage");
//! // A session does this for the sinks it is given.
//! let mut writer = Writer::new(&path);
//! writer.begin(&SessionInfo::new(uuid::Uuid::nil(), "llm", HostNanos(0)))?;
//! writer.finish()?;
//!
//! let mut reader = Reader::open(&path)?;
//! let entries: Result<Vec<Entry>, _> = reader.by_ref().collect();
//! assert_eq!(entries?.len(), 2); // the header and the end
//! assert!(reader.summary().is_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! * `sqlite`, `parquet`: the same tables as an SQLite database, or as Parquet files: the module
//!   `export`.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod column;
mod decode;
mod encode;
#[cfg(any(feature = "sqlite", feature = "parquet"))]
pub mod export;
mod frame;
mod how;
mod journal;
mod limits;
mod meta;
mod names;
mod port;
mod reader;
mod tables;
mod writer;

pub use column::{Coding, Column, Kind};
pub use limits::{BATCH_AGE, BATCH_ROWS, EXTENSION, META, SCHEMA};
pub use meta::{Collected, Ended, Meta, Removed};
pub use reader::{BatchHeld, ReadError, ReadErrorKind, Reader, Summary, Survey};
pub use tables::Table;
pub use writer::Writer;
