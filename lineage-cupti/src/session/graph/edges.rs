//! Reads a graph's edges from the driver.

use std::sync::OnceLock;

use lineage_core::observation::{EdgeKind, GraphChange, GraphEdge};

use super::{Handle, Ids, state, tell};
use crate::graph::EdgesError;
use crate::sys::codes::edge;

/// Edges of one event.
const AT_ONCE: usize = 4096;

/// `CUgraphEdgeData`: 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct EdgeData {
    from_port: u8,
    to_port: u8,
    kind: u8,
    reserved: [u8; 5],
}

/// `cuGraphGetEdges`: graph, from, to, count.
type GetEdges = unsafe extern "C" fn(Handle, *mut Handle, *mut Handle, *mut usize) -> u32;
/// `cuGraphGetEdges_v2`: likewise with the data of each edge before the count.
type GetEdges2 =
    unsafe extern "C" fn(Handle, *mut Handle, *mut Handle, *mut EdgeData, *mut usize) -> u32;

#[derive(Clone, Copy)]
enum Function {
    WithKinds(GetEdges2),
    WithoutKinds(GetEdges),
}

impl Function {
    const fn name(self) -> &'static str {
        match self {
            Self::WithKinds(_) => "cuGraphGetEdges_v2",
            Self::WithoutKinds(_) => "cuGraphGetEdges",
        }
    }

    /// The driver's function, looked up once it is loaded: whoever has a graph has loaded it.
    fn get() -> Option<Self> {
        static FOUND: OnceLock<Function> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Some(*found);
        }
        let library = crate::driver::loaded()?;
        // SAFETY: in every libcuda these names have these signatures (`cuda.h`, CUDA 12.3 and 10.0).
        let found = unsafe {
            match library.get::<GetEdges2>(b"cuGraphGetEdges_v2\0") {
                Ok(function) => Some(Self::WithKinds(*function)),
                Err(_) => library
                    .get::<GetEdges>(b"cuGraphGetEdges\0")
                    .ok()
                    .map(|function| Self::WithoutKinds(*function)),
            }
        };
        found.map(|found| *FOUND.get_or_init(|| found))
    }

    /// Fills the lists, which are as long as `count` says, or empty to ask for the count.
    ///
    /// # Safety
    /// The graph is alive, and nobody else uses it.
    unsafe fn call(
        self,
        graph: Handle,
        lists: Option<&mut Lists>,
        count: &mut usize,
    ) -> Result<(), EdgesError> {
        let (mut from, mut to) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut data = std::ptr::null_mut();
        if let Some(lists) = lists {
            (from, to) = (lists.from.as_mut_ptr(), lists.to.as_mut_ptr());
            data = lists.data.as_mut_ptr();
        }
        // SAFETY: the caller vouches for the graph; the lists are null, or have as many places as
        // `count` says.
        let code = unsafe {
            match self {
                Self::WithKinds(function) => function(graph, from, to, data, count),
                Self::WithoutKinds(function) => function(graph, from, to, count),
            }
        };
        match code {
            0 => Ok(()),
            code => Err(EdgesError::Driver {
                function: self.name(),
                code,
            }),
        }
    }
}

struct Lists {
    from: Vec<Handle>,
    to: Vec<Handle>,
    data: Vec<EdgeData>,
}

/// What an edge proves. The programmatic type goes with one of the kernel's own ports, so with the
/// default port it is none that is documented.
fn kind_of(data: EdgeData) -> EdgeKind {
    match (data.from_port, data.kind) {
        (edge::PORT_DEFAULT, edge::TYPE_DEFAULT) => EdgeKind::Completion,
        (edge::PORT_PROGRAMMATIC, edge::TYPE_DEFAULT | edge::TYPE_PROGRAMMATIC) => {
            EdgeKind::Programmatic
        }
        (edge::PORT_LAUNCH_ORDER, edge::TYPE_DEFAULT | edge::TYPE_PROGRAMMATIC) => {
            EdgeKind::LaunchOrder
        }
        _ => EdgeKind::Unknown,
    }
}

/// As [`crate::graph::record_edges`].
///
/// # Safety
/// As there.
pub(crate) unsafe fn record_edges(graph: Handle) -> Result<Option<usize>, EdgesError> {
    if !state::is_recording() {
        return Ok(None);
    }
    let ids = Ids::get().ok_or(EdgesError::NoId)?;
    // SAFETY: the caller's word: the graph is alive.
    let id = unsafe { ids.graph(graph) }.ok_or(EdgesError::NoId)?;
    let function = Function::get().ok_or(EdgesError::NoFunction)?;
    // SAFETY: the caller's word.
    let edges = unsafe { edges(function, ids, graph) }?;
    let total = edges.len();
    let mut chunks: Vec<Vec<GraphEdge>> = edges.chunks(AT_ONCE).map(<[_]>::to_vec).collect();
    let last = chunks.pop().unwrap_or_default();
    let event = |edges, last| GraphChange::Edges {
        graph: id,
        edges,
        last,
    };
    chunks
        .into_iter()
        .for_each(|edges| tell(None, event(edges, false)));
    tell(None, event(last, true));
    Ok(Some(total))
}

/// # Safety
/// The graph is alive, and nobody else uses it.
unsafe fn edges(function: Function, ids: Ids, graph: Handle) -> Result<Vec<GraphEdge>, EdgesError> {
    let mut count = 0;
    // SAFETY: the caller's word.
    unsafe { function.call(graph, None, &mut count) }?;
    let mut lists = Lists {
        from: vec![std::ptr::null_mut(); count],
        to: vec![std::ptr::null_mut(); count],
        data: vec![EdgeData::default(); count],
    };
    if count > 0 {
        // SAFETY: the caller's word.
        unsafe { function.call(graph, Some(&mut lists), &mut count) }?;
    }
    let ends = lists.from.iter().zip(&lists.to).zip(&lists.data);
    ends.take(count)
        .map(|((from, to), data)| {
            // SAFETY: nodes of the graph, alive as it is.
            let (from, to) = unsafe { (ids.node(*from), ids.node(*to)) };
            Ok(GraphEdge {
                from: from.ok_or(EdgesError::NoId)?,
                to: to.ok_or(EdgesError::NoId)?,
                kind: match function {
                    Function::WithKinds(_) => kind_of(*data),
                    Function::WithoutKinds(_) => EdgeKind::Unknown,
                },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_documented_edges_prove_anything() {
        let kind = |from_port, kind| {
            kind_of(EdgeData {
                from_port,
                kind,
                ..EdgeData::default()
            })
        };
        assert_eq!(kind(0, 0), EdgeKind::Completion);
        assert_eq!(kind(1, 1), EdgeKind::Programmatic);
        assert_eq!(kind(2, 1), EdgeKind::LaunchOrder);
        assert_eq!(kind(0, 1), EdgeKind::Unknown);
        assert_eq!(kind(3, 0), EdgeKind::Unknown);
    }
}
