//! Continuous batching: at every step new requests join the running ones, up to [`SLOTS`].

use std::sync::Arc;

use launch_lineage::{Carried, Epoch, HasEpoch, LaunchEpoch, carried_by};
use lineage_core::observation::Mark;
use tokio::sync::mpsc::{self, error::TryRecvError};

use super::engine::{Engine, Prefill, Step, Turn};
use super::{Job, Reply, Work};
use crate::device::Answer;
use crate::model::SLOTS;
use crate::sabotage::Sabotage;
use crate::truth::Labels;

/// A request that has a slot on the device.
struct Running {
    job: Job,
    slot: u32,
    produced: usize,
    /// Keeps the request's epoch alive until its last token.
    epoch: Epoch,
}

impl HasEpoch for Running {
    fn epoch(&self) -> Option<LaunchEpoch> {
        self.epoch.id()
    }
}

/// The requests that are decoded together, under one epoch of their own.
struct Batch {
    label: u64,
    epoch: Epoch,
}

impl Batch {
    fn step(self) -> Self {
        Self {
            label: self.label,
            epoch: self.epoch.step(),
        }
    }
}

/// The task between the handlers and the engine.
pub(super) struct Batcher {
    engine: Engine,
    labels: Arc<Labels>,
    sabotage: Sabotage,
    free: Vec<u32>,
    running: Vec<Running>,
    work: Work,
}

impl Batcher {
    pub(super) fn new(engine: Engine, labels: Arc<Labels>, sabotage: Sabotage) -> Self {
        Self {
            engine,
            labels,
            sabotage,
            free: (0..SLOTS as u32).rev().collect(),
            running: Vec::with_capacity(SLOTS),
            work: Work::default(),
        }
    }

    /// Serves until the handlers are gone.
    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Carried<Job>>) -> Work {
        let mut batch: Option<Batch> = None;
        loop {
            let arrived = self.take(&mut jobs).await;
            if arrived.is_empty() && self.running.is_empty() {
                break;
            }
            let prefills = self.admit(arrived);
            if self.running.is_empty() {
                continue;
            }
            let (current, formed) = match batch.take() {
                // The same members as before: the next step of the same batch.
                Some(last) if prefills.is_empty() => (last.step(), None),
                _ => {
                    let formed = self.form();
                    let slots = self.running.iter().map(|member| member.slot);
                    (formed, Some(slots.collect()))
                }
            };
            let step = Step {
                label: current.label,
                members: self.running.len(),
                formed,
            };
            self.work.steps += 1;
            current.epoch.mark(Mark::Ready);
            let turn = Turn {
                prefills,
                step: carried_by(&current.epoch, step),
            };
            match self.engine.turn(turn).await {
                Ok(answer) if self.reply(&answer) => batch = Some(current),
                // Members have left: the rest is another batch.
                Ok(_) => {}
                Err(failed) => self.fail(&failed),
            }
        }
        self.engine.stop().await;
        self.work
    }

    /// The jobs that join now. Waits for one only if nothing is running.
    async fn take(&mut self, jobs: &mut mpsc::Receiver<Carried<Job>>) -> Vec<Carried<Job>> {
        let mut arrived = Vec::new();
        if self.running.is_empty() {
            arrived.extend(jobs.recv().await);
        }
        while arrived.len() < self.free.len() {
            match jobs.try_recv() {
                Ok(job) => arrived.push(job),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        arrived
    }

    /// Gives each job a slot and prepares the copy and the kernel that read its prompt: still the
    /// request's own work, under its own epoch.
    fn admit(&mut self, mut arrived: Vec<Carried<Job>>) -> Vec<Carried<Prefill>> {
        self.sabotage.swap_envelopes(&mut arrived);
        let mut prefills = Vec::with_capacity(arrived.len());
        for job in arrived {
            let (mut job, epoch) = self.sabotage.open(job);
            if job.reply.is_closed() {
                // The client left while the job waited: that it never launches is no fault.
                epoch.cancel();
                continue;
            }
            self.work.requests += 1;
            // `take` takes no more jobs than there are free slots.
            let slot = self.free.pop().unwrap_or_default();
            let prefill = Prefill {
                label: job.number,
                slot,
                prompt: std::mem::take(&mut job.prompt),
            };
            // It has waited for its place among the running ones, and for nothing else.
            epoch.mark(Mark::BatchFormed);
            prefills.push(carried_by(&epoch, prefill));
            self.running.push(Running {
                job,
                slot,
                produced: 0,
                epoch,
            });
        }
        prefills
    }

    /// N requests, one batch. Its label, by which the truth is scored, comes from the jobs' own data.
    fn form(&mut self) -> Batch {
        self.work.batches += 1;
        let numbers = self.running.iter().map(|member| member.job.number);
        Batch {
            label: self.labels.batch(numbers.collect()),
            epoch: Epoch::merge(&self.running),
        }
    }

    /// Passes each member its token, and lets go those that have all or whose client has gone.
    /// Whether all members stay.
    fn reply(&mut self, answer: &Answer) -> bool {
        let before = self.running.len();
        let mut tokens = answer.tokens.iter();
        let free = &mut self.free;
        self.running.retain_mut(|member| {
            let Some(token) = tokens.next() else {
                return true;
            };
            member.produced += 1;
            // There is room for every token that was asked for: an error means a client that left.
            let listening = member.job.reply.try_send(Reply::Token(*token)).is_ok();
            let stays = listening && member.produced < member.job.tokens;
            if !stays {
                free.push(member.slot);
            }
            stays
        });
        self.running.len() == before
    }

    fn fail(&mut self, failed: &Arc<str>) {
        for member in self.running.drain(..) {
            self.free.push(member.slot);
            // A client that left needs no answer.
            let _ = member.job.reply.try_send(Reply::Failed(Arc::clone(failed)));
        }
    }
}
