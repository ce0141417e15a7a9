//! A handoff, without recording: nothing.

use crate::epoch::{Epoch, HasEpoch};
use crate::id::LaunchEpoch;
use crate::observation::CarrierKind;

/// An unopened handoff. Without the feature `record` it is nothing.
#[derive(Debug, Default, Clone)]
#[must_use = "a carrier that is dropped says that its work was dropped"]
pub struct Carrier(());

impl Carrier {
    /// Sends an epoch off.
    #[inline]
    pub fn new(_: &Epoch, _: CarrierKind) -> Self {
        Self(())
    }

    /// Sends the current epoch of this thread off.
    #[inline]
    pub fn of_current(_: CarrierKind) -> Self {
        Self(())
    }

    /// Opens it; the epoch is inert.
    #[inline]
    pub fn open(self) -> Epoch {
        Epoch::inert()
    }

    /// Drops the work of this handoff, unopened.
    #[inline]
    pub fn abandon_with<T>(self, work: T) {
        drop(work);
    }

    /// Lets the work go on without its epoch.
    #[inline]
    pub fn forget(self) {}
}

impl HasEpoch for Carrier {
    fn epoch(&self) -> Option<LaunchEpoch> {
        None
    }
}
