//! Entries of every kind, with any values.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lineage_core::evidence::{Evidence, Rule, TimeSource, Why};
use lineage_core::fault::FaultCode;
use lineage_core::id::*;
use lineage_core::ledger::Entry;
use lineage_core::observation::*;
use lineage_core::row::*;
use lineage_core::source::{SessionInfo, Sink};

/// Values by a seed: extremes as often as others.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, many: usize) -> usize {
        (self.roll() % many as u64) as usize
    }

    fn flag(&mut self) -> bool {
        self.roll() & 1 == 1
    }

    fn u64(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => self.roll() % 100,
            3 => self.roll(),
            _ => 1_000_000_000_000 + self.roll() % 1_000_000,
        }
    }

    fn u32(&mut self) -> u32 {
        match self.below(4) {
            0 => 0,
            1 => u32::MAX,
            _ => (self.roll() % 1000) as u32,
        }
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| value(self))
    }

    fn at(&mut self) -> HostNanos {
        HostNanos(self.u64())
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn text(&mut self) -> Arc<str> {
        let texts = [
            "",
            "decode_gemv",
            "a\nb\"\0\u{202e}\u{1f600}",
            "void at::native::vectorized_elementwise_kernel<4>",
            "bound",
        ];
        match self.below(8) {
            0 => format!("name {}", self.roll() % 50).into(),
            // Longer than a name may be: the entry is kept as JSON.
            1 if self.below(50) == 0 => "x".repeat(70_000).into(),
            _ => self.of(&texts).into(),
        }
    }

    fn epoch(&mut self) -> LaunchEpoch {
        let id = match self.below(4) {
            0 => MAX_EPOCH_ID,
            _ => 1 + self.roll() % 500,
        };
        let version = self.of(&[1, 2, 7, MAX_VERSION]);
        LaunchEpoch::from_numbers(id, version).expect("in range")
    }

    fn attribution(&mut self) -> Attribution {
        match self.below(6) {
            0 => Attribution::None,
            1 => Attribution::BoundaryWithoutEpoch,
            // Some of these have no packed form of their own.
            2 => Attribution::Detached(DetachedReason(self.u32())),
            3 => Attribution::Foreign(self.u64()),
            _ => Attribution::Epoch(self.epoch()),
        }
    }

    fn thread(&mut self) -> ThreadKey {
        ThreadKey {
            tid: self.u64(),
            generation: self.u32(),
        }
    }

    fn task(&mut self) -> Option<TaskId> {
        self.maybe(|dice| TaskId(dice.u64()))
    }

    fn site(&mut self) -> Option<Site> {
        self.maybe(|dice| Site {
            file: dice.text(),
            line: dice.u32(),
            column: dice.u32(),
        })
    }

    fn parent(&mut self) -> W3cParent {
        W3cParent {
            trace_id: u128::from(self.roll()) << 64 | 1,
            span_id: self.roll() | 1,
            flags: self.roll() as u8,
        }
    }

    fn handoff(&mut self) -> Handoff {
        Handoff {
            id: HandoffId(self.u64()),
            epoch: self.epoch(),
            carrier: self.of(&[
                CarrierKind::Future,
                CarrierKind::Envelope,
                CarrierKind::Callback,
            ]),
        }
    }

    fn api(&mut self) -> ApiId {
        ApiId {
            domain: self.of(&[ApiDomain::Driver, ApiDomain::Runtime]),
            cbid: self.u32(),
            name: self.maybe(Self::text),
        }
    }

    fn due(&mut self) -> OperationsDue {
        self.of(&[
            OperationsDue::None,
            OperationsDue::One,
            OperationsDue::Many,
            OperationsDue::MaybeCaptured,
        ])
    }

    fn correlation(&mut self) -> CorrelationId {
        CorrelationId(self.u32())
    }

    fn footprint(&mut self) -> Option<Footprint> {
        self.maybe(|dice| Footprint {
            registers_per_thread: dice.u32(),
            shared_bytes: dice.u32(),
            blocks_per_cluster: dice.maybe(Self::u32),
        })
    }

    fn operation(&mut self) -> Operation {
        Operation {
            session: self.u32(),
            kind: self.of(&[
                ActivityKind::Kernel,
                ActivityKind::Copy,
                ActivityKind::Set,
                ActivityKind::Graph,
            ]),
            correlation: self.correlation(),
            device: self.u32(),
            context: self.u32(),
            stream: self.u32(),
            queued: self.maybe(Self::at),
            submitted: self.maybe(Self::at),
            start: self.maybe(Self::at),
            end: self.maybe(Self::at),
            name: self.maybe(Self::text),
            graph_node: self.maybe(Self::u64),
            graph: self.maybe(Self::u32),
            bytes: self.u64(),
            copies: self.u32(),
            grid: [self.u32(), 1, self.u32()],
            block: [self.u32(), self.u32(), 1],
            footprint: self.footprint(),
        }
    }

    /// An event of the kind of this number.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind")]
    pub(crate) fn event(&mut self, kind: usize) -> Event {
        match kind {
            0 => ThreadStarted {
                thread: self.thread(),
                name: self.maybe(Self::text),
                at: self.at(),
            }
            .into(),
            1 => ThreadEnded {
                thread: self.thread(),
                at: self.at(),
            }
            .into(),
            2 => Declared {
                epoch: self.epoch(),
                thread: self.thread(),
                task: self.task(),
                at: self.at(),
                name: self.text(),
                site: self.site(),
            }
            .into(),
            3 => Parented {
                epoch: self.epoch(),
                parent: self.parent(),
                at: self.at(),
            }
            .into(),
            4 => SpanLinked {
                epoch: self.epoch(),
                span: self.parent(),
                at: self.at(),
            }
            .into(),
            5 => Linked {
                epoch: self.epoch(),
                from: self.epoch(),
                kind: self.of(&[LinkKind::Fork, LinkKind::Merge, LinkKind::Retry]),
                at: self.at(),
            }
            .into(),
            6 => Stepped {
                epoch: self.epoch(),
                thread: self.thread(),
                at: self.at(),
            }
            .into(),
            7 => Marked {
                epoch: self.epoch(),
                mark: self.of(&[Mark::Ready, Mark::BatchFormed]),
                thread: self.thread(),
                at: self.at(),
            }
            .into(),
            8 => Retired {
                epoch: self.epoch(),
                how: self.of(&[RetiredAs::Done, RetiredAs::Cancelled]),
                at: self.at(),
            }
            .into(),
            9 => Sent {
                handoff: self.handoff(),
                thread: self.thread(),
                at: self.at(),
                site: self.site(),
            }
            .into(),
            10 => Received {
                handoff: self.handoff(),
                thread: self.thread(),
                task: self.task(),
                at: self.at(),
            }
            .into(),
            11 => Abandoned {
                handoff: self.handoff(),
                at: self.at(),
            }
            .into(),
            12 => Scope {
                thread: self.thread(),
                attribution: self.attribution(),
                token: ScopeToken(self.u64()),
                entered: self.at(),
                exited: self.at(),
                task: self.task(),
                boundary: self.flag(),
                pushed: self.flag(),
            }
            .into(),
            13 => Call {
                thread: self.thread(),
                api: self.api(),
                correlation: self.correlation(),
                entered: self.at(),
                exited: self.maybe(Self::at),
                result: self.u32(),
                attribution: self.attribution(),
                in_boundary: self.flag(),
                task: self.task(),
                due: self.due(),
            }
            .into(),
            14 => Gap {
                thread: self.thread(),
                count: self.u64(),
                not_before: self.maybe(Self::at),
                not_after: self.maybe(Self::at),
            }
            .into(),
            15 => Named {
                reason: DetachedReason(self.u32()),
                name: self.text(),
            }
            .into(),
            16 => Misuse {
                kind: MisuseKind::ScopeLeaked,
                thread: self.thread(),
                attribution: self.attribution(),
                value: self.u64(),
                at: self.at(),
            }
            .into(),
            17 => match self.below(4) {
                0 => DeviceSession::Started {
                    session: self.u32(),
                    version: 130_500,
                    at: self.at(),
                    external_correlation: self.maybe(Self::flag),
                },
                1 => DeviceSession::Imported {
                    session: self.u32(),
                    recorder: Recorder::Kineto,
                    at: self.at(),
                },
                2 => DeviceSession::Absent {
                    why: self.text(),
                    at: self.at(),
                },
                _ => DeviceSession::Ended {
                    session: self.u32(),
                    at: self.at(),
                },
            }
            .into(),
            18 => ApiRecord {
                session: self.u32(),
                api: self.api(),
                correlation: self.correlation(),
                tid: self.u64(),
                start: self.maybe(Self::at),
                end: self.maybe(Self::at),
                result: self.u32(),
                due: self.due(),
            }
            .into(),
            19 => ExternalRecord {
                session: self.u32(),
                kind: self.u32(),
                own_kind: self.flag(),
                external_id: self.u64(),
                correlation: self.correlation(),
                beside: self.maybe(Self::at),
            }
            .into(),
            20 => self.operation().into(),
            21 => Flushed {
                session: self.u32(),
                asked: self.at(),
                returned: self.at(),
                last: self.flag(),
            }
            .into(),
            22 => Dropped {
                site: DropSite::CuptiBuffer,
                count: self.u64(),
                at: self.at(),
            }
            .into(),
            23 => Extent {
                session: self.u32(),
                calls: self.maybe(|dice| (dice.correlation(), dice.correlation())),
                operations: None,
            }
            .into(),
            24 => Synchronization {
                session: self.u32(),
                correlation: self.correlation(),
                kind: SynchronizationKind::StreamWait,
                start: self.maybe(Self::at),
                end: self.maybe(Self::at),
                context: self.maybe(Self::u32),
                stream: self.maybe(Self::u32),
                event: self.maybe(Self::u32),
                event_sync: self.maybe(Self::u64),
                recorded_by: self.maybe(Self::correlation),
            }
            .into(),
            25 => EventRecord {
                session: self.u32(),
                correlation: self.correlation(),
                context: self.maybe(Self::u32),
                stream: self.maybe(Self::u32),
                event: self.maybe(Self::u32),
                event_sync: self.maybe(Self::u64),
                device: self.maybe(Self::at),
            }
            .into(),
            26 => GraphNode {
                tid: self.u64(),
                at: self.at(),
                node: self.u64(),
                original: self.maybe(Self::u64),
            }
            .into(),
            27 => GraphEvent {
                session: self.u32(),
                sequence: GraphSequence(self.u64()),
                at: self.at(),
                tid: self.u64(),
                correlation: self.maybe(Self::correlation),
                attribution: self.attribution(),
                change: GraphChange::Edges {
                    graph: self.u32(),
                    edges: vec![GraphEdge {
                        from: self.u64(),
                        to: self.u64(),
                        kind: EdgeKind::Programmatic,
                    }],
                    last: self.flag(),
                },
            }
            .into(),
            28 => GraphLaunch {
                session: self.u32(),
                thread: self.thread(),
                correlation: self.correlation(),
                at: self.at(),
                exec: self.u32(),
                sequence: GraphSequence(self.u64()),
            }
            .into(),
            29 => Scheduled {
                tid: self.u64(),
                at: self.at(),
                cpu: self.maybe(Self::u32),
                running: self.flag(),
                off: self.maybe(|dice| dice.of(&[SwitchedOff::Preempted, SwitchedOff::Blocked])),
                state: self.maybe(Self::u32),
            }
            .into(),
            30 => OsCall {
                tid: self.u64(),
                name: self.text(),
                start: self.at(),
                end: self.maybe(Self::at),
            }
            .into(),
            31 => SchedulerSession::Lost {
                tid: self.u64(),
                count: self.u64(),
                not_before: self.maybe(Self::at),
                not_after: self.maybe(Self::at),
            }
            .into(),
            _ => RunQueue {
                tid: self.u64(),
                not_before: self.at(),
                not_after: self.at(),
                waited_ns: self.u64(),
                ran_ns: self.u64(),
                turns: self.u64(),
            }
            .into(),
        }
    }

    fn evidence(&mut self) -> Evidence {
        match self.below(4) {
            0 => Evidence::Observed {
                at: self.at(),
                source: self.of(&[TimeSource::CuptiApi, TimeSource::ImportNsys]),
            },
            1 => Evidence::Inferred {
                at: self.at(),
                rule: Rule::OpenAtFirstLaunch,
            },
            2 => Evidence::Bounded {
                not_before: self.maybe(Self::at),
                not_after: self.maybe(Self::at),
                rule: Rule::CallBeforeStart,
            },
            _ => Evidence::Unknown {
                why: self.of(&[Why::NotCollected, Why::ZeroTimestamp, Why::Pending]),
            },
        }
    }

    fn template(&mut self) -> Template {
        let node = TemplateNode {
            graph: self.u32(),
            node: self.u64(),
            order: self.u32(),
            capture: self.attribution(),
            captured_by: self.maybe(|dice| UnwrappedCorrelationId(dice.u64())),
            at: self.at(),
        };
        match self.below(3) {
            0 => Template::Known(node),
            1 => Template::Inferred {
                node,
                rule: Rule::CallBeforeStart,
            },
            _ => Template::Unknown {
                why: Why::ExecUpdated,
            },
        }
    }

    pub(crate) fn row(&mut self) -> Row {
        Row {
            process: ProcessOrdinal(self.below(3) as u32),
            call: self.maybe(|dice| RowCall {
                session: dice.u32(),
                correlation: UnwrappedCorrelationId(dice.u64()),
                api: dice.api(),
                tid: dice.u64(),
                task: dice.task(),
                result: dice.u32(),
                in_boundary: dice.maybe(Self::flag),
            }),
            operation: self.maybe(Self::operation),
            graph: self.maybe(|dice| RowGraph {
                exec: dice.maybe(Self::u32),
                generation: dice.u32(),
                replay: dice.maybe(Self::u64),
                iteration: dice.u32(),
                template: dice.template(),
            }),
            binding: match self.below(4) {
                0 => Binding::Bound(self.epoch()),
                1 => Binding::Unattributed(
                    self.of(&[Unattributed::Detached, Unattributed::NoEpochEvidence]),
                ),
                2 => Binding::Disputed(self.epoch(), self.epoch()),
                _ => Binding::Lost,
            },
            sources: JoinSources {
                external: self.maybe(Self::attribution),
                callback: self.maybe(Self::attribution),
                containment: self.maybe(Self::attribution),
                reachable: self.maybe(Self::flag),
            },
            stages: Stages {
                declared: self.evidence(),
                ready: self.evidence(),
                scope_enter: self.evidence(),
                api_enter: self.evidence(),
                api_exit: self.evidence(),
                queued: self.evidence(),
                submitted: self.evidence(),
                start: self.evidence(),
                end: self.evidence(),
            },
            faults: (0..self.below(4))
                .map(|_| self.of(FaultCode::ALL))
                .collect(),
            after_retirement: self.flag(),
            supersedes: self.flag(),
        }
    }

    pub(crate) fn fault(&mut self) -> LooseFault {
        LooseFault {
            process: ProcessOrdinal(self.below(3) as u32),
            code: self.of(FaultCode::ALL),
            epoch: self.maybe(Self::epoch),
            at: self.maybe(Self::at),
            count: self.u64(),
            detail: self.text().to_string(),
        }
    }

    /// Any entry.
    pub(crate) fn entry(&mut self) -> Entry {
        match self.below(8) {
            0 => Entry::Fault(self.fault()),
            1 | 2 => Entry::Row(self.row()),
            _ => {
                let kind = self.below(KINDS);
                Entry::Observation(Observation {
                    process: ProcessOrdinal(self.below(3) as u32),
                    event: self.event(kind),
                })
            }
        }
    }
}

