//! A file, read and validated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::{DeviceSession, Event, Observation};
use lineage_core::row::{LooseFault, Row};
use lineage_import::{Capture, Holdings, Replay, TemplateMatch, match_templates};
use lineage_validator::{Conclusions, Counts, Options, Validation, validate};
use serde::Serialize;

use crate::arguments::Validate;
use crate::input::{self, Format, Imported, Ledger, Read, Refusal};
use crate::text::process_label;

/// Records of calls and operations that are joined and validated at a time: about 60 MB.
const SLICE: usize = 1 << 15;

/// A file, what it is, and what came of validating it.
pub(crate) struct Examined {
    pub(crate) file: PathBuf,
    pub(crate) format: Format,
    pub(crate) origin: Origin,
    /// One for each process.
    pub(crate) processes: Vec<Process>,
    /// Of another tool's recording: where its graph launches' operations come from.
    pub(crate) replays: Option<Replays>,
    pub(crate) whole: Validation,
}

/// Where the observations come from.
pub(crate) enum Origin {
    Ledger {
        read: Read,
        /// Why its session had no device evidence, if it says so.
        absent: Option<String>,
    },
    Import {
        holdings: Box<Holdings>,
        /// Whether candidate epochs were asked for.
        epochs: bool,
    },
}

/// Graph launches of a recording, and how many of their kernels have a template by capture order:
/// the captures of this file and of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Replays {
    pub(crate) launches: u64,
    pub(crate) kernels: u64,
    /// Inferred: exactly one capture has these names in this order.
    pub(crate) by_capture_order: u64,
    /// Several captures have.
    pub(crate) ambiguous: u64,
    /// None has.
    pub(crate) unknown: u64,
}

impl Replays {
    fn of(captures: &[Capture], replays: &[Replay]) -> Self {
        let mut counts = Self::default();
        for (replay, template) in replays.iter().zip(match_templates(captures, replays)) {
            let kernels = replay.kernels.len() as u64;
            counts.launches += 1;
            counts.kernels += kernels;
            *match template {
                TemplateMatch::ByCaptureOrder { .. } => &mut counts.by_capture_order,
                TemplateMatch::Ambiguous { .. } => &mut counts.ambiguous,
                _ => &mut counts.unknown,
            } += kernels;
        }
        counts
    }
}

/// A process of the file.
pub(crate) struct Process {
    pub(crate) ordinal: ProcessOrdinal,
    pub(crate) pid: Option<u64>,
    pub(crate) rank: Option<u32>,
    pub(crate) name: Option<String>,
    pub(crate) counts: Counts,
}

/// Reads a file, whatever its format, and validates it.
pub(crate) fn examine(
    file: &Path,
    arguments: &Validate,
    captures: &mut Vec<Capture>,
) -> Result<Examined, Refusal> {
    let options = Options::default()
        .clock_error_ns(arguments.clock_error_ns)
        .listed_per_code(arguments.list)
        .keep_bindings(false);
    match input::format(file)? {
        Format::Ledger => Ok(ledger(file, input::load(file)?, options)),
        format => {
            let Validate {
                candidates,
                partial,
                ..
            } = arguments;
            let imported = input::import(file, format, candidates, *partial)?;
            let epochs = candidates.epochs_from.is_some();
            import(file, format, imported, &options, epochs, captures)
        }
    }
}

fn ledger(file: &Path, ledger: Ledger, options: Options) -> Examined {
    let Ledger {
        read,
        observations,
        rows,
        faults,
    } = ledger;
    let missing = read.summary.skipped() + read.summary.not_written;
    let options = options.evicted_observations(missing);
    // A ledger of observations alone, as an importer writes it, concludes nothing.
    let concluded = !(rows.is_empty() && faults.is_empty());
    let conclude = |observations: &[Observation], rows: &[Row], faults: &[LooseFault]| {
        let conclusions = concluded.then_some(Conclusions { rows, faults });
        validate(observations, conclusions, &options)
    };
    let whole = conclude(&observations, &rows, &faults);
    let absent = observations.iter().find_map(|of| match &of.event {
        Event::DeviceSession(DeviceSession::Absent { why, .. }) => Some(why.to_string()),
        _ => None,
    });
    let mut by_process: BTreeMap<ProcessOrdinal, (Vec<Observation>, Vec<Row>)> = BTreeMap::new();
    let several = {
        let first = observations.first().map(|of| of.process);
        observations.iter().any(|of| Some(of.process) != first)
    };
    if several {
        for observation in observations {
            by_process
                .entry(observation.process)
                .or_default()
                .0
                .push(observation);
        }
        for row in rows {
            by_process.entry(row.process).or_default().1.push(row);
        }
    }
    let named = |ordinal, counts| Process {
        ordinal,
        pid: None,
        rank: None,
        name: None,
        counts,
    };
    let processes = if several {
        let each = by_process.into_iter();
        each.map(|(ordinal, (observations, rows))| {
            named(ordinal, conclude(&observations, &rows, &[]).counts)
        })
        .collect()
    } else {
        vec![named(ProcessOrdinal(0), whole.counts.clone())]
    };
    Examined {
        file: file.to_owned(),
        format: Format::Ledger,
        origin: Origin::Ledger { read, absent },
        processes,
        replays: None,
        whole,
    }
}

/// A recording is validated in slices that fit into memory: each is joined by the correlator, as a
/// live session is, and the validator holds the rows against the observations.
fn import(
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
    let refuse = |error: lineage_import::CollectError| Refusal::Import {
        file: file.to_owned(),
        why: error.to_string(),
    };
    let holdings = Box::new(recording.holdings().clone());
    progress.now_joining(holdings.sum(|of| of.api_calls) + holdings.sum(|of| of.operations()));
    let mut whole: Option<Validation> = None;
    let mut each: BTreeMap<ProcessOrdinal, Validation> = BTreeMap::new();
    let several = holdings.processes.len() > 1;
    for slice in recording.slices(SLICE).map_err(refuse)? {
        let slice = slice.map_err(refuse)?;
        let validation = slice_of(&slice.observations, options);
        progress.joined(slice.records as u64);
        if several {
            let part = validation.clone();
            match each.get_mut(&slice.process) {
                Some(known) => known.merge(part, 0),
                None => _ = each.insert(slice.process, part),
            }
        }
        match &mut whole {
            Some(whole) => whole.merge(validation, options.listed_per_code),
            None => whole = Some(validation),
        }
    }
    let (own, replays) = recording.captures_and_replays().map_err(refuse)?;
    captures.extend(own);
    let replays = Replays::of(captures, &replays);
    let whole = whole.unwrap_or_else(|| validate(&[], None, options));
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
    let processes = processes.collect();
    Ok(Examined {
        file: file.to_owned(),
        format,
        processes,
        replays: Some(replays),
        whole,
        origin: Origin::Import { holdings, epochs },
    })
}

fn slice_of(observations: &[Observation], options: &Options) -> Validation {
    let mut correlator = Correlator::new(limits(observations.len()));
    for observation in observations {
        correlator.observe(observation);
    }
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    let conclusions = Conclusions {
        rows: &rows,
        faults: &faults,
    };
    validate(observations, Some(conclusions), options)
}

/// Limits that a slice cannot reach: it is in memory already, so nothing of it need be forgotten.
fn limits(observations: usize) -> Limits {
    let mut limits = Limits::default();
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

impl Process {
    /// What a person calls it.
    pub(crate) fn label(&self) -> String {
        process_label(self.ordinal.0, self.pid, self.rank, self.name.as_deref())
    }
}
