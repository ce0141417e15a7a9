//! Calls from their records: a runtime record, a driver record and our own callback of one call
//! are one call, whether CUPTI gave them one correlation id or two.

use lineage_core::id::{CorrelationId, HostNanos, TaskId, ThreadKey};
use lineage_core::observation::{
    ApiDomain, ApiId, ApiRecord, Call, ExternalRecord, GraphChange, OperationsDue,
};

use super::gather::{Gathered, Seen};
use super::sessions::Sessions;
use super::unwrapping::unwrap_by_time;

/// One call of the application's, with all that is known of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogicalCall<'a> {
    pub(crate) session: u32,
    /// Its unwrapped ids, rising: one, or two if the nested driver call had its own.
    pub(crate) ids: Vec<u64>,
    pub(crate) tid: u64,
    /// The thread, where our own callback named it.
    pub(crate) thread: Option<ThreadKey>,
    pub(crate) start: Option<HostNanos>,
    pub(crate) end: Option<HostNanos>,
    pub(crate) apis: Vec<Seen<'a, ApiRecord>>,
    pub(crate) callbacks: Vec<Seen<'a, Call>>,
    pub(crate) externals: Vec<&'a ExternalRecord>,
    /// Another call has the same unwrapped id.
    pub(crate) reused: bool,
    /// A graph's node was made inside of it: it was captured, and nothing of it ran.
    captured: bool,
}

impl<'a> LogicalCall<'a> {
    fn of(record: Record<'a>, session: u32, id: u64) -> Self {
        let mut call = Self {
            session,
            ids: vec![id],
            tid: record.tid(),
            ..Self::default()
        };
        call.take(record);
        call
    }

    fn take(&mut self, record: Record<'a>) {
        self.start = [self.start, record.start()].into_iter().flatten().min();
        self.end = [self.end, record.end()].into_iter().flatten().max();
        match record {
            Record::Api(api) => self.apis.push(api),
            Record::Callback(call) => {
                self.thread = Some(call.what.thread);
                self.callbacks.push(call);
            }
        }
    }

    fn absorb(&mut self, inner: Self) {
        self.start = [self.start, inner.start].into_iter().flatten().min();
        self.end = [self.end, inner.end].into_iter().flatten().max();
        self.thread = self.thread.or(inner.thread);
        self.reused |= inner.reused;
        self.ids.extend(inner.ids);
        self.ids.sort_unstable();
        self.ids.dedup();
        self.apis.extend(inner.apis);
        self.callbacks.extend(inner.callbacks);
        self.externals.extend(inner.externals);
    }

    fn has(&self, domain: ApiDomain) -> bool {
        let mut domains = self.apis.iter().map(|seen| seen.what.api.domain);
        let mut of_callbacks = self.callbacks.iter().map(|seen| seen.what.api.domain);
        domains.any(|of| of == domain) || of_callbacks.any(|of| of == domain)
    }

    /// Whether all that is known of it is that the driver launched something for itself.
    pub(crate) fn is_internal(&self) -> bool {
        let mut apis = self.apis.iter();
        self.callbacks.is_empty() && !self.apis.is_empty() && apis.all(|seen| is_internal(seen))
    }

