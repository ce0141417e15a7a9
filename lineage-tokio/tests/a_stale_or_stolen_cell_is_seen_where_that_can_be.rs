//! What the records themselves show of a handoff that went wrong, while the program runs: the table
//! of the crate's documentation, row by row. Each launch is told apart by the number of its call,
//! which is the truth here.
//!
//! | what went wrong | seen live |
//! | --- | --- |
//! | the carrier was forgotten, on a thread that has lineage events | `L01` |
//! | an envelope was opened, and its epoch dropped | `L01`, and `L04`: the epoch never launched |
//! | a value was taken out of its envelope | `L05`, `L01`, `L04` |
//! | a guard was held across an await, and another task launched meanwhile | `W02` |
//! | a guard was held across an await, and another task took its epoch along | `W07` |
//! | a task was polled in the midst of another's poll, and launched there | `W02` |
//! | an epoch was given to another thread as a value, without a carrier | the row is *unreachable* |
//! | the carrier was forgotten, on a thread that never saw lineage | unattributed: foreign thread |
//! | two envelopes were swapped | nothing: only truth tells |
//! | a future was polled within another's, in one task | nothing: only truth tells |
#![cfg(feature = "record")]

mod common;

use std::sync::atomic::{AtomicU32, Ordering};

use common::{Recorded, runtime};
use lineage_core::fault::FaultCode;
use lineage_core::hook::{self, CallLeft};
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{ApiDomain, MisuseKind, OperationsDue};
use lineage_core::row::{Binding, Row, Unattributed};
use lineage_core::{Attribution, Epoch};
use lineage_tokio::{FutureExt as _, JoinSetExt as _, LineageExt as _, carried, carried_by};
use tokio::task::LocalSet;

/// A session with a layer, as a server has one: from there on tasks are told apart.
fn recorded<R>(body: impl FnOnce() -> R) -> (R, Recorded) {
    common::recorded(|lineage| {
        let _layer = lineage.layer();
        body()
    })
}

/// What lineage-cupti's callback does when a kernel is launched. The number of the call.
fn launch() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let snapshot = hook::call_entered();
    let left = CallLeft {
        domain: ApiDomain::Driver,
        cbid: 307, // cuLaunchKernel
        correlation: CorrelationId(number),
        result: 0,
        due: OperationsDue::One,
        exited: Some(HostNanos(hook::now())),
    };
    hook::call_left(&snapshot, &left);
    number
}

/// The row of this call.
fn row(report: &Recorded, number: u32) -> &Row {
    let of_call = |row: &&Row| {
        let call = row.call.as_ref();
        call.is_some_and(|call| call.correlation.0 == u64::from(number))
    };
    let mut rows = report.0.rows.iter().filter(of_call);
    let row = rows.next().expect("it has a row");
    assert!(rows.next().is_none(), "and one only");
    row
}

/// How often the validator raises a code. It derives everything from the observations, with code of
/// its own.
fn validated(report: &Recorded, code: FaultCode) -> u64 {
    let options = lineage_validator::Options::default();
    let validation = lineage_validator::validate(&report.0.observations, None, &options);
    validation.fault_counts.get(&code).copied().unwrap_or(0)
}

#[test]
fn what_is_carried_is_reachable_and_no_fault() {
    let ((epoch, launches), report) = recorded(|| {
        let runtime = runtime(2);
        let epoch = Epoch::declare("request");
        let mut launches = vec![epoch.run(launch)];
        runtime.block_on(async {
            let mut parts = tokio::task::JoinSet::new();
            epoch.run(|| {
                for _ in 0..4 {
                    parts.spawn_carried(async {
                        tokio::task::yield_now().await;
                        launch()
                    });
                    parts.spawn_blocking_carried(launch);
                }
            });
            while let Some(part) = parts.join_next().await {
                launches.push(part.expect("no panic"));
            }
        });
        let (thread, job) = epoch.run(|| (lineage_core::thread::spawn(launch), carried(())));
        launches.push(thread.join().expect("no panic"));
        let far = std::thread::spawn(|| job.run(|()| launch()));
        launches.push(far.join().expect("no panic"));
        // Polled here and there by nobody's task.
        let mut future = Box::pin(
            async {
                let first = launch();
                tokio::task::yield_now().await;
                [first, launch()]
            }
            .in_epoch(&epoch),
        );
        let poll = move || {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let poll = future.as_mut().poll(&mut context);
            (poll, future)
        };
        let far = std::thread::spawn(poll);
        let (pending, future) = far.join().expect("no panic");
        assert!(pending.is_pending());
        launches.extend(futures_executor::block_on(future));
        (epoch.id().expect("recording is on"), launches)
    });
    assert_eq!(launches.len(), 13);
    for number in launches {
        let row = row(&report, number);
        assert_eq!(row.binding, Binding::Bound(epoch));
        assert_eq!(row.sources.reachable, Some(true), "call {number}");
        assert_eq!(row.faults, []);
    }
    assert_eq!(report.0.totals.faults.iter().collect::<Vec<_>>(), []);
    assert_eq!(validated(&report, FaultCode::W02), 0);
}

