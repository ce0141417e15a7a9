//! The wrapper without recording: the future itself.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use lineage_core::Epoch;
use lineage_core::observation::CarrierKind;
use pin_project_lite::pin_project;

pin_project! {
    /// A future with an epoch. Made by [`FutureExt`](crate::FutureExt).
    #[must_use = "futures do nothing unless they are polled"]
    pub struct InEpoch<F> {
        #[pin]
        future: F,
        epoch: Epoch,
    }
}

impl<F> InEpoch<F> {
    #[inline]
    pub(crate) fn owning(future: F, epoch: Epoch, _: CarrierKind) -> Self {
        Self { future, epoch }
    }

    #[inline]
    pub(crate) fn sharing(future: F, epoch: Epoch, _: CarrierKind) -> Self {
        Self { future, epoch }
    }

    /// The epoch that the future works for; inert if there is none.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }
}

impl<F: Future> Future for InEpoch<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().future.poll(context)
    }
}

impl<F> std::fmt::Debug for InEpoch<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InEpoch").finish_non_exhaustive()
    }
}
