//! A job, and whose it is.

use lineage_core::Captured;
use lineage_core::carrier::Carrier;
use lineage_core::observation::CarrierKind;

/// What was current where a job was made, on its way to whichever thread takes the job.
pub(crate) struct Job {
    captured: Captured,
    carrier: Carrier,
}

impl Job {
    /// Of what is current here.
    #[track_caller]
    pub(crate) fn sent() -> Self {
        Self::sent_for(Captured::current())
    }

    #[track_caller]
    pub(crate) fn sent_for(captured: Captured) -> Self {
        let carrier = handoff(&captured);
        Self { captured, carrier }
    }

    /// Of several jobs: one handoff each.
    pub(crate) fn one_more(&self) -> Self {
        Self {
            captured: self.captured.clone(),
            carrier: self.carrier.clone(),
        }
    }

    /// Runs the job, on the thread that took it.
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        run(&self.captured, self.carrier, work)
    }

    /// The two parts, for work that is split up while it is on its way.
    pub(crate) fn into_parts(self) -> (Captured, Carrier) {
        (self.captured, self.carrier)
    }
}

/// A job is made that another thread may take.
#[track_caller]
#[inline]
pub(crate) fn handoff(captured: &Captured) -> Carrier {
    if captured.epoch().is_inert() {
        return Carrier::default();
    }
    Carrier::new(captured.epoch(), CarrierKind::Pool)
}

/// A job is made that stays on this thread, unless the thread is none of the pool's.
#[track_caller]
#[inline]
pub(crate) fn handoff_into_pool(captured: &Captured) -> Carrier {
    if rayon::current_thread_index().is_some() {
        return Carrier::default();
    }
    handoff(captured)
}

/// Runs a job whose capture outlives it, on the thread that took it.
#[inline]
pub(crate) fn run<R>(captured: &Captured, carrier: Carrier, work: impl FnOnce() -> R) -> R {
    if !captured.epoch().is_inert() {
        // The capture holds the epoch; the carrier's handle is one too many.
        drop(carrier.open());
    }
    captured.run(work)
}

/// Waits for jobs. The thread may run others in the meantime, of which nothing is known: whatever
/// is current here is not theirs.
#[inline]
pub(crate) fn waiting<R>(wait: impl FnOnce() -> R) -> R {
    Captured::nothing().run(wait)
}
