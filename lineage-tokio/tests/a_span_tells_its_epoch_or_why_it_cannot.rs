//! `SpanExt` answers, or says what is in the way.
#![cfg(feature = "record")]

mod common;

use common::recorded;
use lineage_tokio::{LineageExt as _, SpanEpochErrorKind, SpanExt as _};
use tracing::{Span, info_span};
use tracing_subscriber::prelude::*;

fn why_not(span: &Span) -> SpanEpochErrorKind {
    let id = span.launch_epoch().expect_err("there is no answer");
    let handle = span.epoch().expect_err("there is no answer");
    assert_eq!(id, handle);
    id.kind()
}

#[test]
fn without_a_subscriber_or_without_the_layer() {
    tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::default(), || {
        assert_eq!(
            why_not(&info_span!("request", launch_epoch = tracing::field::Empty)),
            SpanEpochErrorKind::SpanDisabled
        );
    });
    assert_eq!(why_not(&Span::none()), SpanEpochErrorKind::SpanDisabled);
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        let span = info_span!("request", launch_epoch = tracing::field::Empty);
        assert_eq!(why_not(&span), SpanEpochErrorKind::NoLayer);
        let text = span
            .launch_epoch()
            .expect_err("there is no answer")
            .to_string();
        assert_eq!(
            text,
            "no epoch of this span can be had: its subscriber has no LineageLayer, or hides it \
             inside a reload layer"
        );
    });
}

#[test]
fn the_handle_keeps_the_epoch_alive() {
    let ((), _) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let id = request.launch_epoch().expect("the layer is there");
            let epoch = request.epoch().expect("the layer is there");
            assert_eq!(epoch.id(), id);
            drop(request);
            assert_eq!(epoch.run(common::current), id);
            assert!(
                info_span!("plain")
                    .epoch()
                    .expect("the layer is there")
                    .is_inert()
            );
        });
    });
}

#[test]
fn boxed_and_optional_layers_are_seen() {
    let ((), _) = recorded(|lineage| {
        let optional = tracing_subscriber::registry().with(Some(lineage.layer()));
        tracing::subscriber::with_default(optional, || {
            assert!(matches!(
                info_span!("r", launch_epoch = tracing::field::Empty).launch_epoch(),
                Ok(Some(_))
            ));
            assert_eq!(info_span!("plain").launch_epoch(), Ok(None));
        });
        let boxed = tracing_subscriber::registry().with(lineage.layer().boxed());
        tracing::subscriber::with_default(boxed, || {
            assert!(matches!(
                info_span!("r", launch_epoch = tracing::field::Empty).launch_epoch(),
                Ok(Some(_))
            ));
            assert_eq!(info_span!("plain").launch_epoch(), Ok(None));
        });
    });
}
