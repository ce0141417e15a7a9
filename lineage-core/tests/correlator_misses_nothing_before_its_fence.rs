//! Calls without operations, operations without calls, records without times: nothing is called
//! lost before the fence, and what comes after all takes the lost row's place.

mod correlator_support;

use correlator_support::*;
use lineage_core::evidence::{Evidence, Why};
use lineage_core::fault::FaultCode;
use lineage_core::id::{CorrelationId, UnwrappedCorrelationId};
use lineage_core::observation::{
    ActivityKind, ApiRecord, DeviceSession, Event, Flushed, Operation, OperationsDue,
};
use lineage_core::row::{Binding, Unattributed};

/// A launch of which CUPTI gave everything but the operation.
fn without_operation(id: u64, correlation: u32, ns: u64) -> Vec<Event> {
    let mut events = launch(id, correlation, ns);
    events.retain(|event| !matches!(event, Event::Operation(_)));
    events
}

/// Two flushes with a launch between them, which is the fence of all that thread 1 did before.
fn fence(correlation: u32, ns: u64) -> Vec<Event> {
    let mut events = vec![flushed(ns)];
    events.extend(launch(u64::from(correlation), correlation, ns + 100));
    events.push(flushed(ns + 1_000));
    events
}

#[test]
fn a_call_is_pending_until_a_flush_a_later_record_of_its_thread_and_a_further_flush() {
    let mut run = Run::new();
    run.see(without_operation(3, 100, 1_000));
    run.see([flushed(2_000), flushed(3_000), flushed(4_000)]);
    assert_eq!(
        (run.rows.len(), run.pending()),
        (0, 1),
        "its thread made no later call"
    );
    run.see(launch(4, 101, 5_000));
    assert_eq!(
        (run.rows.len(), run.pending()),
        (1, 1),
        "a further flush is missing"
    );
    run.see([flushed(6_000)]);
    assert_eq!((run.rows.len(), run.pending()), (2, 0));
    let row = &run.rows[1];
    assert_eq!(row.operation, None);
    assert_eq!(row.binding, Binding::Bound(epoch(3)));
    assert_eq!(row.faults, [FaultCode::L03]);
    assert_eq!(row.stages.start, Evidence::Unknown { why: Why::Dropped });
    assert_eq!(
        (run.totals().lost, run.totals().rows, run.totals().calls),
        (1, 2, 2)
    );
}

#[test]
fn another_threads_records_are_no_fence() {
    let mut run = Run::new();
    run.see(without_operation(3, 100, 1_000));
    run.see([
        flushed(2_000),
        api(2, 102, 2_500),
        kernel(102, 2_600, 2_700),
        flushed(3_000),
    ]);
    assert_eq!(run.totals().lost, 0);
    // A record of its own thread from before the flush returned is none either.
    run.see([api(1, 103, 2_004), flushed(4_000)]);
    assert_eq!(run.totals().lost, 0);
}

#[test]
fn a_call_above_the_greatest_operation_is_not_judged_before_the_end() {
    // The device is far behind: call after call, and no operation.
    let mut run = Run::new();
    for call in 0..5u64 {
        run.see(without_operation(
            10 + call,
            100 + call as u32,
            1_000 * (call + 1),
        ));
        run.see([flushed(1_000 * (call + 1) + 500)]);
    }
    assert_eq!((run.rows.len(), run.pending()), (0, 5));
    run.see([kernel(103, 9_000, 9_100)]);
    run.see([flushed(10_000)]);
    run.see(launch(50, 110, 11_000));
    run.see([flushed(12_000)]);
    // 100 to 102 and 104 lie below the greatest operation now.
    assert_eq!(run.totals().faults[FaultCode::L03], 4);
}

