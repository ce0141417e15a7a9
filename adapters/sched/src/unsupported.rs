//! Systems that have nothing of this kind, or none that we know to use.

use lineage_core::observation::Observation;
use lineage_core::source::{NoEvidence, SourceContext};

use crate::Scheduler;

const WHY: &str = "not supported on this system: switches are collected by Linux's perf_event_open";

/// There is none.
#[derive(Debug)]
pub(crate) enum Source {}

impl Source {
    pub(crate) fn check() -> Result<(), NoEvidence> {
        Err(NoEvidence::new(WHY))
    }

    pub(crate) fn start(settings: &Scheduler, _: SourceContext) -> Result<Self, NoEvidence> {
        // Settings of what there is not.
        let Scheduler {
            switches: _,
            ring_bytes: _,
            all_threads: _,
            run_queue_every: _,
            source: _,
        } = settings;
        Err(NoEvidence::new(WHY))
    }

    pub(crate) fn drain(&mut self, _: &mut dyn FnMut(Observation)) {
        match *self {}
    }

    pub(crate) fn stop(self, _: &mut dyn FnMut(Observation)) {
        match self {}
    }
}
