//! The fold over one process's calls, in the order in which they began.

use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::Graphs;
use super::stream::{Effect, Frontier, KEPT, Stream};
use super::{Dependency, DependencyKind, Partial, Partials, Readiness, Role};
use crate::id::{CorrelationId, HostNanos};
use crate::observation::{
    ActivityKind, Event, LaunchOrder, StreamKind, Synchronization, SynchronizationKind,
};

/// A call, the outermost of those that are nested.
#[derive(Debug, Clone)]
pub(crate) struct CallSeen {
    pub(crate) correlation: CorrelationId,
    pub(crate) tid: u64,
    pub(crate) enter: HostNanos,
    pub(crate) exit: HostNanos,
    pub(crate) role: Role,
    pub(crate) succeeded: bool,
}

/// An operation, as far as readiness needs it.
#[derive(Debug, Clone)]
pub(crate) struct OperationSeen {
    /// Number of its row.
    pub(crate) row: usize,
    pub(crate) session: u32,
    pub(crate) correlation: CorrelationId,
    pub(crate) kind: ActivityKind,
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) start: Option<HostNanos>,
    pub(crate) end: Option<HostNanos>,
    /// Its call.
    pub(crate) call: Option<(HostNanos, HostNanos)>,
    pub(crate) role: Role,
    pub(crate) graph: Option<u32>,
    pub(crate) node: Option<u64>,
    /// The executable graph and which of those of its id.
    pub(crate) exec: Option<(u32, u32)>,
}

pub(super) type StreamId = (u32, u32, u32);
type CallId = (u32, CorrelationId);
pub(super) type Made = FxHashMap<(u32, u32), HostNanos>;

impl OperationSeen {
    pub(super) fn stream_id(&self) -> StreamId {
        (self.device, self.context, self.stream)
    }

    /// Whether it is a node of a graph, and not the whole of one.
    pub(super) fn is_node(&self) -> bool {
        let in_graph =
            self.graph.is_some() || self.node.is_some() || self.role == Role::GraphLaunch;
        in_graph && self.kind != ActivityKind::Graph
    }
}

/// Something that a call did to streams.
enum Deed<'a> {
    /// One operation outside of a graph.
    Work(usize),
    /// The operations of one graph launch.
    Graph(Vec<usize>),
    Wait(&'a Synchronization),
    Record(CallId),
    Clean(Option<u32>, Option<u32>),
    Disturb(Partial),
}

struct Item<'a> {
    enter: HostNanos,
    exit: HostNanos,
    deed: Deed<'a>,
}

/// What was recorded on which stream.
struct Recorded {
    stream: Option<u32>,
    context: Option<u32>,
    event_sync: Option<u64>,
    device: Option<HostNanos>,
}

/// What is proved of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proved {
    pub(crate) readiness: Readiness,
    /// Rows that it had to wait for: those that ended last.
    pub(crate) behind: [Option<usize>; KEPT],
    /// It had to wait for more than those.
    pub(crate) behind_more: bool,
    /// An event that it had to wait for may have happened later than is proved.
    pub(crate) untimed: bool,
}

/// Proves what each operation waited for.
pub(crate) struct Prover<'a, 'o> {
    pub(super) operations: &'o [OperationSeen],
    /// Error of the device's clock against the host's.
    epsilon_ns: u64,
    items: Vec<Item<'a>>,
    pub(super) graphs: Graphs,
    attributes: FxHashMap<CallId, LaunchOrder>,
    kinds: FxHashMap<(u32, u32), StreamKind>,
    /// When a stream was made, by context and stream.
    pub(super) made: Made,
    recorded: FxHashMap<CallId, Recorded>,
    /// Streams with operations, by context.
    used: FxHashMap<u32, FxHashSet<StreamId>>,
    /// Missing from every set.
    everywhere: Partials,
    /// What was before is not at hand, though it was recorded.
    pub(super) since: Option<HostNanos>,
}

