//! Envelopes, through every channel. An engine takes the jobs and launches them.

use std::sync::Arc;

use launch_lineage::fault::FaultCode;
use launch_lineage::{Carried, Epoch, SendCarried as _, SendCarriedAsync as _, carried_by};
use tokio::sync::{Mutex, broadcast, mpsc, oneshot, watch};

use super::USUAL;
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::mutation::Shows;
use crate::raw;
use crate::request::{Request, Work};

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "tokio mpsc",
        write: SEND,
        run: bounded,
        ..ENVELOPE
    },
    Carrier {
        name: "tokio mpsc, unbounded",
        write: SEND,
        run: unbounded,
        ..ENVELOPE
    },
    Carrier {
        name: "tokio oneshot",
        write: SEND,
        run: |cell| cell.tasks(once),
        ..ENVELOPE
    },
    Carrier {
        name: "tokio broadcast",
        write: SEND,
        run: broadcasts,
        ..ENVELOPE
    },
    Carrier {
        name: "tokio watch",
        write: "send(carried(job)), and there job.open()",
        run: watched,
        ..ENVELOPE
    },
    Carrier {
        name: "std mpsc",
        write: SEND,
        run: standard,
        ..ENVELOPE
    },
    Carrier {
        name: "std mpsc, bounded",
        write: SEND,
        run: standard_bounded,
        ..ENVELOPE
    },
    Carrier {
        name: "crossbeam-channel",
        write: SEND,
        run: crossbeam,
        ..ENVELOPE
    },
    Carrier {
        name: "flume",
        write: SEND,
        run: flumes,
        ..ENVELOPE
    },
];

const SEND: &str = "send_carried(job), and there job.open()";

/// A job that is taken out of its envelope is a handoff that was never received.
const ENVELOPE: Carrier = Carrier {
    mutations: [
        Shows::Live(&[FaultCode::L01, FaultCode::L05]),
        Shows::Live(&[FaultCode::L05, FaultCode::W07]),
        Shows::NeedsTruth,
    ],
    ..USUAL
};

/// What goes through a channel.
struct Job {
    work: Work,
    forgotten: bool,
    done: oneshot::Sender<()>,
}

/// A request's epoch, its job, and what tells that it is done.
fn job(request: Request) -> (Epoch, Job, oneshot::Receiver<()>) {
    let (done, is_done) = oneshot::channel();
    let Request {
        epoch,
        work,
        forgotten,
    } = request;
    (
        epoch,
        Job {
            work,
            forgotten,
            done,
        },
        is_done,
    )
}

/// The engine's part.
fn serve(job: Carried<Job>) {
    let done = if job.payload().forgotten {
        let job = job.into_payload();
        launch(&job.work);
        job.done
    } else {
        let (job, epoch) = job.open();
        epoch.run(|| launch(&job.work));
        job.done
    };
    let _ = done.send(());
}

fn launch(work: &Work) {
    work.launch();
    work.launch();
}

/// One of several engines: the same one for both requests of a pair.
fn choose<T>(engines: &[T], request: &Request) -> usize {
    (request.number() as usize).div_ceil(2) % engines.len()
}

fn bounded(cell: &Cell) {
    let tokio = cell.runtime();
    let engines = (0..cell.column.threads()).map(|_| {
        let (queue, mut jobs) = mpsc::channel(4);
        tokio.engine(async move {
            while let Some(job) = jobs.recv().await {
                serve(job);
            }
        });
        queue
    });
    let engines: Arc<[mpsc::Sender<Carried<Job>>]> = engines.collect();
    tokio.callers(move |request| {
        let engines = Arc::clone(&engines);
        async move {
            let engine = choose(&engines, &request);
            let (epoch, job, is_done) = job(request);
            let sent = epoch.run(|| engines[engine].send_carried(job)).await;
            assert!(sent.is_ok(), "the engine lives");
            is_done.await.expect("the engine answers");
        }
    });
}

fn unbounded(cell: &Cell) {
    let tokio = cell.runtime();
    let engines = (0..cell.column.threads()).map(|_| {
        let (queue, mut jobs) = mpsc::unbounded_channel();
        tokio.engine(async move {
            while let Some(job) = jobs.recv().await {
                serve(job);
            }
        });
        queue
    });
    let engines: Arc<[mpsc::UnboundedSender<Carried<Job>>]> = engines.collect();
    tokio.callers(move |request| {
        let engines = Arc::clone(&engines);
        async move {
            let engine = choose(&engines, &request);
            let (epoch, job, is_done) = job(request);
            let sent = epoch.run(|| engines[engine].send_carried(job));
            assert!(sent.is_ok(), "the engine lives");
            is_done.await.expect("the engine answers");
        }
    });
}

/// To a task that waits for just this one job.
async fn once(request: Request) {
    let (sender, receiver) = oneshot::channel();
    let engine = raw::spawn(async move {
        serve(receiver.await.expect("the job is sent"));
    });
    let (epoch, job, is_done) = job(request);
    let sent = epoch.run(|| sender.send_carried(job));
    assert!(sent.is_ok(), "the engine lives");
    is_done.await.expect("the engine answers");
    engine.await.expect("the engine does not panic");
}

