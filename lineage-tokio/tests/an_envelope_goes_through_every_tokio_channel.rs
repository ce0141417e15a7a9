//! `carried(value)` is a value: it goes through any channel, and its epoch comes out at the other
//! end. The number in each value is the truth, and it travels as data.
#![cfg(feature = "record")]

mod common;

use std::collections::HashMap;
use std::sync::Arc;

use common::{Handoffs, current, recorded, runtime};
use lineage_core::id::{HostNanos, LaunchEpoch};
use lineage_core::observation::{CarrierKind, Event};
use lineage_core::{Epoch, HasEpoch as _};
use lineage_tokio::{Carried, FutureExt as _, carried, carried_by};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

const JOBS: usize = 100;

/// What was declared, by the number that travels in the value.
type Truth = HashMap<usize, LaunchEpoch>;

/// One request per number, each of which hands its number to `send` in a task of its own.
async fn requests<F, Fut>(send: F) -> Truth
where
    F: Fn(usize) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let mut truth = Truth::new();
    let mut tasks = Vec::new();
    for number in 0..JOBS {
        let epoch = Epoch::declare("request");
        truth.insert(number, epoch.id().expect("recording is on"));
        tasks.push(tokio::spawn(send(number).in_epoch(epoch)));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    truth
}

fn assert_each_was(report: &common::Recorded, truth: &Truth, expected: (usize, usize, usize)) {
    assert_eq!(truth.len(), JOBS);
    let (sent, received, abandoned) = expected;
    for epoch in truth.values() {
        let handoffs = report.handoffs(*epoch, CarrierKind::Envelope);
        assert_eq!(
            handoffs,
            Handoffs {
                sent,
                received,
                abandoned
            }
        );
    }
    assert_eq!(report.misuses(), []);
}

#[test]
fn mpsc_to_a_thread() {
    let (truth, report) = recorded(|_| {
        runtime(4).block_on(async {
            let (queue, mut jobs) = mpsc::channel::<Carried<usize>>(8);
            let engine = std::thread::spawn(move || {
                let mut seen = Truth::new();
                while let Some(job) = jobs.blocking_recv() {
                    let (number, epoch) = job.run(|number| (number, current()));
                    seen.insert(number, epoch.expect("an epoch is current"));
                    assert_eq!(current(), None);
                }
                seen
            });
            let truth = requests(|number| {
                let queue = queue.clone();
                async move {
                    tokio::task::yield_now().await;
                    queue.send(carried(number)).await.expect("the engine lives");
                }
            })
            .await;
            drop(queue);
            assert_eq!(engine.join().expect("no panic"), truth);
            truth
        })
    });
    assert_each_was(&report, &truth, (1, 1, 0));
}

#[test]
fn std_mpsc_and_an_envelope_that_is_opened_and_launched_by_hand() {
    let (truth, report) = recorded(|_| {
        runtime(2).block_on(async {
            let (queue, jobs) = std::sync::mpsc::sync_channel::<Carried<usize>>(JOBS);
            let truth = requests(|number| {
                let queue = queue.clone();
                async move { queue.send(carried(number)).expect("the receiver lives") }
            })
            .await;
            drop(queue);
            for job in jobs {
                let told = job.epoch();
                let (number, epoch) = job.open();
                assert_eq!(told, Some(truth[&number]));
                assert_eq!(epoch.launch(current), Some(truth[&number]));
            }
            truth
        })
    });
    assert_each_was(&report, &truth, (1, 1, 0));
}

#[test]
fn oneshot() {
    let (truth, report) = recorded(|_| {
        runtime(2).block_on(async {
            let (ends, mut receivers) = mpsc::unbounded_channel::<oneshot::Receiver<_>>();
            let truth = requests(|number| {
                let ends = ends.clone();
                async move {
                    let (send, receive) = oneshot::channel();
                    ends.send(receive).expect("the test lives");
                    send.send(carried(number))
                        .expect("the receiver is on its way");
                }
            })
            .await;
            drop(ends);
            while let Some(receiver) = receivers.recv().await {
                let job: Carried<usize> = receiver.await.expect("one was sent");
                let (number, seen) = job.run(|number| (number, current()));
                assert_eq!(seen, Some(truth[&number]));
            }
            truth
        })
    });
    assert_each_was(&report, &truth, (1, 1, 0));
}

#[test]
fn broadcast_to_two_receivers_is_one_handoff_for_each() {
    let (truth, report) = recorded(|_| {
        runtime(2).block_on(async {
            let (queue, first) = broadcast::channel::<Carried<usize>>(JOBS);
            let second = queue.subscribe();
            let truth = requests(|number| {
                let queue = queue.clone();
                async move {
                    assert!(queue.send(carried(number)).is_ok(), "the receivers live");
                }
            })
            .await;
            drop(queue);
            for mut receiver in [first, second] {
                let mut seen = Truth::new();
                while let Ok(job) = receiver.recv().await {
                    let (number, epoch) = job.run(|number| (number, current()));
                    seen.insert(number, epoch.expect("an epoch is current"));
                }
                assert_eq!(seen, truth);
            }
            truth
        })
    });
    // The channel's own copy, which nobody opens, and a clone for each receiver.
    assert_each_was(&report, &truth, (3, 2, 1));
}

