//! Rules of readiness that the scenarios do not play, each by a small recording made by hand.

use lineage_core::id::{Attribution, CorrelationId, HostNanos};
use lineage_core::observation::{
    ApiDomain, ApiId, ApiRecord, Call, Collected, DeviceDescribed, EdgeKind, Event, EventRecord,
    GraphChange, GraphEdge, GraphEvent, GraphLaunch, GraphNodeKind, GraphSequence,
    LaunchAttributes, LaunchOrder, Observation, Operation, OperationsDue, StreamDescribed,
    StreamKind, Synchronization, SynchronizationKind, Tenancy,
};
use lineage_core::readiness::{DependencyKind, Partial, Readiness};
use lineage_core::verdict::{Judge, Life, LongBecause, Settings, VerdictKind};

use crate::correlator_support::{Run, call_of, kernel_of, of, started, thread};

pub(crate) fn at(ns: u64) -> HostNanos {
    HostNanos(ns)
}

pub(crate) fn collected() -> Event {
    Collected {
        session: 1,
        at: at(1),
        order_calls: true,
        latency: true,
        events: true,
        overheads: true,
        launch_attributes: true,
    }
    .into()
}

pub(crate) fn stream(number: u32, kind: StreamKind) -> Event {
    StreamDescribed {
        session: 1,
        device: 0,
        context: 1,
        stream: number,
        kind,
        made: Some(at(1)),
    }
    .into()
}

/// A call of 10 ns.
pub(crate) fn api(name: &str, correlation: u32, enter: u64, due: OperationsDue) -> Event {
    ApiRecord {
        session: 1,
        api: ApiId {
            domain: ApiDomain::Driver,
            cbid: 1,
            name: Some(name.into()),
        },
        correlation: CorrelationId(correlation),
        tid: 1,
        start: Some(at(enter)),
        end: Some(at(enter + 10)),
        result: 0,
        due,
    }
    .into()
}

fn kernel(correlation: u32, stream: u32, start: u64, end: u64) -> Event {
    Operation {
        stream,
        ..kernel_of(correlation, start, end)
    }
    .into()
}

/// A launch by a call of 10 ns: name, id, entry; stream, start, end.
pub(crate) fn launch(
    name: &str,
    correlation: u32,
    enter: u64,
    stream: u32,
    start: u64,
    end: u64,
) -> [Event; 2] {
    [
        api(name, correlation, enter, OperationsDue::One),
        kernel(correlation, stream, start, end),
    ]
}

pub(crate) const PLAIN: &str = "cuLaunchKernel";

pub(crate) fn synchronised(correlation: u32, enter: u64, stream: Option<u32>) -> [Event; 2] {
    let kind = match stream {
        Some(_) => SynchronizationKind::Stream,
        None => SynchronizationKind::Context,
    };
    let of = Synchronization {
        session: 1,
        correlation: CorrelationId(correlation),
        kind,
        start: Some(at(enter)),
        end: Some(at(enter + 10)),
        context: Some(1),
        stream,
        event: None,
        event_sync: None,
        recorded_by: None,
    };
    [
        api(
            "cuStreamSynchronize",
            correlation,
            enter,
            OperationsDue::None,
        ),
        of.into(),
    ]
}

/// Lives by the correlation id of their operations' calls and their starts.
pub(crate) struct Judged {
    lives: Vec<(u32, Life)>,
    ids: Vec<u32>,
}

pub(crate) fn judged(events: impl IntoIterator<Item = Event>) -> Judged {
    let mut all = vec![started(1, 1)];
    all.extend(events);
    let observations: Vec<Observation> = all.into_iter().map(Observation::live).collect();
    let mut run = Run::new();
    for observation in &observations {
        run.observe(observation);
    }
    run.end();
    let lives = Judge::new(Settings::default().epsilon_ns(0)).judge(&observations, &run.rows);
    let id = |row: usize| {
        run.rows[row]
            .operation
            .as_ref()
            .map_or(0, |of| of.correlation.0)
    };
    Judged {
        ids: (0..run.rows.len()).map(id).collect(),
        lives: lives.into_iter().map(|life| (id(life.row), life)).collect(),
    }
}

impl Judged {
    #[track_caller]
    fn readiness(&self, correlation: u32) -> Readiness {
        let life = self.lives.iter().find(|(id, _)| *id == correlation);
        life.and_then(|(_, life)| life.readiness).expect("judged")
    }

