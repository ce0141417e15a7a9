//! What graphs may hold.

use super::begun;
use crate::correlator_support::graphs::*;
use crate::correlator_support::*;
use lineage_core::evidence::Why;
use lineage_core::observation::GraphChange;

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
