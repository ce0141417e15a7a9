//! A response's body, which is made while it is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use lineage_core::Epoch;
use pin_project_lite::pin_project;

use crate::future::EndsWith;
use crate::polled::Polled;

pin_project! {
    /// A body in its request's epoch: current in every poll, on whichever thread, and while the body
    /// is dropped. Made by [`EpochService`](crate::EpochService).
    ///
    /// A body that is dropped before its end cancels the epoch.
    #[derive(Debug)]
    pub struct EpochBody<B> where B: Body {
        #[pin]
        inner: Polled<B>,
    }

    impl<B> PinnedDrop for EpochBody<B> where B: Body {
        fn drop(this: Pin<&mut Self>) {
            let inner = this.project().inner;
            // Whoever sends a body need not poll it once more to see that it has ended.
            if inner.value().is_none_or(Body::is_end_stream) {
                inner.finish();
            }
        }
    }
}

impl<B: Body> EpochBody<B> {
    pub(crate) fn new(body: B, epoch: &Epoch, ends_with: EndsWith) -> Self {
        // A body of nothing is not polled: it has ended.
        if body.is_end_stream() || ends_with != EndsWith::Body {
            return Self::passed_through(body);
        }
        Self {
            inner: Polled::owning(body, epoch.clone()),
        }
    }

    /// A body without an epoch of its own.
    pub(crate) fn passed_through(body: B) -> Self {
        Self {
            inner: Polled::sharing(body, Epoch::inert()),
        }
    }

    /// The epoch that the body is made for; inert if there is none.
    pub fn epoch(&self) -> &Epoch {
        self.inner.epoch()
    }
}

impl<B: Body> Body for EpochBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut inner = self.project().inner;
        let poll = inner.as_mut().poll(|body| body.poll_frame(context));
        match &poll {
            Poll::Ready(None) => inner.finish(),
            Poll::Ready(Some(Ok(frame))) => {
                // A gRPC call says in its last frame whether it failed.
                if frame.trailers_ref().is_some_and(grpc_has_failed) {
                    inner.epoch().cancel();
                }
            }
            // After an error there is nothing more: it ends unfinished.
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.inner.value().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.value().map(Body::size_hint).unwrap_or_default()
    }
}

/// Whether a response says that the request was refused or failed.
pub(crate) fn has_failed(status: StatusCode, headers: &HeaderMap) -> bool {
    status.is_client_error() || status.is_server_error() || grpc_has_failed(headers)
}

/// By `grpc-status`, which is among the headers where there is no body, else among the trailers.
fn grpc_has_failed(headers: &HeaderMap) -> bool {
    let status = headers.get("grpc-status");
    status.is_some_and(|status| status.as_bytes() != b"0")
}
