//! Hooks through which crates that know CUDA or a runtime plug into the core.
//!
//! A hook is set once per process and stays: what it does when no session of its own is live is
//! nothing.

use std::sync::OnceLock;

use crate::id::{CorrelationId, HostNanos, PackedEpoch, TaskId, ThreadKey};
use crate::observation::{ApiDomain, GraphSequence, OperationsDue};

/// What a launch boundary does beyond setting the current epoch: CUPTI's external correlation.
pub trait BoundaryHook: Sync {
    /// Pushes an id on the calling thread's stack.
    fn push(&self, id: PackedEpoch) -> PushToken;

    /// Pops what `push` pushed, if it did. Never called for a token twice, nor out of order.
    fn pop(&self, token: PushToken, id: PackedEpoch);
}

/// What became of a push. A pop is due only if it succeeded, and in the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushToken {
    /// Number of the session in which it was pushed.
    pub session: u32,
    /// Whether it reached the stack.
    pub pushed: bool,
}

impl PushToken {
    /// Nothing was pushed, nothing is to be popped.
    pub const NOT_PUSHED: Self = Self {
        session: 0,
        pushed: false,
    };
}

/// A hook of this kind is set already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {0} hook is already set in this process")]
pub struct HookAlreadySet(&'static str);

static BOUNDARY: OnceLock<&'static dyn BoundaryHook> = OnceLock::new();
static TASK: OnceLock<fn() -> Option<TaskId>> = OnceLock::new();
static THREAD: OnceLock<fn(ThreadKey)> = OnceLock::new();

/// Sets what launch boundaries call.
///
/// # Errors
/// [`HookAlreadySet`], in which case the earlier one stays.
pub fn set_boundary_hook(hook: &'static dyn BoundaryHook) -> Result<(), HookAlreadySet> {
    BOUNDARY.set(hook).map_err(|_| HookAlreadySet("boundary"))
}

/// Sets what tells the calling task's id. It is called when scopes are entered, so it must cost a
/// few nanoseconds at most.
///
/// # Errors
/// [`HookAlreadySet`], in which case the earlier one stays.
pub fn set_task_id_hook(hook: fn() -> Option<TaskId>) -> Result<(), HookAlreadySet> {
    TASK.set(hook).map_err(|_| HookAlreadySet("task id"))
}

/// Sets what is called on a thread after its first record of each session: once per thread and
/// session, so it may cost microseconds. It may be called inside a CUDA call, and must not panic,
/// nor declare, enter or record anything.
///
/// # Errors
/// [`HookAlreadySet`], in which case the earlier one stays.
pub fn set_thread_hook(hook: fn(ThreadKey)) -> Result<(), HookAlreadySet> {
    THREAD.set(hook).map_err(|_| HookAlreadySet("thread"))
}

#[cfg(feature = "record")]
pub(crate) fn thread_began(thread: ThreadKey) {
    if let Some(hook) = THREAD.get() {
        hook(thread);
    }
}

#[cfg(feature = "record")]
pub(crate) fn push(id: PackedEpoch) -> PushToken {
    BOUNDARY
        .get()
        .map_or(PushToken::NOT_PUSHED, |hook| hook.push(id))
}

#[cfg(feature = "record")]
pub(crate) fn pop(token: PushToken, id: PackedEpoch) {
    if let (true, Some(hook)) = (token.pushed, BOUNDARY.get()) {
        hook.pop(token, id);
    }
}

#[cfg(feature = "record")]
#[inline]
pub(crate) fn task() -> Option<TaskId> {
    TASK.get().and_then(|hook| hook())
}

/// The calling task's number, or 0 outside of tasks.
#[inline]
#[cfg(feature = "record")]
pub(crate) fn task_number() -> u64 {
    task().map_or(0, |task| task.0)
}

/// What the API callback reads when a call is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallSnapshot {
    /// What was current on the calling thread.
    pub attribution: PackedEpoch,
    /// Whether the thread was inside a launch boundary.
    pub in_boundary: bool,
    /// The calling task.
    pub task: Option<TaskId>,
    /// When.
    pub at: HostNanos,
}

/// What the API callback knows when a call is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLeft {
    /// The interface.
    pub domain: ApiDomain,
    /// CUPTI's callback id of the function.
    pub cbid: u32,
    /// CUPTI's number of the call.
    pub correlation: CorrelationId,
    /// The function's own result code.
    pub result: u32,
    /// How many operations are due.
    pub due: OperationsDue,
    /// When it was left; `None` if its exit was never seen.
    pub exited: Option<HostNanos>,
}

/// To be called on the launching thread when a call that asks for work is entered. From the first
/// time on, the thread's scopes are recorded.
pub fn call_entered() -> CallSnapshot {
    crate::hot::call_entered()
}

/// To be called on the launching thread when the call is left: writes one record.
pub fn call_left(snapshot: &CallSnapshot, call: &CallLeft) {
    crate::hot::call_left(snapshot, call);
}

/// A graph launch that was accepted, as the API callback saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphLaunched {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// CUPTI's number of the call.
    pub correlation: CorrelationId,
    /// When the call was entered.
    pub at: HostNanos,
    /// The executable graph, by CUPTI's id.
    pub exec: u32,
    /// The last change of any graph before the launch.
    pub sequence: GraphSequence,
}

/// To be called on the launching thread when a graph launch is left, before [`call_left`]: writes
/// one record, and locks nothing.
pub fn graph_launched(launched: &GraphLaunched) {
    crate::hot::graph_launched(launched);
}

/// The attributes of a launch, as the API callback read them from the call's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchAttributesRead {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// CUPTI's number of the call.
    pub correlation: CorrelationId,
    /// When the call was entered.
    pub at: HostNanos,
    /// Whether it may begin before what is before it in its stream has ended.
    pub programmatic: bool,
    /// Whether an attribute records an event.
    pub records_event: bool,
}

/// To be called on the launching thread when such a launch is left, before [`call_left`]: writes one
/// record, and locks nothing.
pub fn launch_attributes(read: &LaunchAttributesRead) {
    crate::hot::launch_attributes(read);
}

/// Now, in nanoseconds of the session's clock.
pub fn now() -> u64 {
    crate::hot::now()
}

/// To be called in the child of a fork: recording is off there until the child starts a session of
/// its own. Only sets a flag, so an atfork handler may call it.
pub fn mark_forked_child() {
    crate::hot::mark_forked_child();
}