#[test]
fn an_operation_that_comes_after_all_supersedes_the_lost_row() {
    let mut run = Run::new();
    run.see(without_operation(3, 100, 1_000));
    run.see(fence(101, 2_000));
    assert_eq!(
        run.rows.last().map(|row| row.faults.as_slice()),
        Some(&[FaultCode::L03][..])
    );
    let before = run.totals().clone();
    assert_eq!((before.lost, before.rows, before.superseded), (1, 2, 0));
    run.see([kernel(100, 1_050, 99_000)]);
    let row = run.rows.last().expect("given");
    assert!(row.supersedes);
    assert_eq!(row.faults, []);
    assert_eq!(row.binding, Binding::Bound(epoch(3)));
    assert!(row.operation.is_some());
    let totals = run.totals();
    assert_eq!((totals.lost, totals.rows, totals.superseded), (0, 2, 1));
    assert_eq!((totals.faults[FaultCode::L03], totals.bound), (0, 2));
}

#[test]
fn at_the_end_of_its_session_a_call_above_the_last_operation_is_the_edge_of_the_recording() {
    for end in [
        last_flush(9_000),
        DeviceSession::Ended {
            session: 1,
            at: at(9_000),
        }
        .into(),
    ] {
        let mut run = Run::new();
        run.see(launch(3, 100, 1_000));
        run.see(without_operation(4, 101, 2_000));
        run.see([end]);
        run.end();
        assert_eq!((run.totals().lost, run.pending()), (0, 0));
        assert_eq!(
            run.totals().after_recording,
            1,
            "no fault, and nothing silent"
        );
        assert_eq!(
            (run.totals().rows, run.totals().bound),
            (2, 2),
            "it is said once, and whose it is"
        );
        let row = run.rows.last().expect("given");
        assert_eq!(row.stages.start, Evidence::Unknown { why: Why::Pending });
        // If its operation comes after all, it was no edge.
        run.see([kernel(101, 2_050, 2_090)]);
        assert_eq!(
            (run.totals().after_recording, run.totals().superseded),
            (0, 1)
        );
    }
}

#[test]
fn where_no_operation_was_recorded_at_all_every_call_that_succeeded_is_lost() {
    let mut run = Run::new();
    run.see(without_operation(3, 100, 1_000));
    run.see(without_operation(4, 101, 2_000));
    let mut failed = call_of(1, 102, 3_020, of(4));
    failed.result = 700;
    run.see([failed.into(), scope(1, 4, 9, 3_010, 3_040)]);
    run.see([last_flush(9_000)]).end();
    assert_eq!(run.totals().faults[FaultCode::L03], 2);
    assert_eq!((run.totals().rows, run.totals().after_recording), (3, 0));
}

#[test]
fn where_a_recording_just_stops_the_calls_after_the_last_operation_are_not_lost() {
    let mut events = without_operation(3, 100, 1_000);
    events.extend(launch(4, 101, 2_000));
    events.extend(without_operation(5, 102, 3_000));
    let run = ended(events);
    assert_eq!(run.rows.len(), 3);
    let row = |correlation| {
        let of = |row: &&lineage_core::row::Row| {
            row.call
                .as_ref()
                .is_some_and(|call| call.correlation.0 == correlation)
        };
        run.rows.iter().find(of).expect("given")
    };
    assert_eq!(row(100).faults, [FaultCode::L03]);
    assert_eq!(row(102).faults, []);
    assert_eq!(
        row(102).stages.start,
        Evidence::Unknown { why: Why::Pending }
    );
}

#[test]
fn a_call_that_failed_or_may_have_none_lacks_no_operation() {
    let run_with = |due, result| {
        let mut call = call_of(1, 100, 1_020, of(3));
        (call.due, call.result) = (due, result);
        let mut events = without_operation(3, 100, 1_000);
        events[1] = call.into();
        events.extend(launch(9, 101, 3_000));
        ended(events)
    };
    let failed = run_with(OperationsDue::One, 700);
    assert_eq!(failed.rows.len(), 2);
    let row = &failed.rows[0];
    assert_eq!(
        (row.operation.is_none(), row.faults.as_slice()),
        (true, &[][..])
    );
    assert_eq!(row.call.as_ref().map(|call| call.result), Some(700));
    assert_eq!(
        row.stages.start,
        Evidence::Unknown {
            why: Why::NotApplicable
        }
    );

    let any = run_with(OperationsDue::Any, 0);
    assert_eq!((any.rows.len(), any.totals().lost), (2, 0));
    // One that asks for no work, as a captured launch, has no row.
    let none = run_with(OperationsDue::None, 0);
    assert_eq!((none.rows.len(), none.totals().lost), (1, 0));
    assert_eq!(
        (none.totals().calls, none.totals().calls_without_work),
        (1, 1)
    );
}

