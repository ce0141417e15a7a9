//! What lineage itself sees on the host's threads.

use std::sync::Arc;

use super::{ApiId, OperationsDue};
use crate::id::{
    Attribution, CorrelationId, DetachedReason, HandoffId, HostNanos, LaunchEpoch, ScopeToken,
    TaskId, ThreadKey, W3cParent,
};

/// A place in the source, as a path relative to its crate, with line and column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Site {
    /// Path of the source file.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A thread's first lineage event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ThreadStarted {
    /// The thread.
    pub thread: ThreadKey,
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// When it was first seen.
    pub at: HostNanos,
}

/// A thread that had lineage events ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ThreadEnded {
    /// The thread.
    pub thread: ThreadKey,
    /// When its thread-local state was dropped.
    pub at: HostNanos,
}

/// Work was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Declared {
    /// The new epoch, at its first version.
    pub epoch: LaunchEpoch,
    /// Where it was declared.
    pub thread: ThreadKey,
    /// The task it was declared in, if it was in one.
    pub task: Option<TaskId>,
    /// When.
    pub at: HostNanos,
    /// The name given to it.
    pub name: Arc<str>,
    /// Where in the source.
    pub site: Option<Site>,
}

/// The span that an epoch's work belongs to became known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Parented {
    /// The epoch.
    pub epoch: LaunchEpoch,
    /// The span.
    pub parent: W3cParent,
    /// When.
    pub at: HostNanos,
}

/// A span that is not trusted said that it asked for an epoch's work, as the `traceparent` of a
/// request from outside. It is a link to that span, and never its child.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SpanLinked {
    /// The epoch.
    pub epoch: LaunchEpoch,
    /// The span, as it called itself.
    pub span: W3cParent,
    /// When it became known.
    pub at: HostNanos,
}

/// Kind of an edge between epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LinkKind {
    /// Part of the work of another epoch.
    Fork,
    /// A batch that serves this member among others.
    Merge,
    /// The same work under a fresh id, because the versions were used up.
    Continues,
    /// Another attempt at the same work.
    Retry,
}

/// An edge between two epochs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Linked {
    /// The later epoch: the fork, the batch, the continuation, the retry.
    pub epoch: LaunchEpoch,
    /// The earlier one: the parent, the member, the one that went on.
    pub from: LaunchEpoch,
    /// What the edge means.
    pub kind: LinkKind,
    /// When it was made.
    pub at: HostNanos,
}

/// An epoch's version rose by an explicit step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stepped {
    /// The epoch at its new version.
    pub epoch: LaunchEpoch,
    /// The thread that stepped.
    pub thread: ThreadKey,
    /// When.
    pub at: HostNanos,
}

/// A moment that only the application knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Mark {
    /// The work has all it needs to be launched.
    Ready,
    /// The work is expected to start now.
    Expected,
    /// The batch of this epoch is formed.
    BatchFormed,
    /// The work was cancelled: that it never launched is no fault.
    Cancelled,
}

/// The application marked a moment of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Marked {
    /// The epoch, at the version the mark is about.
    pub epoch: LaunchEpoch,
    /// The mark.
    pub mark: Mark,
    /// The thread that set it.
    pub thread: ThreadKey,
    /// When.
    pub at: HostNanos,
}

/// How an epoch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RetiredAs {
    /// Its owner and carriers are gone.
    Done,
    /// It was cancelled.
    Cancelled,
}

/// The last owner and carrier of an epoch are gone. Work queued before still belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Retired {
    /// The epoch at the last version it reached.
    pub epoch: LaunchEpoch,
    /// How.
    pub how: RetiredAs,
    /// When.
    pub at: HostNanos,
}

