//! Futures that are polled where they were made, or among others.

use std::sync::Arc;

use async_executor::Executor;
use futures_lite::future;
use futures_util::future::join;
use launch_lineage::FutureExt as _;
use tokio::sync::watch;

use super::{LaunchWhenDropped, USUAL};
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::request::Request;

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "a future, awaited",
        write: "future.in_epoch(epoch)",
        run: |cell| cell.tasks(awaited),
        ..USUAL
    },
    Carrier {
        name: "futures, joined",
        write: "future.in_current_epoch()",
        run: |cell| cell.tasks(joined),
        ..USUAL
    },
    Carrier {
        name: "select!, the loser dropped",
        write: "future.in_epoch(&epoch)",
        run: |cell| cell.tasks(selected),
        ..USUAL
    },
    Carrier {
        name: "a future on async-std's executor",
        write: "future.in_epoch(epoch)",
        run: on_another_executor,
        ..USUAL
    },
];

async fn awaited(request: Request) {
    let Request { epoch, work, .. } = request;
    let future = async move { work.launch_across_an_await().await };
    if request.forgotten {
        future.await;
    } else {
        future.in_epoch(epoch).await;
    }
}

/// Two parts of a request, beside those of the caller's other request in the same task.
async fn joined(request: Request) {
    let Request { epoch, work, .. } = request;
    let (one, two) = (work.part(), work.part());
    let one = async move { one.launch_across_an_await().await };
    let two = async move { two.launch_across_an_await().await };
    if request.forgotten {
        join(one, two).await;
    } else {
        let (one, two) = epoch.run(|| (one.in_current_epoch(), two.in_current_epoch()));
        join(one, two).await;
    }
}

/// The loser has launched by then, and launches again while it is dropped.
async fn selected(request: Request) {
    let Request { epoch, work, .. } = request;
    let part = work.part();
    let loser = async move {
        part.launch();
        let _at_the_end = LaunchWhenDropped(part);
        std::future::pending::<()>().await;
    };
    let winner = async move { work.launch_across_an_await().await };
    if request.forgotten {
        tokio::select! { biased; () = loser => {} () = winner => {} }
    } else {
        tokio::select! { biased; () = loser.in_epoch(&epoch) => {} () = winner.in_epoch(&epoch) => {} }
    }
}

/// The executor of async-std and smol, on as many threads as the column says. No tokio.
fn on_another_executor(cell: &Cell) {
    let executor = Arc::new(Executor::new());
    let (stop, stopped) = watch::channel(());
    let workers = (0..cell.column.threads()).map(|_| {
        let (executor, mut stopped) = (Arc::clone(&executor), stopped.clone());
        cell.engine(move || {
            let until = async { while stopped.changed().await.is_ok() {} };
            future::block_on(executor.run(until));
        })
    });
    let workers: Vec<_> = workers.collect();
    cell.threads(|request| {
        let Request { epoch, work, .. } = request;
        let future = async move {
            work.launch();
            future::yield_now().await;
            work.launch();
        };
        let task = if request.forgotten {
            executor.spawn(future)
        } else {
            executor.spawn(future.in_epoch(epoch))
        };
        future::block_on(task);
    });
    drop(stop);
    for worker in workers {
        worker.join().expect("no future panics");
    }
}
