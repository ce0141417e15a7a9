//! What both fuzz targets do with a recording: all that the command `lineage validate` does.

use lineage_core::correlator::{Correlator, Limits};
use lineage_import::{EpochsFrom, Recording, Settings};
use lineage_validator::{Conclusions, Options, validate};

/// Settings that depend on the input, so that each way of importing is tried: candidate epochs of
/// every kind, and so little memory that records go through temporary files.
pub fn settings(input: &[u8]) -> Settings {
    let kinds = [
        EpochsFrom::Nothing,
        EpochsFrom::Nvtx,
        EpochsFrom::Annotations,
        EpochsFrom::RequestIds,
    ];
    let choice = input
        .iter()
        .fold(0usize, |sum, byte| sum.wrapping_add(usize::from(*byte)));
    let settings = Settings::default().epochs_from(kinds[choice % kinds.len()]);
    if choice % 16 < 4 {
        settings.records_in_memory(3)
    } else {
        settings
    }
}

/// Joins and validates a recording as the command does, and checks that its records were all
/// accounted for.
///
/// # Panics
///
/// If they were not: that is a finding.
pub fn follow(recording: &Recording) {
    let holdings = recording.holdings();
    let (mut operations, mut joined, mut duplicates) = (0, 0, 0);
    let options = Options::default().keep_bindings(false);
    for slice in recording.slices(64).expect("temporary files can be read") {
        let slice = slice.expect("temporary files can be read");
        let mut correlator = Correlator::new(Limits::default());
        for observation in &slice.observations {
            correlator.observe(observation);
        }
        correlator.end();
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        correlator.drain(&mut rows, &mut faults);
        let validation = validate(
            &slice.observations,
            Some(Conclusions {
                rows: &rows,
                faults: &faults,
            }),
            &options,
        );
        let counts = &validation.counts;
        operations += counts.kernels + counts.memcpys + counts.memsets + counts.graphs;
        joined += counts.joined_kernels
            + counts.joined_memcpys
            + counts.joined_memsets
            + counts.joined_graphs;
        duplicates += counts.duplicate_records;
        assert!(operations - joined >= counts.activity_without_launch);
    }
    let held: u64 = holdings
        .processes
        .iter()
        .map(|process| process.operations())
        .sum();
    // A record that is there twice is one operation, and is counted.
    assert!(
        operations <= held && held <= operations + duplicates,
        "{held} operations, of which {operations} were validated, {duplicates} duplicates"
    );
}
