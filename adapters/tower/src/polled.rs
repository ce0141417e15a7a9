//! A value that is polled and dropped in its request's epoch.
//!
//! Unlike `lineage_core::future::InEpoch` it is no handoff. A handler's future and a response's body
//! are awaited where the request came in, and the task that polls them is known; to record that they
//! were handed on would say that the request asked for work of others, and then a request that never
//! launches, as for a server's health, would be a fault (`L04`).

use std::pin::Pin;
use std::task::Poll;

use lineage_core::Epoch;
use pin_project_lite::pin_project;

pin_project! {
    pub(crate) struct Polled<T> {
        // `Some` until it is dropped: a pinned value can only be dropped where it is, and it has to
        // be dropped while its epoch is current.
        #[pin]
        value: Option<T>,
        epoch: Epoch,
        cancels: bool,
    }

    impl<T> PinnedDrop for Polled<T> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            this.epoch.run(|| this.value.set(None));
            if *this.cancels {
                this.epoch.cancel();
            }
        }
    }
}

impl<T> Polled<T> {
    /// A value that is the epoch's work: if it is dropped before [`finish`](Self::finish), the
    /// epoch is cancelled.
    pub(crate) fn owning(value: T, epoch: Epoch) -> Self {
        Self {
            value: Some(value),
            epoch,
            cancels: true,
        }
    }

    /// A value in an epoch that somebody else sees to.
    pub(crate) fn sharing(value: T, epoch: Epoch) -> Self {
        Self {
            value: Some(value),
            epoch,
            cancels: false,
        }
    }

    #[inline]
    pub(crate) fn poll<R>(
        self: Pin<&mut Self>,
        poll: impl FnOnce(Pin<&mut T>) -> Poll<R>,
    ) -> Poll<R> {
        let this = self.project();
        let _scope = this.epoch.enter();
        match this.value.as_pin_mut() {
            Some(value) => poll(value),
            // Only the destructor takes the value out, and nothing polls after it.
            None => Poll::Pending,
        }
    }

    pub(crate) fn finish(self: Pin<&mut Self>) {
        *self.project().cancels = false;
    }

    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }
}

impl<T> std::fmt::Debug for Polled<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Polled")
            .field("epoch", &self.epoch)
            .field("cancels", &self.cancels)
            .finish_non_exhaustive()
    }
}
