//! What is written is what is read.

use std::sync::Arc;

use super::*;
use crate::evidence::{Evidence, Rule, TimeSource, Why};
use crate::fault::FaultCode;
use crate::id::*;
use crate::observation::*;
use crate::row::*;
use crate::source::{SessionInfo, Sink};

fn at(ns: u64) -> HostNanos {
    HostNanos(ns)
}

fn epoch(id: u64, version: u32) -> LaunchEpoch {
    LaunchEpoch::from_numbers(id, version).expect("in range")
}

fn thread() -> ThreadKey {
    ThreadKey {
        tid: 4242,
        generation: 3,
    }
}

fn text(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn handoff() -> Handoff {
    Handoff {
        id: HandoffId(u64::MAX),
        epoch: epoch(MAX_EPOCH_ID, MAX_VERSION),
        carrier: CarrierKind::Envelope,
    }
}

fn site() -> Site {
    Site {
        file: text("src/\u{202e}main.rs"),
        line: 10,
        column: 5,
    }
}

fn api() -> ApiId {
    ApiId {
        domain: ApiDomain::Driver,
        cbid: 307,
        name: Some(text("cuLaunchKernel")),
    }
}

fn operation() -> Operation {
    Operation {
        session: 1,
        kind: ActivityKind::Kernel,
        correlation: CorrelationId(u32::MAX),
        device: 0,
        context: 1,
        stream: 7,
        queued: None,
        submitted: Some(at(5)),
        start: Some(at(u64::MAX - 1)),
        end: Some(at(u64::MAX)),
        name: Some(text("decode\n\"gemv\"\0\u{1f600}")),
        graph_node: Some(1 << 60),
        graph: Some(9),
        bytes: u64::MAX,
        copies: 1,
        grid: [1, 2, 3],
        block: [u32::MAX, 0, 1],
        footprint: Some(Footprint {
            registers_per_thread: 255,
            shared_bytes: u32::MAX,
            blocks_per_cluster: Some(8),
        }),
    }
}

/// The next kind of event after this one, so that a new kind cannot be forgotten: the match has to
/// name it.
fn after(event: Option<&Event>) -> Option<Event> {
    let Some(event) = event else {
        return Some(
            ThreadStarted {
                thread: thread(),
                name: Some(text("engine")),
                at: at(0),
            }
            .into(),
        );
    };
    Some(match event {
        Event::ThreadStarted(_) => ThreadEnded {
            thread: thread(),
            at: at(1),
        }
        .into(),
        Event::ThreadEnded(_) => Declared {
            epoch: epoch(1, 1),
            thread: thread(),
            task: Some(TaskId(17)),
            at: at(2),
            name: text("generate"),
            site: Some(site()),
        }
        .into(),
        Event::Declared(_) => Parented {
            epoch: epoch(1, 1),
            parent: W3cParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
                .expect("valid"),
            at: at(3),
        }
        .into(),
        Event::Parented(_) => SpanLinked {
            epoch: epoch(1, 1),
            span: W3cParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
                .expect("valid"),
            at: at(3),
        }
        .into(),
        Event::SpanLinked(_) => Linked {
            epoch: epoch(2, 1),
            from: epoch(1, 1),
            kind: LinkKind::Merge,
            at: at(4),
        }
        .into(),
        Event::Linked(_) => Stepped {
            epoch: epoch(2, 2),
            thread: thread(),
            at: at(5),
        }
        .into(),
        Event::Stepped(_) => Marked {
            epoch: epoch(2, 2),
            mark: Mark::BatchFormed,
            thread: thread(),
            at: at(6),
        }
        .into(),
        Event::Marked(_) => Retired {
            epoch: epoch(2, 2),
            how: RetiredAs::Cancelled,
            at: at(7),
        }
        .into(),
        Event::Retired(_) => Sent {
            handoff: handoff(),
            thread: thread(),
            at: at(8),
            site: None,
        }
        .into(),
        Event::Sent(_) => Received {
            handoff: handoff(),
            thread: thread(),
            task: None,
            at: at(9),
        }
        .into(),
        Event::Received(_) => Abandoned {
            handoff: handoff(),
            at: at(10),
        }
        .into(),
        Event::Abandoned(_) => Scope {
            thread: thread(),
            attribution: Attribution::Detached(DetachedReason(2)),
            token: ScopeToken(1),
            entered: at(11),
            exited: at(12),
            task: Some(TaskId(u64::MAX)),
            boundary: true,
            pushed: false,
        }
        .into(),
        Event::Scope(_) => Call {
            thread: thread(),
            api: api(),
            correlation: CorrelationId(0),
            entered: at(13),
            exited: None,
            result: 700,
            attribution: Attribution::Epoch(epoch(3, 1)),
            in_boundary: true,
            task: None,
            due: OperationsDue::Any,
        }
        .into(),
        Event::Call(_) => Gap {
            thread: thread(),
            count: 4,
            not_before: None,
            not_after: Some(at(14)),
        }
        .into(),
        Event::Gap(_) => Named {
            reason: DetachedReason(2),
            name: text("warm-up"),
        }
        .into(),
        Event::Named(_) => Misuse {
            kind: MisuseKind::ForeignExternalId,
            thread: thread(),
            attribution: Attribution::Foreign(88),
            value: 88,
            at: at(15),
        }
        .into(),
        Event::Misuse(_) => DeviceSession::Started {
            session: 1,
            version: 130_500,
            at: at(16),
            external_correlation: Some(true),
        }
        .into(),
        Event::DeviceSession(_) => ApiRecord {
            session: 1,
            api: ApiId {
                domain: ApiDomain::Runtime,
                cbid: 211,
                name: None,
            },
            correlation: CorrelationId(1),
            tid: u64::MAX,
            start: None,
            end: Some(at(17)),
            result: 0,
            due: OperationsDue::Many,
        }
        .into(),
        Event::Api(_) => ExternalRecord {
            session: 1,
            kind: 5,
            own_kind: true,
            external_id: u64::MAX,
            correlation: CorrelationId(1),
            beside: Some(at(18)),
        }
        .into(),
        Event::External(_) => operation().into(),
        Event::Operation(_) => Flushed {
            session: 1,
            asked: at(19),
            returned: at(20),
            last: true,
        }
        .into(),
        Event::Flushed(_) => Dropped {
            site: DropSite::CuptiBuffer,
            count: 3,
            at: at(21),
        }
        .into(),
        Event::Dropped(_) => Extent {
            session: 1,
            calls: Some((CorrelationId(u32::MAX), CorrelationId(7))),
            operations: None,
        }
        .into(),
        Event::Extent(_)
        | Event::Synchronization(_)
        | Event::EventRecord(_)
        | Event::GraphNode(_)
        | Event::Graph(_)
        | Event::GraphLaunch(_)
        | Event::Scheduled(_)
        | Event::OsCall(_)
        | Event::SchedulerSession(_)
        | Event::RunQueue(_) => return after_import(event),
        Event::Overhead(_)
        | Event::LaunchAttributes(_)
        | Event::Placement(_)
        | Event::StreamDescribed(_)
        | Event::DeviceDescribed(_)
        | Event::Collected(_) => return after_cause(event),
    })
}

/// The same for what only importers give.
fn after_import(event: &Event) -> Option<Event> {
    Some(match event {
        Event::Extent(_) => Synchronization {
            session: 1,
            correlation: CorrelationId(3),
            kind: SynchronizationKind::StreamWait,
            start: Some(at(22)),
            end: None,
            context: None,
            stream: Some(u32::MAX),
            event: Some(4),
            event_sync: Some(u64::MAX),
            recorded_by: Some(CorrelationId(2)),
        }
        .into(),
        Event::Synchronization(_) => EventRecord {
            session: 1,
            correlation: CorrelationId(2),
            context: Some(1),
            stream: None,
            event: Some(4),
            event_sync: None,
            device: Some(at(23)),
        }
        .into(),
        Event::EventRecord(_) => GraphNode {
            tid: 7,
            at: at(24),
            node: u64::MAX,
            original: Some(5),
        }
        .into(),
        Event::GraphNode(_) => graph(GraphChange::GraphCreated { graph: 3 }),
        Event::Graph(event) => match after_graph(&event.change) {
            Some(change) => graph(change),
            None => GraphLaunch {
                session: 1,
                thread: thread(),
                correlation: CorrelationId(9),
                at: at(25),
                exec: u32::MAX,
                sequence: GraphSequence(12),
            }
            .into(),
        },
        Event::GraphLaunch(_) => Scheduled {
            tid: 7,
            at: at(25),
            cpu: Some(3),
            running: false,
            off: Some(SwitchedOff::Preempted),
            state: None,
        }
        .into(),
        Event::Scheduled(_) => OsCall {
            tid: 7,
            name: text("pthread_cond_wait"),
            start: at(26),
            end: None,
        }
        .into(),
        Event::OsCall(_) => SchedulerSession::Lost {
            tid: 7,
            count: 2,
            not_before: Some(at(27)),
            not_after: None,
        }
        .into(),
        Event::SchedulerSession(_) => RunQueue {
            tid: 7,
            not_before: at(28),
            not_after: at(29),
            waited_ns: u64::MAX,
            ran_ns: 0,
            turns: 3,
        }
        .into(),
        Event::RunQueue(_) => Overhead {
            session: 1,
            kind: OverheadKind::Other(u32::MAX),
            correlation: None,
            thread: Some(7),
            start: at(30),
            end: at(31),
            channel: Some(2),
        }
        .into(),
        _ => return after_cause(event),
    })
}

/// The same for what tells causes apart.
fn after_cause(event: &Event) -> Option<Event> {
    Some(match event {
        Event::Overhead(_) => LaunchAttributes {
            session: 1,
            correlation: CorrelationId(3),
            order: LaunchOrder::Programmatic,
            records_event: true,
        }
        .into(),
        Event::LaunchAttributes(_) => Placement {
            session: 1,
            correlation: CorrelationId(3),
            graph_node: Some(u64::MAX),
            channel: 4,
        }
        .into(),
        Event::Placement(_) => StreamDescribed {
            session: 1,
            device: 0,
            context: 1,
            stream: 7,
            kind: StreamKind::LegacyDefault,
            made: None,
        }
        .into(),
        Event::StreamDescribed(_) => DeviceDescribed {
            device: 0,
            copy_engines: Some(2),
            tenancy: Some(Tenancy::Exclusive),
            multiprocessors: Some(Multiprocessors {
                count: Some(108),
                threads: Some(2_048),
                registers: None,
                shared_bytes: Some(u32::MAX),
                blocks: Some(32),
            }),
        }
        .into(),
        Event::DeviceDescribed(_) => Collected {
            session: 1,
            at: at(32),
            order_calls: true,
            latency: false,
            events: true,
            overheads: false,
            launch_attributes: true,
        }
        .into(),
        // The last of all.
        _ => return None,
    })
}

fn graph(change: GraphChange) -> Event {
    GraphEvent {
        session: 1,
        sequence: GraphSequence(u64::MAX),
        at: at(24),
        tid: 7,
        correlation: Some(CorrelationId(8)),
        attribution: Attribution::Epoch(epoch(8, 1)),
        change,
    }
    .into()
}

/// Every change, one after the other.
fn after_graph(change: &GraphChange) -> Option<GraphChange> {
    let (graph, exec, node) = (3, 4, u64::MAX);
    let kind = GraphNodeKind::Other(99);
    Some(match change {
        GraphChange::GraphCreated { .. } => GraphChange::GraphCloned { graph, original: 2 },
        GraphChange::GraphCloned { .. } => GraphChange::GraphDestroyed { graph },
        GraphChange::GraphDestroyed { .. } => GraphChange::NodeCreated { graph, node, kind },
        GraphChange::NodeCreated { .. } => GraphChange::NodeCloned {
            graph,
            node,
            original_graph: 2,
            original: 1,
            kind: GraphNodeKind::Kernel,
        },
        GraphChange::NodeCloned { .. } => GraphChange::NodeDestroyed { graph, node },
        GraphChange::NodeDestroyed { .. } => GraphChange::ExecCreated { exec, graph },
        GraphChange::ExecCreated { .. } => GraphChange::ExecDestroyed { exec },
        GraphChange::ExecDestroyed { .. } => GraphChange::ExecUpdated { exec, graph },
        GraphChange::ExecUpdated { .. } => GraphChange::NodeUpdated {
            exec,
            node,
            original: None,
        },
        GraphChange::NodeUpdated { .. } => GraphChange::ParametersSet { exec, node: None },
        GraphChange::ParametersSet { .. } => GraphChange::NodeEnabled {
            exec,
            node: Some(node),
            enabled: false,
        },
        GraphChange::NodeEnabled { .. } => GraphChange::Edges {
            graph,
            edges: vec![GraphEdge {
                from: 1,
                to: node,
                kind: EdgeKind::Programmatic,
            }],
            last: true,
        },
        GraphChange::Edges { .. } => GraphChange::Lost { count: 2 },
        GraphChange::Lost { .. } => return None,
    })
}

fn session() -> SessionInfo {
    SessionInfo::new(uuid::Uuid::from_u128(7), "llm", at(5))
}

/// A writer to this file whose session has begun.
fn begun<W: std::io::Write + Send>(file: W) -> Writer<W> {
    let mut writer = Writer::new(file);
    writer.begin(&session()).expect("the header fits");
    writer
}

fn every_event() -> Vec<Observation> {
    let mut all: Vec<Observation> = Vec::new();
    while let Some(event) = after(all.last().map(|observation| &observation.event)) {
        all.push(Observation {
            process: ProcessOrdinal(2),
            event,
        });
    }
    for session in [
        DeviceSession::Absent {
            why: text("libcupti.so: cannot open shared object file"),
            at: at(1),
        },
        DeviceSession::Imported {
            session: 1,
            recorder: Recorder::NsightSystems,
            at: at(1),
        },
        DeviceSession::Ended {
            session: 1,
            at: at(2),
        },
    ] {
        all.push(Observation::live(session));
    }
    for attribution in [
        Attribution::None,
        Attribution::BoundaryWithoutEpoch,
        Attribution::Foreign(u64::MAX),
    ] {
        all.push(Observation::live(Misuse {
            kind: MisuseKind::ScopeAcrossTasks,
            thread: thread(),
            attribution,
            value: u64::MAX,
            at: at(u64::MAX),
        }));
    }
    all
}

fn template_node() -> TemplateNode {
    TemplateNode {
        graph: 3,
        node: u64::MAX,
        order: 2,
        capture: Attribution::Epoch(epoch(8, 1)),
        captured_by: Some(UnwrappedCorrelationId(7)),
        at: at(3),
    }
}

fn row_graph(template: Template) -> RowGraph {
    RowGraph {
        exec: Some(u32::MAX),
        generation: 2,
        replay: Some(211),
        iteration: 1,
        template,
    }
}

fn rows() -> Vec<Row> {
    let unknown = Evidence::Unknown {
        why: Why::NotCollected,
    };
    let stages = Stages {
        declared: Evidence::Observed {
            at: at(1),
            source: TimeSource::RuntimeHook,
        },
        ready: unknown,
        scope_enter: Evidence::Inferred {
            at: at(2),
            rule: Rule::OpenAtFirstLaunch,
        },
        api_enter: Evidence::Bounded {
            not_before: None,
            not_after: Some(at(3)),
            rule: Rule::CallBeforeStart,
        },
        api_exit: unknown,
        queued: unknown,
        submitted: unknown,
        start: unknown,
        end: unknown,
    };
    let row = |binding| Row {
        process: ProcessOrdinal(0),
        call: Some(RowCall {
            session: 1,
            correlation: UnwrappedCorrelationId(u64::MAX),
            api: api(),
            tid: 4242,
            task: None,
            result: 0,
            in_boundary: Some(true),
        }),
        operation: Some(operation()),
        graph: Some(row_graph(Template::Known(template_node()))),
        binding,
        sources: JoinSources {
            external: Some(Attribution::Epoch(epoch(3, 1))),
            callback: None,
            containment: Some(Attribution::None),
            reachable: Some(false),
        },
        stages,
        faults: FaultCode::ALL.to_vec(),
        after_retirement: true,
        supersedes: false,
    };
    vec![
        row(Binding::Bound(epoch(3, 1))),
        row(Binding::Disputed(epoch(3, 1), epoch(4, 2))),
        row(Binding::Unattributed(Unattributed::ForeignThread)),
        Row {
            call: None,
            graph: None,
            ..row(Binding::Lost)
        },
        Row {
            graph: Some(row_graph(Template::Inferred {
                node: template_node(),
                rule: Rule::CaptureOrder,
            })),
            ..row(Binding::Lost)
        },
        Row {
            graph: Some(row_graph(Template::Unknown {
                why: Why::BeforeSession,
            })),
            ..row(Binding::Lost)
        },
    ]
}

fn faults() -> Vec<LooseFault> {
    vec![LooseFault {
        process: ProcessOrdinal(0),
        code: FaultCode::L07,
        epoch: None,
        at: Some(at(9)),
        count: u64::MAX,
        detail: "records were lost".to_owned(),
    }]
}

#[test]
fn every_event_row_and_fault_is_read_back_as_it_was_written() {
    let (observations, rows, faults) = (every_event(), rows(), faults());
    let mut file = Vec::new();
    let mut writer = begun(&mut file);
    writer.observations(&observations).expect("in memory");
    writer.rows(&rows, &faults).expect("in memory");
    writer.finish().expect("in memory");
    drop(writer);

    let mut reader = Reader::new(file.as_slice());
    let mut entries: Vec<Entry> = Vec::new();
    for entry in &mut reader {
        entries.push(entry.expect("readable"));
    }
    let mut expected = vec![Entry::Header(Header::of(&session()))];
    expected.extend(observations.into_iter().map(Entry::Observation));
    expected.extend(rows.into_iter().map(Entry::Row));
    expected.extend(faults.into_iter().map(Entry::Fault));
    expected.push(Entry::End(Counts {
        observations: 58,
        rows: 6,
        faults: 1,
        not_written: 0,
    }));
    assert_eq!(entries, expected);
    assert!(reader.summary().is_complete());
    assert_eq!(reader.summary().bytes, file.len() as u64);
}

#[test]
fn the_lines_have_the_documented_shape() {
    let mut file = Vec::new();
    let mut writer = begun(&mut file);
    let flushed = Flushed {
        session: 1,
        asked: at(19),
        returned: at(20),
        last: false,
    };
    writer
        .observations(&[Observation::live(flushed)])
        .expect("in memory");
    writer.rows(&[], &faults()).expect("in memory");
    writer.finish().expect("in memory");
    drop(writer);
    let text = String::from_utf8(file).expect("JSON is UTF-8");
    let text = text.replace(&Header::of(&session()).writer, "WRITER");
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            r#"{"lineage":{"schema":1,"process":"00000000-0000-0000-0000-000000000007","service":"llm","started_ns":5,"writer":"WRITER"}}"#,
            r#"{"observation":{"process":0,"event":{"flushed":{"session":1,"asked":19,"returned":20,"last":false}}}}"#,
            r#"{"fault":{"process":0,"code":"L07","epoch":null,"at":9,"count":18446744073709551615,"detail":"records were lost"}}"#,
            r#"{"end":{"observations":1,"rows":0,"faults":1,"not_written":0}}"#,
        ]
    );
}

