//! Who captured and who replayed, noted by their numbers: the numbers that travel as data.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use launch_lineage::id::LaunchEpoch;

/// The numbers in a label: of the capture in the high half, of the replay in the low one. Neither is
/// ever 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The capture's.
    pub capture: u32,
    /// The replay's.
    pub replay: u32,
}

impl Numbers {
    /// As they lie in device memory.
    pub fn label(self) -> u64 {
        u64::from(self.capture) << 32 | u64::from(self.replay)
    }

    /// As they were read there.
    pub fn of(label: u64) -> Self {
        Self {
            capture: (label >> 32) as u32,
            replay: label as u32,
        }
    }
}

/// A capture, as its thread noted it.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Under which epoch.
    pub epoch: Option<LaunchEpoch>,
    /// Which of the kernels, one after the other; none where nothing was captured, but parameters set.
    pub kernels: Vec<&'static str>,
    /// When it began, on the device's clock.
    pub at_ns: u64,
}

/// Where it is noted.
#[derive(Debug, Default)]
pub struct Desk(Mutex<Noted>);

/// What was noted.
#[derive(Debug, Default)]
pub struct Noted {
    captures: Vec<Capture>,
    replays: Vec<Option<LaunchEpoch>>,
    changed: BTreeSet<u32>,
}

impl Desk {
    /// The number of a new capture.
    pub fn capture(&self, capture: Capture) -> u32 {
        let mut noted = self.noted();
        noted.captures.push(capture);
        noted.captures.len() as u32
    }

    /// The number of a new replay.
    pub fn replay(&self, epoch: Option<LaunchEpoch>) -> u32 {
        let mut noted = self.noted();
        noted.replays.push(epoch);
        noted.replays.len() as u32
    }

    /// What this capture has in an executable graph came there by a change of that, not by its
    /// instantiation.
    pub fn changes(&self, capture: u32) {
        self.noted().changed.insert(capture);
    }

    /// What was noted.
    pub fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Noted {
    /// The capture with this number.
    pub fn capture(&self, number: u32) -> Option<&Capture> {
        self.captures.get((number as usize).checked_sub(1)?)
    }

    /// The captures in the order of their numbers, which begin with 1.
    pub fn captures(&self) -> &[Capture] {
        &self.captures
    }

    /// The epoch of the replay with this number.
    pub fn replay(&self, number: u32) -> Option<LaunchEpoch> {
        *self.replays.get((number as usize).checked_sub(1)?)?
    }

    /// Whether the capture with this number changed an executable graph.
    pub fn is_change(&self, capture: u32) -> bool {
        self.changed.contains(&capture)
    }
}
