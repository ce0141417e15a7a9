//! A part of a recording: from when to when, and what has to be held for what is said of it to be right.
//!
//! A long run's last ten minutes are to be told of without holding the hours before. A row belongs to the part
//! in which its operation ended ([`moment_of`]): then all that led to it lies in the part or before it. So of a
//! recording a [`Holding`] holds
//!
//! * what reaches into the part, and into a lead-in before it, whose rows are not counted: they say what was
//!   under way;
//! * from the beginning, what describes streams, devices, graphs and what was lost, and of epochs what was said
//!   of those that were not retired before the lead-in.
//!
//! The rest is let go of as it comes. What that costs is said to the judge
//! ([`Judge::given_since`](crate::verdict::Judge::given_since)): what was on a stream before is unknown to it,
//! as of a recording that begins there, and of a stage that began before it claims nothing. So a claim that is
//! made for a part is as right as one that is made for the whole, and less is claimed.
//!
//! It is pure: no clock, no files.
//!
//! ```
//! use lineage_core::id::HostNanos;
//! use lineage_core::part::{Bounds, Holding};
//! use lineage_core::verdict::{Judge, Settings};
//!
//! # let entries: Vec<(lineage_core::observation::Observation, lineage_core::row::Row)> = Vec::new();
//! let bounds = Bounds {
//!     start: HostNanos(0),
//!     since: HostNanos(590_000_000_000),
//!     from: HostNanos(600_000_000_000),
//!     to: HostNanos(660_000_000_000),
//! };
//! let mut holding = Holding::new(vec![bounds]);
//! for (observation, row) in entries {
//!     holding.observation(0, observation);
//!     holding.row(0, row);
//! }
//! let held = holding.finish();
//! let mut judge = Judge::new(Settings::default());
//! held.limit(&mut judge);
//! for life in judge.judge(&held.observations, &held.rows) {
//!     if bounds.has(&held.rows[life.row]) {
//!         println!("{} ns", life.whole_ns());
//!     }
//! }
//! ```

mod epochs;
mod held;
#[cfg(test)]
mod tests;
mod times;

pub use held::{Counts, Held, Holding};
pub use times::{Times, moment_of};

use crate::id::HostNanos;
use crate::row::Row;

/// A part of a process's recording, on its session's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// When the recording started.
    pub start: HostNanos,
    /// Since when all of it is held: the part's beginning, less a lead-in.
    pub since: HostNanos,
    /// The first moment of the part.
    pub from: HostNanos,
    /// The last.
    pub to: HostNanos,
}

impl Bounds {
    /// Whether a row belongs to the part.
    pub fn has(&self, row: &Row) -> bool {
        moment_of(row).is_some_and(|at| self.from <= at && at <= self.to)
    }

    /// Whether nothing of the recording lies before what is held.
    pub fn is_from_start(&self) -> bool {
        self.since <= self.start
    }
}
