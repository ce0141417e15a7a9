//! What each thread did: whether it ran, in whose scope it was, which calls it made.

use rustc_hash::FxHashMap;

use crate::evidence::TimeSource;
use crate::id::{Attribution, HostNanos};
use crate::observation::{Event, OverheadKind, SchedulerSession, SwitchedOff};

/// Whether a thread ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    Running,
    Preempted,
    Blocked,
    /// Off its processor, and why is not recorded.
    Off,
    Unknown,
}

/// A stretch of a thread's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch<T> {
    pub(super) from: HostNanos,
    pub(super) to: HostNanos,
    pub(super) of: T,
}

/// One thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    ran: Vec<Stretch<Ran>>,
    pub(super) scopes: Vec<Stretch<Attribution>>,
    /// Numbers of its outermost calls, in order.
    pub(super) calls: Vec<usize>,
    pub(super) overheads: Vec<Stretch<OverheadKind>>,
}

impl Thread {
    /// Cuts an interval into stretches by what the thread did; each of them is not empty, and
    /// together they are the interval.
    pub(super) fn ran(&self, from: HostNanos, to: HostNanos) -> Vec<Stretch<Ran>> {
        cut(&self.ran, from, to, Ran::Unknown)
    }

    /// The innermost scope around a moment.
    pub(super) fn scope_at(&self, at: HostNanos) -> Option<Stretch<Attribution>> {
        let begun = self.scopes.partition_point(|scope| scope.from <= at);
        // Scopes nest: the last one begun that is still open is the innermost. Few are open at once.
        let before = self.scopes[..begun].iter().rev().take(64);
        before.copied().find(|scope| at <= scope.to)
    }
}

/// Cuts an interval by stretches that are sorted and do not overlap.
pub(super) fn cut<T: Copy + PartialEq>(
    stretches: &[Stretch<T>],
    from: HostNanos,
    to: HostNanos,
    between: T,
) -> Vec<Stretch<T>> {
    let mut out: Vec<Stretch<T>> = Vec::new();
    let mut push = |from: HostNanos, to: HostNanos, of: T| {
        if from >= to {
            return;
        }
        match out.last_mut() {
            Some(last) if last.of == of => last.to = to,
            _ => out.push(Stretch { from, to, of }),
        }
    };
    let mut at = from;
    let first = stretches.partition_point(|of| of.to <= from);
    for of in &stretches[first..] {
        if of.from >= to {
            break;
        }
        push(at, of.from.min(to), between);
        let begin = of.from.max(at);
        push(begin, of.to.min(to), of.of);
        at = at.max(of.to.min(to));
    }
    push(at, to, between);
    out
}

/// The threads of a process, by system id.
#[derive(Debug, Default)]
pub(super) struct Threads(FxHashMap<u64, Thread>);

impl Threads {
    pub(super) fn get(&self, tid: u64) -> Option<&Thread> {
        self.0.get(&tid)
    }

    pub(super) fn of(&mut self, tid: u64) -> &mut Thread {
        self.0.entry(tid).or_default()
    }

    /// Takes in switches, scopes and overheads.
    pub(super) fn gather<'a>(events: impl Iterator<Item = &'a Event>) -> Self {
        let mut threads = Self::default();
        let mut switches: FxHashMap<u64, Vec<Switch>> = FxHashMap::default();
        let mut ended: Option<HostNanos> = None;
        for event in events {
            match event {
                Event::Scope(scope) => threads.of(scope.thread.tid).scopes.push(Stretch {
                    from: scope.entered,
                    to: scope.exited,
                    of: scope.attribution,
                }),
                Event::Overhead(overhead) => {
                    if let Some(tid) = overhead.thread {
                        threads.of(tid).overheads.push(Stretch {
                            from: overhead.start,
                            to: overhead.end,
                            of: overhead.kind,
                        });
                    }
                }
                Event::Scheduled(of) => {
                    let now = match (of.running, of.off) {
                        (true, _) => Ran::Running,
                        (false, Some(SwitchedOff::Preempted)) => Ran::Preempted,
                        (false, Some(SwitchedOff::Blocked)) => Ran::Blocked,
                        (false, _) => Ran::Off,
                    };
                    switches.entry(of.tid).or_default().push(Switch {
                        at: of.at,
                        now,
                        watch: None,
                    });
                }
                Event::SchedulerSession(of) => watch(of, &mut switches, &mut ended),
                _ => {}
            }
        }
        for (tid, mut switches) in switches {
            switches.sort_by_key(|of| of.at);
            threads.of(tid).ran = stretches(&switches, ended);
        }
        for thread in threads.0.values_mut() {
            thread
                .scopes
                .sort_by_key(|scope| (scope.from, std::cmp::Reverse(scope.to)));
            thread.overheads.sort_by_key(|of| (of.from, of.to));
        }
        threads
    }
}

