//! What is current on one thread, to be made current on another exactly so.

use crate::epoch::Epoch;
use crate::hot;
use crate::id::PackedEpoch;
use crate::scope::Scope;

/// What was current where this was made: an epoch, [detached](crate::detached) work, or nothing.
///
/// Entering an [`Epoch`] that is inert leaves what is current as it is. That is wrong on a thread
/// which takes up a job in the midst of another, as work-stealing threads do while they wait: a job
/// that was made without an epoch would be counted as the other's. A capture makes current what it
/// holds, also where that is nothing.
///
/// It is no handoff by itself: see [`carrier`](crate::carrier).
///
/// ```
/// use lineage_core::{Captured, Epoch, Lineage, current};
///
/// let lineage = Lineage::builder().start()?;
/// let request = Epoch::declare("request");
/// let made_without = Captured::current();
/// request.run(|| {
///     // This thread works for the request, and now takes up a job that is not the request's.
///     made_without.run(|| assert_eq!(current().epoch(), None));
///     assert_eq!(current().epoch(), request.id());
/// });
/// # Ok::<(), lineage_core::StartError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a capture does nothing until it is entered"]
pub struct Captured {
    epoch: Epoch,
    /// Where there is no epoch: detached for a reason, or nothing.
    otherwise: PackedEpoch,
}

impl Captured {
    /// What is current on this thread.
    #[inline]
    pub fn current() -> Self {
        let packed = hot::current();
        if packed == PackedEpoch::NONE {
            return Self::nothing();
        }
        let epoch = Epoch::current();
        let otherwise = match packed {
            // What is current is an epoch that is retired: there is nothing to work for.
            packed if packed.unpack().epoch().is_some() => PackedEpoch::NONE,
            // It says that a boundary is open here, and there may be none where this is entered.
            PackedEpoch::BOUNDARY_WITHOUT_EPOCH => PackedEpoch::NONE,
            packed => packed,
        };
        Self { epoch, otherwise }
    }

    /// Nothing at all: for a thread that waits for one job and may meanwhile take up others, of
    /// which nothing is known.
    #[inline]
    pub const fn nothing() -> Self {
        Self {
            epoch: Epoch::inert(),
            otherwise: PackedEpoch::NONE,
        }
    }

    /// This epoch; nothing, if it is inert.
    pub fn of(epoch: &Epoch) -> Self {
        Self {
            epoch: epoch.clone(),
            otherwise: PackedEpoch::NONE,
        }
    }

    /// The epoch; inert if there is none.
    pub const fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    #[inline]
    fn is_nothing(&self) -> bool {
        self.epoch.is_inert() && self.otherwise == PackedEpoch::NONE
    }

    /// Makes it current on this thread until the guard is dropped. The guard must not be held
    /// across an await, as [`Epoch::enter`]'s.
    #[must_use = "the scope ends when its guard is dropped"]
    #[inline]
    pub fn enter(&self) -> Scope<'_> {
        if self.epoch.is_inert() {
            Scope::of_token(hot::enter_without_epoch(self.otherwise))
        } else {
            self.epoch.enter()
        }
    }

    /// Runs a closure with it current.
    #[inline]
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        if self.is_nothing() && hot::current() == PackedEpoch::NONE {
            return work();
        }
        let _scope = self.enter();
        work()
    }
}
