//! A replayed operation is bound to the epoch of its *replay*, and its template tells the epoch of its
//! *capture*: through copies, re-instantiation, updates and reuse of ids, or it is unknown and why.

mod correlator_support;

use correlator_support::graphs::*;
use correlator_support::*;
use lineage_core::evidence::Why;
use lineage_core::fault::FaultCode;
use lineage_core::id::{Attribution, UnwrappedCorrelationId};
use lineage_core::observation::{
    ActivityKind, Event, GraphChange, GraphNodeKind, Operation, OperationsDue,
};
use lineage_core::row::{Binding, Template};

/// The session has started and these epochs are declared.
fn begun(epochs: &[u64]) -> Vec<Event> {
    let declared = epochs.iter().map(|&id| declared(1, id, id));
    [started(1, 0)].into_iter().chain(declared).collect()
}

#[test]
fn a_capture_under_one_epoch_is_replayed_under_others() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2, 3]));
    run.see(changes.capture(5, 2, 1, 10));
    run.see(changes.instantiated(5, 6, &[1, 2]));
    let sequence = changes.last();
    for (launch, id) in [(20, 2), (21, 3)] {
        let from = u64::from(launch) * 1_000;
        run.see(launch_of(1, launch, from, id, 6, sequence));
        run.see([
            node_ran(launch, node(6, 1), from + 100, from + 110),
            node_ran(launch, node(6, 2), from + 110, from + 120),
        ]);
    }
    run.end();
    assert_eq!(run.rows.len(), 4);
    for (launch, replayed, replay) in [(20, 2, 1), (21, 3, 2)] {
        for number in [1, 2] {
            let row = row_of(&run.rows, launch, node(6, number));
            assert_eq!(row.binding, Binding::Bound(epoch(replayed)));
            let graph = graph_of(row);
            assert_eq!((graph.exec, graph.generation), (Some(6), 1));
            assert_eq!((graph.replay, graph.iteration), (Some(replay), 1));
            let template = known(row);
            assert_eq!((template.graph, template.node), (5, node(5, number)));
            assert_eq!(template.order, number);
            assert_eq!(template.capture, of(1));
            let call = UnwrappedCorrelationId(u64::from(10 + number - 1));
            assert_eq!(template.captured_by, Some(call));
            assert_eq!(template.at, at(101 + u64::from(number)));
            assert_eq!(row.faults, []);
        }
    }
    let graphs = run.totals().graphs;
    assert_eq!(
        (graphs.graphs, graphs.executables, graphs.launches),
        (1, 1, 2)
    );
    assert_eq!((graphs.known, graphs.unknown()), (4, 0));
    assert!(run.totals().is_clean());
}

#[test]
fn a_node_keeps_its_origin_through_copies_and_a_second_instantiation() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see(changes.capture(5, 1, 1, 10));
    run.see(changes.instantiated(5, 6, &[1]));
    // A copy of the graph, which outlives it; and a second executable of it.
    run.see([
        changes.change(GraphChange::GraphCloned {
            graph: 7,
            original: 5,
        }),
        changes.copied(5, 7, 1),
        changes.change(GraphChange::GraphDestroyed { graph: 5 }),
    ]);
    run.see(changes.instantiated(7, 8, &[1]));
    run.see(changes.instantiated(7, 9, &[1]));
    for (launch, exec) in [(20, 6), (21, 8), (22, 9)] {
        let from = u64::from(launch) * 1_000;
        run.see(launch_of(1, launch, from, 2, exec, changes.last()));
        run.see([node_ran(launch, node(exec, 1), from + 100, from + 110)]);
    }
    run.end();
    for (launch, exec) in [(20, 6), (21, 8), (22, 9)] {
        let row = row_of(&run.rows, launch, node(exec, 1));
        assert_eq!(known(row).node, node(5, 1));
        assert_eq!(captured_under(row), epoch(1));
        assert_eq!(graph_of(row).replay, Some(1), "of each executable graph");
    }
    assert!(run.totals().is_clean());
}

