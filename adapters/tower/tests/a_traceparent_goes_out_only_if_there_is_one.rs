//! A client's request says the current epoch's parent, if it has one: ids are never made up, what is
//! not trusted is not sent on, and what the client says itself stays.
#![cfg(feature = "record")]

mod common;

use std::convert::Infallible;

use common::recorded;
use http::{HeaderMap, HeaderValue, Request};
use lineage_core::Epoch;
use lineage_core::id::W3cParent;
use lineage_tower::PropagateLayer;
use tower::{ServiceBuilder, ServiceExt as _};

const SPAN: W3cParent = W3cParent {
    trace_id: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
    span_id: 0xb7ad_6b71_6920_3331,
    flags: 0,
};

/// The headers that arrive when this epoch is current.
async fn sent(epoch: &Epoch, headers: &[(&'static str, &'static str)]) -> HeaderMap {
    let client =
        ServiceBuilder::new()
            .layer(PropagateLayer)
            .service_fn(|request: Request<()>| async move {
                Ok::<_, Infallible>(request.headers().clone())
            });
    let mut request = Request::new(());
    for (name, value) in headers {
        request
            .headers_mut()
            .append(*name, HeaderValue::from_static(value));
    }
    epoch
        .run(|| client.oneshot(request))
        .await
        .expect("infallible")
}

#[test]
fn only_where_the_current_epoch_has_a_parent() {
    recorded(|| async {
        use lineage_tokio::FutureExt as _;
        let with_parent = Epoch::declare("request");
        assert!(with_parent.set_parent(SPAN));
        let arrived = sent(&with_parent, &[]).in_epoch(&with_parent).await;
        assert_eq!(
            arrived.get("traceparent").map(HeaderValue::as_bytes),
            Some(&b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"[..])
        );
        assert_eq!(arrived.len(), 1);

        let own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let arrived = sent(&with_parent, &[("traceparent", own)])
            .in_epoch(&with_parent)
            .await;
        assert_eq!(arrived.get_all("traceparent").iter().count(), 1);
        assert_eq!(arrived["traceparent"], own);

        let without = Epoch::declare("request");
        assert!(sent(&without, &[]).in_epoch(&without).await.is_empty());
        without.link_span(SPAN);
        assert!(sent(&without, &[]).in_epoch(&without).await.is_empty());

        // A batch serves several: it has no one parent.
        let batch = Epoch::merge([&with_parent, &without]);
        assert!(sent(&batch, &[]).in_epoch(&batch).await.is_empty());
        assert!(sent(&Epoch::inert(), &[]).await.is_empty());
    });
}
