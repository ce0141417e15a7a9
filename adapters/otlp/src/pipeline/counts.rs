//! How much was offered, and what became of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::Signal;

/// What became of what was offered for export, readable from any thread while it goes on, without waiting for anyone.
///
/// A clone reads the same numbers.
#[derive(Clone, Debug, Default)]
pub struct ExportCounters(Arc<Counters>);

impl ExportCounters {
    /// The numbers as they are now. What was done is read before what was offered, so a sum never exceeds that.
    pub fn snapshot(&self) -> ExportCounts {
        let [spans, metrics, log_records] = Signal::ALL.map(|signal| self.of(signal).snapshot());
        ExportCounts {
            spans,
            metrics,
            log_records,
            queue_bytes: self.0.queue_bytes.get(),
            queue_bytes_most: self.0.queue_bytes_most.get(),
            requests: self.0.requests.get(),
            cpu_ns: self.0.cpu_ns.get(),
            panics: self.0.panics.get(),
            last_error: self.last_error().clone(),
        }
    }

    pub(crate) fn of(&self, signal: Signal) -> &SignalCounters {
        &self.0.signals[signal.index()]
    }

    pub(crate) fn request(&self) {
        self.0.requests.add(1);
    }

    /// To be called on the exporter's thread, which has worked this long so far.
    pub(crate) fn worked(&self, cpu_ns: u64) {
        self.0.cpu_ns.set(cpu_ns);
    }

    pub(crate) fn panicked(&self) {
        self.0.panics.add(1);
    }

    /// To be called by whoever holds the queue's lock: what is read and written here is not one step.
    pub(crate) fn queue_holds(&self, bytes: u64) {
        self.0.queue_bytes.set(bytes);
        if bytes > self.0.queue_bytes_most.get() {
            self.0.queue_bytes_most.set(bytes);
        }
    }

    pub(crate) fn error(&self, text: String) {
        *self.last_error() = Some(LastError {
            text,
            at: SystemTime::now(),
        });
    }

    fn last_error(&self) -> std::sync::MutexGuard<'_, Option<LastError>> {
        let locked = self.0.last_error.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Counters {
    signals: [SignalCounters; 3],
    queue_bytes: Counter,
    queue_bytes_most: Counter,
    requests: Counter,
    cpu_ns: Counter,
    panics: Counter,
    last_error: Mutex<Option<LastError>>,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn set(&self, to: u64) {
        self.0.store(to, Relaxed);
    }
}

#[derive(Debug, Default)]
pub(crate) struct SignalCounters {
    pub(crate) offered: Counter,
    pub(crate) sent: Counter,
    pub(crate) retried: Counter,
    pub(crate) refused: Counter,
    lost: [Counter; LossReason::ALL.len()],
}

impl SignalCounters {
    pub(crate) fn lost(&self, reason: LossReason, items: u64) {
        self.lost[reason as usize].add(items);
    }

    fn snapshot(&self) -> SignalCounts {
        let lost = |reason: LossReason| self.lost[reason as usize].get();
        let (sent, refused) = (self.sent.get(), self.refused.get());
        let lost = LostCounts {
            queue_full: lost(LossReason::QueueFull),
            too_large: lost(LossReason::TooLarge),
            given_up: lost(LossReason::GivenUp),
            shutdown: lost(LossReason::Shutdown),
            panicked: lost(LossReason::Panicked),
        };
        SignalCounts {
            sent,
            refused,
            lost,
            retried: self.retried.get(),
            offered: self.offered.get(),
        }
    }
}

/// Why an item was never acknowledged by a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossReason {
    QueueFull,
    TooLarge,
    GivenUp,
    Shutdown,
    Panicked,
}

impl LossReason {
    const ALL: [Self; 5] = [
        Self::QueueFull,
        Self::TooLarge,
        Self::GivenUp,
        Self::Shutdown,
        Self::Panicked,
    ];
}

/// [`ExportCounters`] at one moment. After a shutdown, offered = sent + refused + lost, for each signal.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExportCounts {
    /// Spans.
    pub spans: SignalCounts,
    /// Metrics. A collector that refuses some says how many data points that are; no more than the request's metrics count here.
    pub metrics: SignalCounts,
    /// Log records.
    pub log_records: SignalCounts,
    /// Bytes of encoded items that wait or are on their way, of all signals together.
    pub queue_bytes: u64,
    /// The most that `queue_bytes` ever was.
    pub queue_bytes_most: u64,
    /// Requests made, those that were made again among them.
    pub requests: u64,
    /// Processor time of the exporter's own thread, in nanoseconds; 0 where the system does not tell.
    pub cpu_ns: u64,
    /// Panics in the exporter's own thread. It went on after each.
    pub panics: u64,
    /// The last thing that went wrong, if anything did.
    pub last_error: Option<LastError>,
}

/// What became of one signal's items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignalCounts {
    /// Offered for export.
    pub offered: u64,
    /// Acknowledged by the collector.
    pub sent: u64,
    /// In requests that were made again; an item of a batch that took three attempts counts twice. It may have arrived more
    /// than once, always with the same ids.
    pub retried: u64,
    /// Answered with a refusal by the collector: whole requests, and what it says it did not take of others.
    pub refused: u64,
    /// Neither.
    pub lost: LostCounts,
}

impl SignalCounts {
    /// Waiting, or on their way.
    pub fn pending(&self) -> u64 {
        let settled = self.sent + self.refused + self.lost.total();
        self.offered.saturating_sub(settled)
    }
}

/// Items that no collector answered for, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostCounts {
    /// The queue was full; the newest are dropped.
    pub queue_full: u64,
    /// One item alone was larger than a message may be.
    pub too_large: u64,
    /// Attempts went on failing for as long as they are repeated.
    pub given_up: u64,
    /// Not acknowledged when the shutdown's deadline passed, or offered after it.
    pub shutdown: u64,
    /// On its way when the exporter's thread panicked.
    pub panicked: u64,
}

impl LostCounts {
    /// For whatever reason.
    pub fn total(&self) -> u64 {
        self.queue_full + self.too_large + self.given_up + self.shutdown + self.panicked
    }
}

/// What went wrong last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastError {
    /// What happened and to what.
    pub text: String,
    /// When.
    pub at: SystemTime,
}
