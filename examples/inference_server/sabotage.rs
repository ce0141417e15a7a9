//! `--break`: handoffs that are broken on purpose, to see that it is noticed.
//!
//! The server calls these at the places where such mistakes are made. Without `--break` they do
//! the right thing and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use launch_lineage::{Carried, Epoch};

/// One occasion in this many is used, and the first one always.
const EVERY: u64 = 8;

/// Which handoff is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Break {
    /// A job is taken out of its envelope, and goes on without its epoch.
    Envelope,
    /// The engine forgets to leave a scope, and launches a request's work in it.
    Restore,
    /// Two jobs get each other's envelopes.
    Swap,
}

impl Break {
    /// What is done, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Envelope => "jobs taken out of their envelopes without the epoch",
            Self::Restore => "prompts launched in a stale scope that the engine forgot to leave",
            Self::Swap => "pairs of jobs given each other's envelopes",
        }
    }
}

/// What is to be broken, and how often it was.
#[derive(Debug, Clone, Default)]
pub struct Sabotage {
    what: Option<Break>,
    occasions: Arc<AtomicU64>,
    done: Arc<AtomicU64>,
}

impl Sabotage {
    /// Breaks this, or nothing.
    pub fn new(what: Option<Break>) -> Self {
        Self {
            what,
            ..Self::default()
        }
    }

    /// How many handoffs were broken.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Opens a job's envelope.
    pub fn open<T>(&self, job: Carried<T>) -> (T, Epoch) {
        if self.strikes(Break::Envelope) {
            (job.into_payload(), Epoch::inert())
        } else {
            job.open()
        }
    }

    /// Leaves the envelopes of jobs that arrived together as they are.
    pub fn swap_envelopes<T>(&self, jobs: &mut [Carried<T>]) {
        if let [first, second, ..] = jobs
            && self.strikes(Break::Swap)
        {
            std::mem::swap(first.payload_mut(), second.payload_mut());
        }
    }

    /// For the engine's thread.
    pub fn left_behind(self) -> LeftBehind {
        LeftBehind {
            sabotage: self,
            stale: false,
        }
    }

    fn strikes(&self, what: Break) -> bool {
        let strikes = self.what == Some(what)
            && self
                .occasions
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(EVERY);
        if strikes {
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        strikes
    }
}

/// What the engine's thread forgot to leave.
pub struct LeftBehind {
    sabotage: Sabotage,
    stale: bool,
}

impl LeftBehind {
    /// The epoch to launch a request's work under: the request's own.
    pub fn instead_of(&mut self, request: Epoch) -> Epoch {
        if std::mem::take(&mut self.stale) {
            Epoch::current()
        } else {
            request
        }
    }

    /// Leaves nothing behind.
    pub fn after_step(&mut self, batch: &Epoch) {
        if !self.stale && self.sabotage.strikes(Break::Restore) {
            std::mem::forget(batch.enter());
            self.stale = true;
        }
    }
}
