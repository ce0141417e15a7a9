//! Rows of any file, in batches.

use std::path::Path;

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::observation::Observation;
use lineage_core::row::Row;
use lineage_import::CollectError;

use super::{Format, Refusal, import, load};
use crate::arguments::Candidates;

/// Records of calls and operations in a batch of another tool's recording: about 150 MB. What was on
/// a stream before a batch is not known to it.
const BATCH: usize = 1 << 17;

/// A file whose rows are asked for.
pub(crate) struct Batches<'a> {
    pub(crate) file: &'a Path,
    pub(crate) format: Format,
    pub(crate) candidates: &'a Candidates,
    /// Whether a trace that is cut short is taken as far as it goes.
    pub(crate) partial: bool,
    pub(crate) clock_error_ns: u64,
}

impl Batches<'_> {
    /// Gives what was observed, and its rows; answers who recorded it.
    pub(crate) fn each(
        &self,
        mut each: impl FnMut(&[Observation], &[Row]),
    ) -> Result<String, Refusal> {
        if let Format::Ledger = self.format {
            let ledger = load(self.file)?;
            let rows = if ledger.rows.is_empty() {
                joined(&ledger.observations, self.clock_error_ns)
            } else {
                ledger.rows
            };
            each(&ledger.observations, &rows);
            return Ok(ledger.read.header.service);
        }
        let imported = import(self.file, self.format, self.candidates, self.partial)?;
        let recording = imported.recording;
        let refuse = |why: CollectError| Refusal::Import {
            file: self.file.to_owned(),
            why: why.to_string(),
        };
        let holdings = recording.holdings();
        let records = holdings.sum(|of| of.api_calls) + holdings.sum(|of| of.operations());
        imported.progress.now_joining(records);
        for slice in recording.slices(BATCH).map_err(refuse)? {
            let slice = slice.map_err(refuse)?;
            let rows = joined(&slice.observations, self.clock_error_ns);
            each(&slice.observations, &rows);
            imported.progress.joined(slice.records as u64);
        }
        Ok(recording.holdings().recorder.to_string())
    }
}

/// The rows of observations that have none yet.
fn joined(observations: &[Observation], clock_error_ns: u64) -> Vec<Row> {
    let mut limits = Limits::default();
    limits.epsilon_ns = clock_error_ns;
    // All of it is in memory already, so nothing of it need be forgotten.
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
        *limit = (*limit).max(observations.len());
    }
    let mut correlator = Correlator::new(limits);
    for observation in observations {
        correlator.observe(observation);
    }
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    rows
}
