//! What a request says of its parent is recorded as a link; only where the layer is told to trust it
//! does it become the parent. What is not valid is ignored and counted, whatever it is.
#![cfg(feature = "record")]

mod common;

use std::convert::Infallible;

use common::recorded;
use http::{HeaderValue, Request, Response};
use http_body_util::Empty;
use lineage_core::Epoch;
use lineage_core::id::W3cParent;
use lineage_tower::{EpochLayer, MAX_TRACEPARENT_BYTES, Traceparent};
use tower::{ServiceBuilder, ServiceExt as _};

const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const SPAN: W3cParent = W3cParent {
    trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
    span_id: 0x00f0_67aa_0ba9_02b7,
    flags: 1,
};

/// Sends a request with these `traceparent`s, and says which parent the handler's epoch had.
async fn send(layer: &EpochLayer, values: &[&[u8]]) -> Option<W3cParent> {
    let service = ServiceBuilder::new()
        .layer(layer.clone())
        .service_fn(|_: Request<()>| async {
            let mut response = Response::new(Empty::<&[u8]>::new());
            if let Some(parent) = Epoch::current().parent() {
                response.extensions_mut().insert(parent);
            }
            Ok::<_, Infallible>(response)
        });
    let mut request = Request::new(());
    for value in values {
        let value = HeaderValue::from_bytes(value).expect("a header can hold it");
        request.headers_mut().append("traceparent", value);
    }
    let response = service.oneshot(request).await.expect("infallible");
    response.extensions().get().copied()
}

#[test]
fn by_default_it_is_a_link() {
    let (parent, report) =
        recorded(|| async { send(&EpochLayer::new(), &[VALID.as_bytes()]).await });
    assert_eq!(parent, None);
    assert_eq!(report.parents(), []);
    assert_eq!(report.span_links(), [(report.only_epoch(), SPAN)]);
}

#[test]
fn trusted_it_is_the_parent() {
    let (parent, report) = recorded(|| async {
        let layer = EpochLayer::new().traceparent(Traceparent::Trusted);
        send(&layer, &[VALID.as_bytes()]).await
    });
    assert_eq!(parent, Some(SPAN));
    assert_eq!(report.parents(), [(report.only_epoch(), SPAN)]);
    assert_eq!(report.span_links(), []);
}

#[test]
fn ignored_it_is_not_even_read() {
    let (counts, report) = recorded(|| async {
        let layer = EpochLayer::new().traceparent(Traceparent::Ignored);
        send(&layer, &[VALID.as_bytes()]).await;
        send(&layer, &[b"nonsense"]).await;
        layer.counts()
    });
    assert_eq!((report.parents(), report.span_links()), (vec![], vec![]));
    assert_eq!(
        (counts.requests, counts.traceparents, counts.malformed),
        (2, 0, 0)
    );
}

#[test]
fn what_is_not_valid_is_ignored_and_counted() {
    let malformed: [&[u8]; 10] = [
        b"",
        b"-",
        b"00",
        b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        b"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        b"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        b"00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
        b"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        b"\xff\xfe00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ];
    for policy in [Traceparent::Linked, Traceparent::Trusted] {
        let (counts, report) = recorded(|| async {
            let layer = EpochLayer::new().traceparent(policy);
            for value in malformed {
                assert_eq!(send(&layer, &[value]).await, None, "{value:?}");
            }
            // A later version may be longer, up to a bound.
            let mut long = format!("01-{}-", &VALID[3..]).into_bytes();
            long.resize(MAX_TRACEPARENT_BYTES, b'x');
            send(&layer, &[&long]).await;
            long.push(b'x');
            assert_eq!(send(&layer, &[&long]).await, None);
            long.resize(1 << 20, b'x');
            assert_eq!(send(&layer, &[&long]).await, None);
            // Of two it is not known which one is right.
            assert_eq!(send(&layer, &[VALID.as_bytes(); 2]).await, None);
            assert_eq!(send(&layer, &[VALID.as_bytes(), b"nonsense"]).await, None);
            assert_eq!(send(&layer, &[]).await, None);
            layer.counts()
        });
        assert_eq!(counts.requests, 10 + 1 + 2 + 2 + 1);
        assert_eq!(counts.traceparents, 1, "the long one of a later version");
        assert_eq!(counts.malformed, 10);
        assert_eq!(counts.too_long, 2);
        assert_eq!(counts.repeated, 2);
        assert_eq!(report.parents().len() + report.span_links().len(), 1);
    }
}

/// Every single byte of a valid header changed to every other: never a panic, and always counted.
#[test]
fn whatever_is_sent_is_taken_or_counted() {
    let (counts, _) = recorded(|| async {
        let layer = EpochLayer::new();
        for at in 0..VALID.len() {
            for byte in (0x20..=0x7e).chain(0x80..=0xff) {
                let mut value = VALID.as_bytes().to_vec();
                value[at] = byte;
                send(&layer, &[&value]).await;
            }
        }
        layer.counts()
    });
    let all = (VALID.len() * (95 + 128)) as u64;
    assert_eq!(counts.requests, all);
    assert_eq!(counts.traceparents + counts.malformed, all);
    // Version, trace id, span id and flags are 52 places, and each may hold any of 16 digits: one
    // place alone makes none of them invalid. The other three places hold dashes.
    assert_eq!(counts.traceparents, 52 * 16 + 3);
}
