//! Whatever the observations: each row has exactly one life, and its segments sum to the nanosecond.

use std::collections::BTreeSet;

use lineage_core::correlator::Limits;
use lineage_core::fault::FaultFamily;
use lineage_core::id::{Attribution, CorrelationId, HostNanos};
use lineage_core::observation::{
    ApiDomain, ApiId, ApiRecord, Call, Collected, EdgeKind, Event, EventRecord, GraphChange,
    GraphEdge, GraphEvent, GraphNodeKind, GraphSequence, LaunchAttributes, LaunchOrder, Mark,
    Observation, Operation, OperationsDue, Overhead, OverheadKind, Placement, Scheduled,
    SchedulerSession, StreamDescribed, StreamKind, SwitchedOff, Synchronization,
    SynchronizationKind,
};
use lineage_core::row::Row;
use lineage_core::verdict::{Judge, Settings, Stage, Unsegmented};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::correlator_support::{
    Run, call_of, declared, epoch, marked, of, received, scope_of, sent, thread,
};

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 1..2_000u64, 1 => Just(u64::MAX), 1 => (u64::MAX - 5)..u64::MAX]
}

fn at() -> impl Strategy<Value = HostNanos> {
    time().prop_map(HostNanos)
}

fn wire() -> impl Strategy<Value = CorrelationId> {
    (1..16u32).prop_map(CorrelationId)
}

const NAMES: [&str; 12] = [
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuGraphLaunch",
    "cuStreamWaitEvent",
    "cuEventRecord",
    "cuStreamSynchronize",
    "cuMemAlloc_v2",
    "cuMemAllocAsync",
    "cuStreamWaitValue32_v2",
    "cuLaunchHostFunc",
    "cuMemcpyHtoDAsync_v2",
    "cuSomethingNew",
];

fn api() -> impl Strategy<Value = ApiId> {
    option::of(0..NAMES.len()).prop_map(|name| ApiId {
        domain: ApiDomain::Driver,
        cbid: 1,
        name: name.map(|name| NAMES[name].into()),
    })
}

fn due() -> impl Strategy<Value = OperationsDue> {
    use OperationsDue::{Any, Many, None, One};
    prop_oneof![1 => Just(None), 4 => Just(One), 1 => Just(Many), 1 => Just(Any)]
}

fn api_record() -> impl Strategy<Value = Event> {
    (
        wire(),
        1..4u64,
        option::of(at()),
        option::of(at()),
        api(),
        due(),
    )
        .prop_map(|(correlation, tid, start, end, api, due)| {
            ApiRecord {
                session: 1,
                api,
                correlation,
                tid,
                start,
                end,
                result: 0,
                due,
            }
            .into()
        })
}

fn operation() -> impl Strategy<Value = Event> {
    let times = [
        option::of(at()),
        option::of(at()),
        option::of(at()),
        option::of(at()),
    ];
    let node = option::of(1..5u64);
    (wire(), times, 1..4u32, node, 0..2u32).prop_map(
        |(correlation, [queued, submitted, start, end], stream, node, device)| {
            Operation {
                correlation,
                device,
                stream,
                queued,
                submitted,
                start,
                end,
                graph_node: node,
                graph: node.map(|_| 9),
                ..crate::correlator_support::kernel_of(1, 1, 2)
            }
            .into()
        },
    )
}

/// Whole launches, so that not everything is broken.
fn launch() -> impl Strategy<Value = Vec<Event>> {
    let lengths = [0..200u64, 0..200u64, 0..200u64, 0..200u64];
    (
        wire(),
        1..4u64,
        1..1_500u64,
        lengths,
        1..4u32,
        1..4u64,
        api(),
    )
        .prop_map(
            |(correlation, tid, enter, [call, queue, wait, run], stream, id, api)| {
                let exit = enter + call;
                let (submitted, start) = (exit + queue, exit + queue + wait);
                let host = Call {
                    api: api.clone(),
                    correlation,
                    exited: Some(HostNanos(exit)),
                    ..call_of(tid, 1, enter, of(id))
                };
                let record = ApiRecord {
                    session: 1,
                    api,
                    correlation,
                    tid,
                    start: Some(HostNanos(enter)),
                    end: Some(HostNanos(exit)),
                    result: 0,
                    due: OperationsDue::One,
                };
                let operation = Operation {
                    correlation,
                    stream,
                    queued: (queue % 2 == 0).then_some(HostNanos(exit)),
                    submitted: (queue % 3 == 0).then_some(HostNanos(submitted)),
                    ..crate::correlator_support::kernel_of(1, start, start + run)
                };
                vec![host.into(), record.into(), operation.into()]
            },
        )
}

