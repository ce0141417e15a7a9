//! Rows of observations that have none yet.

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::observation::Observation;
use lineage_core::row::{LooseFault, Row};

/// Joins them, as a live session does, and answers their rows and the faults that belong to none.
pub(crate) fn join(
    observations: &[Observation],
    clock_error_ns: u64,
) -> (Vec<Row>, Vec<LooseFault>) {
    let mut correlator = Correlator::new(limits(observations.len(), clock_error_ns));
    for observation in observations {
        correlator.observe(observation);
    }
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    (rows, faults)
}

/// Limits that they cannot reach: all of it is in memory already, so nothing of it need be forgotten.
fn limits(observations: usize, clock_error_ns: u64) -> Limits {
    let mut limits = Limits::default();
    // What the user says of the clock holds for both.
    limits.epsilon_ns = clock_error_ns;
    for limit in [
        &mut limits.open_calls,
        &mut limits.joined_calls,
        &mut limits.lost_calls,
        &mut limits.unplaced,
        &mut limits.epochs,
        &mut limits.threads,
        &mut limits.scopes_per_thread,
        &mut limits.calls_awaiting_scope,
        &mut limits.undrained,
    ] {
        *limit = (*limit).max(observations);
    }
    limits
}
