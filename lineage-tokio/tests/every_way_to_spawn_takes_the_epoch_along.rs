//! Whatever tokio can spawn with, there is the same with the epoch taken along: on a runtime, a
//! handle, a local set, into a join set. `block_in_place` needs nothing.
#![cfg(feature = "record")]

mod common;

use common::{Handoffs, assert_nothing_is_current_on, current, recorded, runtime};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::{CarrierKind, Event};
use lineage_tokio::{FutureExt as _, JoinSetExt as _, LocalSetExt as _, RuntimeExt as _};
use tokio::runtime::{Builder, LocalRuntime};
use tokio::task::{JoinSet, LocalSet};

/// What is current before and after a poll in which others ran.
async fn seen() -> [Option<LaunchEpoch>; 2] {
    let first = current();
    tokio::task::yield_now().await;
    [first, current()]
}

/// Like `seen`, and not `Send`.
async fn seen_locally() -> [Option<LaunchEpoch>; 2] {
    let local = std::rc::Rc::new(current());
    tokio::task::yield_now().await;
    [*local, current()]
}

/// Everything that was sent from this file for this epoch, and that all of it arrived.
fn assert_sent_from(
    report: &common::Recorded,
    epoch: LaunchEpoch,
    expected: &[(CarrierKind, u32)],
) {
    let sent = report.events().filter_map(|event| match event {
        Event::Sent(sent) if sent.handoff.epoch == epoch => Some(sent),
        _ => None,
    });
    let mut found = Vec::new();
    for sent in sent {
        let site = sent.site.as_ref().expect("it is known");
        let here = "every_way_to_spawn_takes_the_epoch_along.rs";
        assert!(site.file.ends_with(here), "{site}");
        found.push((sent.handoff.carrier, site.line));
    }
    // Records of several threads come in any order.
    found.sort_by_key(|(_, line)| *line);
    assert_eq!(found, expected);
    for kind in [CarrierKind::Task, CarrierKind::Blocking] {
        let Handoffs {
            sent,
            received,
            abandoned,
        } = report.handoffs(epoch, kind);
        assert_eq!((received, abandoned), (sent, 0), "{kind:?}");
    }
    assert_eq!(report.misuses(), []);
}

#[test]
fn on_a_runtime_and_on_a_handle() {
    for workers in [1, 4] {
        let ((epoch, lines), report) = recorded(|_| {
            let runtime = runtime(workers);
            let handle = runtime.handle().clone();
            let epoch = Epoch::declare("request");
            let id = epoch.id();
            let (mut lines, mut tasks, mut closures) = (Vec::new(), Vec::new(), Vec::new());
            epoch.run(|| {
                tasks.push(runtime.spawn_carried(seen()));
                lines.push((CarrierKind::Task, line!() - 1));
                tasks.push(handle.spawn_carried(seen()));
                lines.push((CarrierKind::Task, line!() - 1));
                closures.push(runtime.spawn_blocking_carried(current));
                lines.push((CarrierKind::Blocking, line!() - 1));
                closures.push(handle.spawn_blocking_carried(current));
                lines.push((CarrierKind::Blocking, line!() - 1));
            });
            for task in tasks {
                assert_eq!(runtime.block_on(task).expect("no panic"), [id, id]);
            }
            for closure in closures {
                assert_eq!(runtime.block_on(closure).expect("no panic"), id);
            }
            assert_nothing_is_current_on(&runtime, workers);
            (id.expect("recording is on"), lines)
        });
        assert_sent_from(&report, epoch, &lines);
    }
}

