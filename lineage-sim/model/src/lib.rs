//! The device model of lineage-sim: what decides when each piece of work starts and ends, and why.
//!
//! A discrete-event model without a clock, a thread or a file. Whoever drives it says what the time
//! is: [`Model::submit`] puts work into a stream, [`Model::poll`] says what begins and what ends up to a
//! time, in the order of time. With a real clock the driver waits for [`Model::next_ns`]; with a
//! virtual one it jumps there. One model serves both.
//!
//! The way of a launch, and the file that has the mechanism:
//!
//! | stage | what can hold it there | file |
//! | --- | --- | --- |
//! | the call | host costs; a full ring or push buffer | `settings`, `channel` |
//! | queued | the doorbell, which may cover several launches | `channel` |
//! | submitted | what it depends on: stream order, events, graph edges, semaphores | `dependency`, `graph`, `semaphore` |
//! | dependencies satisfied | other streams' work ahead of it in its channel | `channel` |
//! | issued | dispatch; another process on the device; a place on the multiprocessors; a copy engine | `compute`, `multiprocessor`, `copy_engine` |
//! | started | preemption; the last member of a collective; the primary of a programmatic launch | `compute`, `collective` |
//!
//! Each operation ends with its [`Facts`]: every one of these times, and its wait split into
//! [`Cause`]s that sum exactly.
//!
//! ```
//! use lineage_sim_model::{Host, Model, Order, Settings, StreamOptions, Submission, Work};
//!
//! // Four launches of 8 µs by a host that takes 3 µs for each.
//! let mut model = Model::new(Settings::default(), 0);
//! let stream = model.add_stream(StreamOptions::default());
//! let mut host = Host::new(0);
//! for launch in 1..=4 {
//!     host.spend(3_000);
//!     host.submit(&mut model, stream, Submission::new(launch, Work::kernel(8_000)));
//! }
//! assert_eq!(host.now_ns(), 12_000);
//! let ends: Vec<u64> = host.finish(&mut model).iter().map(|facts| facts.end_ns).collect();
//! assert_eq!(ends, [11_000, 19_000, 27_000, 35_000]);
//! # let _ = Order::NonBlocking;
//! ```
#![forbid(unsafe_code)]

mod device_time;
mod facts;
mod host;
mod model;
mod settings;
mod work;

pub use device_time::DeviceTime;
pub use facts::{Cause, DependencyKind, Facts, HostWait, Limit, WaitSplit};
pub use host::Host;
pub use model::{
    Absence, Effect, GraphNode, Memory, Model, OperationKey, Order, StreamKey, StreamOptions,
    Submission,
};
pub use settings::{Clock, SETTINGS_HASH, Settings};
pub use work::{Collective, Condition, Direction, Edge, Footprint, Place, Programmatic, Work};