#[test]
fn a_copy_may_be_told_of_before_its_nodes_or_behind_them() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see(changes.capture(5, 1, 1, 10));
    let is_copy = GraphChange::GraphCloned {
        graph: 7,
        original: 5,
    };
    run.see([
        changes.change(GraphChange::GraphCreated { graph: 7 }),
        changes.copied(5, 7, 1),
        changes.change(is_copy),
        changes.change(GraphChange::GraphDestroyed { graph: 5 }),
    ]);
    run.see(changes.instantiated(7, 8, &[1]));
    run.see(launch_of(1, 20, 20_000, 2, 8, changes.last()));
    run.see([node_ran(20, node(8, 1), 20_100, 20_110)]);
    run.end();
    let row = row_of(&run.rows, 20, node(8, 1));
    assert_eq!(known(row).node, node(5, 1));
    assert_eq!(captured_under(row), epoch(1));
    assert_eq!(run.totals().graphs.graphs, 2);
    assert!(run.totals().is_clean());
}

#[test]
fn a_launch_means_the_graph_of_its_moment_though_the_id_was_given_again() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2, 3]));
    run.see(changes.capture(5, 1, 1, 10));
    run.see(changes.instantiated(5, 6, &[1]));
    let first = changes.last();
    run.see([changes.destroyed(6)]);
    run.see(changes.capture(7, 1, 2, 11));
    run.see(changes.instantiated(7, 6, &[1]));
    let second = changes.last();
    // The records of both launches come after all of that.
    run.see(launch_of(1, 20, 20_000, 3, 6, first));
    run.see(launch_of(1, 21, 21_000, 3, 6, second));
    run.see([
        node_ran(21, node(6, 1), 21_100, 21_110),
        node_ran(20, node(6, 1), 20_100, 20_110),
    ]);
    run.end();
    for (launch, generation, captured) in [(20, 1, 1), (21, 2, 2)] {
        let row = row_of(&run.rows, launch, node(6, 1));
        assert_eq!(graph_of(row).generation, generation);
        assert_eq!(graph_of(row).replay, Some(1));
        assert_eq!(captured_under(row), epoch(captured));
    }
    assert!(run.totals().is_clean());
}

#[test]
fn a_launch_waits_for_the_changes_that_it_knows_of() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    let capture = changes.capture(5, 1, 1, 10);
    let instantiation = changes.instantiated(5, 6, &[1]);
    run.see(launch_of(1, 20, 20_000, 2, 6, changes.last()));
    run.see([node_ran(20, node(6, 1), 20_100, 20_110)]);
    run.see([flushed(30_000), flushed(40_000), flushed(50_000)]);
    assert_eq!(run.rows.len(), 0, "the changes are not here");
    run.see(capture);
    run.see(instantiation);
    let row = run.row();
    assert_eq!(captured_under(row), epoch(1));
}

#[test]
fn launches_are_numbered_by_their_calls_whichever_ring_is_read_first() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see([declared(2, 3, 3)]);
    run.see(changes.capture(5, 1, 1, 10));
    run.see(changes.instantiated(5, 6, &[1]));
    let last = changes.last();
    run.see(launch_of(2, 21, 21_000, 3, 6, last));
    run.see([node_ran(21, node(6, 1), 21_100, 21_110)]);
    assert_eq!(
        run.rows.len(),
        0,
        "an earlier launch may be in another ring"
    );
    run.see(launch_of(1, 20, 20_000, 2, 6, last));
    run.see([node_ran(20, node(6, 1), 20_100, 20_110)]);
    run.see([flushed(30_000)]);
    assert_eq!(run.rows.len(), 0);
    run.see([flushed(40_000)]);
    assert_eq!(
        run.rows.len(),
        2,
        "two flushes later all earlier ones are here"
    );
    assert_eq!(graph_of(row_of(&run.rows, 20, node(6, 1))).replay, Some(1));
    assert_eq!(graph_of(row_of(&run.rows, 21, node(6, 1))).replay, Some(2));
}

