//! The pure part: from counts to nanoseconds, and from one comparison to the next.

/// Fraction bits of a rate.
const FRACTION: u32 = 32;

/// A count, and what `CLOCK_MONOTONIC` said then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) count: u64,
    pub(crate) at_ns: u64,
    /// How long the comparison took: the two belong together within half of that.
    pub(crate) width_ns: u64,
}

/// A stretch of time with one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) from_count: u64,
    pub(crate) from_ns: u64,
    /// Nanoseconds of a count, times 2^32.
    pub(crate) rate: u64,
}

impl Segment {
    /// The time at a count. A count from before the segment is its beginning: whoever read it comes
    /// to use it only now.
    #[inline]
    pub(crate) fn at(&self, count: u64) -> u64 {
        let counts = count.saturating_sub(self.from_count);
        self.from_ns + ((u128::from(counts) * u128::from(self.rate)) >> FRACTION) as u64
    }

    /// Counts that take this long.
    pub(crate) fn counts_in(&self, ns: u64) -> u64 {
        ((u128::from(ns) << FRACTION) / u128::from(self.rate.max(1))) as u64
    }

    /// What follows after a comparison, and by how much this one was ahead (or behind, below 0).
    pub(crate) fn next(&self, before: Reading, now: Reading, next_ns: u64) -> (Self, i64) {
        let own = self.at(now.count);
        let ahead = own.wrapping_sub(now.at_ns) as i64;
        let rate = measured(before, now).unwrap_or(self.rate);
        let slower = u64::try_from(ahead).unwrap_or(0).min(next_ns / 2);
        let share = (u128::from(rate) * u128::from(slower)) / u128::from(next_ns.max(1));
        let next = Self {
            from_count: now.count,
            from_ns: own.max(now.at_ns),
            rate: rate - share as u64,
        };
        (next, ahead)
    }
}

/// The rate between two readings; `None` if nothing passed between them.
fn measured(before: Reading, now: Reading) -> Option<u64> {
    let counts = now.count.checked_sub(before.count).filter(|&it| it > 0)?;
    let ns = now.at_ns.checked_sub(before.at_ns).filter(|&it| it > 0)?;
    u64::try_from((u128::from(ns) << FRACTION) / u128::from(counts)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanoseconds of a count of this many per nanosecond.
    fn segment(counts_per_ns: u64) -> Segment {
        Segment {
            from_count: 1_000,
            from_ns: 500,
            rate: (1 << FRACTION) / counts_per_ns,
        }
    }

    fn reading(count: u64, at_ns: u64) -> Reading {
        Reading {
            count,
            at_ns,
            width_ns: 0,
        }
    }

    #[test]
    fn a_count_is_a_time_since_the_beginning_and_none_before_it() {
        let segment = segment(2);
        assert_eq!(segment.at(1_000), 500);
        assert_eq!(segment.at(1_000 + 2_000_000_000), 500 + 1_000_000_000);
        assert_eq!(segment.at(3), 500);
        assert_eq!(segment.counts_in(1_000), 2_000);
        // A year at 4 counts a nanosecond does not overflow.
        let year = 365 * 86_400 * 1_000_000_000;
        assert_eq!(self::segment(4).at(1_000 + 4 * year), 500 + year);
    }

    #[test]
    fn what_fell_behind_is_set_forward_and_takes_the_rate_that_was_measured() {
        // It goes at 1 ns in 2 counts, and the truth is 1 ns in 1 count.
        let (next, ahead) = segment(2).next(reading(1_000, 500), reading(3_000, 2_500), 1_000);
        assert_eq!(ahead, -1_000);
        assert_eq!((next.from_ns, next.rate), (2_500, 1 << FRACTION));
    }

    #[test]
    fn what_is_ahead_goes_slower_until_it_is_not_and_never_back() {
        let before = reading(0, 0);
        // Truth: one count a nanosecond; it is 100 ns ahead at the comparison.
        let old = Segment {
            from_count: 0,
            from_ns: 100,
            rate: 1 << FRACTION,
        };
        let (next, ahead) = old.next(before, reading(1_000, 1_000), 1_000);
        assert_eq!((ahead, next.from_ns), (100, 1_100));
        assert!((1..1_000).all(|counts| next.at(1_000 + counts) >= next.at(999 + counts)));
        assert!(next.at(2_000).abs_diff(2_000) <= 1);
        // However far ahead it is, it goes at half speed at least.
        let (next, _) = old.next(before, reading(1_000, 10), 1_000);
        assert!(next.rate >= (10 << FRACTION) / 1_000 / 2);
        assert_eq!(next.from_ns, 1_100);
    }

    #[test]
    fn a_comparison_that_tells_no_rate_keeps_the_one_before() {
        let old = segment(2);
        let same = reading(1_000, 500);
        assert_eq!(old.next(same, same, 1_000), (old, 0));
        let backwards = old.next(reading(5_000, 9_000), reading(1_000, 500), 1_000);
        assert_eq!(backwards, (old, 0));
    }
}
