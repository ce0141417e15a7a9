//! Streams and sinks: made here, polled by a task elsewhere, as the body of a response is.

use futures_util::stream::{self, StreamExt as _};
use futures_util::{SinkExt as _, sink};
use launch_lineage::{SinkExt as _, StreamExt as _};

use super::USUAL;
use crate::matrix::Carrier;
use crate::raw;
use crate::request::Request;

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "a stream",
        write: "stream.in_epoch(epoch)",
        run: |cell| cell.tasks(streamed),
        ..USUAL
    },
    Carrier {
        name: "a sink",
        write: "sink.in_epoch(epoch)",
        run: |cell| cell.tasks(sunk),
        ..USUAL
    },
];

/// Launches for each of its items.
async fn streamed(request: Request) {
    let Request { epoch, work, .. } = request;
    let items = stream::unfold((0, work), |(item, work)| async move {
        if item == 3 {
            return None;
        }
        tokio::task::yield_now().await;
        work.launch();
        Some((item, (item + 1, work)))
    });
    let task = if request.forgotten {
        raw::spawn(items.collect::<Vec<_>>())
    } else {
        raw::spawn(items.in_epoch(epoch).collect::<Vec<_>>())
    };
    assert_eq!(task.await.ok(), Some(vec![0, 1, 2]));
}

/// Launches for each item that it is sent.
async fn sunk(request: Request) {
    let Request { epoch, work, .. } = request;
    let sink = sink::unfold(work, |work, _item: u32| async move {
        tokio::task::yield_now().await;
        work.launch();
        Ok::<_, std::convert::Infallible>(work)
    });
    let items = || stream::iter((0..3).map(Ok));
    let task = if request.forgotten {
        raw::spawn(async move { Box::pin(sink).send_all(&mut items()).await })
    } else {
        let sink = sink.in_epoch(epoch);
        raw::spawn(async move { Box::pin(sink).send_all(&mut items()).await })
    };
    assert!(task.await.is_ok_and(|sent| sent.is_ok()));
}
