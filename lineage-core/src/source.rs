//! Evidence sources and sinks: what a session takes observations from, and where they go.

use std::sync::Arc;
use std::time::Duration;

use crate::id::HostNanos;
use crate::observation::Observation;
use crate::row::{LooseFault, Row};
use crate::totals::Totals;

/// What a source is told when its session starts.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SourceContext {
    /// The session's clock, in nanoseconds. CUPTI is given the same function.
    pub clock: fn() -> u64,
    /// How much evidence is wanted.
    pub tier: Tier,
}

impl SourceContext {
    /// A context of this clock and tier.
    pub const fn new(clock: fn() -> u64, tier: Tier) -> Self {
        Self { clock, tier }
    }
}

/// How much evidence a session collects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Tier {
    /// Always on: calls that ask for work, operations, external ids.
    #[default]
    Correlate,
    /// What tells causes apart as well: calls that order work, submission times, events,
    /// overheads. It costs more, and can disturb what it measures.
    Explain,
    /// As `Explain`, for chosen epochs only, where CUPTI permits switching it. What cannot be
    /// switched is collected from the start, or unknown.
    Burst,
}

/// Why a source gives no evidence. The server runs on without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no device evidence: {why}")]
pub struct NoEvidence {
    /// What happened, to what, and what to do next.
    pub why: Arc<str>,
}

impl NoEvidence {
    /// No evidence, for this reason.
    pub fn new(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into() }
    }
}

/// Something that observes: CUPTI, or a stand-in in a test.
///
/// All calls but `start` are made on the session's drain thread, never on a thread of the
/// application's, and none of them may synchronise with the device.
pub trait EvidenceSource: Send {
    /// Begins to collect. Called once, on the thread that starts the session.
    ///
    /// # Errors
    /// [`NoEvidence`] where nothing can be collected. The session starts all the same and says so.
    fn start(&mut self, context: SourceContext) -> Result<(), NoEvidence>;

    /// Decodes what was handed over so far and gives it on, without waiting.
    fn drain(&mut self, out: &mut dyn FnMut(Observation));

    /// Asks for every complete buffer, without force. Ends with a
    /// [`Flushed`](crate::observation::Flushed) observation at a later `drain`.
    fn flush(&mut self);

    /// Ends collection within this time, and gives on all that is left.
    fn stop(&mut self, within: Duration, out: &mut dyn FnMut(Observation));
}

/// The session that a sink is given: what a file's header or a resource's attributes say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The recording process.
    pub process: uuid::Uuid,
    /// The service's name, as given to the builder.
    pub service: Arc<str>,
    /// When the session started, on its own clock.
    pub started: HostNanos,
    /// The same moment by the wall clock, in nanoseconds since the Unix epoch: what turns the
    /// session's times into dates. Read once, so that all times of a session are turned alike;
    /// a wall clock that is set later is not followed. `None` where it is not known.
    pub started_unix_ns: Option<u64>,
}

impl SessionInfo {
    /// A session of this process and service.
    pub fn new(process: uuid::Uuid, service: impl Into<Arc<str>>, started: HostNanos) -> Self {
        Self {
            process,
            service: service.into(),
            started,
            started_unix_ns: None,
        }
    }

    /// The same session, with the moment of its start by the wall clock.
    #[must_use]
    pub fn started_at_unix_ns(mut self, unix_ns: u64) -> Self {
        self.started_unix_ns = Some(unix_ns);
        self
    }
}

/// How far a session has come, for sinks that hold things back until nothing more comes to them.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Counts of everything so far.
    pub totals: &'a Totals,
    /// The session's clock when the rings were read last: whatever its threads recorded before
    /// was handed on.
    pub read_until: HostNanos,
    /// Every call that was entered before this moment, and left, has all its rows.
    pub settled_before: HostNanos,
}

impl<'a> Progress<'a> {
    /// Progress up to this moment.
    pub const fn new(totals: &'a Totals, read_until: HostNanos, settled_before: HostNanos) -> Self {
        Self {
            totals,
            read_until,
            settled_before,
        }
    }
}

/// Where a session's observations and rows go. Called in order, on the drain thread but for
/// `begin`.
pub trait Sink: Send {
    /// The session starts. Called once, on the thread that starts it.
    ///
    /// # Errors
    /// A message for a person; the session does not start.
    fn begin(&mut self, session: &SessionInfo) -> Result<(), SinkError> {
        let _ = session;
        Ok(())
    }

    /// Takes observations.
    ///
    /// # Errors
    /// A message for a person; the session counts what was lost and goes on.
    fn observations(&mut self, batch: &[Observation]) -> Result<(), SinkError>;

    /// Takes rows, and faults that belong to none.
    ///
    /// # Errors
    /// As above.
    fn rows(&mut self, rows: &[Row], faults: &[LooseFault]) -> Result<(), SinkError>;

    /// Says how far the session has come: about as often as
    /// [`flush_every`](crate::LineageBuilder::flush_every) says, and once before
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// As above.
    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        let _ = progress;
        Ok(())
    }

    /// Makes what was taken durable. Called at shutdown.
    ///
    /// # Errors
    /// As above.
    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A sink could not keep what it was given.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SinkError {
    message: String,
}

impl SinkError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}
