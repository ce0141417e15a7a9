//! One process's evidence, in the order in which verdicts need it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::threads::Threads;
use crate::fault::{FaultCode, FaultFamily};
use crate::id::{CorrelationId, EpochId, HandoffId, HostNanos, LaunchEpoch};
use crate::observation::{
    ActivityKind, DeviceDescribed, Event, LaunchOrder, LinkKind, Mark, Operation, StreamKind,
    SynchronizationKind, Tenancy,
};
use crate::readiness::{CallSeen, OperationSeen, Proved, Prover, Readiness, Role};
use crate::row::{Binding, Row, RowCall};

type CallId = (u32, CorrelationId);
/// Context and stream.
pub(super) type StreamId = (u32, u32);

/// Something in a stream that is no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Marker {
    /// The stream, where it is known.
    pub(super) stream: Option<StreamId>,
    /// Whether it is an event's record, which waits for nothing but what is before it in its stream.
    pub(super) is_record: bool,
}

/// What the application said of an epoch's version.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Marks {
    pub(super) stepped: Option<HostNanos>,
    pub(super) ready: Option<HostNanos>,
    pub(super) expected: Option<HostNanos>,
    pub(super) batch_formed: Option<HostNanos>,
}

/// An operation's place among those of its device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub(super) start: HostNanos,
    pub(super) end: HostNanos,
    pub(super) row: usize,
    /// The latest end of those that began before it.
    pub(super) earlier_end: HostNanos,
}

/// A process.
pub(super) struct Scene<'a> {
    pub(super) rows: &'a [Row],
    /// Rows whose place a later one takes.
    pub(super) superseded: FxHashSet<usize>,
    pub(super) calls: Vec<CallSeen>,
    names: Vec<Option<Arc<str>>>,
    call_by_id: FxHashMap<CallId, Option<usize>>,
    pub(super) threads: Threads,
    proved: FxHashMap<usize, Proved>,
    marks: FxHashMap<LaunchEpoch, Marks>,
    /// Threads that declared, stepped or marked an epoch, each with its epoch.
    held: FxHashSet<(EpochId, u64)>,
    sent: FxHashMap<HandoffId, HostNanos>,
    /// By epoch and thread: when it was received and by which crossing.
    received: FxHashMap<(EpochId, u64), Vec<(HostNanos, HandoffId)>>,
    /// When a batch was merged, and of how many members. Its later steps are not formed again.
    merged: FxHashMap<LaunchEpoch, (HostNanos, usize)>,
    devices: FxHashMap<u32, DeviceDescribed>,
    channels: FxHashMap<(CallId, Option<u64>), u32>,
    pub(super) by_device: FxHashMap<u32, Vec<Ran>>,
    /// Rows by channel, in the order of their starts.
    pub(super) by_channel: FxHashMap<(u32, u32), Vec<usize>>,
    /// The device and channel of each stream, by context; `None` where it had several.
    pub(super) channel_of_stream: FxHashMap<StreamId, Option<(u32, u32)>>,
    /// Calls that put something into each stream that is no operation and may hold its channel, as a
    /// wait for an event, or the event's record, in order: when each was entered, and the latest return
    /// so far; without the stream where it is not known.
    markers: FxHashMap<Marker, Vec<(HostNanos, HostNanos)>>,
    non_blocking: FxHashSet<StreamId>,
    /// By context the waits of threads for all of it that succeeded: when each returned, in order, and
    /// the latest entry so far.
    context_waits: FxHashMap<u32, Vec<(HostNanos, HostNanos)>>,
    /// Of such a call it is known that it was, and not when.
    untimed_markers: bool,
    /// Launches that may overlap what is before them, by call.
    loose: FxHashSet<CallId>,
}