#[test]
fn a_launch_that_failed_is_no_replay_and_one_that_may_be_missed_leaves_no_number() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see(changes.capture(5, 1, 1, 10));
    run.see(changes.instantiated(5, 6, &[1]));
    let last = changes.last();
    let mut failed = graph_call_of(1, 20, 20_000, 2);
    failed.result = 719;
    run.see([
        launched_at(1, 20, 20_000, 6, last),
        failed.into(),
        scope(1, 2, 20, 19_999, 20_020),
    ]);
    run.see(launch_of(1, 21, 21_000, 2, 6, last));
    run.see([node_ran(21, node(6, 1), 21_100, 21_110)]);
    run.see([gap(2, 21_500, 21_600)]);
    run.see(launch_of(1, 22, 22_000, 2, 6, last));
    run.see([node_ran(22, node(6, 1), 22_100, 22_110)]);
    // A graph from after the gap is not concerned.
    changes.now = 30_000;
    run.see(changes.instantiated(5, 7, &[1]));
    run.see(launch_of(1, 23, 31_000, 2, 7, changes.last()));
    run.see([node_ran(23, node(7, 1), 31_100, 31_110)]);
    run.end();
    assert_eq!(graph_of(row_of(&run.rows, 21, node(6, 1))).replay, Some(1));
    assert_eq!(graph_of(row_of(&run.rows, 22, node(6, 1))).replay, None);
    assert_eq!(graph_of(row_of(&run.rows, 23, node(7, 1))).replay, Some(1));
    let failed = run.rows.iter().find(|row| row.operation.is_none());
    let failed = failed.expect("the failed call has a row");
    assert_eq!(graph_of(failed).exec, Some(6));
    assert_eq!(graph_of(failed).replay, None);
    assert_eq!(failed.faults, []);
    assert_eq!(captured_under(row_of(&run.rows, 22, node(6, 1))), epoch(1));
}

#[test]
fn a_graph_from_before_the_session_is_l06_and_bound_by_no_guess() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    // An executable graph that nothing tells of, and a graph that nothing tells of instantiated.
    run.see(changes.instantiated(5, 8, &[1]));
    for (launch, exec) in [(20, 6), (21, 8)] {
        let from = u64::from(launch) * 1_000;
        run.see(launch_of(1, launch, from, 2, exec, changes.last()));
        run.see([node_ran(launch, node(exec, 1), from + 100, from + 110)]);
    }
    run.end();
    for (launch, exec, generation, replay) in [(20, 6, 0, None), (21, 8, 1, Some(1))] {
        let row = row_of(&run.rows, launch, node(exec, 1));
        assert_eq!(unknown(row), Why::BeforeSession);
        assert_eq!(row.faults, [FaultCode::L06]);
        assert_eq!(row.binding, Binding::Bound(epoch(2)), "the replay is known");
        assert_eq!(graph_of(row).exec, Some(exec));
        assert_eq!(graph_of(row).generation, generation);
        assert_eq!(graph_of(row).replay, replay);
    }
    assert_eq!((run.totals().lost, run.totals().wrong), (2, 0));
    assert_eq!(run.totals().graphs.before_session, 2);
}

#[test]
fn a_copy_whose_record_was_lost_is_l06() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see(changes.capture(5, 2, 1, 10));
    run.see(changes.instantiated(5, 6, &[2]));
    run.see(launch_of(1, 20, 20_000, 2, 6, changes.last()));
    run.see([
        node_ran(20, node(6, 1), 20_100, 20_110),
        node_ran(20, node(6, 2), 20_110, 20_120),
    ]);
    run.end();
    let row = row_of(&run.rows, 20, node(6, 1));
    assert_eq!(unknown(row), Why::Dropped);
    assert_eq!(row.faults, [FaultCode::L06]);
    assert_eq!(captured_under(row_of(&run.rows, 20, node(6, 2))), epoch(1));
    assert_eq!(run.totals().wrong, 0);
}

