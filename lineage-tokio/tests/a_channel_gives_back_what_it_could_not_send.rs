//! `send_carried` is the channel's own `send` of a value in an envelope: it arrives with the epoch
//! that was current at the call, and what could not be sent comes back as the value it was, its
//! handoff abandoned.
#![cfg(feature = "record")]

mod common;

use std::sync::mpsc as std_mpsc;

use common::{Handoffs, Recorded, current, recorded, runtime};
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::{CarrierKind, Event};
use lineage_tokio::{
    Carried, FutureExt as _, SendCarried as _, SendCarriedAsync as _, TrySendCarried as _,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

type Job = Carried<u32>;

/// Opens an envelope: its number, and that what is current then is this epoch.
#[track_caller]
fn assert_opens(job: Job, number: u32, epoch: &Epoch) {
    assert_eq!(
        job.run(|number| (number, current())),
        (number, epoch.id()),
        "the number and the epoch that were sent"
    );
}

/// All envelopes of an epoch, and that each was sent from this file.
fn envelopes(report: &Recorded, epoch: LaunchEpoch) -> (usize, usize, usize) {
    for event in report.events() {
        if let Event::Sent(sent) = event {
            let site = sent.site.as_ref().expect("it is known");
            let here = "a_channel_gives_back_what_it_could_not_send.rs";
            assert!(site.file.ends_with(here), "{site}");
        }
    }
    assert_eq!(report.misuses(), []);
    let Handoffs {
        sent,
        received,
        abandoned,
    } = report.handoffs(epoch, CarrierKind::Envelope);
    (sent, received, abandoned)
}

fn recorded_for(body: impl FnOnce(&Epoch)) -> (usize, usize, usize) {
    let (epoch, report) = recorded(|_| {
        let epoch = Epoch::declare("request");
        body(&epoch);
        epoch.id().expect("recording is on")
    });
    envelopes(&report, epoch)
}

#[test]
fn tokio_mpsc() {
    let ends = recorded_for(|epoch| {
        let (queue, mut jobs) = mpsc::channel::<Job>(1);
        runtime(1).block_on(async {
            async { queue.send_carried(1).await.expect("there is room") }
                .in_epoch(epoch)
                .await;
            // What counts is where it is called, and not where it is awaited.
            let waits = epoch.run(|| queue.send_carried(2));
            assert_eq!(
                epoch.run(|| queue.try_send_carried(3)),
                Err(mpsc::error::TrySendError::Full(3))
            );
            let (sent, job) = tokio::join!(waits, jobs.recv());
            sent.expect("it waited for room");
            assert_opens(job.expect("one was sent"), 1, epoch);
            assert_opens(jobs.recv().await.expect("one was sent"), 2, epoch);
            // Given up while it waits for room.
            epoch
                .run(|| queue.try_send_carried(4))
                .expect("there is room");
            drop(epoch.run(|| queue.send_carried(5)));
            assert_opens(jobs.recv().await.expect("one was sent"), 4, epoch);
            drop(jobs);
            let refused = epoch.run(|| queue.send_carried(6)).await;
            assert_eq!(refused, Err(mpsc::error::SendError(6)));
            assert_eq!(
                epoch.run(|| queue.try_send_carried(7)),
                Err(mpsc::error::TrySendError::Closed(7))
            );
        });
    });
    assert_eq!(ends, (7, 3, 4));
}

#[test]
fn tokio_unbounded_and_oneshot() {
    let ends = recorded_for(|epoch| {
        let (queue, mut jobs) = mpsc::unbounded_channel::<Job>();
        epoch.run(|| queue.send_carried(1)).expect("it lives");
        assert_opens(jobs.blocking_recv().expect("one was sent"), 1, epoch);
        drop(jobs);
        let refused = epoch.run(|| queue.send_carried(2));
        assert_eq!(refused, Err(mpsc::error::SendError(2)));

        let (answer, answered) = oneshot::channel::<Job>();
        epoch.run(|| answer.send_carried(3)).expect("it lives");
        assert_opens(answered.blocking_recv().expect("one was sent"), 3, epoch);
        let (answer, answered) = oneshot::channel::<Job>();
        drop(answered);
        assert_eq!(epoch.run(|| answer.send_carried(4)), Err(4));
    });
    assert_eq!(ends, (4, 2, 2));
}

#[test]
fn tokio_broadcast_to_each_its_own() {
    let ends = recorded_for(|epoch| {
        let (queue, mut first) = broadcast::channel::<Job>(4);
        let mut second = queue.subscribe();
        let receivers = epoch.run(|| queue.send_carried(1));
        assert_eq!(receivers.expect("they live"), 2);
        for receiver in [&mut first, &mut second] {
            assert_opens(receiver.try_recv().expect("one was sent"), 1, epoch);
        }
        drop((first, second));
        let refused = epoch.run(|| queue.send_carried(2));
        assert_eq!(refused.expect_err("nobody is there").0, 2);
    });
    // Of the first the channel's own, which nobody opens, and a clone for each receiver.
    assert_eq!(ends, (4, 2, 2));
}

#[test]
fn tokio_watch_abandons_what_is_overwritten() {
    let ends = recorded_for(|epoch| {
        let (latest, watcher) = epoch.run(|| watch::channel(lineage_tokio::carried(0)));
        epoch.run(|| latest.send_carried(1)).expect("it lives");
        let seen = watcher.borrow().clone();
        assert_opens(seen, 1, epoch);
        drop(watcher);
        let refused = epoch.run(|| latest.send_carried(2));
        assert_eq!(refused.expect_err("nobody is there").0, 2);
    });
    assert_eq!(ends, (4, 1, 3));
}

#[test]
fn std_mpsc() {
    let ends = recorded_for(|epoch| {
        let (queue, jobs) = std_mpsc::channel::<Job>();
        epoch.run(|| queue.send_carried(1)).expect("it lives");
        assert_opens(jobs.recv().expect("one was sent"), 1, epoch);
        drop(jobs);
        assert_eq!(
            epoch.run(|| queue.send_carried(2)),
            Err(std_mpsc::SendError(2))
        );

        let (queue, jobs) = std_mpsc::sync_channel::<Job>(1);
        epoch.run(|| queue.send_carried(3)).expect("there is room");
        assert_eq!(
            epoch.run(|| queue.try_send_carried(4)),
            Err(std_mpsc::TrySendError::Full(4))
        );
        assert_opens(jobs.recv().expect("one was sent"), 3, epoch);
        epoch
            .run(|| queue.try_send_carried(5))
            .expect("there is room");
        assert_opens(jobs.recv().expect("one was sent"), 5, epoch);
        drop(jobs);
        assert_eq!(
            epoch.run(|| queue.try_send_carried(6)),
            Err(std_mpsc::TrySendError::Disconnected(6))
        );
        assert_eq!(
            epoch.run(|| queue.send_carried(7)),
            Err(std_mpsc::SendError(7))
        );
    });
    assert_eq!(ends, (7, 3, 4));
}

#[cfg(feature = "crossbeam-channel")]
#[test]
fn crossbeam() {
    use crossbeam_channel::{SendError, TrySendError, bounded};
    let ends = recorded_for(|epoch| {
        let (queue, jobs) = bounded::<Job>(1);
        epoch.run(|| queue.send_carried(1)).expect("there is room");
        let full = epoch.run(|| queue.try_send_carried(2));
        assert_eq!(full, Err(TrySendError::Full(2)));
        assert_opens(jobs.recv().expect("one was sent"), 1, epoch);
        epoch
            .run(|| queue.try_send_carried(3))
            .expect("there is room");
        assert_opens(jobs.recv().expect("one was sent"), 3, epoch);
        drop(jobs);
        assert_eq!(epoch.run(|| queue.send_carried(4)), Err(SendError(4)));
        let closed = epoch.run(|| queue.try_send_carried(5));
        assert_eq!(closed, Err(TrySendError::Disconnected(5)));
    });
    assert_eq!(ends, (5, 2, 3));
}

#[cfg(feature = "flume")]
#[test]
fn flume() {
    use flume::{SendError, TrySendError, bounded};
    let ends = recorded_for(|epoch| {
        let (queue, jobs) = bounded::<Job>(1);
        epoch.run(|| queue.send_carried(1)).expect("there is room");
        let full = epoch.run(|| queue.try_send_carried(2));
        assert_eq!(full, Err(TrySendError::Full(2)));
        assert_opens(jobs.recv().expect("one was sent"), 1, epoch);
        epoch
            .run(|| queue.try_send_carried(3))
            .expect("there is room");
        assert_opens(jobs.recv().expect("one was sent"), 3, epoch);
        drop(jobs);
        assert_eq!(epoch.run(|| queue.send_carried(4)), Err(SendError(4)));
        let closed = epoch.run(|| queue.try_send_carried(5));
        assert_eq!(closed, Err(TrySendError::Disconnected(5)));
    });
    assert_eq!(ends, (5, 2, 3));
}

/// Notes what is current when it is dropped.
struct Notes(std_mpsc::Sender<Option<LaunchEpoch>>);

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = self.0.send(current());
    }
}

#[test]
fn what_nobody_opens_is_dropped_in_its_epoch() {
    let ends = recorded_for(|epoch| {
        let (dropped, seen) = std_mpsc::channel();
        let (queue, jobs) = std_mpsc::channel::<Carried<Notes>>();
        let notes = Notes(dropped);
        assert!(epoch.run(|| queue.send_carried(notes)).is_ok());
        assert_eq!(current(), None);
        drop(jobs);
        assert_eq!(seen.recv(), Ok(epoch.id()));
    });
    assert_eq!(ends, (1, 0, 1));
}
