//! Tasks.

use launch_lineage::{JoinSetExt as _, RuntimeExt as _};
use tokio::task::JoinSet;

use super::USUAL;
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::raw;
use crate::request::Request;

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "tokio::spawn",
        write: "launch_lineage::spawn(future)",
        run: |cell| cell.tasks(spawned),
        ..USUAL
    },
    Carrier {
        name: "Handle::spawn",
        write: "handle.spawn_carried(future)",
        run: spawned_on_a_handle,
        ..USUAL
    },
    Carrier {
        name: "JoinSet::spawn",
        write: "tasks.spawn_carried(future)",
        run: |cell| cell.tasks(spawned_into_a_set),
        ..USUAL
    },
    Carrier {
        name: "JoinSet::spawn_blocking",
        write: "tasks.spawn_blocking_carried(work)",
        run: |cell| cell.tasks(blocks_in_a_set),
        ..USUAL
    },
    Carrier {
        name: "spawn_local",
        write: "launch_lineage::spawn_local(future)",
        run: |cell| cell.local_tasks(spawned_locally),
        ..USUAL
    },
];

async fn spawned(request: Request) {
    let Request { epoch, work, .. } = request;
    let future = async move { work.launch_across_an_await().await };
    let task = if request.forgotten {
        raw::spawn(future)
    } else {
        epoch.run(|| launch_lineage::spawn(future))
    };
    task.await.expect("the task does not panic");
}

fn spawned_on_a_handle(cell: &Cell) {
    let tokio = cell.runtime();
    let handle = tokio.handle();
    tokio.callers(move |request| {
        let handle = handle.clone();
        async move {
            let Request { epoch, work, .. } = request;
            let future = async move { work.launch_across_an_await().await };
            let task = if request.forgotten {
                raw::spawn_on(&handle, future)
            } else {
                epoch.run(|| handle.spawn_carried(future))
            };
            task.await.expect("the task does not panic");
        }
    });
}

async fn spawned_into_a_set(request: Request) {
    let Request { epoch, work, .. } = request;
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let part = work.part();
        let future = async move { part.launch_across_an_await().await };
        if request.forgotten {
            raw::spawn_into(&mut tasks, future);
        } else {
            epoch.run(|| tasks.spawn_carried(future));
        }
    }
    tasks.join_all().await;
}

async fn blocks_in_a_set(request: Request) {
    let Request { epoch, work, .. } = request;
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let part = work.part();
        let launches = move || {
            part.launch();
            part.launch();
        };
        if request.forgotten {
            raw::spawn_blocking_into(&mut tasks, launches);
        } else {
            epoch.run(|| tasks.spawn_blocking_carried(launches));
        }
    }
    tasks.join_all().await;
}

async fn spawned_locally(request: Request) {
    let Request { epoch, work, .. } = request;
    let future = async move {
        // Not `Send`, as what such tasks are for.
        let work = std::rc::Rc::new(work);
        work.launch_across_an_await().await;
    };
    let task = if request.forgotten {
        raw::spawn_local(future)
    } else {
        epoch.run(|| launch_lineage::spawn_local(future))
    };
    task.await.expect("the task does not panic");
}