#[test]
fn of_what_was_known_before_changes_were_lost_nothing_holds_after() {
    for told in [true, false] {
        let mut changes = Changes::from(100);
        let mut run = Run::new();
        run.see(begun(&[1, 2]));
        run.see(changes.capture(5, 1, 1, 10));
        run.see(changes.instantiated(5, 6, &[1]));
        let before = changes.last();
        if told {
            run.see([changes.change(GraphChange::Lost { count: 3 })]);
        } else {
            changes.skip(3);
        }
        run.see(changes.capture(7, 1, 2, 12));
        run.see(changes.instantiated(7, 8, &[1]));
        run.see(changes.instantiated(5, 9, &[1]));
        let launches = [(20, 6, before), (21, 6, changes.last())];
        let later = [(22, 8, changes.last()), (23, 9, changes.last())];
        for (launch, exec, sequence) in launches.into_iter().chain(later) {
            let from = u64::from(launch) * 1_000;
            run.see(launch_of(1, launch, from, 2, exec, sequence));
            run.see([node_ran(launch, node(exec, 1), from + 100, from + 110)]);
        }
        run.end();
        assert_eq!(captured_under(row_of(&run.rows, 20, node(6, 1))), epoch(1));
        for (launch, exec) in [(21, 6), (23, 9)] {
            assert_eq!(
                unknown(row_of(&run.rows, launch, node(exec, 1))),
                Why::Dropped
            );
        }
        assert_eq!(captured_under(row_of(&run.rows, 22, node(8, 1))), epoch(2));
        assert_eq!(run.totals().graphs.changes_lost, 3);
        assert_eq!(run.totals().wrong, 0);
    }
}

#[test]
fn an_update_is_followed_only_where_its_pairs_are_told() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2, 3]));
    run.see(changes.capture(5, 2, 1, 10));
    run.see(changes.instantiated(5, 6, &[1, 2]));
    let before = changes.last();
    run.see(changes.capture(7, 2, 2, 20));
    run.see([
        changes.change(GraphChange::NodeUpdated {
            exec: 6,
            node: node(6, 1),
            original: Some(node(7, 1)),
        }),
        changes.change(GraphChange::ExecUpdated { exec: 6, graph: 7 }),
    ]);
    let after = changes.last();
    for (launch, sequence) in [(30, before), (31, after)] {
        let from = u64::from(launch) * 1_000;
        run.see(launch_of(1, launch, from, 3, 6, sequence));
        run.see([
            node_ran(launch, node(6, 1), from + 100, from + 110),
            node_ran(launch, node(6, 2), from + 110, from + 120),
        ]);
    }
    // A second update says nothing of node 1, whose pair was told for the first one.
    run.see([changes.change(GraphChange::ExecUpdated { exec: 6, graph: 5 })]);
    run.see(launch_of(1, 32, 32_000, 3, 6, changes.last()));
    run.see([node_ran(32, node(6, 1), 32_100, 32_110)]);
    run.end();
    assert_eq!(known(row_of(&run.rows, 30, node(6, 1))).node, node(5, 1));
    assert_eq!(known(row_of(&run.rows, 30, node(6, 2))).node, node(5, 2));
    let paired = row_of(&run.rows, 31, node(6, 1));
    assert_eq!(known(paired).node, node(7, 1));
    assert_eq!(captured_under(paired), epoch(2));
    for (launch, number) in [(31, 2), (32, 1)] {
        let row = row_of(&run.rows, launch, node(6, number));
        assert_eq!(unknown(row), Why::ExecUpdated);
        assert_eq!(row.faults, [FaultCode::L06]);
    }
    assert_eq!(run.totals().graphs.exec_updated, 2);
    assert_eq!(run.totals().wrong, 0);
}

