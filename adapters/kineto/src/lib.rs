//! Traces of Kineto, PyTorch's profiler, as recordings that launch lineage joins and validates.
//!
//! ```no_run
//! use lineage_kineto::Settings;
//!
//! # fn main() -> Result<(), lineage_kineto::ImportError> {
//! let recording = lineage_kineto::import("rank0.pt.trace.json.gz", Settings::default(), &mut |_| {})?;
//! println!("{:?}", recording.holdings());
//! # Ok(())
//! # }
//! ```
//!
//! # What is read
//!
//! JSON, or gzip of it, of one member or of several: an object with a list `traceEvents`, or that
//! list alone, as the *Trace Event Format* describes them. From 2020 on Kineto's categories changed
//! their names; all are known, and the names that it gives to AMD's HIP.
//!
//! A file is read once, in one direction, by two threads: one reads and decompresses, the other,
//! the caller's, finds events and reads of each only what a join needs. One event is held at a time:
//! memory does not depend on the size of the file.
//!
//! # Times
//!
//! Microseconds with three decimals become nanoseconds digit by digit, never through floating point.
//! Since 2024 they are relative to the trace's `baseTimeNanoseconds`, which may stand before the
//! events or after them; times of the recording are absolute where the file has it.
//!
//! `queued` is not used. It is 0, for unknown, in every trace that we know of; where it is not, it is
//! on CUPTI's clock, which Kineto converts for all other times and not for this one
//! (`CuptiActivity.cpp`). Such values are counted.
//!
//! # Processes
//!
//! A file is one process. The `pid` and `tid` of work on a device are its device and stream, so of
//! two processes in one file it cannot be told which asked for a kernel: such a file (it was merged
//! by another tool) is imported as one process, with a note that says so. Import each rank's own file
//! instead.
//!
//! # Hostile input
//!
//! Nothing in a file makes this crate panic, hang, or hold more than a bounded amount of memory: at
//! most 16 MiB of one event, 128 levels of nesting, 64 MiB of names, and text up to a
//! [limit](Settings::text_bytes_at_most). A record that cannot be used is [counted by
//! reason](lineage_import::Skip); a file that breaks off is an [error](ImportError) that carries what
//! was read before.
#![forbid(unsafe_code)]

mod args;
mod category;
mod document;
mod error;
mod event;
mod fields;
mod header;
mod import;
mod input;
mod number;
mod ranges;
mod records;
mod scan;
mod settings;
mod window;

pub use error::{ImportError, ImportErrorKind};
pub use import::{Progress, import, import_from};
pub use settings::Settings;
