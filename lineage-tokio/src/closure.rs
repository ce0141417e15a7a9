//! Closures that carry the current epoch, where tasks are tokio's.

use lineage_core::carrier;

use crate::{entered, task_id};

/// [`lineage_core::carrier::carried_fn`]: takes the current epoch along into a closure that is
/// called once, elsewhere. It is current while the closure runs, and while it is dropped if nobody
/// calls it.
///
/// For callbacks that want a plain closure: a host function of CUDA (which must make no CUDA call),
/// the completion handler of a library, a job for a pool of one's own.
///
/// ```
/// # let _lineage = lineage_core::Lineage::builder().start().expect("it starts");
/// use lineage_core::Epoch;
/// use lineage_tokio::carried_fn;
///
/// let request = Epoch::declare("request");
/// let done: Box<dyn FnOnce() -> _ + Send> =
///     request.run(|| Box::new(carried_fn(|| lineage_core::current().epoch())) as _);
/// let seen = std::thread::spawn(done).join().expect("no panic");
/// assert_eq!(seen, request.id());
/// ```
#[track_caller]
pub fn carried_fn<F, R>(work: F) -> impl FnOnce() -> R + use<F, R>
where
    F: FnOnce() -> R,
{
    task_id::install_hook();
    entered::sweep();
    carrier::carried_fn(work)
}

/// [`lineage_core::carrier::carried_fn_mut`]: takes the current epoch along into a closure that is
/// called any number of times. It is current in every call, and while the closure is dropped.
#[track_caller]
pub fn carried_fn_mut<F, R>(work: F) -> impl FnMut() -> R + use<F, R>
where
    F: FnMut() -> R,
{
    task_id::install_hook();
    entered::sweep();
    carrier::carried_fn_mut(work)
}
