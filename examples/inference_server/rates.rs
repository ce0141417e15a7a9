//! Requests per second, with lineage off and on, and how much the figures are worth.

use std::fmt;

use crate::numbers::grouped;

/// Requests per second of each run.
#[derive(Debug, Default)]
pub struct Rates {
    /// With lineage off.
    pub off: Vec<f64>,
    /// With lineage on.
    pub on: Vec<f64>,
}

/// Requests per second of several runs.
pub struct Spread {
    least: f64,
    /// In the middle.
    pub median: f64,
    greatest: f64,
    runs: usize,
}

impl Spread {
    /// Of these; `None` of none.
    pub fn of(rates: &[f64]) -> Option<Self> {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted.len() / 2;
        let lower = (sorted.len() - 1) / 2;
        Some(Self {
            least,
            median: f64::midpoint(sorted[lower], sorted[upper]),
            greatest,
            runs: sorted.len(),
        })
    }

    /// How much the figures are worth.
    pub fn against(&self, off: &Self) -> Vec<String> {
        if self.runs == 1 {
            return vec!["one short run each: no measure of the difference".to_owned()];
        }
        let overlap = self.greatest >= off.least && off.greatest >= self.least;
        let worth = if overlap {
            "the ranges overlap: no difference is shown"
        } else {
            "the ranges are apart"
        };
        vec![
            format!("medians of {} runs each, in turn", self.runs),
            format!("on {}, off {}; {worth}", self.range(), off.range()),
        ]
    }

    fn range(&self) -> String {
        let whole = |rate: f64| grouped(rate.round() as u64);
        format!("{} to {}", whole(self.least), whole(self.greatest))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(self.median.round() as u64))
    }
}
