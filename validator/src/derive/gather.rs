//! Observations sorted by process and by what they are, each with its place in the stream.

use std::collections::BTreeMap;

use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::observation::{
    Abandoned, ApiRecord, Call, Declared, DeviceSession, Dropped, Event, Extent, ExternalRecord,
    Flushed, Gap, GraphEvent, GraphLaunch, Linked, Marked, Misuse, Named, Observation, Operation,
    Received, Retired, Scope, Sent, Stepped, ThreadEnded, ThreadStarted,
};

/// Something that was seen, and where in the stream.
#[derive(Debug)]
pub(crate) struct Seen<'a, T> {
    /// Its place in the stream of its process.
    pub(crate) place: usize,
    /// What was seen.
    pub(crate) what: &'a T,
}

// Derived, these would ask for `T: Copy`.
impl<T> Clone for Seen<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Seen<'_, T> {}

type All<'a, T> = Vec<Seen<'a, T>>;

/// All that was seen in one process.
#[derive(Debug, Default)]
pub(crate) struct Gathered<'a> {
    pub(crate) threads_started: All<'a, ThreadStarted>,
    pub(crate) threads_ended: All<'a, ThreadEnded>,
    pub(crate) declared: All<'a, Declared>,
    pub(crate) linked: All<'a, Linked>,
    pub(crate) stepped: All<'a, Stepped>,
    pub(crate) marked: All<'a, Marked>,
    pub(crate) retired: All<'a, Retired>,
    pub(crate) sent: All<'a, Sent>,
    pub(crate) received: All<'a, Received>,
    pub(crate) abandoned: All<'a, Abandoned>,
    pub(crate) scopes: All<'a, Scope>,
    pub(crate) calls: All<'a, Call>,
    pub(crate) gaps: All<'a, Gap>,
    pub(crate) named: All<'a, Named>,
    pub(crate) misuses: All<'a, Misuse>,
    pub(crate) device_sessions: All<'a, DeviceSession>,
    pub(crate) apis: All<'a, ApiRecord>,
    pub(crate) externals: All<'a, ExternalRecord>,
    pub(crate) operations: All<'a, Operation>,
    pub(crate) graphs: All<'a, GraphEvent>,
    pub(crate) graph_launches: All<'a, GraphLaunch>,
    pub(crate) flushes: All<'a, Flushed>,
    pub(crate) drops: All<'a, Dropped>,
    pub(crate) extents: All<'a, Extent>,
    /// The earliest time in any of them, from which times are shown.
    pub(crate) origin: Option<HostNanos>,
    /// Observations of kinds that this validator does not look at.
    pub(crate) not_examined: u64,
    count: usize,
}

/// Sorts a stream by process.
pub(crate) fn gather(observations: &[Observation]) -> BTreeMap<ProcessOrdinal, Gathered<'_>> {
    let mut processes: BTreeMap<ProcessOrdinal, Gathered<'_>> = BTreeMap::new();
    for observation in observations {
        processes
            .entry(observation.process)
            .or_default()
            .take(&observation.event);
    }
    processes
}

impl<'a> Gathered<'a> {
    fn take(&mut self, event: &'a Event) {
        let place = self.count;
        self.count += 1;
        macro_rules! take {
            ($list:ident, $what:expr) => {
                self.$list.push(Seen { place, what: $what })
            };
        }
        match event {
            Event::ThreadStarted(what) => {
                self.at(Some(what.at));
                take!(threads_started, what);
            }
            Event::ThreadEnded(what) => take!(threads_ended, what),
            Event::Declared(what) => {
                self.at(Some(what.at));
                take!(declared, what);
            }
            Event::Linked(what) => take!(linked, what),
            Event::Stepped(what) => take!(stepped, what),
            Event::Marked(what) => take!(marked, what),
            Event::Retired(what) => take!(retired, what),
            Event::Sent(what) => {
                self.at(Some(what.at));
                take!(sent, what);
            }
            Event::Received(what) => take!(received, what),
            Event::Abandoned(what) => take!(abandoned, what),
            Event::Scope(what) => {
                self.at(Some(what.entered));
                take!(scopes, what);
            }
            Event::Call(what) => {
                self.at(Some(what.entered));
                take!(calls, what);
            }
            Event::Gap(what) => take!(gaps, what),
            Event::Named(what) => take!(named, what),
            Event::Misuse(what) => take!(misuses, what),
            Event::DeviceSession(what) => take!(device_sessions, what),
            Event::Api(what) => {
                self.at(what.start);
                take!(apis, what);
            }
            Event::External(what) => take!(externals, what),
            Event::Operation(what) => {
                self.at(what.start);
                take!(operations, what);
            }
            Event::Graph(what) => take!(graphs, what),
            Event::GraphLaunch(what) => take!(graph_launches, what),
            Event::Flushed(what) => take!(flushes, what),
            Event::Dropped(what) => take!(drops, what),
            // A span says nothing about joins; what a newer core adds is only counted.
            Event::Parented(_) | Event::SpanLinked(_) => {}
            // What orders work, what the scheduler did, and what tells causes apart, says nothing
            // about joins either.
            Event::Synchronization(_)
            | Event::EventRecord(_)
            | Event::GraphNode(_)
            | Event::Scheduled(_)
            | Event::OsCall(_)
            | Event::SchedulerSession(_)
            | Event::RunQueue(_)
            | Event::Overhead(_)
            | Event::LaunchAttributes(_)
            | Event::Placement(_)
            | Event::StreamDescribed(_)
            | Event::DeviceDescribed(_)
            | Event::Collected(_) => {}
            Event::Extent(what) => take!(extents, what),
            _ => self.not_examined += 1,
        }
    }

    fn at(&mut self, at: Option<HostNanos>) {
        if let Some(at) = at {
            self.origin = Some(self.origin.map_or(at, |origin| origin.min(at)));
        }
    }
}
