//! A session tells what becomes of graphs, in the order in which it happens, and which executable graph
//! each launch was of. What the program did is known from its own handles, whose ids the test asks for
//! itself.
#![cfg(all(target_os = "linux", feature = "record"))]

use lineage_core::observation::{GraphChange, GraphEvent, GraphNodeKind, OperationsDue};
use lineage_core::{Attribution, Epoch};
use lineage_cupti::Cupti;
use lineage_sim::{Config, CuptiVersion, isolated};

mod common;
use common::gpu::{self, Program};
use common::graphs::{exec_id, graph_id, node_id};

const KERNEL: GraphNodeKind = GraphNodeKind::Kernel;

fn setup(version: CuptiVersion) -> Program {
    let (_, program) = Program::on(Config::default().cupti_version(version));
    program
}

fn changes(events: &[&GraphEvent]) -> Vec<GraphChange> {
    events.iter().map(|event| event.change.clone()).collect()
}

fn of(epoch: &Epoch) -> Attribution {
    Attribution::Epoch(epoch.id().expect("recording"))
}

/// `(node, original)` of the copies.
fn copies(changes: &[GraphChange]) -> Vec<(u64, u64)> {
    let copy = |change: &GraphChange| match change {
        GraphChange::NodeCloned { node, original, .. } => Some((*node, *original)),
        _ => None,
    };
    changes.iter().filter_map(copy).collect()
}

/// Numbered from 1 without a gap, at times that do not go back, and of this session.
fn check_order(events: &[&GraphEvent]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence.0).collect();
    assert!(
        numbers.iter().copied().eq(1..=events.len() as u64),
        "{numbers:?}"
    );
    assert!(events.iter().map(|event| event.at).is_sorted());
    assert!(events.iter().all(|event| event.session == 1));
}

fn captured_across_threads(version: CuptiVersion) {
    let program = setup(version);
    let session = gpu::session(Cupti::new());
    let (here, there, replay) = (
        Epoch::declare("here"),
        Epoch::declare("there"),
        Epoch::declare("replay"),
    );
    let ids = [of(&here), of(&there), of(&replay)];

    program.begin_capture();
    here.launch(|| program.launch(1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            program.use_here();
            there.launch(|| program.launch(2));
        });
    });
    let graph = program.end_capture();
    let exec = program.instantiate(graph);
    replay.launch(|| program.launch_graph(exec));
    replay.launch(|| program.launch_graph(exec));
    program.synchronize();
    let nodes: Vec<u64> = program.nodes(graph).into_iter().map(node_id).collect();
    let (graph_number, exec_number) = (graph_id(graph), exec_id(exec));
    program.destroy_exec(exec);
    program.destroy(graph);
    let report = gpu::end(session);

    let events = gpu::graph_events(&report);
    check_order(&events);
    let created = |node| GraphChange::NodeCreated {
        graph: graph_number,
        node,
        kind: KERNEL,
    };
    let told = changes(&events);
    let clones = copies(&told);
    let cloned = |(node, original)| GraphChange::NodeCloned {
        graph: exec_number,
        node,
        original_graph: graph_number,
        original,
        kind: KERNEL,
    };
    assert_eq!(clones.len(), 2);
    assert_eq!(
        told,
        [
            GraphChange::GraphCreated {
                graph: graph_number
            },
            created(nodes[0]),
            created(nodes[1]),
            cloned((clones[0].0, nodes[0])),
            cloned((clones[1].0, nodes[1])),
            GraphChange::ExecCreated {
                exec: exec_number,
                graph: graph_number
            },
            GraphChange::ExecDestroyed { exec: exec_number },
            GraphChange::GraphDestroyed {
                graph: graph_number
            },
        ]
    );

    // Who captured, where, and by which call.
    let calls = gpu::calls(&report);
    let launches: Vec<_> = calls.iter().filter(|call| call.api.cbid == 307).collect();
    assert_eq!(launches.len(), 2);
    for ((event, call), epoch) in events[1..3].iter().zip(&launches).zip(ids) {
        assert_eq!(event.attribution, epoch);
        assert_eq!(event.correlation, Some(call.correlation));
        assert_eq!(event.tid, call.thread.tid);
        assert!(call.entered <= event.at && event.at <= call.exited.expect("left"));
        assert_eq!(call.due, OperationsDue::None, "captured, so nothing runs");
    }
    assert_ne!(events[1].tid, events[2].tid);
    let other = events
        .iter()
        .filter(|event| event.attribution == Attribution::None);
    assert_eq!(other.count(), 6, "made outside of any epoch");
    assert!(events[3..].iter().all(|event| event.correlation.is_none()));

    // The launches, after the first six changes, each by its own call.
    let graph_calls: Vec<_> = calls.iter().filter(|call| call.api.cbid == 514).collect();
    let launches = gpu::graph_launches(&report);
    assert_eq!((graph_calls.len(), launches.len()), (2, 2));
    for (launch, call) in launches.iter().zip(&graph_calls) {
        assert_eq!((launch.exec, launch.sequence.0), (exec_number, 6));
        assert_eq!(launch.correlation, call.correlation);
        assert_eq!((launch.at, launch.session), (call.entered, 1));
        assert_eq!(launch.thread, call.thread);
        assert_eq!(call.due, OperationsDue::Many);
    }
    // The records name the nodes of the executable graph.
    let operations = gpu::operations(&report);
    let ran: Vec<_> = operations.iter().filter_map(|ran| ran.graph_node).collect();
    assert_eq!(ran.len(), 4);
    assert!(
        ran.iter()
            .all(|node| clones.iter().any(|copy| copy.0 == *node))
    );
    assert!(operations.iter().all(|ran| ran.graph == Some(exec_number)));
    assert!(gpu::dropped(&report).is_empty());
}

macro_rules! on_each_version {
    ($($name:ident: $story:ident($version:ident);)+) => {$(
        #[test]
        fn $name() {
            isolated(stringify!($name), || $story(CuptiVersion::$version));
        }
    )+};
}

on_each_version! {
    a_capture_across_threads_on_12_4: captured_across_threads(V12_4);
    a_capture_across_threads_on_12_9: captured_across_threads(V12_9);
    a_capture_across_threads_on_13_1: captured_across_threads(V13_1);
    a_capture_across_threads_on_13_5: captured_across_threads(V13_5);
}
