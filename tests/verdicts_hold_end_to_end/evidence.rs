//! What is left of a recording when one kind of evidence is taken away.

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::observation::{Event, Observation, OperationsDue, SynchronizationKind};
use lineage_core::row::Row;
use lineage_core::verdict::{Judge, Life, Settings};

/// A kind of evidence that is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    Scheduler,
    Latency,
    Events,
    Overheads,
    SchedulerAndOverheads,
    Lineage,
    OrderCalls,
    Descriptions,
    /// What kernels take of the multiprocessors.
    Footprints,
}

impl Without {
    pub(crate) const ALL: [Self; 9] = [
        Self::Scheduler,
        Self::Latency,
        Self::Events,
        Self::Overheads,
        Self::SchedulerAndOverheads,
        Self::Lineage,
        Self::OrderCalls,
        Self::Descriptions,
        Self::Footprints,
    ];

    /// What is left of an observation.
    fn of(self, observation: &Observation) -> Option<Observation> {
        let event = &observation.event;
        let scheduler = matches!(event, Event::Scheduled(_) | Event::SchedulerSession(_));
        let overhead = matches!(event, Event::Overhead(_));
        let gone = match self {
            Self::Latency | Self::Footprints => false,
            Self::Scheduler => scheduler,
            Self::Overheads => overhead,
            Self::SchedulerAndOverheads => scheduler || overhead,
            Self::Events => match event {
                Event::EventRecord(_) => true,
                Event::Synchronization(of) => of.kind == SynchronizationKind::StreamWait,
                _ => false,
            },
            Self::Lineage => matches!(
                event,
                Event::Declared(_)
                    | Event::Marked(_)
                    | Event::Sent(_)
                    | Event::Received(_)
                    | Event::Scope(_)
                    | Event::Call(_)
            ),
            Self::OrderCalls => match event {
                Event::Collected(_)
                | Event::Synchronization(_)
                | Event::EventRecord(_)
                | Event::LaunchAttributes(_)
                | Event::StreamDescribed(_) => true,
                Event::Api(of) => of.due == OperationsDue::None,
                _ => false,
            },
            Self::Descriptions => matches!(
                event,
                Event::DeviceDescribed(_) | Event::StreamDescribed(_) | Event::Placement(_)
            ),
        };
        if gone {
            return None;
        }
        let mut left = observation.clone();
        if let Event::Operation(of) = &mut left.event {
            match self {
                Self::Latency => (of.queued, of.submitted) = (None, None),
                Self::Footprints => of.footprint = None,
                _ => {}
            }
        }
        Some(left)
    }

    /// Joins and judges what is left.
    pub(crate) fn judge(self, observations: &[Observation]) -> (Vec<Row>, Vec<Life>) {
        judge(observations.iter().filter_map(|of| self.of(of)).collect())
    }
}

/// Joins and judges.
pub(crate) fn judge(observations: Vec<Observation>) -> (Vec<Row>, Vec<Life>) {
    let mut correlator = Correlator::new(Limits::default());
    for observation in &observations {
        correlator.observe(observation);
    }
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    let lives = Judge::new(Settings::default()).judge(&observations, &rows);
    (rows, lives)
}
