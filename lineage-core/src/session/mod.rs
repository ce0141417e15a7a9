//! A recording session: started once, drained on a thread of its own, shut down in order.

mod builder;
#[cfg(feature = "record")]
mod drain;
mod report;
mod shares;

pub use builder::{LineageBuilder, StartError};
pub use report::{DeviceEvidence, Report, SchedulerEvidence};
pub use shares::Share;

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::totals::Totals;

/// A running session. There is one per process at a time.
///
/// Dropping it ends the session without waiting: what is still in buffers is handed on by the
/// drain thread if the process lives long enough. [`shutdown`](Self::shutdown) waits.
#[derive(Debug)]
#[must_use = "the session ends when this is dropped"]
pub struct Lineage {
    process: Uuid,
    service: Arc<str>,
    #[cfg(feature = "record")]
    link: Option<drain::Link>,
}

impl Lineage {
    /// What a session is made from.
    pub fn builder() -> LineageBuilder {
        LineageBuilder::default()
    }

    /// Identity of the recording process.
    pub const fn process(&self) -> Uuid {
        self.process
    }

    /// The service's name.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Whether anything is recorded: the session is enabled and the feature `record` is on.
    pub const fn is_recording(&self) -> bool {
        #[cfg(feature = "record")]
        return self.link.is_some();
        #[cfg(not(feature = "record"))]
        return false;
    }

    /// All that was concluded so far. Holds observations and rows only as far as
    /// [`keep_in_memory`](LineageBuilder::keep_in_memory) allows.
    ///
    /// Waits for the drain thread, which takes milliseconds: not for an async worker thread under
    /// load.
    pub fn report(&self) -> Report {
        #[cfg(feature = "record")]
        if let Some(report) = self.link.as_ref().and_then(|link| link.report()) {
            return report;
        }
        Report::empty(self.process)
    }

    /// The totals so far. Waits for the drain thread like [`report`](Self::report).
    pub fn totals(&self) -> Totals {
        #[cfg(feature = "record")]
        if let Some(totals) = self.link.as_ref().and_then(|link| link.totals()) {
            return totals;
        }
        Totals::default()
    }

    /// Asks for all complete buffers until nothing is pending; `false` if the time did not
    /// suffice, as when work is still queued. Never synchronises with the device.
    pub fn flush(&self, within: Duration) -> bool {
        #[cfg(feature = "record")]
        if let Some(link) = &self.link {
            return link.flush(within);
        }
        let _ = within;
        true
    }

    /// Ends the session in order: device evidence first, then the rings, then the sinks. Waits
    /// for at most about the given time.
    ///
    /// Call it off the runtime's worker threads. Work that the device has not finished by then is
    /// reported as it stands: synchronise first if it should be complete.
    pub fn shutdown(self, within: Duration) -> Report {
        #[cfg(feature = "record")]
        if let Some(report) = self.link.and_then(|link| link.stop(within)) {
            return report;
        }
        let _ = within;
        Report::empty(self.process)
    }
}