impl<'a, 'o> Prover<'a, 'o> {
    /// Of these observations of one process, its calls (outermost only, in any order), its operations,
    /// when calls were made whose operations are lost, the error of the device's clock, and since when
    /// what was recorded is at hand, where that is not all.
    pub(crate) fn new(
        events: impl Iterator<Item = &'a Event> + Clone,
        calls: &[CallSeen],
        call_of: impl Fn(u32, CorrelationId) -> Option<usize>,
        operations: &'o [OperationSeen],
        lost: &[(HostNanos, HostNanos)],
        epsilon_ns: u64,
        since: Option<HostNanos>,
    ) -> Self {
        let mut prover = Self {
            operations,
            epsilon_ns,
            items: Vec::new(),
            graphs: Graphs::of(events.clone()),
            attributes: FxHashMap::default(),
            kinds: FxHashMap::default(),
            made: Made::default(),
            recorded: FxHashMap::default(),
            used: FxHashMap::default(),
            everywhere: Partials::of(Partial::OrderCallsNotCollected),
            since,
        };
        let mut waits_seen: FxHashSet<usize> = FxHashSet::default();
        for event in events {
            prover.take(event, calls, &call_of, &mut waits_seen);
        }
        prover.take_operations();
        // Before a part others may have been used.
        let several = since.is_some() || prover.used.values().any(|streams| streams.len() > 1);
        for (number, call) in calls.iter().enumerate() {
            let reason = match call.role {
                Role::StreamWait if !waits_seen.contains(&number) => Partial::EventUnknown,
                Role::Semaphore => Partial::Semaphore,
                Role::HostFunction => Partial::HostFunction,
                Role::PooledAllocation if several => Partial::PooledAllocation,
                Role::HiddenWork => Partial::HiddenWork,
                Role::GreenContext => Partial::GreenContext,
                Role::Unknown => Partial::UnknownFunction,
                _ => continue,
            };
            prover.items.push(Item {
                enter: call.enter,
                exit: call.exit,
                deed: Deed::Disturb(reason),
            });
        }
        prover.items.extend(lost.iter().map(|&(enter, exit)| Item {
            enter,
            exit,
            deed: Deed::Disturb(Partial::RecordsLost),
        }));
        prover.items.extend(since.map(|at| Item {
            enter: at,
            exit: at,
            deed: Deed::Disturb(Partial::BeforePart),
        }));
        prover.items.sort_by_key(|item| (item.enter, item.exit));
        prover
    }

    fn take(
        &mut self,
        event: &'a Event,
        calls: &[CallSeen],
        call_of: &impl Fn(u32, CorrelationId) -> Option<usize>,
        waits_seen: &mut FxHashSet<usize>,
    ) {
        match event {
            Event::Collected(collected) if collected.order_calls => {
                self.everywhere = Partials::NONE;
                self.items.push(Item {
                    enter: collected.at,
                    exit: collected.at,
                    deed: Deed::Disturb(Partial::OrderCallsNotCollected),
                });
            }
            Event::Dropped(_) | Event::Gap(_) => self.everywhere.add(Partial::RecordsLost),
            Event::LaunchAttributes(of) => {
                self.attributes
                    .insert((of.session, of.correlation), of.order);
            }
            Event::StreamDescribed(of) => {
                let key = (of.context, of.stream);
                self.kinds.insert(key, of.kind);
                if let Some(at) = of.made {
                    self.made.insert(key, at);
                }
            }
            Event::EventRecord(of) => {
                let call = call_of(of.session, of.correlation).and_then(|at| calls.get(at));
                let Some(call) = call else { return };
                let id = (of.session, of.correlation);
                self.recorded.insert(
                    id,
                    Recorded {
                        stream: of.stream,
                        context: of.context,
                        event_sync: of.event_sync,
                        device: of.device,
                    },
                );
                self.items.push(Item {
                    enter: call.enter,
                    exit: call.exit,
                    deed: Deed::Record(id),
                });
            }
            Event::Synchronization(of) => {
                let number = call_of(of.session, of.correlation);
                let call = number.and_then(|at| calls.get(at));
                let times = match call {
                    Some(call) => Some((call.enter, call.exit)),
                    None => of.start.zip(of.end),
                };
                let Some((enter, exit)) = times else { return };
                let succeeded = call.is_some_and(|call| call.succeeded);
                let deed = match of.kind {
                    SynchronizationKind::StreamWait => {
                        waits_seen.extend(number);
                        Deed::Wait(of)
                    }
                    SynchronizationKind::Stream if succeeded && of.stream.is_some() => {
                        Deed::Clean(of.context, of.stream)
                    }
                    SynchronizationKind::Context if succeeded => Deed::Clean(of.context, None),
                    _ => return,
                };
                self.items.push(Item { enter, exit, deed });
            }
            _ => {}
        }
    }