#[test]
fn local_tasks_on_a_set_and_on_a_local_runtime() {
    let ((epochs, lines), report) = recorded(|_| {
        let epochs: [Epoch; 2] = std::array::from_fn(|_| Epoch::declare("request"));
        let [one, other] = epochs.each_ref().map(Epoch::id);
        let mut lines = [Vec::new(), Vec::new()];

        // Two requests' tasks take turns on one thread.
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let set = LocalSet::new();
        let task = epochs[0].run(|| set.spawn_local_carried(seen_locally()));
        lines[0].push((CarrierKind::Task, line!() - 1));
        let inner = set.run_until(async {
            let of_other = epochs[1].run(|| lineage_tokio::spawn_local(seen_locally()));
            lines[1].push((CarrierKind::Task, line!() - 1));
            assert_eq!(current(), None);
            (task.await, of_other.await)
        });
        let (seen, of_other) = runtime.block_on(inner);
        assert_eq!(seen.expect("no panic"), [one, one]);
        assert_eq!(of_other.expect("no panic"), [other, other]);

        let runtime = LocalRuntime::new().expect("a runtime");
        let seen = runtime.block_on(async {
            let task = epochs[0].run(|| lineage_tokio::spawn_local(seen_locally()));
            lines[0].push((CarrierKind::Task, line!() - 1));
            task.await.expect("no panic")
        });
        assert_eq!(seen, [one, one]);
        let ids = [one, other].map(|id| id.expect("recording is on"));
        (ids, lines)
    });
    for (epoch, lines) in epochs.into_iter().zip(lines) {
        assert_sent_from(&report, epoch, &lines);
    }
}

#[test]
fn into_a_join_set() {
    let ((epochs, lines), report) = recorded(|_| {
        let epochs: [Epoch; 2] = std::array::from_fn(|_| Epoch::declare("request"));
        let [one, other] = epochs.each_ref().map(Epoch::id);
        let mut lines = [Vec::new(), Vec::new()];
        let (runtime, pool) = (runtime(2), runtime(1));
        let local = LocalSet::new();
        // Each answers which epoch it was spawned with, and what it saw.
        let mut parts = JoinSet::new();
        let tell = async |spawned| (spawned, seen().await);
        let tell_at_once = |spawned| (spawned, [current(), current()]);
        local.block_on(&runtime, async {
            epochs[0].run(|| {
                parts.spawn_carried(tell(one));
                lines[0].push((CarrierKind::Task, line!() - 1));
                parts.spawn_carried_on(tell(one), pool.handle());
                lines[0].push((CarrierKind::Task, line!() - 1));
                parts.spawn_blocking_carried(move || tell_at_once(one));
                lines[0].push((CarrierKind::Blocking, line!() - 1));
            });
            epochs[1].run(|| {
                parts.spawn_local_carried(async move { (other, seen_locally().await) });
                lines[1].push((CarrierKind::Task, line!() - 1));
                parts.spawn_local_carried_on(tell(other), &local);
                lines[1].push((CarrierKind::Task, line!() - 1));
                parts.spawn_blocking_carried_on(move || tell_at_once(other), pool.handle());
                lines[1].push((CarrierKind::Blocking, line!() - 1));
            });
            let mut joined = 0;
            while let Some(part) = parts.join_next().await {
                let (spawned, seen) = part.expect("no panic");
                assert_eq!(seen, [spawned, spawned]);
                joined += 1;
            }
            assert_eq!(joined, 6);
        });
        let ids = [one, other].map(|id| id.expect("recording is on"));
        (ids, lines)
    });
    for (epoch, lines) in epochs.into_iter().zip(lines) {
        assert_sent_from(&report, epoch, &lines);
    }
}

#[test]
fn block_in_place_stays_where_it_is() {
    let ((), report) = recorded(|_| {
        let runtime = runtime(2);
        let epochs: [Epoch; 2] = std::array::from_fn(|_| Epoch::declare("request"));
        let tasks = epochs.map(|epoch| {
            let expected = epoch.id();
            let work = async move {
                for _ in 0..50 {
                    // Meanwhile the other request is polled by a worker that takes this one's
                    // place.
                    let (seen, inner) = tokio::task::block_in_place(|| {
                        std::thread::yield_now();
                        let handle = tokio::runtime::Handle::current();
                        (current(), handle.block_on(seen()))
                    });
                    assert_eq!(seen, expected);
                    assert_eq!(inner, [expected, expected]);
                    assert_eq!(seen, current());
                    tokio::task::yield_now().await;
                }
            };
            runtime.spawn(work.in_epoch(epoch))
        });
        for task in tasks {
            runtime.block_on(task).expect("no panic");
        }
        assert_nothing_is_current_on(&runtime, 2);
    });
    assert_eq!(report.misuses(), []);
}
