//! Launches: what they wait for, their numbers, and what is due of them.

use super::{begun, instantiated};
use crate::correlator_support::graphs::*;
use crate::correlator_support::*;
use lineage_core::evidence::Why;
use lineage_core::fault::FaultCode;
use lineage_core::observation::{ActivityKind, GraphChange, GraphNodeKind, Operation};
use lineage_core::row::Binding;

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
    let (mut run, mut changes) = instantiated(&[1, 2], 1);
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
    let (mut run, changes) = instantiated(&[1, 2], 2);
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
