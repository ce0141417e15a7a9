//! Whatever rayon makes of an iterator, the closures that follow `in_current_epoch` run in the
//! epoch, on every thread, and nothing stays behind.
#![cfg(feature = "record")]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{assert_nothing_is_current_on, current, pool, recorded};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_rayon::ParallelIteratorExt as _;
use rayon::prelude::*;

const ITEMS: usize = 10_000;

/// Counts closures that were called, and those of them that saw another epoch than they should.
struct Calls {
    expected: Option<LaunchEpoch>,
    all: AtomicUsize,
    wrong: AtomicUsize,
}

impl Calls {
    fn see(&self) {
        self.all.fetch_add(1, Ordering::Relaxed);
        if current() != self.expected {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn every_call_is_in_the_epoch(work: impl Fn(&Calls) + Sync) {
    let pool = pool(4);
    recorded(|| {
        let epoch = Epoch::declare("request");
        let calls = Calls {
            expected: epoch.id(),
            all: AtomicUsize::new(0),
            wrong: AtomicUsize::new(0),
        };
        pool.install(|| epoch.run(|| work(&calls)));
        assert_nothing_is_current_on(&pool);
        assert_eq!(calls.wrong.into_inner(), 0);
        assert!(calls.all.into_inner() >= ITEMS);
    });
}

fn items() -> rayon::range::Iter<usize> {
    (0..ITEMS).into_par_iter()
}

#[test]
fn map_filter_and_inspect() {
    every_call_is_in_the_epoch(|calls| {
        let even = items()
            .in_current_epoch()
            .inspect(|_| calls.see())
            .filter(|item| {
                calls.see();
                item % 2 == 0
            })
            .map(|item| {
                calls.see();
                item
            });
        assert_eq!(even.count(), ITEMS / 2);
    });
}

#[test]
fn what_is_made_once_for_a_piece() {
    every_call_is_in_the_epoch(|calls| {
        let init = || {
            calls.see();
            0
        };
        items()
            .in_current_epoch()
            .for_each_init(init, |_, _| calls.see());
        let sum = items()
            .in_current_epoch()
            .fold(init, |sum, item| {
                calls.see();
                sum + item
            })
            .map(|sum| {
                calls.see();
                sum
            })
            .reduce(init, |left, right| {
                calls.see();
                left + right
            });
        assert_eq!(sum, ITEMS * (ITEMS - 1) / 2);
    });
}

#[test]
fn reduce_joins_pieces_in_the_epoch() {
    // Pieces of one item: as many reductions as can be.
    every_call_is_in_the_epoch(|calls| {
        let sum = items()
            .with_max_len(1)
            .in_current_epoch()
            .reduce_with(|left, right| {
                calls.see();
                left + right
            });
        calls.all.fetch_add(1, Ordering::Relaxed);
        assert_eq!(sum, Some(ITEMS * (ITEMS - 1) / 2));
    });
}

#[test]
fn collecting_keeps_the_order() {
    every_call_is_in_the_epoch(|calls| {
        let mut into = Vec::new();
        let mapped = || {
            items().in_current_epoch().map(|item| {
                calls.see();
                item
            })
        };
        mapped().collect_into_vec(&mut into);
        assert_eq!(into, (0..ITEMS).collect::<Vec<_>>());
        assert_eq!(mapped().collect::<Vec<_>>(), into);
        assert_eq!(
            mapped().rev().collect::<Vec<_>>().first(),
            Some(&(ITEMS - 1))
        );
    });
}

#[test]
fn adaptors_that_take_the_iterator_apart() {
    every_call_is_in_the_epoch(|calls| {
        let see = |item| {
            calls.see();
            item
        };
        let mapped = || items().in_current_epoch().map(see);
        assert_eq!(
            mapped().enumerate().filter(|(at, item)| at == item).count(),
            ITEMS
        );
        let other = (0..ITEMS).into_par_iter();
        assert!(mapped().zip(other).all(|(left, right)| left == right));
        assert_eq!(mapped().skip(10).step_by(10).count(), (ITEMS - 10) / 10);
        assert_eq!(mapped().take(10).max(), Some(9));
        items()
            .in_current_epoch()
            .enumerate()
            .rev()
            .for_each(|_| calls.see());
        items()
            .chunks(7)
            .in_current_epoch()
            .for_each(|chunk| chunk.iter().for_each(|_| calls.see()));
    });
}

#[test]
fn iterators_without_an_index_and_those_that_end_early() {
    every_call_is_in_the_epoch(|calls| {
        (0..ITEMS)
            .par_bridge()
            .in_current_epoch()
            .for_each(|_| calls.see());
        let found = items().in_current_epoch().find_any(|item| {
            calls.see();
            *item == ITEMS / 2
        });
        assert_eq!(found, Some(ITEMS / 2));
        let failed = items().in_current_epoch().try_for_each(|item| {
            calls.see();
            if item == ITEMS / 3 { Err(item) } else { Ok(()) }
        });
        assert_eq!(failed, Err(ITEMS / 3));
    });
}

#[test]
fn iterators_within_items_have_their_own() {
    every_call_is_in_the_epoch(|calls| {
        let inner = |_| (0..10).into_par_iter().in_current_epoch();
        (0..ITEMS / 10)
            .into_par_iter()
            .in_current_epoch()
            .flat_map(inner)
            .for_each(|_| calls.see());
    });
}

#[test]
fn the_epoch_may_be_named() {
    let pool = pool(4);
    recorded(|| {
        let (epoch, other) = (Epoch::declare("request"), Epoch::declare("other"));
        pool.install(|| {
            other.run(|| {
                let seen = items().in_epoch(&epoch);
                assert_eq!(seen.filter(|_| current() == epoch.id()).count(), ITEMS);
                let seen = items().in_epoch(&Epoch::inert());
                assert_eq!(seen.filter(|_| current().is_none()).count(), ITEMS);
            })
        });
    });
}
