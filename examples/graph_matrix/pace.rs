//! Keeps the workers from running away from the thread that reads what they did.
//!
//! A cell of a thousand nodes, replayed by eight threads at once, asks for work as fast as the simulator takes it. On a machine
//! with few processors its records then come faster than they are read, CUPTI is left without buffers, and
//! drops and counts some. That is another test's subject.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use launch_lineage::observation::{Event, Observation};
use launch_lineage::row::{LooseFault, Row};
use launch_lineage::source::{Sink, SinkError};

/// How many operations may be on their way.
const AHEAD: u64 = 100_000;
/// After this long a worker goes on all the same: records that were dropped never come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Operations that were asked for, and those whose record has come.
#[derive(Debug, Default)]
pub struct Pace {
    asked: AtomicU64,
    come: AtomicU64,
}

impl Pace {
    /// So many operations are about to be asked for. Waits until not too many are on their way.
    pub fn ask(&self, operations: u64) {
        let asked = self.asked.fetch_add(operations, Ordering::Relaxed) + operations;
        let began = Instant::now();
        let is_ahead = || asked > self.come.load(Ordering::Relaxed) + AHEAD;
        while is_ahead() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Counts the records that have come.
pub struct Come(pub Arc<Pace>);

impl Sink for Come {
    fn observations(&mut self, batch: &[Observation]) -> Result<(), SinkError> {
        let is_operation =
            |observation: &&Observation| matches!(observation.event, Event::Operation(_));
        let come = batch.iter().filter(is_operation).count();
        self.0.come.fetch_add(come as u64, Ordering::Relaxed);
        Ok(())
    }

    fn rows(&mut self, _: &[Row], _: &[LooseFault]) -> Result<(), SinkError> {
        Ok(())
    }
}
