//! One recording, looked at: its own totals, the validator's view of it, and the truth.

use std::collections::BTreeMap;

use launch_lineage::fault::FaultCode;
use launch_lineage::{DeviceEvidence, Report};
use lineage_core::totals::Totals;
use lineage_sim::Truth;
use lineage_validator::{Conclusions, validate};

use crate::truth::{self, Labels, Score};

/// What is right and wrong with a recording.
pub struct Checked {
    /// Counts by the session itself.
    pub totals: Totals,
    /// Where the device evidence came from.
    pub device: DeviceEvidence,
    /// Faults by the validator, which derives every join from the observations with its own code
    /// and holds the session's rows against the result; and those that only the session raised.
    pub faults: BTreeMap<FaultCode, u64>,
    /// By what the joins were judged.
    pub judged: Judged,
}

/// By what joins were judged.
pub enum Judged {
    /// By the truth that is carried by data.
    ByTruth(Score),
    /// By the validator alone: then they are self-consistent at best.
    ByValidator {
        /// Operations whose epoch, call or record is lost.
        lost: u64,
        /// Operations with a fault of the family `W`.
        wrong: u64,
        /// Why there is no truth.
        why: &'static str,
    },
}

impl Checked {
    /// Checks a recording. The simulated device knows the truth; a real one does not.
    pub fn new(report: &Report, truth: Option<(&Truth, &Labels)>) -> Self {
        let options = lineage_validator::Options::default().evicted_observations(report.not_kept);
        let conclusions = Conclusions {
            rows: &report.rows,
            faults: &report.faults,
        };
        let validation = validate(&report.observations, Some(conclusions), &options);
        let mut faults = validation.fault_counts.clone();
        faults.extend(validation.raised_by_session_only());

        let by_validator = |why| Judged::ByValidator {
            lost: validation.counts.lost,
            wrong: validation.counts.wrong,
            why,
        };
        let judged = match truth {
            Some((truth, labels)) if report.not_kept == 0 && truth.operations_not_kept == 0 => {
                Judged::ByTruth(truth::score(report, labels, truth))
            }
            Some(_) => by_validator("the run was too long for the truth to be kept"),
            None => by_validator("a real device does not say for whom it works"),
        };
        Self {
            totals: report.totals.clone(),
            device: report.device.clone(),
            faults,
            judged,
        }
    }

    /// Operations joined to nobody.
    pub fn lost(&self) -> u64 {
        match &self.judged {
            Judged::ByTruth(score) => score.lost,
            Judged::ByValidator { lost, .. } => *lost,
        }
    }

    /// Operations joined to others than those who asked for them.
    pub fn wrong(&self) -> u64 {
        match &self.judged {
            Judged::ByTruth(score) => score.wrong,
            Judged::ByValidator { wrong, .. } => *wrong,
        }
    }

    /// Nothing lost, nothing wrong, no fault, and something that was joined.
    pub fn is_right(&self) -> bool {
        self.lost() == 0 && self.wrong() == 0 && self.faults.is_empty() && self.totals.bound > 0
    }
}
