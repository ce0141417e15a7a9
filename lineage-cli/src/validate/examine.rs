//! A file, read and validated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::{DeviceSession, Event, Observation};
use lineage_core::row::{LooseFault, Row};
use lineage_import::{Capture, Holdings};
use lineage_validator::{Conclusions, Counts, Options, Validation, validate};

use super::import::{Replays, import};
use crate::arguments::Validate;
use crate::input::{self, Format, Ledger, Read, Refusal};
use crate::text::process_label;

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
        read: Box<Read>,
        /// Why its session had no device evidence, if it says so.
        absent: Option<String>,
    },
    Import {
        holdings: Box<Holdings>,
        /// Whether candidate epochs were asked for.
        epochs: bool,
    },
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
    let missing = read.summary.skipped() + read.summary.not_written + read.removed;
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
        origin: Origin::Ledger {
            read: Box::new(read),
            absent,
        },
        processes,
        replays: None,
        whole,
    }
}

impl Process {
    /// What a person calls it.
    pub(crate) fn label(&self) -> String {
        process_label(self.ordinal.0, self.pid, self.rank, self.name.as_deref())
    }
}
