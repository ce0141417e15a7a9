//! The drain thread: reads rings and sources, feeds the correlator, hands on what comes out.

mod pipeline;
mod rings;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use uuid::Uuid;

use super::{LineageBuilder, Report, StartError};
use crate::hot;
use crate::id::HostNanos;
use crate::source::{EvidenceSource, SessionInfo, SourceContext};
use crate::totals::Totals;
use pipeline::Pipeline;

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const ENDING: u8 = 2;

/// Whether this process has a session, and which process that was said by: a fork copies both.
static STATE: AtomicU8 = AtomicU8::new(IDLE);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static SESSIONS: AtomicU32 = AtomicU32::new(0);

/// How long a dropped session goes on asking for buffers.
const WITHIN_WHEN_DROPPED: Duration = Duration::from_secs(2);

enum Command {
    Report(mpsc::Sender<Report>),
    Totals(mpsc::Sender<Totals>),
    Flush(Instant, mpsc::Sender<bool>),
    Stop(Duration, Option<mpsc::Sender<Report>>),
}

#[derive(Default)]
struct Inbox(Mutex<VecDeque<Command>>);

impl Inbox {
    fn put(&self, command: Command) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(command);
    }

    fn take(&self) -> Option<Command> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

/// The session's end of its drain thread.
pub(super) struct Link {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
    /// The process the thread lives in: in a forked child it does not.
    process: u32,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    fn ask<T>(&self, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Option<T> {
        if self.process != std::process::id() {
            return None;
        }
        let (answer, answered) = mpsc::channel();
        self.inbox.put(command(answer));
        self.thread.as_ref()?.thread().unpark();
        // An error means that the thread is gone, and with it the sender.
        answered.recv().ok()
    }

    pub(super) fn report(&self) -> Option<Report> {
        self.ask(Command::Report)
    }

    pub(super) fn totals(&self) -> Option<Totals> {
        self.ask(Command::Totals)
    }

    pub(super) fn flush(&self, within: Duration) -> bool {
        self.ask(|answer| Command::Flush(Instant::now() + within, answer))
            .unwrap_or(false)
    }

    pub(super) fn stop(mut self, within: Duration) -> Option<Report> {
        let report = self.ask(|answer| Command::Stop(within, Some(answer)));
        if let (true, Some(thread)) = (report.is_some(), self.thread.take()) {
            // The thread has answered: it only has its own memory left to free.
            let _ = thread.join();
        }
        report
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let (Some(thread), true) = (self.thread.take(), self.process == std::process::id()) {
            let _ = STATE.compare_exchange(RUNNING, ENDING, Ordering::AcqRel, Ordering::Relaxed);
            self.inbox.put(Command::Stop(WITHIN_WHEN_DROPPED, None));
            thread.thread().unpark();
        }
    }
}

/// Claims the process's one session.
fn claim() -> Result<(), StartError> {
    let process = std::process::id();
    if PROCESS.swap(process, Ordering::AcqRel) != process {
        // The first session here, or the first since a fork: what the parent had is not ours.
        STATE.store(IDLE, Ordering::Release);
    }
    match STATE.compare_exchange(IDLE, RUNNING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(()),
        Err(ENDING) => Err(StartError::StillEnding),
        Err(_) => Err(StartError::AlreadyRunning),
    }
}

/// Gives the claim back unless the session started.
struct Claim(bool);

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.0 {
            STATE.store(IDLE, Ordering::Release);
        }
    }
}

