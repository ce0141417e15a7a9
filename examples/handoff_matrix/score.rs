//! What lineage says of a cell, compared with the truth that was carried by data.

use std::collections::{BTreeMap, HashMap};

use launch_lineage::Report;
use launch_lineage::fault::FaultCode;
use launch_lineage::id::EpochId;
use launch_lineage::observation::Event;
use launch_lineage::row::{Binding, Row};
use lineage_sim::Truth;

use crate::request::Notes;

/// How the joins compare with the truth.
#[derive(Debug, Clone, Copy, Default)]
pub struct Score {
    /// Kernels that the device ran.
    pub kernels: u64,
    /// Joined to exactly the requests that they were for.
    pub right: u64,
    /// Joined to nobody, or not recorded at all.
    pub lost: u64,
    /// Joined to other requests, or to only some of theirs.
    pub wrong: u64,
}

/// Compares every kernel that the device really ran with the row that lineage has of it.
pub fn score(report: &Report, notes: &Notes, truth: &Truth) -> Score {
    let served = Served::of(report);
    let mut rows: HashMap<u32, &Row> = HashMap::new();
    for row in &report.rows {
        if let Some(operation) = &row.operation {
            rows.insert(operation.correlation.0, row);
        }
    }
    let mut score = Score {
        kernels: truth.operations.len() as u64,
        ..Score::default()
    };
    for kernel in &truth.operations {
        let truly = kernel
            .label
            .map_or_else(Vec::new, |label| notes.requests_of(label));
        let row = rows.remove(&kernel.correlation_id);
        let count = match row.map(|row| row.binding) {
            Some(Binding::Bound(epoch)) if served.requests(epoch.id, notes) == truly => {
                &mut score.right
            }
            Some(Binding::Bound(_) | Binding::Disputed(..)) => &mut score.wrong,
            _ => &mut score.lost,
        };
        *count += 1;
    }
    // What lineage has and the device never ran.
    score.wrong += rows.len() as u64;
    score
}

/// The codes that the session raised while the program ran.
pub fn codes(report: &Report) -> BTreeMap<FaultCode, u64> {
    report.totals.faults.iter().collect()
}

/// Which epochs each epoch serves, over its links.
struct Served(HashMap<EpochId, Vec<EpochId>>);

impl Served {
    fn of(report: &Report) -> Self {
        let mut served: HashMap<EpochId, Vec<EpochId>> = HashMap::new();
        for observation in &report.observations {
            if let Event::Linked(link) = &observation.event
                // A retry is the same work under the same id.
                && link.epoch.id != link.from.id
            {
                served.entry(link.epoch.id).or_default().push(link.from.id);
            }
        }
        Self(served)
    }

    /// The numbers of the requests that an epoch is for, in order; 0 for one that no caller made.
    fn requests(&self, epoch: EpochId, notes: &Notes) -> Vec<u64> {
        let (mut requests, mut open) = (Vec::new(), vec![epoch]);
        while let Some(epoch) = open.pop() {
            match (notes.declared.get(&epoch), self.0.get(&epoch)) {
                (Some(number), _) => requests.push(*number),
                (None, Some(served)) => open.extend(served),
                (None, None) => requests.push(0),
            }
        }
        requests.sort_unstable();
        requests.dedup();
        requests
    }
}
