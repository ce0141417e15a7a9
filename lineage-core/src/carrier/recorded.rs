//! A handoff, with recording.

use std::panic::Location;

use crate::epoch::{Epoch, HasEpoch};
use crate::hot::{Handle, RawSite};
use crate::id::LaunchEpoch;
use crate::observation::{CarrierKind, Handoff};

/// An unopened handoff: it holds its epoch alive until its work goes on elsewhere.
///
/// Opened, it was *received*. Dropped unopened, its work was dropped with it, as when a receiver
/// is cancelled: *abandoned*, which is no fault. [Forgotten](Self::forget), the work goes on
/// without its epoch: fault L05.
#[derive(Debug, Default)]
#[must_use = "a carrier that is dropped says that its work was dropped"]
pub struct Carrier(Option<Held>);

struct Held {
    handle: Handle,
    handoff: Handoff,
    sent_from: &'static Location<'static>,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.handoff.fmt(f)
    }
}

impl Carrier {
    /// Sends an epoch off. A carrier of an inert epoch carries nothing and records nothing.
    #[track_caller]
    pub fn new(epoch: &Epoch, kind: CarrierKind) -> Self {
        let sent_from = Location::caller();
        Self(epoch.handle().map(|handle| Held {
            handle: handle.clone(),
            handoff: handle.send(kind, RawSite::of(sent_from)),
            sent_from,
        }))
    }

    /// Sends the current epoch of this thread off.
    #[track_caller]
    pub fn of_current(kind: CarrierKind) -> Self {
        Self::new(&Epoch::current(), kind)
    }

    /// Opens it where its work goes on, and gives the epoch that came along.
    #[inline]
    pub fn open(mut self) -> Epoch {
        let Some(held) = self.0.take() else {
            return Epoch::inert();
        };
        held.handle.receive(held.handoff);
        Epoch::from_handle(held.handle)
    }

    /// Drops the work of this handoff, unopened, with the epoch current: what its destructor
    /// launches is the epoch's as well. The handoff is abandoned.
    pub fn abandon_with<T>(self, work: T) {
        if let Some(held) = &self.0 {
            let epoch = Epoch::from_handle(held.handle.clone());
            epoch.run(|| drop(work));
        }
    }

    /// Lets the work go on without its epoch: the handoff is neither received nor abandoned.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

/// One more handoff of the same epoch, by the same kind of carrier and from the same place in the
/// source: for values that are cloned on their way, as through a broadcast channel.
impl Clone for Carrier {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|held| {
            Held {
                handle: held.handle.clone(),
                handoff: held
                    .handle
                    .send(held.handoff.carrier, RawSite::of(held.sent_from)),
                sent_from: held.sent_from,
            }
        }))
    }
}

impl HasEpoch for Carrier {
    fn epoch(&self) -> Option<LaunchEpoch> {
        self.0.as_ref().map(|held| held.handoff.epoch)
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            held.handle.abandon(held.handoff);
        }
    }
}
