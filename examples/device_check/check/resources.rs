//! CUPTI's callbacks about graphs: which come, in which order, and what they name.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use lineage_cupti::sys::Functions;
use lineage_cupti::sys::codes::{resource, result};
use lineage_cupti::sys::layout::{graph_data, resource_data};

/// Callback ids about graphs: all of them, also those that lineage does not ask for.
pub const OF_GRAPHS: [u32; 14] = [9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23];

/// One callback, with the ids that CUPTI has for what it names. Only what applies to its callback id is
/// asked about: the rest may be left over from anything.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub cbid: u32,
    pub graph: Option<u32>,
    pub original_graph: Option<u32>,
    pub node: Option<u64>,
    pub original: Option<u64>,
    pub exec: Option<u32>,
}

static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

/// What was seen since the last time.
pub fn take() -> Vec<Seen> {
    std::mem::take(&mut *SEEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Notes a callback.
///
/// # Safety
/// `data` is the `CUpti_ResourceData` of a callback of this id; the functions are that CUPTI's.
pub unsafe fn note(functions: &Functions, cbid: u32, data: *const c_void) {
    use resource::{
        EXEC_CREATED, EXEC_DESTROY_STARTING, GRAPH_CLONED, NODE_CLONED, NODE_CREATED,
        NODE_DESTROY_STARTING, NODE_SET_PARAMS, NODE_UPDATED,
    };
    if !OF_GRAPHS.contains(&cbid) {
        return;
    }
    // SAFETY: offsets of `CUpti_ResourceData` and `CUpti_GraphData`, which live during the callback.
    let graph_data = unsafe {
        let descriptor = data.cast::<u8>().add(resource_data::DESCRIPTOR);
        descriptor.cast::<*const u8>().read_unaligned()
    };
    if graph_data.is_null() {
        return;
    }
    let handle = |applies: bool, offset: usize| {
        // SAFETY: as above.
        let handle = unsafe {
            graph_data
                .add(offset)
                .cast::<*mut c_void>()
                .read_unaligned()
        };
        (applies && !handle.is_null()).then_some(handle)
    };
    let of_node = [
        NODE_CREATED,
        NODE_CLONED,
        NODE_DESTROY_STARTING,
        NODE_UPDATED,
        NODE_SET_PARAMS,
    ]
    .contains(&cbid);
    let of_exec = [
        EXEC_CREATED,
        EXEC_DESTROY_STARTING,
        NODE_UPDATED,
        NODE_SET_PARAMS,
    ]
    .contains(&cbid);
    let has_graph = !matches!(cbid, EXEC_DESTROY_STARTING | NODE_UPDATED | NODE_SET_PARAMS);
    let is_copy = matches!(cbid, GRAPH_CLONED | NODE_CLONED);
    let is_from = matches!(cbid, NODE_CLONED | NODE_UPDATED);
    let seen = Seen {
        cbid,
        graph: ask(functions.get_graph_id, handle(has_graph, graph_data::GRAPH)),
        original_graph: ask(
            functions.get_graph_id,
            handle(is_copy, graph_data::ORIGINAL_GRAPH),
        ),
        node: ask(
            functions.get_graph_node_id,
            handle(of_node, graph_data::NODE),
        ),
        original: ask(
            functions.get_graph_node_id,
            handle(is_from, graph_data::ORIGINAL_NODE),
        ),
        exec: ask(
            functions.get_graph_exec_id,
            handle(of_exec, graph_data::EXEC),
        ),
    };
    SEEN.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(seen);
}

fn ask<T: Default>(
    function: Option<unsafe extern "C" fn(*mut c_void, *mut T) -> u32>,
    handle: Option<*mut c_void>,
) -> Option<T> {
    let mut id = T::default();
    // SAFETY: a handle of its sort, which CUPTI's callback names, and a valid place.
    let code = unsafe { function?(handle?, &mut id) };
    (code == result::SUCCESS).then_some(id)
}
