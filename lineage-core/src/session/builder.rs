//! Building and starting a session.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::Lineage;
use crate::correlator::Limits;
use crate::source::{EvidenceSource, Sink, SinkError, Tier};

/// Settings of a session, with defaults for all of them.
#[must_use = "a builder does nothing until it is started"]
pub struct LineageBuilder {
    pub(super) service: Arc<str>,
    pub(super) enabled: bool,
    pub(super) tier: Tier,
    pub(super) clock: Option<fn() -> u64>,
    pub(super) ring_capacity: usize,
    pub(super) keep_in_memory: usize,
    pub(super) drain_every: Duration,
    pub(super) flush_every: Duration,
    pub(super) limits: Limits,
    pub(super) device: Option<Box<dyn EvidenceSource>>,
    pub(super) scheduler: Option<Box<dyn EvidenceSource>>,
    pub(super) sinks: Vec<Box<dyn Sink>>,
}

/// Why a session could not start.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is one session per process at a time.
    #[error(
        "a lineage session is already running in this process, which has one at a time: shut it down \
         first, or, in tests, put each session into a test file of its own"
    )]
    AlreadyRunning,
    /// The session before was dropped, and its drain thread is not done yet.
    #[error("the lineage session before has not ended yet: use `shutdown`, which waits for it")]
    StillEnding,
    /// CUPTI is given its clock once per process.
    #[error("another clock was set by an earlier session of this process, and cannot be changed")]
    ClockAlreadySet,
    /// A sink refused to begin.
    #[error("a sink could not begin: {0}")]
    Sink(#[source] SinkError),
    /// The drain thread could not be made.
    #[error("the drain thread could not be started: {0}")]
    Thread(#[source] std::io::Error),
    /// The rings' list is held by a thread that does not exist any more, as after a fork.
    #[error("the list of rings is locked: was the process forked while a thread began to record?")]
    Locked,
}

/// As it is displayed: this is what a test that unwraps it prints.
impl std::fmt::Debug for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Default for LineageBuilder {
    fn default() -> Self {
        Self {
            service: "unnamed".into(),
            enabled: true,
            tier: Tier::default(),
            clock: None,
            ring_capacity: 8192,
            keep_in_memory: 0,
            drain_every: Duration::from_millis(20),
            flush_every: Duration::from_millis(500),
            limits: Limits::default(),
            device: None,
            scheduler: None,
            sinks: Vec::new(),
        }
    }
}

impl LineageBuilder {
    /// Name of the service, for sinks.
    pub fn service(mut self, name: impl Into<Arc<str>>) -> Self {
        self.service = name.into();
        self
    }

    /// Whether to record at all. Off, every epoch is inert and costs a load and a branch.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// How much evidence to collect.
    pub fn tier(mut self, tier: Tier) -> Self {
        self.tier = tier;
        self
    }

    /// The clock of everything, CUPTI's records included, in nanoseconds. `CLOCK_MONOTONIC` if
    /// none is given. It stays for the life of the process.
    pub fn clock(mut self, clock: fn() -> u64) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Records in each thread's ring (64 bytes each), rounded up to a power of two. The default,
    /// 8192, is 512 KiB for every thread that records: time for 4,000 launches until the drain thread
    /// comes.
    pub fn ring_capacity(mut self, records: usize) -> Self {
        self.ring_capacity = records;
        self
    }

    /// Keeps this many observations, and as many rows and faults, for [`Lineage::report`]: for
    /// tests. Roughly 200 bytes each. The default keeps none.
    pub fn keep_in_memory(mut self, observations: usize) -> Self {
        self.keep_in_memory = observations;
        self
    }

    /// How often rings are read; a ring that is half full is read at once.
    pub fn drain_every(mut self, interval: Duration) -> Self {
        self.drain_every = interval;
        self
    }

    /// How often the sources are asked for their complete buffers.
    pub fn flush_every(mut self, interval: Duration) -> Self {
        self.flush_every = interval;
        self
    }

    /// Bounds of what the correlator holds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where device evidence comes from, as `lineage_cupti::Cupti`.
    pub fn device(mut self, source: impl EvidenceSource + 'static) -> Self {
        self.device = Some(Box::new(source));
        self
    }

    /// Where evidence of the operating system's scheduler comes from, as `lineage_sched::Scheduler`:
    /// when a thread of the process was off its processor, and why.
    pub fn scheduler(mut self, source: impl EvidenceSource + 'static) -> Self {
        self.scheduler = Some(Box::new(source));
        self
    }

    /// One more place where observations and rows go.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Starts the session.
    ///
    /// That a source has no evidence is no error: the session starts, and
    /// [`Report::device`](super::Report::device) and
    /// [`Report::scheduler`](super::Report::scheduler) say why.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(self) -> Result<Lineage, StartError> {
        let process = Uuid::now_v7();
        let service = Arc::clone(&self.service);
        #[cfg(feature = "record")]
        {
            let link = if self.enabled {
                Some(super::drain::start(self, process)?)
            } else {
                None
            };
            Ok(Lineage {
                process,
                service,
                link,
            })
        }
        #[cfg(not(feature = "record"))]
        Ok(Lineage { process, service })
    }
}

impl std::fmt::Debug for LineageBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineageBuilder")
            .field("service", &self.service)
            .field("enabled", &self.enabled)
            .field("tier", &self.tier)
            .field("ring_capacity", &self.ring_capacity)
            .field("keep_in_memory", &self.keep_in_memory)
            .field("sinks", &self.sinks.len())
            .finish_non_exhaustive()
    }
}
