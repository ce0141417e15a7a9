//! Rows of any file, in batches.

use std::path::Path;

use lineage_core::observation::Observation;
use lineage_core::row::Row;
use lineage_import::{CollectError, InferredTemplates};

use super::{Format, Refusal, import, join, load, notes};
use crate::arguments::Reading;
use crate::text::counted;

/// Records of calls and operations in a batch of another tool's recording: about 150 MB. What was on
/// a stream before a batch is not known to it.
const BATCH: usize = 1 << 17;

/// What a recorder's own warnings begin with among an import's notes.
const WARNING: &str = "a warning of the recorder's";

/// What a file says of itself.
pub(crate) struct About {
    /// Who recorded it; of a ledger its service.
    pub(crate) recorder: String,
    /// What a person should know of how it was made and read: what is missing, and why.
    pub(crate) notes: Vec<String>,
}

impl Reading {
    /// Gives what was observed in a file of this format, and its rows; answers what the file says of itself.
    pub(crate) fn each_batch(
        &self,
        file: &Path,
        format: Format,
        mut each: impl FnMut(&[Observation], &[Row]),
    ) -> Result<About, Refusal> {
        if let Format::Ledger = format {
            let ledger = load(file)?;
            let rows = if ledger.rows.is_empty() {
                join(&ledger.observations, self.clock_error_ns).0
            } else {
                ledger.rows
            };
            each(&ledger.observations, &rows);
            return Ok(About {
                notes: ledger.read.notes(),
                recorder: ledger.read.header.service,
            });
        }
        let imported = import(file, format, &self.candidates, self.partial)?;
        let recording = imported.recording;
        let refuse = |why: CollectError| Refusal::Import {
            file: file.to_owned(),
            why: why.to_string(),
        };
        let holdings = recording.holdings();
        let records = holdings.sum(|of| of.api_calls) + holdings.sum(|of| of.operations());
        imported.progress.now_joining(records);
        let (captures, replays) = recording.captures_and_replays().map_err(refuse)?;
        let mut templates = InferredTemplates::new(&captures, &replays);
        for slice in recording.slices(BATCH).map_err(refuse)? {
            let slice = slice.map_err(refuse)?;
            let (mut rows, _) = join(&slice.observations, self.clock_error_ns);
            templates.put_into(&mut rows);
            each(&slice.observations, &rows);
            imported.progress.joined(slice.records as u64);
        }
        let holdings = recording.holdings();
        // What its recorder could not do is seldom about what is asked here, and fills a page.
        let (warnings, mut notes): (Vec<String>, Vec<String>) = notes(holdings)
            .into_iter()
            .partition(|note| note.starts_with(WARNING));
        if !warnings.is_empty() {
            let warnings = counted(warnings.len() as u64, "warning", "warnings");
            notes.push(format!(
                "{warnings} of the recorder's: `lineage show` has them"
            ));
        }
        Ok(About {
            recorder: holdings.recorder.to_string(),
            notes,
        })
    }
}
