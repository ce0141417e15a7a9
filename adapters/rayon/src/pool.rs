//! Jobs for a pool: this thread's, or another.

use std::sync::{Mutex, PoisonError};

use rayon::{BroadcastContext, ThreadPool};

use crate::job::{Job, waiting};

/// [`rayon::spawn`], and the current epoch goes with the job.
///
/// # Example
///
/// ```
/// use lineage_core::{Epoch, Lineage, current};
///
/// let lineage = Lineage::builder().start()?;
/// let request = Epoch::declare("request");
/// let (answer, seen) = std::sync::mpsc::channel();
/// request.run(|| lineage_rayon::spawn(move || answer.send(current().epoch()).expect("it waits")));
/// assert_eq!(seen.recv()?, request.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn spawn<F>(work: F)
where
    F: FnOnce() + Send + 'static,
{
    let job = Job::sent();
    rayon::spawn(move || job.run(work));
}

/// [`rayon::spawn_fifo`], and the current epoch goes with the job.
#[track_caller]
pub fn spawn_fifo<F>(work: F)
where
    F: FnOnce() + Send + 'static,
{
    let job = Job::sent();
    rayon::spawn_fifo(move || job.run(work));
}

/// [`rayon::broadcast`], with the current epoch on every thread of the pool.
#[track_caller]
pub fn broadcast<F, R>(work: F) -> Vec<R>
where
    F: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    let jobs = OnePerThread::new(rayon::current_num_threads());
    waiting(|| rayon::broadcast(|context| jobs.run(context.index(), || work(context))))
}

/// The same for a [`ThreadPool`] of one's own. Within `install`, this crate's functions use that
/// pool, as rayon's do.
pub trait ThreadPoolExt {
    /// [`ThreadPool::install`], with the current epoch in its closure.
    fn install_in_epoch<F, R>(&self, work: F) -> R
    where
        F: FnOnce() -> R + Send,
        R: Send;

    /// [`ThreadPool::spawn`], and the current epoch goes with the job.
    fn spawn_in_epoch<F>(&self, work: F)
    where
        F: FnOnce() + Send + 'static;

    /// [`ThreadPool::broadcast`], with the current epoch on every thread of the pool.
    fn broadcast_in_epoch<F, R>(&self, work: F) -> Vec<R>
    where
        F: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send;
}

impl ThreadPoolExt for ThreadPool {
    #[track_caller]
    fn install_in_epoch<F, R>(&self, work: F) -> R
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        let job = Job::sent();
        waiting(|| self.install(move || job.run(work)))
    }

    #[track_caller]
    fn spawn_in_epoch<F>(&self, work: F)
    where
        F: FnOnce() + Send + 'static,
    {
        let job = Job::sent();
        self.spawn(move || job.run(work));
    }

    #[track_caller]
    fn broadcast_in_epoch<F, R>(&self, work: F) -> Vec<R>
    where
        F: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        let jobs = OnePerThread::new(self.current_num_threads());
        waiting(|| self.broadcast(|context| jobs.run(context.index(), || work(context))))
    }
}

/// A job for each thread of a pool, made before any of them runs.
struct OnePerThread(Vec<Mutex<Option<Job>>>);

impl OnePerThread {
    #[track_caller]
    fn new(threads: usize) -> Self {
        let first = Job::sent();
        let others = (1..threads).map(|_| first.one_more());
        let others: Vec<Job> = others.collect();
        let all = std::iter::once(first).chain(others);
        Self(all.map(|job| Mutex::new(Some(job))).collect())
    }

    fn run<R>(&self, thread: usize, work: impl FnOnce() -> R) -> R {
        let place = self.0.get(thread);
        let taken = place.and_then(|job| job.lock().unwrap_or_else(PoisonError::into_inner).take());
        match taken {
            Some(job) => job.run(work),
            // A broadcast runs once on each of a pool's threads, whose number does not change.
            None => waiting(work),
        }
    }
}
