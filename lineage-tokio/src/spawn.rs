//! tokio's spawn functions, with the current epoch taken along.

use std::future::Future;

use lineage_core::Epoch;
use lineage_core::carrier::Carrier;
use lineage_core::observation::CarrierKind;
use tokio::task::JoinHandle;

use crate::future::InEpoch;
use crate::{entered, task_id};

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
    tokio::spawn(InEpoch::sharing(
        future,
        Epoch::current(),
        CarrierKind::Task,
    ))
}

/// [`tokio::task::spawn_blocking`], and the current epoch goes with the closure.
///
/// The epoch that is current here is current while the closure runs. Without a current epoch this
/// is tokio's function.
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
    if !cfg!(feature = "record") {
        return tokio::task::spawn_blocking(work);
    }
    task_id::install_hook();
    entered::sweep();
    let carrier = Carrier::new(&Epoch::current(), CarrierKind::Blocking);
    tokio::task::spawn_blocking(move || {
        entered::sweep();
        carrier.open().run(work)
    })
}
