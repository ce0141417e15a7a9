//! tokio's ways to spawn, with the current epoch taken along.

mod join_set;
mod runtime;

use std::future::Future;

use lineage_core::Epoch;
#[cfg(feature = "record")]
use lineage_core::carrier::Carrier;
use lineage_core::observation::CarrierKind;
use tokio::task::JoinHandle;

pub use self::join_set::JoinSetExt;
pub use self::runtime::{LocalSetExt, RuntimeExt};
use crate::entered;
use crate::future::InEpoch;
#[cfg(feature = "record")]
use crate::task_id;

/// [`tokio::spawn`], and the current epoch goes with the task.
///
/// The epoch that is current here is current in every poll of the task, on whichever worker, and
/// while its future is dropped. Without a current epoch this is tokio's function. The task shares
/// the epoch: if it is aborted, the epoch is not thereby cancelled.
///
/// # Panics
///
/// As [`tokio::spawn`]: outside of a runtime.
///
/// # Example
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
/// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
/// # runtime.block_on(async {
/// use lineage_core::Epoch;
///
/// let request = Epoch::declare("request");
/// let task = request.run(|| lineage_tokio::spawn(async { lineage_core::current().epoch() }));
/// assert_eq!(task.await?, request.id());
/// # Ok::<(), tokio::task::JoinError>(())
/// # }).expect("no task panics");
/// ```
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "here the epoch is taken along")]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(task(future))
}

/// [`tokio::task::spawn_local`], and the current epoch goes with the task.
///
/// As with [`spawn`] it is current in every poll and while the future is dropped. Since the future
/// need not be `Send`, the compiler does not find a guard that is held across an await in it:
/// `clippy.toml` does.
///
/// # Panics
///
/// As [`tokio::task::spawn_local`]: outside of a [`LocalSet`](tokio::task::LocalSet) or a
/// [`LocalRuntime`](tokio::runtime::LocalRuntime).
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "here the epoch is taken along")]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    tokio::task::spawn_local(task(future))
}

/// [`tokio::task::spawn_blocking`], and the current epoch goes with the closure.
///
/// The epoch that is current here is current while the closure runs. Without a current epoch this
/// is tokio's function.
///
/// (`tokio::task::block_in_place` needs no counterpart: its closure runs on this very thread,
/// inside of the task's poll, and what is current stays so.)
///
/// # Panics
///
/// As [`tokio::task::spawn_blocking`]: outside of a runtime.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "here the epoch is taken along")]
pub fn spawn_blocking<F, R>(work: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    tokio::task::spawn_blocking(blocking(work))
}

/// The future of a task, with what is current here.
#[track_caller]
#[inline]
fn task<F: Future>(future: F) -> InEpoch<F> {
    entered::sweep();
    InEpoch::sharing(future, Epoch::current(), CarrierKind::Task)
}

/// The closure for a blocking pool, with what is current here.
#[cfg(feature = "record")]
#[track_caller]
#[inline]
fn blocking<F, R>(work: F) -> impl FnOnce() -> R + use<F, R>
where
    F: FnOnce() -> R,
{
    task_id::install_hook();
    entered::sweep();
    let carrier = Carrier::new(&Epoch::current(), CarrierKind::Blocking);
    move || {
        entered::sweep();
        carrier.open().run(work)
    }
}

#[cfg(not(feature = "record"))]
fn blocking<F>(work: F) -> F {
    work
}
