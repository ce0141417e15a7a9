//! The threads that are observed, and what was seen of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lineage_core::id::HostNanos;
use lineage_core::observation::{DropSite, Dropped, Observation, Scheduled, SchedulerSession};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::thread::Pid;

use super::arrivals::{Arrival, Opening};
use super::records::{Malformed, Record, Records};
use super::ring::{OpenError, Ring};
use super::run_queue::{Counts, CountsError, Waits};

/// Where observations go.
pub(super) type Out<'a> = &'a mut dyn FnMut(Observation);

/// What is known of one thread.
#[derive(Debug)]
enum Watch {
    /// Every switch.
    Switches(Switches),
    /// How long it waited for a processor, between readings.
    RunQueue(Waits),
    /// Nothing so far, and why its switches are not.
    Nothing(Arc<str>),
}

#[derive(Debug)]
struct Switches {
    ring: Ring,
    /// Time of the last record.
    last: Option<HostNanos>,
    /// How many lost records were told of.
    lost: u64,
}

#[derive(Debug)]
pub(super) struct Threads {
    opening: Opening,
    /// As `/proc/self/task`: a folder for each thread.
    tasks: PathBuf,
    clock: fn() -> u64,
    watched: BTreeMap<u64, Watch>,
    /// Threads that ended since arrivals were looked at last, and when.
    ended: BTreeMap<u64, HostNanos>,
    /// What was read of a ring: kept for its memory.
    bytes: Vec<u8>,
    /// Losses that were not counted yet.
    lost: u64,
    undecodable: u64,
}

impl Threads {
    pub(super) fn new(opening: Opening, tasks: PathBuf, clock: fn() -> u64) -> Self {
        Self {
            opening,
            tasks,
            clock,
            watched: BTreeMap::new(),
            ended: BTreeMap::new(),
            bytes: Vec::new(),
            lost: 0,
            undecodable: 0,
        }
    }

    fn now(&self) -> HostNanos {
        HostNanos((self.clock)())
    }

    /// A thread began to record.
    pub(super) fn arrive(&mut self, arrival: Arrival, out: Out<'_>) {
        let Arrival { tid, at, ring } = arrival;
        // Who has this id is the same thread, found by a scan, or its last holder, whose end is in its
        // ring. One that ended after this arrival is the same.
        if self.watched.contains_key(&tid) {
            self.read(tid, out);
            self.reap(out);
        }
        let is_known = matches!(self.watched.get(&tid), Some(Watch::Switches(_)));
        if is_known || self.ended.get(&tid).is_some_and(|&ended| ended >= at) {
            return;
        }
        // What it opened itself began while it ran.
        self.watch(tid, ring, at, Some(true), out);
    }

    /// Looks for threads that did not come by themselves.
    pub(super) fn scan(&mut self, out: Out<'_>) {
        let Ok(tasks) = std::fs::read_dir(&self.tasks) else {
            return;
        };
        for task in tasks.flatten() {
            let tid = task.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(tid) = tid.filter(|tid: &i32| !self.watched.contains_key(&(*tid as u64)))
            else {
                continue;
            };
            let Some(thread) = Pid::from_raw(tid) else {
                continue;
            };
            let ring = self.opening.open(Some(thread));
            if ring.as_ref().err() != Some(&OpenError::NoSuchThread) {
                self.watch(tid as u64, ring, self.now(), None, out);
            }
        }
    }

    fn watch(
        &mut self,
        tid: u64,
        ring: Result<Ring, OpenError>,
        at: HostNanos,
        running: Option<bool>,
        out: Out<'_>,
    ) {
        let watch = match ring {
            Ok(ring) => {
                let watched = SchedulerSession::Watched { tid, at, running };
                out(Observation::live(watched));
                Watch::Switches(Switches {
                    ring,
                    last: None,
                    lost: 0,
                })
            }
            // Times that cannot be compared are of no use from `/proc` either.
            Err(error @ OpenError::OtherClock { .. }) => {
                let (why, at) = (error.to_string().into(), self.now());
                out(Observation::live(SchedulerSession::Unwatched {
                    tid,
                    why,
                    at,
                }));
                return;
            }
            Err(error) => self.watch_less(tid, error.to_string().into(), out),
        };
        // What is better known from here on was less well known before.
        if let Some(before) = self.watched.insert(tid, watch) {
            self.let_go(before, tid, out);
        }
    }