impl<'a> Scene<'a> {
    /// Of the observations and the rows of one process.
    pub(super) fn new(
        events: impl Iterator<Item = &'a Event> + Clone,
        rows: &'a [Row],
        wanted: impl Fn(usize) -> bool,
        epsilon_ns: u64,
        since: Option<HostNanos>,
    ) -> Self {
        let mut scene = Self {
            rows,
            superseded: superseded(rows, &wanted),
            calls: Vec::new(),
            names: Vec::new(),
            call_by_id: FxHashMap::default(),
            threads: Threads::gather(events.clone()),
            proved: FxHashMap::default(),
            marks: FxHashMap::default(),
            held: FxHashSet::default(),
            sent: FxHashMap::default(),
            received: FxHashMap::default(),
            merged: FxHashMap::default(),
            devices: FxHashMap::default(),
            channels: FxHashMap::default(),
            by_device: FxHashMap::default(),
            by_channel: FxHashMap::default(),
            channel_of_stream: FxHashMap::default(),
            markers: FxHashMap::default(),
            non_blocking: FxHashSet::default(),
            context_waits: FxHashMap::default(),
            untimed_markers: false,
            loose: FxHashSet::default(),
        };
        scene.take_calls(events.clone());
        for event in events.clone() {
            scene.take(event);
        }
        for list in scene.received.values_mut() {
            list.sort_unstable_by_key(|(at, id)| (*at, id.0));
        }
        scene.take_markers(events.clone());
        let operations = scene.operations(&wanted);
        let by_id = &scene.call_by_id;
        let call_of = |session, correlation| by_id.get(&(session, correlation)).copied().flatten();
        let lost = scene.lost(&wanted);
        let prover = Prover::new(
            events,
            &scene.calls,
            call_of,
            &operations,
            &lost,
            epsilon_ns,
            since,
        );
        let proved = prover.prove();
        let rows = operations.iter().map(|of| of.row);
        scene.proved = rows.zip(proved).collect();
        scene.index(&operations);
        scene
    }

