//! `spawn` and `spawn_blocking` are tokio's, and the current epoch goes along.
#![cfg(feature = "record")]

mod common;

use common::{assert_nothing_is_current_on, current, recorded, runtime};
use lineage_core::Epoch;
use lineage_core::observation::{CarrierKind, Event};
use lineage_tokio::FutureExt as _;

#[test]
fn a_task_and_a_blocking_closure_work_for_the_epoch_of_whoever_spawned_them() {
    const REQUESTS: usize = 50;
    let (epochs, report) = recorded(|_| {
        let runtime = runtime(4);
        let mut epochs = Vec::new();
        runtime.block_on(async {
            let mut tasks = Vec::new();
            for _ in 0..REQUESTS {
                let epoch = Epoch::declare("request");
                let expected = epoch.id();
                epochs.push(expected.expect("recording is on"));
                let work = async move {
                    let task = lineage_tokio::spawn(async move {
                        assert_eq!(current(), expected);
                        tokio::task::yield_now().await;
                        assert_eq!(current(), expected);
                        // One more level: what is current in a task is inherited by its tasks.
                        lineage_tokio::spawn(async { current() })
                            .await
                            .expect("no panic")
                    });
                    let blocking = lineage_tokio::spawn_blocking(current);
                    assert_eq!(task.await.expect("no panic"), expected);
                    assert_eq!(blocking.await.expect("no panic"), expected);
                };
                tasks.push(tokio::spawn(work.in_epoch(epoch)));
            }
            for task in tasks {
                task.await.expect("no panic");
            }
        });
        assert_nothing_is_current_on(&runtime, 4);
        epochs
    });
    assert_eq!(epochs.len(), REQUESTS);
    for epoch in epochs {
        let tasks = report.handoffs(epoch, CarrierKind::Task);
        assert_eq!((tasks.sent, tasks.received, tasks.abandoned), (2, 2, 0));
        let blocking = report.handoffs(epoch, CarrierKind::Blocking);
        assert_eq!(
            (blocking.sent, blocking.received, blocking.abandoned),
            (1, 1, 0)
        );
    }
    assert_eq!(report.misuses(), []);
}

#[test]
fn without_a_current_epoch_they_are_tokios() {
    let ((), report) = recorded(|_| {
        runtime(2).block_on(async {
            let task = lineage_tokio::spawn(async { (current(), 7) });
            assert_eq!(task.await.expect("no panic"), (None, 7));
            let blocking = lineage_tokio::spawn_blocking(|| (current(), 8));
            assert_eq!(blocking.await.expect("no panic"), (None, 8));
            let panics = lineage_tokio::spawn(async { panic!("on purpose") });
            assert!(panics.await.expect_err("it panicked").is_panic());
        });
    });
    let handoffs = report.events().filter(|event| {
        matches!(
            event,
            Event::Sent(_) | Event::Received(_) | Event::Abandoned(_)
        )
    });
    assert_eq!(handoffs.count(), 0);
}

#[test]
fn the_place_of_the_call_is_recorded() {
    let ((task_line, blocking_line), report) = recorded(|_| {
        runtime(1).block_on(async {
            let epoch = Epoch::declare("request");
            let (task, task_line) = epoch.run(|| (lineage_tokio::spawn(async {}), line!()));
            let (blocking, blocking_line) =
                epoch.run(|| (lineage_tokio::spawn_blocking(|| ()), line!()));
            task.await.expect("no panic");
            blocking.await.expect("no panic");
            (task_line, blocking_line)
        })
    });
    let site_of = |kind| {
        let sent = report.events().find_map(|event| match event {
            Event::Sent(sent) if sent.handoff.carrier == kind => Some(sent),
            _ => None,
        });
        sent.expect("it was sent")
            .site
            .clone()
            .expect("its site is known")
    };
    for (kind, line) in [
        (CarrierKind::Task, task_line),
        (CarrierKind::Blocking, blocking_line),
    ] {
        let site = site_of(kind);
        assert!(
            site.file
                .ends_with("spawn_and_spawn_blocking_take_the_epoch_along.rs"),
            "{site}"
        );
        assert_eq!(site.line, line);
    }
}

#[test]
fn an_aborted_task_does_not_cancel_the_epoch_that_it_shares() {
    let (epoch, report) = recorded(|_| {
        let runtime = runtime(1);
        let epoch = Epoch::declare("request");
        runtime.block_on(async {
            let task = epoch.run(|| lineage_tokio::spawn(std::future::pending::<()>()));
            tokio::task::yield_now().await;
            task.abort();
            assert!(task.await.expect_err("it was aborted").is_cancelled());
        });
        epoch.id().expect("recording is on")
    });
    assert!(!report.cancelled(epoch));
}
