//! Recordings made by hand: what a session would have seen, line by line.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses what it needs"
)]

use std::sync::Arc;

use lineage_core::fault::FaultCode;
use lineage_core::id::*;
use lineage_core::observation::*;
use lineage_core::row::{LooseFault, Row};
use lineage_validator::{Conclusions, Options, Validation, validate};

pub fn at(ns: u64) -> HostNanos {
    HostNanos(ns)
}

pub fn epoch(id: u64) -> LaunchEpoch {
    version(id, 1)
}

pub fn version(id: u64, version: u32) -> LaunchEpoch {
    LaunchEpoch::from_numbers(id, version).expect("in range")
}

/// A thread, of generation 1.
pub fn thread(tid: u64) -> ThreadKey {
    ThreadKey { tid, generation: 1 }
}

pub const LAUNCH_KERNEL: &str = "cuLaunchKernel";

pub fn api(domain: ApiDomain, name: &str) -> ApiId {
    ApiId {
        domain,
        cbid: 307,
        name: Some(Arc::from(name)),
    }
}

/// One launch, with everything that is seen of one. What a test takes away was not seen.
#[derive(Debug, Clone)]
pub struct Launch {
    pub session: u32,
    pub tid: u64,
    pub correlation: u32,
    /// The call is entered at this time, and left 100 ns later.
    pub called: u64,
    pub function: &'static str,
    pub result: u32,
    pub due: OperationsDue,
    pub task: Option<u64>,
    /// What our own callback read.
    pub callback: Option<Attribution>,
    pub in_boundary: bool,
    /// What CUPTI recorded as external id.
    pub external: Option<u64>,
    /// CUPTI's record of the call.
    pub record: bool,
    /// The scope around the call: 100 ns more on both sides.
    pub scope: Option<Attribution>,
    pub scope_task: Option<u64>,
    pub token: u64,
    pub operations: Vec<Operation>,
}

impl Launch {
    /// A kernel launch of an epoch in its boundary, seen by every source, sound in every respect.
    /// The kernel runs from 1,000 to 2,000 ns after the call.
    pub fn of(epoch: LaunchEpoch, tid: u64, correlation: u32, called: u64) -> Self {
        Self {
            session: 1,
            tid,
            correlation,
            called,
            function: LAUNCH_KERNEL,
            result: 0,
            due: OperationsDue::One,
            task: None,
            callback: Some(Attribution::Epoch(epoch)),
            in_boundary: true,
            external: Some(epoch.pack().bits()),
            record: true,
            scope: Some(Attribution::Epoch(epoch)),
            scope_task: None,
            token: u64::from(correlation),
            operations: vec![kernel(correlation, called + 1_000, called + 2_000)],
        }
    }

    /// The same without any epoch.
    pub fn of_none(tid: u64, correlation: u32, called: u64) -> Self {
        Self {
            callback: Some(Attribution::None),
            in_boundary: false,
            external: None,
            scope: None,
            ..Self::of(epoch(1), tid, correlation, called)
        }
    }

    pub fn call(&self) -> Option<Call> {
        Some(Call {
            thread: thread(self.tid),
            api: api(ApiDomain::Driver, self.function),
            correlation: CorrelationId(self.correlation),
            entered: at(self.called),
            exited: Some(at(self.called + 100)),
            result: self.result,
            attribution: self.callback?,
            in_boundary: self.in_boundary,
            task: self.task.map(TaskId),
            due: self.due,
        })
    }

    pub fn record(&self) -> ApiRecord {
        ApiRecord {
            session: self.session,
            api: api(ApiDomain::Driver, self.function),
            correlation: CorrelationId(self.correlation),
            tid: self.tid,
            start: Some(at(self.called - 5)),
            end: Some(at(self.called + 105)),
            result: self.result,
            due: self.due,
        }
    }

    pub fn external(&self) -> Option<ExternalRecord> {
        Some(ExternalRecord {
            session: self.session,
            kind: 5,
            own_kind: true,
            external_id: self.external?,
            correlation: CorrelationId(self.correlation),
            beside: self.record.then(|| at(self.called - 5)),
        })
    }

    pub fn scope(&self) -> Option<Scope> {
        Some(Scope {
            thread: thread(self.tid),
            attribution: self.scope?,
            token: ScopeToken(self.token),
            entered: at(self.called - 100),
            exited: at(self.called + 200),
            task: self.scope_task.map(TaskId),
            boundary: true,
            pushed: true,
        })
    }
}

/// A kernel on stream 7.
pub fn kernel(correlation: u32, start: u64, end: u64) -> Operation {
    Operation {
        session: 1,
        kind: ActivityKind::Kernel,
        correlation: CorrelationId(correlation),
        device: 0,
        context: 1,
        stream: 7,
        queued: None,
        submitted: None,
        start: Some(at(start)),
        end: Some(at(end)),
        name: Some(Arc::from("decode_gemv")),
        graph_node: None,
        graph: None,
        bytes: 0,
        copies: 1,
        grid: [1, 1, 1],
        block: [32, 1, 1],
        footprint: None,
    }
}

