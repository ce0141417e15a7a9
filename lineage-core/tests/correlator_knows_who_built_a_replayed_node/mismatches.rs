//! Records that contradict the launch or the generation that they are bound to.

use super::{begun, instantiated};
use crate::correlator_support::graphs::*;
use crate::correlator_support::*;
use lineage_core::fault::FaultCode;
use lineage_core::observation::OperationsDue;
use lineage_core::row::Binding;

#[test]
fn an_operation_of_a_call_that_launches_no_graph_is_a_mismatch() {
    let (mut run, _) = instantiated(&[1], 1);
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
    let (mut run, mut changes) = instantiated(&[1, 2], 2);
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
    let (mut run, changes) = instantiated(&[1, 2], 1);
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
