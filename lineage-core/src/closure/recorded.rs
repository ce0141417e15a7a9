//! A closure in its epoch, with recording.

use crate::carrier::Resumable;
use crate::epoch::Epoch;
use crate::observation::CarrierKind;

/// The closure, to be called once in the epoch that is current here.
#[track_caller]
pub(super) fn once<F, R>(work: F) -> impl FnOnce() -> R + use<F, R>
where
    F: FnOnce() -> R,
{
    let mut held = Held::new(work);
    move || held.call_once()
}

/// The closure, to be called any number of times in the epoch that is current here.
#[track_caller]
pub(super) fn repeatedly<F, R>(work: F) -> impl FnMut() -> R + use<F, R>
where
    F: FnMut() -> R,
{
    let mut held = Held::new(work);
    move || held.call()
}

/// A closure, and what it works for.
struct Held<F> {
    // `Some` until it is dropped, or called for the only time.
    work: Option<F>,
    epoch: Resumable,
}

impl<F> Held<F> {
    #[track_caller]
    fn new(work: F) -> Self {
        Self {
            work: Some(work),
            epoch: Resumable::new(Epoch::current(), CarrierKind::Callback),
        }
    }

    fn call_once<R>(&mut self) -> R
    where
        F: FnOnce() -> R,
    {
        let _scope = self.epoch.enter();
        let work = self.work.take();
        // Whoever calls a `FnOnce` gives it away, so it is there.
        work.expect("a closure that is called once is not called again")()
    }

    fn call<R>(&mut self) -> R
    where
        F: FnMut() -> R,
    {
        let _scope = self.epoch.enter();
        let work = self.work.as_mut();
        work.expect("only its destructor takes a closure out")()
    }
}

impl<F> Drop for Held<F> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else {
            return;
        };
        // What the closure holds is dropped in its epoch. Nothing was received thereby.
        let scope = self.epoch.epoch().enter();
        drop(work);
        drop(scope);
    }
}
