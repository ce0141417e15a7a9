//! Aborting a task, or dropping the set it is in, drops its future on whichever worker, in its
//! epoch, and cancels the epoch only if it was the task's own.
#![cfg(feature = "record")]

mod common;

use std::sync::mpsc::{Sender, channel};

use common::{assert_nothing_is_current_on, current, recorded, runtime};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::RetiredAs;
use lineage_tokio::{FutureExt as _, JoinSetExt as _};
use tokio::task::JoinSet;

/// Notes what is current when it is dropped.
struct Notes(Sender<Option<LaunchEpoch>>);

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = self.0.send(current());
    }
}

async fn never(notes: Notes, begun: tokio::sync::mpsc::UnboundedSender<()>) {
    let _notes = notes;
    let _ = begun.send(());
    std::future::pending().await
}

const TASKS: usize = 40;

#[test]
fn one_by_one_all_at_once_or_with_the_set() {
    for end in ["abort handle", "abort_all", "drop"] {
        let (epoch, report) = recorded(|_| {
            let runtime = runtime(4);
            let (dropped, seen) = channel();
            let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
            let epoch = Epoch::declare("request");
            let id = epoch.id();
            runtime.block_on(async {
                let mut set = JoinSet::new();
                let handles: Vec<_> = epoch.run(|| {
                    let spawn = |_| set.spawn_carried(never(Notes(dropped.clone()), begun.clone()));
                    (0..TASKS).map(spawn).collect()
                });
                for _ in 0..TASKS {
                    has_begun.recv().await.expect("each begins");
                }
                match end {
                    "abort handle" => handles.iter().for_each(|handle| handle.abort()),
                    "abort_all" => set.abort_all(),
                    _ => drop(std::mem::take(&mut set)),
                }
                while let Some(task) = set.join_next().await {
                    assert!(task.expect_err("it was aborted").is_cancelled());
                }
            });
            drop(dropped);
            let seen: Vec<_> = seen.iter().collect();
            assert_eq!(seen, [id; TASKS], "{end}");
            assert_nothing_is_current_on(&runtime, 4);
            id.expect("recording is on")
        });
        assert!(!report.cancelled(epoch), "{end}");
        assert_eq!(report.retired(epoch), Some(RetiredAs::Done), "{end}");
        assert_eq!(report.misuses(), [], "{end}");
    }
}

#[test]
fn a_task_that_owns_its_epoch_cancels_it() {
    let (epochs, report) = recorded(|_| {
        let runtime = runtime(2);
        let (dropped, seen) = channel();
        let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
        let epochs: Vec<_> = (0..TASKS).map(|_| Epoch::declare("request")).collect();
        let ids: Vec<_> = epochs.iter().filter_map(Epoch::id).collect();
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for epoch in epochs {
                let task = never(Notes(dropped.clone()), begun.clone());
                set.spawn(task.in_epoch(epoch));
            }
            for _ in 0..TASKS {
                has_begun.recv().await.expect("each begins");
            }
            set.shutdown().await;
        });
        drop(dropped);
        let mut seen: Vec<_> = seen.iter().flatten().collect();
        seen.sort_unstable();
        assert_eq!(seen, ids);
        assert_nothing_is_current_on(&runtime, 2);
        ids
    });
    assert_eq!(epochs.len(), TASKS);
    for epoch in epochs {
        assert_eq!(report.retired(epoch), Some(RetiredAs::Cancelled));
    }
    assert_eq!(report.misuses(), []);
}
