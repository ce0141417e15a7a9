//! Verdicts: why an operation began when it did, as far as the evidence tells.
//!
//! A [`Judge`] takes observations and the rows that were joined from them, and gives the [`Life`]
//! of each: segments from the first known stage to the end, without gap or overlap, each with a
//! [`Verdict`]. A confident mistake is the worst that it could say. So each verdict is claimed on
//! stated evidence only ([`VerdictKind::claimed_when`]); the rest is `unresolved`, with what would
//! settle it.
//!
//! ```
//! use lineage_core::verdict::{Judge, Settings};
//!
//! # let (observations, rows) = (Vec::new(), Vec::new());
//! let mut judge = Judge::new(Settings::default());
//! for life in judge.judge(&observations, &rows) {
//!     assert!(life.is_exact());
//!     for segment in &life.segments {
//!         println!("{} ns {}", segment.duration_ns(), segment.verdict.kind());
//!     }
//! }
//! ```
//!
//! # How a life is told apart
//!
//! 1. **Stages.** What was observed of declaration, readiness, handoff, scope, call, queueing,
//!    submission, start and end cuts it. A later call's life in one scope begins where the call
//!    before it returned. (`path`)
//! 2. **What covers it.** While work ran that the operation had to wait for
//!    ([`readiness`](crate::readiness)), the host's time cost nothing.
//! 3. **What was binding.** The dependency was, if the work was there before it ended, by more than
//!    the clocks' error, and began right behind it, within the dispatch floor; or, where its
//!    submission was observed and all dependencies are known, whenever it began. (With a partial set
//!    and a later start, what is not recorded may have held it back all the time.)
//! 4. **Host time** that nothing covers is told apart by what its thread did, but only if all
//!    dependencies are known: else something that was not recorded may have held the work back
//!    meanwhile, and the host's time is not known to be critical. (`host`)
//! 5. **Time on the device** before the start is a wait only for work that is known to exclude
//!    this: for copies another of the same direction, for kernels one that left no room.
//!    (`occupancy`)
//! 6. **The rest is unresolved.**
//!
//! What is usual is learned from the recording itself: medians of at least 20, by kernel (name,
//! grid, block) and by function; the dispatch floor from starts right behind their dependency where
//! the host was well ahead. (`history`)

mod cover;
mod device;
mod history;
mod host;
mod judge;
mod kind;
mod life;
mod occupancy;
mod os_call;
mod path;
mod run_queue;
mod scene;
mod threads;

pub use history::{DispatchFloor, ENOUGH_SAMPLES};
pub use judge::Judge;
pub use kind::VerdictKind;
pub use life::{
    Covered, Doubt, Expected, Lateness, Life, LongBecause, Segment, Stage, Unsegmented, Verdict,
};

/// How rows are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Error of the device's clock against the host's, in nanoseconds: times of the two are
    /// compared only beyond it. Default 1,000.
    pub epsilon_ns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { epsilon_ns: 1_000 }
    }
}

impl Settings {
    /// Sets the error of the device's clock against the host's.
    #[must_use]
    pub const fn epsilon_ns(mut self, epsilon_ns: u64) -> Self {
        self.epsilon_ns = epsilon_ns;
        self
    }
}
