//! `select!`, timeouts and panics end futures at any point. Each is dropped with its own epoch
//! current, no epoch stays behind on the thread, and what its destructors launch belongs to it.
#![cfg(feature = "record")]

mod common;

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use common::{assert_nothing_is_current_on, current, recorded, runtime};
use futures_util::FutureExt as _;
use futures_util::future::FusedFuture as _;
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::RetiredAs;
use lineage_tokio::FutureExt as _;

/// Launches work when it is dropped, as a buffer does that is given back, and tells whose it was.
struct LaunchesWhenDropped(Sender<Option<LaunchEpoch>>);

impl Drop for LaunchesWhenDropped {
    fn drop(&mut self) {
        lineage_core::launch(|| {
            let _ = self.0.send(current());
        });
    }
}

async fn never(buffer: LaunchesWhenDropped) {
    let _buffer = buffer;
    std::future::pending().await
}

const ROUNDS: usize = 100;

#[test]
fn the_branches_that_lost() {
    let (epochs, report) = recorded(|_| {
        let runtime = runtime(4);
        let tasks: Vec<_> = (0..ROUNDS)
            .map(|_| {
                runtime.spawn(async {
                    let request = Epoch::declare("request");
                    let id = request.id();
                    let work = async {
                        let (dropped, seen) = channel();
                        let (wins, loses) = (Epoch::current().fork("wins"), Epoch::current().fork("loses"));
                        let ids = (wins.id(), loses.id());
                        let answer = tokio::select! {
                            answer = async {
                                tokio::task::yield_now().await;
                                current()
                            }.in_epoch(wins) => answer,
                            () = never(LaunchesWhenDropped(dropped.clone())).in_epoch(loses) => None,
                        };
                        assert_eq!(answer, ids.0);
                        assert_eq!(current(), id, "both branches ended within the request");
                        assert_eq!(seen.recv(), Ok(ids.1));
                        (ids.0.expect("recording is on"), ids.1.expect("recording is on"))
                    };
                    work.in_epoch(&request).await
                })
            })
            .collect();
        let epochs: Vec<_> = tasks
            .into_iter()
            .map(|task| runtime.block_on(task).expect("no panic"))
            .collect();
        assert_nothing_is_current_on(&runtime, 4);
        epochs
    });
    assert_eq!(epochs.len(), ROUNDS);
    for (won, lost) in epochs {
        assert_eq!(report.retired(won), Some(RetiredAs::Done));
        assert_eq!(report.retired(lost), Some(RetiredAs::Cancelled));
    }
    assert_eq!(report.misuses(), []);
}

#[test]
fn one_that_is_done_says_so_to_the_select_of_futures() {
    let ((), report) = recorded(|_| {
        let (one, other) = (Epoch::declare("one"), Epoch::declare("other"));
        let seen = futures_executor::block_on(async {
            let mut first = std::pin::pin!(async { current() }.fuse().in_epoch(&one));
            let mut second = std::pin::pin!(async { current() }.fuse().in_epoch(&other));
            let mut seen = Vec::new();
            while !(first.is_terminated() && second.is_terminated()) {
                futures_util::select_biased! {
                    epoch = first => seen.push(epoch),
                    epoch = second => seen.push(epoch),
                }
            }
            seen
        });
        assert_eq!(seen, [one.id(), other.id()]);
    });
    assert_eq!(report.misuses(), []);
}

#[test]
fn a_future_that_timed_out() {
    let ((), report) = recorded(|_| {
        let runtime = runtime(1);
        let (dropped, seen) = channel();
        let epoch = Epoch::declare("request");
        runtime.block_on(async {
            let work = never(LaunchesWhenDropped(dropped)).in_epoch(&epoch);
            let timed_out = tokio::time::timeout(Duration::from_millis(1), work).await;
            assert!(timed_out.is_err());
            assert_eq!(current(), None);
        });
        assert_eq!(seen.recv(), Ok(epoch.id()));
    });
    assert_eq!(report.misuses(), []);
}

#[test]
fn a_panic_leaves_no_epoch_behind() {
    let (epochs, report) = recorded(|_| {
        let runtime = runtime(2);
        let (dropped, seen) = channel();
        let mut epochs = Vec::new();
        for round in 0..ROUNDS {
            let epoch = Epoch::declare("request");
            let id = epoch.id();
            epochs.push(id.expect("recording is on"));
            let buffer = LaunchesWhenDropped(dropped.clone());
            let work = async move {
                let _buffer = buffer;
                tokio::task::yield_now().await;
                panic!("on purpose")
            };
            // Caught by the task, or in the midst of one that goes on.
            if round % 2 == 0 {
                let task: tokio::task::JoinHandle<()> = runtime.spawn(work.in_epoch(epoch));
                let error = runtime.block_on(task).expect_err("it panics");
                assert!(error.is_panic());
            } else {
                let task = runtime.spawn(async move {
                    let caught: std::thread::Result<()> =
                        AssertUnwindSafe(work.in_epoch(epoch)).catch_unwind().await;
                    assert!(caught.is_err());
                    current()
                });
                assert_eq!(runtime.block_on(task).expect("it was caught"), None);
            }
            assert_eq!(seen.recv(), Ok(id));
            assert_nothing_is_current_on(&runtime, 2);
        }
        epochs
    });
    for epoch in epochs {
        assert_eq!(report.retired(epoch), Some(RetiredAs::Cancelled));
    }
    assert_eq!(report.misuses(), []);
}
