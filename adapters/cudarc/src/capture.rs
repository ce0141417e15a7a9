//! Capturing a stream's work as a graph, under an epoch.

use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaStream, DriverError, result};
use lineage_core::Epoch;
use lineage_cupti::graph::record_edges;

use crate::graph::CapturedGraph;

/// Which calls are forbidden while a capture is open, since they might not be what the capturing
/// program means: allocations, synchronisations and others that the driver calls unsafe
/// (`CUstreamCaptureMode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CaptureMode {
    /// They are forbidden on every thread.
    Global,
    /// They are forbidden on this thread: the mode for a server, whose other threads go on.
    #[default]
    ThreadLocal,
    /// They are forbidden nowhere.
    Relaxed,
}

impl CaptureMode {
    fn driver(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

/// Why there is no graph. `E` is what the captured work fails with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError<E> {
    /// cudarc would record events and wait for them inside the capture, which fails.
    #[error(
        "cudarc tracks the context's slices by events, which fails inside a capture: pause it with pause_event_tracking"
    )]
    EventTracking,
    /// The driver did not begin a capture: the stream is the legacy default one, or captures already.
    #[error("the capture did not begin: {0}")]
    Begin(#[source] DriverError),
    /// The work that was to be captured failed. The capture is ended, and what it had is thrown away.
    #[error("what was to be captured failed: {0}")]
    Work(#[source] E),
    /// The capture had become invalid by a call that it forbids, or its graph was not instantiated.
    #[error("the capture gave no graph: {0}")]
    End(#[source] DriverError),
    /// The driver ended the capture and gave no graph.
    #[error("the capture gave no graph, and the driver no reason")]
    NoGraph,
}

/// A capture to be made: on which stream, and how.
#[must_use = "a capture is made by `run`"]
#[derive(Clone, Copy)]
pub struct Capture<'a> {
    stream: &'a Arc<CudaStream>,
    mode: CaptureMode,
    flags: CUgraphInstantiate_flags,
}

impl std::fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("mode", &self.mode)
            .field("flags", &self.flags.0)
            .finish_non_exhaustive()
    }
}

impl<'a> Capture<'a> {
    /// A capture that begins on this stream, forbids unsafe calls on this thread only, and is
    /// instantiated without flags.
    pub fn on(stream: &'a Arc<CudaStream>) -> Self {
        Self {
            stream,
            mode: CaptureMode::default(),
            flags: CUgraphInstantiate_flags(0),
        }
    }

    /// Forbids unsafe calls as this says.
    pub fn mode(mut self, mode: CaptureMode) -> Self {
        self.mode = mode;
        self
    }

    /// Instantiates the graph with these flags.
    pub fn instantiate_flags(mut self, flags: CUgraphInstantiate_flags) -> Self {
        self.flags = flags;
        self
    }

    /// Captures what the closure launches on the stream, and on streams that fork from it by events
    /// and come back, and instantiates the graph. All of it is a launch boundary of `epoch`, which
    /// becomes the capture epoch of every node; on an inert epoch, of whatever is current.
    ///
    /// The graph's edges are recorded with their kinds, where a session has device evidence
    /// ([`CapturedGraph::edges`]).
    ///
    /// Nothing runs. What is captured keeps the addresses it was given: the memory has to outlive
    /// the graph, which cudarc's slices do not see to, and what differs from replay to replay has to
    /// be copied into that memory.
    ///
    /// If the closure fails or panics, the capture is ended and thrown away, and the stream is as
    /// it was.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub fn run<E>(
        self,
        epoch: &Epoch,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<CapturedGraph, CaptureError<E>> {
        if self.stream.context().is_managing_stream_synchronization() {
            return Err(CaptureError::EventTracking);
        }
        epoch.launch(|| {
            self.stream
                .begin_capture(self.mode.driver())
                .map_err(CaptureError::Begin)?;
            let open = Open(self.stream);
            work().map_err(CaptureError::Work)?;
            std::mem::forget(open);
            let graph = self
                .stream
                .end_capture(self.flags)
                .map_err(CaptureError::End)?
                .ok_or(CaptureError::NoGraph)?;
            // SAFETY: the graph lives, and this thread alone has it.
            let edges = unsafe { record_edges(graph.cu_graph().cast()) };
            Ok(CapturedGraph::new(
                graph,
                Arc::clone(self.stream),
                epoch.id(),
                edges,
            ))
        })
    }
}

/// An open capture, thrown away when this is dropped.
struct Open<'a>(&'a Arc<CudaStream>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // SAFETY: the stream is live. What the driver gives is a graph of ours, or null.
        let ended = unsafe { result::stream::end_capture(self.0.cu_stream()) };
        // An error means that the capture had become invalid: it is ended all the same.
        if let Ok(graph) = ended
            && !graph.is_null()
        {
            // SAFETY: the graph is live, and nobody else has it.
            let destroyed = unsafe { result::graph::destroy(graph) };
            // As cudarc does where it cannot return an error: the context's next call returns it.
            self.0.context().record_err(destroyed);
        }
    }
}
