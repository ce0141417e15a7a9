//! `Correlator::oldest_open_call`: before it every call has all its rows.

mod correlator_support;

use correlator_support::*;
use lineage_core::observation::{Call, Event, OperationsDue};

fn without_operation(id: u64, correlation: u32, ns: u64) -> Vec<Event> {
    let mut events = launch(id, correlation, ns);
    events.retain(|event| !matches!(event, Event::Operation(_)));
    events
}

#[test]
fn a_call_is_open_until_its_operation_has_come() {
    let mut run = Run::new();
    assert_eq!(run.oldest_open_call(), None);
    run.see(without_operation(3, 100, 1_000));
    run.see(without_operation(4, 101, 2_000));
    // The call of a launch declared at 1,000 is entered at 1,020.
    assert_eq!(run.oldest_open_call(), Some(at(1_020)));
    run.see([kernel(100, 1_050, 1_090)]);
    assert_eq!(run.oldest_open_call(), Some(at(2_020)));
    run.see([kernel(101, 2_050, 2_090)]);
    assert_eq!(run.oldest_open_call(), None);
    assert_eq!(run.rows.len(), 2);
}

#[test]
fn the_launch_of_a_graph_is_open_until_the_fence_of_its_thread() {
    let mut run = Run::new();
    let graph_launch = Call {
        due: OperationsDue::Many,
        ..call_of(1, 100, 1_020, of(3))
    };
    run.see([declared(1, 3, 1_000), graph_launch.into()]);
    run.see([
        scope(1, 3, 7, 1_010, 1_040),
        external(3, 100, 1_020),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_060),
        kernel(100, 1_070, 1_080),
    ]);
    // Two rows are given, and a third may come.
    assert_eq!(run.rows.len(), 2);
    assert_eq!(run.oldest_open_call(), Some(at(1_020)));
    run.see([flushed(2_000)]);
    run.see(launch(4, 101, 3_000));
    run.see([flushed(4_000)]);
    assert_eq!(run.oldest_open_call(), None);
}
