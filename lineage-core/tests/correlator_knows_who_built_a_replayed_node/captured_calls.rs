//! Nothing of a captured call runs: no operation is missed, whichever of its records is lost or late.

use super::begun;
use crate::correlator_support::graphs::*;
use crate::correlator_support::*;
use lineage_core::correlator::Limits;
use lineage_core::evidence::{Evidence, Why};
use lineage_core::fault::FaultCode;
use lineage_core::observation::{Call, Event, GraphChange, OperationsDue};

/// A capture of kernels in the calls from 10 on, 100 ns apart: what is told of the graph, our own
/// records of the calls, and CUPTI's, which know nothing of captures.
struct Captured {
    changes: Vec<Event>,
    calls: Vec<Event>,
    records: Vec<Event>,
}

fn captured(kernels: u32) -> Captured {
    let mut changes = Changes::from(900);
    let mut captured = Captured {
        changes: vec![changes.made(5)],
        calls: Vec::new(),
        records: Vec::new(),
    };
    for number in 0..kernels {
        let (correlation, entered) = (10 + number, 1_000 + 100 * u64::from(number));
        changes.now = entered + 1;
        let node = changes.captured(5, number + 1, 1, correlation);
        captured.changes.push(node);
        let call = Call {
            due: OperationsDue::None,
            ..call_of(1, correlation, entered, of(1))
        };
        captured.calls.push(call.into());
        captured.records.push(api(1, correlation, entered));
    }
    captured
}

/// A later launch with its operation, between two flushes: what is before it is decided.
fn decided() -> Vec<Event> {
    let launch = launch(7, 500, 11_000);
    let last = [flushed(12_000)];
    [flushed(10_000)]
        .into_iter()
        .chain(launch)
        .chain(last)
        .collect()
}

/// Of the captured calls no row is given; the launch that followed has one.
#[track_caller]
fn assert_nothing_is_missed(run: &mut Run, captured: u64) {
    run.end();
    assert_eq!(
        run.row().call.as_ref().map(|call| call.correlation.0),
        Some(500)
    );
    let totals = run.totals();
    assert_eq!((totals.faults[FaultCode::L03], totals.lost), (0, 0));
    assert_eq!((totals.calls, totals.calls_without_work), (1, captured));
    assert_eq!(totals.evicted, 0);
}

#[test]
fn a_call_whose_own_record_was_lost_is_known_by_the_node_that_was_made_in_it() {
    for node_first in [true, false] {
        let Captured {
            changes, records, ..
        } = captured(3);
        let mut run = Run::new();
        run.see(begun(&[1]));
        let (first, then) = if node_first {
            (changes, records)
        } else {
            (records, changes)
        };
        run.see(first).see([gap(1, 950, 2_000)]).see(then);
        run.see(decided());
        assert_nothing_is_missed(&mut run, 3);
    }
}

#[test]
fn a_call_whose_record_comes_long_after_it_was_forgotten_is_still_known() {
    // Either source alone is enough.
    for (with_changes, with_calls) in [(true, true), (true, false), (false, true)] {
        let Captured {
            changes,
            calls,
            records,
        } = captured(6);
        let mut limits = Limits::default();
        limits.joined_calls = 2;
        let mut run = Run::within(limits);
        run.see(begun(&[1]));
        if with_changes {
            run.see(changes);
        }
        if with_calls {
            run.see(calls).see([scope(1, 1, 9, 950, 2_000)]);
        }
        run.see(records).see(decided()).end();
        let totals = run.totals();
        assert_eq!(
            totals.faults[FaultCode::L03],
            0,
            "{with_changes} {with_calls}"
        );
        assert_eq!((totals.lost, totals.rows, totals.evicted), (0, 1, 0));
    }
}

#[test]
fn a_runtime_call_around_a_captured_driver_call_of_another_id_has_no_operation_due() {
    let mut run = Run::new();
    let Captured {
        changes, records, ..
    } = captured(1);
    run.see(begun(&[1])).see(changes);
    run.see([runtime_api(1, 9, 990, 1_020)]).see(records);
    run.see(decided());
    run.end();
    assert_eq!(run.totals().faults[FaultCode::L03], 0);
    assert_eq!((run.totals().lost, run.rows.len()), (0, 1));
}

#[test]
fn a_node_that_is_told_of_too_late_takes_the_loss_back() {
    let mut run = Run::new();
    let Captured {
        changes, records, ..
    } = captured(1);
    run.see(begun(&[1])).see(records).see(decided());
    assert_eq!(
        run.totals().faults[FaultCode::L03],
        1,
        "nothing said otherwise"
    );
    run.see(changes);
    let row = run.rows.last().expect("given");
    assert!(row.supersedes);
    assert_eq!(row.call.as_ref().map(|call| call.correlation.0), Some(10));
    assert_eq!(row.faults, []);
    let why = Why::NotApplicable;
    assert_eq!(row.stages.start, Evidence::Unknown { why });
    let totals = run.totals();
    assert_eq!((totals.faults[FaultCode::L03], totals.lost), (0, 0));
    assert_eq!((totals.rows, totals.superseded), (2, 1));
}

#[test]
fn a_launch_that_has_the_id_of_a_captured_call_one_wrap_later_is_missed() {
    let mut run = Run::new();
    let Captured {
        changes, records, ..
    } = captured(1);
    run.see(begun(&[1])).see(changes).see(records);
    for (number, id) in (1..).zip([1 << 30, 1 << 31, 3 << 30, u32::MAX - 10]) {
        run.see(launch(10 + number, id, 2_000 * number));
    }
    // Once more 10, and a real launch of which no operation comes; then 11, with one.
    let mut without = launch(20, 10, 20_000);
    without.pop();
    run.see(without).see([flushed(21_000)]);
    run.see(launch(21, 11, 22_000)).see([flushed(23_000)]);
    run.end();
    let lost: Vec<_> = run
        .rows
        .iter()
        .filter(|row| row.faults == [FaultCode::L03])
        .collect();
    assert_eq!(lost.len(), 1);
    let unwrapped = lost[0].call.as_ref().map(|call| call.correlation.0);
    assert_eq!(unwrapped, Some((1 << 32) + 10));
}

#[test]
fn a_call_may_be_captured_where_its_own_record_and_the_changes_of_its_time_are_lost() {
    // Calls at 1,000, 1,100 and 1,200; what is told of graphs is lost from 1,050 to 1,150.
    for told in [true, false] {
        let mut changes = Changes::from(1_049);
        let Captured { records, .. } = captured(3);
        let mut run = Run::new();
        run.see(begun(&[1])).see([changes.made(5)]);
        if told {
            run.see([changes.change(GraphChange::Lost { count: 7 })]);
        } else {
            changes.skip(7);
        }
        changes.now = 1_149;
        run.see([changes.made(6)]).see(records).see(decided()).end();
        let missed = run.rows.iter().filter_map(|row| {
            let call = row.call.as_ref().filter(|_| row.operation.is_none())?;
            Some((
                call.correlation.0,
                row.stages.start,
                row.faults.contains(&FaultCode::L03),
            ))
        });
        let mut missed: Vec<_> = missed.collect();
        missed.sort_by_key(|(correlation, ..)| *correlation);
        let unknown = |why| Evidence::Unknown { why };
        assert_eq!(
            missed,
            [
                (10, unknown(Why::Dropped), true),
                (11, unknown(Why::MaybeCaptured), false),
                (12, unknown(Why::Dropped), true),
            ],
            "{told}"
        );
    }
}
