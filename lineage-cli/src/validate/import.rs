//! Another tool's recording, joined and validated.
//!
//! That is done in slices that fit into memory: each is joined by the correlator, as a live session
//! is, and the validator holds the rows against the observations. Joins do not cross slices, since
//! a slice has all records of its ids.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use lineage_core::id::{EpochId, ProcessOrdinal};
use lineage_core::observation::{Event, Observation};
use lineage_core::row::{Binding, LooseFault, Row};
use lineage_import::{
    Capture, CollectError, Holdings, InferredTemplates, Replay, Slice, TemplateMatch,
};
use lineage_validator::{Conclusions, Counts, Options, Validation, validate};
use serde::Serialize;

use super::examine::{Examined, Origin, Process};
use crate::input::{Format, Imported, Refusal, join};

/// Records of calls and operations that are joined and validated at a time: about 20 MB. One slice
/// is validated while the next is joined, and one waits in between.
const SLICE: usize = 1 << 13;

/// Validates a recording. `epochs` says whether candidate epochs were asked for; `captures` are
/// those of the files before, to which this one's are added.
pub(super) fn import(
    file: &Path,
    format: Format,
    imported: Imported,
    options: &Options,
    epochs: bool,
    captures: &mut Vec<Capture>,
) -> Result<Examined, Refusal> {
    let Imported {
        recording,
        progress,
    } = imported;
    let refuse = |error: CollectError| Refusal::Import {
        file: file.to_owned(),
        why: error.to_string(),
    };
    let holdings = Box::new(recording.holdings().clone());
    progress.now_joining(holdings.sum(|of| of.api_calls) + holdings.sum(|of| of.operations()));
    let several = holdings.processes.len() > 1;
    let mut whole: Option<Validation> = None;
    let mut each: BTreeMap<ProcessOrdinal, Validation> = BTreeMap::new();
    let mut launched = Launched::default();
    let (own, replays) = recording.captures_and_replays().map_err(refuse)?;
    let of_others = captures.len();
    captures.extend(own);
    let templates = InferredTemplates::new(captures, &replays);
    let mut templates = templates.first_of_other_recordings(of_others);
    let mut inferred = 0;
    let slices = recording.slices(SLICE).map_err(refuse)?;
    std::thread::scope(|scope| {
        let (send, joined) = std::sync::mpsc::sync_channel(1);
        scope.spawn(move || {
            let joined = slices.map(|slice| slice.map(|slice| Joined::of(slice, options)));
            // The other end is gone once it has refused.
            joined
                .map(|slice| send.send(slice))
                .all(|sent| sent.is_ok())
        });
        for slice in joined {
            let mut slice = slice.map_err(refuse)?;
            inferred += templates.put_into(&mut slice.rows);
            let validation = slice.validate(options);
            launched.add(&slice.slice.observations, &slice.rows);
            progress.joined(slice.slice.records as u64);
            if several {
                let part = validation.clone();
                match each.get_mut(&slice.slice.process) {
                    Some(known) => known.merge(part, 0),
                    None => _ = each.insert(slice.slice.process, part),
                }
            }
            match &mut whole {
                Some(whole) => whole.merge(validation, options.listed_per_code),
                None => whole = Some(validation),
            }
        }
        Ok(())
    })?;
    let replays = Replays::of(&replays, templates.matches(), inferred);
    let mut whole = whole.unwrap_or_else(|| validate(&[], None, options));
    if epochs {
        let each = each.iter_mut().map(|(ordinal, of)| (Some(*ordinal), of));
        for (ordinal, of) in each.chain([(None, &mut whole)]) {
            launched.recount(&holdings, ordinal, &mut of.counts);
        }
    }
    let counts = |ordinal| match each.get(&ordinal) {
        Some(of) => of.counts.clone(),
        None if several => Counts::default(),
        None => whole.counts.clone(),
    };
    let processes = holdings.processes.iter().map(|of| Process {
        ordinal: of.ordinal,
        pid: of.description.pid,
        rank: of.description.rank,
        name: of.description.name.clone(),
        counts: counts(of.ordinal),
    });
    Ok(Examined {
        file: file.to_owned(),
        format,
        processes: processes.collect(),
        replays: Some(replays),
        whole,
        origin: Origin::Import { holdings, epochs },
    })
}

/// A slice, and what the correlator made of it.
struct Joined {
    slice: Slice,
    rows: Vec<Row>,
    faults: Vec<LooseFault>,
}

