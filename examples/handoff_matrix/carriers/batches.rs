//! N requests in one batch: the launch is for all of them.

use std::sync::Arc;

use launch_lineage::fault::FaultCode;
use launch_lineage::{Carried, Epoch, carried_by};
use tokio::sync::{mpsc, oneshot};

use super::USUAL;
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::mutation::Shows;
use crate::request::{Request, Work};

pub(super) const CARRIERS: &[Carrier] = &[Carrier {
    name: "a batch of envelopes",
    write: "Epoch::merge(&jobs)",
    mutations: [
        Shows::Live(&[FaultCode::L05]),
        Shows::CannotBe("the engine enters the batch, so what lies below does not matter"),
        Shows::NeedsTruth,
    ],
    run: batched,
    ..USUAL
}];

struct Job {
    work: Work,
    forgotten: bool,
    done: oneshot::Sender<()>,
}

/// As many as are there.
const MOST: usize = 4;

fn batched(cell: &Cell) {
    let tokio = cell.runtime();
    let engines = (0..cell.column.threads()).map(|_| {
        let (queue, mut jobs) = mpsc::channel(MOST);
        tokio.engine(async move {
            let mut batch = Vec::new();
            while jobs.recv_many(&mut batch, MOST).await > 0 {
                serve(std::mem::take(&mut batch));
            }
        });
        queue
    });
    let engines: Arc<[mpsc::Sender<Carried<Job>>]> = engines.collect();
    tokio.callers(move |request| {
        let engines = Arc::clone(&engines);
        async move {
            let engine = request.number() as usize % engines.len();
            let Request {
                epoch,
                work,
                forgotten,
            } = request;
            let (done, is_done) = oneshot::channel();
            let job = carried_by(
                &epoch,
                Job {
                    work,
                    forgotten,
                    done,
                },
            );
            assert!(engines[engine].send(job).await.is_ok(), "the engine lives");
            is_done.await.expect("the engine answers");
        }
    });
}

fn serve(jobs: Vec<Carried<Job>>) {
    let works: Vec<&Work> = jobs.iter().map(|job| &job.payload().work).collect();
    let Some(work) = Work::batch(&works) else {
        return;
    };
    // The mutation leaves a request's epoch behind.
    let members = jobs.iter().filter(|job| !job.payload().forgotten);
    let launches = || {
        work.launch();
        work.launch();
    };
    Epoch::merge(members).run(launches);
    for job in jobs {
        let job = if job.payload().forgotten {
            job.into_payload()
        } else {
            job.open().0
        };
        let _ = job.done.send(());
    }
}
