//! The next best: how long threads waited for a processor, from `/proc/PID/task/TID/schedstat`.
//!
//! The file has three numbers: nanoseconds on a processor, nanoseconds in the run queue, and how
//! often the thread was put on a processor (Linux, `Documentation/scheduler/sched-stats.rst`). They
//! say how much, between two readings, and not when.

use std::io;
use std::path::{Path, PathBuf};

use lineage_core::id::HostNanos;
use lineage_core::observation::RunQueue;

/// Intervals without any waiting are told together, up to this length.
const LONGEST_QUIET_NS: u64 = 1_000_000_000;

/// Why a thread's counts cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum CountsError {
    #[error("the thread is gone")]
    NoSuchThread,
    #[error("this kernel keeps no schedstat of threads (CONFIG_SCHED_INFO)")]
    NotKept,
    #[error("its schedstat could not be read: {0}")]
    Read(io::Error),
    #[error("its schedstat does not hold three numbers")]
    Unexpected,
}

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    ran_ns: u64,
    waited_ns: u64,
    turns: u64,
}

impl Counts {
    /// Reads those of a thread, under a folder as `/proc/self/task`.
    pub(super) fn read(tasks: &Path, tid: u64) -> Result<Self, CountsError> {
        let mut path: PathBuf = tasks.join(tid.to_string());
        let gone = |error: &io::Error| {
            let no_such_process = Some(rustix::io::Errno::SRCH.raw_os_error());
            error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == no_such_process
        };
        path.push("schedstat");
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text),
            Err(error) if gone(&error) => {
                path.pop();
                Err(if path.exists() {
                    CountsError::NotKept
                } else {
                    CountsError::NoSuchThread
                })
            }
            Err(error) => Err(CountsError::Read(error)),
        }
    }

    fn parse(text: &str) -> Result<Self, CountsError> {
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || {
            let number = numbers.next()?;
            number.ok()
        };
        let (Some(ran_ns), Some(waited_ns), Some(turns)) = (next(), next(), next()) else {
            return Err(CountsError::Unexpected);
        };
        if turns == 0 {
            // A thread that is there was put on a processor: nothing is counted.
            return Err(CountsError::NotKept);
        }
        Ok(Self {
            ran_ns,
            waited_ns,
            turns,
        })
    }
}

/// The counts of one thread, from reading to reading.
#[derive(Debug)]
pub(super) struct Waits {
    tid: u64,
    last: Counts,
    /// When the last reading began: what it does not show came later.
    last_began: HostNanos,
    /// Intervals without any waiting that were not told yet.
    quiet: Option<RunQueue>,
}

impl Waits {
    pub(super) fn new(tid: u64, first: Counts, began: HostNanos) -> Self {
        Self {
            tid,
            last: first,
            last_began: began,
            quiet: None,
        }
    }

    /// Takes a reading that was made between these times. What it tells of goes to `out`.
    pub(super) fn learn(
        &mut self,
        counts: Counts,
        began: HostNanos,
        ended: HostNanos,
        out: &mut dyn FnMut(RunQueue),
    ) {
        let since = RunQueue {
            tid: self.tid,
            not_before: self.last_began,
            not_after: ended,
            waited_ns: counts.waited_ns.saturating_sub(self.last.waited_ns),
            ran_ns: counts.ran_ns.saturating_sub(self.last.ran_ns),
            turns: counts.turns.saturating_sub(self.last.turns),
        };
        self.last = counts;
        self.last_began = began;
        if since.waited_ns > 0 {
            self.finish(out);
            return out(since);
        }
        let quiet = match self.quiet.take() {
            Some(quiet) => RunQueue {
                not_before: quiet.not_before,
                ran_ns: quiet.ran_ns.saturating_add(since.ran_ns),
                turns: quiet.turns.saturating_add(since.turns),
                ..since
            },
            None => since,
        };
        let length_ns = quiet.not_after.0.saturating_sub(quiet.not_before.0);
        self.quiet = Some(quiet);
        if length_ns >= LONGEST_QUIET_NS {
            self.finish(out);
        }
    }

    /// Tells what was held back.
    pub(super) fn finish(&mut self, out: &mut dyn FnMut(RunQueue)) {
        if let Some(quiet) = self.quiet.take() {
            out(quiet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Counts {
        Counts::parse(text).expect("three numbers")
    }

    #[test]
    fn three_numbers_are_read_and_nothing_else_is_taken_for_them() {
        let expected = Counts {
            ran_ns: 101,
            waited_ns: 7,
            turns: 3,
        };
        assert_eq!(counts("101 7 3\n"), expected);
        for text in ["", "1 2", "1 2 x", "-1 2 3", "99999999999999999999 0 1"] {
            let unexpected = matches!(Counts::parse(text), Err(CountsError::Unexpected));
            assert!(unexpected, "{text:?}");
        }
        assert!(matches!(
            Counts::parse("0 0 0\n"),
            Err(CountsError::NotKept)
        ));
    }

    #[test]
    fn what_was_waited_lies_between_the_two_readings_that_show_it() {
        let mut told = Vec::new();
        let mut waits = Waits::new(7, counts("100 10 1"), HostNanos(1_000));
        let mut learn = |text: &str, began: u64, ended: u64| {
            let (began, ended) = (HostNanos(began), HostNanos(ended));
            waits.learn(counts(text), began, ended, &mut |it| told.push(it));
        };
        learn("150 10 1", 2_000, 2_010);
        learn("180 10 2", 3_000, 3_010);
        learn("190 35 4", 4_000, 4_010);
        learn("195 36 5", 5_000, 5_010);
        let expected = [
            // Two quiet intervals as one.
            (1_000, 3_010, 0, 80, 1),
            (3_000, 4_010, 25, 10, 2),
            (4_000, 5_010, 1, 5, 1),
        ];
        let expected = expected.map(|(from, to, waited_ns, ran_ns, turns)| RunQueue {
            tid: 7,
            not_before: HostNanos(from),
            not_after: HostNanos(to),
            waited_ns,
            ran_ns,
            turns,
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn a_quiet_thread_is_told_of_after_a_second_and_at_the_end() {
        let mut told = Vec::new();
        let mut waits = Waits::new(7, counts("1 0 1"), HostNanos(0));
        for tenth in 1..=12 {
            let at = HostNanos(tenth * 100_000_000);
            waits.learn(counts("1 0 1"), at, at, &mut |it| told.push(it));
        }
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].not_before.0, told[0].not_after.0),
            (0, 1_000_000_000)
        );
        waits.finish(&mut |it| told.push(it));
        assert_eq!(told.len(), 2);
        let last = (told[1].not_before.0, told[1].not_after.0);
        assert_eq!(last, (1_000_000_000, 1_200_000_000));
    }
}