/// A copy of CUPTI's kind of this name.
pub fn copy(correlation: u32, kind: &str, start: u64, end: u64) -> Operation {
    Operation {
        kind: ActivityKind::Copy,
        name: Some(Arc::from(kind)),
        bytes: 4096,
        grid: [0; 3],
        block: [0; 3],
        footprint: None,
        ..kernel(correlation, start, end)
    }
}

/// All that a session saw.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    pub observations: Vec<Observation>,
    process: u32,
}

impl Recording {
    /// Device session 1 begins at 10; there are no threads and epochs yet.
    pub fn new() -> Self {
        let mut recording = Self::default();
        recording.saw(DeviceSession::Started {
            session: 1,
            version: 28,
            at: at(10),
            external_correlation: Some(true),
        });
        recording
    }

    /// Epoch 1 is declared on thread 10 at 100, launches kernels with the ids 1, 2 and 3 from 1,000
    /// on, and is retired at 90,000.
    pub fn sound() -> Self {
        let mut recording = Self::new();
        recording.thread(10, 50);
        recording.declare(1, 10, 100);
        recording.retire(1, 90_000);
        for number in 1..=3 {
            recording.launch(&Launch::of(epoch(1), 10, number, u64::from(number) * 1_000));
        }
        recording
    }

    /// What follows happens in this process.
    pub fn in_process(&mut self, process: u32) {
        self.process = process;
    }

    pub fn saw(&mut self, event: impl Into<Event>) {
        self.observations.push(Observation {
            process: ProcessOrdinal(self.process),
            event: event.into(),
        });
    }

    pub fn thread(&mut self, tid: u64, started: u64) {
        self.saw(ThreadStarted {
            thread: thread(tid),
            name: Some(Arc::from("engine")),
            at: at(started),
        });
    }

    pub fn declare(&mut self, id: u64, tid: u64, declared: u64) {
        self.declare_in(id, tid, None, declared);
    }

    pub fn declare_in(&mut self, id: u64, tid: u64, task: Option<u64>, declared: u64) {
        self.saw(Declared {
            epoch: epoch(id),
            thread: thread(tid),
            task: task.map(TaskId),
            at: at(declared),
            name: Arc::from("generate"),
            site: Some(Site {
                file: Arc::from("src/server.rs"),
                line: 41,
                column: 9,
            }),
        });
    }

    pub fn retire(&mut self, id: u64, retired: u64) {
        self.saw(Retired {
            epoch: epoch(id),
            how: RetiredAs::Done,
            at: at(retired),
        });
    }

    pub fn link(&mut self, later: u64, kind: LinkKind, earlier: u64, linked: u64) {
        self.saw(Linked {
            epoch: epoch(later),
            from: epoch(earlier),
            kind,
            at: at(linked),
        });
    }

    pub fn handoff(&self, number: u64, id: u64) -> Handoff {
        Handoff {
            id: HandoffId(number),
            epoch: epoch(id),
            carrier: CarrierKind::Envelope,
        }
    }

    pub fn send(&mut self, number: u64, id: u64, tid: u64, sent: u64) {
        let handoff = self.handoff(number, id);
        self.saw(Sent {
            handoff,
            thread: thread(tid),
            at: at(sent),
            site: Some(Site {
                file: Arc::from("src/queue.rs"),
                line: 7,
                column: 1,
            }),
        });
    }

    pub fn receive(&mut self, number: u64, id: u64, tid: u64, received: u64) {
        let handoff = self.handoff(number, id);
        self.saw(Received {
            handoff,
            thread: thread(tid),
            task: None,
            at: at(received),
        });
    }

    /// A launch in the order in which its records come: rings first, then CUPTI's buffers.
    pub fn launch(&mut self, launch: &Launch) {
        if let Some(call) = launch.call() {
            self.saw(call);
        }
        if let Some(scope) = launch.scope() {
            self.saw(scope);
        }
        if let Some(external) = launch.external() {
            self.saw(external);
        }
        if launch.record {
            self.saw(launch.record());
        }
        for operation in &launch.operations {
            self.saw(operation.clone());
        }
    }

    /// The driver launches something for itself within a call on thread 10 for epoch 1, as
    /// CUPTI's kind `INTERNAL_LAUNCH_API` has it; the external record is as any call's there.
    pub fn internal_launch(&mut self, correlation: u32, called: u64) {
        let around = Launch::of(epoch(1), 10, correlation, called);
        self.saw(ExternalRecord {
            beside: Some(at(called)),
            ..around.external().expect("it has one")
        });
        self.saw(ApiRecord {
            api: ApiId {
                domain: ApiDomain::Driver,
                cbid: 0,
                name: Some(Arc::from("internal launch")),
            },
            start: Some(at(called)),
            end: Some(at(called + 20)),
            due: OperationsDue::Any,
            ..around.record()
        });
    }

