//! The session's clock: one function, for lineage and for CUPTI.

use std::sync::OnceLock;

static CLOCK: OnceLock<fn() -> u64> = OnceLock::new();

/// Sets the clock of this process. `Err` if it is set to another function already: CUPTI must be
/// given its timestamp callback once, so the clock cannot change between sessions.
pub(crate) fn set(clock: fn() -> u64) -> Result<(), ()> {
    let set = *CLOCK.get_or_init(|| clock);
    if std::ptr::fn_addr_eq(set, clock) {
        Ok(())
    } else {
        Err(())
    }
}

/// The clock in use.
pub(crate) fn get() -> fn() -> u64 {
    CLOCK.get().copied().unwrap_or(monotonic_ns)
}

/// Now, in nanoseconds of the session's clock.
pub(crate) fn now() -> u64 {
    match CLOCK.get() {
        Some(clock) => clock(),
        None => monotonic_ns(),
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds: the clock that scheduler records are stamped with, too.
#[cfg(unix)]
pub(crate) fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since the first use, where there is no `CLOCK_MONOTONIC`.
#[cfg(not(unix))]
pub(crate) fn monotonic_ns() -> u64 {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    // One is added so that no time is 0, which CUPTI takes for "unknown".
    ORIGIN
        .get_or_init(std::time::Instant::now)
        .elapsed()
        .as_nanos() as u64
        + 1
}