#[test]
fn a_task_that_was_spawned_without_its_carrier_is_l01_where_lineage_was_seen() {
    let ((epoch, known, foreign), report) = recorded(|| {
        let runtime = runtime(1);
        let epoch = Epoch::declare("request");
        // The worker has not seen lineage yet: it may be a library's own.
        let foreign = epoch.run(|| runtime.spawn(async { launch() }));
        let foreign = runtime.block_on(foreign).expect("no panic");
        let work = async {
            let forgotten = tokio::spawn(async { launch() });
            (launch(), forgotten.await.expect("no panic"))
        };
        let carried = runtime.spawn(work.in_epoch(&epoch));
        let known = runtime.block_on(carried).expect("no panic");
        (epoch.id().expect("recording is on"), known, foreign)
    });
    let (kept, forgotten) = known;
    assert_eq!(row(&report, kept).binding, Binding::Bound(epoch));
    let lost = row(&report, forgotten);
    assert_eq!(lost.binding, Binding::Lost);
    assert_eq!(lost.faults, [FaultCode::L01]);
    assert_eq!(validated(&report, FaultCode::L01), 1);
    let foreign = row(&report, foreign);
    let by_nobody = Binding::Unattributed(Unattributed::ForeignThread);
    assert_eq!((foreign.binding, &*foreign.faults), (by_nobody, &[][..]));
}

#[test]
fn an_envelope_whose_epoch_is_not_worked_for_is_l01_and_one_that_is_emptied_l05() {
    let ((ids, launches), report) = recorded(|| {
        let (request, emptied) = (Epoch::declare("request"), Epoch::declare("emptied"));
        let ids = [&request, &emptied].map(Epoch::id);
        let jobs = [carried_by(&request, 1), carried_by(&emptied, 2)];
        let engine = std::thread::spawn(|| {
            let [opened, emptied] = jobs;
            let (_, epoch) = opened.open();
            drop(epoch);
            let without = launch();
            let _ = emptied.into_payload();
            [without, launch()]
        });
        (ids, engine.join().expect("no panic"))
    });
    for number in launches {
        let row = row(&report, number);
        assert_eq!(
            (row.binding, &*row.faults),
            (Binding::Lost, &[FaultCode::L01][..])
        );
    }
    let [opened, emptied] = ids;
    let mut loose: Vec<_> = report
        .0
        .faults
        .iter()
        .map(|fault| (fault.code, fault.epoch))
        .collect();
    loose.sort_unstable();
    // Neither was launched for, which is said as well.
    let expected = [
        (FaultCode::L04, opened),
        (FaultCode::L04, emptied),
        (FaultCode::L05, emptied),
    ];
    assert_eq!(loose, expected);
    assert_eq!(validated(&report, FaultCode::L01), 2);
    assert_eq!(validated(&report, FaultCode::L05), 1);
}

#[test]
fn what_one_task_polls_within_its_own_future_only_truth_can_tell() {
    let ((epoch, stolen), report) = recorded(|| {
        let epoch = Epoch::declare("request");
        let id = epoch.id().expect("recording is on");
        // Another request's work, which lost its epoch and is joined here.
        let another = async { launch() };
        let work = async { tokio::join!(async { launch() }, another) };
        let (_, stolen) = runtime(1).block_on(work.in_epoch(epoch));
        (id, stolen)
    });
    let row = row(&report, stolen);
    assert_eq!(
        (row.binding, &*row.faults),
        (Binding::Bound(epoch), &[][..])
    );
}

