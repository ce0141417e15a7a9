//! Work that is resumed, without the feature `record`: nothing is carried, and nothing is current.

use crate::epoch::{Epoch, HasEpoch};
use crate::id::LaunchEpoch;
use crate::observation::CarrierKind;
use crate::scope::Scope;

/// A carrier for work that is resumed again and again. Without the feature `record` it is nothing.
#[derive(Debug)]
#[must_use = "work that is dropped before it was resumed counts as abandoned"]
pub struct Resumable(Epoch);

impl Resumable {
    /// Sends an epoch off.
    #[inline]
    pub fn new(epoch: Epoch, _: CarrierKind) -> Self {
        Self(epoch)
    }

    /// Sends the current epoch of this thread off.
    #[inline]
    pub fn of_current(kind: CarrierKind) -> Self {
        Self::new(Epoch::current(), kind)
    }

    /// The work goes on here.
    #[inline]
    pub fn enter(&self) -> Scope<'_> {
        self.0.enter()
    }

    /// Runs a closure with the epoch current.
    #[inline]
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        work()
    }

    /// The epoch that the work is for; inert.
    pub fn epoch(&self) -> &Epoch {
        &self.0
    }

    /// Whether it was resumed at all: not known where nothing records.
    pub fn was_resumed(&self) -> bool {
        false
    }
}

impl HasEpoch for Resumable {
    fn epoch(&self) -> Option<LaunchEpoch> {
        None
    }
}
