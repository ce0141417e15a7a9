//! Spans that declare an epoch: the tracing layer carries it wherever the span is entered.

use tokio::sync::oneshot;
use tracing::{Instrument as _, info_span};

use super::USUAL;
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::raw;
use crate::request::Request;

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "an instrumented future",
        write: "#[instrument(fields(launch_epoch))]",
        run: |cell| cell.tasks(awaited),
        ..USUAL
    },
    Carrier {
        name: "an instrumented task",
        write: "tokio::spawn(future.instrument(span))",
        run: |cell| cell.tasks(spawned),
        ..USUAL
    },
    Carrier {
        name: "a span on another thread",
        write: "span.in_scope(|| …)",
        threads_per_request: true,
        run: on_another_thread,
        mutations: super::threads::ITS_OWN_THREAD,
        ..USUAL
    },
];

/// Declares an epoch of its own: a part of the request's.
fn span(request: &Request) -> tracing::Span {
    request
        .epoch
        .run(|| info_span!("serve", launch_epoch = tracing::field::Empty))
}

async fn awaited(request: Request) {
    let span = span(&request);
    let work = request.work;
    let future = async move { work.launch_across_an_await().await };
    if request.forgotten {
        future.await;
    } else {
        future.instrument(span).await;
    }
}

async fn spawned(request: Request) {
    let span = span(&request);
    let work = request.work;
    let future = async move { work.launch_across_an_await().await };
    let task = if request.forgotten {
        raw::spawn(future)
    } else {
        raw::spawn(future.instrument(span))
    };
    task.await.expect("the task does not panic");
}

fn on_another_thread(cell: &Cell) {
    let threads = cell.threads.clone();
    cell.tasks(move |request| {
        let threads = threads.clone();
        async move {
            let span = span(&request);
            let Request {
                work, forgotten, ..
            } = request;
            let (done, is_done) = oneshot::channel();
            let thread = std::thread::spawn(move || {
                threads.watch_this_one();
                let launches = || {
                    work.launch();
                    work.launch();
                };
                if forgotten {
                    launches();
                } else {
                    span.in_scope(launches);
                }
                let _ = done.send(());
            });
            is_done.await.expect("the thread does not panic");
            thread.join().expect("the thread does not panic");
        }
    });
}
