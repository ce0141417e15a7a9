//! Requests of many tasks interleave on few workers; each poll of each sees its own epoch.
#![cfg(feature = "record")]

mod common;

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::ThreadId;

use common::{assert_nothing_is_current_on, current, recorded, runtime};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::CarrierKind;
use lineage_tokio::{FutureExt as _, LineageExt as _, SpanExt as _};
use tracing::Instrument as _;
use tracing_subscriber::prelude::*;

const WORKERS: usize = 4;
const REQUESTS: usize = 200;
const POLLS: usize = 20;

/// Polls of one request, each of which compares what is current with what the request was told.
async fn request(expected: LaunchEpoch, number: usize) -> HashSet<ThreadId> {
    let mut threads = HashSet::new();
    for poll in 0..POLLS {
        assert_eq!(current(), Some(expected), "request {number}, poll {poll}");
        threads.insert(std::thread::current().id());
        if (number + poll).is_multiple_of(7) {
            tokio::time::sleep(std::time::Duration::from_micros(50)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
    threads
}

fn assert_some_moved(threads: &[HashSet<ThreadId>]) {
    let moved = threads.iter().filter(|threads| threads.len() > 1).count();
    assert!(
        moved > 0,
        "no request ever moved to another worker: nothing was tested"
    );
}

#[test]
fn with_a_span() {
    let (threads, report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        let dispatch = tracing::Dispatch::new(subscriber);
        let runtime = runtime(WORKERS);
        let tasks: Vec<_> = (0..REQUESTS)
            .map(|number| {
                let span = tracing::dispatcher::with_default(&dispatch, || {
                    tracing::info_span!("request", number, launch_epoch = tracing::field::Empty)
                });
                let expected = span
                    .launch_epoch()
                    .expect("the layer is there")
                    .expect("declared");
                runtime.spawn(request(expected, number).instrument(span))
            })
            .collect();
        let threads: Vec<_> = tasks
            .into_iter()
            .map(|task| runtime.block_on(task).expect("no panic"))
            .collect();
        assert_nothing_is_current_on(&runtime, WORKERS);
        threads
    });
    assert_some_moved(&threads);
    assert_eq!(report.declared().len(), REQUESTS);
    assert_eq!(report.misuses(), []);
}

#[test]
fn with_a_wrapped_future_and_no_subscriber() {
    let (epochs, report) = recorded(|_| {
        let runtime = runtime(WORKERS);
        let tasks: Vec<_> = (0..REQUESTS)
            .map(|number| {
                let epoch = Epoch::declare("request");
                let expected = epoch.id().expect("recording is on");
                (
                    expected,
                    runtime.spawn(request(expected, number).in_epoch(epoch)),
                )
            })
            .collect();
        let mut epochs = Vec::new();
        let mut threads = Vec::new();
        for (expected, task) in tasks {
            threads.push(runtime.block_on(task).expect("no panic"));
            epochs.push(expected);
        }
        assert_some_moved(&threads);
        assert_nothing_is_current_on(&runtime, WORKERS);
        epochs
    });
    for epoch in epochs {
        let handoffs = report.handoffs(epoch, CarrierKind::Future);
        assert_eq!(
            (handoffs.sent, handoffs.received, handoffs.abandoned),
            (1, 1, 0)
        );
        assert!(!report.cancelled(epoch), "it ran to its end");
    }
    assert_eq!(report.misuses(), []);
}

/// Futures of several requests in one task: `select!` and `join!` poll them one after the other.
#[test]
fn with_several_requests_in_one_task() {
    let seen = Mutex::new(0);
    let ((), report) = recorded(|_| {
        let check = async |expected: Option<LaunchEpoch>| {
            for _ in 0..POLLS {
                assert_eq!(current(), expected);
                *seen.lock().expect("no panic") += 1;
                tokio::task::yield_now().await;
            }
        };
        runtime(1).block_on(async {
            let (one, other) = (Epoch::declare("one"), Epoch::declare("other"));
            let (first, second) = (one.id(), other.id());
            let part = one.run(|| check(first).in_current_epoch());
            tokio::join!(
                check(first).in_epoch(&one),
                check(second).in_epoch(other),
                part,
                check(None)
            );
            assert_eq!(current(), None);
        });
    });
    assert_eq!(*seen.lock().expect("no panic"), 4 * POLLS);
    assert_eq!(report.misuses(), []);
}
