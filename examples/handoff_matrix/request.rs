//! A request, and its work: what travels from where the request begins to where it is launched.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use launch_lineage::Epoch;
use launch_lineage::id::EpochId;

use crate::baseline::Baselines;
use crate::gpu::Gpu;
use crate::mutation::Mutation;

/// Set in the labels of batches, so that they differ from those of requests.
const BATCH: u64 = 1 << 63;

/// A request as its caller has it: the epoch that it declared, and the work that is to be done.
///
/// The two are separate on purpose. The work's number is data; the epoch is what the carrier under
/// test has to bring to the same place.
pub struct Request {
    /// Declared for this request.
    pub epoch: Epoch,
    /// To be launched, wherever it is carried to.
    pub work: Work,
    /// The carrier is to be left out: the mutation "forgotten".
    pub forgotten: bool,
}

/// The work of a request, or of a batch. It knows whose it is by its own data.
pub struct Work {
    label: u64,
    truly: Vec<u64>,
    desk: Arc<Desk>,
    leaves_scope: bool,
    launches: AtomicU64,
}

/// What all requests of a cell share.
pub struct Desk {
    gpu: Arc<Gpu>,
    baselines: Baselines,
    notes: Mutex<Notes>,
    launched: AtomicU64,
    refused: AtomicU64,
}

/// Who declared what, from the callers' own data.
#[derive(Default)]
pub struct Notes {
    /// The request for which an epoch was declared.
    pub declared: HashMap<EpochId, u64>,
    /// The requests of each batch.
    batches: Vec<Vec<u64>>,
}

impl Notes {
    /// The requests that work with this label is for.
    pub fn requests_of(&self, label: u64) -> Vec<u64> {
        if label & BATCH == 0 {
            return vec![label];
        }
        let index = usize::try_from(label & !BATCH).ok();
        let members = index.and_then(|index| self.batches.get(index));
        members.cloned().unwrap_or_default()
    }
}

impl Desk {
    /// A desk at this device.
    pub fn new(gpu: Arc<Gpu>) -> Self {
        Self {
            gpu,
            baselines: Baselines::default(),
            notes: Mutex::default(),
            launched: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// What was noted.
    pub fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        // Nothing panics while it holds the lock; what was noted until then would be right anyway.
        self.notes
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What the baselines said at the launches.
    pub fn baselines(&self) -> &Baselines {
        &self.baselines
    }

    /// Launches that the driver took, and those that it refused.
    pub fn launches(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.launched), load(&self.refused))
    }
}

impl Request {
    /// Declares a request with this number, from 1.
    pub fn declare(number: u64, desk: &Arc<Desk>) -> Self {
        let epoch = Epoch::declare("request");
        if let Some(epoch) = epoch.id() {
            desk.notes().declared.insert(epoch.id, number);
        }
        Self {
            epoch,
            work: Work::new(number, vec![number], desk),
            forgotten: false,
        }
    }

    /// The request's number, for the baselines.
    pub fn number(&self) -> u64 {
        self.work.label
    }

    /// Breaks a pair of requests as a mutation says.
    pub fn mutate(pair: [&mut Self; 2], mutation: Option<Mutation>) {
        let [first, second] = pair;
        match mutation {
            None => {}
            Some(Mutation::Forgotten) => second.forgotten = true,
            Some(Mutation::NotRestored) => {
                first.work.leaves_scope = true;
                second.forgotten = true;
            }
            Some(Mutation::Swapped) => std::mem::swap(&mut first.work, &mut second.work),
        }
    }
}

impl Work {
    fn new(label: u64, truly: Vec<u64>, desk: &Arc<Desk>) -> Self {
        Self {
            label,
            truly,
            desk: Arc::clone(desk),
            leaves_scope: false,
            launches: AtomicU64::new(0),
        }
    }

    /// The work of a batch that serves all of these.
    pub fn batch(members: &[&Self]) -> Option<Self> {
        let desk = &members.first()?.desk;
        let mut truly: Vec<u64> = members.iter().flat_map(|work| work.truly.clone()).collect();
        truly.sort_unstable();
        let index = {
            let mut notes = desk.notes();
            notes.batches.push(truly.clone());
            notes.batches.len() as u64 - 1
        };
        Some(Self::new(BATCH | index, truly, desk))
    }

    /// A part of this work, to be done elsewhere.
    pub fn part(&self) -> Self {
        Self {
            leaves_scope: self.leaves_scope,
            ..Self::new(self.label, self.truly.clone(), &self.desk)
        }
    }

    /// Notes that this epoch was declared for the request that the work is of: for carriers that
    /// declare by themselves, where the request's data is.
    pub fn note(&self, epoch: &Epoch) {
        if let Some(epoch) = epoch.id() {
            self.desk.notes().declared.insert(epoch.id, self.label);
        }
    }

    /// The device that the work is for.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.desk.gpu
    }

    /// Launches a kernel for what is current on this thread: in turn inside a launch boundary, as
    /// programs should, and outside of one.
    pub fn launch(&self) {
        self.desk.baselines.at_launch(&self.truly);
        let turn = self.launches.fetch_add(1, Ordering::Relaxed);
        let outcome = if turn.is_multiple_of(2) {
            launch_lineage::launch(|| self.desk.gpu.launch(self.label))
        } else {
            self.desk.gpu.launch(self.label)
        };
        let count = match outcome {
            Ok(()) => &self.desk.launched,
            Err(_) => &self.desk.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
        if self.leaves_scope && turn == 0 {
            // The mutation: a scope on this thread that nobody ends.
            std::mem::forget(Epoch::current().enter());
        }
    }

    /// Launches, lets others run, and launches again, maybe on another thread.
    pub async fn launch_across_an_await(&self) {
        self.launch();
        tokio::task::yield_now().await;
        self.launch();
    }
}
