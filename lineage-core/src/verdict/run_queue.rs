//! How long a thread waited for a processor, where its switches were not collected: how much, and
//! not when.

use crate::id::HostNanos;
use crate::observation::RunQueue;

/// The scheduler counts in a clock of its own, which nobody slews: the kernel lets `CLOCK_MONOTONIC`
/// run by up to one in 2,000 faster or slower (`adjtimex(2)`). A count is believed less that.
const CLOCK_SHARE: u64 = 2_000;

/// What was counted of one thread.
#[derive(Debug, Default)]
pub(super) struct RunQueues {
    windows: Vec<Window>,
    /// When the thread is known to have run.
    moments: Vec<HostNanos>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    from: HostNanos,
    to: HostNanos,
    waited_ns: u64,
}

impl RunQueues {
    pub(super) fn add(&mut self, of: &RunQueue) {
        self.windows.push(Window {
            from: of.not_before,
            to: of.not_after,
            waited_ns: of.waited_ns - of.waited_ns / CLOCK_SHARE,
        });
    }

    pub(super) fn ran_at(&mut self, at: HostNanos) {
        self.moments.push(at);
    }

    /// Brings what was added into order. Where nothing was counted nothing else is kept.
    pub(super) fn sort(&mut self) {
        if self.windows.is_empty() {
            self.moments = Vec::new();
        }
        self.windows.sort_by_key(|of| (of.from, of.to));
        self.moments.sort_unstable();
    }

    /// For how long at least the thread waited for a processor within an interval.
    ///
    /// What was counted within windows was waited between the last moment before them at which the
    /// thread ran, since a wait counts where it ends, and their end. As much of it as there is room
    /// for may have been outside of the interval; the rest was inside. Windows that reach over the
    /// interval's ends give little of it and are left out where that gives more.
    pub(super) fn least_ns(&self, from: HostNanos, to: HostNanos) -> u64 {
        let first = self.windows.partition_point(|of| of.to <= from);
        let end = self.windows.partition_point(|of| of.from < to);
        let mut least_ns = 0;
        for (first, end) in [
            (first, end),
            (first + 1, end),
            (first, end.saturating_sub(1)),
            (first + 1, end.saturating_sub(1)),
        ] {
            if let Some(windows) = self.windows.get(first..end) {
                least_ns = least_ns.max(self.least_of(windows, from, to));
            }
        }
        least_ns.min(to.0.saturating_sub(from.0))
    }

    fn least_of(&self, windows: &[Window], from: HostNanos, to: HostNanos) -> u64 {
        let Some(begin) = windows.first().map(|of| of.from) else {
            return 0;
        };
        let before = self.moments.partition_point(|at| *at <= begin);
        let Some(&since) = before.checked_sub(1).and_then(|at| self.moments.get(at)) else {
            // The first wait may have begun at any time.
            return 0;
        };
        let until = windows.iter().map(|of| of.to).fold(begin, HostNanos::max);
        let inside = until.min(to).0.saturating_sub(since.max(from).0);
        let outside = (until.0 - since.0).saturating_sub(inside);
        let waited = windows.iter().map(|of| of.waited_ns);
        let waited_ns = waited.fold(0, u64::saturating_add);
        waited_ns.saturating_sub(outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(moments: &[u64], windows: &[(u64, u64, u64)]) -> RunQueues {
        let mut queues = RunQueues::default();
        for &at in moments {
            queues.ran_at(HostNanos(at));
        }
        for &(from, to, waited_ns) in windows {
            queues.add(&RunQueue {
                tid: 7,
                not_before: HostNanos(from),
                not_after: HostNanos(to),
                waited_ns,
                ran_ns: 0,
                turns: 1,
            });
        }
        queues.sort();
        queues
    }

    fn least(queues: &RunQueues, from: u64, to: u64) -> u64 {
        queues.least_ns(HostNanos(from), HostNanos(to))
    }

    #[test]
    fn what_has_room_outside_is_not_inside() {
        // It ran at 1,000; within 1,000..2,000 it waited 700.
        let of = queues(&[1_000], &[(1_000, 2_000, 700)]);
        assert_eq!(least(&of, 1_000, 2_000), 700);
        // 400 of the window are outside: 300 were inside at least.
        assert_eq!(least(&of, 1_200, 1_800), 300);
        // 800 are outside, more than it waited.
        assert_eq!(least(&of, 1_400, 1_600), 0);
        assert_eq!(least(&of, 3_000, 4_000), 0);
    }

    #[test]
    fn a_wait_that_had_begun_before_the_window_counts_as_a_whole_in_it() {
        // The thread was seen last at 500, so 500 of the 700 may have been before 1,000.
        let of = queues(&[500], &[(1_000, 2_000, 700)]);
        assert_eq!(least(&of, 1_000, 2_000), 200);
        // Never seen before: all of it may.
        assert_eq!(least(&queues(&[], &[(1_000, 2_000, 700)]), 1_000, 2_000), 0);
        let later = queues(&[1_500], &[(1_000, 2_000, 700)]);
        assert_eq!(least(&later, 1_000, 2_000), 0);
    }

    #[test]
    fn windows_that_reach_over_the_ends_are_left_out_where_that_gives_more() {
        // Of 1,500..3,500 the middle window is all inside, and the thread ran at 1,500.
        let of = queues(
            &[900, 1_500, 3_500],
            &[(1_000, 2_000, 10), (2_000, 3_000, 800), (3_000, 4_000, 10)],
        );
        // The middle one alone: 500..: seen at 1,500, all from there to 3,000 is inside.
        assert_eq!(least(&of, 1_500, 3_500), 800);
    }

    #[test]
    fn no_more_is_waited_than_the_interval_is_long_and_a_slewed_clock_is_allowed_for() {
        let of = queues(&[0], &[(0, 10_000_000, 10_000_000)]);
        // One in 2,000 less: 9,995,000, of which 0 has room outside.
        assert_eq!(least(&of, 0, 10_000_000), 9_995_000);
        // 5,000,000 outside.
        assert_eq!(least(&of, 0, 5_000_000), 4_995_000);
    }
}
