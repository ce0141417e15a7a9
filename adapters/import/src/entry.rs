//! A record as it is kept and written to temporary files: 112 bytes, whatever it is of.

use bytemuck::{Pod, Zeroable};
use lineage_core::id::{CorrelationId, HostNanos, ProcessOrdinal};
use lineage_core::observation::{
    ActivityKind, ApiId, ApiRecord, Event, EventRecord, GraphNode, Operation, OperationsDue,
    OsCall, Scheduled, SwitchedOff, Synchronization, SynchronizationKind,
};

use crate::footprint;
use crate::function::Function;
use crate::given;
use crate::names::NameId;
use std::sync::Arc;

/// The number of every import's session: a recording is one.
pub(crate) const SESSION: u32 = 1;

/// No name.
const NO_NAME: u32 = u32::MAX;

/// What an entry is of, in the order of those with one id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Sort {
    Api,
    Synchronization,
    EventRecord,
    Kernel,
    Copy,
    Set,
    Graph,
    GraphNode,
    Scheduled,
    OsCall,
    Range,
}

const SORTS: [Sort; 11] = [
    Sort::Api,
    Sort::Synchronization,
    Sort::EventRecord,
    Sort::Kernel,
    Sort::Copy,
    Sort::Set,
    Sort::Graph,
    Sort::GraphNode,
    Sort::Scheduled,
    Sort::OsCall,
    Sort::Range,
];

/// Which of the optional fields an entry has.
mod has {
    pub(super) const START: u32 = 1 << 0;
    pub(super) const END: u32 = 1 << 1;
    /// The first of the wide fields; the others follow.
    pub(super) const WIDE: u32 = 1 << 2;
    /// The first of the narrow fields.
    pub(super) const NARROW: u32 = 1 << 8;
}

/// How the reason for which a thread was taken off its processor is kept.
const PREEMPTED: u32 = 1;
const BLOCKED: u32 = 2;

/// A record. What `wide` and `narrow` hold depends on what it is of.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Entry {
    pub(crate) process: u32,
    /// The correlation id; 0 if there is none.
    pub(crate) wire: u32,
    /// Its place among the ids of its process: the id, or how far it lies behind the first where
    /// they wrap.
    pub(crate) rank: u32,
    /// What it is of in the high half, which of the optional fields it has in the low one.
    sort_and_has: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    wide: [u64; 4],
    narrow: [u32; 10],
    name: u32,
    pad: u32,
}

impl Entry {
    fn new(process: ProcessOrdinal, wire: u32, sort: Sort) -> Self {
        let mut entry = Self::zeroed();
        (entry.process, entry.wire, entry.rank) = (process.0, wire, wire);
        (entry.sort_and_has, entry.name) = ((sort as u32) << 16, NO_NAME);
        entry
    }

    fn times(mut self, start: Option<u64>, end: Option<u64>) -> Self {
        for (at, bit, into) in [
            (start, has::START, &mut self.start),
            (end, has::END, &mut self.end),
        ] {
            if let Some(at) = at {
                *into = at;
                self.sort_and_has |= bit;
            }
        }
        self
    }

