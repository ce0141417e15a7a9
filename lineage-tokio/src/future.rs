//! Futures that carry an epoch: current in every poll, and while the future is dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::future::FusedFuture;
use lineage_core::Epoch;
use lineage_core::future as core_future;
pub use lineage_core::future::GiveEpoch;
use lineage_core::observation::CarrierKind;
use pin_project_lite::pin_project;

use crate::{entered, task_id};

/// Gives epochs to futures. Needs no subscriber and no span, nor a tokio runtime.
pub trait FutureExt: Future + Sized {
    /// Makes `epoch` current in every poll of this future, on whichever thread, and while the
    /// future is dropped: work that a destructor launches belongs to it too.
    ///
    /// The wrapping is a handoff: sent here, received at the first poll, abandoned if there is
    /// none.
    ///
    /// * Given **by value** the epoch is the future's own: the future *is* the declared work. If it
    ///   is dropped before it is done, the epoch is marked
    ///   [cancelled](lineage_core::observation::Mark::Cancelled), so that it never launched is no
    ///   fault (`L04`).
    /// * Given **by reference** the epoch is shared: others work for it as well, and go on.
    ///
    /// # Example
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    /// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
    /// # runtime.block_on(async {
    /// use lineage_core::Epoch;
    /// use lineage_tokio::FutureExt as _;
    ///
    /// let request = Epoch::declare("request");
    /// let expected = request.id();
    /// async move {
    ///     assert_eq!(lineage_core::current().epoch(), expected);
    ///     tokio::task::yield_now().await;
    ///     assert_eq!(lineage_core::current().epoch(), expected);
    /// }
    /// .in_epoch(request)
    /// .await;
    /// # });
    /// ```
    #[track_caller]
    fn in_epoch(self, epoch: impl GiveEpoch) -> InEpoch<Self> {
        InEpoch::new(self, epoch, CarrierKind::Future)
    }

    /// Takes the epoch along that is current here. Shared, as in
    /// [`in_epoch`](Self::in_epoch) by reference: a joined part of a request that is dropped does
    /// not cancel the request. Without a current epoch the future is as it was.
    #[track_caller]
    fn in_current_epoch(self) -> InEpoch<Self> {
        InEpoch::sharing(self, Epoch::current(), CarrierKind::Future)
    }
}

impl<F: Future> FutureExt for F {}

pin_project! {
    /// A future, stream or sink with an epoch. Made by [`FutureExt`],
    /// [`StreamExt`](crate::StreamExt) and [`SinkExt`](crate::SinkExt).
    ///
    /// It is whatever the value in it is: a value that is both a stream and a sink, as a web
    /// socket, stays both.
    #[must_use = "futures and streams do nothing unless they are polled"]
    pub struct InEpoch<T> {
        #[pin]
        inner: core_future::InEpoch<T>,
    }

    impl<T> PinnedDrop for InEpoch<T> {
        fn drop(_this: Pin<&mut Self>) {
            // The value itself is dropped after this, in its epoch.
            entered::sweep();
        }
    }
}

impl<T> InEpoch<T> {
    #[track_caller]
    #[inline]
    pub(crate) fn new(value: T, epoch: impl GiveEpoch, kind: CarrierKind) -> Self {
        task_id::install_hook();
        Self {
            inner: core_future::InEpoch::new(value, epoch, kind),
        }
    }

    #[track_caller]
    #[inline]
    pub(crate) fn sharing(value: T, epoch: Epoch, kind: CarrierKind) -> Self {
        task_id::install_hook();
        Self {
            inner: core_future::InEpoch::sharing(value, epoch, kind),
        }
    }

    /// The epoch that the future works for; inert if there is none.
    pub fn epoch(&self) -> &Epoch {
        self.inner.epoch()
    }

    /// Polls the value, in whichever way, with its epoch current.
    #[inline]
    pub(crate) fn resume<R>(
        self: Pin<&mut Self>,
        poll: impl FnOnce(Pin<&mut T>) -> Poll<R>,
    ) -> Poll<R> {
        entered::sweep();
        self.project().inner.resume(poll)
    }

    /// Says that the work is done.
    pub(crate) fn finish(self: Pin<&mut Self>) {
        self.project().inner.finish();
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.inner.value()
    }
}

impl<F: Future> Future for InEpoch<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        entered::sweep();
        self.project().inner.poll(context)
    }
}

impl<F: FusedFuture> FusedFuture for InEpoch<F> {
    fn is_terminated(&self) -> bool {
        self.value().is_none_or(FusedFuture::is_terminated)
    }
}

impl<T> std::fmt::Debug for InEpoch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}
