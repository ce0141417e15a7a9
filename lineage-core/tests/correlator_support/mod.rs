//! Observations with few words, for the correlator's tests.
#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod graphs;
pub(crate) mod history;

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::fault::FaultCode;
use lineage_core::id::{
    Attribution, CorrelationId, HandoffId, HostNanos, LaunchEpoch, PackedEpoch, ScopeToken,
    ThreadKey,
};
use lineage_core::observation::{
    Abandoned, ActivityKind, ApiDomain, ApiId, ApiRecord, Call, CarrierKind, Declared,
    DeviceSession, Event, ExternalRecord, Flushed, Gap, Handoff, LinkKind, Linked, Mark, Marked,
    Observation, Operation, OperationsDue, Received, Retired, RetiredAs, Scope, Sent,
};
use lineage_core::row::{LooseFault, Row};
use lineage_core::totals::Totals;

pub(crate) fn at(ns: u64) -> HostNanos {
    HostNanos(ns)
}

pub(crate) fn thread(tid: u64) -> ThreadKey {
    ThreadKey {
        tid,
        generation: tid as u32,
    }
}

pub(crate) fn epoch(id: u64) -> LaunchEpoch {
    LaunchEpoch::from_numbers(id, 1).expect("in range")
}

pub(crate) fn of(id: u64) -> Attribution {
    Attribution::Epoch(epoch(id))
}

pub(crate) fn started(session: u32, ns: u64) -> Event {
    DeviceSession::Started {
        session,
        version: 28,
        at: at(ns),
        external_correlation: None,
    }
    .into()
}

pub(crate) fn declared(tid: u64, id: u64, ns: u64) -> Event {
    Declared {
        epoch: epoch(id),
        thread: thread(tid),
        task: None,
        at: at(ns),
        name: "test".into(),
        site: None,
    }
    .into()
}

pub(crate) fn marked(tid: u64, id: u64, mark: Mark, ns: u64) -> Event {
    Marked {
        epoch: epoch(id),
        mark,
        thread: thread(tid),
        at: at(ns),
    }
    .into()
}

pub(crate) fn retired(id: u64, ns: u64) -> Event {
    Retired {
        epoch: epoch(id),
        how: RetiredAs::Done,
        at: at(ns),
    }
    .into()
}

pub(crate) fn linked(id: u64, from: u64, kind: LinkKind, ns: u64) -> Event {
    Linked {
        epoch: epoch(id),
        from: epoch(from),
        kind,
        at: at(ns),
    }
    .into()
}

pub(crate) fn handoff(number: u64, id: u64) -> Handoff {
    Handoff {
        id: HandoffId(number),
        epoch: epoch(id),
        carrier: CarrierKind::Envelope,
    }
}

pub(crate) fn sent(tid: u64, number: u64, id: u64, ns: u64) -> Event {
    Sent {
        handoff: handoff(number, id),
        thread: thread(tid),
        at: at(ns),
        site: None,
    }
    .into()
}

pub(crate) fn received(tid: u64, number: u64, id: u64, ns: u64) -> Event {
    Received {
        handoff: handoff(number, id),
        thread: thread(tid),
        task: None,
        at: at(ns),
    }
    .into()
}

pub(crate) fn abandoned(number: u64, id: u64, ns: u64) -> Event {
    Abandoned {
        handoff: handoff(number, id),
        at: at(ns),
    }
    .into()
}

/// A boundary of an epoch, or whatever else was current.
pub(crate) fn scope_of(
    tid: u64,
    what: Attribution,
    token: u64,
    entered: u64,
    exited: u64,
) -> Scope {
    Scope {
        thread: thread(tid),
        attribution: what,
        token: ScopeToken(token),
        entered: at(entered),
        exited: at(exited),
        task: None,
        boundary: true,
        pushed: true,
    }
}

pub(crate) fn scope(tid: u64, id: u64, token: u64, entered: u64, exited: u64) -> Event {
    scope_of(tid, of(id), token, entered, exited).into()
}

/// `cuLaunchKernel`, over 10 ns, inside a boundary if it has an epoch.
pub(crate) fn call_of(tid: u64, correlation: u32, entered: u64, what: Attribution) -> Call {
    Call {
        thread: thread(tid),
        api: ApiId {
            domain: ApiDomain::Driver,
            cbid: 307,
            name: None,
        },
        correlation: CorrelationId(correlation),
        entered: at(entered),
        exited: Some(at(entered + 10)),
        result: 0,
        attribution: what,
        in_boundary: what != Attribution::None,
        task: None,
        due: OperationsDue::One,
    }
}

pub(crate) fn call(tid: u64, correlation: u32, entered: u64, id: u64) -> Event {
    call_of(tid, correlation, entered, of(id)).into()
}

pub(crate) fn api_of(tid: u64, correlation: u32, start: u64) -> ApiRecord {
    ApiRecord {
        session: 1,
        api: ApiId {
            domain: ApiDomain::Driver,
            cbid: 307,
            name: Some("cuLaunchKernel".into()),
        },
        correlation: CorrelationId(correlation),
        tid,
        start: Some(at(start)),
        end: Some(at(start + 10)),
        result: 0,
        due: OperationsDue::One,
    }
}

