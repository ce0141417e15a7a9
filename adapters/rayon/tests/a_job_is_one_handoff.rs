//! What is recorded is bounded by jobs, not by items, and says where in the source they were made.
#![cfg(feature = "record")]

mod common;

use common::{Handoffs, handoffs, pool, recorded};
use lineage_core::observation::Event;
use lineage_core::{Epoch, Report};
use lineage_rayon::{ParallelIteratorExt as _, ThreadPoolExt as _};
use rayon::prelude::*;

const ITEMS: usize = 100_000;

fn of_one_request(threads: usize, work: impl FnOnce() + Send) -> (Handoffs, Report) {
    let pool = pool(threads);
    let (epoch, report) = recorded(|| {
        let epoch = Epoch::declare("request");
        pool.install(|| epoch.run(work));
        epoch.id().expect("recording is on")
    });
    (handoffs(&report, epoch), report)
}

fn all_received(count: usize) -> Handoffs {
    Handoffs {
        sent: count,
        received: count,
        abandoned: 0,
    }
}

#[test]
fn a_join_within_the_pool_is_one() {
    let (handoffs, _) = of_one_request(2, || {
        lineage_rayon::join(|| (), || ());
    });
    assert_eq!(handoffs, all_received(1));
}

#[test]
fn a_join_from_outside_is_two() {
    let (epoch, report) = recorded(|| {
        let epoch = Epoch::declare("request");
        epoch.run(|| lineage_rayon::join(|| (), || ()));
        epoch.id().expect("recording is on")
    });
    assert_eq!(handoffs(&report, epoch), all_received(2));
}

#[test]
fn a_broadcast_is_one_for_each_thread() {
    let (handoffs, _) = of_one_request(3, || drop(lineage_rayon::broadcast(|_| ())));
    assert_eq!(handoffs, all_received(3));
}

#[test]
fn a_scope_is_one_for_each_spawn() {
    let (handoffs, _) = of_one_request(2, || {
        lineage_rayon::scope(|scope| (0..5).for_each(|_| scope.spawn(|_| ())));
    });
    assert_eq!(handoffs, all_received(5));
}

#[test]
fn an_iterator_is_one_for_each_piece() {
    let (handoffs, _) = of_one_request(4, || {
        let items = (0..ITEMS).into_par_iter().with_min_len(ITEMS);
        assert_eq!(items.in_current_epoch().map(|_| 1).sum::<usize>(), ITEMS);
    });
    assert_eq!(handoffs, all_received(1));

    // Exactly four pieces, however they are stolen.
    let (handoffs, _) = of_one_request(4, || {
        let items = (0..ITEMS).into_par_iter();
        let quarters = items.with_min_len(ITEMS / 4).with_max_len(ITEMS / 4);
        quarters.in_current_epoch().for_each(drop);
    });
    assert_eq!(handoffs, all_received(4));

    // As rayon likes: a small multiple of the threads.
    let (handoffs, _) = of_one_request(4, || {
        let items = (0..ITEMS).into_par_iter().in_current_epoch();
        items.for_each(drop);
    });
    assert_eq!(handoffs, all_received(handoffs.sent));
    assert!(handoffs.sent <= ITEMS / 100, "{handoffs:?}");
}

#[test]
fn what_is_never_worked_on_is_abandoned() {
    let (handoffs, _) = of_one_request(2, || {
        drop((0..ITEMS).into_par_iter().in_current_epoch());
    });
    assert_eq!(
        handoffs,
        Handoffs {
            sent: 1,
            received: 0,
            abandoned: 1
        }
    );
}

#[test]
fn every_handoff_says_where_it_was_made() {
    let mut lines = Vec::new();
    let (_, report) = of_one_request(4, || {
        lineage_rayon::join(|| (), || ());
        lines.push(line!() - 1);
        lineage_rayon::broadcast(|_| ());
        lines.push(line!() - 1);
        pool(1).install_in_epoch(|| ());
        lines.push(line!() - 1);
        lineage_rayon::scope(|scope| scope.spawn(|_| ()));
        lines.push(line!() - 1);
        let items = (0..ITEMS).into_par_iter().in_current_epoch();
        lines.push(line!() - 1);
        items.for_each(drop);
    });
    let mut seen = Vec::new();
    for observation in &report.observations {
        if let Event::Sent(sent) = &observation.event {
            let site = sent.site.as_ref().expect("a call site");
            assert!(site.file.ends_with("a_job_is_one_handoff.rs"), "{site}");
            seen.push(site.line);
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, lines);
}
