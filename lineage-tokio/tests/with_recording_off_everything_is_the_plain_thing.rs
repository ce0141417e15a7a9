//! `builder().enabled(false)`: the same program, and nothing of lineage in it.

use std::time::Duration;

use futures_util::{StreamExt as _, sink, stream};
use lineage_core::id::Attribution;
use lineage_core::{Epoch, HasEpoch as _, Lineage};
use lineage_tokio::{
    Carried, FutureExt as _, JoinSetExt as _, LineageExt as _, LocalSetExt as _, RuntimeExt as _,
    SendCarried as _, SendCarriedAsync as _, SpanExt as _, TrySendCarried as _, carried,
    carried_fn, carried_fn_mut,
};
use tokio::task::{JoinSet, LocalSet};
use tracing::{Instrument as _, info_span};
use tracing_subscriber::prelude::*;

#[test]
fn a_program_that_uses_all_of_it_runs_and_records_nothing() {
    let lineage = Lineage::builder()
        .enabled(false)
        .start()
        .expect("it starts");
    let subscriber = tracing_subscriber::registry().with(lineage.layer());
    let dispatch = tracing::Dispatch::new(subscriber);
    tracing::dispatcher::with_default(&dispatch, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(
            async {
                assert_eq!(tracing::Span::current().launch_epoch(), Ok(None));
                assert_eq!(lineage_core::current(), Attribution::None);
                let epoch = Epoch::declare("inner");
                assert!(epoch.is_inert());
                assert_eq!(async { 1 }.in_epoch(epoch).await, 1);
                assert_eq!(async { 2 }.in_current_epoch().await, 2);
                assert_eq!(
                    lineage_tokio::spawn(async { 3 }).await.expect("no panic"),
                    3
                );
                let blocking = lineage_tokio::spawn_blocking(|| 4);
                assert_eq!(blocking.await.expect("no panic"), 4);
                let job = carried(5);
                assert_eq!(job.epoch(), None);
                assert_eq!(job.run(|number| number), 5);
                assert_eq!(carried(6).into_payload(), 6);
                assert_eq!(carried(7).take_back(), 7);
                let handle = tokio::runtime::Handle::current();
                assert_eq!(
                    handle.spawn_carried(async { 8 }).await.expect("no panic"),
                    8
                );
                let blocking = handle.spawn_blocking_carried(|| 9);
                assert_eq!(blocking.await.expect("no panic"), 9);
                let local = LocalSet::new();
                let task = local.spawn_local_carried(async { 10 });
                assert_eq!(local.run_until(task).await.expect("no panic"), 10);
                let mut set = JoinSet::new();
                set.spawn_carried(async { 11 });
                assert_eq!(set.join_next().await.expect("one").expect("no panic"), 11);
                let numbers = stream::iter([1, 2, 3]);
                let numbers = lineage_tokio::StreamExt::in_epoch(numbers, Epoch::inert());
                let mut seen = Vec::new();
                let sink = lineage_tokio::SinkExt::<i32>::in_current_epoch(sink::drain());
                let numbers = numbers.inspect(|number| seen.push(*number)).map(Ok);
                numbers.forward(sink).await.expect("it cannot fail");
                assert_eq!(seen, [1, 2, 3]);
                assert_eq!((carried_fn(|| 12)(), carried_fn_mut(|| 13)()), (12, 13));
                let thread = lineage_core::thread::spawn(|| 14);
                assert_eq!(thread.join().expect("no panic"), 14);
                let (queue, mut jobs) = tokio::sync::mpsc::channel::<Carried<i32>>(1);
                queue.send_carried(15).await.expect("there is room");
                assert!(queue.try_send_carried(16).is_err());
                assert_eq!(jobs.recv().await.expect("one was sent").open().0, 15);
                let (answer, answered) = tokio::sync::oneshot::channel::<Carried<i32>>();
                answer.send_carried(17).expect("it lives");
                assert_eq!(answered.await.expect("one was sent").open().0, 17);
                assert_eq!(lineage_core::current(), Attribution::None);
            }
            .instrument(info_span!("request", launch_epoch = tracing::field::Empty)),
        );
    });
    let report = lineage.shutdown(Duration::from_secs(10));
    assert_eq!(report.observations, []);
    assert_eq!(report.rows, []);
}
