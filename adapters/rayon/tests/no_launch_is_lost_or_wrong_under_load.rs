//! Many callers, one pool, every construct, nested: each launch is its own request's. Truth is the
//! request's number, which every closure holds.
#![cfg(feature = "record")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::{assert_nothing_is_current_on, current, pool, recorded};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_rayon::{ParallelIteratorExt as _, ThreadPoolExt as _};
use rayon::prelude::*;

const CALLERS: usize = 8;
const REQUESTS: usize = 25;

#[derive(Default)]
struct Counts {
    launches: AtomicU64,
    lost: AtomicU64,
    wrong: AtomicU64,
}

impl Counts {
    fn launch(&self, truth: LaunchEpoch) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        match current() {
            Some(epoch) if epoch == truth => 0,
            Some(_) => self.wrong.fetch_add(1, Ordering::Relaxed),
            None => self.lost.fetch_add(1, Ordering::Relaxed),
        };
    }
}

/// A request's work: 16 + 1 items, each of which joins, so that its thread takes up others.
fn work(counts: &Counts, truth: LaunchEpoch) {
    (0..16)
        .into_par_iter()
        .with_max_len(1)
        .in_current_epoch()
        .for_each(|_| {
            counts.launch(truth);
            lineage_rayon::join(
                || {
                    std::hint::black_box((0..200).sum::<u64>());
                    counts.launch(truth);
                },
                || {
                    lineage_rayon::scope(|scope| scope.spawn(|_| counts.launch(truth)));
                    counts.launch(truth);
                },
            );
            counts.launch(truth);
        });
    counts.launch(truth);
}

#[test]
fn on_four_and_on_eight_threads() {
    for threads in [4, 8] {
        let pool = pool(threads);
        let counts = Counts::default();
        let ((), report) = recorded(|| {
            std::thread::scope(|scope| {
                for _ in 0..CALLERS {
                    scope.spawn(|| {
                        for _ in 0..REQUESTS {
                            let request = Epoch::declare("request");
                            let truth = request.id().expect("recording is on");
                            request.run(|| pool.install_in_epoch(|| work(&counts, truth)));
                            assert_eq!(current(), None);
                        }
                    });
                }
            });
            assert_nothing_is_current_on(&pool);
        });
        let Counts {
            launches,
            lost,
            wrong,
        } = counts;
        assert_eq!(
            launches.into_inner(),
            (CALLERS * REQUESTS * (16 * 5 + 1)) as u64
        );
        assert_eq!((lost.into_inner(), wrong.into_inner()), (0, 0));
        let epochs = report.totals.epochs;
        assert_eq!(epochs.declared, (CALLERS * REQUESTS) as u64);
    }
}
