//! What the operating system did with a thread. Bound to no collector: a live session's own
//! threads and another tool's recording are told in the same words.
//!
//! That a thread was *not* taken off its processor is only known where its switches were
//! collected. So a live collector also says from when on it watches a thread, how closely, and
//! where it lost something: see [`SchedulerSession`]. Importers give none of these; how far their
//! recording reaches is all that is known.

use std::sync::Arc;

use crate::id::HostNanos;

/// Why a thread was taken off its processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SwitchedOff {
    /// It could have gone on, and another was given its place. Also after it offered its place
    /// itself (`sched_yield`), which the system does not tell apart.
    Preempted,
    /// It could not go on: it waited for time, a lock, data or a page, or was stopped.
    Blocked,
}

/// A thread was put on a processor, or taken off it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scheduled {
    /// The thread, by its system id.
    pub tid: u64,
    /// When.
    pub at: HostNanos,
    /// On which processor, where known.
    pub cpu: Option<u32>,
    /// Whether it runs from now on.
    pub running: bool,
    /// Why it was taken off; `None` where it was put on, and where the recorder does not say.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub off: Option<SwitchedOff>,
    /// The state it was left in, as the recorder numbers it; `None` where not collected.
    pub state: Option<u32>,
}

/// How long a thread waited for a processor within an interval, where its switches are not
/// collected: how much, not when. Linux counts it in `/proc/PID/task/TID/schedstat`
/// (`Documentation/scheduler/sched-stats.rst`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RunQueue {
    /// The thread, by its system id.
    pub tid: u64,
    /// The interval began at this reading of the counts, or later.
    pub not_before: HostNanos,
    /// It ended at this one, or earlier.
    pub not_after: HostNanos,
    /// How long it was ready to run and did not, in nanoseconds. Time in which it was blocked is
    /// not in here, and is not known. A wait counts when it ends: of one that spans two intervals
    /// all is in the later.
    pub waited_ns: u64,
    /// How long it ran, in nanoseconds, as far as the system had counted it.
    pub ran_ns: u64,
    /// How often it was put on a processor.
    pub turns: u64,
}

/// What is known of the scheduler from here on, of the whole session or of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "state", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SchedulerSession {
    /// Scheduler evidence is collected.
    Started {
        /// When.
        at: HostNanos,
    },
    /// No scheduler evidence is to be had: why.
    Absent {
        /// What a person reads.
        why: Arc<str>,
        /// When.
        at: HostNanos,
    },
    /// Every switch of this thread is observed, from here on and up to
    /// [`ThreadEnded`](Self::ThreadEnded), [`Unwatched`](Self::Unwatched) or [`Ended`](Self::Ended),
    /// but for those [`Lost`](Self::Lost).
    Watched {
        /// The thread, by its system id.
        tid: u64,
        /// From when on.
        at: HostNanos,
        /// Whether it ran at that time; `None` if only its first switch will tell.
        running: Option<bool>,
    },
    /// Of this thread only [`RunQueue`] is collected, from here on.
    RunQueueOnly {
        /// The thread, by its system id.
        tid: u64,
        /// Why no more than that.
        why: Arc<str>,
        /// From when on.
        at: HostNanos,
    },
    /// Of this thread nothing is known, from here on.
    Unwatched {
        /// The thread, by its system id.
        tid: u64,
        /// Why.
        why: Arc<str>,
        /// From when on.
        at: HostNanos,
    },
    /// Switches of this thread were lost, because nobody had read the earlier ones yet.
    Lost {
        /// The thread, by its system id.
        tid: u64,
        /// How many records, most of them of switches.
        count: u64,
        /// They came after this; `None` if nothing came before.
        not_before: Option<HostNanos>,
        /// They came before this; `None` if nothing came after.
        not_after: Option<HostNanos>,
    },
    /// A watched thread ended. Its system id may be given to another from here on.
    ThreadEnded {
        /// The thread, by its system id.
        tid: u64,
        /// When; where its end was only noticed later, when that was.
        at: HostNanos,
    },
    /// Collection ended: of no thread anything is known from here on.
    Ended {
        /// When.
        at: HostNanos,
    },
}

/// A thread was inside a call of the operating system's runtime, such as a wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OsCall {
    /// The thread, by its system id.
    pub tid: u64,
    /// The function.
    pub name: Arc<str>,
    /// When it was entered.
    pub start: HostNanos,
    /// When it was left; `None` if that was not seen.
    pub end: Option<HostNanos>,
}