fn order() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![
        Just(SynchronizationKind::StreamWait),
        Just(SynchronizationKind::Stream),
        Just(SynchronizationKind::Context),
    ];
    let stream = option::of(1..4u32);
    let wait = (
        wire(),
        kind,
        stream.clone(),
        option::of(1..4u64),
        option::of(at()),
    )
        .prop_map(|(correlation, kind, stream, event_sync, at)| {
            Synchronization {
                session: 1,
                correlation,
                kind,
                start: at,
                end: at,
                context: stream,
                stream,
                event: None,
                event_sync,
                recorded_by: None,
            }
            .into()
        });
    let record = (wire(), stream, option::of(1..4u64), option::of(at())).prop_map(
        |(correlation, stream, event_sync, device)| {
            EventRecord {
                session: 1,
                correlation,
                context: Some(1),
                stream,
                event: None,
                event_sync,
                device,
            }
            .into()
        },
    );
    let edges = (1..5u64, 1..5u64, any::<bool>()).prop_map(|(from, to, last)| GraphChange::Edges {
        graph: 8,
        edges: vec![GraphEdge {
            from: from + 10,
            to: to + 10,
            kind: EdgeKind::Completion,
        }],
        last,
    });
    let cloned = (1..5u64, 0..3usize).prop_map(|(node, kind)| GraphChange::NodeCloned {
        graph: 9,
        node,
        original_graph: 8,
        original: node + 10,
        kind: [
            GraphNodeKind::Kernel,
            GraphNodeKind::Empty,
            GraphNodeKind::Host,
        ][kind],
    });
    let graph = prop_oneof![edges, cloned].prop_map(|change| {
        GraphEvent {
            session: 1,
            sequence: GraphSequence(1),
            at: HostNanos(1),
            tid: 1,
            correlation: None,
            attribution: Attribution::None,
            change,
        }
        .into()
    });
    let described = (1..4u32, 0..4usize).prop_map(|(stream, kind)| {
        StreamDescribed {
            session: 1,
            device: 0,
            context: 1,
            stream,
            kind: [
                StreamKind::LegacyDefault,
                StreamKind::PerThreadDefault,
                StreamKind::Blocking,
                StreamKind::NonBlocking,
            ][kind],
            made: None,
        }
        .into()
    });
    let collected = at().prop_map(|at| {
        Collected {
            session: 1,
            at,
            order_calls: true,
            latency: true,
            events: true,
            overheads: true,
            launch_attributes: true,
        }
        .into()
    });
    prop_oneof![wait, record, graph, described, collected]
}

fn cause() -> impl Strategy<Value = Event> {
    let overhead = (at(), at(), 1..4u64).prop_map(|(start, end, tid)| {
        Overhead {
            session: 1,
            kind: OverheadKind::LazyFunctionLoading,
            correlation: None,
            thread: Some(tid),
            start,
            end,
            channel: None,
        }
        .into()
    });
    let switch = (1..4u64, at(), 0..3usize).prop_map(|(tid, at, how)| {
        Scheduled {
            tid,
            at,
            cpu: None,
            running: how == 0,
            off: [None, Some(SwitchedOff::Preempted), None][how],
            state: None,
        }
        .into()
    });
    let watched = (1..4u64, at()).prop_map(|(tid, at)| {
        SchedulerSession::Watched {
            tid,
            at,
            running: Some(true),
        }
        .into()
    });
    let ended = at().prop_map(|at| SchedulerSession::Ended { at }.into());
    let attributes = wire().prop_map(|correlation| {
        LaunchAttributes {
            session: 1,
            correlation,
            order: LaunchOrder::Strict,
            records_event: false,
        }
        .into()
    });
    let placement = wire().prop_map(|correlation| {
        Placement {
            session: 1,
            correlation,
            graph_node: None,
            channel: 1,
        }
        .into()
    });
    prop_oneof![overhead, switch, watched, ended, attributes, placement]
}

