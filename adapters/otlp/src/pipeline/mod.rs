//! From encoded items to what the collector acknowledged: a bounded queue, batches, attempts, and an account of every item.
//!
//! ```text
//!  any thread              exporter's own thread
//!  offer ──► queue ──► sender ──► attempts ──► transport ──► collector
//!    │         │          │          │
//!    └─────────┴── counters ─────────┘        each item: sent, refused, or lost for a reason that is named
//! ```
//!
//! * An item is a protobuf message already encoded, and is copied once into the batch that is being built. A batch's request is
//!   put together once, framed and compressed once, and sent again as the very same bytes.
//! * Whoever offers never waits for the network: see [`queue`] for the lock.
//! * Attempts are repeated for what OTLP calls retryable and for connections that fail, see [`deliver`].
//! * A shutdown has a deadline, and nothing that the other side does or does not do moves it.
#![cfg_attr(
    not(any(feature = "grpc", feature = "http")),
    allow(dead_code, reason = "for transports that were not built")
)]

pub(crate) mod backoff;
pub(crate) mod batch;
pub(crate) mod counts;
pub(crate) mod deliver;
pub(crate) mod envelope;
pub(crate) mod problem;
mod queue;
mod signal;
#[cfg(test)]
mod tests;
mod worker;

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::watch;

pub(crate) use backoff::Backoff;
pub use counts::{ExportCounters, ExportCounts, LastError, LostCounts, SignalCounts};
use deliver::{FOREVER, Stop};
pub(crate) use envelope::FRAME;
pub use envelope::Origin;
pub use problem::{Problem, ProblemKind};
pub use signal::Signal;

use crate::config::{Settings, SettingsError};
use crate::transport::{Target, TargetError};
use envelope::Envelope;
use problem::Problems;
use queue::{LaneLimits, Queue};
use worker::Worker;

/// What a server of gRPC takes by default.
const LARGEST_MESSAGE: usize = 4 << 20;

/// The part of the queue that metrics and log records have each for themselves.
const SHARE_OF_THE_FEW: usize = 16;

/// How many batches a queue holds at least.
const BATCHES_AT_LEAST: usize = 4;

/// The least that a queue is good for.
const SMALLEST_QUEUE: usize = 64 << 10;

/// How long beyond its deadline a shutdown waits for the exporter's thread to put its books in order.
const GRACE: Duration = Duration::from_millis(300);

/// The export could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportStartError {
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// This build, or the files that were named, cannot serve a destination.
    #[error("export of {signal}: {why}")]
    Target {
        /// Whose.
        signal: Signal,
        /// Why.
        #[source]
        why: TargetError,
    },
    /// The exporter's thread could not be made.
    #[error("the exporter's thread could not be started: {0}")]
    Thread(#[source] io::Error),
}