#[test]
fn watch_lets_one_look_and_clone() {
    let (epochs, report) = recorded(|_| {
        runtime(2).block_on(async {
            let (one, other) = (Epoch::declare("one"), Epoch::declare("other"));
            let (publish, latest) = watch::channel(carried_by(&one, 1));
            assert_eq!(*latest.borrow().payload(), 1);
            assert_eq!(latest.borrow().epoch(), one.id());
            let job = latest.borrow().clone();
            assert_eq!(job.run(|number| (number, current())), (1, one.id()));
            publish
                .send(carried_by(&other, 2))
                .expect("a receiver lives");
            let job = latest.borrow().clone();
            assert_eq!(job.run(|number| (number, current())), (2, other.id()));
            [one.id(), other.id()].map(|id| id.expect("recording is on"))
        })
    });
    for epoch in epochs {
        let handoffs = report.handoffs(epoch, CarrierKind::Envelope);
        assert_eq!(
            handoffs,
            Handoffs {
                sent: 2,
                received: 1,
                abandoned: 1
            }
        );
    }
}

#[test]
fn a_batch_merges_what_its_envelopes_carry() {
    let ((batch, members), report) = recorded(|_| {
        let owners: Vec<_> = (0..3).map(|_| Epoch::declare("request")).collect();
        let jobs: Vec<_> = (0..3)
            .map(|number| carried_by(&owners[number], number))
            .collect();
        let batch = Epoch::merge(&jobs);
        batch.launch(|| assert_eq!(current(), batch.id()));
        for (number, job) in jobs.into_iter().enumerate() {
            assert_eq!(
                job.run(|told| (told, current())),
                (number, owners[number].id())
            );
        }
        let members: Vec<_> = owners.iter().filter_map(Epoch::id).collect();
        (batch.id().expect("recording is on"), members)
    });
    let mut linked: Vec<_> = report
        .links()
        .into_iter()
        .map(|(epoch, from, kind)| {
            assert_eq!(
                (epoch, kind),
                (batch, lineage_core::observation::LinkKind::Merge)
            );
            from
        })
        .collect();
    linked.sort();
    assert_eq!(linked, members);
}

#[test]
fn an_envelope_ends_received_abandoned_or_forgotten() {
    let (epochs, report) = recorded(|_| {
        let owners: [Epoch; 4] = std::array::from_fn(|_| Epoch::declare("request"));
        // Received, after its value was changed and exchanged on the way.
        let mut job = carried_by(&owners[0], 20);
        *job.payload_mut() += 1;
        let job = job.map(|number| number * 2);
        assert_eq!(job.payload(), &42);
        assert_eq!(job.run(|number| (number, current())), (42, owners[0].id()));
        // Abandoned: the receiver went away, and the value's destructor ran.
        let value = Arc::new(());
        let (queue, jobs) = std::sync::mpsc::channel();
        queue
            .send(carried_by(&owners[1], value.clone()))
            .expect("the receiver lives");
        drop(jobs);
        assert_eq!(Arc::strong_count(&value), 1);
        // Refused: the envelope comes back in the error, and is dropped with it.
        assert!(queue.send(carried_by(&owners[2], value)).is_err());
        // Forgotten.
        assert_eq!(carried_by(&owners[3], 7).into_payload(), 7);
        owners.map(|owner| owner.id().expect("recording is on"))
    });
    let ends = epochs.map(|epoch| {
        let Handoffs {
            sent,
            received,
            abandoned,
        } = report.handoffs(epoch, CarrierKind::Envelope);
        (sent, received, abandoned)
    });
    assert_eq!(ends, [(1, 1, 0), (1, 0, 1), (1, 0, 1), (1, 0, 0)]);
}

#[test]
fn an_envelope_keeps_its_epoch_alive_and_one_without_an_epoch_is_just_a_value() {
    let (epoch, report) = recorded(|_| {
        let epoch = Epoch::declare("request");
        let id = epoch.id().expect("recording is on");
        let job = epoch.run(|| carried("prompt"));
        drop(epoch);
        let far = std::thread::spawn(move || job.run(|_| current()));
        assert_eq!(far.join().expect("no panic"), Some(id));
        let job = carried("prompt");
        assert_eq!(job.epoch(), None);
        assert_eq!(job.run(|prompt| (prompt, current())), ("prompt", None));
        id
    });
    let at = |pick: &dyn Fn(&Event) -> Option<HostNanos>| report.events().find_map(pick);
    let received = at(&|event| match event {
        Event::Received(received) => Some(received.at),
        _ => None,
    });
    let retired = at(&|event| match event {
        Event::Retired(retired) if retired.epoch == epoch => Some(retired.at),
        _ => None,
    });
    assert!(received.expect("it was opened") <= retired.expect("nobody holds it"));
}
