//! The exporter's own thread.
//!
//! It has a runtime of its own: an application's may be busy, of another kind, or gone before the last batch is sent. Senders are
//! tasks on it, each with a connection: two for spans, so that one batch is on its way while the collector works on another
//! (more would be no faster, for all of them share this thread, and would only reorder), one for metrics, one for logs.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::backoff::mixed;
use super::batch::Batch;
use super::counts::LossReason;
use super::deliver::{Sender, Stop, Throttle};
use super::envelope::Envelope;
use super::problem::{Problems, Trouble, shown};
use super::queue::{Next, Queue};
use super::{Backoff, ProblemKind, Signal};
use crate::cpu::this_thread_ns;
use crate::transport::{Client, Target};

/// How many senders a signal has.
const fn senders(signal: Signal) -> usize {
    match signal {
        Signal::Traces => 2,
        Signal::Metrics | Signal::Logs => 1,
    }
}

/// How long after a panic its sender is replaced, so that one that always panics does not take a processor.
const AFTER_A_PANIC: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) queue: Arc<Queue>,
    pub(crate) envelope: Arc<Envelope>,
    /// None for a signal that is not exported.
    pub(crate) targets: [Option<Arc<Target>>; 3],
    pub(crate) throttles: [Arc<Throttle>; 3],
    pub(crate) give_up_after: [Duration; 3],
    pub(crate) backoff: Backoff,
    pub(crate) problems: Arc<Problems>,
    pub(crate) stop: watch::Receiver<Option<Stop>>,
    /// Said when the thread begins.
    pub(crate) warnings: Vec<String>,
}

impl Worker {
    /// Runs until it is told to stop, and then until all is sent or the deadline has passed. Whatever happens, all that was
    /// offered is counted afterwards.
    pub(crate) fn run(self, runtime: tokio::runtime::Runtime, done: &mpsc::Sender<()>) {
        for warning in &self.warnings {
            self.problems.warn(warning);
        }
        let ran = catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.supervise())));
        if let Err(panic) = ran {
            self.tell_panic(Signal::Traces, &*panic);
        }
        self.queue.close();
        // A name that is being looked up may keep a thread of the runtime for long: nobody waits for it.
        runtime.shutdown_background();
        self.queue.lose_rest(LossReason::Shutdown);
        self.tell_what_a_shutdown_lost();
        let _ = done.send(());
    }

    async fn supervise(&self) {
        let mut stop = self.stop.clone();
        let mut tasks = Tasks::default();
        for signal in Signal::ALL {
            if let Some(target) = &self.targets[signal.index()] {
                for nth in 0..senders(signal) {
                    self.spawn(&mut tasks, target, (signal, nth), Duration::ZERO);
                }
            }
        }
        let mut deadline = None;
        loop {
            tokio::select! {
                ended = tasks.set.join_next_with_id() => match ended {
                    Some(ended) => self.after(ended, &mut tasks),
                    None => break,
                },
                () = self.queue.pending.noted() => self.tell_pending(),
                told = stop.changed(), if deadline.is_none() => {
                    // Who could tell is gone only if the pipeline was dropped in the middle of telling.
                    deadline = match told {
                        Ok(()) => stop.borrow_and_update().map(|stop| stop.deadline),
                        Err(_) => Some(Instant::now()),
                    };
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => break,
            }
        }
        // What they have in hand is counted as they are dropped.
        tasks.set.shutdown().await;
        self.tell_pending();
    }

    fn spawn(
        &self,
        tasks: &mut Tasks,
        target: &Arc<Target>,
        (signal, nth): (Signal, usize),
        after: Duration,
    ) {
        let worker = self.clone();
        let target = Arc::clone(target);
        let task = tasks.set.spawn(async move {
            if !after.is_zero() {
                sleep(after).await;
            }
            worker.send_all(target, signal, nth).await;
        });
        tasks.who.insert(task.id(), (signal, nth));
    }

    async fn send_all(&self, target: Arc<Target>, signal: Signal, nth: usize) {
        let mut sender = Sender {
            signal,
            client: Client::new(Arc::clone(&target)),
            target,
            counters: self.queue.counters.clone(),
            problems: Arc::clone(&self.problems),
            backoff: Backoff {
                seed: mixed(self.backoff.seed ^ (signal.index() * 16 + nth) as u64),
                ..self.backoff
            },
            give_up_after: self.give_up_after[signal.index()],
            stop: self.stop.clone(),
            throttle: Arc::clone(&self.throttles[signal.index()]),
            is_failing: false,
        };
        loop {
            match self.queue.next(signal) {
                Next::Send(sealed) => {
                    let mut batch = Batch::new(&self.queue, &self.envelope, signal, sealed);
                    sender.deliver(&mut batch).await;
                    if let Some(cpu_ns) = this_thread_ns() {
                        self.queue.counters.worked(cpu_ns);
                    }
                }
                Next::Wait(None) => self.queue.arrival(signal).await,
                Next::Wait(Some(due)) => {
                    let _ = timeout_at(due.into(), self.queue.arrival(signal)).await;
                }
                Next::Done => return,
            }
        }
    }

    /// A sender ended, which is as it should be unless it panicked: then another takes its place.
    fn after(&self, ended: Result<(Id, ()), JoinError>, tasks: &mut Tasks) {
        match ended {
            Ok((id, ())) => {
                tasks.who.remove(&id);
            }
            Err(error) => {
                let Some((signal, nth)) = tasks.who.remove(&error.id()) else {
                    return;
                };
                if let Ok(panic) = error.try_into_panic() {
                    self.tell_panic(signal, &*panic);
                    if let Some(target) = &self.targets[signal.index()] {
                        self.spawn(tasks, target, (signal, nth), AFTER_A_PANIC);
                    }
                }
            }
        }
    }

    fn tell_panic(&self, signal: Signal, panic: &(dyn Any + Send)) {
        self.queue.counters.panicked();
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        let what = format!(
            "the exporter's thread panicked ({})",
            shown(&said.unwrap_or_default())
        );
        let trouble = Trouble::new(ProblemKind::Panicked, what);
        self.problems.say(signal, &trouble);
    }

    fn tell_pending(&self) {
        for (signal, trouble) in self.queue.pending.take() {
            self.problems.say(signal, &trouble);
        }
    }

    fn tell_what_a_shutdown_lost(&self) {
        let counts = self.queue.counters.snapshot();
        let lost = [
            (Signal::Traces, counts.spans.lost.shutdown),
            (Signal::Metrics, counts.metrics.lost.shutdown),
            (Signal::Logs, counts.log_records.lost.shutdown),
        ];
        let mut lost = lost.into_iter().filter(|(_, count)| *count > 0).peekable();
        let Some((signal, _)) = lost.peek().copied() else {
            return;
        };
        let lost: Vec<_> = lost
            .map(|(signal, count)| format!("{count} {}", signal.items()))
            .collect();
        let lost = lost.join(", ");
        let mut what = format!("{lost} were not acknowledged in the time that the shutdown had");
        if let Some(cause) = counts.last_error {
            what += &format!("; last seen: {}", cause.text);
        }
        let trouble = Trouble::new(ProblemKind::LostAtShutdown, what);
        self.problems.say(signal, &trouble);
    }
}

/// The senders that run, and whose they are.
#[derive(Default)]
struct Tasks {
    set: JoinSet<()>,
    who: HashMap<Id, (Signal, usize)>,
}
