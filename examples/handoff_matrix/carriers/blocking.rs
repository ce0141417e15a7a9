//! Blocking work of a runtime.

use launch_lineage::FutureExt as _;

use super::USUAL;
use crate::matrix::{Carrier, Runs};
use crate::raw;
use crate::request::Request;

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "spawn_blocking",
        write: "launch_lineage::spawn_blocking(work)",
        run: |cell| cell.tasks(spawned),
        ..USUAL
    },
    Carrier {
        name: "block_in_place",
        write: "nothing: it stays on its thread",
        columns: [
            Runs::Yes,
            Runs::Yes,
            Runs::No("tokio panics: nobody else could run the other tasks meanwhile"),
        ],
        run: |cell| cell.tasks(in_place),
        ..USUAL
    },
];

async fn spawned(request: Request) {
    let Request { epoch, work, .. } = request;
    let launches = move || {
        work.launch();
        work.launch();
    };
    let task = if request.forgotten {
        raw::spawn_blocking(launches)
    } else {
        epoch.run(|| launch_lineage::spawn_blocking(launches))
    };
    task.await.expect("the work does not panic");
}

/// Inside a future that has its epoch. The worker's other tasks move to another thread meanwhile.
async fn in_place(request: Request) {
    let Request { epoch, work, .. } = request;
    let future = async move {
        tokio::task::block_in_place(|| work.launch());
        tokio::task::yield_now().await;
        tokio::task::block_in_place(|| work.launch());
    };
    if request.forgotten {
        future.await;
    } else {
        future.in_epoch(epoch).await;
    }
}