    /// Not before then, behind that launch.
    #[track_caller]
    pub(crate) fn behind(&self, correlation: u32) -> Option<(u64, DependencyKind, Option<u32>)> {
        let (at, by) = self.readiness(correlation).not_before?;
        Some((at.0, by.kind, by.row.map(|row| self.ids[row])))
    }

    #[track_caller]
    pub(crate) fn partial(&self, correlation: u32) -> Vec<Partial> {
        self.readiness(correlation).partial.iter().collect()
    }
}

#[test]
fn a_stream_waits_for_its_earlier_work_and_for_no_other_streams() {
    let of = judged(
        [
            collected(),
            stream(7, StreamKind::NonBlocking),
            stream(8, StreamKind::NonBlocking),
        ]
        .into_iter()
        .chain(launch(PLAIN, 1, 100, 7, 120, 500))
        .chain(launch(PLAIN, 2, 200, 8, 220, 900))
        .chain(launch(PLAIN, 3, 300, 7, 510, 600)),
    );
    assert_eq!(
        of.behind(3),
        Some((500, DependencyKind::SameStream, Some(1)))
    );
    assert_eq!(of.partial(3), []);
    assert_eq!((of.behind(2), of.partial(2)), (None, vec![]));
}

#[test]
fn what_overlaps_refutes_the_order_and_is_no_bound() {
    let of = judged(
        [collected(), stream(7, StreamKind::NonBlocking)]
            .into_iter()
            .chain(launch(PLAIN, 1, 100, 7, 120, 200))
            .chain(launch(PLAIN, 2, 130, 7, 210, 500))
            // It begins before its predecessor has ended.
            .chain(launch(PLAIN, 3, 150, 7, 450, 600)),
    );
    assert_eq!(
        of.behind(3),
        Some((200, DependencyKind::SameStream, Some(1)))
    );
    assert_eq!(of.partial(3), [Partial::OverlapObserved]);
}

#[test]
fn the_legacy_stream_is_ordered_with_blocking_streams_only() {
    let of = judged(
        [
            collected(),
            stream(1, StreamKind::LegacyDefault),
            stream(7, StreamKind::Blocking),
            stream(8, StreamKind::NonBlocking),
        ]
        .into_iter()
        .chain(launch(PLAIN, 1, 100, 7, 120, 500))
        .chain(launch(PLAIN, 2, 120, 8, 130, 900))
        .chain(launch(PLAIN, 3, 140, 1, 510, 600))
        .chain(launch(PLAIN, 4, 160, 7, 610, 700)),
    );
    assert_eq!(
        of.behind(3),
        Some((500, DependencyKind::DefaultStream, Some(1)))
    );
    assert_eq!(
        of.behind(4),
        Some((600, DependencyKind::DefaultStream, Some(3)))
    );
    assert_eq!((of.partial(3), of.partial(4)), (vec![], vec![]));
}

#[test]
fn streams_of_unknown_kind_may_be_ordered_with_each_other() {
    let of = judged(
        [collected()]
            .into_iter()
            .chain(launch(PLAIN, 1, 100, 7, 120, 500))
            .chain(launch(PLAIN, 2, 200, 8, 220, 900)),
    );
    assert!(of.partial(2).contains(&Partial::StreamKindUnknown));
}

