//! The same records, read in other ways.
//!
//! * **external id**: the epoch that CUPTI's external correlation record names for the kernel's call.
//!   It was pushed at the replay.
//! * **correlation id**: the epoch that was current at the call whose id the kernel's record bears.
//!   That call is the replay's.
//! * **kernel names**: the newest capture whose kernels have the names of the replay's, in their
//!   order. It says nothing of whom the replay is for. What was captured is given to it; a tool would
//!   have to record that, too.

use std::collections::HashMap;

use launch_lineage::id::PackedEpoch;
use launch_lineage::observation::Event;
use launch_lineage::row::Row;
use launch_lineage::{Attribution, LaunchEpoch, Report};
use lineage_sim::{Operation, Truth};
use serde::{Deserialize, Serialize};

use crate::desk::{Capture, Noted, Numbers};
use crate::score::rows;

/// What a way said of the kernels' owners.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Missed {
    /// Kernels that were asked about.
    pub kernels: u64,
    /// Captured by nobody.
    pub capture_lost: u64,
    /// Captured by another.
    pub capture_wrong: u64,
    /// Replayed for nobody.
    pub replay_lost: u64,
    /// Replayed for another.
    pub replay_wrong: u64,
}

impl Missed {
    /// Takes in another cell's.
    pub fn add(&mut self, other: &Self) {
        self.kernels += other.kernels;
        self.capture_lost += other.capture_lost;
        self.capture_wrong += other.capture_wrong;
        self.replay_lost += other.replay_lost;
        self.replay_wrong += other.replay_wrong;
    }

    fn count(&mut self, said: Said, truly: Said) {
        let missed = |said: Option<LaunchEpoch>, truly| match said {
            None => (1, 0),
            Some(said) if Some(said) == truly => (0, 0),
            Some(_) => (0, 1),
        };
        let (capture_lost, capture_wrong) = missed(said.capture, truly.capture);
        let (replay_lost, replay_wrong) = missed(said.replay, truly.replay);
        self.add(&Self {
            kernels: 1,
            capture_lost,
            capture_wrong,
            replay_lost,
            replay_wrong,
        });
    }
}

/// The captures whose kernels have the same names in the same order, the newest last.
fn by_names(noted: &Noted) -> HashMap<&[&'static str], Vec<&Capture>> {
    let mut by_names: HashMap<&[&'static str], Vec<&Capture>> = HashMap::new();
    for capture in noted.captures() {
        by_names.entry(&capture.kernels).or_default().push(capture);
    }
    by_names
}

/// What CUPTI's records of external ids name, by correlation id. Not as rows have it: one that is given
/// without waiting any longer for a buffer that CUPTI holds has none.
fn externals(report: &Report) -> HashMap<u32, Attribution> {
    let records = report.observations.iter().map(|seen| &seen.event);
    let external = records.filter_map(|event| match event {
        Event::External(record) if record.own_kind => {
            let named = PackedEpoch::from_bits(record.external_id).unpack();
            Some((record.correlation.0, named))
        }
        _ => None,
    });
    external.collect()
}

/// The two owners of a kernel.
#[derive(Clone, Copy)]
struct Said {
    capture: Option<LaunchEpoch>,
    replay: Option<LaunchEpoch>,
}

/// What each way said.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Baselines {
    /// By the external id alone.
    pub external_id: Missed,
    /// By the correlation id alone.
    pub correlation_id: Missed,
    /// By the names of the kernels in their order.
    pub kernel_names: Missed,
}

impl Baselines {
    /// Takes in another cell's.
    pub fn add(&mut self, other: &Self) {
        self.external_id.add(&other.external_id);
        self.correlation_id.add(&other.correlation_id);
        self.kernel_names.add(&other.kernel_names);
    }

    /// Asks each way about every kernel that the device ran in a graph.
    pub fn of(report: &Report, noted: &Noted, truth: &Truth) -> Self {
        let rows = rows(report);
        let externals = externals(report);
        let mut launches: HashMap<u32, Vec<&Operation>> = HashMap::new();
        for operation in truth.operations.iter().filter(|one| one.graph.is_some()) {
            let launch = launches.entry(operation.correlation_id).or_default();
            launch.push(operation);
        }
        let by_names = by_names(noted);
        let mut baselines = Self::default();
        for mut kernels in launches.into_values() {
            kernels.sort_by_key(|kernel| kernel.start_ns);
            let names: Vec<&str> = kernels
                .iter()
                .map(|kernel| kernel.name.as_deref().unwrap_or_default())
                .collect();
            let launched_ns = kernels.first().map_or(0, |kernel| kernel.call_start_ns);
            let alike = by_names.get(names.as_slice());
            let newest = alike.and_then(|captures| {
                let mut before = captures.iter().rev().filter(|of| of.at_ns < launched_ns);
                before.next()
            });
            let named = newest.and_then(|capture| capture.epoch);
            for kernel in kernels {
                let node = kernel.graph.map(|node| node.node_id);
                let row = rows.get(&(kernel.correlation_id, node)).copied();
                let external = externals.get(&kernel.correlation_id).copied();
                baselines.ask(kernel, external, row, named, noted);
            }
        }
        baselines
    }

    fn ask(
        &mut self,
        kernel: &Operation,
        external: Option<Attribution>,
        row: Option<&Row>,
        named: Option<LaunchEpoch>,
        noted: &Noted,
    ) {
        let numbers = Numbers::of(kernel.label.unwrap_or_default());
        let truly = Said {
            capture: noted.capture(numbers.capture).and_then(|of| of.epoch),
            replay: noted.replay(numbers.replay),
        };
        let both = |source: Option<Attribution>| {
            let epoch = source.and_then(Attribution::epoch);
            Said {
                capture: epoch,
                replay: epoch,
            }
        };
        self.external_id.count(both(external), truly);
        let callback = both(row.and_then(|row| row.sources.callback));
        self.correlation_id.count(callback, truly);
        let names = Said {
            capture: named,
            replay: None,
        };
        self.kernel_names.count(names, truly);
    }
}