    fn take_operations(&mut self) {
        type Call = (u32, CorrelationId, HostNanos, HostNanos);
        let mut launches: FxHashMap<Call, Vec<usize>> = FxHashMap::default();
        for (at, operation) in self.operations.iter().enumerate() {
            let context = self.used.entry(operation.context).or_default();
            context.insert(operation.stream_id());
            let Some((enter, exit)) = operation.call else {
                continue;
            };
            let (session, correlation) = (operation.session, operation.correlation);
            let id = (session, correlation, enter, exit);
            launches.entry(id).or_default().push(at);
        }
        for ((_, _, enter, exit), of_call) in launches {
            // Several operations of one call have no order among them that is known.
            let deed = match of_call.as_slice() {
                &[only] if !self.operations[only].is_node() => Deed::Work(only),
                _ => Deed::Graph(of_call),
            };
            self.items.push(Item { enter, exit, deed });
        }
    }

    /// The readiness of each operation, in their order.
    pub(crate) fn prove(mut self) -> Vec<Proved> {
        let unknown = |operation: &OperationSeen| Proved {
            readiness: Readiness {
                not_before: None,
                not_after: operation.start,
                partial: Partials::of(Partial::CallUnknown).and(self.everywhere),
                complete_since: None,
            },
            behind: [None; KEPT],
            behind_more: false,
            untimed: false,
        };
        let mut proved: Vec<Proved> = self.operations.iter().map(unknown).collect();
        let mut disturbed = vec![(Partial::BeforeRecording, HostNanos(0))];
        // Also of streams that were made before, and of calls that began before and are at hand.
        disturbed.extend(self.since.map(|at| (Partial::BeforePart, at)));
        let mut fold = Fold {
            streams: FxHashMap::default(),
            disturbed,
            clean_contexts: FxHashMap::default(),
            by_sync: FxHashMap::default(),
            by_call: FxHashMap::default(),
            execs: FxHashMap::default(),
            clocks_off: FxHashSet::default(),
            is_part: self.since.is_some(),
        };
        let items = std::mem::take(&mut self.items);
        for item in items {
            self.fold(item, &mut fold, &mut proved);
        }
        self.orphans(&mut proved);
        for (operation, of) in self.operations.iter().zip(&mut proved) {
            if fold.clocks_off.contains(&operation.device) {
                of.readiness.partial.add(Partial::ClockOff);
            }
        }
        for of in &mut proved {
            let complete = of.readiness.is_complete();
            of.readiness.complete_since = of.readiness.complete_since.filter(|_| complete);
        }
        proved
    }

    fn fold(&self, item: Item<'_>, fold: &mut Fold, proved: &mut [Proved]) {
        let Item { enter, exit, deed } = item;
        let mut overlapped = Vec::new();
        match deed {
            Deed::Work(at) => {
                let operation = &self.operations[at];
                let mut frontier = self.frontier(fold, operation.stream_id(), enter);
                if operation.kind == ActivityKind::Graph {
                    fold.behind_exec(operation.exec, &mut frontier);
                }
                let order = self.order(operation);
                proved[at] = self.readiness(operation, &frontier, order);
                let strict = order == Ok(LaunchOrder::Strict)
                    && !proved[at].readiness.partial.has(Partial::OverlapObserved);
                let end = operation.end.map(|end| (end, behind(operation)));
                if let Some(exec) = operation.exec {
                    let end = operation.end.map(|end| (end, operation.row));
                    fold.execs.insert(exec, end);
                }
                let stream = fold.stream(operation.stream_id(), &self.made);
                stream.begin(
                    exit,
                    Effect::Work { end, strict },
                    vec![at],
                    &mut overlapped,
                );
            }
            Deed::Graph(nodes) => {
                self.fold_graph(enter, exit, &nodes, fold, proved, &mut overlapped);
            }
            Deed::Wait(wait) => {
                let known = wait
                    .event_sync
                    .and_then(|id| fold.by_sync.get(&id))
                    .or_else(|| {
                        let by = wait.recorded_by?;
                        fold.by_call.get(&(wait.session, by))
                    });
                let effect = match known {
                    Some(frontier) => Effect::Wait(*frontier),
                    None => Effect::Partial(Partial::EventUnknown),
                };
                for id in self.streams_of(wait.context, wait.stream) {
                    let stream = fold.stream(id, &self.made);
                    stream.at(enter);
                    stream.begin(exit, effect, Vec::new(), &mut overlapped);
                }
                if wait.stream.is_none() {
                    fold.disturb(Partial::EventUnknown, enter);
                }
            }
            Deed::Record(id) => {
                let Some(recorded) = self.recorded.get(&id) else {
                    return;
                };
                let streams = self.streams_of(recorded.context, recorded.stream);
                let before = match streams.as_slice() {
                    &[stream] if recorded.stream.is_some() => {
                        Some(self.frontier(fold, stream, enter))
                    }
                    _ => None,
                };
                let frontier = match (recorded.device, before) {
                    (Some(at), before) => Frontier::event(at, before.as_ref()),
                    (None, Some(mut before)) => {
                        before.untimed = true;
                        before
                    }
                    _ => Frontier::of(Partials::of(Partial::EventUnknown)),
                };
                // What is behind the record in its own stream waits until the device has come to it, too.
                let own = recorded.device.is_none().then_some(streams);
                for id in own.into_iter().flatten() {
                    let stream = fold.stream(id, &self.made);
                    stream.at(enter);
                    stream.begin(exit, Effect::Untimed, Vec::new(), &mut overlapped);
                }
                fold.by_call.insert(id, frontier);
                if let Some(sync) = recorded.event_sync {
                    fold.by_sync.insert(sync, frontier);
                }
            }
            Deed::Clean(context, stream) => {
                for id in self.streams_of(context, stream) {
                    let of = fold.stream(id, &self.made);
                    let ended = of.at(enter).last();
                    if ended.is_some_and(|ended| ended.0 > exit.0.saturating_add(self.epsilon_ns)) {
                        fold.clocks_off.insert(id.0);
                    }
                    let of = fold.stream(id, &self.made);
                    of.begin(exit, Effect::Clean, Vec::new(), &mut overlapped);
                }
                if let (Some(context), None) = (context, stream) {
                    fold.clean_contexts.insert(context, enter);
                }
            }
            Deed::Disturb(reason) => {
                fold.disturb(reason, enter);
                // Into which stream it went is not known.
                for stream in fold.streams.values_mut() {
                    stream.at(enter);
                    stream.disturb(reason);
                }
            }
        }
        for at in overlapped {
            proved[at].readiness.partial.add(Partial::CallsOverlap);
        }
    }

