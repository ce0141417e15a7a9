//! An operation's life: segments without a gap, each with what is known of it.

use std::sync::Arc;

use super::VerdictKind;
use crate::evidence::TimeSource;
use crate::fault::FaultCode;
use crate::id::{HostNanos, LaunchEpoch};
use crate::observation::OverheadKind;
use crate::readiness::{Dependency, Partial, Partials, Readiness};

/// A stage of an operation's life, named after what it begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Stage {
    /// From the declaration, or the step to this version.
    Declared,
    /// From the mark that the work has all it needs.
    Ready,
    /// From the moment at which its batch was formed.
    BatchFormed,
    /// From the moment at which it was handed over.
    HandedOver,
    /// On the thread that launches, outside of the call.
    Scope,
    /// Inside the call.
    Api,
    /// From the return of the call, where neither queueing nor submission was observed before it.
    Returned,
    /// In the command buffer.
    Queued,
    /// Given to the device.
    Submitted,
    /// Given to the device, or covered by what it depends on, until that has ended.
    Dependency,
    /// From the start to the end.
    Executing,
}

impl Stage {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Ready => "ready",
            Self::BatchFormed => "batch formed",
            Self::HandedOver => "handed over",
            Self::Scope => "on its thread",
            Self::Api => "in the call",
            Self::Returned => "called",
            Self::Queued => "queued",
            Self::Submitted => "submitted",
            Self::Dependency => "waiting for a dependency",
            Self::Executing => "executing",
        }
    }
}

/// Why time is as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// The call is no longer than its kind.
    UsualCall {
        /// The median of its kind, in nanoseconds.
        typical_ns: u64,
    },
    /// No more than the device's own latency, as measured here.
    Dispatch,
    /// Earlier work that it had to wait for was running: it cost nothing.
    Covered(Dependency),
    /// The application's own mark says that it expected the work to start later than this.
    NotDueYet,
}

/// What a submitting thread did instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Lateness {
    /// It could have run, and another was given its processor.
    Preempted,
    /// It waited for something: time, a lock, data.
    Blocked,
    /// It was inside a call of the operating system's, and waited there.
    Asleep {
        /// The function, as `poll`.
        function: Arc<str>,
    },
    /// It was off its processor, and why is not recorded.
    OffProcessor,
    /// It was ready to run and had no processor for at least this long, at some time between these
    /// two: how long is counted, and when is not. The stretch is told where they begin.
    WithoutProcessor {
        /// Not before this.
        not_before: HostNanos,
        /// Not after this.
        not_after: HostNanos,
    },
    /// It was in the scope of another epoch.
    BusyWith(LaunchEpoch),
    /// Not known.
    Unknown,
}

/// Why time is unresolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// Whether this stretch was critical is not known: the set of dependencies is partial.
    Critical(Partials),
    /// It waited for a dependency that is not recorded, or for its submission.
    DependencyOrSubmission(Partials),
    /// It had been called and nothing that is known held it back: its submission, or the device.
    SubmissionOrDevice,
    /// It was submitted and ready, and what the device did instead is not known.
    Device {
        /// Whether it is known that no other process can have the device.
        exclusive: bool,
    },
    /// Whether it was ready is not marked.
    NotMarkedReady,
    /// It was ready, and not handed over yet.
    NotHandedOver,
    /// Earlier work of its stream had been called: whether that waited for the device, which would
    /// cover this, or for its own submission is not recorded.
    PerhapsCovered,
    /// More earlier work of its stream ran meanwhile than is looked at: whether that covered this is
    /// not looked into.
    TooFarBack,
    /// Whether the thread ran is not recorded.
    ThreadUnknown,
    /// The call took longer than its kind, and whether its thread ran is not recorded.
    LongCall {
        /// The median of its kind, in nanoseconds.
        typical_ns: u64,
    },
    /// Too few such calls were recorded to say whether it is a usual one.
    NoHistory,
    /// It began before the part of the recording that was read.
    BeforePart,
}

