//! `builder().enabled(false)`: the same program, and nothing of lineage in it.

use std::time::Duration;

use lineage_core::id::Attribution;
use lineage_core::{Epoch, HasEpoch as _, Lineage};
use lineage_tokio::{FutureExt as _, LineageExt as _, SpanExt as _, carried};
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
                assert_eq!(lineage_core::current(), Attribution::None);
            }
            .instrument(info_span!("request", launch_epoch = tracing::field::Empty)),
        );
    });
    let report = lineage.shutdown(Duration::from_secs(10));
    assert_eq!(report.observations, []);
    assert_eq!(report.rows, []);
}
