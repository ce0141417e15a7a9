//! A stream that outlives its handler keeps its epoch: current whenever an item is polled for, and
//! while the stream is dropped. A sink likewise, in each of its polls. What is both stays both.
#![cfg(feature = "record")]

mod common;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use common::{Handoffs, current, recorded, runtime};
use futures_core::stream::{FusedStream, Stream};
use futures_util::{SinkExt as _, StreamExt as _, stream};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::{CarrierKind, RetiredAs};
use lineage_tokio::InEpoch;

type Log = Arc<Mutex<Vec<(&'static str, Option<LaunchEpoch>)>>>;

fn note(log: &Log, what: &'static str) {
    log.lock().expect("no panic").push((what, current()));
}

fn names(log: &Log) -> Vec<&'static str> {
    log.lock()
        .expect("no panic")
        .iter()
        .map(|it| it.0)
        .collect()
}

fn assert_all_in(log: &Log, epoch: Option<LaunchEpoch>) {
    for (what, seen) in log.lock().expect("no panic").iter() {
        assert_eq!(*seen, epoch, "in {what}");
    }
}

/// A socket of a kind: a stream of what it is given and a sink of what it is sent, which notes what
/// is current in everything that it does.
struct Socket {
    incoming: VecDeque<u32>,
    log: Log,
}

impl Socket {
    fn new(log: &Log) -> Self {
        Self {
            incoming: VecDeque::from([1, 2, 3]),
            log: log.clone(),
        }
    }
}

impl Stream for Socket {
    type Item = u32;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u32>> {
        note(&self.log, "poll_next");
        Poll::Ready(self.incoming.pop_front())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.incoming.len(), Some(self.incoming.len()))
    }
}

impl futures_sink::Sink<u32> for Socket {
    type Error = Infallible;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        note(&self.log, "poll_ready");
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, item: u32) -> Result<(), Infallible> {
        assert_eq!(item, 7);
        note(&self.log, "start_send");
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        note(&self.log, "poll_flush");
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        note(&self.log, "poll_close");
        Poll::Ready(Ok(()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        note(&self.log, "drop");
    }
}

fn next<S: Stream + Unpin>(stream: &mut S) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_response_is_streamed_long_after_its_handler_ended() {
    const REQUESTS: usize = 50;
    let (epochs, report) = recorded(|_| {
        let runtime = runtime(4);
        // The handler: its scope ends when the response begins.
        let handle = |number: usize| {
            let epoch = Epoch::declare("request");
            let id = epoch.id();
            let response = epoch.run(|| {
                let tokens = stream::iter(0..20).then(move |token| async move {
                    tokio::task::yield_now().await;
                    (number, token, current())
                });
                lineage_tokio::StreamExt::in_current_epoch(tokens)
            });
            (id, response)
        };
        let mut epochs = Vec::new();
        let mut bodies = Vec::new();
        for number in 0..REQUESTS {
            let (id, response) = handle(number);
            assert_eq!(current(), None);
            epochs.push(id.expect("recording is on"));
            bodies.push(runtime.spawn(async move {
                let mut response = pin!(response);
                let mut tokens = 0;
                while let Some((told, _, seen)) = response.next().await {
                    assert_eq!((told, seen), (number, id));
                    assert_eq!(current(), None, "only while it is polled");
                    tokens += 1;
                }
                assert_eq!(tokens, 20);
            }));
        }
        for body in bodies {
            runtime.block_on(body).expect("no panic");
        }
        common::assert_nothing_is_current_on(&runtime, 4);
        epochs
    });
    assert_eq!(epochs.len(), REQUESTS);
    for epoch in epochs {
        let once = Handoffs {
            sent: 1,
            received: 1,
            abandoned: 0,
        };
        assert_eq!(report.handoffs(epoch, CarrierKind::Stream), once);
        assert_eq!(report.retired(epoch), Some(RetiredAs::Done));
    }
    assert_eq!(report.misuses(), []);
}

#[test]
fn given_by_value_it_is_cancelled_unless_it_came_to_its_end() {
    for (polls, expected) in [
        (0, RetiredAs::Cancelled),
        (2, RetiredAs::Cancelled),
        (4, RetiredAs::Done),
    ] {
        let (epoch, report) = recorded(|_| {
            let epoch = Epoch::declare("request");
            let id = epoch.id();
            let log = Log::default();
            let mut tokens = lineage_tokio::StreamExt::in_epoch(Socket::new(&log), epoch);
            assert_eq!(tokens.epoch().id(), id);
            assert_eq!(tokens.size_hint(), (3, Some(3)));
            for poll in 1..=polls {
                let item = (poll <= 3).then_some(poll);
                assert_eq!(next(&mut tokens), Poll::Ready(item));
            }
            drop(tokens);
            assert_eq!(names(&log).len(), polls as usize + 1);
            assert_eq!(names(&log).last(), Some(&"drop"));
            assert_all_in(&log, id);
            id.expect("recording is on")
        });
        assert_eq!(report.retired(epoch), Some(expected), "after {polls} polls");
        let received = usize::from(polls > 0);
        let handoffs = Handoffs {
            sent: 1,
            received,
            abandoned: 1 - received,
        };
        assert_eq!(report.handoffs(epoch, CarrierKind::Stream), handoffs);
    }
}

#[test]
fn all_four_polls_of_a_sink() {
    for closed in [true, false] {
        let (epoch, report) = recorded(|_| {
            let epoch = Epoch::declare("request");
            let id = epoch.id();
            let log = Log::default();
            let mut sink = lineage_tokio::SinkExt::in_epoch(Socket::new(&log), epoch);
            futures_executor::block_on(async {
                sink.send(7).await.expect("it cannot fail");
                if closed {
                    sink.close().await.expect("it cannot fail");
                }
            });
            drop(sink);
            let mut expected = vec!["poll_ready", "start_send", "poll_flush"];
            expected.extend(closed.then_some("poll_close"));
            expected.push("drop");
            assert_eq!(names(&log), expected);
            assert_all_in(&log, id);
            id.expect("recording is on")
        });
        let how = if closed {
            RetiredAs::Done
        } else {
            RetiredAs::Cancelled
        };
        assert_eq!(report.retired(epoch), Some(how));
    }
}

#[test]
fn what_is_both_stays_both() {
    let ((), report) = recorded(|_| {
        let epoch = Epoch::declare("request");
        let log = Log::default();
        let mut socket: InEpoch<Socket> =
            lineage_tokio::StreamExt::in_epoch(Socket::new(&log), &epoch);
        futures_executor::block_on(async {
            assert_eq!(socket.next().await, Some(1));
            socket.send(7).await.expect("it cannot fail");
            assert_eq!(socket.next().await, Some(2));
        });
        drop(socket);
        assert_all_in(&log, epoch.id());
        assert_eq!(names(&log).len(), 6);
    });
    assert_eq!(report.misuses(), []);
}

#[test]
fn one_that_knows_its_end_still_tells() {
    let ((), _) = recorded(|_| {
        let epoch = Epoch::declare("request");
        let mut tokens = lineage_tokio::StreamExt::in_epoch(stream::iter([1]).fuse(), &epoch);
        assert!(!tokens.is_terminated());
        assert_eq!(next(&mut tokens), Poll::Ready(Some(1)));
        assert_eq!(next(&mut tokens), Poll::Ready(None));
        assert!(tokens.is_terminated());
        let without = lineage_tokio::StreamExt::in_current_epoch(stream::iter([1]));
        assert!(without.epoch().is_inert());
    });
}