fn host() -> impl Strategy<Value = Event> {
    let id = 1..4u64;
    prop_oneof![
        (1..4u64, id.clone(), time()).prop_map(|(tid, id, at)| declared(tid, id, at)),
        (1..4u64, id.clone(), time()).prop_map(|(tid, id, at)| marked(tid, id, Mark::Ready, at)),
        (1..4u64, id.clone(), time()).prop_map(|(tid, id, at)| marked(
            tid,
            id,
            Mark::BatchFormed,
            at
        )),
        (1..4u64, id.clone(), time()).prop_map(|(tid, id, at)| sent(tid, id, id, at)),
        (1..4u64, id.clone(), time()).prop_map(|(tid, id, at)| received(tid, id, id, at)),
        (1..4u64, id, 1..9u64, time(), time()).prop_map(|(tid, id, token, entered, exited)| {
            scope_of(tid, of(id), token, entered, exited).into()
        }),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = prop_oneof![
        4 => launch(),
        2 => operation().prop_map(|of| vec![of]),
        2 => api_record().prop_map(|of| vec![of]),
        2 => order().prop_map(|of| vec![of]),
        2 => cause().prop_map(|of| vec![of]),
        3 => host().prop_map(|of| vec![of]),
    ];
    vec(one, 0..24).prop_map(|all| all.into_iter().flatten().collect())
}

/// Times that were observed of a row's life before its start.
fn observed(events: &[Event], row: &Row) -> BTreeSet<u64> {
    let stages = &row.stages;
    let operation = row.operation.as_ref().expect("asked of operations only");
    let own = [
        stages.declared.at(),
        stages.ready.at(),
        stages.scope_enter.at(),
        stages.api_enter.at(),
        stages.api_exit.at(),
        operation.queued,
        operation.submitted,
        operation.start,
    ];
    let others = events.iter().filter_map(|event| match event {
        Event::Declared(of) => Some(of.at),
        Event::Marked(of) => Some(of.at),
        Event::Sent(of) => Some(of.at),
        Event::Received(of) => Some(of.at),
        Event::Api(of) => of.end,
        Event::Call(of) => of.exited,
        _ => None,
    });
    let all = own.into_iter().flatten().chain(others);
    all.map(|at| at.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn segments_of_every_row_sum_and_the_others_are_counted(events in events()) {
        let observations: Vec<Observation> =
            events.iter().cloned().map(Observation::live).collect();
        let mut run = Run::within(Limits::default());
        for observation in &observations {
            run.observe(observation);
        }
        run.end();
        let lives = Judge::new(Settings::default().epsilon_ns(10)).judge(&observations, &run.rows);
        let superseding = run.rows.iter().filter(|row| row.supersedes).count();
        prop_assert!(lives.len() <= run.rows.len());
        prop_assert!(lives.len() + superseding >= run.rows.len());
        for life in &lives {
            let row = &run.rows[life.row];
            let broken = row.faults.iter().any(|code| code.family() == FaultFamily::Time);
            let times = row.operation.as_ref().map(|of| of.start.zip(of.end));
            let expected = match (times, broken) {
                (None, _) => Some("no operation"),
                (_, true) => Some("time fault"),
                (Some(None), _) => Some("no times"),
                _ => None,
            };
            let said = life.unsegmented.map(|why| match why {
                Unsegmented::NoOperation => "no operation",
                Unsegmented::NoTimes => "no times",
                Unsegmented::TimeFault(code) => {
                    assert!(row.faults.contains(&code), "{code} is one of its faults");
                    "time fault"
                }
                _ => "something else",
            });
            prop_assert_eq!(said, expected);
            prop_assert!(life.is_exact(), "{:#?}", life);
            let Some(Some((start, end))) = times.filter(|_| expected.is_none()) else {
                prop_assert!(life.segments.is_empty());
                continue;
            };
            // What the whole is, worked out apart from the judge.
            let sum: u128 = life.segments.iter().map(|of| u128::from(of.to.0 - of.from.0)).sum();
            let first = life.segments.first().map_or(end, |of| of.from);
            prop_assert_eq!(sum, u128::from(end.0 - first.0));
            if let Some(last) = life.segments.last() {
                prop_assert_eq!(last.to, end);
                let runs = last.stage == Stage::Executing && last.from == start;
                prop_assert!(runs || start == end, "{:#?}", life);
                prop_assert!(observed(&events, row).contains(&first.0));
            }
            for two in life.segments.windows(2) {
                prop_assert_eq!(two[0].to, two[1].from);
                prop_assert!(two[0].from < two[0].to);
            }
            // Nothing is said of a time after the start but that it ran.
            let early = life.segments.iter().filter(|of| of.stage != Stage::Executing);
            prop_assert!(early.clone().all(|of| of.to <= start));
            if let (Some(enter), true) = (row.stages.api_enter.at(), first <= start)
                && enter <= start
            {
                prop_assert!(first <= enter, "its life begins with its call at the latest");
            }
        }
    }
}

/// An order that is refuted is no bound; a row without a call has the time it ran and no more.
#[test]
fn an_operation_without_a_call_has_the_time_it_ran() {
    let kernel = crate::correlator_support::kernel(5, 100, 140);
    let observations = vec![Observation::live(kernel)];
    let mut run = Run::new();
    run.observe(&observations[0]).end();
    let lives = Judge::default().judge(&observations, &run.rows);
    assert_eq!(lives.len(), 1);
    assert_eq!(lives[0].segments.len(), 1);
    assert_eq!(lives[0].whole_ns(), 40);
    assert!(!lives[0].has_useful_readiness());
    let _ = (thread(1), epoch(1));
}
