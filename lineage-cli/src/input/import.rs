//! Other tools' recordings.

use std::path::Path;

use lineage_import::{EpochsFrom, Holdings, Recording, Settings};

use super::{Format, Progress, Refusal};
use crate::arguments::{Candidates, EpochSource};
use crate::text::counted;

/// Another tool's recording, and the bar that shows how far the work on it is.
pub(crate) struct Imported {
    pub(crate) recording: Recording,
    pub(crate) progress: Progress,
}

/// Imports a file of this format. With `partial`, a trace that is cut short is taken as far as it
/// goes; it says so in its notes.
pub(crate) fn import(
    path: &Path,
    format: Format,
    candidates: &Candidates,
    partial: bool,
) -> Result<Imported, Refusal> {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let progress = Progress::of(path, bytes);
    let settings = settings(candidates);
    let refuse = |why: String| Refusal::Import {
        file: path.to_owned(),
        why,
    };
    let recording = match format {
        Format::NsightSystems => {
            let mut report = |at: lineage_nsys::Progress| progress.bytes(at.done, Some(at.of));
            lineage_nsys::import(path, settings, &mut report)
                .map_err(|error| refuse(error.to_string()))?
        }
        _ => {
            let mut report =
                |at: lineage_kineto::Progress| progress.bytes(at.bytes_read, at.bytes_in_all);
            match lineage_kineto::import(path, settings.into(), &mut report) {
                Ok(recording) => recording,
                Err(error) => {
                    let why = error.to_string();
                    match error.into_partial() {
                        Some(recording) if partial => recording,
                        Some(_) => {
                            return Err(refuse(format!(
                                "{why}; `--partial` takes what there is of it"
                            )));
                        }
                        None => return Err(refuse(why)),
                    }
                }
            }
        }
    };
    Ok(Imported {
        recording,
        progress,
    })
}

/// What a person should know of how a recording was made and read: what of it could not be used, and
/// what its recorder says itself.
pub(crate) fn notes(holdings: &Holdings) -> Vec<String> {
    let lost = holdings.skipped.iter().filter(|(why, _)| why.is_loss());
    let mut notes: Vec<String> = lost
        .map(|(why, count)| {
            let records = counted(*count, "record", "records");
            format!("{records} could not be used: {why}")
        })
        .collect();
    notes.extend(holdings.notes.iter().cloned());
    if holdings.more_notes > 0 {
        notes.push(format!("and {} notes more", holdings.more_notes));
    }
    notes
}

fn settings(candidates: &Candidates) -> Settings {
    let from = match candidates.epochs_from {
        None => EpochsFrom::Nothing,
        Some(EpochSource::Nvtx) => EpochsFrom::Nvtx,
        Some(EpochSource::Annotations) => EpochsFrom::Annotations,
        Some(EpochSource::RequestIds) => EpochsFrom::RequestIds,
    };
    let settings = Settings::default().epochs_from(from);
    match &candidates.epoch_name {
        Some(name) => settings.epoch_name(name),
        None => settings,
    }
}