#[test]
fn a_failed_call_is_given_without_waiting_for_a_fence() {
    let mut call = call_of(1, 100, 1_020, of(3));
    call.result = 700;
    let mut events = without_operation(3, 100, 1_000);
    events[1] = call.into();
    let mut run = Run::new();
    run.see(events);
    assert_eq!((run.rows.len(), run.pending()), (1, 0));
}

#[test]
fn a_call_that_has_many_operations_has_a_row_for_each() {
    let mut call = call_of(1, 100, 1_020, of(3));
    call.due = OperationsDue::Many;
    let mut events = without_operation(3, 100, 1_000);
    events[1] = call.into();
    for part in 0..40u64 {
        let part = kernel_of(100, 1_050 + part, 1_060 + part);
        events.push(part.clone().into());
        events.push(part.into());
    }
    let run = ended(events);
    assert_eq!(run.rows.len(), 40);
    assert!(
        run.rows
            .iter()
            .all(|row| row.binding == Binding::Bound(epoch(3)) && row.faults.is_empty())
    );
    assert_eq!(
        (run.totals().calls, run.totals().operations.total()),
        (1, 40)
    );
    assert_eq!(run.totals().duplicates, 40);
}

#[test]
fn a_record_that_is_given_twice_is_one() {
    let mut events = launch(3, 100, 1_000);
    events.extend([
        call(1, 100, 1_020, 3),
        external(3, 100, 1_020),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ]);
    let run = ended(events);
    assert_eq!(run.row().faults, []);
    assert_eq!(
        run.totals().duplicates,
        3,
        "a second external record is no duplicate: see nested calls"
    );
    assert_eq!(run.totals().operations.total(), 1);
}

#[test]
fn a_second_operation_of_a_call_that_can_have_one_is_w04() {
    let mut events = launch(3, 100, 1_000);
    events.push(kernel(100, 5_000, 5_100));
    let run = ended(events);
    assert_eq!(run.rows.len(), 2);
    assert_eq!(
        (run.rows[0].faults.as_slice(), run.rows[1].faults.as_slice()),
        (&[][..], &[FaultCode::W04][..])
    );
}

#[test]
fn an_operation_without_a_call_is_lost_after_the_fence() {
    let mut run = Run::new();
    run.see(launch(3, 99, 1_000));
    run.see(launch(4, 101, 2_000));
    run.see([kernel(100, 2_500, 2_600)]);
    assert_eq!((run.rows.len(), run.pending()), (2, 1));
    run.see([flushed(3_000), flushed(4_000)]);
    assert_eq!(run.rows.len(), 2, "no thread went on");
    run.see(launch(5, 102, 5_000));
    assert_eq!(run.rows.len(), 3);
    run.see([flushed(6_000)]);
    let row = &run.rows[3];
    assert_eq!(
        (row.binding, row.faults.as_slice()),
        (Binding::Lost, &[FaultCode::L02][..])
    );
    assert_eq!(row.call, None);
    assert_eq!(
        row.stages.api_enter,
        Evidence::Unknown { why: Why::Dropped }
    );
    assert_eq!(
        (run.totals().lost, run.pending(), run.totals().calls),
        (1, 0, 3)
    );

    // Its call comes after all.
    run.see([
        declared(1, 9, 2_400),
        call(1, 100, 2_450, 9),
        scope(1, 9, 200, 2_440, 2_470),
    ]);
    run.see([external(9, 100, 2_450), api(1, 100, 2_450)]);
    let row = run.rows.last().expect("given");
    assert!(row.supersedes);
    assert_eq!(
        (row.binding, row.faults.as_slice()),
        (Binding::Bound(epoch(9)), &[][..])
    );
    assert_eq!(
        (
            run.totals().lost,
            run.totals().rows,
            run.totals().superseded
        ),
        (0, 4, 1)
    );
    assert_eq!(run.totals().operations.total(), 4);
}

