//! What a session hands to a person or a test.

use std::sync::Arc;

use uuid::Uuid;

use super::shares::{Served, Share, shares};
use crate::id::LaunchEpoch;
use crate::observation::Observation;
use crate::row::{Binding, LooseFault, Row};
use crate::totals::Totals;

/// Whether the device was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceEvidence {
    /// No source was given to the session, or it does not record.
    NotAsked,
    /// Collected, by a CUPTI of this version (as `cuptiGetVersion` gives it).
    Present {
        /// The version.
        cupti_version: u32,
        /// Whether external correlation records come; `None` until that is known.
        external_correlation: Option<bool>,
    },
    /// Asked for, and not to be had.
    Absent {
        /// Why, for a person.
        why: Arc<str>,
    },
}

/// Written as one line, for example `no device evidence: libcupti was not found`.
impl std::fmt::Display for DeviceEvidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAsked => f.write_str("no device evidence: none was asked for"),
            Self::Present {
                cupti_version,
                external_correlation,
            } => {
                write!(
                    f,
                    "device evidence: CUPTI {cupti_version}, external correlation "
                )?;
                f.write_str(match external_correlation {
                    Some(true) => "present",
                    Some(false) => "absent",
                    None => "not seen yet",
                })
            }
            Self::Absent { why } => write!(f, "no device evidence: {why}"),
        }
    }
}

/// Whether the operating system's scheduler was observed, and on how many threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SchedulerEvidence {
    /// No source was given to the session, or it does not record.
    #[default]
    NotAsked,
    /// Collected.
    Present {
        /// Threads of which every switch is observed, from some moment of theirs on.
        watched: u64,
        /// Threads of which only the time in the run queue is.
        run_queue_only: u64,
        /// How often a thread was left out altogether.
        unwatched: u64,
        /// Why the last of those that are not watched is not.
        why: Option<Arc<str>>,
    },
    /// Asked for, and not to be had.
    Absent {
        /// Why, for a person.
        why: Arc<str>,
    },
}

/// Written as one line, for example `scheduler evidence: every switch of 4 threads`.
impl std::fmt::Display for SchedulerEvidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAsked => f.write_str("no scheduler evidence: none was asked for"),
            Self::Absent { why } => write!(f, "no scheduler evidence: {why}"),
            Self::Present {
                watched,
                run_queue_only,
                unwatched,
                why,
            } => {
                write!(f, "scheduler evidence: every switch of {watched} threads")?;
                if *run_queue_only > 0 {
                    write!(f, ", only the run-queue delay of {run_queue_only}")?;
                }
                if *unwatched > 0 {
                    write!(f, ", nothing of {unwatched}")?;
                }
                match why {
                    Some(why) => write!(f, " ({why})"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// What a session observed and concluded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The recording process.
    pub process: Uuid,
    /// The observations kept in memory, oldest first.
    pub observations: Vec<Observation>,
    /// The rows kept in memory, oldest first.
    pub rows: Vec<Row>,
    /// The faults that belong to no row.
    pub faults: Vec<LooseFault>,
    /// Counts of everything, kept or not.
    pub totals: Totals,
    /// Observations, rows and faults that memory had no room for.
    pub not_kept: u64,
    /// Whether the device was observed.
    pub device: DeviceEvidence,
    /// Whether the scheduler was observed.
    pub scheduler: SchedulerEvidence,
}

/// What a person reads first: whether there is device evidence, and of the scheduler where that was
/// asked for, and the totals.
impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.device)?;
        if self.scheduler != SchedulerEvidence::NotAsked {
            writeln!(f, "{}", self.scheduler)?;
        }
        write!(f, "{}", self.totals)
    }
}

impl Report {
    /// Whose request a row's work was: the epochs that its epoch serves, over every link, down to
    /// those that serve no other. For a batch these are its members, for a request itself.
    ///
    /// Empty if the row is bound to no epoch. Sees the links that are kept in memory.
    pub fn requests_of(&self, row: &Row) -> Vec<LaunchEpoch> {
        let Binding::Bound(epoch) = row.binding else {
            return Vec::new();
        };
        Served::of(&self.observations).requests_of(row.process, epoch)
    }

    /// What the device did for each request, alone and in batches, by the rows that are kept in memory:
    /// of a batch's operation each member's share is 1/n of its duration.
    ///
    /// Sees the links that are kept in memory.
    pub fn shares(&self) -> Vec<Share> {
        shares(&self.observations, &self.rows)
    }

    /// A report of nothing.
    pub fn empty(process: Uuid) -> Self {
        Self {
            process,
            observations: Vec::new(),
            rows: Vec::new(),
            faults: Vec::new(),
            totals: Totals::default(),
            not_kept: 0,
            device: DeviceEvidence::NotAsked,
            scheduler: SchedulerEvidence::NotAsked,
        }
    }
}
