//! A span holds its epoch until the span closes, wherever that is.
#![cfg(feature = "record")]

mod common;

use common::{current, recorded};
use lineage_core::observation::RetiredAs;
use lineage_tokio::{LineageExt as _, SpanExt as _, carried};
use tracing::info_span;
use tracing_subscriber::prelude::*;

#[test]
fn the_epoch_is_retired_with_the_last_handle_of_its_span() {
    let (epoch, report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        let dispatch = tracing::Dispatch::new(subscriber);
        let request = tracing::dispatcher::with_default(&dispatch, || {
            info_span!("request", launch_epoch = tracing::field::Empty)
        });
        let epoch = request.launch_epoch().expect("the layer is there");
        request.in_scope(|| assert_eq!(current(), epoch));
        let there = request.clone();
        drop(request);
        std::thread::spawn(move || {
            there.in_scope(|| assert_eq!(current(), epoch));
            drop(there);
            assert_eq!(current(), None);
        })
        .join()
        .expect("no panic");
        epoch.expect("declared")
    });
    assert_eq!(report.retired(epoch), Some(RetiredAs::Done));
    assert_eq!(report.misuses(), []);
}

#[test]
fn an_envelope_outlives_the_span_that_declared() {
    let (epoch, report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        let dispatch = tracing::Dispatch::new(subscriber);
        let (epoch, job) = tracing::dispatcher::with_default(&dispatch, || {
            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let epoch = request.launch_epoch().expect("the layer is there");
            (epoch, request.in_scope(|| carried(())))
        });
        // The span is closed. Its place in the registry goes to others.
        tracing::dispatcher::with_default(&dispatch, || {
            for _ in 0..100 {
                assert_eq!(info_span!("other").launch_epoch(), Ok(None));
            }
        });
        job.run(|()| assert_eq!(current(), epoch));
        epoch.expect("declared")
    });
    assert_eq!(report.retired(epoch), Some(RetiredAs::Done));
}

#[test]
fn children_keep_the_epoch_of_a_parent_that_is_closed() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let epoch = request.launch_epoch().expect("the layer is there");
            let child = request.in_scope(|| info_span!("child"));
            drop(request);
            child.in_scope(|| assert_eq!(current(), epoch));
        });
    });
    assert_eq!(report.declared().len(), 1);
    assert_eq!(report.misuses(), []);
}