pub(super) fn start(mut builder: LineageBuilder, process: Uuid) -> Result<Link, StartError> {
    claim()?;
    let mut claim = Claim(false);
    if let Some(clock) = builder.clock {
        hot::set_clock(clock).map_err(|()| StartError::ClockAlreadySet)?;
    }
    let started = HostNanos(hot::now());
    let mut info = SessionInfo::new(process, Arc::clone(&builder.service), started);
    info.started_unix_ns = unix_ns();
    for sink in &mut builder.sinks {
        sink.begin(&info).map_err(StartError::Sink)?;
    }
    let session = SESSIONS.fetch_add(1, Ordering::Relaxed) + 1;
    let context = SourceContext::new(hot::clock(), builder.tier);
    let start = |source: &mut Option<Box<dyn EvidenceSource>>| {
        source.as_mut().and_then(|it| it.start(context).err())
    };
    let device_absent = start(&mut builder.device);
    let scheduler_absent = start(&mut builder.scheduler);
    let (drain_every, flush_every) = (builder.drain_every, builder.flush_every);
    let ring_capacity = builder.ring_capacity;
    let mut pipeline = Pipeline::new(builder, process, session);
    if let Some(absent) = device_absent {
        pipeline.device_is_absent(&absent);
    }
    if let Some(absent) = scheduler_absent {
        pipeline.scheduler_is_absent(&absent);
    }
    let inbox = Arc::new(Inbox::default());
    let run = Run {
        pipeline,
        inbox: Arc::clone(&inbox),
        drain_every,
        flush_every,
    };
    let spawned = std::thread::Builder::new()
        .name("lineage-drain".into())
        .spawn(move || run.run());
    let thread = spawned.map_err(StartError::Thread)?;
    if !open_arrivals(ring_capacity, thread.thread().clone()) {
        inbox.put(Command::Stop(Duration::ZERO, None));
        thread.thread().unpark();
        claim.0 = true; // The thread gives it back when it is done.
        return Err(StartError::Locked);
    }
    hot::RECORDING.store(session, Ordering::Release);
    claim.0 = true;
    Ok(Link {
        inbox,
        thread: Some(thread),
        process: std::process::id(),
    })
}

/// The wall clock, in nanoseconds since the Unix epoch; `None` if it stands before that.
fn unix_ns() -> Option<u64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.ok()?.as_nanos()).ok()
}

/// Prepares the list of new rings. Does not wait for long: after a fork its lock may be held by a
/// thread that was not copied.
fn open_arrivals(capacity: usize, drain: std::thread::Thread) -> bool {
    let until = Instant::now() + Duration::from_secs(1);
    loop {
        let mut arrivals = match hot::ARRIVALS.try_lock() {
            Ok(arrivals) => arrivals,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(TryLockError::WouldBlock) => return false,
        };
        arrivals.rings.clear();
        arrivals.capacity = capacity;
        arrivals.drain = Some(drain);
        return true;
    }
}

struct Run {
    pipeline: Pipeline,
    inbox: Arc<Inbox>,
    drain_every: Duration,
    flush_every: Duration,
}

impl Run {
    fn run(mut self) {
        let mut flushed = Instant::now();
        self.pipeline.take_in_start();
        loop {
            let more = self.pipeline.collect();
            while let Some(command) = self.inbox.take() {
                match command {
                    Command::Report(answer) => {
                        self.pipeline.collect();
                        let _ = answer.send(self.pipeline.report());
                    }
                    Command::Totals(answer) => {
                        self.pipeline.collect();
                        let _ = answer.send(self.pipeline.totals());
                    }
                    Command::Flush(until, answer) => {
                        let _ = answer.send(self.flush(until));
                    }
                    Command::Stop(within, answer) => {
                        self.pipeline.stop(within);
                        STATE.store(IDLE, Ordering::Release);
                        if let Some(answer) = answer {
                            let _ = answer.send(self.pipeline.report());
                        }
                        return;
                    }
                }
            }
            if flushed.elapsed() >= self.flush_every {
                self.pipeline.flush();
                self.pipeline.tell_progress();
                flushed = Instant::now();
            }
            if !more {
                std::thread::park_timeout(self.drain_every);
            }
        }
    }

    /// Flushes until nothing is pending.
    fn flush(&mut self, until: Instant) -> bool {
        let mut pause = Duration::from_micros(200);
        loop {
            self.pipeline.flush();
            self.pipeline.collect();
            if self.pipeline.pending() == 0 {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}
