//! Closures that somebody else calls: a queue of callbacks, and the driver.

use std::sync::{Arc, mpsc};

use launch_lineage::fault::FaultCode;
use launch_lineage::{Carried, SendCarried as _, carried_fn};
use tokio::sync::oneshot;

use super::USUAL;
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::mutation::Shows;
use crate::request::{Request, Work};

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "a queue of closures",
        write: "carried_fn(callback)",
        run: queued,
        ..USUAL
    },
    Carrier {
        name: "cuLaunchHostFunc",
        write: "carried_fn(callback), and in it send_carried(job)",
        run: called_back,
        mutations: [
            Shows::Live(&[FaultCode::L01]),
            Shows::CannotBe("the driver calls back on a thread on which nobody launches"),
            Shows::NeedsTruth,
        ],
        ..USUAL
    },
];

type Callback = Box<dyn FnOnce() + Send>;

/// Threads that call whatever they are given.
fn queued(cell: &Cell) {
    let engines = (0..cell.column.threads()).map(|_| {
        let (queue, callbacks) = mpsc::channel::<Callback>();
        let engine = cell.engine(move || callbacks.into_iter().for_each(|callback| callback()));
        (queue, engine)
    });
    let (queues, engines): (Vec<_>, Vec<_>) = engines.unzip();
    let queues: Arc<[mpsc::Sender<Callback>]> = queues.into();
    cell.runtime().callers(move |request| {
        let queues = Arc::clone(&queues);
        async move {
            let queue = &queues[(request.number() as usize).div_ceil(2) % queues.len()];
            let Request { epoch, work, .. } = request;
            let (done, is_done) = oneshot::channel();
            let callback = move || {
                work.launch();
                work.launch();
                let _ = done.send(());
            };
            let callback: Callback = if request.forgotten {
                Box::new(callback)
            } else {
                epoch.run(|| Box::new(carried_fn(callback)))
            };
            assert!(queue.send(callback).is_ok(), "the engine lives");
            is_done.await.expect("the engine answers");
        }
    });
    for engine in engines {
        engine.join().expect("the engine does not panic");
    }
}

/// The device calls back when a kernel is done. The callback may not launch: it sends what comes
/// next to an engine.
fn called_back(cell: &Cell) {
    type Job = (Work, oneshot::Sender<()>);
    let (queue, jobs) = mpsc::channel::<Carried<Job>>();
    let engine = cell.engine(move || {
        for job in jobs {
            let ((work, done), epoch) = job.open();
            epoch.run(|| work.launch());
            let _ = done.send(());
        }
    });
    cell.runtime().callers(move |request| {
        let queue = queue.clone();
        async move {
            let Request { epoch, work, .. } = request;
            epoch.run(|| work.launch());
            let (gpu, next) = (Arc::clone(work.gpu()), work.part());
            let (done, is_done) = oneshot::channel();
            let callback = move || {
                let _ = queue.send_carried((next, done));
            };
            let asked = if request.forgotten {
                gpu.call_back(callback)
            } else {
                gpu.call_back(epoch.run(|| carried_fn(callback)))
            };
            asked.expect("the driver takes it");
            is_done.await.expect("the engine answers");
        }
    });
    engine.join().expect("the engine does not panic");
}
