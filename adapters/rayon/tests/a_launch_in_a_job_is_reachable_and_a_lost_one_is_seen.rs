//! What the records show of launches in jobs, while the program runs: those of carried jobs are
//! bound, reachable and no fault on whichever thread; those of plain rayon jobs are `L01` where the
//! thread waited in this crate's functions. Where it waited in rayon's, only truth tells.
#![cfg(feature = "record")]

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Waits, in_the_midst, pool, recorded};
use lineage_core::fault::FaultCode;
use lineage_core::hook::{self, CallLeft};
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{ApiDomain, OperationsDue};
use lineage_core::row::{Binding, Row};
use lineage_core::{Epoch, Report};
use lineage_rayon::{ParallelIteratorExt as _, ThreadPoolExt as _};
use rayon::prelude::*;

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

/// The one row of this call.
fn row(report: &Report, number: u32) -> &Row {
    let mut rows = report.rows.iter().filter(|row| {
        let call = row.call.as_ref();
        call.is_some_and(|call| call.correlation.0 == u64::from(number))
    });
    let row = rows.next().expect("it has a row");
    assert!(rows.next().is_none(), "and one only");
    row
}

#[test]
fn of_carried_jobs_all_are_reachable() {
    let ((epoch, launches), report) = recorded(|| {
        let epoch = Epoch::declare("request");
        let pool = pool(4);
        let launches = Mutex::new(Vec::new());
        let note = || launches.lock().expect("no panic").push(launch());
        epoch.run(|| {
            pool.install_in_epoch(|| {
                note();
                let items = (0..64).into_par_iter().with_max_len(1);
                items.in_current_epoch().for_each(|_| {
                    note();
                    lineage_rayon::join(note, || lineage_rayon::scope(|it| it.spawn(|_| note())));
                    note();
                });
                lineage_rayon::broadcast(|_| note());
            });
        });
        let launches = launches.into_inner().expect("no panic");
        (epoch.id().expect("recording is on"), launches)
    });
    assert_eq!(launches.len(), 1 + 64 * 4 + 4);
    for number in launches {
        let row = row(&report, number);
        assert_eq!(row.binding, Binding::Bound(epoch));
        assert_eq!(row.sources.reachable, Some(true), "call {number}");
        assert_eq!(row.faults, []);
    }
    assert_eq!(report.totals.faults.iter().collect::<Vec<_>>(), []);
}

#[test]
fn of_plain_jobs_they_are_lost_and_seen_to_be_or_wrong() {
    for waits in [Waits::InLineage, Waits::InRayon] {
        let ((waiting, own, plain), report) = recorded(|| {
            let (waiting, truth) = (Epoch::declare("waiting"), Epoch::declare("truth"));
            let pool = pool(2);
            let (own, plain) = waiting.run(|| {
                pool.install_in_epoch(|| {
                    let (answer, launched) = std::sync::mpsc::channel();
                    in_the_midst(waits, |done| {
                        truth.run(|| {
                            rayon::spawn(move || {
                                answer.send(launch()).expect("it waits");
                                done.send(()).expect("the thief waits");
                            })
                        })
                    });
                    (launch(), launched.recv().expect("it was launched"))
                })
            });
            (waiting.id().expect("recording is on"), own, plain)
        });
        assert_eq!(row(&report, own).binding, Binding::Bound(waiting));
        assert_eq!(row(&report, own).faults, []);
        let plain = row(&report, plain);
        match waits {
            Waits::InLineage => {
                assert_eq!(plain.binding, Binding::Lost);
                assert_eq!(plain.faults, [FaultCode::L01]);
            }
            Waits::InRayon => {
                assert_eq!(plain.binding, Binding::Bound(waiting), "it is wrong");
                assert_eq!(plain.faults, [], "and nothing in it shows that");
            }
        }
        // In both cases the request that it was really for seems to have asked for no GPU work.
        assert_eq!(report.totals.epochs.ended_without_gpu_work, 1);
    }
}
