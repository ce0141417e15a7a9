//! A session tells what becomes of graphs, in the order in which it happens, and which executable graph
//! each launch was of. What the program did is known from its own handles, whose ids the test asks for
//! itself.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::ffi::c_void;

use lineage_core::observation::{
    ActivityKind, EdgeKind, GraphChange, GraphEdge, GraphEvent, GraphNodeKind, OperationsDue,
};
use lineage_core::{Attribution, Epoch};
use lineage_cupti::Cupti;
use lineage_cupti::graph::{EdgesError, record_edges};
use lineage_sim::{Config, CuptiVersion, Faults, isolated};

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

/// A graph by hand, with another as its child; its clone; and a graph that is instantiated twice.
fn built_copied_and_instantiated_again(version: CuptiVersion) {
    let program = setup(version);
    let session = gpu::session(Cupti::new());
    let (child_of, builder) = (Epoch::declare("child"), Epoch::declare("builder"));
    let ids = [of(&child_of), of(&builder)];
    let inner = child_of.launch(|| program.captured(1));
    let graph = program.create();
    let (kernel, child) = builder.launch(|| {
        let kernel = program.add_kernel(graph, &[]);
        (kernel, program.add_child(graph, inner))
    });
    let clone = program.clone_graph(graph);
    let execs = [program.instantiate(clone), program.instantiate(clone)];
    let copy_of_inner = program.child_of(child);
    let clone_nodes = program.nodes(clone);
    let child_of_clone = program.child_of(clone_nodes[1]);

    let inner_node = node_id(program.nodes(inner)[0]);
    let copied_node = node_id(program.nodes(copy_of_inner)[0]);
    let cloned_inner = node_id(program.nodes(child_of_clone)[0]);
    let [kernel, child] = [kernel, child].map(node_id);
    let clone_nodes: Vec<u64> = clone_nodes.into_iter().map(node_id).collect();
    let [inner, graph, copy_of_inner, clone, child_of_clone] =
        [inner, graph, copy_of_inner, clone, child_of_clone].map(graph_id);
    let execs = execs.map(exec_id);
    let report = gpu::end(session);

    let events = gpu::graph_events(&report);
    check_order(&events);
    let told = changes(&events);
    // Made: the captured node, the kernel, and the node that stands for the child; and nothing twice.
    let made: Vec<_> = events
        .iter()
        .filter_map(|event| match event.change {
            GraphChange::NodeCreated { graph, node, kind } => {
                Some((graph, node, kind, event.attribution))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        made,
        [
            (inner, inner_node, KERNEL, ids[0]),
            (graph, kernel, KERNEL, ids[1]),
            (graph, child, GraphNodeKind::Child, ids[1]),
        ]
    );
    // Copied: the child graph's node; then all of it, from what it was copied from.
    let whole = |change: &GraphChange| match change {
        GraphChange::GraphCloned { graph, original } => Some((*graph, *original)),
        _ => None,
    };
    let wholes: Vec<_> = told.iter().filter_map(whole).collect();
    assert_eq!(
        wholes,
        [
            (copy_of_inner, inner),
            (child_of_clone, copy_of_inner),
            (clone, graph)
        ]
    );
    let copies = copies(&told);
    assert_eq!(copies[0], (copied_node, inner_node));
    let mut cloned = copies[1..4].to_vec();
    cloned.sort_unstable();
    let mut expected = vec![
        (clone_nodes[0], kernel),
        (clone_nodes[1], child),
        (cloned_inner, copied_node),
    ];
    expected.sort_unstable();
    assert_eq!(cloned, expected);
    // Twice into executable graphs, each with copies of its own of the same three nodes.
    let instantiated: Vec<_> = told
        .iter()
        .filter_map(|change| match change {
            GraphChange::ExecCreated { exec, graph } => Some((*exec, *graph)),
            _ => None,
        })
        .collect();
    assert_eq!(instantiated, [(execs[0], clone), (execs[1], clone)]);
    let mut originals = [clone_nodes[0], clone_nodes[1], cloned_inner];
    originals.sort_unstable();
    for (copies, exec) in copies[4..].chunks(3).zip(execs) {
        let mut of: Vec<u64> = copies.iter().map(|copy| copy.1).collect();
        of.sort_unstable();
        assert_eq!(of, originals);
        assert!(copies.iter().all(|copy| (copy.0 >> 32) as u32 == exec));
    }
    assert_eq!(copies.len(), 10);
}

/// An executable graph that is changed in every way, each of which is also tried in vain.
fn changed_in_place(version: CuptiVersion) {
    let names_pairs = matches!(version, CuptiVersion::V13_1 | CuptiVersion::V13_5);
    let program = setup(version);
    let session = gpu::session(Cupti::new());
    let setter = Epoch::declare("setter");
    let by = of(&setter);
    let graph = program.captured(2);
    let other = program.captured(2);
    let shorter = program.captured(1);
    let exec = program.instantiate(graph);
    let nodes = program.nodes(graph);
    setter.launch(|| {
        assert_eq!(program.update(exec, other), 0);
        assert_ne!(program.update(exec, shorter), 0, "of another shape");
        assert_eq!(program.set_params(exec, nodes[1]), 0);
        let foreign = program.nodes(shorter)[0];
        assert_ne!(program.set_params(exec, foreign), 0, "not one of its nodes");
        assert_eq!(program.enable(exec, nodes[0], false), 0);
        assert_ne!(
            program.enable(exec, foreign, false),
            0,
            "not one of its nodes"
        );
        assert_eq!(program.enable(exec, nodes[0], true), 0);
    });
    let nodes: Vec<u64> = nodes.into_iter().map(node_id).collect();
    let others: Vec<u64> = program.nodes(other).into_iter().map(node_id).collect();
    let (exec, other) = (exec_id(exec), graph_id(other));
    let report = gpu::end(session);

    let events = gpu::graph_events(&report);
    check_order(&events);
    let copies = copies(&changes(&events));
    let created = events
        .iter()
        .position(|event| matches!(event.change, GraphChange::ExecCreated { .. }))
        .expect("instantiated");
    let changed = &events[created + 1..];
    assert!(changed.iter().all(|event| event.attribution == by));

    let pairs = copies
        .iter()
        .zip(&others)
        .map(|(copy, original)| GraphChange::NodeUpdated {
            exec,
            node: copy.0,
            original: Some(*original),
        });
    let mut expected: Vec<GraphChange> = pairs.filter(|_| names_pairs).collect();
    let update = expected.len();
    expected.push(GraphChange::ExecUpdated { exec, graph: other });
    // From 13.0 a callback names the executable graph's own node; before, the call does its original.
    let set = if names_pairs { copies[1].0 } else { nodes[1] };
    expected.push(GraphChange::ParametersSet {
        exec,
        node: Some(set),
    });
    for enabled in [false, true] {
        let node = Some(nodes[0]);
        expected.push(GraphChange::NodeEnabled {
            exec,
            node,
            enabled,
        });
    }
    assert_eq!(changes(changed), expected);
    // What the callbacks tell of an update has the call's own id, and each call another.
    let calls: Vec<_> = changed.iter().map(|event| event.correlation).collect();
    assert!(calls.iter().all(Option::is_some));
    assert!(calls[..update].iter().all(|call| *call == calls[update]));
    let mut of_calls = calls[update..].to_vec();
    of_calls.dedup();
    assert_eq!(of_calls.len(), 4);
}

/// Ids are given again, and a launch says which of the graphs that had its id it means.
fn ids_that_come_again(version: CuptiVersion) {
    let config = Config::default().cupti_version(version);
    let (_, program) = Program::on(config.reuse_graph_ids(true));
    let session = gpu::session(Cupti::new());
    let graph = program.captured(1);
    let first = program.instantiate(graph);
    program.launch_graph(first);
    program.synchronize();
    let id = exec_id(first);
    program.destroy_exec(first);
    let second = program.instantiate(graph);
    assert_eq!(exec_id(second), id);
    program.launch_graph(second);
    program.synchronize();
    let report = gpu::end(session);

    let events = gpu::graph_events(&report);
    check_order(&events);
    let number = |wanted: GraphChange| {
        let of = |event: &&&GraphEvent| event.change == wanted;
        events
            .iter()
            .filter(of)
            .map(|event| event.sequence.0)
            .collect::<Vec<_>>()
    };
    let graph = graph_id(graph);
    let created = number(GraphChange::ExecCreated { exec: id, graph });
    let destroyed = number(GraphChange::ExecDestroyed { exec: id });
    let launches = gpu::graph_launches(&report);
    let launched: Vec<u64> = launches.iter().map(|launch| launch.sequence.0).collect();
    assert_eq!((created.len(), destroyed.len()), (2, 1));
    assert_eq!(
        launched, created,
        "nothing happened between making and launching"
    );
    assert!(launched[0] < destroyed[0] && destroyed[0] < launched[1]);
}

/// A graph launch that is captured, and one that is refused, are no launches.
fn launches_that_are_none(version: CuptiVersion) {
    let program = setup(version);
    let session = gpu::session(Cupti::new());
    let exec = program.instantiate(program.captured(1));
    program.begin_capture();
    program.launch_graph(exec);
    program.end_capture();
    assert_ne!(program.try_launch_graph(0), 0);
    program.launch_graph(exec);
    program.synchronize();
    let report = gpu::end(session);

    let calls = gpu::calls(&report);
    let due: Vec<_> = calls
        .iter()
        .filter(|call| call.api.cbid == 514)
        .map(|call| (call.due, call.result == 0))
        .collect();
    assert_eq!(
        due,
        [
            (OperationsDue::None, true),
            (OperationsDue::Many, false),
            (OperationsDue::Many, true)
        ]
    );
    let launches = gpu::graph_launches(&report);
    assert_eq!(launches.len(), 1);
    assert_eq!(
        launches[0].correlation,
        calls.last().expect("three").correlation
    );
    // The node that stands for the captured launch was made by that launch.
    let events = gpu::graph_events(&report);
    let child = |event: &&&GraphEvent| {
        let kind = GraphNodeKind::Child;
        matches!(event.change, GraphChange::NodeCreated { kind: made, .. } if made == kind)
    };
    let of: Vec<_> = events
        .iter()
        .filter(child)
        .map(|event| event.correlation)
        .collect();
    let captured = calls
        .iter()
        .find(|call| call.api.cbid == 514)
        .expect("captured");
    assert_eq!(of, [Some(captured.correlation)]);
}

/// Edges with their kinds, all of a graph's, in events of at most 4,096.
fn edges(version: CuptiVersion) {
    let program = setup(version);
    let session = gpu::session(Cupti::new());
    let graph = program.create();
    let first = program.add_kernel(graph, &[]);
    let second = program.add_kernel(graph, &[first]);
    let third = program.add_kernel(graph, &[first, second]);
    program.programmatic(graph, second, third);
    let lone = program.create();
    // SAFETY: graphs of this test, which no other thread uses.
    let [told, none] = unsafe { [graph, lone].map(|graph| record_edges(graph as *mut c_void)) };
    assert_eq!((told, none), (Ok(Some(4)), Ok(Some(0))));
    // SAFETY: null is no graph, and CUPTI says so.
    let refused = unsafe { record_edges(std::ptr::null_mut()) };
    assert_eq!(refused, Err(EdgesError::NoId));
    let [first, second, third] = [first, second, third].map(node_id);
    let (id, lone) = (graph_id(graph), graph_id(lone));
    let report = gpu::end(session);

    let edge = |from, to, kind| GraphEdge { from, to, kind };
    let events = gpu::graph_events(&report);
    let found: Vec<GraphChange> = changes(&events)
        .into_iter()
        .filter(|change| matches!(change, GraphChange::Edges { .. }))
        .collect();
    assert_eq!(
        found,
        [
            GraphChange::Edges {
                graph: id,
                edges: vec![
                    edge(first, second, EdgeKind::Completion),
                    edge(first, third, EdgeKind::Completion),
                    edge(second, third, EdgeKind::Completion),
                    edge(second, third, EdgeKind::Programmatic),
                ],
                last: true,
            },
            GraphChange::Edges {
                graph: lone,
                edges: vec![],
                last: true,
            }
        ]
    );
    // SAFETY: as above.
    let after = unsafe { record_edges(graph as *mut c_void) };
    assert_eq!(after, Ok(None), "nothing records any more");
}

/// Whole launches: one operation each, and none of a node.
fn whole_launches(version: CuptiVersion) {
    let program = setup(version);
    let session = gpu::session(Cupti::new().graph_level(true));
    let exec = program.instantiate(program.captured(3));
    program.launch_graph(exec);
    program.launch_graph(exec);
    program.launch(5);
    program.synchronize();
    let id = exec_id(exec);
    let report = gpu::end(session);

    let operations = gpu::operations(&report);
    let launches = gpu::graph_launches(&report);
    let whole: Vec<_> = operations
        .iter()
        .filter(|operation| operation.kind == ActivityKind::Graph)
        .collect();
    assert_eq!(
        (whole.len(), operations.len()),
        (2, 3),
        "and the kernel outside"
    );
    for (operation, launch) in whole.iter().zip(&launches) {
        assert_eq!(operation.correlation, launch.correlation);
        assert_eq!((operation.graph, operation.graph_node), (Some(id), None));
        assert!(operation.start.expect("timed") < operation.end.expect("timed"));
        assert_eq!((operation.copies, operation.bytes), (1, 0));
    }
    assert!(gpu::dropped(&report).is_empty());
}

/// A library that cannot tell the ids: nothing is said of graphs, and all else goes on.
fn without(config: Config) {
    let (_, program) = Program::on(config);
    let session = gpu::session(Cupti::new());
    let exec = program.instantiate(program.captured(1));
    program.launch_graph(exec);
    program.synchronize();
    let report = gpu::end(session);
    assert!(gpu::graph_events(&report).is_empty());
    assert!(gpu::graph_launches(&report).is_empty());
    assert_eq!(gpu::operations(&report).len(), 1);
    assert!(gpu::dropped(&report).is_empty());
}

#[test]
fn nothing_without_ids() {
    isolated("nothing_without_ids", || {
        let faults = Faults::default().missing_symbol("cuptiGetGraphNodeId");
        without(Config::default().faults(faults));
    });
}

#[test]
fn nothing_before_12_3() {
    isolated("nothing_before_12_3", || {
        without(Config::default().cupti_version(CuptiVersion::V12_0));
    });
}

/// Threads that build, instantiate, launch and destroy at once: one order of all, nothing lost, and every
/// launch lies between the making and the end of its executable graph.
#[test]
fn many_threads_have_one_order() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 25;
    isolated("many_threads_have_one_order", || {
        let (_, program) = Program::on(Config::default().reuse_graph_ids(true));
        let session = gpu::session(Cupti::new());
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    program.use_here();
                    for _ in 0..ROUNDS {
                        let graph = program.create();
                        let node = program.add_kernel(graph, &[]);
                        program.add_kernel(graph, &[node]);
                        let exec = program.instantiate(graph);
                        program.launch_graph(exec);
                        program.destroy_exec(exec);
                        program.destroy(graph);
                    }
                });
            }
        });
        program.synchronize();
        let report = gpu::end(session);

        let events = gpu::graph_events(&report);
        let numbers = events.iter().map(|event| event.sequence.0);
        // Each round: a graph, its two nodes, their copies, an executable graph, and both ends.
        assert!(numbers.eq(1..=(THREADS * ROUNDS * 8) as u64));
        let launches = gpu::graph_launches(&report);
        assert_eq!(launches.len(), THREADS * ROUNDS);
        for launch in launches {
            // The newest change of this executable graph before the launch is its making.
            let before = events.iter().rev().find_map(|event| {
                match event.change {
                    GraphChange::ExecCreated { exec, .. } if exec == launch.exec => {
                        Some((event, true))
                    }
                    GraphChange::ExecDestroyed { exec } if exec == launch.exec => {
                        Some((event, false))
                    }
                    _ => None,
                }
                .filter(|(event, _)| event.sequence <= launch.sequence)
            });
            let (made, is_made) = before.expect("it was made");
            assert!(is_made);
            assert_eq!(
                made.tid, launch.thread.tid,
                "on the thread that launches it"
            );
        }
        assert!(gpu::dropped(&report).is_empty());
    });
}