#[test]
fn other_parameters_are_the_work_of_who_set_them() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2, 3]));
    run.see(changes.capture(5, 2, 1, 10));
    run.see(changes.instantiated(5, 6, &[1, 2]));
    let before = changes.last();
    // The driver names the node of the graph; CUPTI that of the executable one.
    let names = [node(5, 1), node(6, 2)];
    run.see(names.map(|node| {
        let node = Some(node);
        changes.by(of(2), None, GraphChange::ParametersSet { exec: 6, node })
    }));
    let after = changes.last();
    for (launch, sequence) in [(30, before), (31, after)] {
        let from = u64::from(launch) * 1_000;
        run.see(launch_of(1, launch, from, 3, 6, sequence));
        for number in [1, 2] {
            let from = from + u64::from(number) * 100;
            run.see([node_ran(launch, node(6, number), from, from + 10)]);
        }
    }
    run.end();
    for number in [1, 2] {
        let first = row_of(&run.rows, 30, node(6, number));
        assert_eq!(captured_under(first), epoch(1));
        let then = row_of(&run.rows, 31, node(6, number));
        assert_eq!(captured_under(then), epoch(2));
        assert_eq!(known(then).node, node(5, number), "it is the same node");
        assert_eq!(then.faults, []);
    }
}

#[test]
fn a_launch_of_disabled_nodes_or_of_bodies_has_no_operation_due() {
    let kinds = [
        (GraphNodeKind::Kernel, true),
        (GraphNodeKind::Kernel, false),
        (GraphNodeKind::Empty, true),
        (GraphNodeKind::Host, true),
    ];
    for (kind, enabled) in kinds {
        let mut changes = Changes::from(100);
        let mut run = Run::new();
        run.see(begun(&[1, 2]));
        run.see([
            changes.made(5),
            changes.built(5, 1, 1, kind),
            changes.copied_as(5, 6, 1, kind),
            changes.change(GraphChange::ExecCreated { exec: 6, graph: 5 }),
        ]);
        if !enabled {
            let node = Some(node(6, 1));
            run.see([changes.change(GraphChange::NodeEnabled {
                exec: 6,
                node,
                enabled,
            })]);
        }
        run.see(launch_of(1, 20, 20_000, 2, 6, changes.last()));
        run.see(launch(3, 25, 25_000));
        run.end();
        let row = run.rows.iter().find(|row| row.operation.is_none());
        let row = row.expect("the launch has a row");
        let is_due = kind == GraphNodeKind::Kernel && enabled;
        assert_eq!(
            row.faults.contains(&FaultCode::L03),
            is_due,
            "{kind:?} {enabled}"
        );
        assert_eq!(graph_of(row).exec, Some(6));
        assert_eq!(graph_of(row).replay, Some(1));
        assert_eq!(graph_of(row).iteration, 0);
        assert_eq!(run.totals().lost, u64::from(is_due));
    }
}

#[test]
fn a_body_that_runs_again_is_an_iteration_and_the_same_record_twice_is_none() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see([
        changes.made(5),
        changes.built(5, 1, 1, GraphNodeKind::Conditional),
        changes.made(50),
        changes.built(50, 2, 1, GraphNodeKind::Kernel),
        changes.copied_as(5, 6, 1, GraphNodeKind::Conditional),
        changes.change(GraphChange::NodeCloned {
            graph: 6,
            node: node(6, 2),
            original_graph: 50,
            original: node(50, 2),
            kind: GraphNodeKind::Kernel,
        }),
        changes.change(GraphChange::ExecCreated { exec: 6, graph: 5 }),
    ]);
    run.see(launch_of(1, 20, 20_000, 2, 6, changes.last()));
    // Buffers come in any order.
    for start in [20_300, 20_100, 20_200, 20_100] {
        run.see([node_ran(20, node(6, 2), start, start + 10)]);
    }
    run.see(launch_of(1, 21, 21_000, 2, 6, changes.last()));
    run.end();
    let mut iterations: Vec<(u64, u32)> = run
        .rows
        .iter()
        .filter_map(|row| {
            let start = row.operation.as_ref()?.start?;
            Some((start.0, graph_of(row).iteration))
        })
        .collect();
    iterations.sort_unstable();
    assert_eq!(iterations, [(20_100, 1), (20_200, 2), (20_300, 3)]);
    assert_eq!(run.totals().duplicates, 1);
    // The body of the second launch was not taken: that is no loss.
    assert!(run.totals().is_clean(), "{:?}", run.totals());
}

