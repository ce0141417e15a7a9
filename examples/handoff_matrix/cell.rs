//! One cell: a carrier, what runs the work, and perhaps a mutation. What drives it is here.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::{join, join_all};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tracing::Instrument as _;

use crate::baseline;
use crate::matrix::Column;
use crate::mutation::Mutation;
use crate::raw;
use crate::request::{Desk, Request};
use crate::threads::Threads;

/// What a carrier is given to run on.
#[derive(Clone)]
pub struct Cell {
    /// What runs the work.
    pub column: Column,
    /// How many callers there are at once.
    pub callers: u64,
    /// How many pairs of requests each of them makes.
    pub pairs: u64,
    /// What is broken on purpose.
    pub mutation: Option<Mutation>,
    /// Where the work is noted and launched.
    pub desk: Arc<Desk>,
    /// Where threads report when they end.
    pub threads: Threads,
}

impl Cell {
    /// A runtime as the column says.
    pub fn runtime(&self) -> Tokio {
        let mut builder = match self.column {
            Column::Workers(threads) => {
                let mut builder = Builder::new_multi_thread();
                builder.worker_threads(threads);
                builder
            }
            Column::One => Builder::new_current_thread(),
        };
        let threads = self.threads.clone();
        builder.enable_time().on_thread_stop(move || threads.ends());
        Tokio {
            cell: self.clone(),
            runtime: builder.build().expect("a runtime can be made"),
        }
    }

    /// The callers are tasks of a runtime.
    pub fn tasks<F>(&self, call: impl Fn(Request) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.runtime().callers(call);
    }

    /// The callers are tasks that never leave their thread.
    pub fn local_tasks<F>(&self, call: impl Fn(Request) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        let tokio = self.runtime();
        let call = Arc::new(call);
        if self.column == Column::One {
            let local = LocalSet::new();
            let callers = (0..self.callers).map(|caller| {
                let (cell, call) = (self.clone(), Arc::clone(&call));
                local.run_until(async move { cell.caller(caller, &*call).await })
            });
            tokio.runtime.block_on(join_all(callers));
            return;
        }
        std::thread::scope(|scope| {
            for caller in 0..self.callers {
                let (tokio, call) = (&tokio, &call);
                scope.spawn(move || {
                    let _watch = self.threads.watch();
                    let local = LocalSet::new();
                    let requests = local.run_until(self.caller(caller, &**call));
                    tokio.runtime.block_on(requests);
                });
            }
        });
    }

    /// The callers are threads of their own.
    pub fn threads(&self, call: impl Fn(Request) + Sync) {
        std::thread::scope(|scope| {
            for caller in 0..self.callers {
                let call = &call;
                scope.spawn(move || {
                    let _watch = self.threads.watch();
                    for pair in 0..self.pairs {
                        for (number, request) in self.pair(caller, pair) {
                            baseline::here(number, || call(request));
                        }
                    }
                });
            }
        });
    }

    /// A thread that is looked at when it ends.
    pub fn engine(&self, work: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
        let threads = self.threads.clone();
        std::thread::spawn(move || {
            let _watch = threads.watch();
            work();
        })
    }

    /// Two requests of a caller, broken as the cell says, each with its number.
    fn pair(&self, caller: u64, pair: u64) -> [(u64, Request); 2] {
        let first = (caller * self.pairs + pair) * 2 + 1;
        let mut requests = [first, first + 1].map(|number| Request::declare(number, &self.desk));
        Request::mutate(requests.each_mut(), self.mutation);
        let [one, two] = requests;
        [(first, one), (first + 1, two)]
    }

    /// One caller's requests: always two of them under way at once, in one task.
    async fn caller<F: Future<Output = ()>>(&self, caller: u64, call: &impl Fn(Request) -> F) {
        for pair in 0..self.pairs {
            let [one, two] = self.pair(caller, pair).map(|(number, request)| {
                let request = async move {
                    baseline::begin(number);
                    call(request).await;
                    baseline::end();
                };
                request.instrument(baseline::span(number))
            });
            join(one, two).await;
        }
    }
}

/// A runtime of a cell.
pub struct Tokio {
    cell: Cell,
    runtime: Runtime,
}

impl Tokio {
    /// Starts a long-lived task, as an engine's.
    pub fn engine(&self, work: impl Future<Output = ()> + Send + 'static) {
        raw::spawn_on(self.runtime.handle(), work);
    }

    /// A handle of the runtime.
    pub fn handle(&self) -> tokio::runtime::Handle {
        self.runtime.handle().clone()
    }

    /// Has the callers make all their requests, then ends the runtime and its threads.
    pub fn callers<F>(self, call: impl Fn(Request) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let call = Arc::new(call);
        let callers = (0..self.cell.callers).map(|caller| {
            let (cell, call) = (self.cell.clone(), Arc::clone(&call));
            raw::spawn_on(self.runtime.handle(), async move {
                cell.caller(caller, &*call).await;
            })
        });
        let callers: Vec<_> = callers.collect();
        for ended in self.runtime.block_on(join_all(callers)) {
            ended.expect("no caller panics");
        }
    }
}
