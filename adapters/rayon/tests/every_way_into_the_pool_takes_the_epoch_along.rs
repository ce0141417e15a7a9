//! join, scope, spawn, install, broadcast and iterators: made where an epoch is current, they run
//! in it, whether they come from a thread of the pool or from outside.
#![cfg(feature = "record")]

mod common;

use std::sync::Mutex;
use std::sync::mpsc::channel;

use common::{Handoffs, assert_nothing_is_current_on, current, handoffs, pool, recorded};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::Event;
use lineage_rayon::{ParallelIteratorExt as _, ThreadPoolExt as _};
use rayon::prelude::*;

/// A way of going into the pool: it hands back what its jobs saw.
type Way = (&'static str, fn() -> Vec<Option<LaunchEpoch>>);

const WAYS: [Way; 8] = [
    ("join", || {
        let (a, b) = lineage_rayon::join(current, || lineage_rayon::join(current, current));
        vec![a, b.0, b.1]
    }),
    ("scope", || {
        let seen = Mutex::new(Vec::new());
        let note = || seen.lock().expect("no panic").push(current());
        lineage_rayon::scope(|scope| {
            note();
            for _ in 0..8 {
                scope.spawn(|scope| {
                    note();
                    scope.spawn(|_| note());
                });
            }
        });
        seen.into_inner().expect("no panic")
    }),
    ("in_place_scope", || {
        let seen = Mutex::new(Vec::new());
        let here = std::thread::current().id();
        lineage_rayon::in_place_scope(|scope| {
            assert_eq!(std::thread::current().id(), here);
            seen.lock().expect("no panic").push(current());
            scope.spawn(|_| seen.lock().expect("no panic").push(current()));
        });
        seen.into_inner().expect("no panic")
    }),
    ("spawn", || {
        let (answer, seen) = channel();
        let first = answer.clone();
        lineage_rayon::spawn(move || {
            let second = first.clone();
            first.send(current()).expect("it waits");
            lineage_rayon::spawn(move || second.send(current()).expect("it waits"));
        });
        lineage_rayon::spawn_fifo(move || answer.send(current()).expect("it waits"));
        // Other jobs must run meanwhile if this is the pool's only free thread.
        std::iter::from_fn(|| {
            loop {
                match seen.try_recv() {
                    Ok(seen) => break Some(seen),
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => break None,
                    Err(std::sync::mpsc::TryRecvError::Empty) => {
                        if rayon::yield_now().is_none() {
                            std::thread::yield_now();
                        }
                    }
                }
            }
        })
        .collect()
    }),
    ("broadcast", || lineage_rayon::broadcast(|_| current())),
    ("another pool's install", || {
        vec![pool(2).install_in_epoch(current)]
    }),
    ("another pool's spawn and broadcast", || {
        let (answer, seen) = channel();
        let pool = pool(2);
        pool.spawn_in_epoch(move || answer.send(current()).expect("it waits"));
        let mut all = pool.broadcast_in_epoch(|_| current());
        all.extend(seen);
        assert_nothing_is_current_on(&pool);
        all
    }),
    ("an iterator", || {
        let all = (0..100).into_par_iter().in_current_epoch();
        all.map(|_| current()).collect()
    }),
];

#[test]
fn from_a_thread_of_the_pool() {
    let pool = pool(4);
    for (way, go) in WAYS {
        let ((epoch, seen), report) = recorded(|| {
            let epoch = Epoch::declare("request");
            let seen = pool.install(|| epoch.run(go));
            assert_nothing_is_current_on(&pool);
            (epoch.id(), seen)
        });
        check(way, epoch, &seen, &report);
    }
}

#[test]
fn from_outside_of_the_pool() {
    for (way, go) in WAYS {
        let ((epoch, seen), report) = recorded(|| {
            let epoch = Epoch::declare("request");
            let seen = epoch.run(|| {
                let seen = go();
                assert_eq!(current(), epoch.id(), "{way}");
                seen
            });
            (epoch.id(), seen)
        });
        check(way, epoch, &seen, &report);
    }
}

#[test]
fn without_an_epoch_they_are_rayons() {
    for (way, go) in WAYS {
        let (seen, report) = recorded(go);
        assert!(seen.iter().all(Option::is_none), "{way}: {seen:?}");
        let none = |event: &Event| !matches!(event, Event::Sent(_) | Event::Received(_));
        assert!(
            report.observations.iter().all(|it| none(&it.event)),
            "{way}"
        );
    }
}

fn check(
    way: &str,
    epoch: Option<LaunchEpoch>,
    seen: &[Option<LaunchEpoch>],
    report: &lineage_core::Report,
) {
    assert!(!seen.is_empty(), "{way}");
    assert!(
        seen.iter().all(|seen| *seen == epoch),
        "{way}: {seen:?} is not {epoch:?}"
    );
    let epoch = epoch.expect("recording is on");
    let Handoffs {
        sent,
        received,
        abandoned,
    } = handoffs(report, epoch);
    assert!(sent > 0, "{way}");
    assert_eq!((received, abandoned), (sent, 0), "{way}");
    let retired = report
        .observations
        .iter()
        .filter(|it| matches!(&it.event, Event::Retired(retired) if retired.epoch.id == epoch.id));
    assert_eq!(retired.count(), 1, "{way}");
}
