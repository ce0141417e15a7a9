//! Joins and judges what is left of a recording when one kind of evidence is taken away.

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::observation::Observation;
use lineage_core::row::Row;
use lineage_core::verdict::{Judge, Life, Settings};

use crate::without::Without;

/// What can be taken away here. The programs have no handoffs, their threads make no calls of the
/// system's, and how long they waited for a processor is not recorded beside their switches.
pub(crate) fn kinds() -> impl Iterator<Item = Without> {
    Without::ALL.into_iter().filter(|without| {
        !matches!(
            without,
            Without::Nothing | Without::Switches | Without::OsCalls | Without::Handoffs
        )
    })
}

/// Joins and judges what is left.
pub(crate) fn judge_without(
    without: Without,
    observations: &[Observation],
) -> (Vec<Row>, Vec<Life>) {
    let left = observations.iter().filter_map(|observation| {
        Some(Observation {
            process: observation.process,
            event: without.of(&observation.event)?,
        })
    });
    judge(left.collect())
}

/// Joins and judges.
pub(crate) fn judge(observations: Vec<Observation>) -> (Vec<Row>, Vec<Life>) {
    let mut correlator = Correlator::new(Limits::default());
    for observation in &observations {
        correlator.observe(observation);
    }
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    let lives = Judge::new(Settings::default()).judge(&observations, &rows);
    (rows, lives)
}
