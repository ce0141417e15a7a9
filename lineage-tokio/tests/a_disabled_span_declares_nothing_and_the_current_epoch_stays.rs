//! A span that a filter disables reaches no layer. It cannot declare, and it cannot take away.
#![cfg(feature = "record")]

mod common;

use common::{current, recorded};
use lineage_core::Epoch;
use lineage_tokio::{FutureExt as _, LineageExt as _, SpanEpochErrorKind, SpanExt as _};
use tracing::{debug_span, info_span};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt};

#[test]
fn under_a_global_filter() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry()
            .with(EnvFilter::new("info"))
            .with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let disabled = debug_span!("request", launch_epoch = tracing::field::Empty);
            assert!(disabled.is_disabled());
            let error = disabled.launch_epoch().expect_err("no layer saw it");
            assert_eq!(error.kind(), SpanEpochErrorKind::SpanDisabled);
            disabled.in_scope(|| assert_eq!(current(), None));

            let enabled = info_span!("request", launch_epoch = tracing::field::Empty);
            let expected = enabled.launch_epoch().expect("the layer is there");
            assert!(expected.is_some());
            enabled.in_scope(|| {
                debug_span!("inner", launch_epoch = tracing::field::Empty)
                    .in_scope(|| assert_eq!(current(), expected));
                // A child of what is disabled is a child of what is around it.
                let child = debug_span!("gone").in_scope(|| info_span!("child"));
                assert_eq!(child.launch_epoch(), Ok(expected));
            });
        });
    });
    assert_eq!(report.declared().len(), 1);
}

#[test]
fn a_declared_future_does_not_depend_on_filters() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry()
            .with(LevelFilter::OFF)
            .with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let epoch = Epoch::declare("request");
            let expected = epoch.id();
            assert!(expected.is_some());
            let work = async move {
                let span = info_span!("inner", launch_epoch = tracing::field::Empty);
                span.in_scope(|| assert_eq!(current(), expected));
                assert_eq!(current(), expected);
            };
            common::runtime(1).block_on(work.in_epoch(epoch));
        });
    });
    assert_eq!(report.declared().len(), 1);
}

#[test]
fn under_a_filter_of_this_layer_alone() {
    let ((), report) = recorded(|lineage| {
        let ours = filter_fn(|metadata| metadata.name() != "hidden");
        let subscriber = tracing_subscriber::registry()
            .with(lineage.layer().with_filter(ours))
            .with(fmt::layer().with_writer(std::io::sink));
        tracing::subscriber::with_default(subscriber, || {
            let hidden = info_span!("hidden", launch_epoch = tracing::field::Empty);
            assert!(!hidden.is_disabled(), "the other layer wants it");
            assert_eq!(hidden.launch_epoch(), Ok(None));
            hidden.in_scope(|| assert_eq!(current(), None));

            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let expected = request.launch_epoch().expect("the layer is there");
            assert!(expected.is_some());
            request.in_scope(|| {
                let hidden = info_span!("hidden", launch_epoch = tracing::field::Empty);
                hidden.in_scope(|| {
                    assert_eq!(current(), expected);
                    assert_eq!(info_span!("child").launch_epoch(), Ok(expected));
                    // Through the hidden parent to the one above it.
                    let child = info_span!(parent: &hidden, "child");
                    assert_eq!(child.launch_epoch(), Ok(expected));
                });
                assert_eq!(current(), expected);
            });
        });
    });
    assert_eq!(report.declared().len(), 1);
}

#[test]
fn with_a_filter_beside_it_that_only_the_other_layer_has() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry()
            .with(
                fmt::layer()
                    .with_writer(std::io::sink)
                    .with_filter(LevelFilter::ERROR),
            )
            .with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let request = debug_span!("request", launch_epoch = tracing::field::Empty);
            let expected = request.launch_epoch().expect("the layer is there");
            assert!(expected.is_some());
            request.in_scope(|| assert_eq!(current(), expected));
        });
    });
    assert_eq!(report.declared().len(), 1);
}
