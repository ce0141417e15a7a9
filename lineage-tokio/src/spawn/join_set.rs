//! Spawning into a set of tasks.

use std::future::Future;

use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet, LocalSet};

use super::{blocking, task};

/// Spawns into a [`JoinSet`] with the current epoch.
///
/// Each method is the set's own of that name, and the epoch that is current where it is called goes
/// with the task, as with [`spawn`](crate::spawn()). Tasks of several epochs may be in one set.
/// Those that are aborted, or dropped with the set, do not cancel their epoch, which they share.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
/// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
/// # runtime.block_on(async {
/// use lineage_core::Epoch;
/// use lineage_tokio::JoinSetExt as _;
///
/// let request = Epoch::declare("request");
/// let mut parts = tokio::task::JoinSet::new();
/// request.run(|| {
///     parts.spawn_carried(async { lineage_core::current().epoch() });
///     parts.spawn_blocking_carried(|| lineage_core::current().epoch());
/// });
/// while let Some(part) = parts.join_next().await {
///     assert_eq!(part.expect("no panic"), request.id());
/// }
/// # });
/// ```
pub trait JoinSetExt<T: 'static>: sealed::Sealed<T> {
    /// [`JoinSet::spawn`] with the current epoch.
    ///
    /// # Panics
    ///
    /// Outside of a runtime, as tokio's.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "here the epoch is taken along")]
    fn spawn_carried<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.join_set().spawn(task(future))
    }

    /// [`JoinSet::spawn_on`] with the current epoch.
    #[track_caller]
    fn spawn_carried_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.join_set().spawn_on(task(future), handle)
    }

    /// [`JoinSet::spawn_local`] with the current epoch.
    ///
    /// # Panics
    ///
    /// Outside of a [`LocalSet`] or a local runtime, as tokio's.
    #[track_caller]
    fn spawn_local_carried<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.join_set().spawn_local(task(future))
    }

    /// [`JoinSet::spawn_local_on`] with the current epoch.
    #[track_caller]
    fn spawn_local_carried_on<F>(&mut self, future: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.join_set().spawn_local_on(task(future), local_set)
    }

    /// [`JoinSet::spawn_blocking`] with the current epoch.
    ///
    /// # Panics
    ///
    /// Outside of a runtime, as tokio's.
    #[track_caller]
    fn spawn_blocking_carried<F>(&mut self, work: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.join_set().spawn_blocking(blocking(work))
    }

    /// [`JoinSet::spawn_blocking_on`] with the current epoch.
    #[track_caller]
    fn spawn_blocking_carried_on<F>(&mut self, work: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.join_set().spawn_blocking_on(blocking(work), handle)
    }
}

impl<T: 'static> JoinSetExt<T> for JoinSet<T> {}

mod sealed {
    use tokio::task::JoinSet;

    pub trait Sealed<T> {
        #[doc(hidden)]
        fn join_set(&mut self) -> &mut JoinSet<T>;
    }

    impl<T> Sealed<T> for JoinSet<T> {
        fn join_set(&mut self) -> &mut JoinSet<T> {
            self
        }
    }
}