    /// The outermost calls, each once, however many records there are of it.
    fn take_calls(&mut self, events: impl Iterator<Item = &'a Event>) {
        struct Seen<'e> {
            id: CallId,
            tid: u64,
            enter: HostNanos,
            exit: HostNanos,
            name: Option<&'e Arc<str>>,
            succeeded: bool,
        }
        let mut all: Vec<Seen<'a>> = Vec::new();
        for event in events {
            let seen = match event {
                Event::Api(of) => (of.start.zip(of.end)).map(|(enter, exit)| Seen {
                    id: (of.session, of.correlation),
                    tid: of.tid,
                    enter,
                    exit,
                    name: of.api.name.as_ref(),
                    succeeded: of.result == 0,
                }),
                Event::Call(of) => of.exited.map(|exit| Seen {
                    // The callback does not say its session: there is one at a time.
                    id: (0, of.correlation),
                    tid: of.thread.tid,
                    enter: of.entered,
                    exit,
                    name: of.api.name.as_ref(),
                    succeeded: of.result == 0,
                }),
                _ => None,
            };
            all.extend(seen.filter(|of| of.enter <= of.exit));
        }
        all.sort_by_key(|of| (of.tid, of.enter, std::cmp::Reverse(of.exit)));
        let mut outer: Option<usize> = None;
        for seen in all {
            let inside = outer.filter(|&at| {
                let outer = &self.calls[at];
                // The callback's record and CUPTI's of one call differ by a little.
                let same = seen.id.1 == outer.correlation && seen.enter <= outer.exit;
                outer.tid == seen.tid && (seen.exit <= outer.exit || same)
            });
            let number = match inside {
                Some(at) => {
                    self.calls[at].exit = self.calls[at].exit.max(seen.exit);
                    if self.names[at].is_none() && self.calls[at].correlation == seen.id.1 {
                        self.names[at] = seen.name.cloned();
                        self.calls[at].role = Role::of(seen.name.map(|name| &**name));
                    }
                    at
                }
                None => {
                    self.calls.push(CallSeen {
                        correlation: seen.id.1,
                        tid: seen.tid,
                        enter: seen.enter,
                        exit: seen.exit,
                        role: Role::of(seen.name.map(|name| &**name)),
                        succeeded: seen.succeeded,
                    });
                    self.names.push(seen.name.cloned());
                    self.calls.len() - 1
                }
            };
            outer = Some(number);
            let known = self.call_by_id.entry(seen.id).or_insert(Some(number));
            if *known != Some(number) {
                // One id, two calls: neither is meant for sure.
                *known = None;
            }
        }
        // What only the callback saw is of whichever session asks.
        let callbacks: Vec<(CallId, Option<usize>)> = self
            .call_by_id
            .iter()
            .filter(|((session, _), _)| *session == 0)
            .map(|(id, call)| (*id, *call))
            .collect();
        for ((_, correlation), call) in callbacks {
            self.call_by_id.entry((1, correlation)).or_insert(call);
        }
        for (number, call) in self.calls.iter().enumerate() {
            self.threads.of(call.tid).calls.push(number);
        }
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Declared(of) => _ = self.held.insert((of.epoch.id, of.thread.tid)),
            Event::Stepped(of) => {
                self.held.insert((of.epoch.id, of.thread.tid));
                self.marks.entry(of.epoch).or_default().stepped = Some(of.at);
            }
            Event::Marked(of) => {
                self.held.insert((of.epoch.id, of.thread.tid));
                let marks = self.marks.entry(of.epoch).or_default();
                match of.mark {
                    Mark::Ready => marks.ready = Some(of.at),
                    Mark::Expected => marks.expected = Some(of.at),
                    Mark::BatchFormed => marks.batch_formed = Some(of.at),
                    _ => {}
                }
            }
            Event::Linked(of) if of.kind == LinkKind::Merge => {
                let merged = self.merged.entry(of.epoch).or_insert((of.at, 0));
                merged.0 = merged.0.max(of.at);
                merged.1 += 1;
            }
            Event::Sent(of) => _ = self.sent.insert(of.handoff.id, of.at),
            Event::Received(of) => self
                .received
                .entry((of.handoff.epoch.id, of.thread.tid))
                .or_default()
                .push((of.at, of.handoff.id)),
            Event::DeviceDescribed(of) => _ = self.devices.insert(of.device, of.clone()),
            Event::Placement(of) => {
                let key = ((of.session, of.correlation), of.graph_node);
                self.channels.insert(key, of.channel);
            }
            Event::StreamDescribed(of) if of.kind == StreamKind::NonBlocking => {
                self.non_blocking.insert((of.context, of.stream));
            }
            Event::LaunchAttributes(of) if of.order != LaunchOrder::Strict => {
                self.loose.insert((of.session, of.correlation));
            }
            _ => {}
        }
    }

    /// What calls put into streams that is no operation.
    fn take_markers(&mut self, events: impl Iterator<Item = &'a Event>) {
        let mut streams: FxHashMap<usize, StreamId> = FxHashMap::default();
        for event in events {
            let (session, correlation, stream) = match event {
                Event::Synchronization(of) if of.kind == SynchronizationKind::StreamWait => {
                    (of.session, of.correlation, of.context.zip(of.stream))
                }
                Event::Synchronization(of) if of.kind == SynchronizationKind::Context => {
                    let call = self.call(of.session, of.correlation);
                    let call = call.map(|at| &self.calls[at]).filter(|of| of.succeeded);
                    if let (Some(call), Some(context)) = (call, of.context) {
                        let list = self.context_waits.entry(context).or_default();
                        list.push((call.exit, call.enter));
                    }
                    continue;
                }
                Event::EventRecord(of) => (of.session, of.correlation, of.context.zip(of.stream)),
                _ => continue,
            };
            match self.call(session, correlation) {
                Some(call) => streams.extend(stream.map(|stream| (call, stream))),
                None => self.untimed_markers = true,
            }
        }
        for (number, call) in self.calls.iter().enumerate() {
            if call.role.may_hold_channel() {
                let marker = Marker {
                    stream: streams.get(&number).copied(),
                    is_record: call.role == Role::EventRecord,
                };
                let list = self.markers.entry(marker).or_default();
                list.push((call.enter, call.exit));
            }
        }
        let lists = self.markers.values_mut();
        for list in lists.chain(self.context_waits.values_mut()) {
            list.sort_unstable();
            let mut latest = HostNanos(0);
            for (_, other) in list {
                latest = latest.max(*other);
                *other = latest;
            }
        }
    }

    fn operations(&self, wanted: &impl Fn(usize) -> bool) -> Vec<OperationSeen> {
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter(|(at, _)| wanted(*at) && !self.superseded.contains(at));
        rows.filter_map(|(at, row)| {
            let operation = row.operation.as_ref()?;
            let broken = is_broken(row);
            Some(OperationSeen {
                row: at,
                session: operation.session,
                correlation: operation.correlation,
                kind: operation.kind,
                device: operation.device,
                context: operation.context,
                stream: operation.stream,
                start: operation.start.filter(|_| !broken),
                end: operation.end.filter(|_| !broken),
                call: row.stages.api_enter.at().zip(row.stages.api_exit.at()),
                role: row
                    .call
                    .as_ref()
                    .map_or(Role::Unknown, |call| self.role_of(call, operation)),
                graph: operation.graph,
                node: operation.graph_node,
                exec: row
                    .graph
                    .as_ref()
                    .and_then(|graph| Some((graph.exec?, graph.generation))),
            })
        })
        .collect()
    }

    /// When calls were made whose operations have no record, and nothing says why.
    fn lost(&self, wanted: &impl Fn(usize) -> bool) -> Vec<(HostNanos, HostNanos)> {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(at, row)| {
            let lost = row.operation.is_none() && row.faults.contains(&FaultCode::L03);
            lost && wanted(*at) && !self.superseded.contains(at)
        })
        .filter_map(|(_, row)| row.stages.api_enter.at().zip(row.stages.api_exit.at()))
        .collect()
    }

    /// The role of the outermost call: a runtime function that launches is named there.
    fn role_of(&self, call: &RowCall, operation: &Operation) -> Role {
        let own = Role::of(call.api.name.as_deref());
        let outer = self
            .call(operation.session, call.correlation.wire())
            .map_or(Role::Unknown, |at| self.calls[at].role);
        match (own, outer) {
            // The one that may loosen the order is believed.
            (Role::LaunchEx, _) | (_, Role::LaunchEx) => Role::LaunchEx,
            (Role::Unknown, of) | (of, _) => of,
        }
    }

    fn index(&mut self, operations: &[OperationSeen]) {
        for operation in operations {
            let (Some(start), Some(end)) = (operation.start, operation.end) else {
                continue;
            };
            self.by_device
                .entry(operation.device)
                .or_default()
                .push(Ran {
                    start,
                    end,
                    row: operation.row,
                    earlier_end: HostNanos(0),
                });
            if let Some(channel) = self.channel(operation.row) {
                let key = (operation.device, channel);
                self.by_channel.entry(key).or_default().push(operation.row);
                let stream = (operation.context, operation.stream);
                let known = self.channel_of_stream.entry(stream).or_insert(Some(key));
                *known = known.filter(|known| *known == key);
            }
        }
        for list in self.by_device.values_mut() {
            list.sort_by_key(|of| (of.start, of.end, of.row));
            let mut latest = HostNanos(0);
            for of in list {
                of.earlier_end = latest;
                latest = latest.max(of.end);
            }
        }
        let rows = self.rows;
        for list in self.by_channel.values_mut() {
            list.sort_by_key(|&row| rows[row].operation.as_ref().and_then(|of| of.start));
        }
    }

    pub(super) fn call(&self, session: u32, correlation: CorrelationId) -> Option<usize> {
        self.call_by_id
            .get(&(session, correlation))
            .copied()
            .flatten()
    }

    pub(super) fn name_of_call(&self, at: usize) -> Option<&Arc<str>> {
        self.names[at].as_ref()
    }

    pub(super) fn readiness(&self, row: usize) -> Option<Readiness> {
        self.proved.get(&row).map(|of| of.readiness)
    }

    /// Rows that a row had to wait for: those that ended last.
    pub(super) fn behind(&self, row: usize) -> impl Iterator<Item = usize> {
        let proved = self.proved.get(&row);
        proved.into_iter().flat_map(|of| of.behind).flatten()
    }

    /// Whether an event that a row had to wait for may have happened later than is proved.
    pub(super) fn is_untimed(&self, row: usize) -> bool {
        self.proved.get(&row).is_some_and(|of| of.untimed)
    }

    /// Whether it had to wait for more than those.
    pub(super) fn behind_more(&self, row: usize) -> bool {
        self.proved.get(&row).is_some_and(|of| of.behind_more)
    }

    /// What the application said of a row's epoch.
    pub(super) fn marks_of(&self, row: &Row) -> Marks {
        match row.binding {
            Binding::Bound(epoch) => {
                let mut marks = self.marks(epoch);
                // The row may have been given before the mark came.
                marks.ready = row.stages.ready.at().or(marks.ready);
                marks
            }
            _ => Marks::default(),
        }
    }

    fn marks(&self, epoch: LaunchEpoch) -> Marks {
        let mut marks = self.marks.get(&epoch).copied().unwrap_or_default();
        if marks.batch_formed.is_none()
            && let Some(&(at, members)) = self.merged.get(&epoch)
            && members > 1
        {
            marks.batch_formed = Some(at);
        }
        marks
    }

    /// Whether a thread declared, stepped or marked an epoch.
    pub(super) fn was_at(&self, epoch: LaunchEpoch, tid: u64) -> bool {
        self.held.contains(&(epoch.id, tid))
    }

    /// When an epoch was handed to this thread last before then, and when it was taken.
    pub(super) fn handoff(
        &self,
        epoch: EpochId,
        tid: u64,
        before: HostNanos,
    ) -> Option<(HostNanos, HostNanos)> {
        let list = self.received.get(&(epoch, tid))?;
        let at = list.partition_point(|(at, _)| *at <= before);
        let (received, id) = list.get(at.checked_sub(1)?)?;
        Some((*self.sent.get(id)?, *received))
    }

    pub(super) fn channel(&self, row: usize) -> Option<u32> {
        let of = self.rows[row].operation.as_ref()?;
        let key = ((of.session, of.correlation), of.graph_node);
        self.channels.get(&key).copied()
    }

    /// For each stream when all calls had returned that were entered before then and put something into
    /// it that is no operation and may hold its channel. `None` if that is not known of all of them.
    pub(super) fn last_markers(
        &self,
        before: HostNanos,
    ) -> Option<impl Iterator<Item = (Marker, HostNanos)>> {
        let last = self.markers.iter().filter_map(move |(marker, list)| {
            let at = list.partition_point(|(enter, _)| *enter < before);
            Some((*marker, list.get(at.checked_sub(1)?)?.1))
        });
        (!self.untimed_markers).then_some(last)
    }

    /// Whether a stream is known to be ordered with no other.
    pub(super) fn is_non_blocking(&self, stream: StreamId) -> bool {
        self.non_blocking.contains(&stream)
    }

    /// Until when all that was put into a context's streams is known to be over, because a thread had
    /// waited for it before then.
    pub(super) fn over_until(&self, context: u32, before: HostNanos) -> HostNanos {
        let list = self.context_waits.get(&context).map_or(&[][..], |of| of);
        let at = list.partition_point(|(exit, _)| *exit <= before);
        at.checked_sub(1).map_or(HostNanos(0), |at| list[at].1)
    }

    /// What is known of a device.
    pub(super) fn described(&self, device: u32) -> Option<&DeviceDescribed> {
        self.devices.get(&device)
    }

    pub(super) fn is_exclusive(&self, device: u32) -> bool {
        let of = self.devices.get(&device).and_then(|of| of.tenancy);
        of == Some(Tenancy::Exclusive)
    }

    /// Whether copies of one direction exclude each other: one engine, or one for each direction.
    pub(super) fn copies_exclude(&self, device: u32) -> bool {
        let engines = self.devices.get(&device).and_then(|of| of.copy_engines);
        engines.is_some_and(|engines| (1..=2).contains(&engines))
    }

    pub(super) fn is_loose(&self, of: &Operation) -> bool {
        self.loose.contains(&(of.session, of.correlation))
    }

    /// Whether anything else ran on the device while this operation did.
    pub(super) fn overlaps(
        &self,
        device: u32,
        row: usize,
        start: HostNanos,
        end: HostNanos,
    ) -> bool {
        let Some(list) = self.by_device.get(&device) else {
            return false;
        };
        let first = list.partition_point(|of| of.start < start);
        let Some(at) = list[first..]
            .iter()
            .take_while(|of| of.start == start)
            .position(|of| of.row == row)
        else {
            return true;
        };
        let (at, next) = (first + at, first + at + 1);
        list[at].earlier_end > start || list.get(next).is_some_and(|of| of.start < end)
    }
}

