//! With tokio's unstable hooks, a task that was spawned raw inside an epoch and launches without
//! one is found, with the line that spawned it, also where nothing else can tell it from a
//! library's.
#![cfg(all(feature = "record", tokio_unstable))]

mod common;

use std::sync::atomic::{AtomicU32, Ordering};

use common::recorded;
use lineage_core::hook::{self, CallLeft};
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{ApiDomain, OperationsDue};
use lineage_core::{Epoch, detached};
use lineage_tokio::{FutureExt as _, SpawnWatch};

/// What lineage-cupti's callback does when a kernel is launched.
fn launch() {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let snapshot = hook::call_entered();
    let left = CallLeft {
        domain: ApiDomain::Driver,
        cbid: 307, // cuLaunchKernel
        correlation: CorrelationId(NEXT.fetch_add(1, Ordering::Relaxed)),
        result: 0,
        due: OperationsDue::One,
        exited: Some(HostNanos(hook::now())),
    };
    hook::call_left(&snapshot, &left);
}

fn runtime(watch: &SpawnWatch) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    watch.install(builder.worker_threads(2));
    builder.build().expect("a runtime")
}

#[test]
fn with_the_line_that_spawned_it() {
    let watch = SpawnWatch::new();
    let ((epoch, lines), report) = recorded(|_| {
        let runtime = runtime(&watch);
        let epoch = Epoch::declare("request");
        let (lost, line) = epoch.run(|| (runtime.spawn(async { launch() }), line!()));
        runtime.block_on(lost).expect("no panic");
        let work = async {
            // Twice, and one more by a task of its own.
            let line = line!() + 1;
            let lost = tokio::spawn(async {
                launch();
                tokio::task::yield_now().await;
                launch();
                tokio::spawn(async { launch() }).await
            });
            lost.await.expect("no panic").expect("no panic");
            // These lose nothing.
            lineage_tokio::spawn(async { launch() })
                .await
                .expect("no panic");
            let carried = async { launch() }.in_current_epoch();
            tokio::spawn(carried).await.expect("no panic");
            let nobodys = tokio::spawn(async { detached("warm-up", launch) });
            nobodys.await.expect("no panic");
            tokio::spawn(async {}).await.expect("no panic");
            line
        };
        let inner = runtime.block_on(runtime.spawn(work.in_epoch(&epoch)));
        // Nor does what is spawned without an epoch.
        runtime
            .block_on(runtime.spawn(async { launch() }))
            .expect("no panic");
        let id = epoch.id().expect("recording is on");
        (id, [line, inner.expect("no panic")])
    });
    let losses = watch.losses(&report.0);
    assert_eq!(losses.not_kept, 0);
    let mut found: Vec<_> = losses
        .spawns
        .iter()
        .map(|lost| {
            assert_eq!(lost.epoch, epoch);
            let file = lost.spawned_at.file();
            assert!(file.ends_with("a_raw_spawn_is_found_by_tokios_own_hooks.rs"));
            (lost.spawned_at.line(), lost.calls)
        })
        .collect();
    found.sort_unstable();
    let [outer, inner] = lines;
    assert_eq!(found, [(outer, 1), (inner, 2), (inner + 4, 1)]);
}

#[test]
fn what_is_not_kept_is_counted() {
    let watch = SpawnWatch::with_room_for(2);
    let ((), report) = recorded(|_| {
        let runtime = runtime(&watch);
        let epoch = Epoch::declare("request");
        for _ in 0..5 {
            let lost = epoch.run(|| runtime.spawn(async { launch() }));
            runtime.block_on(lost).expect("no panic");
        }
    });
    let losses = watch.losses(&report.0);
    assert_eq!((losses.spawns.len(), losses.not_kept), (2, 3));
}