/// Every engine gets every job.
fn broadcasts(cell: &Cell) {
    struct ForAll {
        work: Work,
        forgotten: bool,
        done: mpsc::UnboundedSender<()>,
    }
    let tokio = cell.runtime();
    let (queue, _) = broadcast::channel::<Carried<Arc<ForAll>>>(64);
    let engines = 2;
    for _ in 0..engines {
        let mut jobs = queue.subscribe();
        tokio.engine(async move {
            while let Ok(job) = jobs.recv().await {
                let job = if job.payload().forgotten {
                    let job = job.into_payload();
                    launch(&job.work);
                    job
                } else {
                    let (job, epoch) = job.open();
                    epoch.run(|| launch(&job.work));
                    job
                };
                let _ = job.done.send(());
            }
        });
    }
    tokio.callers(move |request| {
        let queue = queue.clone();
        async move {
            let (done, mut is_done) = mpsc::unbounded_channel();
            let Request {
                epoch,
                work,
                forgotten,
            } = request;
            let job = Arc::new(ForAll {
                work,
                forgotten,
                done,
            });
            let sent = epoch.run(|| queue.send_carried(job));
            assert!(sent.is_ok(), "the engines live");
            for _ in 0..engines {
                is_done.recv().await.expect("the engines answer");
            }
        }
    });
}

/// The newest value. A caller waits until its own was taken, so none is overwritten before.
fn watched(cell: &Cell) {
    type Newest = Option<Carried<Arc<std::sync::Mutex<Option<Job>>>>>;
    let tokio = cell.runtime();
    let engines = (0..cell.column.threads()).map(|_| {
        let (sender, mut newest) = watch::channel::<Newest>(None);
        tokio.engine(async move {
            while newest.changed().await.is_ok() {
                // A clone: one more handoff. The channel keeps its own until it is overwritten.
                let Some(value) = newest.borrow_and_update().clone() else {
                    continue;
                };
                let job = value.payload().lock().expect("nobody panics").take();
                let Some(job) = job else { continue };
                if job.forgotten {
                    value.into_payload();
                    launch(&job.work);
                } else {
                    let (_, epoch) = value.open();
                    epoch.run(|| launch(&job.work));
                }
                let _ = job.done.send(());
            }
        });
        Mutex::new(sender)
    });
    let engines: Arc<[Mutex<watch::Sender<Newest>>]> = engines.collect();
    tokio.callers(move |request| {
        let engines = Arc::clone(&engines);
        async move {
            let engine = choose(&engines, &request);
            let (epoch, job, is_done) = job(request);
            let job = carried_by(&epoch, Arc::new(std::sync::Mutex::new(Some(job))));
            let turn = engines[engine].lock().await;
            turn.send_replace(Some(job));
            is_done.await.expect("the engine answers");
        }
    });
}

/// Engines are threads of their own, the callers are tasks.
fn standard(cell: &Cell) {
    let engines = (0..cell.column.threads()).map(|_| {
        let (queue, jobs) = std::sync::mpsc::channel();
        (queue, cell.engine(move || jobs.into_iter().for_each(serve)))
    });
    let (queues, engines): (Vec<_>, Vec<_>) = engines.unzip();
    let queues: Arc<[std::sync::mpsc::Sender<Carried<Job>>]> = queues.into();
    cell.runtime().callers(move |request| {
        let queues = Arc::clone(&queues);
        async move {
            let engine = choose(&queues, &request);
            let (epoch, job, is_done) = job(request);
            let sent = epoch.run(|| queues[engine].send_carried(job));
            assert!(sent.is_ok(), "the engine lives");
            is_done.await.expect("the engine answers");
        }
    });
    for engine in engines {
        engine.join().expect("the engine does not panic");
    }
}

/// The callers are threads as well, and wait where the queue is full.
fn standard_bounded(cell: &Cell) {
    let engines = (0..cell.column.threads()).map(|_| {
        let (queue, jobs) = std::sync::mpsc::sync_channel(1);
        (queue, cell.engine(move || jobs.into_iter().for_each(serve)))
    });
    let (queues, engines): (Vec<std::sync::mpsc::SyncSender<Carried<Job>>>, Vec<_>) =
        engines.unzip();
    cell.threads(|request| {
        let engine = choose(&queues, &request);
        let (epoch, job, is_done) = job(request);
        let sent = epoch.run(|| queues[engine].send_carried(job));
        assert!(sent.is_ok(), "the engine lives");
        is_done.blocking_recv().expect("the engine answers");
    });
    drop(queues);
    for engine in engines {
        engine.join().expect("the engine does not panic");
    }
}

/// Engines that share one queue.
fn crossbeam(cell: &Cell) {
    let (queue, jobs) = crossbeam_channel::bounded::<Carried<Job>>(4);
    let engines = (0..cell.column.threads()).map(|_| {
        let jobs = jobs.clone();
        cell.engine(move || jobs.into_iter().for_each(serve))
    });
    let engines: Vec<_> = engines.collect();
    cell.threads(|request| {
        let (epoch, job, is_done) = job(request);
        let sent = epoch.run(|| queue.send_carried(job));
        assert!(sent.is_ok(), "an engine lives");
        is_done.blocking_recv().expect("an engine answers");
    });
    drop(queue);
    for engine in engines {
        engine.join().expect("the engine does not panic");
    }
}

/// Engines are tasks that share one queue.
fn flumes(cell: &Cell) {
    let tokio = cell.runtime();
    let (queue, jobs) = flume::unbounded::<Carried<Job>>();
    for _ in 0..cell.column.threads() {
        let jobs = jobs.clone();
        tokio.engine(async move {
            while let Ok(job) = jobs.recv_async().await {
                serve(job);
            }
        });
    }
    tokio.callers(move |request| {
        let queue = queue.clone();
        async move {
            let (epoch, job, is_done) = job(request);
            let sent = epoch.run(|| queue.send_carried(job));
            assert!(sent.is_ok(), "an engine lives");
            is_done.await.expect("an engine answers");
        }
    });
}
