//! The plain functions of tokio, which leave the epoch behind: for the callers, which have none, and
//! for the mutation that forgets the carrier.

#![expect(
    clippy::disallowed_methods,
    reason = "here the epoch is to be left behind"
)]

use std::future::Future;

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};

/// [`tokio::spawn`].
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(future)
}

/// [`Handle::spawn`].
pub fn spawn_on<F>(handle: &Handle, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    handle.spawn(future)
}

/// [`tokio::task::spawn_local`].
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: 'static> + 'static,
{
    tokio::task::spawn_local(future)
}

/// [`tokio::task::spawn_blocking`].
pub fn spawn_blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    tokio::task::spawn_blocking(work)
}

/// [`JoinSet::spawn`].
pub fn spawn_into<T: Send + 'static>(
    tasks: &mut JoinSet<T>,
    future: impl Future<Output = T> + Send + 'static,
) {
    tasks.spawn(future);
}

/// [`JoinSet::spawn_blocking`].
pub fn spawn_blocking_into<T: Send + 'static>(
    tasks: &mut JoinSet<T>,
    work: impl FnOnce() -> T + Send + 'static,
) {
    tasks.spawn_blocking(work);
}
