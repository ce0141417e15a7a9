//! The wrapper, with recording.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use lineage_core::Epoch;
use lineage_core::carrier::Carrier;
use lineage_core::observation::CarrierKind;
use pin_project_lite::pin_project;

use crate::{entered, task_id};

pin_project! {
    /// A future with an epoch. Made by [`FutureExt`](crate::FutureExt).
    #[must_use = "futures do nothing unless they are polled"]
    pub struct InEpoch<F> {
        // `Some` until it is dropped: a pinned value can only be dropped where it is, and it has
        // to be dropped while its epoch is current.
        #[pin]
        future: Option<F>,
        epoch: Epoch,
        // Until the first poll.
        handoff: Option<Carrier>,
        owns: bool,
        finished: bool,
    }

    impl<F> PinnedDrop for InEpoch<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            entered::sweep();
            let scope = this.epoch.enter();
            this.future.set(None);
            drop(scope);
            if *this.owns && !*this.finished {
                this.epoch.cancel();
            }
        }
    }
}

impl<F> InEpoch<F> {
    #[track_caller]
    pub(crate) fn owning(future: F, epoch: Epoch, kind: CarrierKind) -> Self {
        Self::new(future, epoch, kind, true)
    }

    #[track_caller]
    pub(crate) fn sharing(future: F, epoch: Epoch, kind: CarrierKind) -> Self {
        Self::new(future, epoch, kind, false)
    }

    #[track_caller]
    fn new(future: F, epoch: Epoch, kind: CarrierKind, owns: bool) -> Self {
        task_id::install_hook();
        Self {
            future: Some(future),
            handoff: Some(Carrier::new(&epoch, kind)),
            epoch,
            owns,
            finished: false,
        }
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
        let this = self.project();
        entered::sweep();
        if this.handoff.is_some() {
            receive(this.handoff);
        }
        let scope = this.epoch.enter();
        let poll = match this.future.as_pin_mut() {
            Some(future) => future.poll(context),
            // Only the destructor takes the future out, and nothing polls after it.
            None => Poll::Pending,
        };
        drop(scope);
        *this.finished |= poll.is_ready();
        poll
    }
}

/// The first poll: the work has arrived.
#[cold]
fn receive(handoff: &mut Option<Carrier>) {
    if let Some(carrier) = handoff.take() {
        // The wrapper holds the epoch itself; this handle is one too many.
        drop(carrier.open());
    }
}

impl<F> std::fmt::Debug for InEpoch<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InEpoch")
            .field("epoch", &self.epoch)
            .field("polled", &self.handoff.is_none())
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}
