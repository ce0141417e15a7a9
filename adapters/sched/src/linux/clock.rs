//! Whether the session's clock is the one that switches are stamped with.

use rustix::time::{ClockId, clock_gettime};

/// How far the session's clock may be from `CLOCK_MONOTONIC`, in nanoseconds. Beyond that a switch
/// could be told of on the wrong side of what the application did.
pub(super) const TOLERANCE_NS: u64 = 50_000;

/// Readings, of which the one that took the least time counts: another may have been interrupted.
const READINGS: usize = 16;

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How far this clock is from `CLOCK_MONOTONIC` at least, in nanoseconds.
pub(super) fn apart_ns(clock: fn() -> u64) -> u64 {
    let readings = (0..READINGS).map(|_| {
        let before = monotonic_ns();
        let at = clock();
        let after = monotonic_ns();
        let apart = before.saturating_sub(at).max(at.saturating_sub(after));
        (after - before, apart)
    });
    readings.min().map_or(0, |(_, apart)| apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_as_far_as_it_is() {
        assert_eq!(apart_ns(monotonic_ns), 0);
        let late = apart_ns(|| monotonic_ns() - 70_000);
        assert!((69_000..=70_000).contains(&late), "{late}");
        let early = apart_ns(|| monotonic_ns() + 1_000_000);
        assert!((999_000..=1_000_000).contains(&early), "{early}");
        assert!(apart_ns(|| 7) > TOLERANCE_NS);
        assert!(apart_ns(|| u64::MAX) > TOLERANCE_NS);
    }
}
