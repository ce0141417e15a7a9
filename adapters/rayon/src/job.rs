//! A job, and whose it is.

use lineage_core::Captured;
use lineage_core::carrier::Carrier;
use lineage_core::observation::CarrierKind;

/// What was current where a job was made, on its way to whichever thread takes the job.
pub(crate) struct Job {
    captured: Captured,
    /// Empty for a job that stays on its thread.
    carrier: Carrier,
}

impl Job {
    /// Of a job that another thread may take: a handoff.
    #[track_caller]
    pub(crate) fn sent() -> Self {
        Self::sent_for(Captured::current())
    }

    #[track_caller]
    pub(crate) fn sent_for(captured: Captured) -> Self {
        let carrier = Carrier::new(captured.epoch(), CarrierKind::Pool);
        Self { captured, carrier }
    }

    /// Of a job that this very thread is going to run.
    pub(crate) fn staying(captured: Captured) -> Self {
        let carrier = Carrier::default();
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
        // The capture holds the epoch; the carrier's handle is one too many.
        drop(self.carrier.open());
        self.captured.run(work)
    }

    /// The two parts, for work that is split up while it is on its way.
    pub(crate) fn into_parts(self) -> (Captured, Carrier) {
        (self.captured, self.carrier)
    }
}

/// Waits for jobs. The thread may run others in the meantime, of which nothing is known: whatever
/// is current here is not theirs.
pub(crate) fn waiting<R>(wait: impl FnOnce() -> R) -> R {
    Captured::nothing().run(wait)
}

/// Whether jobs made here are put into the pool by a thread that is not one of its own.
pub(crate) fn outside_of_pool() -> bool {
    rayon::current_thread_index().is_none()
}
