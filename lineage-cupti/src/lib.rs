//! Device evidence for launch lineage, from NVIDIA's CUPTI.
//!
//! [`Cupti`] is given to a session of `lineage-core`. It loads the `libcupti` it finds at run time,
//! and where there is none, or another tool has it, or the driver fails, the program runs on and the
//! session says why there is no evidence.
//!
//! ```
//! use lineage_cupti::Cupti;
//!
//! // lineage_core::Lineage::builder().device(Cupti::new()).start()
//! let device = Cupti::new();
//! let smaller = Cupti::new().buffer_bytes(256 << 10).buffer_limit(32);
//! # let _ = (device, smaller);
//! ```
//!
//! While a session is live it collects, from CUPTI's activity buffers, a record of each call that
//! asks for GPU work, of each operation, and of the epoch that was pushed for the call by its launch
//! boundary; and, by a callback on the launching thread, the epoch that was current there. The two
//! are independent ways to the same join.
//!
//! Of graphs it keeps who built each node and what became of the graph since, so that the operations of
//! a replay are known by the replay *and* by the capture; see [`graph`].
//!
//! A kernel's name belongs to its module. A call that unloads modules is held up until the names of
//! all kernels before it are read: as a rule for as long as a flush takes, at most 250 ms. Where that
//! is not enough, since other work is still running, operations whose names could be gone have none.
//!
//! Layers: [`sys`] is the raw library; [`work`] the table of functions that ask for GPU work; the
//! session itself is behind [`Cupti`]. [`probe`] asks what the machine has.
//!
//! Costs: two callbacks and one record of CUPTI's per launch, see `benches/` of the workspace. Memory: at
//! most [`buffer_limit`](Cupti::buffer_limit) buffers of [`buffer_bytes`](Cupti::buffer_bytes) each,
//! allocated as they are needed and kept for the process.
//!
//! Linux only; elsewhere, and without the feature `record`, [`Cupti`] exists and answers that there is
//! no evidence.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(target_os = "linux", feature = "record"))]
mod decode;
#[cfg(all(target_os = "linux", feature = "record"))]
mod driver;
pub mod graph;
#[cfg(not(all(target_os = "linux", feature = "record")))]
mod inert;
mod options;
pub mod order;
pub mod probe;
#[cfg(all(target_os = "linux", feature = "record"))]
mod session;
pub mod sys;
pub mod work;

use std::fmt;
use std::path::PathBuf;

#[cfg(not(all(target_os = "linux", feature = "record")))]
use inert::Session;
#[cfg(all(target_os = "linux", feature = "record"))]
use session::Session;

pub use options::{ExternalKind, RecordedCalls};

use options::Options;

/// CUPTI as a source of evidence.
///
/// One of them collects at a time in a process; a second one answers that there is no evidence, as
/// it does where another tool has CUPTI. It is never left by force: [`stop`](lineage_core::source::EvidenceSource::stop)
/// unsubscribes and leaves the library loaded.
pub struct Cupti {
    options: Options,
    #[cfg_attr(
        not(all(target_os = "linux", feature = "record")),
        expect(dead_code, reason = "nothing is recorded here")
    )]
    session: Option<Session>,
}

impl Cupti {
    /// CUPTI with what suits an inference server: buffers of 1 MiB, at most 128 of them, external ids
    /// under the kind that nobody else is known to use, and only calls that ask for GPU work.
    pub fn new() -> Self {
        Self {
            options: Options::default(),
            session: None,
        }
    }

    /// Pushes external correlation ids under this kind.
    #[must_use]
    pub fn external_kind(mut self, kind: ExternalKind) -> Self {
        self.options.external_kind = kind;
        self
    }

    /// Records these calls.
    #[must_use]
    pub fn recorded_calls(mut self, calls: RecordedCalls) -> Self {
        self.options.recorded_calls = calls;
        self
    }

    /// Size of an activity buffer in bytes, rounded up to a multiple of 64, at most 1 GiB. Default: 1 MiB. CUPTI
    /// advises 1 to 10 MiB; a record takes up to 248 bytes.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.options.set_buffer_bytes(bytes);
        self
    }

    /// Greatest number of activity buffers, from 1 to 1,024. Default: 128. CUPTI from 13.0 on uses one per
    /// launching thread; when all are in use, CUPTI drops records and says how many.
    #[must_use]
    pub fn buffer_limit(mut self, buffers: usize) -> Self {
        self.options.set_buffer_limit(buffers);
        self
    }

    /// Records graph launches as a whole. Default: `false`, where each node is recorded.
    ///
    /// Cheaper, and blind: a launch has one record, from the start of its first node to the end of its
    /// last, and the nodes have none, for as long as the session lives. Only graphs that are instantiated
    /// meanwhile are recorded (CUPTI's documentation, "Late attach limitations").
    #[must_use]
    pub fn graph_level(mut self, whole: bool) -> Self {
        self.options.graph_level = whole;
        self
    }

    /// Loads this `libcupti` and no other, whatever the environment says. The first session of a
    /// process decides: a library that is loaded once stays.
    #[must_use]
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.options.library = Some(path.into());
        self
    }
}

impl Default for Cupti {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cupti {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cupti")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// For this crate's own tests and benchmarks.
#[doc(hidden)]
#[cfg(all(target_os = "linux", feature = "record"))]
pub mod testing {
    pub use crate::session::api_callback;
    pub use crate::session::state::panic_in_next_callback;
}