/// A session's numbers begin anew, and what was told to one is not told to the next.
#[test]
fn each_session_has_an_order_of_its_own() {
    isolated("each_session_has_an_order_of_its_own", || {
        let program = setup(CuptiVersion::V13_5);
        let first = gpu::session(Cupti::new());
        let exec = program.instantiate(program.captured(1));
        let first = gpu::end(first);
        let between = program.captured(1);
        let second = gpu::session(Cupti::new());
        program.launch_graph(exec);
        program.destroy(between);
        program.synchronize();
        let (between, exec) = (gpu::graph_events(&first), exec_id(exec));
        assert_eq!(between.len(), 4, "made, a node, its copy, instantiated");
        check_order(&between);
        let second = gpu::end(second);
        let events = gpu::graph_events(&second);
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].session, events[0].sequence.0), (2, 1));
        let launches = gpu::graph_launches(&second);
        assert_eq!(launches.len(), 1);
        let launch = (
            launches[0].session,
            launches[0].exec,
            launches[0].sequence.0,
        );
        assert_eq!(launch, (2, exec, 0), "before anything happened to graphs");
    });
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
    copies_on_12_4: built_copied_and_instantiated_again(V12_4);
    copies_on_12_9: built_copied_and_instantiated_again(V12_9);
    copies_on_13_1: built_copied_and_instantiated_again(V13_1);
    copies_on_13_5: built_copied_and_instantiated_again(V13_5);
    changes_in_place_on_12_4: changed_in_place(V12_4);
    changes_in_place_on_12_9: changed_in_place(V12_9);
    changes_in_place_on_13_1: changed_in_place(V13_1);
    changes_in_place_on_13_5: changed_in_place(V13_5);
    ids_that_come_again_on_12_4: ids_that_come_again(V12_4);
    ids_that_come_again_on_13_5: ids_that_come_again(V13_5);
    launches_that_are_none_on_12_9: launches_that_are_none(V12_9);
    launches_that_are_none_on_13_5: launches_that_are_none(V13_5);
    edges_on_12_4: edges(V12_4);
    edges_on_13_5: edges(V13_5);
    whole_launches_on_12_4: whole_launches(V12_4);
    whole_launches_on_13_5: whole_launches(V13_5);
}
