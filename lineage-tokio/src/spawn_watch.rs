//! Finding the spawns that lost an epoch, with tokio's unstable hooks.

use std::collections::{HashMap, VecDeque};
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use lineage_core::Report;
use lineage_core::id::{LaunchEpoch, TaskId};
use lineage_core::row::{Binding, Row, Unattributed};
use tokio::runtime::{Builder, TaskMeta};

use crate::task_id;

/// Notes which tasks were spawned inside an epoch, and finds those that then launched without one:
/// raw `tokio::spawn`s, whose place in the source it tells.
///
/// A task that was spawned without its carrier and launches is `L01` where its thread has seen
/// lineage, and *unattributed* on a thread that has not: nothing else says that it is not a
/// library's. Nor do the records say where it was spawned. This does both. It only looks: no hook
/// can carry an epoch.
///
/// Exists with `--cfg tokio_unstable` alone, as the hooks themselves do. They see no task of a
/// [`LocalSet`](tokio::task::LocalSet). What is kept is bounded, and what was not kept is counted.
/// Meant for tests and for the day on which one looks for a loss: each spawn inside an epoch takes
/// a lock.
///
/// ```no_run
/// use std::time::Duration;
///
/// let lineage = lineage_core::Lineage::builder().keep_in_memory(1_000_000).start()?;
/// let watch = lineage_tokio::SpawnWatch::new();
/// let mut builder = tokio::runtime::Builder::new_multi_thread();
/// watch.install(&mut builder);
/// builder.build()?.block_on(async { /* serve */ });
///
/// for lost in watch.losses(&lineage.shutdown(Duration::from_secs(5))).spawns {
///     println!("{} calls of {} had no epoch: spawned at {}", lost.calls, lost.epoch, lost.spawned_at);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SpawnWatch(Arc<Mutex<Noted>>);

#[derive(Debug)]
struct Noted {
    tasks: HashMap<TaskId, Spawn>,
    /// In the order in which they were spawned.
    order: VecDeque<TaskId>,
    room: usize,
    not_kept: u64,
}

#[derive(Debug, Clone, Copy)]
struct Spawn {
    epoch: LaunchEpoch,
    spawned_at: &'static Location<'static>,
}

/// A place where tasks were spawned inside an epoch that then launched without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostSpawn {
    /// The epoch that was current where the task was spawned.
    pub epoch: LaunchEpoch,
    /// Where that was.
    pub spawned_at: &'static Location<'static>,
    /// Calls of the task that asked for GPU work and belong to no epoch. Counted in rows: a call,
    /// or each operation that it became.
    pub calls: u64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostSpawns {
    /// One for each task, in the order of their first call.
    pub spawns: Vec<LostSpawn>,
    /// Tasks that were spawned inside an epoch and not kept, because there were too many: the
    /// oldest. Of these nothing is known.
    pub not_kept: u64,
}

impl SpawnWatch {
    /// Keeps the last 65,536 tasks that were spawned inside an epoch.
    pub fn new() -> Self {
        Self::with_room_for(1 << 16)
    }

    /// Keeps the last `tasks` tasks that were spawned inside an epoch.
    pub fn with_room_for(tasks: usize) -> Self {
        Self(Arc::new(Mutex::new(Noted {
            tasks: HashMap::new(),
            order: VecDeque::new(),
            room: tasks.max(1),
            not_kept: 0,
        })))
    }

    /// Looks on at what the runtime that is built from this will spawn.
    ///
    /// A runtime has one hook of this kind. If you have one of your own, call
    /// [`task_spawned`](Self::task_spawned) in it instead.
    pub fn install(&self, builder: &mut Builder) {
        task_id::install_hook();
        let watch = self.clone();
        builder.on_task_spawn(move |meta| watch.task_spawned(meta));
    }

    /// A task is spawned, here and now: to be called in
    /// [`on_task_spawn`](tokio::runtime::Builder::on_task_spawn).
    pub fn task_spawned(&self, meta: &TaskMeta<'_>) {
        let current = lineage_core::current().epoch();
        let spawner = tokio::task::try_id().map(task_id::number_of);
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What a task spawns that lost its epoch is lost as well.
        let lost = || Some(noted.tasks.get(&spawner?)?.epoch);
        let Some(epoch) = current.or_else(lost) else {
            return;
        };
        let spawned_at = meta.spawned_at();
        noted.keep(task_id::number_of(meta.id()), Spawn { epoch, spawned_at });
    }

    /// The tasks that launched without an epoch though they were spawned inside of one. For what
    /// the report holds: rows are kept as far as
    /// [`keep_in_memory`](lineage_core::LineageBuilder::keep_in_memory) says.
    pub fn losses(&self, report: &Report) -> LostSpawns {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<(TaskId, LostSpawn)> = Vec::new();
        for task in report.rows.iter().filter_map(task_without_epoch) {
            let Some(&Spawn { epoch, spawned_at }) = noted.tasks.get(&task) else {
                continue;
            };
            match found.iter_mut().find(|(known, _)| *known == task) {
                Some((_, lost)) => lost.calls += 1,
                None => {
                    let lost = LostSpawn {
                        epoch,
                        spawned_at,
                        calls: 1,
                    };
                    found.push((task, lost));
                }
            }
        }
        LostSpawns {
            spawns: found.into_iter().map(|(_, lost)| lost).collect(),
            not_kept: noted.not_kept,
        }
    }
}

impl Default for SpawnWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl Noted {
    fn keep(&mut self, task: TaskId, spawn: Spawn) {
        if self.order.len() >= self.room
            && let Some(oldest) = self.order.pop_front()
        {
            self.tasks.remove(&oldest);
            self.not_kept += 1;
        }
        self.order.push_back(task);
        self.tasks.insert(task, spawn);
    }
}

/// The task of a row that belongs to no epoch and was not said to belong to none.
fn task_without_epoch(row: &Row) -> Option<TaskId> {
    let nobody_said = matches!(
        row.binding,
        Binding::Lost | Binding::Unattributed(Unattributed::ForeignThread)
    );
    row.call.as_ref().filter(|_| nobody_said)?.task
}