impl Doubt {
    /// What is not known, in words.
    pub fn words(self) -> String {
        let list = |partial: Partials| {
            // The others are in the readiness.
            let words: Vec<&str> = partial.iter().map(|of| of.because()).collect();
            match words.as_slice() {
                [first, second, _, ..] => {
                    format!("{first}; {second}; and {} more", words.len() - 2)
                }
                _ => words.join("; "),
            }
        };
        match self {
            Self::Critical(partial) => format!(
                "whether this held it back; dependencies partial: {}",
                list(partial)
            ),
            Self::DependencyOrSubmission(partial) => format!(
                "dependency or submission; dependencies partial: {}",
                list(partial)
            ),
            Self::SubmissionOrDevice => {
                "called, and all it depends on had ended: submission or device".to_owned()
            }
            Self::Device { exclusive: true } => {
                "submitted and ready: what the device did instead is not recorded".to_owned()
            }
            Self::Device { exclusive: false } => {
                "submitted and ready: the device, or another process on it".to_owned()
            }
            Self::NotMarkedReady => "whether the work was ready is not marked".to_owned(),
            Self::NotHandedOver => {
                "ready, and not yet handed to the thread that launches".to_owned()
            }
            Self::PerhapsCovered => {
                "whether earlier work of its stream, called and not begun, covered this".to_owned()
            }
            Self::TooFarBack => {
                "whether earlier work of its stream covered this: more of it than is looked at"
                    .to_owned()
            }
            Self::ThreadUnknown => "what its thread did is not recorded".to_owned(),
            Self::LongCall { typical_ns } => format!(
                "the call took longer than its kind (median {typical_ns} ns); whether its thread ran is not recorded"
            ),
            Self::NoHistory => "too few such calls to say whether this is a usual one".to_owned(),
            Self::BeforePart => "it began before the part that was read".to_owned(),
        }
    }

    /// The evidence that would settle it.
    pub fn settle(self) -> Vec<&'static str> {
        match self {
            Self::Critical(partial) | Self::DependencyOrSubmission(partial) => {
                partial.iter().map(|of| of.settle()).collect()
            }
            Self::SubmissionOrDevice | Self::PerhapsCovered => {
                vec!["submission times (tier explain; of copies and sets CUPTI has none)"]
            }
            Self::Device { exclusive: true } => {
                vec!["what else ran on the device, with its channel and footprint"]
            }
            Self::Device { exclusive: false } => {
                vec!["whether other processes can have the device"]
            }
            Self::TooFarBack => vec!["a declaration closer to the launch, or one for each step"],
            Self::NotHandedOver => vec!["what the thread did that handed it over"],
            Self::NotMarkedReady => {
                vec!["a mark when the work has all it needs (`mark(Mark::Ready)`)"]
            }
            Self::ThreadUnknown | Self::LongCall { .. } => vec!["scheduler evidence"],
            Self::NoHistory => vec!["a longer recording"],
            Self::BeforePart => vec![Partial::BeforePart.settle()],
        }
    }
}

/// What a stretch of time went into, and on what that rests.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// See [`VerdictKind::ApplicationLate`].
    ApplicationLate,
    /// See [`VerdictKind::SubmitterLate`].
    SubmitterLate(Lateness),
    /// See [`VerdictKind::BatchWait`].
    BatchWait,
    /// See [`VerdictKind::HostWork`].
    HostWork,
    /// See [`VerdictKind::HostSyncWait`].
    HostSyncWait {
        /// The function.
        function: Option<Arc<str>>,
    },
    /// See [`VerdictKind::Allocation`].
    Allocation {
        /// The function.
        function: Option<Arc<str>>,
    },
    /// See [`VerdictKind::ApiSlow`].
    ApiSlow {
        /// The cause, where an overhead record names it.
        cause: Option<OverheadKind>,
        /// The median of such calls in nanoseconds, where there are enough.
        typical_ns: Option<u64>,
    },
    /// See [`VerdictKind::SubmitWait`].
    SubmitWait,
    /// See [`VerdictKind::DependencyWait`].
    DependencyWait(Dependency),
    /// See [`VerdictKind::FalseDependency`].
    FalseDependency {
        /// The row that was ahead in the channel.
        row: usize,
        /// The channel.
        channel: u32,
    },
    /// See [`VerdictKind::DeviceWait`].
    DeviceWait {
        /// The row that excluded it.
        row: usize,
    },
    /// See [`VerdictKind::Executing`].
    Executing,
    /// See [`VerdictKind::LongerThanItsKind`].
    LongerThanItsKind {
        /// The median of its kind, in nanoseconds.
        typical_ns: u64,
        /// How many runs that is the median of.
        samples: usize,
    },
    /// See [`VerdictKind::Expected`].
    Expected(Expected),
    /// See [`VerdictKind::Unresolved`].
    Unresolved(Doubt),
}

