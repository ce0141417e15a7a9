//! Futures that carry an epoch: current in every poll, and while the future is dropped.

use std::future::Future;

use lineage_core::Epoch;
use lineage_core::observation::CarrierKind;

#[cfg(feature = "record")]
#[path = "future/recorded.rs"]
mod in_epoch;
#[cfg(not(feature = "record"))]
#[path = "future/passed_through.rs"]
mod in_epoch;

pub use in_epoch::InEpoch;

/// Gives epochs to futures. Needs no subscriber and no span.
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
        let (epoch, owned) = epoch.give();
        if owned {
            InEpoch::owning(self, epoch, CarrierKind::Future)
        } else {
            InEpoch::sharing(self, epoch, CarrierKind::Future)
        }
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

/// An epoch as it is given to a future: [`Epoch`] by value, which the future then owns, or by
/// reference, which it shares. Implemented for these two alone.
pub trait GiveEpoch: sealed::Sealed {
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
    use lineage_core::Epoch;

    pub trait Sealed {}
    impl Sealed for Epoch {}
    impl Sealed for &Epoch {}
}
