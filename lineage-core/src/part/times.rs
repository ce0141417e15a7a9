//! When an observation or a row was.

use crate::evidence::Evidence;
use crate::fault::FaultFamily;
use crate::id::HostNanos;
use crate::observation::{Event, Observation};
use crate::row::Row;

/// From when to when something was, as far as it says, on the session's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Times {
    /// The earliest of its times.
    pub from: HostNanos,
    /// The latest of its times.
    pub to: HostNanos,
    /// The latest that a thread of the host stamped: a device's clock may be far off, and a host's
    /// monotonic clock is not.
    pub host: Option<HostNanos>,
}

impl Times {
    /// Of an observation; `None` where it has no time of its own, as the attributes of a launch.
    pub fn of_observation(observation: &Observation) -> Option<Self> {
        let host = |at: HostNanos| Self::of([Some(at)], Some(at));
        match &observation.event {
            Event::ThreadStarted(of) => host(of.at),
            Event::ThreadEnded(of) => host(of.at),
            Event::Declared(of) => host(of.at),
            Event::Parented(of) => host(of.at),
            Event::SpanLinked(of) => host(of.at),
            Event::Linked(of) => host(of.at),
            Event::Stepped(of) => host(of.at),
            Event::Marked(of) => host(of.at),
            Event::Retired(of) => host(of.at),
            Event::Sent(of) => host(of.at),
            Event::Received(of) => host(of.at),
            Event::Abandoned(of) => host(of.at),
            Event::Misuse(of) => host(of.at),
            Event::GraphNode(of) => host(of.at),
            Event::Graph(of) => host(of.at),
            Event::GraphLaunch(of) => host(of.at),
            Event::Scope(of) => Self::of([Some(of.entered), Some(of.exited)], Some(of.exited)),
            Event::Call(of) => Self::of(
                [Some(of.entered), of.exited],
                of.exited.or(Some(of.entered)),
            ),
            Event::Api(of) => Self::of([of.start, of.end], of.end.or(of.start)),
            Event::External(of) => Self::of([of.beside], of.beside),
            Event::Operation(of) => Self::of([of.queued, of.submitted, of.start, of.end], None),
            Event::Flushed(of) => Self::of([Some(of.asked), Some(of.returned)], Some(of.returned)),
            Event::Synchronization(of) => Self::of([of.start, of.end], None),
            Event::EventRecord(of) => Self::of([of.device], None),
            Event::Scheduled(of) => Self::of([Some(of.at)], None),
            // A call that had not returned lasts.
            Event::OsCall(of) => {
                Self::of([Some(of.start), of.end.or(Some(HostNanos(u64::MAX)))], None)
            }
            Event::RunQueue(of) => Self::of([Some(of.not_before), Some(of.not_after)], None),
            Event::Overhead(of) => Self::of([Some(of.start), Some(of.end)], None),
            Event::Gap(_)
            | Event::Named(_)
            | Event::DeviceSession(_)
            | Event::Dropped(_)
            | Event::Extent(_)
            | Event::SchedulerSession(_)
            | Event::LaunchAttributes(_)
            | Event::Placement(_)
            | Event::StreamDescribed(_)
            | Event::DeviceDescribed(_)
            | Event::Collected(_) => None,
        }
    }

    /// Of a row: of its call and its operation.
    pub fn of_row(row: &Row) -> Option<Self> {
        let call = [row.stages.api_enter, row.stages.api_exit].map(Evidence::at);
        let operation = row.operation.as_ref();
        let operation =
            operation.map_or([None; 4], |of| [of.queued, of.submitted, of.start, of.end]);
        let all = call.into_iter().chain(operation);
        Self::of(all, call[1].or(call[0]))
    }

    fn of(
        all: impl IntoIterator<Item = Option<HostNanos>>,
        host: Option<HostNanos>,
    ) -> Option<Self> {
        all.into_iter()
            .flatten()
            .map(|at| Self {
                from: at,
                to: at,
                host,
            })
            .reduce(Self::and)
    }

    /// From the first to the last of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
            host: self.host.max(other.host),
        }
    }

    /// Whether any of it is in this stretch, its ends included.
    pub fn meets(self, from: HostNanos, to: HostNanos) -> bool {
        self.from <= to && self.to >= from
    }
}

/// When a row was, as one moment, by which it belongs to one part of a recording and to no other:
/// when its operation ended, so that all that came before is in that part or before it; when its call
/// returned, of one that has no operation or whose times cannot be. `None` where it has no time.
pub fn moment_of(row: &Row) -> Option<HostNanos> {
    let broken = row.faults.iter().any(|of| of.family() == FaultFamily::Time);
    let ended = row.operation.as_ref().and_then(|of| of.end);
    let called = || row.stages.api_exit.at().or(row.stages.api_enter.at());
    match ended.filter(|_| !broken) {
        Some(at) => Some(at),
        None => called().or(ended).or_else(|| row.operation.as_ref()?.start),
    }
}
