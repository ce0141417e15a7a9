//! A captured graph, replayed under epochs.

use std::sync::Arc;

use cudarc::driver::{CudaGraph, CudaStream, DriverError, result};
use lineage_core::{Epoch, LaunchEpoch};
use lineage_cupti::graph::EdgesError;

/// Why a graph was not launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The stream is of another context than the one that the graph was captured in.
    #[error("the stream is of another context than the graph")]
    OtherContext,
    /// The driver refused.
    #[error("the graph was not launched: {0}")]
    Driver(#[from] DriverError),
}

/// A graph that [`Capture::run`](crate::Capture::run) made: its template and one instance of it.
///
/// It is sent between threads, never shared: CUDA's graphs are not synchronised. Both parts are
/// destroyed with it; a replay that runs then runs to its end.
pub struct CapturedGraph {
    graph: CudaGraph,
    stream: Arc<CudaStream>,
    capture: Option<LaunchEpoch>,
    edges: Result<Option<usize>, EdgesError>,
}

// SAFETY: `CudaGraph` is two driver handles that any thread may use, one at a time, and a stream that may be
// sent. Whoever has this value has both handles alone: it gives them out by reference only, is not `Sync`,
// and its context is made current on the thread before each use.
unsafe impl Send for CapturedGraph {}

impl std::fmt::Debug for CapturedGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CapturedGraph")
            .field("capture", &self.capture)
            .finish_non_exhaustive()
    }
}

impl CapturedGraph {
    pub(crate) fn new(
        graph: CudaGraph,
        stream: Arc<CudaStream>,
        capture: Option<LaunchEpoch>,
        edges: Result<Option<usize>, EdgesError>,
    ) -> Self {
        Self {
            graph,
            stream,
            capture,
            edges,
        }
    }

    /// Replays it on the stream that it was captured on, in a launch boundary of `epoch`: each of its
    /// operations is joined to that. On an inert epoch this is a boundary of whatever is current.
    ///
    /// # Errors
    /// [`LaunchError::Driver`].
    pub fn launch(&mut self, epoch: &Epoch) -> Result<(), LaunchError> {
        Ok(self.graph.launch_in_epoch(epoch)?)
    }

    /// The same on another stream of its context. Replays of one graph never overlap, on whichever
    /// streams they are.
    ///
    /// # Errors
    /// See [`LaunchError`].
    pub fn launch_on(&mut self, stream: &CudaStream, epoch: &Epoch) -> Result<(), LaunchError> {
        if stream.context() != self.stream.context() {
            return Err(LaunchError::OtherContext);
        }
        stream.context().bind_to_thread()?;
        let exec = self.graph.cu_graph_exec();
        // SAFETY: the instance lives in `self`, which nobody else uses meanwhile (`&mut`), and the stream by its
        // reference; both are of the context that was made current.
        epoch.launch(|| unsafe { result::graph::launch(exec, stream.cu_stream()) })?;
        Ok(())
    }

    /// The epoch that it was captured under; `None` if that was inert.
    pub fn capture_epoch(&self) -> Option<LaunchEpoch> {
        self.capture
    }

    /// How many edges were recorded; `None` if no session had device evidence at the capture.
    ///
    /// # Errors
    /// Why they could not be: they are unknown then, and nothing else is.
    pub fn edges(&self) -> Result<Option<usize>, EdgesError> {
        self.edges
    }

    /// cudarc's own.
    pub fn graph(&self) -> &CudaGraph {
        &self.graph
    }
}

impl Drop for CapturedGraph {
    fn drop(&mut self) {
        // Before cudarc destroys it, perhaps on a thread on which the context was never current. If that fails, so
        // does the destruction, which the context's next call returns.
        let bound = self.stream.context().bind_to_thread();
        self.stream.context().record_err(bound);
    }
}

/// Epochs for graphs that cudarc captured without this package: the capture epoch is then what was
/// current.
pub trait GraphExt {
    /// [`CudaGraph::launch`] in a launch boundary of this epoch.
    ///
    /// # Errors
    /// As cudarc's.
    fn launch_in_epoch(&self, epoch: &Epoch) -> Result<(), DriverError>;
}

impl GraphExt for CudaGraph {
    fn launch_in_epoch(&self, epoch: &Epoch) -> Result<(), DriverError> {
        epoch.launch(|| self.launch())
    }
}