    /// The device session ends, with all handed over.
    pub fn end(&mut self, session: u32, ended: u64) {
        self.saw(Flushed {
            session,
            asked: at(ended - 10),
            returned: at(ended - 5),
            last: true,
        });
        self.saw(DeviceSession::Ended {
            session,
            at: at(ended),
        });
    }

    /// The same, ended at 100,000.
    #[must_use]
    pub fn ended(mut self) -> Self {
        self.end(1, 100_000);
        self
    }

    pub fn without(&self, unwanted: impl Fn(&Event) -> bool) -> Self {
        let mut recording = self.clone();
        recording
            .observations
            .retain(|observation| !unwanted(&observation.event));
        recording
    }

    pub fn validated(&self) -> Validation {
        validate(&self.observations, None, &Options::default())
    }

    pub fn validated_with(&self, rows: &[Row], faults: &[LooseFault]) -> Validation {
        let conclusions = Conclusions { rows, faults };
        validate(&self.observations, Some(conclusions), &Options::default())
    }

    /// The codes that are raised, each with its count.
    pub fn codes(&self) -> Vec<(FaultCode, u64)> {
        self.validated().fault_counts.into_iter().collect()
    }
}

/// Asserts that exactly this fault is raised, this often.
#[track_caller]
pub fn only(recording: &Recording, code: FaultCode, count: u64) -> Validation {
    let validation = recording.validated();
    let codes: Vec<_> = validation.fault_counts.clone().into_iter().collect();
    assert_eq!(codes, [(code, count)], "{validation}");
    validation
}

/// Asserts that no fault is raised.
#[track_caller]
pub fn none(recording: &Recording) -> Validation {
    let validation = recording.validated();
    assert!(validation.is_sound(), "{validation}");
    validation
}

/// Changes and launches of graphs, in the order of the changes.
#[derive(Debug, Default)]
pub struct Graphs {
    sequence: u64,
}

impl Graphs {
    /// A change under epoch 1, on thread 10.
    pub fn change(&mut self, recording: &mut Recording, at_ns: u64, change: GraphChange) {
        self.change_in_call(recording, at_ns, 0, change);
    }

    /// Likewise, inside the call of this id.
    pub fn change_in_call(
        &mut self,
        recording: &mut Recording,
        at_ns: u64,
        correlation: u32,
        change: GraphChange,
    ) {
        self.sequence += 1;
        recording.saw(GraphEvent {
            session: 1,
            sequence: GraphSequence(self.sequence),
            at: at(at_ns),
            tid: 10,
            correlation: (correlation != 0).then_some(CorrelationId(correlation)),
            attribution: Attribution::Epoch(epoch(1)),
            change,
        });
    }

    /// Nodes 1 to `nodes` of this graph are built.
    pub fn build(&mut self, recording: &mut Recording, at_ns: u64, graph: u32, nodes: u32) {
        self.change(recording, at_ns, GraphChange::GraphCreated { graph });
        for number in 1..=nodes {
            let node = node(graph, number);
            let kind = GraphNodeKind::Kernel;
            self.change(
                recording,
                at_ns,
                GraphChange::NodeCreated { graph, node, kind },
            );
        }
    }

    /// The graph is instantiated, with its nodes 1 to `nodes`.
    pub fn instantiate(
        &mut self,
        recording: &mut Recording,
        at_ns: u64,
        (graph, exec): (u32, u32),
        nodes: u32,
    ) {
        for number in 1..=nodes {
            let change = GraphChange::NodeCloned {
                graph: exec,
                node: node(exec, number),
                original_graph: graph,
                original: node(graph, number),
                kind: GraphNodeKind::Kernel,
            };
            self.change(recording, at_ns, change);
        }
        self.change(recording, at_ns, GraphChange::ExecCreated { exec, graph });
    }

    /// A launch of an executable graph that runs these nodes, as the graphs are now.
    pub fn launch(&self, recording: &mut Recording, launch: &Launch, exec: u32, ran: &[u64]) {
        let function = ApiId {
            domain: ApiDomain::Driver,
            cbid: 514,
            name: Some(Arc::from("cuGraphLaunch")),
        };
        let due = OperationsDue::Many;
        let call = launch.call().expect("it has one");
        recording.saw(GraphLaunch {
            session: 1,
            thread: call.thread,
            correlation: call.correlation,
            at: call.entered,
            exec,
            sequence: GraphSequence(self.sequence),
        });
        let api = function.clone();
        recording.saw(Call { api, due, ..call });
        recording.saw(launch.scope().expect("it has one"));
        recording.saw(launch.external().expect("it has one"));
        let api = function;
        recording.saw(ApiRecord {
            api,
            due,
            ..launch.record()
        });
        for (number, &node) in (0..).zip(ran) {
            let first = &launch.operations[0];
            let start = first.start.expect("it has one").0 + number * 10;
            recording.saw(Operation {
                graph_node: Some(node),
                graph: Some(exec),
                ..kernel(first.correlation.0, start, start + 5)
            });
        }
    }
}

/// The node of this number of a graph.
pub fn node(graph: u32, number: u32) -> u64 {
    u64::from(graph) << 32 | u64::from(number)
}
