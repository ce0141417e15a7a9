//! A value in its epoch, without recording: the value itself.

use std::pin::Pin;
use std::task::Poll;

use pin_project_lite::pin_project;

use super::GiveEpoch;
use crate::epoch::Epoch;
use crate::observation::CarrierKind;

pin_project! {
    /// A value that is polled and dropped in its epoch. Without the feature `record` it is the
    /// value alone.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct InEpoch<T> {
        #[pin]
        value: T,
        epoch: Epoch,
    }
}

impl<T> InEpoch<T> {
    /// Puts a value into an epoch.
    #[inline]
    pub fn new(value: T, epoch: impl GiveEpoch, kind: CarrierKind) -> Self {
        Self::sharing(value, epoch.give().0, kind)
    }

    /// Puts a value into an epoch that it shares with others, whoever holds this handle of it.
    #[inline]
    pub fn sharing(value: T, epoch: Epoch, _: CarrierKind) -> Self {
        Self { value, epoch }
    }

    /// Polls the value.
    #[inline]
    pub fn resume<R>(self: Pin<&mut Self>, poll: impl FnOnce(Pin<&mut T>) -> Poll<R>) -> Poll<R> {
        poll(self.project().value)
    }

    /// Says that the work is done.
    #[inline]
    pub fn finish(self: Pin<&mut Self>) {}

    /// The epoch that the value works for; inert.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The value; always `Some`.
    pub fn value(&self) -> Option<&T> {
        Some(&self.value)
    }
}

impl<T> std::fmt::Debug for InEpoch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InEpoch").finish_non_exhaustive()
    }
}