#[test]
fn a_launch_that_was_recorded_as_a_whole_has_one_row_whose_nodes_are_not_visible() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see(changes.capture(5, 2, 1, 10));
    run.see(changes.instantiated(5, 6, &[1, 2]));
    run.see(launch_of(1, 20, 20_000, 2, 6, changes.last()));
    run.see([Operation {
        kind: ActivityKind::Graph,
        graph: Some(6),
        ..kernel_of(20, 20_100, 20_200)
    }
    .into()]);
    run.end();
    let row = run.row();
    assert_eq!(row.binding, Binding::Bound(epoch(2)));
    assert_eq!(unknown(row), Why::NotVisible);
    assert_eq!(
        (graph_of(row).exec, graph_of(row).replay),
        (Some(6), Some(1))
    );
    assert_eq!(row.faults, []);
    assert!(run.totals().is_clean());
}

#[test]
fn without_the_launch_a_node_is_known_only_where_its_id_can_mean_one_thing() {
    for reused in [false, true] {
        let mut changes = Changes::from(100);
        let mut run = Run::new();
        run.see(begun(&[1, 2]));
        run.see(changes.capture(5, 1, 1, 10));
        run.see(changes.instantiated(5, 6, &[1]));
        if reused {
            run.see([changes.destroyed(6)]);
            run.see(changes.instantiated(5, 6, &[1]));
        }
        // The call's records are lost; a later call of the thread is there.
        run.see([
            call(1, 19, 19_000, 2),
            api(1, 19, 19_000),
            kernel(19, 19_100, 19_110),
            node_ran(20, node(6, 1), 20_100, 20_110),
        ]);
        run.see(launch(4, 25, 25_000)).end();
        let row = row_of(&run.rows, 20, node(6, 1));
        assert_eq!(row.binding, Binding::Lost);
        assert_eq!(graph_of(row).exec, None, "the launch was not seen");
        assert_eq!(graph_of(row).replay, None);
        if reused {
            assert_eq!(unknown(row), Why::Dropped);
            assert_eq!(row.faults, [FaultCode::L02, FaultCode::L06]);
        } else {
            assert_eq!(captured_under(row), epoch(1));
            assert_eq!(row.faults, [FaultCode::L02]);
        }
    }
}

#[test]
fn an_operation_of_a_call_that_launches_no_graph_is_a_mismatch() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1]));
    run.see(changes.capture(5, 1, 1, 10));
    run.see(changes.instantiated(5, 6, &[1]));
    // The record bears the number of the call that was captured.
    let mut captured = call_of(1, 10, 90, of(1));
    captured.due = OperationsDue::None;
    run.see([captured.into(), scope(1, 1, 9, 80, 110), api(1, 10, 90)]);
    run.see([node_ran(10, node(6, 1), 20_100, 20_110)]);
    run.end();
    let row = row_of(&run.rows, 10, node(6, 1));
    assert!(row.faults.contains(&FaultCode::W06), "{:?}", row.faults);
    assert_eq!(run.totals().wrong, 1);
}

