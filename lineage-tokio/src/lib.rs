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
//! | a task | [`spawn`] |
//! | the blocking pool | [`spawn_blocking`] |
//! | a channel, a queue, a batch | [`carried`], [`carried_by`] |
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
//! `clippy.toml` with `await-holding-invalid-types` does, and `W07` says it at run time.
//!
//! # Features
//!
//! * `record` (default): recording itself. Without it every item of this crate compiles to the
//!   plain thing it wraps: the future, tokio's own `spawn`, the value, a layer that does nothing.
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
pub use layer::{EPOCH_FIELD, LineageExt, LineageLayer};
pub use span::{SpanEpochError, SpanEpochErrorKind, SpanExt};
pub use spawn::{JoinSetExt, LocalSetExt, RuntimeExt, spawn, spawn_blocking, spawn_local};
#[cfg(tokio_unstable)]
pub use spawn_watch::{LostSpawn, LostSpawns, SpawnWatch};
pub use stream::{SinkExt, StreamExt};
