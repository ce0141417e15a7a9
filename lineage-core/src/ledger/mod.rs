//! The JSON-lines ledger: a session's observations, rows and faults as one JSON object per line.
//!
//! A file begins with a header, which names the schema and the process, and ends with a count of
//! everything in it, so that a file that was cut short is seen to be. `schema/ledger-jsonl.md`
//! in the repository describes every line.
//!
//! [`Writer`] is a [`Sink`](crate::source::Sink) for a session; [`Reader`] streams a file back.
//! A reader trusts nothing: lines are bounded, errors name their line, what a newer writer added
//! is skipped and counted, and no input makes it panic.
//!
//! ```
//! use lineage_core::id::HostNanos;
//! use lineage_core::ledger::{Entry, Reader, Writer};
//! use lineage_core::source::{SessionInfo, Sink};
//!
//! let mut file = Vec::new();
//! // A session does this for the sinks it is given.
//! let mut writer = Writer::new(&mut file);
//! writer.begin(&SessionInfo::new(uuid::Uuid::nil(), "llm", HostNanos(0)))?;
//! writer.finish()?;
//! drop(writer);
//!
//! let entries: Result<Vec<Entry>, _> = Reader::new(file.as_slice()).collect();
//! assert_eq!(entries?.len(), 2); // the header and the end
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod format;
mod lines;
mod reader;
mod writer;

pub use format::{Counts, Header, MAX_LINE_BYTES, SCHEMA};
pub use reader::{Entry, ReadError, ReadErrorKind, ReadSummary, Reader};
pub use writer::Writer;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod round_trip_tests;
