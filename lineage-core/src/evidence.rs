//! Evidence: how a stage's time is known. A stage is observed, inferred by a named rule, bounded,
//! or unknown for a stated reason; it is never guessed, clipped or shifted.

use crate::id::HostNanos;

/// Where an observed time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TimeSource {
    /// Lineage's own hooks in the application's runtime.
    RuntimeHook,
    /// CUPTI's API records and callbacks.
    CuptiApi,
    /// CUPTI's kernel, copy and set records.
    CuptiKernel,
    /// CUPTI's latency timestamps (queued, submitted).
    CuptiLatency,
    /// CUPTI's event records and waits.
    CuptiEvent,
    /// CUPTI's overhead records.
    CuptiOverhead,
    /// The edges of a graph.
    GraphDependency,
    /// The operating system's scheduler.
    OsScheduler,
    /// The application's marks.
    Application,
    /// A recording of Nsight Systems.
    #[cfg_attr(feature = "serde", serde(rename = "import:nsys"))]
    ImportNsys,
    /// A recording of Kineto's.
    #[cfg_attr(feature = "serde", serde(rename = "import:kineto"))]
    ImportKineto,
}

/// The rule by which a time was inferred or bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Rule {
    /// A scope was already open when its thread first launched: it began before that.
    OpenAtFirstLaunch,
    /// Nothing can start before it was asked for, or after it started.
    CallBeforeStart,
    /// A graph's nodes run in an order that only one capture order of their names explains.
    CaptureOrder,
}

/// Why a stage is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Why {
    /// Collection of this evidence was not switched on.
    NotCollected,
    /// The driver or CUPTI cannot give it.
    NotSupported,
    /// Its record was dropped.
    Dropped,
    /// The record had the time 0, which means unknown.
    ZeroTimestamp,
    /// It happened where the chosen mode does not look.
    NotVisible,
    /// It cannot be true: the clock stepped.
    ClockFault,
    /// The executable graph was updated and the node's pairing is not proved.
    ExecUpdated,
    /// It has not come yet.
    Pending,
    /// Nothing of this kind happened.
    NotApplicable,
    /// It was made before the session began to look.
    BeforeSession,
    /// The call may have been captured into a graph: then nothing of this kind happened.
    MaybeCaptured,
}

/// How one stage's time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Evidence {
    /// Seen.
    Observed {
        /// When.
        at: HostNanos,
        /// By what.
        source: TimeSource,
    },
    /// Follows from what was seen.
    Inferred {
        /// When.
        at: HostNanos,
        /// By which rule.
        rule: Rule,
    },
    /// Lies in an interval, either side of which may be open.
    Bounded {
        /// Not before this.
        not_before: Option<HostNanos>,
        /// Not after this.
        not_after: Option<HostNanos>,
        /// By which rule.
        rule: Rule,
    },
    /// Not known.
    Unknown {
        /// Why.
        why: Why,
    },
}

impl Evidence {
    /// A time of CUPTI's, where 0 was "unknown".
    pub fn from_cupti(at: Option<HostNanos>, source: TimeSource, absent: Why) -> Self {
        match at {
            Some(at) => Self::Observed { at, source },
            None => Self::Unknown { why: absent },
        }
    }

    /// The time, where it is one point.
    pub const fn at(self) -> Option<HostNanos> {
        match self {
            Self::Observed { at, .. } | Self::Inferred { at, .. } => Some(at),
            Self::Bounded { .. } | Self::Unknown { .. } => None,
        }
    }
}
