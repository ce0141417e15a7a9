//! `in_epoch` on an executor that lineage has never heard of: every poll is in its epoch, on
//! whichever thread, and so is the drop; and the epoch is known to have come to each thread that
//! polled.
#![cfg(feature = "record")]

mod common;

use std::collections::{HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use lineage_core::carrier::Resumable;
use lineage_core::future::FutureExt as _;
use lineage_core::observation::{CarrierKind, RetiredAs};
use lineage_core::{Attribution, Epoch, LaunchEpoch, current};

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task of the smallest executor there is: threads that take woken tasks from one queue.
struct Task {
    future: Mutex<Option<Boxed>>,
    queue: Sender<Arc<Task>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let queue = self.queue.clone();
        let _ = queue.send(self);
    }
}

fn spawn(queue: &Sender<Arc<Task>>, future: impl Future<Output = ()> + Send + 'static) {
    let task = Arc::new(Task {
        future: Mutex::new(Some(Box::pin(future))),
        queue: queue.clone(),
    });
    task.wake();
}

/// Polls what is in the queue until `tasks` have ended.
fn work(queue: &Mutex<Receiver<Arc<Task>>>, left: &Mutex<usize>) {
    loop {
        if *left.lock().expect("no panic") == 0 {
            return;
        }
        let next = queue.lock().expect("no panic").try_recv();
        let Ok(task) = next else {
            std::thread::yield_now();
            continue;
        };
        let waker = Waker::from(task.clone());
        let mut place = task.future.lock().expect("no panic");
        let Some(mut future) = place.take() else {
            continue;
        };
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => *place = Some(future),
            Poll::Ready(()) => *left.lock().expect("no panic") -= 1,
        }
        assert_eq!(current(), Attribution::None, "an epoch leaked");
    }
}

fn yield_now() -> impl Future<Output = ()> {
    let mut yielded = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Notes what is current when it is dropped.
struct Notes(Sender<(usize, Option<LaunchEpoch>)>, usize);

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = self.0.send((self.1, current().epoch()));
    }
}

const REQUESTS: usize = 40;
const POLLS: usize = 20;

#[test]
fn every_poll_and_the_drop_are_in_the_epoch_wherever_they_are() {
    let lineage = common::session().start().expect("a session");
    let (queue, tasks) = channel();
    let (dropped, seen_at_drop) = channel();
    let polled_on = Arc::new(Mutex::new(HashSet::new()));
    let mut truth = HashMap::new();
    for number in 0..REQUESTS {
        let epoch = Epoch::declare("request");
        let expected = epoch.id().expect("recording is on");
        truth.insert(number, expected);
        let (notes, polled_on) = (Notes(dropped.clone(), number), polled_on.clone());
        let body = async move {
            let _notes = notes;
            for poll in 1..=POLLS {
                assert_eq!(current().epoch(), Some(expected));
                let here = (expected.id, std::thread::current().id());
                polled_on.lock().expect("no panic").insert(here);
                if poll < POLLS {
                    yield_now().await;
                }
            }
        };
        // By the wrapper, and by a poll function of one's own.
        if number % 2 == 0 {
            spawn(&queue, body.in_epoch(epoch));
        } else {
            let (work, mut body) = (
                Resumable::new(epoch, CarrierKind::Future),
                Box::pin(body) as Boxed,
            );
            spawn(
                &queue,
                poll_fn(move |context| work.run(|| body.as_mut().poll(context))),
            );
        }
    }
    let (tasks, left) = (Mutex::new(tasks), Mutex::new(REQUESTS));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| work(&tasks, &left));
        }
    });
    // One that nobody polls to its end.
    let given_up = Epoch::declare("given up");
    let given_up_id = given_up.id().expect("recording is on");
    let notes = Notes(dropped.clone(), REQUESTS);
    let never_done = async move {
        let _notes = notes;
        std::future::pending().await
    };
    let mut future: Boxed = Box::pin(never_done.in_epoch(given_up));
    let poll = |future: &mut Boxed| {
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert!(future.as_mut().poll(&mut context).is_pending());
    };
    poll(&mut future);
    let elsewhere = std::thread::spawn(move || {
        poll(&mut future);
        future
    });
    drop(elsewhere.join().expect("no panic"));
    truth.insert(REQUESTS, given_up_id);
    drop(dropped);
    for (number, seen) in seen_at_drop {
        if number % 2 == 0 {
            assert_eq!(seen, Some(truth[&number]), "dropped elsewhere");
        }
    }
    let report = common::end(lineage);

    assert_eq!(events!(report, Misuse).len(), 0);
    let received = events!(report, Received);
    let arrivals: HashSet<_> = received
        .iter()
        .map(|it| (it.handoff.epoch.id, it.thread))
        .collect();
    let polled_on = polled_on.lock().expect("no panic");
    assert_eq!(
        arrivals.len(),
        polled_on.len() + 2,
        "each thread that polled it, and the two that polled the one that was given up"
    );
    let sent = events!(report, Sent);
    assert_eq!(sent.len(), received.len(), "each crossing has both ends");
    let cancelled: Vec<_> = events!(report, Retired)
        .into_iter()
        .filter(|it| it.how == RetiredAs::Cancelled)
        .map(|it| it.epoch)
        .collect();
    assert_eq!(cancelled, [given_up_id]);
}
