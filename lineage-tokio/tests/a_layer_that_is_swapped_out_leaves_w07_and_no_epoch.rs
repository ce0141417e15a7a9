//! Under `reload` a layer can vanish between a span's enter and its exit. What it left on the
//! thread is taken away, with W07, and nothing panics.
#![cfg(feature = "record")]

mod common;

use common::{current, recorded};
use lineage_core::Lineage;
use lineage_core::id::{Attribution, LaunchEpoch};
use lineage_core::observation::MisuseKind;
use lineage_tokio::{
    FutureExt as _, LineageExt as _, LineageLayer, SpanEpochErrorKind, SpanExt as _,
};
use tracing::info_span;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Registry, reload};

type Handle = reload::Handle<Option<LineageLayer>, Registry>;

/// A span that is entered, and whose layer is gone before it is exited.
fn entered_when_the_layer_went(
    lineage: &Lineage,
    takes_its_place: impl FnOnce() -> Option<LineageLayer>,
    then: impl FnOnce(&Handle, LaunchEpoch),
) -> LaunchEpoch {
    let (layer, handle) = reload::Layer::new(Some(lineage.layer()));
    // Beside another layer: alone, an empty `Option` would disable every span.
    let subscriber = tracing_subscriber::registry()
        .with(layer)
        .with(tracing_subscriber::fmt::layer().with_writer(std::io::sink));
    tracing::subscriber::with_default(subscriber, || {
        let request = info_span!("request", launch_epoch = tracing::field::Empty);
        let epoch = request
            .launch_epoch()
            .expect("the registry shows it, though reload hides the layer")
            .expect("it declared");
        let inside = request.enter();
        assert_eq!(current(), Some(epoch));
        handle
            .reload(takes_its_place())
            .expect("the subscriber lives");
        drop(inside);
        then(&handle, epoch);
        epoch
    })
}

fn w07(epoch: LaunchEpoch) -> [(MisuseKind, Attribution); 1] {
    [(MisuseKind::ScopeUnbalanced, Attribution::Epoch(epoch))]
}

#[test]
fn another_layer_in_its_place_puts_the_thread_right_at_its_first_event() {
    let (epoch, report) = recorded(|lineage| {
        entered_when_the_layer_went(
            lineage,
            || Some(lineage.layer()),
            |_, _| {
                // The exit of the old span was the new layer's first event.
                assert_eq!(current(), None);
                let next = info_span!("next", launch_epoch = tracing::field::Empty);
                let expected = next.launch_epoch().expect("visible");
                assert!(expected.is_some());
                next.in_scope(|| assert_eq!(current(), expected));
                assert_eq!(current(), None);
            },
        )
    });
    assert_eq!(report.misuses(), w07(epoch));
}

#[test]
fn with_nothing_in_its_place_the_next_carrier_puts_the_thread_right() {
    let (epoch, report) = recorded(|lineage| {
        entered_when_the_layer_went(
            lineage,
            || None,
            |_, epoch| {
                // No layer is left to see the exit.
                assert_eq!(current(), Some(epoch));
                let seen = common::runtime(1)
                    .block_on(async { current() }.in_epoch(lineage_core::Epoch::inert()));
                assert_eq!(seen, None);
                assert_eq!(current(), None);
            },
        )
    });
    assert_eq!(report.misuses(), w07(epoch));
}

#[test]
fn a_layer_that_comes_back_finds_spans_from_before_and_goes_on() {
    let (epoch, report) = recorded(|lineage| {
        entered_when_the_layer_went(
            lineage,
            || None,
            |handle, _| {
                let unseen = info_span!("unseen", launch_epoch = tracing::field::Empty);
                let error = unseen.launch_epoch().expect_err("nobody declared");
                assert_eq!(error.kind(), SpanEpochErrorKind::NoLayer);
                let inside = unseen.enter();
                handle
                    .reload(Some(lineage.layer()))
                    .expect("the subscriber lives");
                // An exit without an enter, for the new layer.
                drop(inside);
                assert_eq!(current(), None);
                unseen.in_scope(|| assert_eq!(current(), None));
                let request = info_span!("request", launch_epoch = tracing::field::Empty);
                let expected = request.launch_epoch().expect("visible");
                request.in_scope(|| assert_eq!(current(), expected));
                assert_eq!(current(), None);
            },
        )
    });
    assert_eq!(report.misuses(), w07(epoch));
}

#[test]
fn other_threads_are_put_right_too() {
    let ((), report) = recorded(|lineage| {
        let (layer, handle) = reload::Layer::new(Some(lineage.layer()));
        let dispatch = tracing::Dispatch::new(tracing_subscriber::registry().with(layer));
        let request = tracing::dispatcher::with_default(&dispatch, || {
            info_span!("request", launch_epoch = tracing::field::Empty)
        });
        let expected = request.launch_epoch().expect("visible");
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let inside = request.enter();
                assert_eq!(current(), expected);
                barrier.wait();
                barrier.wait();
                drop(inside);
                assert_eq!(current(), None);
            });
            barrier.wait();
            handle
                .reload(Some(lineage.layer()))
                .expect("the subscriber lives");
            barrier.wait();
        });
    });
    assert_eq!(report.misuses().len(), 1);
}

/// The filter beside a layer may be exchanged as well: that swaps no layer.
#[test]
fn a_reloaded_filter_leaves_entered_spans_alone() {
    use tracing_subscriber::EnvFilter;
    let ((), report) = recorded(|lineage| {
        let (filter, handle) = reload::Layer::new(EnvFilter::new("info"));
        let subscriber = tracing_subscriber::registry()
            .with(filter)
            .with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let expected = request.launch_epoch().expect("the layer is there");
            let inside = request.enter();
            handle
                .reload(EnvFilter::new("off"))
                .expect("the subscriber lives");
            assert_eq!(current(), expected);
            info_span!("inner", launch_epoch = tracing::field::Empty)
                .in_scope(|| assert_eq!(current(), expected));
            drop(inside);
            assert_eq!(current(), None);
        });
    });
    assert_eq!(report.misuses(), []);
    assert_eq!(report.declared().len(), 1);
}
