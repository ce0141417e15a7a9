//! Intervals of one clock: all moments of several, and those that two lists have in common.

use crate::id::HostNanos;

/// From and to.
pub(crate) type Interval = (HostNanos, HostNanos);

/// The same moments as intervals in order that do not touch. What is no further apart than `gap_ns`
/// becomes one.
pub(crate) fn union(mut intervals: Vec<Interval>, gap_ns: u64) -> Vec<Interval> {
    intervals.sort_unstable();
    let mut union: Vec<Interval> = Vec::new();
    for (from, to) in intervals {
        match union.last_mut() {
            Some((_, end)) if from.0 <= end.0.saturating_add(gap_ns) => *end = to.max(*end),
            _ => union.push((from, to)),
        }
    }
    union
}

/// The moments that are in both; each a list in order, of intervals that do not overlap.
pub(crate) fn common(these: &[Interval], those: &[Interval]) -> Vec<Interval> {
    let mut both = Vec::new();
    let (mut this, mut that) = (0, 0);
    while let (Some(&(from, to)), Some(&(other_from, other_to))) =
        (these.get(this), those.get(that))
    {
        let (start, end) = (from.max(other_from), to.min(other_to));
        if start < end {
            both.push((start, end));
        }
        if to <= other_to {
            this += 1;
        } else {
            that += 1;
        }
    }
    both
}

/// How long all of them are, in nanoseconds; none ends before it begins.
pub(crate) fn length_ns(intervals: &[Interval]) -> u64 {
    intervals.iter().map(|(from, to)| to.0 - from.0).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals<const N: usize>(of: [(u64, u64); N]) -> Vec<Interval> {
        of.map(|(from, to)| (HostNanos(from), HostNanos(to))).into()
    }

    #[test]
    fn a_union_joins_what_overlaps_or_touches() {
        let of = intervals([(5, 7), (0, 2), (2, 3), (6, 6), (10, 12)]);
        let joined = intervals([(0, 3), (5, 7), (10, 12)]);
        assert_eq!(length_ns(&joined), 7);
        assert_eq!(union(of, 0), joined);
    }

    #[test]
    fn a_union_joins_what_a_gap_parts_that_counts_for_nothing() {
        let of = || intervals([(0, 10), (3, 4), (12, 20), (23, u64::MAX)]);
        assert_eq!(union(of(), 2), intervals([(0, 20), (23, u64::MAX)]));
        assert_eq!(union(of(), 3), intervals([(0, u64::MAX)]));
    }

    #[test]
    fn common_moments_are_in_both() {
        let these = intervals([(0, 10), (20, 30)]);
        let those = intervals([(5, 22), (25, 26), (29, 40)]);
        let both = intervals([(5, 10), (20, 22), (25, 26), (29, 30)]);
        assert_eq!(common(&these, &those), both);
        assert_eq!(common(&those, &these), both);
        assert_eq!(common(&these, &[]), []);
    }
}