/// What carried an epoch over a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CarrierKind {
    /// A future that was given an epoch.
    Future,
    /// A task spawned on an async runtime.
    Task,
    /// A closure on a blocking thread pool.
    Blocking,
    /// A message with an envelope.
    Envelope,
    /// A closure on a thread of its own, or another pool.
    Thread,
    /// A job of a work-stealing pool, as rayon's.
    Pool,
    /// A carrier written by hand.
    Custom,
    /// A stream or sink that was given an epoch.
    Stream,
    /// A closure that others call: a callback.
    Callback,
}

/// Identity of a handoff and of the epoch it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Handoff {
    /// The crossing.
    pub id: HandoffId,
    /// What is carried.
    pub epoch: LaunchEpoch,
    /// By what.
    pub carrier: CarrierKind,
}

/// A carrier was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sent {
    /// Which crossing.
    pub handoff: Handoff,
    /// From where.
    pub thread: ThreadKey,
    /// When.
    pub at: HostNanos,
    /// Where in the source.
    pub site: Option<Site>,
}

/// A carrier was opened where its work goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Received {
    /// Which crossing.
    pub handoff: Handoff,
    /// Where to.
    pub thread: ThreadKey,
    /// The task it was opened in, if it was in one.
    pub task: Option<TaskId>,
    /// When.
    pub at: HostNanos,
}

/// A carrier was dropped unopened together with its work, as when a receiver is cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Abandoned {
    /// Which crossing.
    pub handoff: Handoff,
    /// When.
    pub at: HostNanos,
}

/// A scope ended. Threads that never launched record none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scope {
    /// The thread.
    pub thread: ThreadKey,
    /// What was current.
    pub attribution: Attribution,
    /// Number of the scope on its thread.
    pub token: ScopeToken,
    /// When it began. For a scope that was open when its thread first launched: that moment.
    pub entered: HostNanos,
    /// When it ended.
    pub exited: HostNanos,
    /// The task that entered.
    pub task: Option<TaskId>,
    /// Whether it was a launch boundary.
    pub boundary: bool,
    /// Whether the boundary's id reached CUPTI's stack.
    pub pushed: bool,
}

/// A call that asks for GPU work, as our own callback saw it on the calling thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Call {
    /// The calling thread.
    pub thread: ThreadKey,
    /// Which function.
    pub api: ApiId,
    /// CUPTI's number of the call.
    pub correlation: CorrelationId,
    /// When the call was entered.
    pub entered: HostNanos,
    /// When it was left; `None` if the exit callback never came.
    pub exited: Option<HostNanos>,
    /// The function's own result code; 0 is success.
    pub result: u32,
    /// What was current on the thread at entry.
    pub attribution: Attribution,
    /// Whether the call was made inside a launch boundary.
    pub in_boundary: bool,
    /// The task that made the call.
    pub task: Option<TaskId>,
    /// How many operations are due.
    pub due: OperationsDue,
}

/// Records of a thread were lost because its ring was full.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gap {
    /// The thread.
    pub thread: ThreadKey,
    /// How many records.
    pub count: u64,
    /// They were written after this; `None` if nothing came before.
    pub not_before: Option<HostNanos>,
    /// They were written before this; `None` if nothing came after.
    pub not_after: Option<HostNanos>,
}

/// A detached reason got its number.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Named {
    /// The number that packed epochs carry.
    pub reason: DetachedReason,
    /// The reason's name.
    pub name: Arc<str>,
}

/// How the interface was used wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum MisuseKind {
    /// A scope was ended that is not open on this thread.
    ScopeUnbalanced,
    /// A scope was still open when its thread ended.
    ScopeLeaked,
    /// A scope was entered in one task, and in another it ended or was taken along: held across an
    /// await.
    ScopeAcrossTasks,
    /// CUPTI's stack held another's id where ours was due.
    ForeignExternalId,
}

/// The interface was used wrongly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Misuse {
    /// How.
    pub kind: MisuseKind,
    /// On which thread.
    pub thread: ThreadKey,
    /// What was current or expected.
    pub attribution: Attribution,
    /// The foreign value, where there is one.
    pub value: u64,
    /// When.
    pub at: HostNanos,
}
