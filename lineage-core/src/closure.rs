//! Closures that carry an epoch: current in every call, and while what they hold is dropped.

#[cfg(feature = "record")]
#[path = "closure/recorded.rs"]
mod held;

/// Takes the current epoch along into a closure that is called once, elsewhere.
///
/// The epoch is current while the closure runs and, should nobody call it, while it is dropped.
/// That it is called is the reception of the handoff; that it is dropped uncalled abandons it.
///
/// A CUDA host function (`cuLaunchHostFunc`) and a stream callback are such closures: box it, give
/// its address as the user data, and call it in the `extern "C"` function. They **must make no CUDA
/// call**: what they do is to say that work has ended, or to hand the next work to a thread that
/// may. There the epoch is right again, since an envelope that is made in the closure takes it
/// along.
///
/// A closure with arguments is an ordinary value: it goes into an envelope or beside a
/// [`Carrier`](crate::carrier::Carrier), or is called through a
/// [`Resumable`](crate::carrier::Resumable).
///
/// ```
/// use lineage_core::Epoch;
/// use lineage_core::carrier::carried_fn;
///
/// let request = Epoch::declare("request");
/// let done = request.run(|| carried_fn(|| lineage_core::current().epoch()));
/// let seen = std::thread::spawn(done).join().expect("no panic");
/// assert_eq!(seen, request.id());
/// ```
#[track_caller]
pub fn carried_fn<F, R>(work: F) -> impl FnOnce() -> R + use<F, R>
where
    F: FnOnce() -> R,
{
    held::once(work)
}

/// Takes the current epoch along into a closure that is called any number of times.
///
/// The epoch is current in every call and while the closure is dropped. The first call is the
/// reception of the handoff; a call on another thread than the last is one more
/// ([`Resumable`](crate::carrier::Resumable) says when).
///
/// ```
/// use lineage_core::Epoch;
/// use lineage_core::carrier::carried_fn_mut;
///
/// let request = Epoch::declare("request");
/// let mut seen = Vec::new();
/// let mut progress = request.run(|| carried_fn_mut(|| seen.push(lineage_core::current().epoch())));
/// progress();
/// progress();
/// drop(progress);
/// assert_eq!(seen, [request.id(), request.id()]);
/// ```
#[track_caller]
pub fn carried_fn_mut<F, R>(work: F) -> impl FnMut() -> R + use<F, R>
where
    F: FnMut() -> R,
{
    held::repeatedly(work)
}

/// Without recording: the closures themselves.
#[cfg(not(feature = "record"))]
mod held {
    pub(super) fn once<F>(work: F) -> F {
        work
    }

    pub(super) fn repeatedly<F>(work: F) -> F {
        work
    }
}
