//! Tasks that end before they are done. What they launch then is theirs too, and nothing of them
//! stays on their thread.

use std::panic::resume_unwind;

use launch_lineage::FutureExt as _;
use tokio::sync::oneshot;

use super::{LaunchWhenDropped, USUAL};
use crate::matrix::Carrier;
use crate::raw;
use crate::request::Request;

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "a task that panics",
        write: "spawn(future.in_epoch(epoch))",
        run: |cell| cell.tasks(panics),
        ..USUAL
    },
    Carrier {
        name: "a task that is aborted",
        write: "spawn(future.in_epoch(epoch))",
        run: |cell| cell.tasks(is_aborted),
        ..USUAL
    },
    Carrier {
        name: "a future that is never polled",
        write: "future.in_epoch(epoch)",
        run: |cell| cell.tasks(is_never_polled),
        ..USUAL
    },
];

/// Unwinds through a launching destructor.
async fn panics(request: Request) {
    struct OnPurpose;
    let Request { epoch, work, .. } = request;
    let future = async move {
        work.launch();
        let _at_the_end = LaunchWhenDropped(work);
        tokio::task::yield_now().await;
        // Without the message of a panic.
        resume_unwind(Box::new(OnPurpose));
    };
    let task = if request.forgotten {
        raw::spawn(future)
    } else {
        launch_lineage::spawn(future.in_epoch(epoch))
    };
    let ended = task.await.expect_err("the task panics");
    assert!(ended.into_panic().is::<OnPurpose>(), "on purpose");
}

/// Dropped while it waits, on whichever thread.
async fn is_aborted(request: Request) {
    let Request { epoch, work, .. } = request;
    let (started, has_started) = oneshot::channel();
    let future = async move {
        work.launch();
        let _at_the_end = LaunchWhenDropped(work);
        started.send(()).expect("it is waited for");
        std::future::pending::<()>().await;
    };
    let task = if request.forgotten {
        raw::spawn(future)
    } else {
        launch_lineage::spawn(future.in_epoch(epoch))
    };
    has_started.await.expect("the task starts");
    task.abort();
    assert!(task.await.is_err_and(|ended| ended.is_cancelled()));
}

/// Its argument has a destructor that launches.
async fn is_never_polled(request: Request) {
    let Request { epoch, work, .. } = request;
    let part = LaunchWhenDropped(work.part());
    let at_the_end = LaunchWhenDropped(work);
    let future = async move {
        let _both = (part, at_the_end);
    };
    if request.forgotten {
        drop(future);
    } else {
        drop(future.in_epoch(epoch));
    }
}
