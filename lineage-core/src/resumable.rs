//! Work that is resumed any number of times, on whichever thread.

use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::epoch::{Epoch, HasEpoch};
use crate::hook;
use crate::hot::RawSite;
use crate::id::{HandoffId, LaunchEpoch};
use crate::observation::{CarrierKind, Handoff};
use crate::scope::Scope;

/// No thread has this number: the work was not resumed yet.
const NOWHERE: u32 = u32::MAX;

/// A carrier for work that is resumed again and again: a future that is polled, a stream, a
/// callback that is called.
///
/// [`enter`](Self::enter) makes its epoch current, as often as is wanted. The first time the
/// handoff is *received*; dropped before that, it is *abandoned*. Every later time costs what
/// entering the [epoch](Epoch::enter) costs.
///
/// Work that moves between threads arrives anew: each time that it is resumed on another thread
/// than the last time, outside of a task whose id a [hook](crate::hook::set_task_id_hook) tells,
/// one more handoff is sent and received there. So an epoch is *reachable* wherever its work goes,
/// also on an executor that lineage knows nothing of.
///
/// Any poll function becomes a carrier with it:
///
/// ```
/// use std::future::{Future, poll_fn};
/// use std::pin::pin;
///
/// use lineage_core::Epoch;
/// use lineage_core::carrier::Resumable;
/// use lineage_core::observation::CarrierKind;
///
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     let mut future = pin!(future);
/// #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// #     loop {
/// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
/// #             return output;
/// #         }
/// #     }
/// # }
/// let request = Epoch::declare("request");
/// let expected = request.id();
/// let work = Resumable::new(request, CarrierKind::Future);
/// let seen = block_on(async {
///     let mut inner = pin!(async { lineage_core::current().epoch() });
///     poll_fn(|context| work.run(|| inner.as_mut().poll(context))).await
/// });
/// assert_eq!(seen, expected);
/// ```
///
/// It does not see to the destructor of what is polled: [`InEpoch`](crate::future::InEpoch) does.
#[must_use = "work that is dropped before it was resumed counts as abandoned"]
pub struct Resumable {
    epoch: Epoch,
    handoff: Option<HandoffId>,
    kind: CarrierKind,
    site: RawSite,
    /// The thread that resumed it last. Only ever compared: no other memory depends on it.
    resumed_on: AtomicU32,
}

impl Resumable {
    /// Sends an epoch off. Of an inert epoch nothing is recorded, and nothing is current.
    #[track_caller]
    pub fn new(epoch: Epoch, kind: CarrierKind) -> Self {
        let site = RawSite::of(Location::caller());
        let handoff = epoch.handle().map(|handle| handle.send(kind, site).id);
        let nowhere = if handoff.is_some() { NOWHERE } else { 0 };
        Self {
            epoch,
            handoff,
            kind,
            site,
            resumed_on: AtomicU32::new(nowhere),
        }
    }

    /// Sends the current epoch of this thread off.
    #[track_caller]
    pub fn of_current(kind: CarrierKind) -> Self {
        Self::new(Epoch::current(), kind)
    }

    /// The work goes on here: its epoch is current on this thread until the guard is dropped. As
    /// any guard it must not be held across an await.
    #[inline]
    pub fn enter(&self) -> Scope<'_> {
        let scope = self.epoch.enter();
        let thread = scope.thread();
        if thread != self.resumed_on.load(Ordering::Relaxed) {
            self.arrive(thread);
        }
        scope
    }

    /// Runs a closure with the epoch current.
    #[inline]
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let _scope = self.enter();
        work()
    }

    /// The epoch that the work is for; inert if there is none.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Whether it was resumed at all.
    pub fn was_resumed(&self) -> bool {
        self.resumed_on.load(Ordering::Relaxed) != NOWHERE
    }

    /// It was last resumed elsewhere, or not yet.
    #[cold]
    fn arrive(&self, thread: u32) {
        let before = self.resumed_on.swap(thread, Ordering::Relaxed);
        let (Some(handle), Some(id)) = (self.epoch.handle(), self.handoff) else {
            return;
        };
        if before == NOWHERE {
            handle.receive(self.as_handoff(id, handle.epoch()));
        } else if before != thread && thread != 0 && hook::task_number() == 0 {
            handle.receive(handle.send(self.kind, self.site));
        }
    }

    fn as_handoff(&self, id: HandoffId, epoch: LaunchEpoch) -> Handoff {
        Handoff {
            id,
            epoch,
            carrier: self.kind,
        }
    }
}

impl Drop for Resumable {
    fn drop(&mut self) {
        if *self.resumed_on.get_mut() != NOWHERE {
            return;
        }
        if let (Some(handle), Some(id)) = (self.epoch.handle(), self.handoff) {
            handle.abandon(self.as_handoff(id, handle.epoch()));
        }
    }
}

impl HasEpoch for Resumable {
    fn epoch(&self) -> Option<LaunchEpoch> {
        self.epoch.id()
    }
}

impl std::fmt::Debug for Resumable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resumable")
            .field("epoch", &self.epoch)
            .field("kind", &self.kind)
            .field("was_resumed", &self.was_resumed())
            .finish_non_exhaustive()
    }
}
