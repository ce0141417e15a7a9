//! Two closures, perhaps at the same time.

use lineage_core::Captured;

use crate::job::{handoff, handoff_into_pool, run, waiting};

/// [`rayon::join`], with the current epoch in both closures.
///
/// When it returns, what was current before is current again, whatever the thread ran while it
/// waited.
///
/// # Panics
///
/// As [`rayon::join`]: if one of the closures panics. No epoch stays behind.
///
/// # Example
///
/// ```
/// use lineage_core::{Epoch, Lineage, current};
///
/// let lineage = Lineage::builder().start()?;
/// let request = Epoch::declare("request");
/// let (keys, values) = request.run(|| {
///     lineage_rayon::join(|| current().epoch(), || current().epoch())
/// });
/// assert_eq!((keys, values), (request.id(), request.id()));
/// # Ok::<(), lineage_core::StartError>(())
/// ```
#[track_caller]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let captured = Captured::current();
    // Within the pool this thread runs the first closure itself, and others may take the second.
    let first = handoff_into_pool(&captured);
    let second = handoff(&captured);
    waiting(|| rayon::join(|| run(&captured, first, a), || run(&captured, second, b)))
}
