//! The correlator: observations in, rows out. Being written.

mod limits;

pub use limits::Limits;

use crate::observation::Observation;
use crate::row::{LooseFault, Row};
use crate::totals::Totals;

/// Joins observations to rows. Pure: no clock, no thread, no input or output.
#[derive(Debug)]
pub struct Correlator {
    totals: Totals,
}

impl Correlator {
    /// A correlator that holds no more than this.
    pub fn new(limits: Limits) -> Self {
        let _ = limits;
        Self { totals: Totals::default() }
    }

    /// Takes one observation.
    pub fn observe(&mut self, observation: &Observation) {
        let _ = observation;
        self.totals.observations += 1;
    }

    /// Nothing comes any more: everything that is held back is decided.
    pub fn end(&mut self) {}

    /// Gives out the rows and faults since the last time.
    pub fn drain(&mut self, rows: &mut Vec<Row>, faults: &mut Vec<LooseFault>) {
        let _ = (rows, faults);
    }

    /// What it came to so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Calls and operations whose row is not given yet.
    pub fn pending(&self) -> usize {
        self.totals.pending as usize
    }
}
