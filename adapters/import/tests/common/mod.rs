//! Records for tests, and what becomes of them.
#![allow(dead_code, reason = "not every test needs all of it")]

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::Recorder;
use lineage_core::row::Row;
use lineage_import::{
    Activity, ActivityKind, ApiCall, Collector, NameId, ProcessDescription, Recording, Settings,
};
use lineage_validator::{Conclusions, Counts, Options, Validation, validate};

/// A collector with one process.
pub(crate) fn collector(settings: Settings) -> (Collector, ProcessOrdinal) {
    let mut collector = Collector::new(Recorder::NsightSystems, settings);
    let process = collector.process(ProcessDescription::default());
    (collector, process)
}

pub(crate) fn call(
    process: ProcessOrdinal,
    correlation: u64,
    name: NameId,
    start_ns: u64,
) -> ApiCall {
    ApiCall {
        process,
        correlation,
        tid: 7,
        start_ns: Some(start_ns),
        end_ns: Some(start_ns + 10),
        result: 0,
        name,
        kernel: None,
    }
}

pub(crate) fn kernel(process: ProcessOrdinal, correlation: u64, start_ns: u64) -> Activity {
    Activity {
        process,
        correlation,
        kind: ActivityKind::Kernel,
        device: 0,
        context: 1,
        stream: 7,
        queued_ns: None,
        submitted_ns: None,
        start_ns: Some(start_ns),
        end_ns: Some(start_ns + 20),
        name: None,
        graph_node: None,
        graph: None,
        bytes: 0,
        copies: 1,
        grid: [1; 3],
        block: [32, 1, 1],
        footprint: None,
    }
}

/// Correlates and validates a recording slice by slice.
pub(crate) struct Examined {
    pub(crate) validation: Validation,
    pub(crate) rows: Vec<Row>,
    pub(crate) slices: usize,
}

impl Examined {
    pub(crate) fn counts(&self) -> &Counts {
        &self.validation.counts
    }
}

pub(crate) fn examine(recording: &Recording, records: usize) -> Examined {
    let options = Options::default();
    let mut merged: Option<Validation> = None;
    let (mut all_rows, mut slices) = (Vec::new(), 0);
    for slice in recording.slices(records).expect("readable") {
        let slice = slice.expect("readable");
        let mut correlator = Correlator::new(Limits::default());
        for observation in &slice.observations {
            correlator.observe(observation);
        }
        correlator.end();
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        correlator.drain(&mut rows, &mut faults);
        let conclusions = Conclusions {
            rows: &rows,
            faults: &faults,
        };
        let validation = validate(&slice.observations, Some(conclusions), &options);
        assert_eq!(
            validation.counts.rows.expect("given").differing,
            0,
            "{validation}"
        );
        match &mut merged {
            Some(merged) => merged.merge(validation, options.listed_per_code),
            None => merged = Some(validation),
        }
        all_rows.extend(rows);
        slices += 1;
    }
    Examined {
        validation: merged.expect("at least one slice"),
        rows: all_rows,
        slices,
    }
}
