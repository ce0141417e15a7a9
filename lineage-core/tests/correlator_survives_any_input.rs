//! Observations that no session would give: nothing panics, nothing is given twice or forgotten, and
//! the totals are those of the rows that stand.

mod correlator_support;

use correlator_support::*;
use lineage_core::correlator::Limits;
use lineage_core::fault::{FaultCode, FaultFamily};
use lineage_core::id::{Attribution, CorrelationId, HostNanos, PackedEpoch, TaskId};
use lineage_core::observation::{
    ApiDomain, ApiId, ApiRecord, Call, DeviceSession, Event, Flushed, Gap, GraphChange, GraphEvent,
    GraphLaunch, GraphNodeKind, GraphSequence, LinkKind, Operation, OperationsDue, Scope,
};
use lineage_core::row::Binding;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..400u64, 1 => Just(u64::MAX), 1 => (u64::MAX - 5)..u64::MAX]
}

fn wire() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..12u32, 2 => (u32::MAX - 6)..=u32::MAX, 1 => Just(1 << 31)]
}

fn attribution() -> impl Strategy<Value = Attribution> {
    let bits = prop_oneof![
        Just(0),
        Just(88),
        Just(PackedEpoch::BOUNDARY_WITHOUT_EPOCH.bits()),
        Just(PackedEpoch::BOUNDARY_WITHOUT_EPOCH.bits() + 3),
        (1..6u64).prop_map(|id| PackedEpoch::from(epoch(id)).bits()),
    ];
    bits.prop_map(|bits| PackedEpoch::from_bits(bits).unpack())
}

fn due() -> impl Strategy<Value = OperationsDue> {
    use OperationsDue::{Any, Many, None, One};
    prop_oneof![Just(None), Just(One), Just(Many), Just(Any)]
}

fn domain() -> impl Strategy<Value = ApiDomain> {
    prop_oneof![Just(ApiDomain::Driver), Just(ApiDomain::Runtime)]
}

fn call() -> impl Strategy<Value = Event> {
    let task = option::of((1..3u64).prop_map(TaskId));
    (
        1..4u64,
        wire(),
        time(),
        option::of(time()),
        attribution(),
        due(),
        any::<bool>(),
        task,
        domain(),
        0..2u32,
    )
        .prop_map(
            |(tid, wire, entered, exited, what, due, in_boundary, task, domain, result)| {
                Call {
                    correlation: CorrelationId(wire),
                    exited: exited.map(HostNanos),
                    api: ApiId {
                        domain,
                        cbid: 1,
                        name: None,
                    },
                    due,
                    in_boundary,
                    task,
                    result,
                    ..call_of(tid, wire, 0, what)
                }
                .at_time(entered)
            },
        )
}

trait AtTime {
    fn at_time(self, ns: u64) -> Event;
}

impl AtTime for Call {
    fn at_time(self, ns: u64) -> Event {
        Call {
            entered: HostNanos(ns),
            ..self
        }
        .into()
    }
}

fn record() -> impl Strategy<Value = Event> {
    (
        1..4u64,
        wire(),
        option::of(time()),
        option::of(time()),
        due(),
        domain(),
        0..2u32,
        1..3u32,
    )
        .prop_map(|(tid, wire, start, end, due, domain, result, session)| {
            ApiRecord {
                session,
                start: start.map(HostNanos),
                end: end.map(HostNanos),
                api: ApiId {
                    domain,
                    cbid: 1,
                    name: None,
                },
                due,
                result,
                ..api_of(tid, wire, 0)
            }
            .into()
        })
}

fn operation() -> impl Strategy<Value = Event> {
    (
        wire(),
        option::of(time()),
        option::of(time()),
        option::of(0..3u64),
        1..3u32,
    )
        .prop_map(|(wire, start, end, graph_node, session)| {
            let (start, end) = (start.map(HostNanos), end.map(HostNanos));
            Operation {
                session,
                start,
                end,
                graph_node,
                ..kernel_of(wire, 1, 1)
            }
            .into()
        })
}

fn host() -> impl Strategy<Value = Event> {
    let (tid, id, ns) = (1..4u64, 1..6u64, time());
    (tid, id, ns, time(), 0..9u32, attribution(), 0..6u64).prop_map(
        |(tid, id, ns, later, what, scope, number)| match what {
            0 => declared(tid, id, ns),
            1 => retired(id, ns),
            2 => sent(tid, number, id, ns),
            3 => received(tid, number, id, ns),
            4 => abandoned(number, id, ns),
            5 => linked(
                id,
                1 + number,
                [LinkKind::Merge, LinkKind::Continues][(ns % 2) as usize],
                ns,
            ),
            6 => Gap {
                thread: thread(tid),
                count: 1,
                not_before: (number > 0).then_some(HostNanos(ns)),
                not_after: (number > 1).then_some(HostNanos(later)),
            }
            .into(),
            _ => Scope {
                task: (number > 3).then_some(TaskId(number)),
                boundary: number % 2 == 0,
                ..scope_of(tid, scope, number, ns, later)
            }
            .into(),
        },
    )
}

