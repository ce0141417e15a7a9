//! Edges of a graph, for those who have its handle.

use std::ffi::c_void;

/// Why a graph's edges could not be read. What is recorded of the graph stays: its edges are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EdgesError {
    /// No driver is loaded, or it has neither `cuGraphGetEdges_v2` nor `cuGraphGetEdges`.
    #[error("the driver has no function that tells the edges of a graph")]
    NoFunction,
    /// The driver's function failed.
    #[error("{function} failed with code {code}")]
    Driver {
        /// Which function.
        function: &'static str,
        /// What it answered, a `CUresult` of `cuda.h`.
        code: u32,
    },
    /// CUPTI did not tell the id of the graph or of one of its nodes.
    #[error("CUPTI told no id of the graph, or of one of its nodes")]
    NoId,
}

/// Reads the edges of a graph and records them; answers how many, and `None` while no session of CUPTI
/// records, so that there is nothing to record them for.
///
/// CUPTI's own callbacks tell of dependencies, but not of which kind they are, and an edge of unknown
/// kind proves nothing. So whoever instantiates a graph calls this right after. Kinds are known where
/// the driver has `cuGraphGetEdges_v2` (CUDA 12.3 and later).
///
/// The edges are those between the nodes of this very graph. Those inside a child graph are another
/// graph's (`cuGraphChildGraphNodeGetGraph`).
///
/// ```
/// // After cuGraphInstantiateWithFlags(&mut exec, graph, 0):
/// # let graph = std::ptr::null_mut();
/// # if false {
/// // SAFETY: the graph is alive, and no other thread uses it.
/// let edges = unsafe { lineage_cupti::graph::record_edges(graph) };
/// # let _ = edges;
/// # }
/// ```
///
/// # Errors
/// [`EdgesError`].
///
/// # Safety
/// `graph` is a `CUgraph` that lives during the call, and that no other thread uses meanwhile: graphs
/// are not thread-safe. Never to be called inside a callback of CUPTI's.
pub unsafe fn record_edges(graph: *mut c_void) -> Result<Option<usize>, EdgesError> {
    #[cfg(all(target_os = "linux", feature = "record"))]
    {
        // SAFETY: the caller's word.
        unsafe { crate::session::record_edges(graph) }
    }
    #[cfg(not(all(target_os = "linux", feature = "record")))]
    {
        let _ = graph;
        Ok(None)
    }
}
