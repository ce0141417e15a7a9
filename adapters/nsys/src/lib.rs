//! SQLite exports of NVIDIA Nsight Systems as recordings that launch lineage joins and validates.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use lineage_nsys::Settings;
//!
//! # fn main() -> Result<(), lineage_nsys::ImportError> {
//! // nsys export --type sqlite report1.nsys-rep
//! let path = Path::new("report1.sqlite");
//! let recording = lineage_nsys::import(path, Settings::default(), &mut |_| {})?;
//! println!("{:?}", recording.holdings());
//! # Ok(())
//! # }
//! ```
//!
//! # What is read
//!
//! Exports of schema 2.9 (2022) to 3.25 (2026); others are read all the same, with a note. Tables and
//! columns are found by name, and each may be missing: Nsight Systems writes a table only if it has
//! something to put into it, and the schemas differ in their columns.
//!
//! | table | what it gives |
//! | --- | --- |
//! | `CUPTI_ACTIVITY_KIND_RUNTIME` | API calls, of the runtime and of the driver, with their results |
//! | `CUPTI_ACTIVITY_KIND_KERNEL`, `_MEMCPY`, `_MEMSET` | what the device executed |
//! | `CUPTI_ACTIVITY_KIND_GRAPH_TRACE` | launches of graphs whose nodes were not traced |
//! | `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`, `_CUDA_EVENT` | waits, and the events that are waited for |
//! | `CUDA_GRAPH_NODE_EVENTS` | where the nodes of graphs were made |
//! | `SCHED_EVENTS`, `OSRT_API` | when threads ran, and what they blocked in |
//! | `NVTX_EVENTS` | ranges: candidate epochs if the [settings](Settings) ask for it |
//! | `StringIds`, `PROCESSES`, `TARGET_INFO_GPU`, `TARGET_INFO_CUDA_DEVICE` | names; what each device's multiprocessors hold |
//! | `DIAGNOSTIC_EVENT` | the recorder's own warnings, passed on as notes |
//!
//! Of the tables of settings only the schema's version and the mode of graph tracing are read; the
//! target's environment never is.
//!
//! # Times
//!
//! Nanoseconds from the begin of the capture, as they are in the file. An operation that starts and
//! ends at 0 has no times: they were not collected.
//!
//! # Processes
//!
//! Correlation ids are counted by each process on its own, and an export may hold several. A record
//! belongs to the process of its `globalPid` or `globalTid`. Where it has neither, as in some files
//! of schema 2, it belongs to the only process; if there are several, it is counted and left out.
//!
//! # Hostile input
//!
//! A database can be made to cost more than it weighs. Nothing in one makes this crate panic or hang,
//! nor hold more than a bounded amount of memory: see [`Limits`]. Rows that cannot be used are
//! [counted by reason](lineage_import::Skip).
#![forbid(unsafe_code)]

mod about;
mod activities;
mod budget;
mod calls;
mod database;
mod error;
mod fields;
mod header;
mod host;
mod import;
mod limits;
mod names;
mod order;
mod processes;
mod progress;
mod ranges;
mod reading;
mod tables;
mod text;
mod thread_states;
mod waits;

pub use error::ImportError;
pub use import::{from_bytes, import, import_within};
pub use limits::Limits;
pub use lineage_import::Settings;
pub use progress::Progress;
