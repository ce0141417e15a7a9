//! Guards of one thread may end in any order: each takes away its own entry and no other.
#![cfg(feature = "record")]

mod common;

use common::{current, recorded};
use lineage_core::id::LaunchEpoch;
use lineage_tokio::{LineageExt as _, SpanExt as _};
use tracing::{Span, info_span};
use tracing_subscriber::prelude::*;

/// All orders in which `count` guards can end.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in orders(count - 1) {
        for place in 0..=shorter.len() {
            let mut order = shorter.clone();
            order.insert(place, count - 1);
            all.push(order);
        }
    }
    all
}

#[test]
fn the_newest_that_is_still_open_is_current() {
    const SPANS: usize = 4;
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let orders = orders(SPANS);
            assert_eq!(orders.len(), 24);
            for order in orders {
                let spans: [Span; SPANS] = std::array::from_fn(
                    |_| info_span!(parent: None, "request", launch_epoch = tracing::field::Empty),
                );
                let epochs: [Option<LaunchEpoch>; SPANS] =
                    std::array::from_fn(|at| spans[at].launch_epoch().expect("the layer is there"));
                let mut guards: Vec<_> = spans.iter().map(|span| Some(span.enter())).collect();
                for ended in &order {
                    guards[*ended] = None;
                    let newest = guards.iter().rposition(Option::is_some);
                    assert_eq!(current(), newest.and_then(|at| epochs[at]), "{order:?}");
                }
            }
        });
    });
    assert_eq!(report.misuses(), []);
}

#[test]
fn of_two_entries_of_one_span_the_newer_ends_first() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let [a, b, c] = std::array::from_fn(
                |_| info_span!(parent: None, "request", launch_epoch = tracing::field::Empty),
            );
            let of = |span: &Span| span.launch_epoch().expect("the layer is there");
            let (a1, b1) = (a.enter(), b.enter());
            let (a2, c1) = (a.enter(), c.enter());
            // One of A's two guards ends, and the layer is told of the span alone: A, B, C is left.
            drop(a2);
            assert_eq!(current(), of(&c));
            drop(c1);
            assert_eq!(current(), of(&b));
            drop(b1);
            assert_eq!(current(), of(&a));
            drop(a1);
            assert_eq!(current(), None);
        });
    });
    assert_eq!(report.misuses(), []);
}

#[test]
fn spans_and_scopes_of_the_core_may_be_mixed() {
    let ((), report) = recorded(|lineage| {
        let subscriber = tracing_subscriber::registry().with(lineage.layer());
        tracing::subscriber::with_default(subscriber, || {
            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let expected = request.launch_epoch().expect("the layer is there");
            let own = lineage_core::Epoch::declare("own");
            let span = request.enter();
            let scope = own.enter();
            assert_eq!(current(), own.id());
            drop(span);
            assert_eq!(current(), own.id());
            let span = request.enter();
            assert_eq!(current(), expected);
            drop(scope);
            assert_eq!(current(), expected);
            drop(span);
            assert_eq!(current(), None);
        });
    });
    assert_eq!(report.misuses(), []);
}