    fn wide(mut self, values: [Option<u64>; 4]) -> Self {
        for (number, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                self.wide[number] = value;
                self.sort_and_has |= has::WIDE << number;
            }
        }
        self
    }

    fn narrow(mut self, values: [Option<u32>; 4]) -> Self {
        for (number, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                self.narrow[number] = value;
                self.sort_and_has |= has::NARROW << number;
            }
        }
        self
    }

    fn named(mut self, name: Option<NameId>) -> Self {
        self.name = name.map_or(NO_NAME, |name| name.0);
        self
    }

    pub(crate) fn api(call: &given::ApiCall, wire: u32) -> Self {
        Self::new(call.process, wire, Sort::Api)
            .times(call.start_ns, call.end_ns)
            .wide([Some(call.tid), None, None, None])
            .narrow([
                Some(call.result),
                call.kernel.map(|name| name.0),
                None,
                None,
            ])
            .named(Some(call.name))
    }

    pub(crate) fn activity(activity: &given::Activity, wire: u32) -> Self {
        let sort = match activity.kind {
            ActivityKind::Copy => Sort::Copy,
            ActivityKind::Set => Sort::Set,
            ActivityKind::Graph => Sort::Graph,
            _ => Sort::Kernel,
        };
        let given::Activity {
            device,
            context,
            stream,
            graph,
            grid,
            block,
            ..
        } = *activity;
        let kept = match sort {
            Sort::Kernel => activity.footprint.and_then(footprint::pack),
            _ => Some(activity.bytes),
        };
        let mut entry = Self::new(activity.process, wire, sort)
            .times(activity.start_ns, activity.end_ns)
            .wide([
                activity.queued_ns,
                activity.submitted_ns,
                activity.graph_node,
                kept,
            ])
            .narrow([Some(device), Some(context), Some(stream), graph])
            .named(activity.name);
        entry.narrow[4..7].copy_from_slice(&grid);
        entry.narrow[7..].copy_from_slice(&block);
        entry.pad = activity.copies;
        entry
    }

    pub(crate) fn synchronization(wait: &given::Synchronization, wire: u32) -> Self {
        let mut entry = Self::new(wait.process, wire, Sort::Synchronization)
            .times(wait.start_ns, wait.end_ns)
            .wide([wait.event_sync, wait.recorded_by, None, None])
            .narrow([wait.context, wait.stream, wait.event, None]);
        entry.narrow[4] = match wait.kind {
            SynchronizationKind::Event => 1,
            SynchronizationKind::StreamWait => 2,
            SynchronizationKind::Stream => 3,
            SynchronizationKind::Context => 4,
            _ => 0,
        };
        entry
    }

    pub(crate) fn event_record(record: &given::EventRecord, wire: u32) -> Self {
        Self::new(record.process, wire, Sort::EventRecord)
            .times(record.device_ns, None)
            .wide([record.event_sync, None, None, None])
            .narrow([record.context, record.stream, record.event, None])
    }

    pub(crate) fn graph_node(node: &given::GraphNode) -> Self {
        Self::new(node.process, 0, Sort::GraphNode)
            .times(Some(node.at_ns), None)
            .wide([Some(node.tid), Some(node.node), node.original, None])
    }

    pub(crate) fn scheduled(scheduled: &given::Scheduled) -> Self {
        let process = scheduled.process.unwrap_or_default();
        Self::new(process, 0, Sort::Scheduled)
            .times(Some(scheduled.at_ns), None)
            .wide([Some(scheduled.tid), None, None, None])
            .narrow([
                scheduled.cpu,
                scheduled.state,
                Some(u32::from(scheduled.running)),
                match scheduled.off {
                    Some(SwitchedOff::Preempted) => Some(PREEMPTED),
                    Some(SwitchedOff::Blocked) => Some(BLOCKED),
                    _ => None,
                },
            ])
    }

    pub(crate) fn os_call(call: &given::OsCall) -> Self {
        Self::new(call.process, 0, Sort::OsCall)
            .times(Some(call.start_ns), call.end_ns)
            .wide([Some(call.tid), None, None, None])
            .named(Some(call.name))
    }

    pub(crate) fn range(range: &given::Range) -> Self {
        Self::new(range.process, 0, Sort::Range)
            .times(Some(range.start_ns), range.end_ns)
            .wide([Some(range.tid), None, None, None])
            .narrow([range.request.map(|name| name.0), None, None, None])
            .named(Some(range.text))
    }

    /// The same with all its times later by so much.
    pub(crate) fn later_by(mut self, base_ns: u64) -> Self {
        let later = |at: u64| at.saturating_add(base_ns);
        (self.start, self.end) = (later(self.start), later(self.end));
        if self.is_operation() {
            // Queued and submitted.
            (self.wide[0], self.wide[1]) = (later(self.wide[0]), later(self.wide[1]));
        }
        self
    }

    pub(crate) fn sort(&self) -> Sort {
        SORTS[((self.sort_and_has >> 16) as usize).min(SORTS.len() - 1)]
    }

    pub(crate) fn process(&self) -> ProcessOrdinal {
        ProcessOrdinal(self.process)
    }

    pub(crate) fn is_call(&self) -> bool {
        self.sort() == Sort::Api
    }

    pub(crate) fn is_operation(&self) -> bool {
        matches!(
            self.sort(),
            Sort::Kernel | Sort::Copy | Sort::Set | Sort::Graph
        )
    }

    pub(crate) fn start(&self) -> Option<u64> {
        (self.sort_and_has & has::START != 0).then_some(self.start)
    }

    pub(crate) fn end(&self) -> Option<u64> {
        (self.sort_and_has & has::END != 0).then_some(self.end)
    }

    /// The thread, of an entry that has one.
    pub(crate) fn tid(&self) -> u64 {
        self.wide[0]
    }

    pub(crate) fn name(&self) -> Option<NameId> {
        (self.name != NO_NAME).then_some(NameId(self.name))
    }

    /// The kernel that a launch names.
    pub(crate) fn kernel(&self) -> Option<NameId> {
        self.narrow_of(1).map(NameId)
    }

    /// The request that a range belongs to.
    pub(crate) fn request(&self) -> Option<NameId> {
        self.narrow_of(0).map(NameId)
    }

    /// A call's result code.
    pub(crate) fn result(&self) -> u32 {
        self.narrow[0]
    }

    fn wide_of(&self, number: usize) -> Option<u64> {
        (self.sort_and_has & (has::WIDE << number) != 0).then_some(self.wide[number])
    }

    fn narrow_of(&self, number: usize) -> Option<u32> {
        (self.sort_and_has & (has::NARROW << number) != 0).then_some(self.narrow[number])
    }

    /// The observation of a call.
    pub(crate) fn call_event(
        &self,
        function: Function,
        due: OperationsDue,
        name: Option<Arc<str>>,
    ) -> Event {
        ApiRecord {
            session: SESSION,
            api: ApiId {
                domain: function.domain,
                // A recording names functions and does not number them.
                cbid: 0,
                name,
            },
            correlation: CorrelationId(self.wire),
            tid: self.tid(),
            start: self.start().map(HostNanos),
            end: self.end().map(HostNanos),
            result: self.result(),
            due,
        }
        .into()
    }

    /// The observation of anything but a call and a range.
    pub(crate) fn event(&self, name: Option<Arc<str>>) -> Option<Event> {
        let (start, end) = (self.start().map(HostNanos), self.end().map(HostNanos));
        let correlation = CorrelationId(self.wire);
        // A kernel has no bytes: in their place is what it takes.
        let (bytes, footprint) = match self.sort() {
            Sort::Kernel => (0, self.wide_of(3).map(footprint::unpack)),
            _ => (self.wide[3], None),
        };
        let operation = |kind| Operation {
            session: SESSION,
            kind,
            correlation,
            device: self.narrow[0],
            context: self.narrow[1],
            stream: self.narrow[2],
            queued: self.wide_of(0).map(HostNanos),
            submitted: self.wide_of(1).map(HostNanos),
            start,
            end,
            name: name.clone(),
            graph_node: self.wide_of(2),
            graph: self.narrow_of(3),
            bytes,
            copies: self.pad,
            grid: [self.narrow[4], self.narrow[5], self.narrow[6]],
            block: [self.narrow[7], self.narrow[8], self.narrow[9]],
            footprint,
        };
        Some(match self.sort() {
            Sort::Kernel => operation(ActivityKind::Kernel).into(),
            Sort::Copy => operation(ActivityKind::Copy).into(),
            Sort::Set => operation(ActivityKind::Set).into(),
            Sort::Graph => operation(ActivityKind::Graph).into(),
            Sort::Synchronization => Synchronization {
                session: SESSION,
                correlation,
                kind: match self.narrow[4] {
                    1 => SynchronizationKind::Event,
                    2 => SynchronizationKind::StreamWait,
                    3 => SynchronizationKind::Stream,
                    4 => SynchronizationKind::Context,
                    _ => SynchronizationKind::Unknown,
                },
                start,
                end,
                context: self.narrow_of(0),
                stream: self.narrow_of(1),
                event: self.narrow_of(2),
                event_sync: self.wide_of(0),
                recorded_by: self
                    .wide_of(1)
                    .and_then(|id| u32::try_from(id).ok())
                    .map(CorrelationId),
            }
            .into(),
            Sort::EventRecord => EventRecord {
                session: SESSION,
                correlation,
                context: self.narrow_of(0),
                stream: self.narrow_of(1),
                event: self.narrow_of(2),
                event_sync: self.wide_of(0),
                device: start,
            }
            .into(),
            Sort::GraphNode => GraphNode {
                tid: self.tid(),
                at: start?,
                node: self.wide[1],
                original: self.wide_of(2),
            }
            .into(),
            Sort::Scheduled => Scheduled {
                tid: self.tid(),
                at: start?,
                cpu: self.narrow_of(0),
                running: self.narrow[2] != 0,
                off: match self.narrow_of(3) {
                    Some(PREEMPTED) => Some(SwitchedOff::Preempted),
                    Some(BLOCKED) => Some(SwitchedOff::Blocked),
                    _ => None,
                },
                state: self.narrow_of(1),
            }
            .into(),
            Sort::OsCall => OsCall {
                tid: self.tid(),
                name: name?,
                start: start?,
                end,
            }
            .into(),
            Sort::Api | Sort::Range => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_112_bytes() {
        assert_eq!(size_of::<Entry>(), 112);
    }
}