/// How many kinds of events there are.
pub(crate) const KINDS: usize = 33;

/// The number of an event's kind, so that a new kind cannot be forgotten here: the test of every kind
/// asks for each number.
pub(crate) fn kind(event: &Event) -> Option<usize> {
    Some(match event {
        Event::ThreadStarted(_) => 0,
        Event::ThreadEnded(_) => 1,
        Event::Declared(_) => 2,
        Event::Parented(_) => 3,
        Event::SpanLinked(_) => 4,
        Event::Linked(_) => 5,
        Event::Stepped(_) => 6,
        Event::Marked(_) => 7,
        Event::Retired(_) => 8,
        Event::Sent(_) => 9,
        Event::Received(_) => 10,
        Event::Abandoned(_) => 11,
        Event::Scope(_) => 12,
        Event::Call(_) => 13,
        Event::Gap(_) => 14,
        Event::Named(_) => 15,
        Event::Misuse(_) => 16,
        Event::DeviceSession(_) => 17,
        Event::Api(_) => 18,
        Event::External(_) => 19,
        Event::Operation(_) => 20,
        Event::Flushed(_) => 21,
        Event::Dropped(_) => 22,
        Event::Extent(_) => 23,
        Event::Synchronization(_) => 24,
        Event::EventRecord(_) => 25,
        Event::GraphNode(_) => 26,
        Event::Graph(_) => 27,
        Event::GraphLaunch(_) => 28,
        Event::Scheduled(_) => 29,
        Event::OsCall(_) => 30,
        Event::SchedulerSession(_) => 31,
        Event::RunQueue(_) => 32,
        _ => return None,
    })
}

/// The session of every test.
pub(crate) fn session() -> SessionInfo {
    SessionInfo::new(uuid::Uuid::from_u128(7), "llm", HostNanos(5)).started_at_unix_ns(9)
}

/// Gives an entry to a sink.
pub(crate) fn give(sink: &mut dyn Sink, entry: &Entry) {
    let given = match entry {
        Entry::Observation(of) => sink.observations(std::slice::from_ref(of)),
        Entry::Row(of) => sink.rows(std::slice::from_ref(of), &[]),
        Entry::Fault(of) => sink.rows(&[], std::slice::from_ref(of)),
        _ => Ok(()),
    };
    given.expect("written");
}

/// The files of a run directory, by their paths in it.
pub(crate) fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("readable").path();
        let name = path
            .file_name()
            .expect("named")
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            for (inner, bytes) in files(&path) {
                found.insert(format!("{name}/{inner}"), bytes);
            }
        } else {
            found.insert(name, std::fs::read(&path).expect("readable"));
        }
    }
    found
}