fn change() -> impl Strategy<Value = GraphChange> {
    let kind = prop_oneof![
        Just(GraphNodeKind::Kernel),
        Just(GraphNodeKind::Conditional),
        Just(GraphNodeKind::Child),
    ];
    (
        0..13u32,
        0..3u32,
        0..3u32,
        0..3u64,
        option::of(0..3u64),
        kind,
    )
        .prop_map(|(what, exec, graph, node, other, kind)| match what {
            0 => GraphChange::GraphCreated { graph },
            1 => GraphChange::GraphCloned {
                graph,
                original: exec,
            },
            2 => GraphChange::GraphDestroyed { graph },
            3 => GraphChange::NodeCreated { graph, node, kind },
            4 | 5 => GraphChange::NodeCloned {
                graph: exec,
                node,
                original_graph: graph,
                original: other.unwrap_or(9),
                kind,
            },
            6 => GraphChange::NodeDestroyed { graph, node },
            7 => GraphChange::ExecCreated { exec, graph },
            8 => GraphChange::ExecDestroyed { exec },
            9 => GraphChange::ExecUpdated { exec, graph },
            10 => GraphChange::NodeUpdated {
                exec,
                node,
                original: other,
            },
            11 => GraphChange::ParametersSet { exec, node: other },
            _ if node == 0 => GraphChange::Lost { count: 1 },
            _ => GraphChange::NodeEnabled {
                exec,
                node: other,
                enabled: node == 1,
            },
        })
}

fn graph() -> impl Strategy<Value = Event> {
    let changed = (
        1..3u32,
        0..60u64,
        time(),
        1..4u64,
        option::of(wire()),
        change(),
    )
        .prop_map(|(session, sequence, ns, tid, wire, change)| {
            Event::from(GraphEvent {
                session,
                sequence: GraphSequence(sequence),
                at: HostNanos(ns),
                tid,
                correlation: wire.map(CorrelationId),
                attribution: Attribution::None,
                change,
            })
        });
    let launched = (1..3u32, 1..4u64, wire(), time(), 0..3u32, 0..70u64).prop_map(
        |(session, tid, wire, ns, exec, sequence)| {
            Event::from(GraphLaunch {
                session,
                thread: thread(tid),
                correlation: CorrelationId(wire),
                at: HostNanos(ns),
                exec,
                sequence: GraphSequence(sequence),
            })
        },
    );
    prop_oneof![3 => changed, 2 => launched]
}

fn event() -> impl Strategy<Value = Event> {
    let flush = (time(), time(), 0..20u32, 1..3u32).prop_map(|(asked, returned, last, session)| {
        let (asked, returned) = (HostNanos(asked), HostNanos(returned));
        Flushed {
            session,
            asked,
            returned,
            last: last == 0,
        }
        .into()
    });
    let session = (1..3u32, time(), any::<bool>()).prop_map(|(session, ns, ends)| {
        if ends {
            DeviceSession::Ended {
                session,
                at: HostNanos(ns),
            }
            .into()
        } else {
            started(session, ns)
        }
    });
    let external = (0..6u64, wire(), option::of(time()))
        .prop_map(|(id, wire, beside)| external_of(id << 24 | 1, wire, beside));
    prop_oneof![
        4 => call(),
        4 => record(),
        2 => external,
        4 => operation(),
        4 => host(),
        4 => graph(),
        2 => flush,
        1 => session,
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (0..8usize, 0..8usize, any::<bool>()).prop_map(|(small, smaller, tight)| {
        let mut limits = Limits::default();
        limits.epsilon_ns = 5;
        if tight {
            limits.open_calls = small;
            limits.joined_calls = smaller;
            limits.lost_calls = smaller;
            limits.unplaced = smaller;
            limits.kept_operations = smaller;
            limits.graph_nodes = small;
            limits.epochs = small;
            limits.handoffs_per_epoch = smaller;
            limits.places_per_epoch = smaller;
            limits.threads = smaller;
            limits.scopes_per_thread = smaller;
            limits.calls_awaiting_scope = smaller;
        }
        limits
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_the_rows_and_the_totals_agree(
        events in vec(event(), 0..80),
        limits in limits(),
    ) {
        let mut run = Run::within(limits);
        run.see(events.clone()).end();
        let totals = run.totals();
        prop_assert_eq!(totals.observations, events.len() as u64);
        prop_assert_eq!(totals.pending, 0);
        let superseding = run.rows.iter().filter(|row| row.supersedes).count() as u64;
        prop_assert_eq!(totals.superseded, superseding);
        prop_assert_eq!(totals.rows + superseding, run.rows.len() as u64);
        let classes = totals.bound + totals.disputed + totals.unattributed.total();
        prop_assert!(classes <= totals.rows);
        let by = totals.bound_by;
        let by_source = by.external_and_callback + by.callback_only + by.external_only + by.containment_only;
        prop_assert_eq!(by_source, totals.bound);

        // Where nothing was taken back, everything can be counted from what was given.
        if superseding == 0 {
            let bound = run.rows.iter().filter(|row| matches!(row.binding, Binding::Bound(_))).count();
            prop_assert_eq!(totals.bound, bound as u64);
            for &code in FaultCode::ALL {
                let rows = run.rows.iter().filter(|row| row.faults.contains(&code)).count() as u64;
                let loose: u64 =
                    run.faults.iter().filter(|fault| fault.code == code).map(|fault| fault.count).sum();
                prop_assert_eq!(totals.faults[code], rows + loose, "{}", code);
            }
            let wrong = |row: &&lineage_core::row::Row| {
                row.faults.iter().any(|code| code.family() == FaultFamily::Wrong)
            };
            prop_assert!(totals.wrong >= run.rows.iter().filter(wrong).count() as u64);
            let operations = run.rows.iter().filter(|row| row.operation.is_some()).count() as u64;
            prop_assert_eq!(totals.operations.total(), operations);
        }
        let operations = events.iter().filter(|event| matches!(event, Event::Operation(_))).count() as u64;
        prop_assert!(totals.operations.total() + totals.duplicates >= operations);
    }
}