    /// How far an operation is ordered behind what is before it in its stream.
    fn order(&self, operation: &OperationSeen) -> Result<LaunchOrder, Partial> {
        match operation.role {
            Role::LaunchEx => {
                let known = self
                    .attributes
                    .get(&(operation.session, operation.correlation));
                known.copied().ok_or(Partial::AttributesUnknown)
            }
            Role::Unknown => Err(Partial::UnknownFunction),
            _ => Ok(LaunchOrder::Strict),
        }
    }

    pub(super) fn readiness(
        &self,
        operation: &OperationSeen,
        frontier: &Frontier,
        order: Result<LaunchOrder, Partial>,
    ) -> Proved {
        let mut partial = frontier.partial.and(self.everywhere);
        let loose = match order {
            Ok(LaunchOrder::Strict) => None,
            Ok(LaunchOrder::Programmatic) => Some(Partial::Programmatic),
            Err(reason) => Some(reason),
        };
        let mut proved = Proved {
            readiness: Readiness {
                not_before: None,
                not_after: operation.start,
                partial,
                complete_since: frontier.since,
            },
            behind: [None; KEPT],
            behind_more: frontier.more,
            untimed: frontier.untimed,
        };
        if let Some(reason) = loose {
            proved.readiness.partial.add(reason);
            proved.readiness.not_after = operation.end;
            return proved;
        }
        if let Some(start) = operation.start {
            proved.readiness.not_before = frontier.before(start, &mut partial);
            proved.behind = frontier.rows_before(start);
        }
        // By an edge of that kind the grid begins, and then waits inside.
        if partial.has(Partial::Programmatic) {
            proved.readiness.not_after = operation.end;
        }
        proved.readiness.partial = partial;
        proved
    }

    /// What work that is called now and goes into this stream has to wait for.
    pub(super) fn frontier(&self, fold: &mut Fold, id: StreamId, now: HostNanos) -> Frontier {
        let mut frontier = fold.stream(id, &self.made).at(now);
        let (_, context, stream) = id;
        let kind = self.kinds.get(&(context, stream)).copied();
        if kind == Some(StreamKind::NonBlocking) {
            return frontier;
        }
        let others = self.used.get(&context).into_iter().flatten();
        for &other in others.filter(|other| **other != id) {
            let other_kind = self.kinds.get(&(other.1, other.2)).copied();
            let legacy = StreamKind::LegacyDefault;
            match (kind, other_kind) {
                (_, Some(StreamKind::NonBlocking)) => {}
                (Some(own), Some(of)) if own == legacy || of == legacy => {
                    let of = fold.stream(other, &self.made).at(now);
                    frontier.merge(&of, Some(DependencyKind::DefaultStream));
                }
                (Some(_), Some(_)) => {}
                _ => frontier.partial.add(Partial::StreamKindUnknown),
            }
        }
        // Which others were used before a part is not known either.
        if kind.is_none() && self.since.is_some() {
            frontier.partial.add(Partial::StreamKindUnknown);
        }
        frontier
    }