#[test]
fn an_operation_without_a_call_outside_of_the_recorded_ids_is_not_lost() {
    let mut events = vec![kernel(98, 100, 200)];
    events.extend(launch(3, 99, 1_000));
    events.extend(launch(4, 101, 2_000));
    events.push(kernel(102, 3_000, 3_100));
    let run = ended(events);
    let outside: Vec<u32> = run
        .rows
        .iter()
        .filter(|row| row.binding == Binding::Unattributed(Unattributed::OutsideRecording))
        .filter_map(|row| {
            row.operation
                .as_ref()
                .map(|operation| operation.correlation.0)
        })
        .collect();
    assert_eq!(outside, [98, 102]);
    assert_eq!(run.totals().unattributed.outside_recording, 2);
    assert_eq!(run.totals().lost, 0);
}

#[test]
fn what_the_device_launched_for_itself_is_never_joined_by_the_id_0() {
    let mut events = launch(3, 100, 1_000);
    events.push(kernel(0, 1_100, 1_200));
    events.push(
        Operation {
            kind: ActivityKind::Set,
            ..kernel_of(0, 1_100, 1_200)
        }
        .into(),
    );
    // A call whose id was not given joins with neither.
    events.push(api(1, 0, 1_090));
    let run = ended(events);
    let internal = Binding::Unattributed(Unattributed::InternalLaunch);
    assert_eq!(
        run.rows
            .iter()
            .filter(|row| row.binding == internal)
            .count(),
        2
    );
    assert_eq!(run.totals().operations.sets, 1);
    let nameless = run
        .rows
        .iter()
        .find(|row| row.operation.is_none())
        .expect("given");
    assert_eq!(
        nameless.call.as_ref().map(|call| call.correlation),
        Some(UnwrappedCorrelationId(0))
    );
}

#[test]
fn an_operation_without_times_joins_the_one_call_that_can_be_meant() {
    let run = ended(
        without_operation(3, 100, 1_000)
            .into_iter()
            .chain([kernel(100, 0, 0)]),
    );
    let row = run.row();
    assert_eq!(
        (row.binding, row.faults.as_slice()),
        (Binding::Bound(epoch(3)), &[FaultCode::L08][..])
    );
    assert_eq!(
        row.stages.start,
        Evidence::Unknown {
            why: Why::ZeroTimestamp
        }
    );

    // Before its call has come, too.
    let mut events = vec![kernel(100, 0, 0)];
    events.extend(without_operation(3, 100, 1_000));
    assert_eq!(ended(events).row().binding, Binding::Bound(epoch(3)));

    // A call that has its operation cannot be meant a second time.
    let run = ended(launch(3, 100, 1_000).into_iter().chain([kernel(100, 0, 0)]));
    assert_eq!(run.rows[1].faults, [FaultCode::L08, FaultCode::W04]);

    // And without any call it is lost like another.
    let mut events = launch(3, 99, 1_000);
    events.extend(launch(4, 101, 2_000));
    events.push(kernel(100, 0, 0));
    let run = ended(events);
    assert_eq!(run.rows[2].faults, [FaultCode::L02, FaultCode::L08]);
}

#[test]
fn an_operation_that_did_not_end_is_l08() {
    let mut events = without_operation(3, 100, 1_000);
    events.push(kernel(100, 1_050, 0));
    let run = ended(events);
    assert_eq!(run.row().faults, [FaultCode::L08]);
    assert_eq!(run.row().stages.start.at(), Some(at(1_050)));
}

#[test]
fn an_external_record_without_a_neighbour_joins_the_one_call_that_can_be_meant() {
    let bits = lineage_core::id::PackedEpoch::from(epoch(3)).bits();
    for position in [0, 1, 2, 3, 4] {
        let mut events = launch(3, 100, 1_000);
        events.remove(3);
        events.insert(position, external_of(bits, 100, None));
        let mut run = Run::new();
        run.see([DeviceSession::Started {
            session: 1,
            version: 28,
            at: at(1),
            external_correlation: Some(true),
        }
        .into()]);
        run.see(events);
        assert_eq!(run.row().sources.external, Some(of(3)), "at {position}");
    }
    let run = ended([external_of(bits, 100, None)]);
    assert_eq!(run.totals().external_unplaced, 1);
}