    /// The innermost function: the driver's, where it was seen.
    pub(crate) fn api(&self) -> Option<&'a ApiId> {
        let callbacks = self.callbacks.iter().map(|seen| &seen.what.api);
        let known = self
            .apis
            .iter()
            .filter(|seen| self.is_internal() || !is_internal(seen));
        let records = known.map(|seen| &seen.what.api);
        let all = || callbacks.clone().chain(records.clone());
        let driver = || all().filter(|api| api.domain == ApiDomain::Driver);
        let named = driver().find(|api| api.name.is_some());
        named.or_else(|| driver().next()).or_else(|| all().next())
    }

    /// How many operations are due. Our own callback knows best, but for a capture, of which the node
    /// that was made tells, too.
    pub(crate) fn due(&self) -> OperationsDue {
        if self.captured {
            return OperationsDue::None;
        }
        let callbacks = self
            .callbacks
            .iter()
            .map(|seen| (seen.what.api.domain, seen.what.due));
        let records = self
            .apis
            .iter()
            .map(|seen| (seen.what.api.domain, seen.what.due));
        let most = |dues: &mut dyn Iterator<Item = (ApiDomain, OperationsDue)>| {
            dues.map(|(domain, due)| (domain == ApiDomain::Driver, demand(due), due))
                .max_by_key(|(driver, demand, _)| (*driver, *demand))
                .map(|(_, _, due)| due)
        };
        most(&mut callbacks.clone())
            .or_else(|| most(&mut records.clone()))
            .unwrap_or(OperationsDue::Any)
    }

    /// How many driver calls it made, as far as they were seen, and at least one.
    pub(crate) fn parts(&self) -> usize {
        let driver = |api: &ApiId| api.domain == ApiDomain::Driver;
        let records = self.apis.iter().filter(|seen| !is_internal(seen));
        let records = records.filter(|seen| driver(&seen.what.api)).count();
        let callbacks = self.callbacks.iter();
        let callbacks = callbacks.filter(|seen| driver(&seen.what.api)).count();
        records.max(callbacks).max(1)
    }

    /// The function's own result code, if it is a failure.
    pub(crate) fn failure(&self) -> Option<u32> {
        let callbacks = self.callbacks.iter().map(|seen| seen.what.result);
        let records = self.apis.iter().map(|seen| seen.what.result);
        callbacks.chain(records).find(|&result| result != 0)
    }

    pub(crate) fn task(&self) -> Option<TaskId> {
        self.callbacks.iter().find_map(|seen| seen.what.task)
    }

    /// Whether it was made inside a launch boundary, where our own callback saw it.
    pub(crate) fn in_boundary(&self) -> Option<bool> {
        let boundaries = self.callbacks.iter().map(|seen| seen.what.in_boundary);
        boundaries.reduce(|any, this| any || this)
    }

    pub(crate) fn has_wire_id(&self, wire: CorrelationId) -> bool {
        self.ids.iter().any(|&id| id as u32 == wire.0)
    }

    /// The interval in which the call's work was done, by our own clock readings where we have
    /// them.
    pub(crate) fn interval(&self) -> Option<(HostNanos, HostNanos)> {
        match self.callbacks.first() {
            Some(seen) => Some((
                seen.what.entered,
                seen.what.exited.unwrap_or(seen.what.entered),
            )),
            None => {
                let start = self.start?;
                Some((start, self.end.unwrap_or(start).max(start)))
            }
        }
    }
}

/// CUPTI's kind `INTERNAL_LAUNCH_API`: such a record names no function.
fn is_internal(seen: &Seen<'_, ApiRecord>) -> bool {
    let api = &seen.what.api;
    let unnamed = (api.domain, api.cbid) == (ApiDomain::Driver, 0);
    unnamed && api.name.as_deref() == Some("internal launch")
}

fn demand(due: OperationsDue) -> u8 {
    match due {
        OperationsDue::None => 0,
        OperationsDue::One => 2,
        OperationsDue::Many => 3,
        // Also what a newer core adds: nothing is lost if there is none.
        _ => 1,
    }
}

/// Calls of one id that a further record of that id is held against.
const RECENT_CALLS: usize = 8;

/// A record of a call.
#[derive(Debug, Clone, Copy)]
enum Record<'a> {
    Api(Seen<'a, ApiRecord>),
    Callback(Seen<'a, Call>),
}

impl Record<'_> {
    fn tid(&self) -> u64 {
        match self {
            Self::Api(seen) => seen.what.tid,
            Self::Callback(seen) => seen.what.thread.tid,
        }
    }

    fn start(&self) -> Option<HostNanos> {
        match self {
            Self::Api(seen) => seen.what.start,
            Self::Callback(seen) => Some(seen.what.entered),
        }
    }

    fn end(&self) -> Option<HostNanos> {
        match self {
            Self::Api(seen) => seen.what.end,
            Self::Callback(seen) => seen.what.exited,
        }
    }

    fn wire(&self) -> CorrelationId {
        match self {
            Self::Api(seen) => seen.what.correlation,
            Self::Callback(seen) => seen.what.correlation,
        }
    }
}

