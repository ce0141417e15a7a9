//! A, B, A: the registry skips the second entry of a span that is on the thread's stack already,
//! so `Span::current()` says B. The epoch says A.
#![cfg(feature = "record")]

mod common;

use common::{current, recorded};
use lineage_tokio::{LineageExt as _, SpanExt as _};
use tracing::{Span, info_span};
use tracing_subscriber::prelude::*;

#[test]
fn a_b_a() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let (a, b) = (
                info_span!("a", launch_epoch = tracing::field::Empty),
                info_span!("b", launch_epoch = tracing::field::Empty),
            );
            let of = |span: &Span| span.launch_epoch().expect("the layer is there");
            let (epoch_a, epoch_b) = (of(&a), of(&b));
            assert!(epoch_a.is_some() && epoch_b.is_some() && epoch_a != epoch_b);
            a.in_scope(|| {
                b.in_scope(|| {
                    a.in_scope(|| {
                        assert_eq!(
                            Span::current().id(),
                            b.id(),
                            "the registry no longer skips: this test has lost its point"
                        );
                        assert_eq!(current(), epoch_a);
                        // What is made here belongs to A, though its tracing parent is B.
                        assert_eq!(of(&info_span!("child")), epoch_a);
                    });
                    assert_eq!(current(), epoch_b);
                });
                assert_eq!(current(), epoch_a);
            });
            assert_eq!(current(), None);
        });
    });
    assert_eq!(report.misuses(), []);
}

#[test]
fn one_span_many_times_over_and_on_many_threads_at_once() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        let dispatch = tracing::Dispatch::new(subscriber);
        let request = tracing::dispatcher::with_default(&dispatch, || {
            info_span!("request", launch_epoch = tracing::field::Empty)
        });
        let expected = request.launch_epoch().expect("the layer is there");
        let barrier = std::sync::Barrier::new(4);
        fn deeper(span: &Span, expected: Option<lineage_core::id::LaunchEpoch>, levels: usize) {
            assert_eq!(current(), expected);
            if levels > 0 {
                span.in_scope(|| deeper(span, expected, levels - 1));
                assert_eq!(current(), expected);
            }
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..100 {
                        request.in_scope(|| deeper(&request, expected, 40));
                        assert_eq!(current(), None);
                    }
                });
            }
        });
    });
    assert_eq!(report.misuses(), []);
}
