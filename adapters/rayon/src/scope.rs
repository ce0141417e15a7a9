//! Any number of jobs that borrow from the stack.

use lineage_core::Captured;

use crate::job::{Job, handoff_into_pool, run, waiting};

/// [`rayon::Scope`], whose jobs take the epoch along that is current where they are spawned.
#[derive(Debug)]
pub struct Scope<'a, 'scope>(&'a rayon::Scope<'scope>);

impl<'scope> Scope<'_, 'scope> {
    /// [`rayon::Scope::spawn`]: the epoch that is current here is current in the job.
    #[track_caller]
    pub fn spawn<F>(&self, body: F)
    where
        F: FnOnce(&Scope<'_, 'scope>) + Send + 'scope,
    {
        let job = Job::sent();
        self.0.spawn(move |scope| job.run(|| body(&Scope(scope))));
    }
}

/// [`rayon::scope`], with the current epoch in its closure and in what that spawns.
///
/// # Panics
///
/// As [`rayon::scope`]: if the closure or a job panics. No epoch stays behind.
///
/// # Example
///
/// ```
/// use lineage_core::{Epoch, Lineage, current};
///
/// let lineage = Lineage::builder().start()?;
/// let request = Epoch::declare("request");
/// let mut seen = [None; 4];
/// request.run(|| {
///     lineage_rayon::scope(|scope| {
///         for seen in &mut seen {
///             scope.spawn(move |_| *seen = current().epoch());
///         }
///     })
/// });
/// assert_eq!(seen, [request.id(); 4]);
/// # Ok::<(), lineage_core::StartError>(())
/// ```
#[track_caller]
pub fn scope<'scope, F, R>(body: F) -> R
where
    F: FnOnce(&Scope<'_, 'scope>) -> R + Send,
    R: Send,
{
    let captured = Captured::current();
    let carrier = handoff_into_pool(&captured);
    waiting(|| rayon::scope(|scope| run(&captured, carrier, || body(&Scope(scope)))))
}

/// [`rayon::in_place_scope`]: like [`scope`], and its closure always runs on the calling thread.
#[track_caller]
pub fn in_place_scope<'scope, F, R>(body: F) -> R
where
    F: FnOnce(&Scope<'_, 'scope>) -> R,
{
    let captured = Captured::current();
    waiting(|| rayon::in_place_scope(|scope| captured.run(|| body(&Scope(scope)))))
}