pub(crate) fn api(tid: u64, correlation: u32, start: u64) -> Event {
    api_of(tid, correlation, start).into()
}

/// `cudaLaunchKernel` as CUPTI records it.
pub(crate) fn runtime_api(tid: u64, correlation: u32, start: u64, end: u64) -> Event {
    ApiRecord {
        api: ApiId {
            domain: ApiDomain::Runtime,
            cbid: 211,
            name: None,
        },
        end: Some(at(end)),
        ..api_of(tid, correlation, start)
    }
    .into()
}

pub(crate) fn external_of(bits: u64, correlation: u32, beside: Option<u64>) -> Event {
    ExternalRecord {
        session: 1,
        kind: 5,
        own_kind: true,
        external_id: bits,
        correlation: CorrelationId(correlation),
        beside: beside.map(at),
    }
    .into()
}

pub(crate) fn external(id: u64, correlation: u32, beside: u64) -> Event {
    external_of(
        PackedEpoch::from(epoch(id)).bits(),
        correlation,
        Some(beside),
    )
}

pub(crate) fn kernel_of(correlation: u32, start: u64, end: u64) -> Operation {
    Operation {
        session: 1,
        kind: ActivityKind::Kernel,
        correlation: CorrelationId(correlation),
        device: 0,
        context: 1,
        stream: 7,
        queued: None,
        submitted: None,
        start: HostNanos::from_cupti(start),
        end: HostNanos::from_cupti(end),
        name: Some("gemv".into()),
        graph_node: None,
        graph: None,
        bytes: 0,
        copies: 1,
        grid: [1, 1, 1],
        block: [32, 1, 1],
        footprint: None,
    }
}

pub(crate) fn kernel(correlation: u32, start: u64, end: u64) -> Event {
    kernel_of(correlation, start, end).into()
}

pub(crate) fn flushed(ns: u64) -> Event {
    Flushed {
        session: 1,
        asked: at(ns),
        returned: at(ns + 5),
        last: false,
    }
    .into()
}

pub(crate) fn last_flush(ns: u64) -> Event {
    Flushed {
        session: 1,
        asked: at(ns),
        returned: at(ns + 5),
        last: true,
    }
    .into()
}

pub(crate) fn gap(tid: u64, not_before: u64, not_after: u64) -> Event {
    Gap {
        thread: thread(tid),
        count: 3,
        not_before: Some(at(not_before)),
        not_after: Some(at(not_after)),
    }
    .into()
}

/// A launch with all of its evidence: declared at `ns` on thread 1, scope, call, kernel.
pub(crate) fn launch(id: u64, correlation: u32, ns: u64) -> Vec<Event> {
    vec![
        declared(1, id, ns),
        call(1, correlation, ns + 20, id),
        scope(1, id, u64::from(correlation), ns + 10, ns + 40),
        external(id, correlation, ns + 20),
        api(1, correlation, ns + 20),
        kernel(correlation, ns + 50, ns + 90),
    ]
}

/// A correlator and what it gave.
pub(crate) struct Run {
    correlator: Correlator,
    pub(crate) rows: Vec<Row>,
    pub(crate) faults: Vec<LooseFault>,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self::within(Limits::default())
    }

    pub(crate) fn within(limits: Limits) -> Self {
        Self {
            correlator: Correlator::new(limits),
            rows: Vec::new(),
            faults: Vec::new(),
        }
    }

    pub(crate) fn see(&mut self, events: impl IntoIterator<Item = Event>) -> &mut Self {
        for event in events {
            self.correlator.observe(&Observation::live(event));
        }
        self.drain()
    }

    pub(crate) fn observe(&mut self, observation: &Observation) -> &mut Self {
        self.correlator.observe(observation);
        self.drain()
    }

    pub(crate) fn oldest_open_call(&self) -> Option<HostNanos> {
        self.correlator.oldest_open_call()
    }

    pub(crate) fn end(&mut self) -> &mut Self {
        self.correlator.end();
        self.drain()
    }

    fn drain(&mut self) -> &mut Self {
        self.correlator.drain(&mut self.rows, &mut self.faults);
        self
    }

    pub(crate) fn totals(&self) -> &Totals {
        self.correlator.totals()
    }

    pub(crate) fn pending(&self) -> usize {
        self.correlator.pending()
    }

    /// The only row.
    #[track_caller]
    pub(crate) fn row(&self) -> &Row {
        assert_eq!(self.rows.len(), 1, "{:#?}", self.rows);
        &self.rows[0]
    }

    pub(crate) fn loose(&self) -> Vec<FaultCode> {
        self.faults.iter().map(|fault| fault.code).collect()
    }
}

/// What came of these observations when nothing followed them.
pub(crate) fn ended(events: impl IntoIterator<Item = Event>) -> Run {
    let mut run = Run::new();
    run.see(events).end();
    run
}
