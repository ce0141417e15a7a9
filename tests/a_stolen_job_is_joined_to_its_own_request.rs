//! A job of one request that a pool's thread takes while it waits for another request's: what the
//! thread's state says of whose it is, and what lineage says, against a label that the kernels carry.
//!
//! The steal is certain. Of a pool of two threads one holds the first request's second half until
//! the stolen job is done; so the other, which waits for that half, takes the second request's job:
//! it is the only one that can.

#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use launch_lineage::id::EpochId;
use launch_lineage::row::Binding;
use launch_lineage::{Cupti, Epoch, Lineage, carried_fn};
use lineage_rayon::ThreadPoolExt as _;

const PTX: &str = ".version 7.0\n.target sm_50\n.address_size 64\n\
                   .visible .entry serve(.param .u64 request) { ret; }";

const A: u64 = 1;
const B: u64 = 2;

thread_local! {
    /// The plain thread-local: whoever begins on a thread writes its number.
    static REQUEST: Cell<u64> = const { Cell::new(0) };
}

/// A request's span, by whose name it is known.
fn span(request: u64) -> tracing::Span {
    match request {
        A => tracing::info_span!("a"),
        _ => tracing::info_span!("b"),
    }
}

fn request_of_current_span() -> u64 {
    let span = tracing::Span::current();
    match span.metadata().map(|metadata| metadata.name()) {
        Some("a") => A,
        Some("b") => B,
        _ => 0,
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Flag {
    fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn wait(&self) {
        while !self.0.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

/// What was said at a launch.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    truly: u64,
    by_span: u64,
    by_thread_local: u64,
    thread: Option<usize>,
}

/// How the second request's job comes into the pool.
#[derive(Clone, Copy)]
enum Spawned {
    InEpoch,
    /// The mutation: nothing is carried, and waiting is left to rayon itself, so that the job finds
    /// what the waiting thread has current.
    Plainly,
}

/// Runs both requests; answers what was said at the launches, and for each kernel, by its label,
/// the request that lineage joined it to.
fn run(gpu: &lineage_sim::Gpu, spawned: Spawned) -> (Vec<Said>, Vec<(u64, u64)>) {
    gpu.clear_truth();
    let device = Cupti::new().library("libcupti.so");
    let builder = Lineage::builder().device(device).keep_in_memory(10_000);
    let lineage = builder.start().expect("the only session");
    let context = CudaContext::new(0).expect("the simulated device");
    let module = context.load_module(Ptx::from_src(PTX));
    let kernel = module.expect("valid PTX").load_function("serve");
    let (kernel, stream) = (kernel.expect("it has it"), context.default_stream());

    let said = Mutex::new(Vec::new());
    let launch = |truly: u64| {
        said.lock().expect("nobody panics").push(Said {
            truly,
            by_span: request_of_current_span(),
            by_thread_local: REQUEST.get(),
            thread: rayon::current_thread_index(),
        });
        let mut call = stream.launch_builder(&kernel);
        call.arg(&truly);
        // SAFETY: the kernel's one parameter is a `u64`.
        launch_lineage::launch(|| unsafe { call.launch(LaunchConfig::for_num_elems(1)) })
            .expect("the driver takes it");
    };

    let (a, b) = (Epoch::declare("a"), Epoch::declare("b"));
    let numbers: HashMap<EpochId, u64> = [(&a, A), (&b, B)]
        .into_iter()
        .filter_map(|(epoch, number)| Some((epoch.id()?.id, number)))
        .collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let pool = pool.expect("a pool can be made");
    let [half_is_taken, b_is_in_the_pool, b_is_done] = [(); 3].map(|()| Flag::default());

    let of_b = || {
        REQUEST.set(B);
        launch(B);
        b_is_done.raise();
    };
    let first_half = || {
        launch(A);
        half_is_taken.wait();
        b_is_in_the_pool.wait();
    };
    let second_half = || {
        half_is_taken.raise();
        b_is_done.wait();
    };
    let of_a = || {
        span(A).in_scope(|| {
            REQUEST.set(A);
            match spawned {
                Spawned::InEpoch => lineage_rayon::join(first_half, second_half),
                Spawned::Plainly => rayon::join(first_half, second_half),
            };
            launch(A);
        });
    };
    pool.in_place_scope(|scope| {
        std::thread::scope(|threads| {
            threads.spawn(|| a.run(|| pool.install_in_epoch(of_a)));
            half_is_taken.wait();
            match spawned {
                Spawned::InEpoch => {
                    let job = b.run(|| carried_fn(of_b));
                    scope.spawn(|_| job());
                }
                Spawned::Plainly => scope.spawn(|_| of_b()),
            }
            b_is_in_the_pool.raise();
        });
    });
    drop(pool);
    drop((a, b));
    stream.synchronize().expect("all kernels end");
    let report = lineage.shutdown(Duration::from_secs(10));

    let joined = gpu.truth().operations.into_iter().map(|ran| {
        let row = report.rows.iter().find(|row| {
            let operation = row.operation.as_ref();
            operation.is_some_and(|operation| operation.correlation.0 == ran.correlation_id)
        });
        let joined_to = match row.map(|row| row.binding) {
            Some(Binding::Bound(epoch)) => numbers[&epoch.id],
            _ => 0,
        };
        (ran.label.expect("every kernel has a label"), joined_to)
    });
    let joined = joined.collect();
    (said.into_inner().expect("nobody panics"), joined)
}

#[test]
fn a_stolen_job_is_joined_to_its_own_request() {
    let gpu = lineage_sim::load(lineage_sim::Config::default()).expect("the simulator loads");
    let kernel = gpu.kernel("serve").label_argument(0);
    kernel.timed().expect("a valid name");
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).expect("the only one");

    let (said, joined) = run(&gpu, Spawned::InEpoch);
    assert_eq!(
        said.iter().map(|said| said.truly).collect::<Vec<_>>(),
        [A, B, A]
    );
    let thread = said[0].thread;
    assert!(
        thread.is_some() && said.iter().all(|said| said.thread == thread),
        "one thread"
    );
    assert_eq!(
        said[1].by_span, A,
        "the current span is the waiting request's"
    );
    assert_eq!(
        said[2].by_thread_local, B,
        "the thread-local is the stolen job's afterwards"
    );
    assert_eq!(
        joined,
        [(A, A), (B, B), (A, A)],
        "lineage: label, and whose it says it is"
    );

    // Without the carrier, and with rayon's own waiting, lineage has no more than the thread has.
    let (said, joined) = run(&gpu, Spawned::Plainly);
    assert_eq!(said[1].thread, said[0].thread, "stolen again");
    assert_eq!(joined, [(A, A), (B, A), (A, A)], "needs truth");
}
