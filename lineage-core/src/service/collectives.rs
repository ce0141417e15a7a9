//! How far apart the devices of a collective began.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::samples::{Samples, Summary};
use crate::id::ProcessOrdinal;
use crate::row::Row;

/// How far apart devices began the same collective: the first of them waits for the last, inside
/// its kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CollectiveSkew {
    /// The kernel's name.
    pub name: Arc<str>,
    /// The devices that ran it, as process and ordinal.
    pub devices: Vec<(ProcessOrdinal, u32)>,
    /// From the first device's start to the last one's, for each time that all of them ran it.
    /// `None` where they did not run it equally often: then nothing says which belong together.
    pub skew: Option<Summary>,
}

/// When each device began one, in nanoseconds.
type Starts = BTreeMap<(ProcessOrdinal, u32), Vec<u64>>;

/// Collects collectives: kernels of NCCL's, which all devices of a communicator run in the same
/// order.
///
/// Which communicator a kernel belongs to, no record says. All devices that run a kernel of one name
/// are taken for one, and only if they ran it equally often, the first with the first and so on: an
/// inference. Clocks of several processes must be one clock.
#[derive(Debug)]
pub struct Collectives {
    limit: usize,
    kept: usize,
    not_kept: u64,
    starts: BTreeMap<Arc<str>, Starts>,
}

impl Default for Collectives {
    /// Keeps 1,048,576 starts, 8 bytes each.
    fn default() -> Self {
        Self::new(1 << 20)
    }
}

impl Collectives {
    /// Keeps at most so many starts; beyond it they are counted only.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: 0,
            not_kept: 0,
            starts: BTreeMap::new(),
        }
    }

    /// Starts that could not be kept.
    pub const fn not_kept(&self) -> u64 {
        self.not_kept
    }

    /// Takes a row.
    pub fn row(&mut self, row: &Row) {
        let Some(operation) = &row.operation else {
            return;
        };
        let (Some(name), Some(start)) = (&operation.name, operation.start) else {
            return;
        };
        // `ncclDevKernel_…` since NCCL 2.19, `ncclKernel_…` before.
        if !(name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel")) {
            return;
        }
        if self.kept == self.limit {
            self.not_kept += 1;
            return;
        }
        self.kept += 1;
        let devices = self.starts.entry(name.clone()).or_default();
        let device = (row.process, operation.device);
        devices.entry(device).or_default().push(start.0);
    }

    /// The skew of each collective that more than one device ran.
    pub fn figures(&self) -> Vec<CollectiveSkew> {
        let several = self.starts.iter().filter(|(_, devices)| devices.len() > 1);
        several
            .map(|(name, devices)| CollectiveSkew {
                name: name.clone(),
                devices: devices.keys().copied().collect(),
                skew: skew(devices.values()),
            })
            .collect()
    }
}

fn skew<'a>(devices: impl Iterator<Item = &'a Vec<u64>>) -> Option<Summary> {
    let mut devices: Vec<Vec<u64>> = devices.cloned().collect();
    devices.iter_mut().for_each(|starts| starts.sort_unstable());
    let times = devices.first()?.len();
    if devices.iter().any(|starts| starts.len() != times) {
        return None;
    }
    let mut samples = Samples::new(times);
    for time in 0..times {
        let starts = devices.iter().map(|starts| starts[time]);
        let (first, last) = (starts.clone().min()?, starts.max()?);
        samples.add(last - first);
    }
    Some(samples.summary())
}
