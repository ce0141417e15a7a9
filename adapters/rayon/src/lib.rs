//! Launch epochs across rayon's jobs.
//!
//! A work-stealing thread that waits for one job runs others meanwhile, in the midst of the first.
//! What is current on a thread therefore says nothing about whose job runs there next: with
//! `tracing::Span::current()` or a plain thread-local, one request's kernels are counted as
//! another's, and the more so the more threads there are. Here the epoch is taken along **when a job
//! is made**, is current while the job runs, and what was current before is restored when it ends.
//!
//! | in rayon | here |
//! | --- | --- |
//! | [`rayon::join`] | [`join`] |
//! | [`rayon::scope`], [`rayon::in_place_scope`] | [`scope`], [`in_place_scope`] |
//! | [`rayon::spawn`], [`rayon::spawn_fifo`] | [`spawn`], [`spawn_fifo`] |
//! | [`rayon::broadcast`] | [`broadcast`] |
//! | [`ThreadPool::install`](rayon::ThreadPool::install), `spawn`, `broadcast` | [`ThreadPoolExt`] |
//! | a parallel iterator | [`.in_current_epoch()`](ParallelIteratorExt::in_current_epoch) |
//!
//! Jobs that are made without an epoch run without one, also on a thread that is in the midst of a
//! request's job. Work that is [detached](lineage_core::detached) stays detached.
//!
//! # Example
//!
//! ```
//! use lineage_core::{Epoch, Lineage, current};
//! use lineage_rayon::ParallelIteratorExt as _;
//! use rayon::prelude::*;
//!
//! let lineage = Lineage::builder().service("tiles").start()?;
//! let request = Epoch::declare("request");
//!
//! let (sum, (left, right)) = request.run(|| {
//!     // On whichever thread an item is worked on, it is the request's work.
//!     let sum = (0..1000u64)
//!         .into_par_iter()
//!         .in_current_epoch()
//!         .map(|tile| {
//!             assert_eq!(current().epoch(), request.id());
//!             tile
//!         })
//!         .sum::<u64>();
//!     (sum, lineage_rayon::join(current, current))
//! });
//! assert_eq!(sum, 499_500);
//! assert_eq!((left.epoch(), right.epoch()), (request.id(), request.id()));
//! # Ok::<(), lineage_core::StartError>(())
//! ```
//!
//! A job that launches GPU work does so in a boundary of its own,
//! [`lineage_core::launch`]`(|| …)`: a boundary belongs to the thread that entered it, and a job may
//! run on another.
//!
//! # What is recorded
//!
//! One handoff (two records: sent, received) for every **job** that another thread may take, never
//! for an item:
//!
//! * [`join`]: one, for its second closure. Called from outside of the pool: two, as both move there.
//! * `spawn`, `install`, `scope`: one for each closure.
//! * `broadcast`: one for each thread.
//! * A parallel iterator: one for each piece that rayon splits it into, which are a few for each
//!   thread, unless `with_max_len` or an unindexed iterator asks for smaller ones.
//!
//! A [`join`] in an epoch costs about 0.2 µs more than rayon's own, whose closures may take 0.02 µs. So one
//! that recurses down to a few hundred nanoseconds of work is better split more coarsely; or the
//! innermost levels, if they launch nothing, use [`rayon::join`]. An iterator costs no more for each
//! item.
//!
//! # What plain rayon jobs see
//!
//! A job that was made by rayon's own functions carries nothing. While this crate's functions wait,
//! nothing is current on their thread, so a plain job that is stolen there has no epoch: what it
//! launches is reported as lost (`L01`) and is not counted as somebody else's. Only inside a closure
//! that itself waits in *rayon's* functions does a plain job see that closure's epoch.
//!
//! # Features
//!
//! * `record` (default): recording itself.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod iter;
mod job;
mod join;
mod pool;
mod scope;

pub use iter::{InEpoch, ParallelIteratorExt};
pub use join::join;
pub use pool::{ThreadPoolExt, broadcast, spawn, spawn_fifo};
pub use scope::{Scope, in_place_scope, scope};
