//! cudarc's event tracking, switched off for a while.

use std::sync::Arc;

use cudarc::driver::CudaContext;

/// While this lives, cudarc tracks no slice of the context by events. Made by
/// [`pause_event_tracking`].
#[must_use = "tracking goes on when this is dropped"]
pub struct EventTrackingPaused {
    context: Arc<CudaContext>,
    was_on: bool,
}

impl std::fmt::Debug for EventTrackingPaused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventTrackingPaused")
            .field("was_on", &self.was_on)
            .finish_non_exhaustive()
    }
}

/// Switches cudarc's event tracking off in a context, for all of its threads, until the guard is
/// dropped; then it is again as it was. For captures in programs that rely on tracking elsewhere.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let context = cudarc::driver::CudaContext::new(0)?;
/// # let stream = context.new_stream()?;
/// use lineage_cudarc::{Capture, pause_event_tracking};
///
/// let graph = {
///     stream.synchronize()?;
///     // SAFETY: nothing else uses the context now, and no slice is made in the block.
///     let _paused = unsafe { pause_event_tracking(&context) };
///     Capture::on(&stream).run(&lineage_core::Epoch::current(), || {
///         // launch what is to be captured
///         Ok::<(), cudarc::driver::DriverError>(())
///     })?
/// };
/// # drop(graph);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
///
/// As of [`CudaContext::disable_event_tracking`] and [`CudaContext::enable_event_tracking`]: while
/// the guard lives no slice of the context is used on two streams without order between them, by any
/// thread, nor is one freed that another stream still uses; and slices that are made meanwhile are
/// never tracked, so the same holds of them for good.
pub unsafe fn pause_event_tracking(context: &Arc<CudaContext>) -> EventTrackingPaused {
    let was_on = context.is_event_tracking();
    // SAFETY: the caller promises what cudarc asks for.
    unsafe { context.disable_event_tracking() };
    EventTrackingPaused {
        context: Arc::clone(context),
        was_on,
    }
}

impl Drop for EventTrackingPaused {
    fn drop(&mut self) {
        if self.was_on {
            // SAFETY: whoever made the guard promised to order the slices made since then by other means.
            unsafe { self.context.enable_event_tracking() };
        }
    }
}
