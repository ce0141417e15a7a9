//! What the operating system did with a thread. Bound to no collector.

use std::sync::Arc;

use crate::id::HostNanos;

/// A thread was put on a processor, or taken off it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scheduled {
    /// The thread, by its system id.
    pub tid: u64,
    /// When.
    pub at: HostNanos,
    /// On which processor, where known.
    pub cpu: Option<u32>,
    /// Whether it runs from now on.
    pub running: bool,
    /// The state it was left in, as the recorder numbers it; `None` where not collected.
    pub state: Option<u32>,
}

/// A thread was inside a call of the operating system's runtime, such as a wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OsCall {
    /// The thread, by its system id.
    pub tid: u64,
    /// The function.
    pub name: Arc<str>,
    /// When it was entered.
    pub start: HostNanos,
    /// When it was left; `None` if that was not seen.
    pub end: Option<HostNanos>,
}