/// An event whose device time is known is over then; without that time, the end of what was before it
/// in its stream bounds it, and it may have happened later. Either way what was before it is named: the
/// host's time while that ran cost nothing.
#[test]
fn an_event_is_what_was_recorded_before_the_wait() {
    for (device, expected, partial) in [
        (Some(640), (640, DependencyKind::Event, Some(1)), &[][..]),
        (
            None,
            (500, DependencyKind::Event, Some(1)),
            &[Partial::EventUntimed],
        ),
    ] {
        let record = EventRecord {
            session: 1,
            correlation: CorrelationId(2),
            context: Some(1),
            stream: Some(7),
            event: Some(4),
            event_sync: Some(11),
            device: device.map(at),
        };
        let wait = Synchronization {
            session: 1,
            correlation: CorrelationId(4),
            kind: SynchronizationKind::StreamWait,
            start: None,
            end: None,
            context: Some(1),
            stream: Some(8),
            event: Some(4),
            event_sync: Some(11),
            recorded_by: None,
        };
        let of = judged(
            [
                collected(),
                stream(7, StreamKind::NonBlocking),
                stream(8, StreamKind::NonBlocking),
            ]
            .into_iter()
            .chain(launch(PLAIN, 1, 100, 7, 120, 500))
            .chain([
                api("cuEventRecord", 2, 130, OperationsDue::None),
                record.into(),
            ])
            // Behind the record: not waited for.
            .chain(launch(PLAIN, 3, 150, 7, 510, 2_000))
            .chain([
                api("cuStreamWaitEvent", 4, 170, OperationsDue::None),
                wait.into(),
            ])
            .chain(launch(PLAIN, 5, 190, 8, 700, 800)),
        );
        assert_eq!(of.behind(5), Some(expected));
        assert_eq!(of.partial(5), partial);
        // What is behind the record in its own stream.
        assert_eq!(of.partial(3), partial);
    }
    // A wait that left no record may be for anything.
    let of = judged(
        [collected(), stream(7, StreamKind::NonBlocking)]
            .into_iter()
            .chain([api("cuStreamWaitEvent", 1, 100, OperationsDue::None)])
            .chain(launch(PLAIN, 2, 120, 7, 140, 200)),
    );
    assert_eq!(of.partial(2), [Partial::EventUnknown]);
}

/// What was on a stream before the recording is unknown until a synchronisation, or until one
/// operation has waited for it.
#[test]
fn a_synchronisation_is_a_clean_point_and_a_strict_operation_hides_what_was_before_it() {
    let unknown = |of: &Judged, id| of.partial(id).contains(&Partial::BeforeRecording);
    let described = StreamDescribed {
        session: 1,
        device: 0,
        context: 1,
        stream: 7,
        kind: StreamKind::NonBlocking,
        made: None,
    };
    let of = judged(
        [collected(), described.clone().into()]
            .into_iter()
            .chain(launch(PLAIN, 1, 100, 7, 120, 200))
            .chain(launch(PLAIN, 2, 130, 7, 210, 300)),
    );
    assert!(unknown(&of, 1) && !unknown(&of, 2));
    assert_eq!(of.partial(2), []);
    for waits_for in [Some(7), None] {
        let of = judged(
            [collected(), described.clone().into()]
                .into_iter()
                // The stream is used, and what is behind it unknown again.
                .chain(launch("cuLaunchKernelEx", 1, 100, 7, 120, 200))
                .chain(synchronised(2, 220, waits_for))
                .chain(launch(PLAIN, 3, 240, 7, 260, 300)),
        );
        assert_eq!(of.partial(3), [], "{waits_for:?}");
        // The wait returned at 230.
        assert_eq!(of.readiness(3).complete_since, Some(at(230)));
        assert_eq!(of.readiness(1).complete_since, None);
    }
}

#[test]
fn a_launch_with_attributes_is_ordered_only_if_they_are_known_and_strict() {
    let attributes = |order| LaunchAttributes {
        session: 1,
        correlation: CorrelationId(2),
        order,
        records_event: false,
    };
    let with = |more: Option<LaunchAttributes>| {
        judged(
            [collected(), stream(7, StreamKind::NonBlocking)]
                .into_iter()
                .chain(more.map(Event::from))
                .chain(launch(PLAIN, 1, 100, 7, 120, 500))
                .chain(launch("cuLaunchKernelEx", 2, 130, 7, 510, 600)),
        )
    };
    let strict = with(Some(attributes(LaunchOrder::Strict)));
    assert_eq!(
        strict.behind(2),
        Some((500, DependencyKind::SameStream, Some(1)))
    );
    assert_eq!(strict.partial(2), []);
    for (of, reason) in [
        (with(None), Partial::AttributesUnknown),
        (
            with(Some(attributes(LaunchOrder::Programmatic))),
            Partial::Programmatic,
        ),
    ] {
        assert_eq!((of.behind(2), of.partial(2)), (None, vec![reason]));
        // It may have waited inside.
        assert_eq!(of.readiness(2).not_after, Some(at(600)));
    }
}

