//! Every bound: the oldest gives way, and it is said.

mod correlator_support;

use correlator_support::*;
use lineage_core::correlator::Limits;
use lineage_core::fault::FaultCode;
use lineage_core::observation::{DropSite, Dropped, Event};
use lineage_core::row::Binding;

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn without_operation(id: u64, correlation: u32, ns: u64) -> Vec<Event> {
    let mut events = launch(id, correlation, ns);
    events.retain(|event| !matches!(event, Event::Operation(_)));
    events
}

#[test]
fn the_oldest_open_calls_are_given_as_they_stand() {
    let mut run = Run::within(limits(|limits| limits.open_calls = 4));
    for number in 0..10u32 {
        run.see(without_operation(
            1 + u64::from(number),
            100 + number,
            1_000 * u64::from(1 + number),
        ));
    }
    let given: Vec<u64> = run
        .rows
        .iter()
        .filter_map(|row| row.call.as_ref().map(|call| call.correlation.0))
        .collect();
    assert_eq!(given, [100, 101, 102, 103, 104, 105], "oldest first");
    assert!(run.rows.iter().all(|row| row.faults == [FaultCode::L07]));
    assert_eq!(
        run.rows[0].binding,
        Binding::Bound(epoch(1)),
        "as much as is known"
    );
    assert_eq!(run.pending(), 4);
    let totals = run.totals();
    assert_eq!(
        (totals.evicted, totals.dropped[DropSite::Correlator]),
        (6, 6)
    );
    assert_eq!(run.faults.iter().map(|fault| fault.count).sum::<u64>(), 6);
    // One that comes for a call that gave way has no call any more.
    run.see([kernel(100, 1_050, 1_090)])
        .see([last_flush(99_000)])
        .end();
    assert_eq!(run.totals().faults[FaultCode::L02], 1);
}

#[test]
fn operations_that_wait_for_their_call_give_way_too() {
    let mut run = Run::within(limits(|limits| limits.open_calls = 4));
    run.see((0..10u32).map(|number| kernel(100 + number, 1_000 + u64::from(number), 2_000)));
    assert_eq!((run.rows.len(), run.pending()), (6, 4));
    assert!(
        run.rows
            .iter()
            .all(|row| row.faults == [FaultCode::L07] && row.binding == Binding::Lost)
    );
}

#[test]
fn joined_calls_are_forgotten_without_a_fault() {
    let mut run = Run::within(limits(|limits| {
        limits.open_calls = 4;
        limits.joined_calls = 2;
    }));
    for number in 0..100u32 {
        run.see(launch(
            1 + u64::from(number),
            100 + number,
            1_000 * u64::from(1 + number),
        ));
    }
    assert_eq!((run.rows.len(), run.pending()), (100, 0));
    assert_eq!((run.totals().evicted, run.faults.len()), (0, 0));
}

#[test]
fn records_that_nothing_places_give_way() {
    let mut run = Run::within(limits(|limits| limits.unplaced = 2));
    run.see((0..3u32).map(|number| kernel(100 + number, 0, 0)));
    assert_eq!(
        run.row()
            .operation
            .as_ref()
            .map(|operation| operation.correlation.0),
        Some(100)
    );
    assert!(run.row().faults.contains(&FaultCode::L07));
    run.see((0..3u32).map(|number| external_of(1 << 30, 100 + number, None)));
    assert_eq!(
        (run.totals().external_unplaced, run.totals().evicted),
        (1, 2)
    );
}

#[test]
fn epochs_and_handoffs_give_way_where_something_about_them_was_undecided() {
    let mut run = Run::within(limits(|limits| limits.epochs = 8));
    run.see([started(1, 1)])
        .see((1..=20).map(|id| declared(1, id, 1_000 + id)));
    assert_eq!(run.totals().evicted, 12);
    assert_eq!(run.totals().epochs.live, 20, "counted by what was seen");

    let mut run = Run::within(limits(|limits| limits.handoffs_per_epoch = 3));
    run.see([declared(1, 1, 1_000)])
        .see((1..=5).map(|number| sent(1, number, 1, 1_000 + number)));
    assert_eq!(run.totals().evicted, 2);
    run.end();
    assert_eq!(run.totals().handoffs.under_way, 3);
}

#[test]
fn beyond_the_places_that_are_kept_reachability_is_not_denied() {
    let mut run = Run::within(limits(|limits| limits.places_per_epoch = 2));
    run.see([declared(5, 3, 900)]);
    run.see((6..9).map(|tid| received(tid, tid, 3, 950)));
    let mut events = launch(3, 100, 1_000);
    events.remove(0);
    run.see(events).end();
    assert_eq!(run.rows[0].sources.reachable, None);
}

#[test]
fn a_scope_that_outlasts_too_many_calls_goes_unchecked_and_is_counted() {
    let mut run = Run::within(limits(|limits| limits.calls_awaiting_scope = 2));
    run.see([declared(1, 3, 900)]);
    for number in 0..5u32 {
        let ns = 1_000 + 100 * u64::from(number);
        run.see([
            call(1, 100 + number, ns, 3),
            api(1, 100 + number, ns),
            kernel(100 + number, ns + 20, ns + 50),
        ]);
    }
    run.see([flushed(5_000), flushed(6_000)]);
    assert_eq!((run.rows.len(), run.totals().scope_unchecked), (5, 3));
    assert_eq!(run.totals().evicted, 0);
}

#[test]
fn rows_that_nobody_drains_give_way() {
    use lineage_core::correlator::Correlator;
    use lineage_core::observation::Observation;
    let mut correlator = Correlator::new(limits(|limits| limits.undrained = 3));
    for number in 0..5u32 {
        for event in launch(
            1 + u64::from(number),
            100 + number,
            1_000 * u64::from(1 + number),
        ) {
            correlator.observe(&Observation::live(event));
        }
    }
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    assert_eq!(rows.len(), 3);
    assert_eq!((faults[0].code, faults[0].count), (FaultCode::L07, 2));
    assert_eq!(correlator.totals().rows, 5, "they were given all the same");
}

#[test]
fn what_others_dropped_is_passed_on() {
    let run = ended([Dropped {
        site: DropSite::CuptiBuffer,
        count: 40,
        at: at(5),
    }
    .into()]);
    assert_eq!(
        (run.faults[0].code, run.faults[0].count),
        (FaultCode::L07, 40)
    );
    assert_eq!(run.totals().dropped[DropSite::CuptiBuffer], 40);
    assert_eq!(run.totals().faults[FaultCode::L07], 40);
}

#[test]
fn threads_that_come_and_go_do_not_pile_up() {
    use lineage_core::observation::{ThreadEnded, ThreadStarted};
    let mut run = Run::within(limits(|limits| limits.threads = 8));
    for tid in 1..1_000u64 {
        run.see([
            ThreadStarted {
                thread: thread(tid),
                name: None,
                at: at(tid * 10),
            }
            .into(),
            ThreadEnded {
                thread: thread(tid),
                at: at(tid * 10 + 5),
            }
            .into(),
        ]);
    }
    assert_eq!(run.totals().evicted, 0, "none of them was live");
}
