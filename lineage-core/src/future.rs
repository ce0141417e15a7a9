//! Futures that carry an epoch, on any executor.
//!
//! [`FutureExt::in_epoch`] needs no runtime, no subscriber and no span: the epoch is current in
//! every poll, on whichever thread, and while the future is dropped. `lineage-tokio` has the same
//! methods for programs with tokio or a tracing layer, where task ids are known as well.
//!
//! ```
//! use lineage_core::Epoch;
//! use lineage_core::future::FutureExt as _;
//!
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     let mut future = std::pin::pin!(future);
//! #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! #     loop {
//! #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
//! #             return output;
//! #         }
//! #     }
//! # }
//! let request = Epoch::declare("request");
//! let expected = request.id();
//! let generate = async { lineage_core::current().epoch() }.in_epoch(request);
//! assert_eq!(block_on(generate), expected);
//! ```

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::epoch::Epoch;
use crate::observation::CarrierKind;

#[cfg(not(feature = "record"))]
#[path = "future/passed_through.rs"]
mod in_epoch;
#[cfg(feature = "record")]
#[path = "future/recorded.rs"]
mod in_epoch;

pub use in_epoch::InEpoch;

/// Gives epochs to futures.
pub trait FutureExt: Future + Sized {
    /// Makes `epoch` current in every poll of this future, on whichever thread, and while the
    /// future is dropped: work that a destructor launches belongs to it too.
    ///
    /// The wrapping is a handoff: sent here, received at the first poll, abandoned if there is
    /// none. Given by value, the epoch is the future's own; by reference, it is shared:
    /// [`GiveEpoch`] says what that means.
    #[track_caller]
    fn in_epoch(self, epoch: impl GiveEpoch) -> InEpoch<Self> {
        InEpoch::new(self, epoch, CarrierKind::Future)
    }

    /// Takes the epoch along that is current here. Shared: a joined part of a request that is
    /// dropped does not cancel the request. Without a current epoch the future is as it was.
    #[track_caller]
    fn in_current_epoch(self) -> InEpoch<Self> {
        InEpoch::sharing(self, Epoch::current(), CarrierKind::Future)
    }
}

impl<F: Future> FutureExt for F {}

impl<F: Future> Future for InEpoch<F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let poll = self.as_mut().resume(|future| future.poll(context));
        if poll.is_ready() {
            self.finish();
        }
        poll
    }
}

/// An epoch as it is given to a future, stream or sink. Implemented for [`Epoch`] and `&Epoch`
/// alone.
///
/// * Given **by value** the epoch is the future's own: the future *is* the declared work. If it is
///   dropped before it is done, the epoch is marked
///   [cancelled](crate::observation::Mark::Cancelled), so that it never launched is no fault
///   (`L04`).
/// * Given **by reference** the epoch is shared: others work for it as well, and go on.
pub trait GiveEpoch: sealed::Sealed {
    /// The epoch, and whether it is given away.
    #[doc(hidden)]
    fn give(self) -> (Epoch, bool);
}

impl GiveEpoch for Epoch {
    fn give(self) -> (Epoch, bool) {
        (self, true)
    }
}

impl GiveEpoch for &Epoch {
    fn give(self) -> (Epoch, bool) {
        (self.clone(), false)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Epoch {}
    impl Sealed for &crate::Epoch {}
}
