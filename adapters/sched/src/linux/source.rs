//! The source: what it does when the session asks.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lineage_core::id::HostNanos;
use lineage_core::observation::{Observation, SchedulerSession};
use lineage_core::source::{NoEvidence, SourceContext};

use super::arrivals::{Listening, Opening};
use super::clock;
use super::ring::OpenError;
use super::run_queue::Counts;
use super::threads::{Out, Threads};
use crate::Scheduler;

/// How often threads are looked for that came or went without a word, and the clock is compared.
const LOOK_AROUND_EVERY: Duration = Duration::from_millis(250);

const TASKS: &str = "/proc/self/task";

/// A source that collects.
#[derive(Debug)]
pub(crate) struct Source {
    threads: Threads,
    listening: Listening,
    /// An event that observes nothing. The first one of a machine makes the kernel switch its hooks
    /// on, for which whoever opened it waits 7 to 15 ms here, and 1 s after the last one it switches
    /// them off (`account_event` in `kernel/events/core.c`). Held, it is not the application's threads
    /// that wait.
    _keeps_hooks_on: Option<OwnedFd>,
    clock: fn() -> u64,
    all_threads: bool,
    run_queue_every: Duration,
    started: Option<HostNanos>,
    sampled: Instant,
    looked_around: Option<Instant>,
    /// The session's clock went astray, and nothing is collected any more.
    given_up: bool,
}

impl Source {
    pub(crate) fn check() -> Result<(), NoEvidence> {
        let opened = Opening::Rings { bytes: 0 }.open(None);
        opened.map_or_else(|why| Err(NoEvidence::new(why.to_string())), |_| Ok(()))
    }

    pub(crate) fn start(settings: &Scheduler, context: SourceContext) -> Result<Self, NoEvidence> {
        let apart_ns = clock::apart_ns(context.clock);
        if apart_ns > clock::TOLERANCE_NS {
            return Err(NoEvidence::new(
                OpenError::OtherClock { apart_ns }.to_string(),
            ));
        }
        let opening = if settings.switches {
            let bytes = settings.ring_bytes;
            Opening::Rings { bytes }
        } else {
            Opening::Refused(OpenError::NotAskedFor)
        };
        let mut keeps_hooks_on = None;
        let opening = match opening.open(None) {
            Ok(ring) => {
                keeps_hooks_on = Some(ring.into_event());
                opening
            }
            Err(error) if error.is_for_all() => {
                // Is there anything to fall back on?
                let tid = rustix::thread::gettid().as_raw_nonzero().get() as u64;
                if let Err(neither) = Counts::read(&PathBuf::from(TASKS), tid) {
                    return Err(NoEvidence::new(format!(
                        "{error}; nor is the run-queue delay to be had: {neither}"
                    )));
                }
                Opening::Refused(error)
            }
            // What one thread lacks, the next may have.
            Err(_) => opening,
        };
        let listening = Listening::begin(opening.clone())?;
        Ok(Self {
            threads: Threads::new(opening, TASKS.into(), context.clock),
            listening,
            _keeps_hooks_on: keeps_hooks_on,
            clock: context.clock,
            all_threads: settings.all_threads,
            run_queue_every: settings.run_queue_every,
            started: Some(HostNanos((context.clock)())),
            sampled: Instant::now(),
            looked_around: None,
            given_up: false,
        })
    }

    pub(crate) fn drain(&mut self, out: Out<'_>) {
        if let Some(at) = self.started.take() {
            out(Observation::live(SchedulerSession::Started { at }));
        }
        self.take_arrivals(out);
        self.threads.read_all(out);
        if self.sampled.elapsed() >= self.run_queue_every {
            self.threads.sample(out);
            self.sampled = Instant::now();
        }
        let due = |last: Instant| last.elapsed() >= LOOK_AROUND_EVERY;
        if self.looked_around.is_none_or(due) {
            self.look_around(out);
            self.looked_around = Some(Instant::now());
        }
    }

    fn take_arrivals(&mut self, out: Out<'_>) {
        for arrival in self.listening.take() {
            self.threads.arrive(arrival, out);
        }
    }

    fn look_around(&mut self, out: Out<'_>) {
        self.threads.reap(out);
        if self.given_up {
            return;
        }
        let apart_ns = clock::apart_ns(self.clock);
        if apart_ns > clock::TOLERANCE_NS {
            self.given_up = true;
            let why = OpenError::OtherClock { apart_ns };
            self.listening.refuse(why.clone());
            self.threads.give_up(&why, out);
        } else if self.all_threads {
            self.threads.scan(out);
        }
    }

    pub(crate) fn stop(mut self, out: Out<'_>) {
        self.take_arrivals(out);
        self.threads.stop(out);
    }
}
