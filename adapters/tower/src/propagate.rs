//! The client's side: whose request an outgoing one is part of.

use std::task::{Context, Poll};

use http::{HeaderValue, Request};
use lineage_core::Epoch;
use tower_layer::Layer;
use tower_service::Service;

use crate::traceparent::TRACEPARENT;

/// A layer for clients: writes the current epoch's parent as `traceparent`.
///
/// Only where the epoch has a parent, since ids are never made up, and where the request has no
/// `traceparent` yet: what a tracing client wrote is nearer. What came from outside as a mere link is
/// not sent on. `tracestate` is not written; the recommendation leaves that free.
///
/// ```
/// use lineage_tower::PropagateLayer;
/// use tower::ServiceBuilder;
/// # let connector = tower::service_fn(|_: http::Request<()>| async {
/// #     Ok::<_, std::convert::Infallible>(())
/// # });
///
/// let client = ServiceBuilder::new().layer(PropagateLayer).service(connector);
/// # let _ = client;
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct PropagateLayer;

impl<S> Layer<S> for PropagateLayer {
    type Service = Propagate<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Propagate { inner }
    }
}

/// A client whose requests say their parent. Made by [`PropagateLayer`].
#[derive(Debug, Clone)]
pub struct Propagate<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Propagate<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let headers = request.headers_mut();
        if !headers.contains_key(TRACEPARENT)
            && let Some(parent) = Epoch::current().parent()
            // It is digits and dashes, so it is a header's value.
            && let Ok(value) = HeaderValue::from_str(&parent.to_string())
        {
            headers.insert(TRACEPARENT, value);
        }
        self.inner.call(request)
    }
}
