//! Scoring against truth that was carried by data.
//!
//! Every source of a join reads what the threads carried, so all of them agree on a handoff that
//! was mixed up. Only something that travelled with the data itself can tell: in the simulator a
//! kernel reads its request's number out of its own arguments.

mod replays;

use std::fmt;

use lineage_core::id::{CorrelationId, HostNanos, LaunchEpoch, ProcessOrdinal};

use crate::validation::Validation;

pub(crate) use replays::BoundReplay;
pub use replays::{ReplayScore, TruthReplay};

/// An operation, and to whom the session's rows bind it; without rows, whom the validator derived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundOperation {
    pub(crate) process: ProcessOrdinal,
    pub(crate) session: u32,
    pub(crate) correlation: CorrelationId,
    pub(crate) start: Option<HostNanos>,
    pub(crate) epoch: Option<LaunchEpoch>,
}

impl BoundOperation {
    pub(crate) const fn key(&self) -> (ProcessOrdinal, CorrelationId, u32, Option<HostNanos>) {
        (self.process, self.correlation, self.session, self.start)
    }
}

/// An operation of which it is known whose it truly was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthOperation<L> {
    /// The process.
    pub process: ProcessOrdinal,
    /// The device session; `None` if there is only one.
    pub session: Option<u32>,
    /// The id of its call on the wire.
    pub correlation: CorrelationId,
    /// Which of the operations of that id it is, by their starts, from 0.
    pub ordinal: u32,
    /// Whose it was; `None` if it belongs to nobody.
    pub label: Option<L>,
}

impl<L> TruthOperation<L> {
    /// The only operation of a call, in a live session's only device session.
    pub const fn of_call(correlation: CorrelationId, label: L) -> Self {
        Self {
            process: ProcessOrdinal(0),
            session: None,
            correlation,
            ordinal: 0,
            label: Some(label),
        }
    }
}

/// How an operation was missed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Miss {
    /// It is not in the recording.
    NotRecorded,
    /// It is bound to no epoch.
    Unbound,
    /// It is bound to an epoch that is not its own.
    BoundTo(LaunchEpoch),
}

/// An operation whose binding is not the true one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TruthMiss<L> {
    /// The operation, with the true label.
    pub operation: TruthOperation<L>,
    /// What the binding was.
    pub miss: Miss,
}

/// How bindings compare with truth.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TruthScore<L> {
    /// Operations bound to an epoch that has their label, or rightly to none.
    pub right: u64,
    /// Operations that should be bound and are not.
    pub lost: u64,
    /// Operations bound to an epoch that does not have their label.
    pub wrong: u64,
    /// The lost and the wrong, at most [`MISSES_LISTED`].
    pub misses: Vec<TruthMiss<L>>,
}

/// Misses that a score lists.
pub const MISSES_LISTED: usize = 1000;

impl<L> TruthScore<L> {
    /// Whether every operation was bound rightly, and there was one.
    pub const fn is_right(&self) -> bool {
        self.right > 0 && self.lost == 0 && self.wrong == 0
    }
}

/// The counts, and the first misses.
impl<L: fmt::Debug> fmt::Display for TruthScore<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "against truth: {} right, {} lost, {} wrong",
            self.right, self.lost, self.wrong
        )?;
        for TruthMiss { operation, miss } in self.misses.iter().take(10) {
            let id = operation.correlation.0;
            write!(f, "\n  operation {} of call {id}, ", operation.ordinal)?;
            match &operation.label {
                Some(label) => write!(f, "whose label is {label:?}, ")?,
                None => write!(f, "which is nobody's, ")?,
            }
            match miss {
                Miss::NotRecorded => write!(f, "was not recorded")?,
                Miss::Unbound => write!(f, "is bound to no epoch")?,
                Miss::BoundTo(epoch) => write!(f, "is bound to epoch {epoch}")?,
            }
        }
        let more = (self.lost + self.wrong).saturating_sub(10);
        if more > 0 {
            write!(f, "\n  and {more} more")?;
        }
        Ok(())
    }
}

impl Validation {
    /// Holds the bindings against truth: the session's rows if they were given, else the derived
    /// ones. `labels_of` gives all labels that the work of an epoch may rightly have: for a batch,
    /// those of its members.
    ///
    /// An operation that serves several labels is given once for each.
    pub fn against_truth<L, I>(
        &self,
        truth: &[TruthOperation<L>],
        labels_of: impl Fn(LaunchEpoch) -> I,
    ) -> TruthScore<L>
    where
        L: PartialEq + Clone,
        I: IntoIterator<Item = L>,
    {
        let mut score = TruthScore {
            right: 0,
            lost: 0,
            wrong: 0,
            misses: Vec::new(),
        };
        for operation in truth {
            let miss = match (self.bound(operation), &operation.label) {
                (None, _) => Miss::NotRecorded,
                (Some(None), Some(_)) => Miss::Unbound,
                (Some(None), None) => {
                    score.right += 1;
                    continue;
                }
                (Some(Some(epoch)), Some(label))
                    if labels_of(epoch).into_iter().any(|of| of == *label) =>
                {
                    score.right += 1;
                    continue;
                }
                (Some(Some(epoch)), _) => Miss::BoundTo(epoch),
            };
            match miss {
                Miss::BoundTo(_) => score.wrong += 1,
                _ => score.lost += 1,
            }
            if score.misses.len() < MISSES_LISTED {
                let operation = operation.clone();
                score.misses.push(TruthMiss { operation, miss });
            }
        }
        score
    }

    /// The epoch an operation is bound to, if it is recorded.
    fn bound<L>(&self, truth: &TruthOperation<L>) -> Option<Option<LaunchEpoch>> {
        let key = (truth.process, truth.correlation);
        let of = |operation: &BoundOperation| (operation.process, operation.correlation);
        let from = self
            .operations
            .partition_point(|operation| of(operation) < key);
        let same = self.operations[from..]
            .iter()
            .take_while(|operation| of(operation) == key);
        let mut same = same.filter(|operation| {
            truth
                .session
                .is_none_or(|session| session == operation.session)
        });
        same.nth(truth.ordinal as usize)
            .map(|operation| operation.epoch)
    }
}
