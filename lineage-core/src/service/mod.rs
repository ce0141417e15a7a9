//! What a service's users feel, and what its devices did meanwhile: figures of one recording.
//!
//! * [`Tokens`]: time to the first token, the time between tokens, throughput, and how often an
//!   objective was missed.
//! * [`Devices`]: when each device was busy, what the host did while it was idle, and how much
//!   faster the service could be at best if that were mended.
//! * [`Collectives`]: how far apart the devices of a collective began.
//!
//! All take rows as the correlator gives them, hold no more than they are told to, and count what
//! they could not keep. Figures are of what was recorded: a figure over few samples says so.
//!
//! ```
//! use lineage_core::service::Samples;
//!
//! let mut latencies = Samples::new(1_000);
//! for latency_ns in [30, 10, 20] {
//!     latencies.add(latency_ns);
//! }
//! let summary = latencies.summary();
//! assert_eq!((summary.count, summary.p50_ns, summary.max_ns), (3, Some(20), Some(30)));
//! assert_eq!(summary.p99_ns, None, "three samples have no 99th percentile");
//! ```

mod collectives;
mod devices;
mod samples;
mod tokens;

pub use collectives::{CollectiveSkew, Collectives};
pub use devices::{DeviceFigures, Devices, IdleWhile};
pub use samples::{Samples, Summary};
pub use tokens::{Missed, Objective, RequestFigures, TokenFigures, TokenOptions, Tokens};