/// The calls of a process, and what was left over.
#[derive(Debug, Default)]
pub(crate) struct Calls<'a> {
    /// In order of session, then of their smallest id.
    pub(crate) calls: Vec<LogicalCall<'a>>,
    /// Records that were there twice.
    pub(crate) duplicates: u64,
    /// Records without a time whose id several calls have.
    pub(crate) unplaced: Vec<&'a ApiRecord>,
    index: Vec<Key>,
}

/// Where a call is found by what is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    session: u32,
    wire: u32,
    pub(crate) start: Option<HostNanos>,
    /// The unwrapped id.
    pub(crate) id: u64,
    /// Its place among the calls.
    pub(crate) call: usize,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(gathered: &Gathered<'a>, sessions: &Sessions) -> Self {
        let mut records: Vec<(u32, Record<'a>)> = Vec::new();
        let apis = gathered.apis.iter();
        records.extend(apis.map(|&seen| (seen.what.session, Record::Api(seen))));
        let callbacks = gathered.calls.iter();
        records.extend(
            callbacks.map(|&seen| (sessions.at(seen.what.entered), Record::Callback(seen))),
        );
        records.sort_by_key(|(session, _)| *session);

        let mut calls = Self::default();
        for of_session in records.chunk_by(|a, b| a.0 == b.0) {
            calls.take_session(of_session);
        }
        calls.make_index();
        calls.mark_captured(gathered);
        calls
    }

    fn take_session(&mut self, records: &[(u32, Record<'a>)]) {
        let session = records.first().map_or(0, |(session, _)| *session);
        let timed: Vec<(HostNanos, Record<'a>)> = records
            .iter()
            .filter_map(|(_, record)| Some((record.start()?, *record)))
            .collect();
        let wires: Vec<_> = timed
            .iter()
            .map(|(at, record)| (*at, record.wire()))
            .collect();
        let ids = unwrap_by_time(&wires);
        let mut timed: Vec<(u64, Record<'a>)> = ids
            .into_iter()
            .zip(timed.into_iter().map(|(_, record)| record))
            .collect();
        // Outer before inner.
        timed.sort_by_key(|(id, record)| (*id, record.start(), std::cmp::Reverse(record.end())));

        let mut clusters: Vec<LogicalCall<'a>> = Vec::new();
        for of_id in timed.chunk_by(|a, b| a.0 == b.0) {
            let first = clusters.len();
            for &(id, record) in of_id {
                self.place(&mut clusters, first, session, id, record);
            }
            // Id 0 is none: calls that have it are not the same for that.
            let is_an_id = of_id[0].0 as u32 != 0;
            if is_an_id && clusters.len() > first + 1 {
                clusters[first..]
                    .iter_mut()
                    .for_each(|call| call.reused = true);
            }
        }
        self.place_untimed(&mut clusters, session, records);
        self.calls.append(&mut nest(clusters));
    }

    /// Adds a record to the call of its id that it belongs to, or to a new one.
    fn place(
        &mut self,
        clusters: &mut Vec<LogicalCall<'a>>,
        first: usize,
        session: u32,
        id: u64,
        record: Record<'a>,
    ) {
        // Only a hostile recording has many calls of one id.
        let recent = first.max(clusters.len().saturating_sub(RECENT_CALLS));
        if let Record::Api(new) = record {
            let mut known = clusters[recent..].iter().flat_map(|call| &call.apis);
            if known.any(|api| api.what == new.what) {
                self.duplicates += 1;
                return;
            }
        }
        let overlaps = |call: &LogicalCall<'_>| {
            let open = call.end.is_none() || record.end().is_none();
            call.tid == record.tid() && (open || record.start() <= call.end)
        };
        match clusters[recent..].iter_mut().find(|call| overlaps(call)) {
            Some(call) => call.take(record),
            None => clusters.push(LogicalCall::of(record, session, id)),
        }
    }

    /// A record without a time belongs to the one call that has its id.
    fn place_untimed(
        &mut self,
        clusters: &mut Vec<LogicalCall<'a>>,
        session: u32,
        records: &[(u32, Record<'a>)],
    ) {
        let mut untimed: Vec<Seen<'a, ApiRecord>> = Vec::new();
        for (_, record) in records {
            if let (Record::Api(seen), None) = (record, record.start()) {
                untimed.push(*seen);
            }
        }
        if untimed.is_empty() {
            return;
        }
        let mut by_wire: Vec<(u32, usize)> = Vec::new();
        by_wire.extend(
            clusters
                .iter()
                .enumerate()
                .map(|(at, call)| (call.ids[0] as u32, at)),
        );
        by_wire.sort_unstable();
        untimed.sort_by_key(|seen| seen.what.correlation);
        for of_wire in untimed.chunk_by(|a, b| a.what.correlation == b.what.correlation) {
            let wire = of_wire[0].what.correlation.0;
            let from = by_wire.partition_point(|(known, _)| *known < wire);
            let candidates = by_wire[from..]
                .iter()
                .take_while(|(known, _)| *known == wire);
            let candidates: Vec<usize> = candidates.map(|(_, at)| *at).collect();
            for (number, &seen) in of_wire.iter().enumerate() {
                if of_wire[..number]
                    .iter()
                    .any(|earlier| earlier.what == seen.what)
                {
                    self.duplicates += 1;
                    continue;
                }
                let record = Record::Api(seen);
                match candidates.as_slice() {
                    [] => clusters.push(LogicalCall::of(record, session, u64::from(wire))),
                    &[only] if clusters[only].tid == record.tid() => clusters[only].take(record),
                    _ => self.unplaced.push(seen.what),
                }
            }
        }
    }

    fn make_index(&mut self) {
        for (at, call) in self.calls.iter().enumerate() {
            self.index.extend(call.ids.iter().map(|&id| Key {
                session: call.session,
                wire: id as u32,
                start: call.start,
                id,
                call: at,
            }));
        }
        self.index.sort_unstable();
    }

    /// Looks for the calls inside of which nodes were made: of those that have the id, the one
    /// whose start is nearest.
    fn mark_captured(&mut self, gathered: &Gathered<'_>) {
        for seen in &gathered.graphs {
            let made = seen.what;
            let (GraphChange::NodeCreated { .. }, Some(wire @ CorrelationId(1..))) =
                (&made.change, made.correlation)
            else {
                continue;
            };
            let candidates = self.with_wire_id(made.session, wire).iter();
            let nearest = candidates.min_by_key(|key| {
                key.start
                    .map_or(i128::MAX, |start| made.at.since(start).abs())
            });
            if let Some(call) = nearest.map(|key| key.call) {
                self.calls[call].captured = true;
            }
        }
    }

    /// The calls with this id on the wire, in order of their starts.
    pub(crate) fn with_wire_id(&self, session: u32, wire: CorrelationId) -> &[Key] {
        let key = |key: &Key| (key.session, key.wire);
        let from = self.index.partition_point(|at| key(at) < (session, wire.0));
        let rest = &self.index[from..];
        &rest[..rest.partition_point(|at| key(at) == (session, wire.0))]
    }
}

/// Takes driver calls into the runtime call of their thread that they lie inside of, where CUPTI
/// gave the two different ids.
fn nest(mut calls: Vec<LogicalCall<'_>>) -> Vec<LogicalCall<'_>> {
    calls.sort_by_key(|call| (call.tid, call.start, std::cmp::Reverse(call.end)));
    let mut nested: Vec<LogicalCall<'_>> = Vec::with_capacity(calls.len());
    // What the driver launches for itself is no part of the call around it.
    let (internal, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(LogicalCall::is_internal);
    for call in calls {
        let inside = nested.last().is_some_and(|outer| {
            outer.tid == call.tid
                && outer.has(ApiDomain::Runtime)
                && !call.has(ApiDomain::Runtime)
                && call.start.is_some()
                && outer.start <= call.start
                && outer
                    .end
                    .zip(call.end.or(call.start))
                    .is_some_and(|(outer, end)| end <= outer)
        });
        match nested.last_mut() {
            Some(outer) if inside => outer.absorb(call),
            _ => nested.push(call),
        }
    }
    nested.extend(internal);
    nested.sort_by_key(|call| (call.ids.first().copied(), call.start));
    nested
}
