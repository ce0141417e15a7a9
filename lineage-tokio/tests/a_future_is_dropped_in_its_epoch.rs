//! What a future's destructors launch belongs to its epoch as well, whether the future ran to its
//! end, was dropped half-way, or was never polled. Only a future that was given its epoch by value
//! cancels it.
#![cfg(feature = "record")]

mod common;

use std::sync::{Arc, Mutex};

use common::{Handoffs, current, recorded, runtime};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::{CarrierKind, RetiredAs};
use lineage_tokio::{FutureExt as _, LineageExt as _, SpanExt as _};
use tracing::Instrument as _;
use tracing_subscriber::prelude::*;

type Boxed = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Notes what is current when it is dropped.
struct Notes(Arc<Mutex<Vec<Option<LaunchEpoch>>>>);

impl Drop for Notes {
    fn drop(&mut self) {
        self.0.lock().expect("no panic").push(current());
    }
}

/// How a future ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    NeverPolled,
    HalfWay,
    Done,
    Panicked,
}

const ENDS: [End; 4] = [End::NeverPolled, End::HalfWay, End::Done, End::Panicked];

/// Wraps a future that holds something to be dropped, brings it to its end, and drops it.
fn bring_to(end: End, wrap: impl FnOnce(Boxed) -> Boxed) -> Vec<Option<LaunchEpoch>> {
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let notes = Notes(dropped.clone());
    let future = wrap(Box::pin(async move {
        let _notes = notes;
        match end {
            End::Done => tokio::task::yield_now().await,
            End::Panicked => panic!("on purpose"),
            End::NeverPolled | End::HalfWay => std::future::pending().await,
        }
    }));
    let runtime = runtime(1);
    match end {
        End::NeverPolled => drop(future),
        End::HalfWay => runtime.block_on(async {
            let task = tokio::spawn(future);
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            task.abort();
            assert!(task.await.expect_err("it was aborted").is_cancelled());
        }),
        End::Done => runtime.block_on(runtime.spawn(future)).expect("no panic"),
        End::Panicked => {
            let error = runtime
                .block_on(runtime.spawn(future))
                .expect_err("it panics");
            assert!(error.is_panic());
        }
    }
    assert_eq!(current(), None);
    Arc::into_inner(dropped)
        .expect("the future is gone")
        .into_inner()
        .expect("no panic")
}

#[test]
fn given_by_value_it_is_cancelled_unless_it_is_done() {
    for end in ENDS {
        let (epoch, report) = recorded(|_| {
            let epoch = Epoch::declare("request");
            let id = epoch.id().expect("recording is on");
            assert_eq!(
                bring_to(end, |future| Box::pin(future.in_epoch(epoch))),
                [Some(id)]
            );
            id
        });
        let cancelled = end != End::Done;
        assert_eq!(report.cancelled(epoch), cancelled, "{end:?}");
        let how = if cancelled {
            RetiredAs::Cancelled
        } else {
            RetiredAs::Done
        };
        assert_eq!(report.retired(epoch), Some(how), "{end:?}");
        let received = usize::from(end != End::NeverPolled);
        assert_eq!(
            report.handoffs(epoch, CarrierKind::Future),
            Handoffs {
                sent: 1,
                received,
                abandoned: 1 - received
            },
            "{end:?}"
        );
    }
}

#[test]
fn given_by_reference_it_is_never_cancelled() {
    for end in ENDS {
        let (epochs, report) = recorded(|_| {
            let (epoch, other) = (Epoch::declare("request"), Epoch::declare("other"));
            let seen = bring_to(end, |future| Box::pin(future.in_epoch(&epoch)));
            assert_eq!(seen, [epoch.id()]);
            let seen = other.run(|| future_of_current(end));
            assert_eq!(seen, [other.id()]);
            [epoch.id(), other.id()].map(|id| id.expect("recording is on"))
        });
        for epoch in epochs {
            assert!(!report.cancelled(epoch), "{end:?}");
            assert_eq!(report.retired(epoch), Some(RetiredAs::Done), "{end:?}");
        }
    }
}

fn future_of_current(end: End) -> Vec<Option<LaunchEpoch>> {
    // Wrapped where the epoch is current, brought to its end where it is not.
    let epoch = Epoch::current();
    let other_thread = std::thread::spawn(move || {
        bring_to(end, |future| {
            Box::pin(epoch.run(|| future.in_current_epoch()))
        })
    });
    other_thread.join().expect("no panic")
}

#[test]
fn with_a_span_too() {
    for end in ENDS {
        let ((), report) = recorded(|lineage| {
            let subscriber = tracing_subscriber::registry().with(lineage.layer());
            let dispatch = tracing::Dispatch::new(subscriber);
            let span = tracing::dispatcher::with_default(&dispatch, || {
                tracing::info_span!("r", launch_epoch = tracing::field::Empty)
            });
            let expected = span.launch_epoch().expect("the layer is there");
            assert!(expected.is_some());
            assert_eq!(
                bring_to(end, |future| Box::pin(future.instrument(span))),
                [expected]
            );
        });
        assert_eq!(report.misuses(), []);
    }
}
