//! Graphs: which driver functions change them, and their edges.
//!
//! What CUPTI and the driver let be known of a graph, and from which version on, is in the workspace's
//! `docs/graphs.md`.

mod edges;
mod functions;

pub use edges::{EdgesError, record_edges};
pub use functions::{
    FIRST_PARAMETER, FUNCTIONS, GraphCall, GraphFunction, NODE_PARAMS_CHILD, NODE_PARAMS_TYPE,
    SECOND_PARAMETER, THIRD_PARAMETER, function_of,
};