#[test]
fn what_leaves_no_record_makes_what_follows_partial() {
    for (name, reason) in [
        ("cuStreamWaitValue32_v2", Partial::Semaphore),
        ("cuLaunchHostFunc", Partial::HostFunction),
        ("cuMemPrefetchAsync", Partial::HiddenWork),
        ("cuGreenCtxStreamCreate", Partial::GreenContext),
        ("cuCtxWaitEvent", Partial::GreenContext),
        ("cuSomethingNew", Partial::UnknownFunction),
    ] {
        let of = judged(
            [collected(), stream(7, StreamKind::NonBlocking)]
                .into_iter()
                .chain(launch(PLAIN, 1, 100, 7, 120, 200))
                .chain([api(name, 2, 130, OperationsDue::None)])
                .chain(launch(PLAIN, 3, 150, 7, 210, 300)),
        );
        assert_eq!(of.partial(1), [], "{name}");
        assert_eq!(of.partial(3), [reason], "{name}");
    }
    // In one stream an allocation in its order waits for nothing else.
    for (second, expected) in [(7, vec![]), (8, vec![Partial::PooledAllocation])] {
        let of = judged(
            [
                collected(),
                stream(7, StreamKind::NonBlocking),
                stream(8, StreamKind::NonBlocking),
            ]
            .into_iter()
            .chain(launch(PLAIN, 1, 100, second, 120, 200))
            .chain([api("cuMemAllocAsync", 2, 130, OperationsDue::None)])
            .chain(launch(PLAIN, 3, 150, 7, 210, 300)),
        );
        assert_eq!(of.partial(3), expected);
    }
}

#[test]
fn without_order_calls_nothing_is_complete() {
    let of = judged(launch(PLAIN, 1, 100, 7, 120, 200));
    assert!(of.partial(1).contains(&Partial::OrderCallsNotCollected));
}

/// A graph of four nodes: 1 → empty 2 → 3, and 4 apart. It runs as a launch of executable graph 9,
/// whose nodes are 21 to 24.
pub(crate) fn graph(edges_known: bool) -> Vec<Event> {
    let change = |change| -> Event {
        GraphEvent {
            session: 1,
            sequence: GraphSequence(1),
            at: at(2),
            tid: 1,
            correlation: None,
            attribution: Attribution::None,
            change,
        }
        .into()
    };
    let kinds = [
        GraphNodeKind::Kernel,
        GraphNodeKind::Empty,
        GraphNodeKind::Kernel,
        GraphNodeKind::Kernel,
    ];
    let mut out = vec![change(GraphChange::GraphCreated { graph: 8 })];
    for (node, kind) in (11..).zip(kinds) {
        out.push(change(GraphChange::NodeCreated {
            graph: 8,
            node,
            kind,
        }));
    }
    if edges_known {
        let edge = |from, to| GraphEdge {
            from,
            to,
            kind: EdgeKind::Completion,
        };
        out.push(change(GraphChange::Edges {
            graph: 8,
            edges: vec![edge(11, 12), edge(12, 13)],
            last: true,
        }));
    }
    for (node, kind) in (21..).zip(kinds) {
        out.push(change(GraphChange::NodeCloned {
            graph: 9,
            node,
            original_graph: 8,
            original: node - 10,
            kind,
        }));
    }
    out.push(change(GraphChange::ExecCreated { exec: 9, graph: 8 }));
    out
}

pub(crate) fn node(correlation: u32, node: u64, start: u64, end: u64) -> Event {
    Operation {
        graph_node: Some(node),
        graph: Some(9),
        ..kernel_of(correlation, start, end)
    }
    .into()
}

pub(crate) fn graph_launch(correlation: u32, enter: u64) -> Vec<Event> {
    let call = Call {
        api: ApiId {
            domain: ApiDomain::Driver,
            cbid: 1,
            name: Some("cuGraphLaunch".into()),
        },
        due: OperationsDue::Many,
        ..call_of(1, correlation, enter, of(1))
    };
    let launch = GraphLaunch {
        session: 1,
        thread: thread(1),
        correlation: CorrelationId(correlation),
        at: at(enter),
        exec: 9,
        sequence: GraphSequence(1),
    };
    vec![
        crate::correlator_support::declared(1, 1, 3),
        call.into(),
        launch.into(),
        api("cuGraphLaunch", correlation, enter, OperationsDue::Many),
    ]
}

/// Numbers of nodes in the order of their starts, with the readiness of each.
fn of_launch(of: &Judged, correlation: u32) -> Vec<(Option<u64>, Vec<Partial>)> {
    let mut lives: Vec<&Life> = of
        .lives
        .iter()
        .filter(|(id, _)| *id == correlation)
        .map(|(_, life)| life)
        .collect();
    lives.sort_by_key(|life| life.segments.last().map(|of| of.from));
    let readiness = lives.into_iter().filter_map(|life| life.readiness);
    readiness
        .map(|of| {
            let not_before = of.not_before.map(|(at, _)| at.0);
            (not_before, of.partial.iter().collect())
        })
        .collect()
}

