//! Who built a node, through copies, updates, reuse of ids and losses.

use super::{begun, instantiated};
use crate::correlator_support::graphs::*;
use crate::correlator_support::*;
use lineage_core::evidence::Why;
use lineage_core::fault::FaultCode;
use lineage_core::id::{Attribution, UnwrappedCorrelationId};
use lineage_core::observation::{GraphChange, GraphNodeKind};
use lineage_core::row::{Binding, Template};

#[test]
fn a_capture_under_one_epoch_is_replayed_under_others() {
    let (mut run, changes) = instantiated(&[1, 2, 3], 2);
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
    let (mut run, mut changes) = instantiated(&[1, 2], 1);
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
    let (mut run, mut changes) = instantiated(&[1, 2, 3], 1);
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
        let (mut run, mut changes) = instantiated(&[1, 2], 1);
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
    let (mut run, mut changes) = instantiated(&[1, 2, 3], 2);
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
    let (mut run, mut changes) = instantiated(&[1, 2, 3], 2);
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
fn without_the_launch_a_node_is_known_only_where_its_id_can_mean_one_thing() {
    for reused in [false, true] {
        let (mut run, mut changes) = instantiated(&[1, 2], 1);
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
