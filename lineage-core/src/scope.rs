//! Scopes: intervals on one thread in which an epoch is current.

use std::marker::PhantomData;

use crate::epoch::Epoch;
use crate::hot::{self, Entering, Token};
use crate::id::{Attribution, PackedEpoch};
use crate::observation::MisuseKind;

/// Keeps a guard on its thread.
type NotSend = PhantomData<*const ()>;

/// An epoch is current on this thread until this guard is dropped.
///
/// It is not `Send`, so it cannot be held across an await of a `Send` future. Where futures need
/// not be `Send` it can, and then belongs to whatever the thread polls next: the shipped
/// `clippy.toml` forbids that, and it is found at run time as W07. Guards may be dropped in any
/// order: each removes its own entry.
///
/// ```compile_fail
/// fn send<T: Send>(_: T) {}
/// let epoch = lineage_core::Epoch::declare("generate");
/// send(async move {
///     let _scope = epoch.enter();
///     std::future::ready(()).await;
/// });
/// ```
#[derive(Debug)]
#[must_use = "the scope ends when its guard is dropped"]
pub struct Scope<'a> {
    token: Token,
    of: PhantomData<&'a Epoch>,
    stays: NotSend,
}

impl<'a> Scope<'a> {
    #[inline]
    pub(crate) fn enter(epoch: &'a Epoch) -> Self {
        Self {
            token: epoch.enter_as(Entering::Scope),
            of: PhantomData,
            stays: PhantomData,
        }
    }

    /// Number of the thread it was entered on; 0 if nothing was entered.
    #[cfg(feature = "record")]
    #[inline]
    pub(crate) fn thread(&self) -> u32 {
        self.token.thread()
    }
}

impl Scope<'_> {
    #[inline]
    pub(crate) fn of_token(token: Token) -> Self {
        Self {
            token,
            of: PhantomData,
            stays: PhantomData,
        }
    }
}

impl Drop for Scope<'_> {
    #[inline]
    fn drop(&mut self) {
        hot::exit(self.token, true);
    }
}

/// A launch boundary: until this guard is dropped, what this thread launches is recorded by CUPTI
/// under the epoch. Not `Send`, like [`Scope`].
#[derive(Debug)]
#[must_use = "the boundary ends when its guard is dropped"]
pub struct LaunchScope<'a> {
    token: Token,
    of: PhantomData<&'a Epoch>,
    stays: NotSend,
}

impl<'a> LaunchScope<'a> {
    pub(crate) fn enter(epoch: &'a Epoch) -> Self {
        let token = match epoch.handle() {
            Some(handle) => handle.enter(Entering::Boundary),
            None => hot::enter_boundary(),
        };
        Self {
            token,
            of: PhantomData,
            stays: PhantomData,
        }
    }
}

impl Drop for LaunchScope<'_> {
    fn drop(&mut self) {
        hot::exit(self.token, true);
    }
}

/// What work on this thread is attributed to now.
#[inline]
pub fn current() -> Attribution {
    hot::current().unpack()
}

/// Enters a launch boundary of whatever is current on this thread.
pub fn enter_for_launch() -> LaunchScope<'static> {
    LaunchScope {
        token: hot::enter_boundary(),
        of: PhantomData,
        stays: PhantomData,
    }
}

/// Runs a closure that launches work of whatever is current on this thread.
pub fn launch<R>(work: impl FnOnce() -> R) -> R {
    let _scope = enter_for_launch();
    work()
}

/// Runs a closure whose launches belong to no epoch, for a stated reason, as `"warm-up"` or
/// `"weights"`. They are counted as unattributed and are no fault.
pub fn detached<R>(reason: &'static str, work: impl FnOnce() -> R) -> R {
    struct Exit(Token);
    impl Drop for Exit {
        fn drop(&mut self) {
            hot::exit(self.0, false);
        }
    }
    let _exit = Exit(hot::enter_detached(reason));
    work()
}

/// Entering and leaving as two calls, for layers that have no place for a guard.
pub mod raw {
    use super::*;

    /// An entered scope.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[must_use = "a scope that is never exited is leaked"]
    pub struct Entered(Token);

    /// Makes an epoch current on this thread until [`exit`] is called with the answer.
    #[inline]
    pub fn enter(epoch: &Epoch) -> Entered {
        Entered(epoch.enter_as(Entering::Scope))
    }

    /// Ends a scope of this thread, wherever it lies among the open ones. One that is not open
    /// here, because it was ended before or on another thread, is W07 and otherwise ignored.
    #[inline]
    pub fn exit(entered: Entered) {
        hot::exit(entered.0, false);
    }

    /// What is current on this thread, in the form that is given to CUPTI: one load.
    #[inline]
    pub fn current() -> PackedEpoch {
        hot::current()
    }

    /// Reports that the interface was used wrongly.
    pub fn misuse(kind: MisuseKind, attribution: Attribution, value: u64) {
        hot::misuse(kind, attribution, value);
    }
}
