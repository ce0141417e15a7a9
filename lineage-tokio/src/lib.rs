//! Launch epochs across futures, tasks, channels and tracing spans.
//!
//! A launch epoch is the identity of declared GPU work
//! ([`lineage_core`] has the words). On one thread it is a thread-local cell; this crate takes it
//! over every boundary that async Rust has:
//!
//! | boundary | what carries it |
//! | --- | --- |
//! | a span, in every poll and on drop | [`LineageLayer`]: a span with the field `launch_epoch` declares an epoch, other spans inherit |
//! | a future, joined, selected, or polled elsewhere | [`FutureExt::in_epoch`], [`FutureExt::in_current_epoch`] |
//! | a stream or a sink, also after its handler has ended | [`StreamExt`], [`SinkExt`]: the same two methods |
//! | a task | [`spawn`], [`spawn_local`] |
//! | a task on a runtime, its handle, a local set | [`RuntimeExt`], [`LocalSetExt`] |
//! | a set of tasks | [`JoinSetExt`] |
//! | the blocking pool | [`spawn_blocking`]; `block_in_place` needs nothing |
//! | a channel, a queue, a batch | [`carried`], [`carried_by`]; [`SendCarried`], [`SendCarriedAsync`], [`TrySendCarried`] |
//! | a callback | [`carried_fn`], [`carried_fn_mut`] |
//! | a thread | [`lineage_core::thread`] |
//! | a poll function of one's own, on any executor | [`lineage_core::carrier::Resumable`] |
//!
//! *Carried* means throughout: the epoch that is current where this is called goes along. Without a
//! current epoch each is what it wraps. Whatever is carried is dropped with its epoch current as
//! well, since destructors launch work too; and a handoff that is recorded names the line that made
//! it.
//!
//! None of them needs another: the carriers work without any tracing subscriber, and the layer
//! without any carrier. Each is one line where the work crosses.
//!
//! # Example
//!
//! A request declares its epoch with a span field and sends its job in an envelope to an engine
//! thread, which works for it:
//!
//! ```
//! use lineage_core::Lineage;
//! use lineage_tokio::{Carried, LineageExt as _, carried};
//! use tracing_subscriber::prelude::*;
//!
//! #[tracing::instrument(skip_all, fields(launch_epoch))]
//! async fn generate(queue: tokio::sync::mpsc::Sender<Carried<String>>, prompt: String) {
//!     queue.send(carried(prompt)).await.expect("the engine lives");
//! }
//!
//! fn engine(mut jobs: tokio::sync::mpsc::Receiver<Carried<String>>) {
//!     while let Some(job) = jobs.blocking_recv() {
//!         let (prompt, epoch) = job.open();
//!         epoch.launch(|| println!("kernels for {prompt:?} are launched here"));
//!     }
//! }
//!
//! let lineage = Lineage::builder().service("llm").start()?;
//! let subscriber = tracing_subscriber::registry().with(lineage.layer());
//!
//! let (queue, jobs) = tokio::sync::mpsc::channel(8);
//! let engine = std::thread::spawn(|| engine(jobs));
//! let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! tracing::subscriber::with_default(subscriber, || {
//!     runtime.block_on(generate(queue, "hello".to_owned()))
//! });
//! engine.join().expect("the engine does not panic");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guards stay on one thread
//!
//! [`Epoch::enter`](lineage_core::Epoch::enter) and
//! [`Epoch::enter_for_launch`](lineage_core::Epoch::enter_for_launch) return guards that are not
//! `Send`. A guard that is held across an `.await` would leave its epoch on the thread for whatever
//! task is polled next, so this does not compile:
//!
//! ```compile_fail
//! # async fn device_is_ready() {}
//! # fn needs_send<T: Send>(_: T) {}
//! let request = lineage_core::Epoch::declare("request");
//! needs_send(async move {
//!     let scope = request.enter();
//!     device_is_ready().await; // `scope` is alive here, and it is not `Send`
//!     drop(scope);
//! });
//! ```
//!
//! A guard that ends before the `.await` compiles:
//!
//! ```
//! # async fn device_is_ready() {}
//! # fn needs_send<T: Send>(_: T) {}
//! let request = lineage_core::Epoch::declare("request");
//! needs_send(async move {
//!     let scope = request.enter();
//!     drop(scope);
//!     device_is_ready().await;
//! });
//! ```
//!
//! and what is to be current across it is given to the future:
//!
//! ```
//! # async fn device_is_ready() {}
//! # fn needs_send<T: Send>(_: T) {}
//! use lineage_tokio::FutureExt as _;
//!
//! let request = lineage_core::Epoch::declare("request");
//! needs_send(async { device_is_ready().await }.in_epoch(request));
//! ```
//!
//! Where a future need not be `Send` (`spawn_local`, `block_on`) the compiler does not help: a
//! `clippy.toml` with `await-holding-invalid-types` does. At run time, a launch that another task
//! makes meanwhile is `W02`, and an epoch that another task takes along is `W07`.
//!
//! # What a wrong handoff shows
//!
//! | what went wrong | seen live |
//! | --- | --- |
//! | a task was spawned without its carrier, on a thread that has lineage events | `L01` |
//! | the same on a thread that has not seen lineage | *unattributed*; with `--cfg tokio_unstable`, `SpawnWatch` finds it and the line that spawned it |
//! | an envelope was opened and its epoch dropped | `L01` at the launch, `L04` of the epoch |
//! | a value was taken out of its envelope ([`Carried::into_payload`]) | `L05`, `L01` at the launch, `L04` of the epoch |
//! | a guard was held across an await, and another task launched | `W02` |
//! | a guard was held across an await, and another task took the epoch along | `W07` |
//! | a task was polled in the midst of another's poll, and launched without an epoch of its own | `W02` |
//! | an [`Epoch`](lineage_core::Epoch) went to another thread as a plain value | the row is counted as *unreachable* |
//! | two envelopes were swapped; a future was polled within another's, in one task | nothing: only truth that travels with the data tells |
//!
//! # Features
//!
//! * `record` (default): recording itself. Without it every item of this crate compiles to the
//!   plain thing it wraps: the future, tokio's own `spawn`, the value, a layer that does nothing.
//! * `crossbeam-channel`, `flume`: [`SendCarried`] and [`TrySendCarried`] for their senders.
//!
//! With `--cfg tokio_unstable` there is also `SpawnWatch`, which *finds* spawns that lost an epoch.
//! No hook of tokio's can carry one.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod channel;
mod closure;
mod entered;
mod envelope;
mod future;
mod layer;
mod span;
mod spawn;
#[cfg(tokio_unstable)]
mod spawn_watch;
mod stream;
mod task_id;

pub use channel::{SendCarried, SendCarriedAsync, TrySendCarried};
pub use closure::{carried_fn, carried_fn_mut};
pub use envelope::{Carried, carried, carried_by};
pub use future::{FutureExt, GiveEpoch, InEpoch};
pub use layer::{EPOCH_FIELD, LineageExt, LineageLayer, declared_by};
pub use span::{SpanEpochError, SpanEpochErrorKind, SpanExt};
pub use spawn::{JoinSetExt, LocalSetExt, RuntimeExt, spawn, spawn_blocking, spawn_local};
#[cfg(tokio_unstable)]
pub use spawn_watch::{LostSpawn, LostSpawns, SpawnWatch};
pub use stream::{SinkExt, StreamExt};

/// Without recording, a future and a value are no larger in their wrappers. Another package of the
/// same build may have switched recording on in core, whose epochs then have a size.
#[cfg(not(feature = "record"))]
const _: () = {
    let recording = size_of::<lineage_core::Epoch>() > 0;
    assert!(recording || size_of::<InEpoch<[u64; 3]>>() == size_of::<[u64; 3]>());
    assert!(recording || size_of::<Carried<[u64; 3]>>() == size_of::<[u64; 3]>());
};