#[test]
fn impossible_times_are_kept_and_named() {
    let with = |operation: Operation| {
        let run = ended(
            without_operation(3, 100, 5_000)
                .into_iter()
                .chain([operation.clone().into()]),
        );
        assert_eq!(
            run.row().operation.as_ref(),
            Some(&operation),
            "nothing is repaired"
        );
        run.row().faults.clone()
    };
    // The call is entered at 5,020.
    assert_eq!(with(kernel_of(100, 4_019, 5_000)), [FaultCode::T01]);
    assert_eq!(
        with(kernel_of(100, 4_020, 5_000)),
        [],
        "within the clock's error"
    );
    assert_eq!(with(kernel_of(100, 5_050, 5_049)), [FaultCode::T02]);
    let latency = |queued, submitted| Operation {
        queued: Some(at(queued)),
        submitted: Some(at(submitted)),
        ..kernel_of(100, 9_000, 9_500)
    };
    assert_eq!(with(latency(6_000, 7_000)), []);
    assert_eq!(
        with(latency(4_000, 7_000)),
        [FaultCode::T04],
        "queued before the call"
    );
    assert_eq!(
        with(latency(8_900, 7_000)),
        [FaultCode::T04],
        "submitted before it was queued"
    );
    assert_eq!(
        with(latency(6_000, 10_001)),
        [FaultCode::T04],
        "submitted after it began"
    );
}

#[test]
fn a_call_that_was_left_before_it_was_entered_is_t02() {
    let mut call = call_of(1, 100, 1_020, of(3));
    call.exited = Some(at(1_019));
    let mut events = launch(3, 100, 1_000);
    events[1] = call.into();
    assert_eq!(ended(events).row().faults, [FaultCode::T02]);
}

#[test]
fn calls_over_the_wrap_are_told_apart_by_their_times() {
    let mut run = Run::new();
    // Wire ids 2^32 − 1, then 2: neighbours, with operations that come hours late.
    run.see(without_operation(3, u32::MAX, 1_000));
    run.see(without_operation(4, 2, 2_000));
    run.see([kernel(2, 2_050, 2_060), kernel(u32::MAX, 1_050, 1_060)]);
    let ids: Vec<u64> = run
        .rows
        .iter()
        .filter_map(|row| row.call.as_ref().map(|call| call.correlation.0))
        .collect();
    assert_eq!(ids, [0x1_0000_0002, 0xffff_ffff]);
    assert_eq!(run.rows[0].binding, Binding::Bound(epoch(4)));
    assert_eq!(run.rows[1].binding, Binding::Bound(epoch(3)));
}

#[test]
fn one_wire_id_on_two_sides_of_the_wrap_is_two_calls() {
    let mut run = Run::new();
    run.see(launch(3, 7, 1_000));
    // 2^30 ids between each of these and the next.
    for step in 1..4u64 {
        run.see(launch(
            10 + step,
            (step << 30) as u32,
            1_000 + step * 1_000_000,
        ));
    }
    run.see(without_operation(4, 7, 5_000_000));
    run.see([kernel(7, 5_000_050, 5_000_060)]);
    let row = run.rows.last().expect("given");
    assert_eq!(row.binding, Binding::Bound(epoch(4)));
    assert_eq!(
        row.call.as_ref().map(|call| call.correlation.0),
        Some((1 << 32) + 7)
    );
    assert_eq!(row.faults, []);
}

#[test]
fn a_call_that_waits_while_2_to_the_31_ids_go_by_gives_way_with_a_fault() {
    let mut run = Run::new();
    run.see(without_operation(3, 7, 1_000));
    for step in 1..9u64 {
        run.see(launch(
            10 + step,
            (step << 28) as u32,
            1_000 + step * 1_000_000,
        ));
    }
    let row = run
        .rows
        .iter()
        .find(|row| row.operation.is_none())
        .expect("given");
    assert_eq!(row.faults, [FaultCode::L07]);
    assert_eq!(row.binding, Binding::Bound(epoch(3)));
    assert_eq!((run.totals().evicted, run.pending()), (1, 0));
    assert_eq!(run.loose(), [FaultCode::L07]);
}

