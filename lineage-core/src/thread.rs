//! Threads that take the current epoch along.
//!
//! A new thread starts without an epoch. These are `std`'s own ways to start one, and the epoch
//! that is current where they are called is current in the thread's closure:
//!
//! | in `std` | here |
//! | --- | --- |
//! | [`std::thread::spawn`] | [`spawn`] |
//! | [`std::thread::Scope::spawn`] | [`ScopeExt::spawn_carried`] |
//! | [`std::thread::Builder::spawn`] | [`BuilderExt::spawn_carried`] |
//! | [`std::thread::Builder::spawn_scoped`] | [`BuilderExt::spawn_scoped_carried`] |
//!
//! Each is a handoff: sent here, received when the closure starts, abandoned if the thread could
//! not be made. Without a current epoch they are `std`'s.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::carrier::Carrier;
use crate::epoch::Epoch;
use crate::observation::CarrierKind;

/// [`std::thread::spawn`], and the current epoch goes with the thread.
///
/// For a thread that lives longer than one request, as an engine's, use `std`'s: its work comes
/// with epochs of its own, in envelopes.
///
/// # Panics
///
/// As [`std::thread::spawn`]: if the system cannot make a thread.
///
/// # Example
///
/// ```
/// use lineage_core::Epoch;
///
/// let request = Epoch::declare("request");
/// let decode = request.run(|| lineage_core::thread::spawn(|| lineage_core::current().epoch()));
/// assert_eq!(decode.join().expect("no panic"), request.id());
/// ```
#[track_caller]
pub fn spawn<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    std::thread::spawn(carried(work))
}

/// Starts scoped threads with the current epoch.
pub trait ScopeExt<'scope> {
    /// [`std::thread::Scope::spawn`], and the current epoch goes with the thread.
    ///
    /// # Panics
    ///
    /// As [`std::thread::Scope::spawn`]: if the system cannot make a thread.
    ///
    /// # Example
    ///
    /// ```
    /// use lineage_core::Epoch;
    /// use lineage_core::thread::ScopeExt as _;
    ///
    /// let request = Epoch::declare("request");
    /// let (prompts, expected) = (["one", "two"], request.id());
    /// request.run(|| {
    ///     std::thread::scope(|scope| {
    ///         for prompt in &prompts {
    ///             scope.spawn_carried(move || {
    ///                 assert_eq!(lineage_core::current().epoch(), expected, "for {prompt}");
    ///             });
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn spawn_carried<F, T>(&'scope self, work: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope;
}

impl<'scope> ScopeExt<'scope> for Scope<'scope, '_> {
    #[track_caller]
    fn spawn_carried<F, T>(&'scope self, work: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn(carried(work))
    }
}

/// Starts threads that have a name or a stack size with the current epoch.
pub trait BuilderExt {
    /// [`std::thread::Builder::spawn`], and the current epoch goes with the thread.
    ///
    /// # Errors
    ///
    /// As [`std::thread::Builder::spawn`]: if the system cannot make a thread. The handoff is then
    /// abandoned, as its work is dropped.
    #[track_caller]
    fn spawn_carried<F, T>(self, work: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static;

    /// [`std::thread::Builder::spawn_scoped`], and the current epoch goes with the thread.
    ///
    /// # Errors
    ///
    /// As [`spawn_carried`](Self::spawn_carried).
    #[track_caller]
    fn spawn_scoped_carried<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        work: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope;
}

impl BuilderExt for Builder {
    #[track_caller]
    fn spawn_carried<F, T>(self, work: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn(carried(work))
    }

    #[track_caller]
    fn spawn_scoped_carried<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        work: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_scoped(scope, carried(work))
    }
}

/// The closure of a thread, with what is current here. Its value is made inside the epoch, and what
/// the closure holds is dropped there: the thread's result alone outlives it.
#[track_caller]
fn carried<F, T>(work: F) -> impl FnOnce() -> T + use<F, T>
where
    F: FnOnce() -> T,
{
    let carrier = Carrier::new(&Epoch::current(), CarrierKind::Thread);
    move || carrier.open().run(work)
}
