//! Scoring replays against truth: which launch of its graph an operation was, and who built its node.

use std::collections::BTreeMap;
use std::fmt;

use lineage_core::evidence::Why;
use lineage_core::id::{Attribution, CorrelationId, LaunchEpoch, ProcessOrdinal};

use crate::validation::{Validation, template_name};

/// An operation that ran in a graph, and what the session's rows say of it; without rows, what the
/// validator derived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundReplay {
    pub(crate) process: ProcessOrdinal,
    pub(crate) session: u32,
    pub(crate) correlation: CorrelationId,
    pub(crate) node: Option<u64>,
    pub(crate) iteration: u32,
    pub(crate) replay: Option<u64>,
    pub(crate) capture: Result<Attribution, Why>,
}

impl BoundReplay {
    pub(crate) const fn key(&self) -> (ProcessOrdinal, CorrelationId, Option<u64>, u32, u32) {
        (
            self.process,
            self.correlation,
            self.node,
            self.iteration,
            self.session,
        )
    }
}

/// An operation of a graph of which it is known what it truly was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthReplay<L> {
    /// The process.
    pub process: ProcessOrdinal,
    /// The id of its launch on the wire.
    pub correlation: CorrelationId,
    /// The executable graph's node.
    pub node: u64,
    /// How often the node had run in that launch by then, from 1.
    pub iteration: u32,
    /// The number of that launch among those of its executable graph, from 1.
    pub replay: u64,
    /// Under whom the node was captured or made: carried by data, as a kernel's argument.
    pub capture: L,
}

/// How replays compare with truth.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayScore<L> {
    /// Operations whose capture is the true one, and whose number of launch is, where one is said.
    pub right: u64,
    /// Operations of whose capture is said, by reason, that it is not known.
    pub unknown: BTreeMap<&'static str, u64>,
    /// Of those that are right or unknown: no number of launch is said.
    pub without_number: u64,
    /// Operations that have no row in a graph.
    pub lost: u64,
    /// Operations with another capture, or another number of launch.
    pub wrong: u64,
    /// The lost and the wrong, at most [`MISSES_LISTED`](crate::MISSES_LISTED).
    pub misses: Vec<TruthReplay<L>>,
}

impl<L> ReplayScore<L> {
    /// Operations of whose capture it is said that it is not known.
    pub fn unknown(&self) -> u64 {
        self.unknown.values().sum()
    }

    /// Whether nothing is lost or wrong, and something is right.
    pub const fn is_right(&self) -> bool {
        self.right > 0 && self.lost == 0 && self.wrong == 0
    }
}

/// The counts, and the first misses.
impl<L: fmt::Debug> fmt::Display for ReplayScore<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "replays against truth: {} right, {} unknown, {} lost, {} wrong",
            self.right,
            self.unknown(),
            self.lost,
            self.wrong
        )?;
        for (reason, count) in &self.unknown {
            write!(f, "\n  {count} unknown: {}", reason.replace('_', " "))?;
        }
        for miss in self.misses.iter().take(10) {
            write!(
                f,
                "\n  node {:#x} of call {}, launch {}, captured under {:?}",
                miss.node, miss.correlation.0, miss.replay, miss.capture
            )?;
        }
        Ok(())
    }
}

impl Validation {
    /// Holds what is said of replays against truth. `labels_of` gives all labels that what an epoch
    /// captured may rightly have.
    pub fn replays_against_truth<L, I>(
        &self,
        truth: &[TruthReplay<L>],
        labels_of: impl Fn(LaunchEpoch) -> I,
    ) -> ReplayScore<L>
    where
        L: PartialEq + Clone,
        I: IntoIterator<Item = L>,
    {
        let mut score = ReplayScore {
            right: 0,
            unknown: BTreeMap::new(),
            without_number: 0,
            lost: 0,
            wrong: 0,
            misses: Vec::new(),
        };
        for operation in truth {
            let said = self.replay_of(operation);
            let number_is_right =
                said.is_some_and(|said| said.replay.is_none_or(|said| said == operation.replay));
            let label_is_right = |capture: Attribution| {
                let epoch = capture.epoch();
                epoch.is_some_and(|epoch| {
                    labels_of(epoch)
                        .into_iter()
                        .any(|label| label == operation.capture)
                })
            };
            match said.map(|said| (said.capture, said.replay)) {
                Some((Ok(capture), number)) if number_is_right && label_is_right(capture) => {
                    score.right += 1;
                    score.without_number += u64::from(number.is_none());
                    continue;
                }
                Some((Err(why), number)) if number_is_right => {
                    *score.unknown.entry(template_name(why)).or_default() += 1;
                    score.without_number += u64::from(number.is_none());
                    continue;
                }
                Some(_) => score.wrong += 1,
                None => score.lost += 1,
            }
            if score.misses.len() < super::MISSES_LISTED {
                score.misses.push(operation.clone());
            }
        }
        score
    }

    /// What is said of an operation of a graph, if it is recorded once.
    fn replay_of<L>(&self, truth: &TruthReplay<L>) -> Option<&BoundReplay> {
        let key = (
            truth.process,
            truth.correlation,
            Some(truth.node),
            truth.iteration,
        );
        let of = |replay: &BoundReplay| {
            (
                replay.process,
                replay.correlation,
                replay.node,
                replay.iteration,
            )
        };
        let from = self.replays.partition_point(|replay| of(replay) < key);
        let found = self.replays.get(from)?;
        (of(found) == key).then_some(found)
    }
}
