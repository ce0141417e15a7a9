//! Launch epochs for the graphs of [cudarc].
//!
//! A kernel of a CUDA graph has two owners: the work that *captured* it, once, and the work that each
//! *replay* is for. [`Capture`] records a graph in a launch boundary of the first;
//! [`CapturedGraph::launch`] replays it in a boundary of the second. A row for such a kernel is bound
//! to the replay's epoch, and its [`RowGraph`](lineage_core::row::RowGraph) names the capture's.
//!
//! ```
//! use cudarc::driver::{CudaContext, CudaStream, LaunchConfig, PushKernelArg};
//! use lineage_core::Epoch;
//! use lineage_cudarc::Capture;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let gpu = lineage_sim::load(lineage_sim::Config::default())?;
//! # gpu.kernel("step").timed()?;
//! # const PTX: &str = ".version 8.0 .target sm_90 .entry step(.param .u64 state) { ret; }";
//! let context = CudaContext::new(0)?;
//! // SAFETY: there is one stream, whose order is all that the memory needs.
//! unsafe { context.disable_event_tracking() };
//! let stream = context.new_stream()?;
//! let step = context.load_module(cudarc::nvrtc::Ptx::from_src(PTX))?.load_function("step")?;
//! let mut state = stream.alloc_zeros::<f32>(64)?;
//!
//! // Captured for nobody in particular, so under an epoch of its own …
//! let mut graph = Capture::on(&stream).run(&Epoch::declare("decode graph"), || {
//!     let mut launch = stream.launch_builder(&step);
//!     launch.arg(&mut state);
//!     // SAFETY: the kernel's one parameter is that buffer, which outlives the graph.
//!     unsafe { launch.launch(LaunchConfig::for_num_elems(64)) }.map(drop)
//! })?;
//!
//! // … and replayed for requests.
//! for _ in 0..3 {
//!     graph.launch(&Epoch::declare("request"))?;
//! }
//! stream.synchronize()?;
//! # assert_eq!(gpu.truth().operations.iter().filter(|one| one.graph.is_some()).count(), 3);
//! # Ok(())
//! # }
//! ```
//!
//! # Event tracking
//!
//! Once a context has had a second stream, cudarc records an event for each slice at each use and
//! waits for the events of others. That makes three calls of one launch, and inside a capture it
//! fails: an event from outside may not be waited for there. [`Capture::run`] refuses to begin in such
//! a context. Programs with one stream switch tracking off for good, as above; others pause it with
//! [`pause_event_tracking`].
//!
//! No replay is ever tracked: cudarc does not see which slices a graph uses. Where another stream
//! uses them too, order the streams yourself.
//!
//! # Which thread
//!
//! CUDA's graphs are not synchronised: one thread at a time may use one. A [`CapturedGraph`] may be
//! sent to another thread, and is launched by `&mut`, so that the compiler sees to that.
//!
//! # Features
//!
//! * `record` (default): recording itself. Without it everything here is cudarc's own.
//!
//! None of cudarc's features is chosen here: `README.md` says what follows from that.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod capture;
mod graph;
mod tracking;

pub use capture::{Capture, CaptureError, CaptureMode};
pub use graph::{CapturedGraph, GraphExt, LaunchError};
pub use tracking::{EventTrackingPaused, pause_event_tracking};
