//! A value in its epoch, with recording.

use std::pin::Pin;
use std::task::Poll;

use pin_project_lite::pin_project;

use super::GiveEpoch;
use crate::carrier::Resumable;
use crate::epoch::Epoch;
use crate::observation::CarrierKind;

pin_project! {
    /// A value that is polled and dropped in its epoch: a future, a stream, a sink, a body.
    ///
    /// For futures it is made by [`FutureExt`](super::FutureExt). For whatever else is polled,
    /// [`resume`](Self::resume) is the one step to take in each of its poll functions.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct InEpoch<T> {
        // `Some` until it is dropped: a pinned value can only be dropped where it is, and it has
        // to be dropped while its epoch is current.
        #[pin]
        value: Option<T>,
        work: Resumable,
        owns: bool,
        finished: bool,
    }

    impl<T> PinnedDrop for InEpoch<T> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let epoch = this.work.epoch();
            // Not `work.enter()`: that a destructor ran does not mean that the work was received.
            let scope = epoch.enter();
            this.value.set(None);
            drop(scope);
            if *this.owns && !*this.finished {
                epoch.cancel();
            }
        }
    }
}

impl<T> InEpoch<T> {
    /// Puts a value into an epoch. The handoff is recorded as one of this kind.
    #[track_caller]
    pub fn new(value: T, epoch: impl GiveEpoch, kind: CarrierKind) -> Self {
        let (epoch, owns) = epoch.give();
        let mut made = Self::sharing(value, epoch, kind);
        made.owns = owns;
        made
    }

    /// Puts a value into an epoch that it shares with others, whoever holds this handle of it.
    #[track_caller]
    pub fn sharing(value: T, epoch: Epoch, kind: CarrierKind) -> Self {
        Self {
            value: Some(value),
            work: Resumable::new(epoch, kind),
            owns: false,
            finished: false,
        }
    }

    /// Polls the value, in whichever way, with its epoch current. The first time, the handoff is
    /// received.
    #[inline]
    pub fn resume<R>(self: Pin<&mut Self>, poll: impl FnOnce(Pin<&mut T>) -> Poll<R>) -> Poll<R> {
        let this = self.project();
        let _scope = this.work.enter();
        match this.value.as_pin_mut() {
            Some(value) => poll(value),
            // Only the destructor takes the value out, and nothing polls after it.
            None => Poll::Pending,
        }
    }

    /// Says that the work is done: to drop the value from now on is no cancellation.
    #[inline]
    pub fn finish(self: Pin<&mut Self>) {
        *self.project().finished = true;
    }

    /// The epoch that the value works for; inert if there is none.
    pub fn epoch(&self) -> &Epoch {
        self.work.epoch()
    }

    /// The value, outside of its epoch; `None` only while it is dropped.
    pub fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }
}

impl<T> std::fmt::Debug for InEpoch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InEpoch")
            .field("epoch", self.epoch())
            .field("polled", &self.work.was_resumed())
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}