    /// The next best for a thread whose switches cannot be collected.
    fn watch_less(&self, tid: u64, why: Arc<str>, out: Out<'_>) -> Watch {
        let at = self.now();
        match Counts::read(&self.tasks, tid) {
            Ok(counts) => {
                let only = SchedulerSession::RunQueueOnly { tid, why, at };
                out(Observation::live(only));
                Watch::RunQueue(Waits::new(tid, counts, at))
            }
            Err(error) => {
                let both = format!("{why}; nor is its run-queue delay to be had: {error}");
                let unwatched = SchedulerSession::Unwatched {
                    tid,
                    why: both.into(),
                    at,
                };
                out(Observation::live(unwatched));
                Watch::Nothing(why)
            }
        }
    }

    /// Takes what all rings hold.
    pub(super) fn read_all(&mut self, out: Out<'_>) {
        self.ended.clear();
        let tids: Vec<u64> = self.watched.keys().copied().collect();
        for tid in tids {
            self.read(tid, out);
        }
        self.count_losses(out);
    }

    /// Takes what a thread's ring holds, and lets go of it if the thread ended.
    fn read(&mut self, tid: u64, out: Out<'_>) {
        let Some(Watch::Switches(switches)) = self.watched.get_mut(&tid) else {
            return;
        };
        self.bytes.clear();
        switches.ring.read(&mut self.bytes);
        let mut ended = None;
        for record in Records::new(&self.bytes) {
            let (at, cpu, off) = match record {
                Ok(Record::In { at, cpu }) => (at, cpu, None),
                Ok(Record::Out { at, cpu, why }) => (at, cpu, Some(why)),
                Ok(Record::Lost { count, at }) => {
                    self.lost += count;
                    switches.lost += count;
                    out(Observation::live(SchedulerSession::Lost {
                        tid,
                        count,
                        not_before: switches.last.replace(at),
                        not_after: Some(at),
                    }));
                    continue;
                }
                Ok(Record::Exit { at }) => {
                    ended = Some(at);
                    continue;
                }
                Ok(Record::Other) => continue,
                Err(Malformed) => {
                    self.undecodable += 1;
                    continue;
                }
            };
            switches.last = Some(at);
            out(Observation::live(Scheduled {
                tid,
                at,
                cpu: Some(cpu),
                running: off.is_none(),
                off,
                state: None,
            }));
        }
        if let Some(at) = ended {
            self.end(tid, at, out);
        }
    }

    /// Lets go of threads whose end is in no ring, since it was full.
    pub(super) fn reap(&mut self, out: Out<'_>) {
        let tids: Vec<u64> = self.switches().map(|(tid, _)| tid).collect();
        let events = self.switches().map(|(_, switches)| switches.ring.event());
        let mut polls: Vec<PollFd<'_>> = events
            .map(|event| PollFd::from_borrowed_fd(event, PollFlags::empty()))
            .collect();
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if rustix::event::poll(&mut polls, Some(&at_once)).is_err() {
            return;
        }
        let gone = polls
            .iter()
            .map(|poll| poll.revents().contains(PollFlags::HUP));
        let gone: Vec<u64> = tids
            .into_iter()
            .zip(gone)
            .filter_map(|(tid, gone)| gone.then_some(tid))
            .collect();
        for tid in gone {
            // Its last records, its end among them perhaps.
            self.read(tid, out);
            if self.watched.contains_key(&tid) {
                self.end(tid, self.now(), out);
            }
        }
    }

    fn switches(&self) -> impl Iterator<Item = (u64, &Switches)> {
        let watched = self.watched.iter();
        watched.filter_map(|(&tid, watch)| match watch {
            Watch::Switches(switches) => Some((tid, switches)),
            _ => None,
        })
    }