    /// The streams that are meant: all that may be, where it is not said.
    fn streams_of(&self, context: Option<u32>, stream: Option<u32>) -> Vec<StreamId> {
        let all = self.used.iter();
        let contexts = all.filter(|(of, _)| context.is_none_or(|context| context == **of));
        let streams = contexts.flat_map(|(_, streams)| streams.iter().copied());
        let mut streams: Vec<StreamId> = streams
            .filter(|(_, _, of)| stream.is_none_or(|stream| stream == *of))
            .collect();
        streams.sort_unstable();
        streams
    }

    /// Operations without a call: where they stood is not known, and who waited for one by its stream, its
    /// graph or an event. So what began after one had, and is not known to have been held back for as long
    /// as that ran, is partial.
    fn orphans(&self, proved: &mut [Proved]) {
        let orphans = self.operations.iter().filter(|of| of.call.is_none());
        // Without its times it may have been at any time.
        let mut ran: Vec<(HostNanos, HostNanos)> = orphans
            .map(|of| {
                (
                    of.start.unwrap_or_default(),
                    of.end.unwrap_or(HostNanos(u64::MAX)),
                )
            })
            .collect();
        ran.sort_unstable();
        let mut latest = HostNanos(0);
        for (_, end) in &mut ran {
            latest = latest.max(*end);
            *end = latest;
        }
        for (operation, proved) in self.operations.iter().zip(proved) {
            let (Some(start), Some(_)) = (operation.start, operation.call) else {
                continue;
            };
            let since = proved.readiness.not_before.map_or(HostNanos(0), |of| of.0);
            let begun = ran.partition_point(|(orphan, _)| *orphan <= start);
            let last = begun.checked_sub(1).and_then(|at| ran.get(at));
            if last.is_some_and(|(_, end)| *end > since) {
                proved.readiness.partial.add(Partial::CallUnknown);
            }
        }
    }
}

fn behind(operation: &OperationSeen) -> Dependency {
    Dependency {
        kind: if operation.kind == ActivityKind::Graph {
            DependencyKind::EarlierGraph
        } else {
            DependencyKind::SameStream
        },
        row: Some(operation.row),
    }
}

/// What is known so far.
pub(super) struct Fold {
    pub(super) streams: FxHashMap<StreamId, Stream>,
    /// What makes a stream partial that was not used yet, and when that was last.
    disturbed: Vec<(Partial, HostNanos)>,
    /// When a thread began to wait, with success, for all of a context.
    clean_contexts: FxHashMap<u32, HostNanos>,
    by_sync: FxHashMap<u64, Frontier>,
    by_call: FxHashMap<CallId, Frontier>,
    /// When the last launch of each executable graph had ended, and which row that was; `None` where its
    /// end is not known.
    pub(super) execs: FxHashMap<(u32, u32), Option<(HostNanos, usize)>>,
    /// Devices of which a thread had waited for work that ended later by their clock.
    clocks_off: FxHashSet<u32>,
    /// Whether what was before is not at hand, though it was recorded.
    is_part: bool,
}

impl Fold {
    fn disturb(&mut self, reason: Partial, at: HostNanos) {
        self.disturbed.retain(|(of, _)| *of != reason);
        self.disturbed.push((reason, at));
    }

    /// Waits for the previous launch of an executable graph.
    pub(super) fn behind_exec(&self, exec: Option<(u32, u32)>, frontier: &mut Frontier) {
        match exec.and_then(|exec| self.execs.get(&exec)) {
            Some(&Some((end, row))) => {
                let dependency = Dependency {
                    kind: DependencyKind::SameExec,
                    row: Some(row),
                };
                frontier.wait_for(end, dependency);
            }
            Some(None) => frontier.partial.add(Partial::TimeMissing),
            None if exec.is_some() && self.is_part => frontier.partial.add(Partial::BeforePart),
            None => {}
        }
    }

    pub(super) fn stream(&mut self, id: StreamId, made: &Made) -> &mut Stream {
        let (disturbed, contexts) = (&self.disturbed, &self.clean_contexts);
        self.streams.entry(id).or_insert_with(|| {
            // What was before the stream was made, or had ended, is no matter.
            let since = made.get(&(id.1, id.2)).max(contexts.get(&id.1));
            let mut partial = Partials::NONE;
            for (reason, at) in disturbed {
                if since.is_none_or(|since| at > since) {
                    partial.add(*reason);
                }
            }
            Stream::new(partial, since.copied())
        })
    }
}