/// Whether a row's times cannot be.
pub(super) fn is_broken(row: &Row) -> bool {
    let fault = row
        .faults
        .iter()
        .any(|code| code.family() == FaultFamily::Time);
    let negative = row
        .operation
        .as_ref()
        .is_some_and(|of| matches!((of.start, of.end), (Some(start), Some(end)) if end < start));
    fault || negative
}

/// Rows that a later row takes the place of: that of a call said to have no operation, or of an
/// operation said to have no call.
fn superseded(rows: &[Row], wanted: &impl Fn(usize) -> bool) -> FxHashSet<usize> {
    type OperationId = (u32, u32, Option<u64>, Option<HostNanos>, ActivityKind);
    let id = |of: &Operation| -> OperationId {
        (
            of.session,
            of.correlation.0,
            of.graph_node,
            of.start,
            of.kind,
        )
    };
    let mut gone = FxHashSet::default();
    let mut operations: FxHashMap<OperationId, usize> = FxHashMap::default();
    let mut calls: FxHashMap<(u32, u64), usize> = FxHashMap::default();
    for (at, row) in rows.iter().enumerate().filter(|(at, _)| wanted(*at)) {
        if row.supersedes {
            if let Some(of) = &row.operation {
                gone.extend(operations.remove(&id(of)));
            }
            if let Some(call) = &row.call {
                gone.extend(calls.remove(&(call.session, call.correlation.0)));
            }
        }
        match (&row.call, &row.operation) {
            (None, Some(of)) => _ = operations.insert(id(of), at),
            (Some(call), None) => _ = calls.insert((call.session, call.correlation.0), at),
            _ => {}
        }
    }
    gone
}
