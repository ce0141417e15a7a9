//! The processor's cycle counter as a clock for a lineage session.
//!
//! `CLOCK_MONOTONIC` costs some 25 ns a read, and a launching thread reads it twice per scope. The
//! cycle counter (`rdtsc` on x86-64, `CNTVCT_EL0` on aarch64) costs less than half of that, but counts
//! in a unit and from a moment of its own. [`now`] gives its count in nanoseconds of
//! `CLOCK_MONOTONIC`, so that times still compare with those of the system's scheduler:
//!
//! ```
//! let lineage = lineage_core::Lineage::builder().clock(lineage_clock::now).start()?;
//! # drop(lineage);
//! # Ok::<(), lineage_core::StartError>(())
//! ```
//!
//! The session gives the same function to CUPTI, so host and device times are of one clock here,
//! too.
//!
//! # How far off it may be
//!
//! A counter that is measured once drifts: 1 ms a minute where this was tried. So it is compared
//! with `CLOCK_MONOTONIC` after 1, 2, 4 … ms and then once a second, by whichever call of `now` comes
//! first after that, which takes about a microsecond longer. Between two comparisons it goes at the
//! rate of the last interval. Where it fell behind it is set forward; where it is ahead it goes
//! slower until it is not: it never goes back on any thread. [`accuracy`] says by how much it was
//! off, as far as two reads of `CLOCK_MONOTONIC` around one of the counter can tell.
//!
//! It is off by more
//!
//! * after a pause in which nobody asked for the time, by what the rate changed meanwhile;
//! * after the machine was suspended, which one of the clocks may count and the other not: it may
//!   then go at half speed for as long as the pause was;
//! * where a virtual machine moves to a processor with another frequency, until the next comparison.
//!
//! Where the processor has no counter that runs at one rate on all cores, what is read is the
//! system's clock, and nothing is gained.
#![forbid(unsafe_code)]

mod discipline;
mod segment;

pub use discipline::{Accuracy, accuracy, now};
