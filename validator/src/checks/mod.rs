//! The checks: what is lost, wrong or impossible in one process.

mod epochs;
mod graphs;
mod joins;
mod recording;
mod times;

use crate::derive::Process;
use crate::finding::Findings;
use crate::options::Options;
use crate::validation::Counts;

/// Runs every check on a process, and counts what there is.
pub(crate) fn check(
    process: &Process<'_>,
    options: &Options,
    counts: &mut Counts,
    findings: &mut Findings,
) {
    let judged = joins::check(process, options, counts, findings);
    graphs::check(process, &judged, options, counts, findings);
    epochs::check(process, options, counts, findings);
    recording::check(process, counts, findings);
    times::check(process, options, counts, findings);
}