#[test]
fn nodes_of_another_graph_and_launches_that_overlap_are_mismatches() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see(changes.capture(5, 2, 1, 10));
    run.see(changes.instantiated(5, 6, &[1, 2]));
    run.see(changes.instantiated(5, 7, &[1, 2]));
    let last = changes.last();
    for (launch, from) in [(20, 20_000), (21, 30_000), (22, 40_000)] {
        run.see(launch_of(1, launch, from, 2, 6, last));
    }
    run.see([
        node_ran(20, node(6, 1), 20_100, 25_000),
        // Of the other executable graph.
        node_ran(21, node(7, 1), 30_100, 30_110),
        node_ran(21, node(6, 2), 30_120, 50_000),
        // Runs while the launch before it still does, by more than the clock's error.
        node_ran(22, node(6, 1), 48_000, 51_000),
        // The same kernel twice in one launch without a body that may run again.
        node_ran(22, node(6, 2), 51_010, 51_020),
        node_ran(22, node(6, 2), 51_030, 51_040),
    ]);
    run.end();
    let faults = |launch, id| row_of(&run.rows, launch, id).faults.clone();
    assert_eq!(faults(20, node(6, 1)), []);
    assert_eq!(faults(21, node(7, 1)), [FaultCode::L06, FaultCode::W06]);
    assert_eq!(faults(21, node(6, 2)), []);
    assert_eq!(faults(22, node(6, 1)), [FaultCode::W06]);
    let twice: Vec<_> = run
        .rows
        .iter()
        .filter(|row| {
            let operation = row.operation.as_ref();
            operation.is_some_and(|operation| operation.start >= Some(at(51_010)))
        })
        .map(|row| (graph_of(row).iteration, row.faults.clone()))
        .collect();
    assert_eq!(twice, [(1, vec![]), (2, vec![FaultCode::W06])]);
    assert_eq!(run.totals().wrong, 3);
}

#[test]
fn sources_that_disagree_between_capture_and_replay_are_a_mismatch_too() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see(changes.capture(5, 1, 1, 10));
    run.see(changes.instantiated(5, 6, &[1]));
    let mut seen = launch_of(1, 20, 20_000, 2, 6, changes.last());
    seen[3] = external(1, 20, 20_000);
    run.see(seen);
    run.see([node_ran(20, node(6, 1), 20_100, 20_110)]);
    run.end();
    let row = run.row();
    assert_eq!(row.binding, Binding::Disputed(epoch(1), epoch(2)));
    assert_eq!(row.faults, [FaultCode::W03, FaultCode::W06]);
    assert_eq!(run.totals().wrong, 1);
}

#[test]
fn what_ran_before_its_graph_was_there_is_bound_through_another_generation() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[1, 2]));
    run.see(changes.capture(5, 1, 1, 10));
    changes.now = 60_000;
    run.see(changes.instantiated(5, 6, &[1]));
    run.see(launch_of(1, 20, 20_000, 2, 6, changes.last()));
    run.see([node_ran(20, node(6, 1), 20_100, 20_110)]);
    run.end();
    assert_eq!(run.row().faults, [FaultCode::W08]);
    assert_eq!(run.totals().wrong, 1);
}

#[test]
fn a_graph_that_is_made_and_destroyed_for_ever_takes_no_memory() {
    let mut limits = lineage_core::correlator::Limits::default();
    limits.graph_nodes = 40;
    let mut run = Run::within(limits);
    run.see(begun(&[1]));
    let mut changes = Changes::from(100);
    let mut known = 0;
    for round in 0..200_u32 {
        let (graph, exec) = (2 * round + 1, 2 * round + 2);
        changes.now = u64::from(round + 1) * 10_000;
        run.see(changes.capture(graph, 4, 1, 4 * round + 1_000));
        run.see(changes.instantiated(graph, exec, &[1, 2, 3, 4]));
        let from = changes.now + 100;
        let launch = 10_000 + round;
        run.see(launch_of(1, launch, from, 1, exec, changes.last()));
        run.see([node_ran(launch, node(exec, 3), from + 100, from + 110)]);
        run.see([
            changes.destroyed(exec),
            changes.change(GraphChange::GraphDestroyed { graph }),
            flushed(from + 200),
        ]);
        for row in run.rows.drain(..) {
            assert_eq!(captured_under(&row), epoch(1));
            known += 1;
        }
    }
    run.end();
    known += run.rows.len();
    assert_eq!(known, 200);
    assert_eq!(run.totals().evicted, 0, "what is destroyed makes room");
    assert!(run.totals().is_clean());
}

