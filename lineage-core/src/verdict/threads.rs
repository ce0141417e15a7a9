//! What each thread did: whether it ran, in whose scope it was, which calls it made.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::run_queue::RunQueues;
use crate::evidence::TimeSource;
use crate::id::{Attribution, HostNanos};
use crate::observation::{Event, OsCall, OverheadKind, SchedulerSession, SwitchedOff};

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

/// Whether a thread ran, and inside of which call of the operating system's it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Doing {
    pub(super) ran: Ran,
    /// The call's number on its thread.
    os_call: Option<usize>,
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
    /// Its outermost calls of the operating system's, in order, each with its number.
    os_calls: Vec<Stretch<Option<usize>>>,
    os_names: Vec<Arc<str>>,
    queued: RunQueues,
}

impl Thread {
    /// Cuts an interval into stretches by what the thread did; each of them is not empty, and
    /// together they are the interval.
    pub(super) fn doing(&self, from: HostNanos, to: HostNanos) -> Vec<Stretch<Doing>> {
        let mut out = Vec::new();
        for part in cut(&self.ran, from, to, Ran::Unknown) {
            for inside in cut(&self.os_calls, part.from, part.to, None) {
                out.push(Stretch {
                    from: inside.from,
                    to: inside.to,
                    of: Doing {
                        ran: part.of,
                        os_call: inside.of,
                    },
                });
            }
        }
        out
    }

    /// The call of the operating system's that the thread waited in; `None` if it is not known to
    /// have waited. Off its processor for what it waited for, it did, whatever the call is; where
    /// that is not recorded, it did in a call that does nothing else.
    pub(super) fn waits_in(&self, doing: Doing) -> Option<&Arc<str>> {
        let name = self.os_names.get(doing.os_call?)?;
        let waits = match doing.ran {
            Ran::Blocked => true,
            Ran::Off | Ran::Unknown => super::os_call::waits(name),
            Ran::Running | Ran::Preempted => false,
        };
        waits.then_some(name)
    }

    /// For how long at least it was ready to run within an interval, and had no processor.
    pub(super) fn queued_ns(&self, from: HostNanos, to: HostNanos) -> u64 {
        self.queued.least_ns(from, to)
    }

    /// Takes in its calls of the operating system's. Of nested ones the outer speaks.
    fn take_os_calls(&mut self, mut calls: Vec<&OsCall>) {
        calls.sort_by_key(|of| (of.start, std::cmp::Reverse(of.end)));
        let mut until = HostNanos(0);
        for call in calls {
            // Of one that did not return it is only known when it began.
            let Some(end) = call.end.filter(|end| *end > call.start) else {
                continue;
            };
            if call.start < until {
                continue;
            }
            until = end;
            self.os_calls.push(Stretch {
                from: call.start,
                to: end,
                of: Some(self.os_names.len()),
            });
            self.os_names.push(call.name.clone());
        }
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
        let mut os_calls: FxHashMap<u64, Vec<&OsCall>> = FxHashMap::default();
        for event in events {
            threads.take_run_queue(event);
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
                Event::OsCall(of) => os_calls.entry(of.tid).or_default().push(of),
                _ => {}
            }
        }
        for (tid, calls) in os_calls {
            threads.of(tid).take_os_calls(calls);
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
            thread.queued.sort();
        }
        threads
    }

    /// Takes in how long threads waited for a processor, and when they are known to have run: what
    /// a thread stamps itself, it stamps on a processor.
    fn take_run_queue(&mut self, event: &Event) {
        let (tid, moments) = match event {
            Event::RunQueue(of) => return self.of(of.tid).queued.add(of),
            Event::Scope(of) => (of.thread.tid, [Some(of.entered), Some(of.exited)]),
            Event::Call(of) => (of.thread.tid, [Some(of.entered), of.exited]),
            Event::Api(of) => (of.tid, [of.start, of.end]),
            Event::Received(of) => (of.thread.tid, [Some(of.at), None]),
            Event::Sent(of) => (of.thread.tid, [Some(of.at), None]),
            _ => return,
        };
        let queued = &mut self.of(tid).queued;
        for at in moments.into_iter().flatten() {
            queued.ran_at(at);
        }
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
        let stretches = threads.of(7).doing(HostNanos(from), HostNanos(to));
        stretches
            .iter()
            .map(|of| (of.from.0, of.to.0, of.of.ran))
            .collect()
    }

    fn os_call(name: &str, start: u64, end: Option<u64>) -> Event {
        Event::OsCall(OsCall {
            tid: 7,
            name: name.into(),
            start: HostNanos(start),
            end: end.map(HostNanos),
        })
    }

    /// In which calls it waited, and when.
    fn waited(events: &[Event], from: u64, to: u64) -> Vec<(u64, u64, String)> {
        let mut threads = Threads::gather(events.iter());
        let thread = threads.of(7);
        let doing = thread.doing(HostNanos(from), HostNanos(to));
        let named = doing.iter().filter_map(|part| {
            let name = thread.waits_in(part.of)?;
            Some((part.from.0, part.to.0, name.to_string()))
        });
        named.collect()
    }

    #[test]
    fn without_switches_only_a_call_that_does_nothing_else_is_waited_in() {
        let events = [
            os_call("poll", 100, Some(200)),
            // Inside of it: the outer one speaks.
            os_call("nanosleep", 120, Some(150)),
            // It copies as well as it waits.
            os_call("read", 200, Some(300)),
            os_call("pthread_cond_wait", 350, None),
        ];
        assert_eq!(waited(&events, 50, 400), [(100, 200, "poll".to_owned())]);
    }

    #[test]
    fn with_switches_a_thread_waits_where_it_was_blocked_and_not_where_it_was_preempted() {
        let events = [
            os_call("read", 100, Some(200)),
            os_call("poll", 300, Some(400)),
            switch(90, true, None),
            switch(120, false, Some(SwitchedOff::Blocked)),
            switch(180, true, None),
            switch(310, false, Some(SwitchedOff::Preempted)),
            switch(390, true, None),
            switch(500, true, None),
        ];
        assert_eq!(waited(&events, 90, 500), [(120, 180, "read".to_owned())]);
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
