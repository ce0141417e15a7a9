//! What is left of a recording when one kind of evidence is taken away: here, and of what
//! `tests/verdicts_hold_end_to_end` of the workspace records.

use lineage_core::observation::{Event, OperationsDue, SynchronizationKind};

/// A kind of evidence that is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    Nothing,
    /// No evidence of what threads did.
    Scheduler,
    /// No switches: only how long threads waited for a processor within each tenth of a
    /// millisecond, and which calls of the system's they were in.
    Switches,
    /// No calls of the system's.
    OsCalls,
    /// No handoffs: how work came to its thread is not known.
    Handoffs,
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
    pub(crate) const ALL: [Self; 13] = [
        Self::Nothing,
        Self::Scheduler,
        Self::Switches,
        Self::OsCalls,
        Self::Handoffs,
        Self::Latency,
        Self::Events,
        Self::Overheads,
        Self::SchedulerAndOverheads,
        Self::Lineage,
        Self::OrderCalls,
        Self::Descriptions,
        Self::Footprints,
    ];

    /// What is left of an event.
    pub(crate) fn of(self, event: &Event) -> Option<Event> {
        let gone = match self {
            Self::Nothing | Self::Latency | Self::Footprints => false,
            Self::Scheduler => matches!(
                event,
                Event::Scheduled(_) | Event::SchedulerSession(_) | Event::OsCall(_)
            ),
            Self::Switches => matches!(event, Event::Scheduled(_) | Event::SchedulerSession(_)),
            Self::OsCalls => matches!(event, Event::OsCall(_)),
            Self::Handoffs => matches!(event, Event::Sent(_) | Event::Received(_)),
            Self::Events => match event {
                Event::EventRecord(_) => true,
                Event::Synchronization(of) => of.kind == SynchronizationKind::StreamWait,
                _ => false,
            },
            Self::Overheads => matches!(event, Event::Overhead(_)),
            Self::SchedulerAndOverheads => matches!(
                event,
                Event::Scheduled(_)
                    | Event::SchedulerSession(_)
                    | Event::OsCall(_)
                    | Event::Overhead(_)
            ),
            Self::Lineage => matches!(
                event,
                Event::Declared(_)
                    | Event::Marked(_)
                    | Event::Sent(_)
                    | Event::Received(_)
                    | Event::Scope(_)
                    | Event::Call(_)
            ),
            // As tier `correlate` records it: no call but those that ask for work.
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
        let mut event = event.clone();
        if let Event::Operation(of) = &mut event {
            match self {
                Self::Latency => (of.queued, of.submitted) = (None, None),
                Self::Footprints => of.footprint = None,
                _ => {}
            }
        }
        Some(event)
    }
}