impl Verdict {
    /// Which verdict it is.
    pub const fn kind(&self) -> VerdictKind {
        match self {
            Self::ApplicationLate => VerdictKind::ApplicationLate,
            Self::SubmitterLate(_) => VerdictKind::SubmitterLate,
            Self::BatchWait => VerdictKind::BatchWait,
            Self::HostWork => VerdictKind::HostWork,
            Self::HostSyncWait { .. } => VerdictKind::HostSyncWait,
            Self::Allocation { .. } => VerdictKind::Allocation,
            Self::ApiSlow { .. } => VerdictKind::ApiSlow,
            Self::SubmitWait => VerdictKind::SubmitWait,
            Self::DependencyWait(_) => VerdictKind::DependencyWait,
            Self::FalseDependency { .. } => VerdictKind::FalseDependency,
            Self::DeviceWait { .. } => VerdictKind::DeviceWait,
            Self::Executing => VerdictKind::Executing,
            Self::LongerThanItsKind { .. } => VerdictKind::LongerThanItsKind,
            Self::Expected(_) => VerdictKind::Expected,
            Self::Unresolved(_) => VerdictKind::Unresolved,
        }
    }
}

/// A stretch of an operation's life on its critical path.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// When it begins.
    pub from: HostNanos,
    /// When it ends: where the next one begins.
    pub to: HostNanos,
    /// In which stage.
    pub stage: Stage,
    /// Where the verdict's evidence comes from; `None` where there is none.
    pub source: Option<TimeSource>,
    /// What it went into.
    pub verdict: Verdict,
}

impl Segment {
    /// How long it is, in nanoseconds.
    pub const fn duration_ns(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }
}

/// Why a row has no segments. Such rows are counted and listed; their times are not repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Unsegmented {
    /// It is a call without an operation.
    NoOperation,
    /// The operation's start or end was not collected.
    NoTimes,
    /// Its times cannot be.
    TimeFault(FaultCode),
}

/// Time that cost nothing: the host was at it while work that the operation had to wait for ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered {
    /// When it begins.
    pub from: HostNanos,
    /// When it ends.
    pub to: HostNanos,
    /// What the host was at.
    pub stage: Stage,
    /// What ran meanwhile.
    pub by: Dependency,
}

/// The life of a row's operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    /// The row's number among those that were judged together.
    pub row: usize,
    /// Its critical path, from the first known stage to the end, without gap or overlap.
    pub segments: Vec<Segment>,
    /// Why there is none.
    pub unsegmented: Option<Unsegmented>,
    /// What it waited for.
    pub readiness: Option<Readiness>,
    /// What cost nothing.
    pub covered: Vec<Covered>,
    /// Median and number of runs of its kind (name, grid and block), where there are enough.
    pub usual: Option<(u64, usize)>,
    /// Why it is not said to have run longer than its kind, though it did.
    pub long_because: Option<LongBecause>,
}

/// What may have made a kernel run longer than its kind, where that is not known to be the kernel
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LongBecause {
    /// It waits inside for other devices, as its name tells.
    Collective,
    /// It was launched to begin before what it depends on has ended, or perhaps so.
    Programmatic,
    /// Other work ran at the same time.
    Overlapped,
    /// Whether another process can have the device is not known.
    Tenancy,
}

impl LongBecause {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Collective => "it waits inside for other devices",
            Self::Programmatic => {
                "it may have begun before what it depends on had ended, and waited inside"
            }
            Self::Overlapped => "other work ran at the same time",
            Self::Tenancy => "another process may have had the device meanwhile",
        }
    }
}

impl Life {
    pub(super) const fn without(row: usize, why: Unsegmented) -> Self {
        Self {
            row,
            segments: Vec::new(),
            unsegmented: Some(why),
            readiness: None,
            covered: Vec::new(),
            usual: None,
            long_because: None,
        }
    }

    /// From the first known stage to the end, in nanoseconds; 0 without segments.
    pub fn whole_ns(&self) -> u64 {
        match (self.segments.first(), self.segments.last()) {
            (Some(first), Some(last)) => last.to.0.saturating_sub(first.from.0),
            _ => 0,
        }
    }

    /// Whether its segments follow one another without gap, overlap or negative length, and sum to
    /// the whole.
    pub fn is_exact(&self) -> bool {
        let in_order = self.segments.iter().all(|of| of.from <= of.to);
        let joined = self.segments.windows(2).all(|two| two[0].to == two[1].from);
        let durations = self.segments.iter().map(Segment::duration_ns);
        let sum: u128 = durations.map(u128::from).sum();
        in_order && joined && sum == u128::from(self.whole_ns())
    }

    /// Whether it is known from when on it could have begun: something is proved, or nothing can
    /// have held it back.
    pub fn has_useful_readiness(&self) -> bool {
        self.readiness
            .is_some_and(|of| of.not_before.is_some() || of.is_complete())
    }
}