impl Joined {
    fn of(slice: Slice, options: &Options) -> Self {
        let (rows, faults) = join(&slice.observations, options.clock_error_ns);
        Self {
            slice,
            rows,
            faults,
        }
    }

    fn validate(&self, options: &Options) -> Validation {
        let conclusions = Conclusions {
            rows: &self.rows,
            faults: &self.faults,
        };
        validate(&self.slice.observations, Some(conclusions), options)
    }
}

/// Which candidate epochs of each process have launches, in themselves or in a range inside of them:
/// a bit for each, by its id. A slice counts each epoch that reaches into it, so neither their number
/// nor how many have none can be added up.
#[derive(Debug, Default)]
struct Launched(BTreeMap<ProcessOrdinal, Vec<u64>>);

impl Launched {
    fn add(&mut self, observations: &[Observation], rows: &[Row]) {
        let links = observations.iter().filter_map(|of| match &of.event {
            Event::Linked(link) => Some(((of.process, link.epoch.id), link.from.id)),
            _ => None,
        });
        let around: HashMap<(ProcessOrdinal, EpochId), EpochId> = links.collect();
        for row in rows {
            let Binding::Bound(epoch) = row.binding else {
                continue;
            };
            let mut id = Some(epoch.id);
            // Where one is known, those around it are, too: what reached into a slice with it did.
            while let Some(next) = id.filter(|id| self.insert(row.process, *id)) {
                id = around.get(&(row.process, next)).copied();
            }
        }
    }

    /// Whether it was not in before.
    fn insert(&mut self, process: ProcessOrdinal, id: EpochId) -> bool {
        let words = self.0.entry(process).or_default();
        // Importers number epochs from 1, one after the other.
        let (word, bit) = (id.get() / 64, 1 << (id.get() % 64));
        let Ok(word) = usize::try_from(word) else {
            return false;
        };
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        let is_new = words[word] & bit == 0;
        words[word] |= bit;
        is_new
    }

    /// Counts the epochs of a process, or of all, once each.
    fn recount(&self, holdings: &Holdings, process: Option<ProcessOrdinal>, counts: &mut Counts) {
        let wanted = |ordinal: ProcessOrdinal| process.is_none_or(|process| process == ordinal);
        let declared = holdings.processes.iter().filter(|of| wanted(of.ordinal));
        counts.epochs = declared.map(|of| of.epochs).sum();
        let words = self.0.iter().filter(|(ordinal, _)| wanted(**ordinal));
        let words = words.flat_map(|(_, words)| words);
        let launched: u64 = words.map(|word| u64::from(word.count_ones())).sum();
        counts.ended_without_gpu_work = counts.epochs.saturating_sub(launched);
    }
}

/// Graph launches of a recording, and how many of their kernels have a template by capture order:
/// the captures of this file and of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Replays {
    pub(crate) launches: u64,
    pub(crate) kernels: u64,
    /// Inferred, and said so in their rows: exactly one capture has these names in this order.
    pub(crate) by_capture_order: u64,
    /// Several captures have.
    pub(crate) ambiguous: u64,
    /// None has.
    pub(crate) unknown: u64,
}

impl Replays {
    /// `inferred` is in how many rows a template was put.
    fn of(replays: &[Replay], matches: &[TemplateMatch], inferred: u64) -> Self {
        let mut counts = Self {
            by_capture_order: inferred,
            ..Self::default()
        };
        let mut explained = 0;
        for (replay, template) in replays.iter().zip(matches) {
            let kernels = replay.kernels.len() as u64;
            counts.launches += 1;
            counts.kernels += kernels;
            *match template {
                TemplateMatch::ByCaptureOrder { .. } => &mut explained,
                TemplateMatch::Ambiguous { .. } => &mut counts.ambiguous,
                _ => &mut counts.unknown,
            } += kernels;
        }
        // Of a launch that is not recorded whole, no row says anything.
        counts.unknown += explained.saturating_sub(inferred);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_launched_once_however_many_slices_it_reaches_into() {
        let mut launched = Launched::default();
        let mut insert = |process, id| {
            let id = EpochId::new(id).expect("in range");
            launched.insert(ProcessOrdinal(process), id)
        };
        assert!(insert(0, 1) && insert(0, 64) && insert(0, 65) && insert(1, 64));
        assert!(!insert(0, 64) && !insert(1, 64));
        let ones = |process| -> u32 {
            let words = &launched.0[&ProcessOrdinal(process)];
            words.iter().map(|word| word.count_ones()).sum()
        };
        assert_eq!((ones(0), ones(1)), (3, 1));
    }
}
