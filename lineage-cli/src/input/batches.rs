//! Rows of any file, in batches.

use std::path::Path;

use lineage_core::ledger::Entry;
use lineage_core::observation::Observation;
use lineage_core::row::Row;
use lineage_import::{CollectError, InferredTemplates};

use super::{Format, Refusal, import, join, notes, read};
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
    /// Gives what was observed in a file of this format, and its rows, so that each row comes with what it
    /// was joined from; answers what the file says of itself. A ledger is one batch, and in memory as a
    /// whole: nothing bounds how long before its row something was observed.
    pub(crate) fn each_batch(
        &self,
        file: &Path,
        format: Format,
        each: impl FnMut(&[Observation], &[Row]),
    ) -> Result<About, Refusal> {
        match format {
            Format::Ledger => self.ledger(file, usize::MAX, each),
            format => self.import(file, format, each),
        }
    }

    /// The same for what looks at each observation and each row by itself: of a ledger, too, no more than a
    /// part is in memory, and a row may come in a later one than what it was joined from.
    pub(crate) fn each_part(
        &self,
        file: &Path,
        format: Format,
        each: impl FnMut(&[Observation], &[Row]),
    ) -> Result<About, Refusal> {
        match format {
            Format::Ledger => self.ledger(file, BATCH, each),
            format => self.import(file, format, each),
        }
    }

    /// A ledger in parts of so many entries; where it has no rows, joined as a whole.
    fn ledger(
        &self,
        file: &Path,
        entries: usize,
        mut each: impl FnMut(&[Observation], &[Row]),
    ) -> Result<About, Refusal> {
        let (mut observations, mut rows) = (Vec::new(), Vec::new());
        let mut has_rows = false;
        let read = read(file, |entry| {
            match entry {
                Entry::Observation(of) => observations.push(of),
                Entry::Row(of) => {
                    rows.push(of);
                    has_rows = true;
                }
                _ => {}
            }
            // Until a row has come, there may be none at all.
            if has_rows && observations.len() + rows.len() >= entries {
                each(&observations, &rows);
                observations.clear();
                rows.clear();
            }
        })?;
        if !has_rows {
            rows = join(&observations, self.clock_error_ns).0;
        }
        each(&observations, &rows);
        Ok(About {
            notes: read.notes(),
            recorder: read.header.service,
        })
    }

    fn import(
        &self,
        file: &Path,
        format: Format,
        mut each: impl FnMut(&[Observation], &[Row]),
    ) -> Result<About, Refusal> {
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