    /// Reads the counts of threads whose switches are not collected.
    pub(super) fn sample(&mut self, out: Out<'_>) {
        let tids: Vec<u64> = self.watched.keys().copied().collect();
        for tid in tids {
            let began = self.now();
            let (tasks, clock) = (&self.tasks, self.clock);
            let gone = match self.watched.get_mut(&tid) {
                Some(Watch::RunQueue(waits)) => match Counts::read(tasks, tid) {
                    Ok(counts) => {
                        let ended = HostNanos(clock());
                        waits.learn(counts, began, ended, &mut |it| out(Observation::live(it)));
                        false
                    }
                    // Another failure may pass: the next interval is longer by this one.
                    Err(error) => matches!(error, CountsError::NoSuchThread),
                },
                Some(Watch::Nothing(why)) => match Counts::read(tasks, tid) {
                    Ok(counts) => {
                        out(Observation::live(SchedulerSession::RunQueueOnly {
                            tid,
                            why: why.clone(),
                            at: began,
                        }));
                        let waits = Waits::new(tid, counts, began);
                        self.watched.insert(tid, Watch::RunQueue(waits));
                        false
                    }
                    Err(error) => matches!(error, CountsError::NoSuchThread),
                },
                _ => false,
            };
            if gone {
                self.end(tid, self.now(), out);
            }
        }
    }

    /// A thread ended, or is let go: what is left to say of it.
    fn let_go(&mut self, watch: Watch, tid: u64, out: Out<'_>) {
        match watch {
            Watch::Switches(switches) => {
                // A loss is only written down before the next record, and none came.
                let count = switches.ring.lost().unwrap_or(0);
                let count = count.saturating_sub(switches.lost);
                if count > 0 {
                    self.lost += count;
                    out(Observation::live(SchedulerSession::Lost {
                        tid,
                        count,
                        not_before: switches.last,
                        not_after: None,
                    }));
                }
            }
            Watch::RunQueue(mut waits) => waits.finish(&mut |it| out(Observation::live(it))),
            Watch::Nothing(_) => {}
        }
    }

    fn end(&mut self, tid: u64, at: HostNanos, out: Out<'_>) {
        if let Some(watch) = self.watched.remove(&tid) {
            self.let_go(watch, tid, out);
            self.ended.insert(tid, at);
            out(Observation::live(SchedulerSession::ThreadEnded { tid, at }));
        }
    }

    /// Gives all threads up, for this reason.
    pub(super) fn give_up(&mut self, why: &OpenError, out: Out<'_>) {
        self.read_all(out);
        self.opening = Opening::Refused(why.clone());
        let (why, at): (Arc<str>, _) = (why.to_string().into(), self.now());
        for (tid, watch) in std::mem::take(&mut self.watched) {
            self.let_go(watch, tid, out);
            let why = Arc::clone(&why);
            out(Observation::live(SchedulerSession::Unwatched {
                tid,
                why,
                at,
            }));
        }
        self.count_losses(out);
    }

    /// The session ends: all that is left.
    pub(super) fn stop(&mut self, out: Out<'_>) {
        self.read_all(out);
        self.reap(out);
        self.sample(out);
        for (tid, watch) in std::mem::take(&mut self.watched) {
            self.let_go(watch, tid, out);
        }
        self.count_losses(out);
        let at = self.now();
        out(Observation::live(SchedulerSession::Ended { at }));
    }

    /// Adds to the session's totals what was lost.
    fn count_losses(&mut self, out: Out<'_>) {
        let at = self.now();
        let losses = [
            (DropSite::SchedulerRing, std::mem::take(&mut self.lost)),
            (DropSite::Undecodable, std::mem::take(&mut self.undecodable)),
        ];
        for (site, count) in losses.into_iter().filter(|&(_, count)| count > 0) {
            out(Observation::live(Dropped { site, count, at }));
        }
    }
}

#[cfg(test)]
mod tests;