#[test]
fn what_finds_no_room_is_counted_and_unknown() {
    let mut limits = lineage_core::correlator::Limits::default();
    // A graph and two nodes, and an executable graph of as many.
    limits.graph_nodes = 6;
    let mut run = Run::within(limits);
    run.see(begun(&[1, 2]));
    let mut changes = Changes::from(100);
    run.see(changes.capture(5, 2, 1, 10));
    run.see(changes.instantiated(5, 6, &[1, 2]));
    run.see(changes.capture(7, 2, 1, 12));
    run.see(changes.instantiated(7, 8, &[1, 2]));
    for (launch, exec) in [(20, 6), (21, 8)] {
        let from = u64::from(launch) * 1_000;
        run.see(launch_of(1, launch, from, 2, exec, changes.last()));
        run.see([node_ran(launch, node(exec, 1), from + 100, from + 110)]);
    }
    run.end();
    assert_eq!(captured_under(row_of(&run.rows, 20, node(6, 1))), epoch(1));
    assert_eq!(unknown(row_of(&run.rows, 21, node(8, 1))), Why::Dropped);
    // The second graph and executable graph, and two nodes of each.
    assert_eq!(run.totals().evicted, 6);
    assert_eq!(run.totals().wrong, 0);
}

#[test]
fn a_node_that_was_built_outside_of_any_epoch_says_so() {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    run.see(begun(&[2]));
    let created = GraphChange::NodeCreated {
        graph: 5,
        node: node(5, 1),
        kind: GraphNodeKind::Kernel,
    };
    run.see([changes.made(5), changes.change(created)]);
    run.see(changes.instantiated(5, 6, &[1]));
    run.see(launch_of(1, 20, 20_000, 2, 6, changes.last()));
    run.see([node_ran(20, node(6, 1), 20_100, 20_110)]);
    run.end();
    let template = known(run.row());
    assert_eq!(template.capture, Attribution::None);
    assert_eq!(template.captured_by, None);
    assert!(matches!(graph_of(run.row()).template, Template::Known(_)));
    assert_eq!(run.row().faults, []);
}

#[test]
fn launches_of_large_graphs_are_remembered_within_a_limit() {
    let mut limits = lineage_core::correlator::Limits::default();
    limits.kept_operations = 25;
    let mut run = Run::within(limits);
    run.see(begun(&[1]));
    let mut changes = Changes::from(100);
    run.see(changes.capture(5, 10, 1, 10));
    let numbers: Vec<u32> = (1..=10).collect();
    run.see(changes.instantiated(5, 6, &numbers));
    let operations = |launch: u32| {
        let from = u64::from(launch) * 10_000;
        (1..=10).map(move |number| {
            let start = from + 100 + u64::from(number) * 10;
            node_ran(launch, node(6, number), start, start + 5)
        })
    };
    for launch in 20..30 {
        let from = u64::from(launch) * 10_000;
        run.see(launch_of(1, launch, from, 1, 6, changes.last()));
        run.see(operations(launch));
        run.see([flushed(from + 5_000)]);
    }
    let given = run.rows.len();
    assert_eq!(given, 90, "the last launch waits for its second flush");
    run.see(operations(27));
    assert_eq!((run.rows.len(), run.totals().duplicates), (given, 10));
    run.see(operations(20)).end();
    assert_eq!(run.totals().duplicates, 10, "the first is forgotten");
    assert_eq!(run.totals().evicted, 0, "which is no loss");
}
