//! A runtime call and the driver call it makes are one call, whatever ids CUPTI gives them.

mod correlator_support;

use correlator_support::*;
use lineage_core::fault::FaultCode;
use lineage_core::observation::{Event, OperationsDue};
use lineage_core::row::Binding;

/// A runtime launch: its record over [1,015, 1,035], the driver's over [1,020, 1,030].
struct Ids {
    runtime: u32,
    driver: u32,
    operation: u32,
}

impl Ids {
    fn host(&self) -> Vec<Event> {
        vec![
            declared(1, 3, 1_000),
            call(1, self.driver, 1_020, 3),
            scope(1, 3, 1, 1_010, 1_040),
        ]
    }

    fn device(&self) -> Vec<Event> {
        vec![
            external(3, self.driver, 1_020),
            api(1, self.driver, 1_020),
            external(3, self.runtime, 1_015),
            runtime_api(1, self.runtime, 1_015, 1_035),
            kernel(self.operation, 1_050, 1_090),
        ]
    }
}

const EACH: [Ids; 3] = [
    Ids {
        runtime: 100,
        driver: 100,
        operation: 100,
    },
    Ids {
        runtime: 100,
        driver: 101,
        operation: 100,
    },
    Ids {
        runtime: 100,
        driver: 101,
        operation: 101,
    },
];

#[test]
fn one_call_one_operation_one_row_by_whichever_id() {
    for ids in EACH {
        for host_first in [true, false] {
            for turned in 0..5 {
                let mut device = ids.device();
                device.rotate_left(turned);
                let events = if host_first {
                    [ids.host(), device].concat()
                } else {
                    [device, ids.host()].concat()
                };
                let run = ended(events.into_iter().chain([last_flush(9_000)]));
                let row = run.row();
                let what = format!(
                    "{}/{}/{} turned by {turned}",
                    ids.runtime, ids.driver, ids.operation
                );
                assert_eq!(row.binding, Binding::Bound(epoch(3)), "{what}");
                assert_eq!(row.faults, [], "{what}");
                assert_eq!(row.sources.callback, Some(of(3)), "{what}");
                assert_eq!(row.sources.containment, Some(of(3)), "{what}");
                let call = row.call.as_ref().expect("it has a call");
                assert_eq!(
                    call.correlation.0,
                    u64::from(ids.driver),
                    "the driver's record speaks"
                );
                let totals = run.totals();
                assert_eq!(
                    (totals.calls, totals.operations.total(), totals.rows),
                    (1, 1, 1),
                    "{what}"
                );
                assert_eq!(
                    (totals.lost, totals.wrong, totals.pending),
                    (0, 0, 0),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn a_nested_call_without_an_operation_is_missed_once() {
    for ids in EACH {
        let mut device = ids.device();
        device.pop();
        let run = ended([ids.host(), device, vec![last_flush(9_000)]].concat());
        assert_eq!(run.row().faults, [FaultCode::L03]);
        assert_eq!(run.row().binding, Binding::Bound(epoch(3)));
        assert_eq!((run.totals().calls, run.totals().lost), (1, 1));
    }
}

#[test]
fn a_late_operation_supersedes_the_lost_row_by_whichever_id() {
    for ids in EACH {
        let mut device = ids.device();
        let operation = device.pop().expect("the kernel");
        let mut run = Run::new();
        run.see([ids.host(), device].concat());
        run.see([flushed(2_000)]);
        run.see(launch(8, 300, 3_000));
        run.see([flushed(4_000)]);
        run.see(launch(9, 301, 5_000));
        run.see([flushed(6_000)]);
        assert_eq!(run.totals().faults[FaultCode::L03], 1);
        run.see([operation]);
        let row = run.rows.last().expect("given");
        assert!(row.supersedes);
        assert_eq!(
            (row.binding, row.faults.as_slice()),
            (Binding::Bound(epoch(3)), &[][..])
        );
        assert_eq!(
            (run.totals().rows, run.totals().calls, run.totals().lost),
            (3, 3, 0)
        );
    }
}

#[test]
fn a_captured_launch_asks_for_no_work_though_the_runtime_calls_table_says_so() {
    for ids in EACH {
        let mut captured = call_of(1, ids.driver, 1_020, of(3));
        captured.due = OperationsDue::None;
        let mut host = ids.host();
        host[1] = captured.into();
        let mut device = ids.device();
        device.pop();
        let run = ended([host, device, vec![last_flush(9_000)]].concat());
        assert_eq!(run.rows, []);
        assert_eq!((run.totals().calls, run.totals().lost), (0, 0));
    }
}

#[test]
fn a_runtime_call_may_make_several_driver_calls() {
    // One id for all, as where the runtime's id is handed down, or one each.
    for ids in [[100, 100, 100], [100, 101, 102]] {
        let [runtime, first, second] = ids;
        let run = ended([
            declared(1, 3, 1_000),
            call(1, first, 1_020, 3),
            call(1, second, 1_050, 3),
            scope(1, 3, 1, 1_010, 1_090),
            external(3, first, 1_020),
            api(1, first, 1_020),
            external(3, second, 1_050),
            api(1, second, 1_050),
            external(3, runtime, 1_015),
            runtime_api(1, runtime, 1_015, 1_080),
            kernel(runtime, 1_100, 1_200),
            kernel(runtime, 1_300, 1_400),
            last_flush(9_000),
        ]);
        assert_eq!(run.rows.len(), 2, "{ids:?}");
        assert!(
            run.rows.iter().all(|row| row.faults.is_empty()),
            "{ids:?} {:#?}",
            run.rows
        );
        assert!(
            run.rows
                .iter()
                .all(|row| row.binding == Binding::Bound(epoch(3)))
        );
        assert_eq!(run.totals().lost + run.totals().wrong, 0);
    }
}

#[test]
fn a_runtime_call_of_another_thread_encloses_nothing() {
    let run = ended([
        declared(1, 3, 1_000),
        call(1, 101, 1_020, 3),
        scope(1, 3, 1, 1_010, 1_040),
        api(1, 101, 1_020),
        runtime_api(2, 100, 1_015, 1_035),
        kernel(101, 1_050, 1_090),
        last_flush(9_000),
    ]);
    assert_eq!(run.totals().calls, 2);
    assert_eq!(
        run.totals().faults[FaultCode::L03],
        1,
        "the other thread's call has no operation"
    );
}

#[test]
fn an_old_recording_has_two_api_rows_and_one_operation_per_call() {
    // As one Nsight Systems file has it: no callback of ours, one id, five kernels.
    let mut events = Vec::new();
    for launch in 0..5u32 {
        let ns = 1_000 + u64::from(launch) * 1_000;
        events.push(runtime_api(1, 100 + launch, ns, ns + 50));
        events.push(api(1, 100 + launch, ns + 10));
        events.push(kernel(100 + launch, ns + 100, ns + 200));
    }
    let run = ended(events);
    assert_eq!(
        (run.rows.len(), run.totals().calls, run.totals().lost),
        (5, 5, 0)
    );
}
