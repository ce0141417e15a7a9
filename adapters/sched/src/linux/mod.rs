//! Linux: rings of switches, one per thread, and `/proc` where there can be none.
//!
//! ```text
//!  thread's first record ──► arrivals   opens its own ring
//!                               │
//!  drain thread ────────────► threads   reads rings (ring, records), counts in /proc (run_queue)
//! ```

mod arrivals;
mod attributes;
mod clock;
mod records;
mod ring;
mod run_queue;
mod source;
mod threads;

pub(crate) use source::Source;