/// The export of one process, until it is shut down or dropped. Dropped, it loses what was not acknowledged, and does not wait.
#[derive(Debug)]
pub struct Pipeline {
    queue: Arc<Queue>,
    /// Signals that are not exported.
    switched_off: [bool; 3],
    /// `None` from its end on.
    stop: Option<watch::Sender<Option<Stop>>>,
    /// Behind a lock only so that a pipeline may be shared by threads.
    done: Mutex<mpsc::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pipeline {
    /// Starts the exporter's thread. Connects to nobody yet: a collector may come later than we do.
    ///
    /// # Errors
    ///
    /// If a setting cannot be used, certificates cannot be read, or there can be no thread.
    pub fn start(settings: &Settings, origin: &Origin) -> Result<Self, ExportStartError> {
        let envelope = Arc::new(Envelope::new(origin));
        let targets = Signal::ALL.map(|signal| {
            if settings.is_switched_off(signal) {
                return Ok(None);
            }
            let destination = settings.destination(signal)?;
            let target = Target::new(destination);
            target
                .map(|target| Some(Arc::new(target)))
                .map_err(|why| ExportStartError::Target { signal, why })
        });
        let [traces, metrics, logs] = targets;
        let targets = [traces?, metrics?, logs?];
        let counters = ExportCounters::default();
        let endpoints = [0, 1, 2].map(|index| {
            let target: Option<&Target> = targets[index].as_deref();
            target.map_or_else(String::new, |it| it.destination.endpoint.to_string())
        });
        let limits = limits(settings, &envelope)?;
        let queue = Queue::new(limits, counters.clone());
        let (stop, stopped) = watch::channel(None);
        let mut backoff = settings.backoff;
        if backoff.seed == 0 {
            backoff.seed = RandomState::new().hash_one(std::process::id());
        }
        let worker = Worker {
            queue: Arc::clone(&queue),
            envelope,
            targets,
            throttles: Default::default(),
            give_up_after: settings.batching.map(|batching| batching.give_up_after),
            backoff,
            problems: Arc::new(Problems::new(
                settings.on_problem.clone(),
                counters,
                endpoints,
            )),
            stop: stopped,
            warnings: settings.warnings.clone(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("lineage-lookup")
            .build()
            .map_err(ExportStartError::Thread)?;
        let (tell, done) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("lineage-otlp".into())
            .spawn(move || worker.run(runtime, &tell))
            .map_err(ExportStartError::Thread)?;
        Ok(Self {
            queue,
            switched_off: settings.switched_off,
            stop: Some(stop),
            done: Mutex::new(done),
            thread: Some(thread),
        })
    }

    /// Takes one encoded protobuf message: a `Span`, a `Metric` or a `LogRecord`. `false` if it is lost, which is then counted,
    /// or if its signal is not exported, which is no loss.
    ///
    /// Waits for nobody but another thread that appends at the same moment. Makes a system call only to wake the exporter's
    /// thread, at most twice per batch.
    pub fn offer(&self, signal: Signal, item: &[u8]) -> bool {
        !self.switched_off[signal.index()] && self.queue.offer(signal, item)
    }

    /// Sends what was offered before this call, full batches or not, and waits until each item of it is acknowledged, refused or
    /// lost. `false` if that takes longer.
    pub fn flush(&self, within: Duration) -> bool {
        self.queue.flush(Instant::now() + within.min(FOREVER))
    }

    /// What became of what was offered, from any thread, also after the shutdown.
    pub fn counters(&self) -> ExportCounters {
        self.queue.counters.clone()
    }

    /// Sends what is left and ends, no later than the deadline whatever the collector does. What is not acknowledged by then is
    /// lost and counted.
    ///
    /// In a forked child, where there is no thread to wait for, it returns at once. It also returns, with items that are still
    /// pending, if the application's own hook for problems keeps the exporter's thread longer than that.
    pub fn shutdown(mut self, within: Duration) -> ExportCounts {
        if self.queue.is_forked() {
            return self.queue.counters.snapshot();
        }
        self.tell_to_stop(within);
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner);
        if done.recv_timeout(within.min(FOREVER) + GRACE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // It has nothing left to do but to end.
            let _ = thread.join();
        }
        self.queue.counters.snapshot()
    }

    fn tell_to_stop(&self, within: Duration) {
        self.queue.close();
        if let Some(stop) = &self.stop {
            let _ = stop.send(Some(Stop::within(within)));
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if self.queue.is_forked() {
            // The last sender tells the receivers, for which it takes a lock that a thread may have held that was not copied.
            std::mem::forget(self.stop.take());
        } else if self.thread.is_some() {
            self.tell_to_stop(Duration::ZERO);
        }
    }
}

fn limits(settings: &Settings, envelope: &Envelope) -> Result<[LaneLimits; 3], SettingsError> {
    if settings.queue_bytes < SMALLEST_QUEUE {
        let given = settings.queue_bytes.to_string();
        let expected = format!("at least {SMALLEST_QUEUE} bytes are expected");
        return Err(SettingsError::new(
            "the queue's size given in code",
            &given,
            expected,
        ));
    }
    let largest = LARGEST_MESSAGE.saturating_sub(envelope.length());
    if settings.batch_bytes == 0 || settings.batch_bytes > largest {
        let given = settings.batch_bytes.to_string();
        let expected = format!(
            "1 to {largest} bytes are expected: a server of gRPC takes {LARGEST_MESSAGE} by default, resource and scope among them"
        );
        return Err(SettingsError::new(
            "the batch's size given in code",
            &given,
            expected,
        ));
    }
    let few = settings.queue_bytes / SHARE_OF_THE_FEW;
    Ok(Signal::ALL.map(|signal| {
        let queue_bytes = match signal {
            Signal::Traces => settings.queue_bytes - 2 * few,
            Signal::Metrics | Signal::Logs => few,
        };
        let batching = settings.batching[signal.index()];
        let queue_items = batching.queue_items.unwrap_or(u64::MAX);
        LaneLimits {
            queue_bytes,
            queue_items,
            // A queue that is full before its first batch would have nothing to send.
            batch_bytes: settings.batch_bytes.min(queue_bytes / BATCHES_AT_LEAST),
            largest_item: largest.min(queue_bytes),
            batch_items: batching
                .items
                .min(queue_items / BATCHES_AT_LEAST as u64)
                .max(1),
            batch_age: batching.delay,
        }
    }))
}
