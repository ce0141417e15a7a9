//! Readiness: from when on an operation could have begun, as far as that is proved.
//!
//! `not_before` is the latest of what is *proved* to have held the operation back. Whether that is
//! all that did is another question, and the answer is mostly no: a wait that nobody recorded
//! leaves no trace. So a [`Readiness`] also says whether the set of its dependencies is complete,
//! and if not, what is missing.
//!
//! # The rules
//!
//! Sources: the CUDA C Programming Guide's chapters on streams, events, graphs and programmatic
//! dependent launch; the driver API's pages on stream synchronisation behaviour and `cuGraphLaunch`.
//!
//! * **Stream order.** An operation waits for all earlier work of its (device, context, stream).
//!   Earlier is what was called by a call that had *returned* before this one began: ids are given
//!   at entry and say nothing of the order in a queue, so calls that overlap make the set partial.
//! * **Loosened order.** A `…LaunchKernelEx` is ordered only if its attributes are known and strict.
//! * **Graphs.** Inside one graph launch only edges prove order. All of its operations wait for
//!   earlier work of the launching stream, and the next work of that stream waits for all of them.
//! * **Events.** A wait for an event is over when the event, as recorded last before the wait call,
//!   is complete: its device time, or else the end of all work before the record call in the stream
//!   that recorded it.
//! * **Default streams.** Work of the legacy default stream waits for all blocking streams of its
//!   context, and they for it. That needs the streams' kinds.
//! * **A strict operation hides what was before it**: whatever it waited for had ended when it
//!   began. The set of its successor needs only what came between the two.
//! * **Clean points.** A successful wait of a thread for a stream or context: all earlier work had
//!   ended when it returned.
//! * **An observed overlap refutes** the rule for that pair. The set becomes partial; it is no fault.

mod graph;
mod launch;
mod partial;
mod prove;
mod role;
mod stream;

pub use partial::{Partial, Partials};
pub(crate) use prove::{CallSeen, OperationSeen, Proved, Prover};
// For tests of crates that choose by id the functions that they record: no part of the interface.
#[doc(hidden)]
pub use role::Role;

use crate::id::HostNanos;

/// What an operation waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dependency {
    /// By which rule.
    pub kind: DependencyKind,
    /// The operation whose end it was, by the number of its row; `None` for a device time of an
    /// event of which it is not known what all was before it.
    pub row: Option<usize>,
}

/// By which rule an operation waited for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum DependencyKind {
    /// It was earlier in the same stream.
    SameStream,
    /// It was part of an earlier graph launch of the same stream.
    EarlierGraph,
    /// An event that the stream waited for.
    Event,
    /// The order of the legacy default stream.
    DefaultStream,
    /// An edge of the graph.
    GraphEdge,
    /// The previous launch of the same executable graph.
    SameExec,
}

impl DependencyKind {
    /// In words that follow "waits for".
    pub const fn words(self) -> &'static str {
        match self {
            Self::SameStream => "earlier work in its stream",
            Self::EarlierGraph => "an earlier graph launch in its stream",
            Self::Event => "an event that its stream waited for",
            Self::DefaultStream => "work ordered by the legacy default stream",
            Self::GraphEdge => "a node before it in its graph",
            Self::SameExec => "the previous launch of the same graph",
        }
    }
}

/// From when on an operation could have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// It cannot have begun its work before this, and why. `None` if nothing is proved.
    pub not_before: Option<(HostNanos, Dependency)>,
    /// It was ready by then: its start; for launches that may begin early and wait inside, its end.
    pub not_after: Option<HostNanos>,
    /// What is missing from the set of its dependencies. Empty: the set is complete.
    pub partial: Partials,
    /// The clean point that a complete set rests on: when a thread's wait for the stream returned,
    /// when the stream was made, or when an operation ended that had waited for all before it.
    /// `None` where the set is partial.
    pub complete_since: Option<HostNanos>,
}

impl Readiness {
    /// Whether every dependency is known.
    pub const fn is_complete(&self) -> bool {
        self.partial.is_empty()
    }
}