#[test]
fn inside_a_graph_only_edges_order_and_its_roots_wait_for_the_stream() {
    let of = judged(
        [collected(), stream(7, StreamKind::NonBlocking)]
            .into_iter()
            .chain(graph(true))
            .chain(launch(PLAIN, 1, 100, 7, 120, 500))
            .chain(graph_launch(2, 200))
            // 21 from 510, 24 beside it, 23 behind 21 through the empty node.
            .chain([
                node(2, 21, 510, 600),
                node(2, 24, 520, 900),
                node(2, 23, 610, 700),
            ])
            .chain(launch(PLAIN, 3, 300, 7, 910, 950)),
    );
    assert_eq!(
        of_launch(&of, 2),
        [
            (Some(500), vec![]),
            (Some(500), vec![]),
            // Behind node 21, though 24 runs on.
            (Some(600), vec![]),
        ]
    );
    // What follows waits for all of it.
    assert_eq!(
        of.behind(3).map(|of| (of.0, of.1)),
        Some((900, DependencyKind::EarlierGraph))
    );
    assert_eq!(of.partial(3), []);
}

#[test]
fn a_graph_whose_edges_are_not_known_is_ordered_by_its_stream_only() {
    let of = judged(
        [collected(), stream(7, StreamKind::NonBlocking)]
            .into_iter()
            .chain(graph(false))
            .chain(launch(PLAIN, 1, 100, 7, 120, 500))
            .chain(graph_launch(2, 200))
            .chain([node(2, 21, 510, 600), node(2, 23, 610, 700)])
            .chain(launch(PLAIN, 3, 300, 7, 710, 950)),
    );
    let unknown = vec![Partial::GraphEdgesUnknown];
    assert_eq!(
        of_launch(&of, 2),
        [(Some(500), unknown.clone()), (Some(500), unknown)]
    );
    assert_eq!(of.partial(3), [Partial::GraphNodesUnseen]);
}

/// Twenty runs of 40 ns, and one of 400 of the same kind: whether it is said to be the kernel's own
/// doing, and if not, what else may have been.
#[test]
fn a_long_kernel_is_blamed_on_nothing_that_may_have_been_something_else() {
    let long = |name: &str, tenancy: Option<Tenancy>, beside: Option<(u64, u64)>| {
        let named = |correlation, start, end| -> Event {
            Operation {
                stream: 7,
                name: Some(name.into()),
                ..kernel_of(correlation, start, end)
            }
            .into()
        };
        let device = DeviceDescribed {
            device: 0,
            copy_engines: None,
            tenancy,
            multiprocessors: None,
        };
        let usual = (1..=20).flat_map(|number| {
            let enter = u64::from(number) * 1_000;
            [
                api(PLAIN, number, enter, OperationsDue::One),
                named(number, enter + 20, enter + 60),
            ]
        });
        let last = [
            api(PLAIN, 21, 30_000, OperationsDue::One),
            named(21, 30_020, 30_420),
        ];
        let other = beside.map(|(start, end)| launch(PLAIN, 22, 29_000, 8, start, end));
        let of = judged(
            [
                collected(),
                device.into(),
                stream(7, StreamKind::NonBlocking),
                stream(8, StreamKind::NonBlocking),
            ]
            .into_iter()
            .chain(usual)
            .chain(other.into_iter().flatten())
            .chain(last),
        );
        let life = of.lives.into_iter().find(|(id, _)| *id == 21);
        let (_, life) = life.expect("judged");
        let verdict = life.segments.last().expect("it ran").verdict.kind();
        assert_eq!(life.usual, Some((40, 20 + 1)));
        (verdict, life.long_because)
    };
    let own = Some(Tenancy::Exclusive);
    let executing = VerdictKind::Executing;
    assert_eq!(
        long("gemm", own, None),
        (VerdictKind::LongerThanItsKind, None)
    );
    for (name, tenancy, beside, because) in [
        ("gemm", None, None, LongBecause::Tenancy),
        ("gemm", own, Some((29_020, 30_030)), LongBecause::Overlapped),
        ("ncclAllReduce", own, None, LongBecause::Collective),
    ] {
        assert_eq!(long(name, tenancy, beside), (executing, Some(because)));
    }
}
