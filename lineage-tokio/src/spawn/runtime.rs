//! Spawning on a runtime, or a set of local tasks, that one holds.

use std::future::Future;

use tokio::runtime::{Handle, Runtime};
use tokio::task::{JoinHandle, LocalSet};

use super::{blocking, task};

/// Spawns on a [`Runtime`] or its [`Handle`] with the current epoch.
pub trait RuntimeExt: sealed::Sealed {
    /// [`Handle::spawn`], and the current epoch goes with the task, as with
    /// [`spawn`](crate::spawn()).
    ///
    /// ```
    /// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
    /// use lineage_core::Epoch;
    /// use lineage_tokio::RuntimeExt as _;
    ///
    /// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// let request = Epoch::declare("request");
    /// let task = request.run(|| runtime.spawn_carried(async { lineage_core::current().epoch() }));
    /// assert_eq!(runtime.block_on(task)?, request.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "here the epoch is taken along")]
    fn spawn_carried<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tokio_handle().spawn(task(future))
    }

    /// [`Handle::spawn_blocking`], and the current epoch goes with the closure.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "here the epoch is taken along")]
    fn spawn_blocking_carried<F, R>(&self, work: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.tokio_handle().spawn_blocking(blocking(work))
    }
}

impl RuntimeExt for Handle {}
impl RuntimeExt for Runtime {}

/// Spawns on a [`LocalSet`] with the current epoch.
pub trait LocalSetExt: sealed::SealedLocalSet {
    /// [`LocalSet::spawn_local`], and the current epoch goes with the task, as with
    /// [`spawn_local`](crate::spawn_local()).
    #[track_caller]
    fn spawn_local_carried<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.local_set().spawn_local(task(future))
    }
}

impl LocalSetExt for LocalSet {}

mod sealed {
    use tokio::runtime::{Handle, Runtime};
    use tokio::task::LocalSet;

    pub trait Sealed {
        #[doc(hidden)]
        fn tokio_handle(&self) -> &Handle;
    }

    impl Sealed for Handle {
        fn tokio_handle(&self) -> &Handle {
            self
        }
    }

    impl Sealed for Runtime {
        fn tokio_handle(&self) -> &Handle {
            self.handle()
        }
    }

    pub trait SealedLocalSet {
        #[doc(hidden)]
        fn local_set(&self) -> &LocalSet;
    }

    impl SealedLocalSet for LocalSet {
        fn local_set(&self) -> &LocalSet {
            self
        }
    }
}