#[test]
fn two_calls_of_one_thread_with_one_id_are_w04_unless_they_are_one_record() {
    let twice = |again: u64| {
        let mut events = vec![declared(1, 3, 1_000)];
        for ns in [1_020, again] {
            events.extend([
                call(1, 100, ns, 3),
                scope(1, 3, ns, ns - 5, ns + 15),
                api(1, 100, ns),
                kernel(100, ns + 20, ns + 30),
            ]);
        }
        events.push(last_flush(9_000));
        ended(events)
    };
    let run = twice(1_020);
    assert_eq!((run.rows.len(), run.totals().wrong), (1, 0));
    assert_eq!(run.totals().duplicates, 3, "call, api and kernel");
    let run = twice(1_100);
    assert!(run.totals().faults[FaultCode::W04] >= 1, "{:#?}", run.rows);
    assert_eq!(run.totals().lost, 0);
    assert_eq!(run.totals().operations.kernels, 2);
}

#[test]
fn two_calls_with_one_id_are_w04() {
    // On another thread, so no runtime call can have made both.
    let mut events = launch(3, 100, 1_000);
    events.extend([
        declared(2, 4, 1_100),
        call(2, 100, 1_120, 4),
        scope(2, 4, 9, 1_110, 1_140),
    ]);
    let run = ended(events);
    assert!(
        run.rows
            .iter()
            .any(|row| row.faults.contains(&FaultCode::W04)),
        "{:#?}",
        run.rows
    );
    let record = ApiRecord {
        tid: 2,
        ..api_of(2, 100, 1_500)
    };
    let run = ended(launch(3, 100, 1_000).into_iter().chain([record.into()]));
    assert_eq!(run.loose(), [FaultCode::W04]);
    assert_eq!(run.totals().wrong, 1);
}

#[test]
fn an_import_without_our_own_records_is_not_held_back() {
    let mut run = Run::new();
    let mut given = 0;
    for call in 0..10_000u32 {
        let ns = 1_000 + u64::from(call) * 100;
        run.see([api(1, 1 + call, ns), kernel(1 + call, ns + 20, ns + 50)]);
        given = given.max(run.rows.len());
    }
    assert!(run.pending() < 5_000, "{}", run.pending());
    run.end();
    assert_eq!(run.rows.len(), 10_000);
    assert_eq!(run.totals().unattributed.no_epoch_evidence, 10_000);
    assert_eq!(
        run.totals().lost + run.totals().wrong + run.totals().evicted,
        0
    );
}

#[test]
fn two_sessions_with_the_same_ids_are_kept_apart() {
    let in_session = |number, event: Event| match event {
        Event::Api(api) => Event::Api(ApiRecord {
            session: number,
            ..api
        }),
        Event::Operation(operation) => Event::Operation(Operation {
            session: number,
            ..operation
        }),
        Event::External(mut external) => {
            external.session = number;
            Event::External(external)
        }
        other => other,
    };
    let mut events = vec![started(1, 500)];
    events.extend(launch(3, 100, 1_000));
    events.push(
        Flushed {
            session: 1,
            asked: at(3_000),
            returned: at(3_005),
            last: true,
        }
        .into(),
    );
    events.push(started(2, 5_000));
    events.extend(
        launch(4, 100, 6_000)
            .into_iter()
            .map(|event| in_session(2, event)),
    );
    let run = ended(events);
    let joined: Vec<(u32, CorrelationId, Binding)> = run
        .rows
        .iter()
        .filter_map(|row| {
            row.call
                .as_ref()
                .map(|call| (call.session, call.correlation.wire(), row.binding))
        })
        .collect();
    let id = CorrelationId(100);
    assert_eq!(
        joined,
        [
            (1, id, Binding::Bound(epoch(3))),
            (2, id, Binding::Bound(epoch(4)))
        ]
    );
    assert!(run.rows.iter().all(|row| row.faults.is_empty()));
}