#[derive(Debug, Clone, Copy)]
struct Switch {
    at: HostNanos,
    /// What the thread did from then on.
    now: Ran,
    /// Whether every switch is observed from then on.
    watch: Option<bool>,
}

fn watch(
    of: &SchedulerSession,
    switches: &mut FxHashMap<u64, Vec<Switch>>,
    ended: &mut Option<HostNanos>,
) {
    let mut push = |tid: u64, at: HostNanos, now: Ran, watch: bool| {
        switches.entry(tid).or_default().push(Switch {
            at,
            now,
            watch: Some(watch),
        });
    };
    match *of {
        SchedulerSession::Watched { tid, at, running } => {
            // A thread that does not run now is not known to be blocked or preempted.
            let now = match running {
                Some(true) => Ran::Running,
                Some(false) => Ran::Off,
                None => Ran::Unknown,
            };
            push(tid, at, now, true);
        }
        SchedulerSession::Unwatched { tid, at, .. }
        | SchedulerSession::RunQueueOnly { tid, at, .. }
        | SchedulerSession::ThreadEnded { tid, at } => push(tid, at, Ran::Unknown, false),
        SchedulerSession::Lost {
            tid,
            not_before,
            not_after,
            ..
        } => {
            push(tid, not_before.unwrap_or_default(), Ran::Unknown, true);
            if let Some(after) = not_after {
                push(tid, after, Ran::Unknown, true);
            }
        }
        SchedulerSession::Ended { at } => *ended = Some(ended.map_or(at, |of| of.max(at))),
        _ => {}
    }
}

/// Stretches of what is known. The last state holds on only where every switch is observed, and
/// only until collection ended.
fn stretches(switches: &[Switch], ended: Option<HostNanos>) -> Vec<Stretch<Ran>> {
    let mut out: Vec<Stretch<Ran>> = Vec::new();
    let mut watched = false;
    for (at, switch) in switches.iter().enumerate() {
        watched = switch.watch.unwrap_or(watched);
        let to = match switches.get(at + 1) {
            Some(next) => Some(next.at),
            None if watched => ended,
            None => None,
        };
        if let Some(to) = to
            && to > switch.at
            && switch.now != Ran::Unknown
        {
            out.push(Stretch {
                from: switch.at,
                to,
                of: switch.now,
            });
        }
    }
    out
}

/// Where the evidence of a thread's running comes from.
pub(super) const SCHEDULER: TimeSource = TimeSource::OsScheduler;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Scheduled;

    fn switch(at: u64, running: bool, off: Option<SwitchedOff>) -> Event {
        Event::Scheduled(Scheduled {
            tid: 7,
            at: HostNanos(at),
            cpu: None,
            running,
            off,
            state: None,
        })
    }

    fn ran(events: &[Event], from: u64, to: u64) -> Vec<(u64, u64, Ran)> {
        let mut threads = Threads::gather(events.iter());
        let stretches = threads.of(7).ran(HostNanos(from), HostNanos(to));
        stretches
            .iter()
            .map(|of| (of.from.0, of.to.0, of.of))
            .collect()
    }

    #[test]
    fn what_lies_between_two_switches_is_known_and_nothing_beyond() {
        let events = [
            switch(100, true, None),
            switch(200, false, Some(SwitchedOff::Preempted)),
            switch(300, true, None),
        ];
        assert_eq!(
            ran(&events, 50, 400),
            [
                (50, 100, Ran::Unknown),
                (100, 200, Ran::Running),
                (200, 300, Ran::Preempted),
                (300, 400, Ran::Unknown)
            ]
        );
        assert_eq!(ran(&events, 220, 240), [(220, 240, Ran::Preempted)]);
    }

    #[test]
    fn a_watched_thread_runs_on_until_the_collection_ends_and_what_was_lost_is_unknown() {
        let events = [
            Event::SchedulerSession(SchedulerSession::Watched {
                tid: 7,
                at: HostNanos(100),
                running: Some(true),
            }),
            Event::SchedulerSession(SchedulerSession::Lost {
                tid: 7,
                count: 2,
                not_before: Some(HostNanos(200)),
                not_after: Some(HostNanos(250)),
            }),
            switch(300, true, None),
            Event::SchedulerSession(SchedulerSession::Ended { at: HostNanos(400) }),
        ];
        assert_eq!(
            ran(&events, 100, 500),
            [
                (100, 200, Ran::Running),
                (200, 300, Ran::Unknown),
                (300, 400, Ran::Running),
                (400, 500, Ran::Unknown)
            ]
        );
    }
}
