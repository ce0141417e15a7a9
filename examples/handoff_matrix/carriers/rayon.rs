//! Jobs of a work-stealing pool. A thread that waits for one job runs others meanwhile.
//!
//! The baselines are given what they have in programs of today: the request's span is entered, and
//! its thread-local set, inside the pool as well.

use std::thread::JoinHandle;

use lineage_rayon::{ParallelIteratorExt as _, ThreadPoolExt as _};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::USUAL;
use crate::baseline;
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::request::{Request, Work};

pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        name: "rayon join",
        write: "lineage_rayon::join(one, two)",
        run: |cell| in_pool(cell, joined, joined_plainly),
        ..USUAL
    },
    Carrier {
        name: "rayon scope",
        write: "lineage_rayon::scope(|scope| scope.spawn(…))",
        run: |cell| in_pool(cell, scoped, scoped_plainly),
        ..USUAL
    },
    Carrier {
        name: "rayon par_iter",
        write: "items.par_iter().in_current_epoch()",
        run: |cell| in_pool(cell, iterated, iterated_plainly),
        ..USUAL
    },
    Carrier {
        name: "rayon install",
        write: "pool.install_in_epoch(work)",
        run: |cell| in_pool(cell, launched, launched),
        ..USUAL
    },
    Carrier {
        name: "rayon spawn",
        write: "pool.spawn_in_epoch(work)",
        run: spawned,
        ..USUAL
    },
    Carrier {
        name: "rayon broadcast",
        write: "pool.broadcast_in_epoch(work)",
        run: broadcast,
        ..USUAL
    },
];

/// How many items a request has.
const ITEMS: usize = 8;

/// A pool of the column's size, whose threads are looked at when they end.
struct Pool {
    pool: ThreadPool,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    fn new(cell: &Cell) -> Self {
        let mut threads = Vec::new();
        let builder = ThreadPoolBuilder::new().num_threads(cell.column.threads());
        let pool = builder.spawn_handler(|thread| {
            threads.push(cell.engine(|| thread.run()));
            Ok(())
        });
        let pool = pool.build().expect("a pool can be made");
        Self { pool, threads }
    }

    fn end(self) {
        drop(self.pool);
        for thread in self.threads {
            thread.join().expect("no job panics");
        }
    }
}

/// Callers install their requests into one pool, where they go on as `work` says; a forgotten one
/// with what rayon itself has.
fn in_pool(cell: &Cell, work: fn(&Work), forgotten: fn(&Work)) {
    let pool = Pool::new(cell);
    cell.threads(|request| {
        let number = request.number();
        if request.forgotten {
            let request = &request;
            pool.pool
                .install(|| baseline::here(number, || forgotten(&request.work)));
        } else {
            let Request {
                epoch, work: of, ..
            } = &request;
            epoch.run(|| {
                pool.pool
                    .install_in_epoch(|| baseline::here(number, || work(of)))
            });
        }
    });
    pool.end();
}

/// One item: it is prepared, which takes a while, and launched.
fn item(work: &Work) {
    std::thread::sleep(std::time::Duration::from_micros(5));
    work.launch();
}

fn launched(work: &Work) {
    item(work);
    work.launch();
}

fn joined(work: &Work) {
    fn halve(work: &Work, items: usize) {
        if items <= 1 {
            return item(work);
        }
        lineage_rayon::join(|| halve(work, items / 2), || halve(work, items / 2));
    }
    halve(work, ITEMS);
    work.launch();
}

fn joined_plainly(work: &Work) {
    fn halve(work: &Work, items: usize) {
        if items <= 1 {
            return item(work);
        }
        rayon::join(|| halve(work, items / 2), || halve(work, items / 2));
    }
    halve(work, ITEMS);
    work.launch();
}

fn scoped(work: &Work) {
    lineage_rayon::scope(|scope| {
        for _ in 0..ITEMS {
            scope.spawn(|_| item(work));
        }
    });
    work.launch();
}

fn scoped_plainly(work: &Work) {
    rayon::scope(|scope| {
        for _ in 0..ITEMS {
            scope.spawn(|_| item(work));
        }
    });
    work.launch();
}

fn iterated(work: &Work) {
    let items = (0..ITEMS).into_par_iter().with_max_len(1);
    items.in_current_epoch().for_each(|_| item(work));
    work.launch();
}

fn iterated_plainly(work: &Work) {
    let items = (0..ITEMS).into_par_iter().with_max_len(1);
    items.for_each(|_| item(work));
    work.launch();
}

fn spawned(cell: &Cell) {
    let pool = Pool::new(cell);
    cell.threads(|request| {
        let number = request.number();
        let Request { epoch, work, .. } = request;
        let (done, is_done) = std::sync::mpsc::channel();
        let job = move || {
            baseline::here(number, || launched(&work));
            let _ = done.send(());
        };
        if request.forgotten {
            pool.pool.spawn(job);
        } else {
            epoch.run(|| pool.pool.spawn_in_epoch(job));
        }
        is_done.recv().expect("the job is done");
    });
    pool.end();
}

/// On every thread of the pool.
fn broadcast(cell: &Cell) {
    let pool = Pool::new(cell);
    cell.threads(|request| {
        let number = request.number();
        let Request { epoch, work, .. } = &request;
        let job = |_: rayon::BroadcastContext<'_>| baseline::here(number, || launched(work));
        if request.forgotten {
            pool.pool.broadcast(job);
        } else {
            epoch.run(|| pool.pool.broadcast_in_epoch(job));
        }
    });
    pool.end();
}