/// Fails after this many bytes, in the middle of a line if it comes to that.
struct FullDisk(usize);

impl std::io::Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let written = bytes.len().min(self.0);
        self.0 -= written;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_said_at_every_call_and_nothing_follows_a_cut_line() {
    let mut writer = begun(FullDisk(300));
    let many: Vec<Observation> = every_event().into_iter().cycle().take(1000).collect();
    let first = writer.observations(&many).expect_err("the disk is full");
    assert!(
        first.to_string().contains("could not be written"),
        "{first}"
    );
    let later = writer.observations(&many[..1]).expect_err("still full");
    assert!(
        later.to_string().contains("after a failed write"),
        "{later}"
    );
    assert!(writer.finish().is_err());
}

#[test]
fn an_entry_too_long_to_be_read_back_is_counted_instead_of_written() {
    let long = Observation::live(Named {
        reason: DetachedReason(1),
        name: text(&"x".repeat(MAX_LINE_BYTES)),
    });
    let mut file = Vec::new();
    let mut writer = begun(&mut file);
    let said = writer.observations(&[long]).expect_err("too long");
    assert!(said.to_string().starts_with("1 entries were not written"));
    writer.finish().expect("the file itself is fine");
    drop(writer);

    let mut reader = Reader::new(file.as_slice());
    assert!(reader.by_ref().all(|entry| entry.is_ok()));
    assert_eq!(reader.summary().not_written, 1);
    assert!(reader.summary().ended && !reader.summary().is_complete());
}

#[test]
fn a_ledger_holds_exactly_one_session() {
    let mut writer = Writer::new(Vec::new());
    assert!(writer.observations(&[]).is_err(), "nothing has begun");
    assert!(writer.finish().is_err(), "nothing has begun");
    writer.begin(&session()).expect("in memory");
    assert!(writer.begin(&session()).is_err(), "it has begun");
    writer.finish().expect("in memory");
    assert!(writer.finish().is_err(), "it is finished");
    assert!(writer.rows(&[], &[]).is_err(), "it is finished");
}
