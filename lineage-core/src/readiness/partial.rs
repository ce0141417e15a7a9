//! Why a set of dependencies is not complete.

use std::fmt;

macro_rules! partials {
    ($($(#[$doc:meta])* $name:ident $because:literal, $settle:literal;)+) => {
        /// One reason why not every dependency of an operation is known.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum Partial { $($(#[$doc])* $name),+ }

        impl Partial {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The stable name, for JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// The reason, in words that follow "dependencies partial:".
            pub const fn because(self) -> &'static str {
                match self { $(Self::$name => $because),+ }
            }

            /// What evidence would settle it.
            pub const fn settle(self) -> &'static str {
                match self { $(Self::$name => $settle),+ }
            }
        }
    };
}

partials! {
    /// Calls that order work were not recorded, or it is not known whether they were.
    OrderCallsNotCollected "calls that order work were not recorded",
        "recording calls that order work (tier explain)";
    /// What was on the stream before the recording is not known.
    BeforeRecording "what was on the stream before the recording is not known",
        "a synchronisation of the stream inside of the recording";
    /// What was on the stream before the part of the recording that was read is not known.
    BeforePart "what was on the stream before the part that was read is not known",
        "reading a part that begins earlier";
    /// Records were lost.
    RecordsLost "records were lost", "larger buffers, so that none is lost";
    /// The call that asked for the operation is not known.
    CallUnknown "its call is not recorded", "the record of its call";
    /// A call overlapped in time with another that put work into the same stream.
    CallsOverlap "calls of several threads into its stream overlapped", "nothing: their order in the queue is not recorded";
    /// A launch whose attributes are not known.
    AttributesUnknown "a launch whose attributes are not recorded", "launch attributes (tier explain)";
    /// A launch that may begin before what is before it has ended.
    Programmatic "a programmatic launch", "time stamps inside of the kernel";
    /// An overlap was observed where stream order would forbid it.
    OverlapObserved "it overlapped with earlier work of its stream", "nothing: the order is refuted";
    /// A graph whose edges are not known.
    GraphEdgesUnknown "the edges of its graph are not recorded", "the graph's edges (tier explain)";
    /// A graph with nodes that leave no record.
    GraphNodesUnseen "nodes of a graph that leave no record", "the graph's nodes and edges (tier explain)";
    /// A graph launch that left operations in several streams: which of them launched it is not known.
    GraphStreamUnknown "a graph launch whose stream is not known", "the stream of the graph launch (tier explain)";
    /// A wait for an event without a record of it.
    EventUnknown "an event wait without a record of the event", "event records (tier explain)";
    /// A wait for an event of which no record says when it happened.
    EventUntimed "an event without a time, which may have happened later than what was before it ended",
        "times of events (CUDA 13.0)";
    /// The kinds of the streams are not known.
    StreamKindUnknown "streams whose kind is not recorded", "stream records (tier explain)";
    /// A value in memory, or an external semaphore.
    Semaphore "a wait for a value in memory or an external semaphore", "nothing that is recorded today";
    /// A function of the host's in a stream.
    HostFunction "a host function in a stream", "records of host functions (CUDA 13.1)";
    /// An allocation in stream order, with several streams.
    PooledAllocation "an allocation in stream order, which may wait for another stream", "reading that the pool's reuse by internal dependencies is off";
    /// A prefetch, an upload, an attachment.
    HiddenWork "work that leaves no record, as a prefetch", "nothing that is recorded today";
    /// A context of parts of a device, or an event of a whole context.
    GreenContext "green contexts, or events of whole contexts", "nothing that is recorded today";
    /// A function that is not known.
    UnknownFunction "a call of a function that is not known", "the function's name";
    /// An operation without its time.
    TimeMissing "earlier work without its times", "larger device buffers, so that times are not lost";
    /// The device's clock is further from the host's than is allowed for: a thread had waited for work
    /// that had not ended by it.
    ClockOff "the device's times contradict the host's", "a device clock that keeps to the host's";
    /// More is before it than is looked at.
    TooMuch "more than is looked at", "a shorter recording";
}

/// A set of reasons. Empty: nothing is missing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Partials(u32);

impl Partials {
    /// Nothing is missing.
    pub const NONE: Self = Self(0);

    /// This reason alone.
    pub const fn of(reason: Partial) -> Self {
        Self(1 << reason as u32)
    }

    /// Adds a reason.
    pub const fn add(&mut self, reason: Partial) {
        self.0 |= 1 << reason as u32;
    }

    /// The others.
    #[must_use]
    pub const fn without(self, reason: Partial) -> Self {
        Self(self.0 & !(1 << reason as u32))
    }

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a reason is in it.
    pub const fn has(self, reason: Partial) -> bool {
        self.0 & (1 << reason as u32) != 0
    }

    /// Whether nothing is missing.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The reasons, in order.
    pub fn iter(self) -> impl Iterator<Item = Partial> {
        Partial::ALL.iter().copied().filter(move |&of| self.has(of))
    }
}

impl fmt::Debug for Partials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
