//! A request that is being worked on.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::Body;
use lineage_core::Epoch;
use pin_project_lite::pin_project;

use crate::body::{EpochBody, has_failed};
use crate::polled::Polled;
use crate::request_epoch::RequestEpoch;

/// With what a request's work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndsWith {
    /// The response's body.
    Body,
    /// The response's head.
    Head,
    /// An outer layer sees to it.
    Outer,
}

pin_project! {
    /// The response to come, in the request's epoch. Made by [`EpochService`](crate::EpochService).
    #[must_use = "futures do nothing unless they are polled"]
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: Polled<F>,
        ends_with: EndsWith,
    }
}

impl<F: Future> ResponseFuture<F> {
    /// Of a request that is this epoch's work: dropped before it is done, it cancels it.
    pub(crate) fn owning(future: F, epoch: Epoch, ends_with: EndsWith) -> Self {
        Self {
            inner: Polled::owning(future, epoch),
            ends_with,
        }
    }

    /// Of a request whose epoch, if it has one, is another layer's.
    pub(crate) fn within(future: F, epoch: Epoch) -> Self {
        Self {
            inner: Polled::sharing(future, epoch),
            ends_with: EndsWith::Outer,
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Output = Result<Response<EpochBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let result = ready!(this.inner.as_mut().poll(|future| future.poll(context)));
        this.inner.as_mut().finish();
        let epoch = this.inner.epoch();
        if *this.ends_with == EndsWith::Outer || epoch.is_inert() {
            return Poll::Ready(result.map(|response| response.map(EpochBody::passed_through)));
        }
        let Ok(mut response) = result else {
            epoch.cancel();
            return Poll::Ready(result.map(|response| response.map(EpochBody::passed_through)));
        };
        if has_failed(response.status(), response.headers()) {
            epoch.cancel();
        }
        let extension = RequestEpoch(epoch.clone());
        response.extensions_mut().insert(extension);
        let ends_with = *this.ends_with;
        Poll::Ready(Ok(
            response.map(|body| EpochBody::new(body, epoch, ends_with))
        ))
    }
}