#[test]
#[expect(
    clippy::await_holding_invalid_type,
    reason = "this is the mistake that is to be seen"
)]
fn a_guard_across_an_await_is_w02_where_another_task_launches_and_w07_where_it_inherits() {
    let ((epoch, stolen, inherited), report) = recorded(|| {
        let runtime = runtime(1);
        let set = LocalSet::new();
        let epoch = Epoch::declare("request");
        let id = epoch.id().expect("recording is on");
        let (stolen, inherited) = set.block_on(&runtime, async {
            let holder = tokio::task::spawn_local(async move {
                let scope = epoch.enter();
                tokio::task::yield_now().await;
                drop(scope);
            });
            let other = tokio::task::spawn_local(async { (launch(), carried(())) });
            holder.await.expect("no panic");
            other.await.expect("no panic")
        });
        (id, stolen, inherited.run(|()| launch()))
    });
    let row = row(&report, stolen);
    // It is joined to whose it is not, and that is said.
    assert_eq!(row.binding, Binding::Bound(epoch));
    assert_eq!(row.faults, [FaultCode::W02]);
    assert_eq!(validated(&report, FaultCode::W02), 1);
    // What was taken along looks as good as any other from there on, so it is said where it
    // happened.
    assert_eq!(self::row(&report, inherited).binding, Binding::Bound(epoch));
    assert_eq!(self::row(&report, inherited).faults, []);
    let held = (MisuseKind::ScopeAcrossTasks, Attribution::Epoch(epoch));
    assert_eq!(report.misuses(), [held]);
}

#[test]
fn a_task_that_is_polled_within_anothers_poll_is_w02() {
    let ((epoch, kept, stolen), report) = recorded(|| {
        let runtime = runtime(1);
        let (outer, inner) = (LocalSet::new(), LocalSet::new());
        let (epoch, other) = (Epoch::declare("request"), Epoch::declare("other"));
        let id = epoch.id().expect("recording is on");
        // Two tasks of a set that the request's future happens to drive: one with its epoch, one
        // without.
        let kept = inner.spawn_local(async { launch() }.in_epoch(&other));
        let stolen = inner.spawn_local(async { launch() });
        let both = async move { inner.run_until(async { (kept.await, stolen.await) }).await };
        let both = outer.spawn_local(both.in_epoch(epoch));
        let (kept, stolen) = outer.block_on(&runtime, both).expect("no panic");
        let kept = (
            kept.expect("no panic"),
            other.id().expect("recording is on"),
        );
        (id, kept, stolen.expect("no panic"))
    });
    let (kept, other) = kept;
    assert_eq!(row(&report, kept).binding, Binding::Bound(other));
    assert_eq!(row(&report, kept).faults, []);
    assert_eq!(row(&report, stolen).binding, Binding::Bound(epoch));
    assert_eq!(row(&report, stolen).faults, [FaultCode::W02]);
    assert_eq!(validated(&report, FaultCode::W02), 1);
}

#[test]
fn an_epoch_that_came_without_a_carrier_is_unreachable() {
    let ((epoch, launched), report) = recorded(|| {
        let epoch = Epoch::declare("request");
        let value = epoch.clone();
        let far = std::thread::spawn(move || value.run(launch));
        let launched = far.join().expect("no panic");
        (epoch.id().expect("recording is on"), launched)
    });
    let row = row(&report, launched);
    assert_eq!(row.binding, Binding::Bound(epoch));
    assert_eq!(row.sources.reachable, Some(false));
    assert_eq!(row.faults, []);
    assert_eq!(report.0.totals.unreachable, 1);
}

#[test]
fn two_envelopes_that_were_swapped_only_truth_can_tell() {
    let ((epochs, launched), report) = recorded(|| {
        let epochs: [Epoch; 2] = std::array::from_fn(|_| Epoch::declare("request"));
        let [first, second] = [0, 1].map(|number| carried_by(&epochs[number], number));
        // Each value goes on in the other's envelope.
        let (one, other) = (*first.payload(), *second.payload());
        let swapped = [first.map(|_| other), second.map(|_| one)];
        let launched = swapped.map(|job| {
            let far = std::thread::spawn(|| job.run(|number| (number, launch())));
            far.join().expect("no panic")
        });
        let ids = epochs.map(|epoch| epoch.id().expect("recording is on"));
        (ids, launched)
    });
    for (number, call) in launched {
        let row = row(&report, call);
        assert_ne!(row.binding, Binding::Bound(epochs[number]), "it is wrong");
        assert_eq!(row.sources.reachable, Some(true));
        assert_eq!(row.faults, []);
    }
    assert_eq!(report.0.totals.faults.iter().collect::<Vec<_>>(), []);
    assert_eq!(report.0.totals.wrong, 0);
}
