//! Correlation ids without their wraps, from times alone.
//!
//! All calls of a session are laid out in order of time. From one to the next the 32-bit id moves
//! by less than half its range, so the signed difference of neighbours adds up to an id that does
//! not wrap. No state is kept between calls, and the order in which records came does not matter.

use lineage_core::id::{CorrelationId, HostNanos};

/// The unwrapped ids of these calls, in their order. The smallest is below 2^32.
pub(crate) fn unwrap_by_time(calls: &[(HostNanos, CorrelationId)]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    // Ids rise with time, so ties are laid out as their neighbours' ids ask: stable, as they came.
    order.sort_by_key(|&call| calls[call].0);
    let mut unwrapped = vec![0_i128; calls.len()];
    let mut before: Option<(i128, u32)> = None;
    for &call in &order {
        let wire = calls[call].1.0;
        let id = match before {
            None => i128::from(wire),
            Some((id, from)) => id + i128::from(wire.wrapping_sub(from) as i32),
        };
        unwrapped[call] = id;
        before = Some((id, wire));
    }
    let smallest = unwrapped.iter().copied().min().unwrap_or_default();
    let base = smallest.div_euclid(1 << 32) << 32;
    unwrapped.into_iter().map(|id| (id - base) as u64).collect()
}

/// The unwrapped id that a wire id has near a known one.
pub(crate) fn near(known: u64, wire: CorrelationId) -> i128 {
    let step = wire.0.wrapping_sub(known as u32) as i32;
    i128::from(known) + i128::from(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrapped(calls: &[(u64, u32)]) -> Vec<u64> {
        let calls: Vec<_> = calls
            .iter()
            .map(|&(at, wire)| (HostNanos(at), CorrelationId(wire)))
            .collect();
        unwrap_by_time(&calls)
    }

    #[test]
    fn ids_that_do_not_wrap_stay_as_they_are_in_any_order_of_arrival() {
        assert_eq!(unwrapped(&[(30, 9), (10, 7), (20, 8)]), [9, 7, 8]);
        // Two threads entered at nearly the same time, in the other order than their ids.
        assert_eq!(unwrapped(&[(10, 7), (20, 9), (21, 8)]), [7, 9, 8]);
    }

    #[test]
    fn a_wrap_goes_on_above_two_to_the_32() {
        assert_eq!(
            unwrapped(&[(3, 1), (1, u32::MAX), (2, 0)]),
            [0x1_0000_0001, 0xffff_ffff, 0x1_0000_0000]
        );
        // Two wraps, in steps below half the range.
        let steps = [
            0,
            0x7000_0000,
            0xe000_0000,
            0x5000_0000,
            0xc000_0000,
            0x3000_0000,
        ];
        let calls: Vec<(u64, u32)> = (0..).zip(steps).collect();
        assert_eq!(
            unwrapped(&calls),
            [
                0,
                0x7000_0000,
                0xe000_0000,
                0x1_5000_0000,
                0x1_c000_0000,
                0x2_3000_0000
            ]
        );
    }

    #[test]
    fn a_wrap_that_two_threads_cross_in_the_other_order_keeps_both_sides() {
        // The one that came after the wrap entered a moment before the one that came before it.
        assert_eq!(
            unwrapped(&[(1, 0), (2, u32::MAX)]),
            [0x1_0000_0000, 0xffff_ffff]
        );
    }

    #[test]
    fn an_id_near_a_known_one_may_lie_on_the_other_side_of_a_wrap() {
        assert_eq!(near(0x1_0000_0003, CorrelationId(u32::MAX)), 0xffff_ffff);
        assert_eq!(near(5, CorrelationId(u32::MAX)), -1);
    }
}
