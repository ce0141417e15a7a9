//! Calls that change graphs: which of them a thread is in, and what they came to.
//!
//! Nodes that are made inside an instantiation, or as part of a copy, are nobody's making. And before
//! CUDA 13.0 no callback tells of updates of an executable graph: the calls themselves do, when they
//! have succeeded.

use std::cell::Cell;
use std::ffi::c_void;

use lineage_core::observation::GraphChange;

use super::{Handle, Ids, tell};
use crate::graph::{
    FIRST_PARAMETER, GraphCall, NODE_PARAMS_CHILD, NODE_PARAMS_TYPE, SECOND_PARAMETER,
    THIRD_PARAMETER, function_of,
};

/// `CU_GRAPH_NODE_TYPE_GRAPH`.
const CHILD: u32 = 4;

/// A call that was entered.
#[derive(Clone, Copy)]
struct Call {
    session: u32,
    cbid: u32,
    correlation: u32,
    does: Does,
}

#[derive(Clone, Copy)]
enum Does {
    /// Nodes that are made inside are nobody's making.
    Copies,
    /// Likewise, but for those in this graph.
    AddsTo(Handle),
    Changes(Change),
}

/// A change of an executable graph that is tried.
#[derive(Clone, Copy)]
struct Change {
    exec: Option<u32>,
    to: To,
    /// A callback of CUPTI's has told of it.
    is_told: bool,
}

#[derive(Clone, Copy)]
enum To {
    Updated { graph: Option<u32> },
    Set { node: Option<u64> },
    Enabled { node: Option<u64>, enabled: bool },
}

impl Change {
    /// What it came to; `None` where the ids are not to be had.
    fn change(self) -> Option<GraphChange> {
        let exec = self.exec?;
        Some(match self.to {
            To::Updated { graph } => GraphChange::ExecUpdated {
                exec,
                graph: graph?,
            },
            To::Set { node } => GraphChange::ParametersSet { exec, node },
            To::Enabled { node, enabled } => GraphChange::NodeEnabled {
                exec,
                node,
                enabled,
            },
        })
    }
}

thread_local! {
    // The driver does not call its own public functions, so one place does.
    static INSIDE: Cell<Option<Call>> = const { Cell::new(None) };
}

/// The parameters of a call, read by offset.
#[derive(Clone, Copy)]
struct Parameters(*const u8);

impl Parameters {
    /// # Safety
    /// A `T` is at this offset of what this points to.
    unsafe fn read<T: Copy>(self, offset: usize) -> T {
        // SAFETY: the caller's word. Unaligned reads ask nothing of the alignment.
        unsafe { self.0.add(offset).cast::<T>().read_unaligned() }
    }
}

/// A driver function is entered that asks for no work.
///
/// # Safety
/// `params` are null, or the parameters of a call of the function of this id, and live.
pub(crate) unsafe fn entered(session: u32, cbid: u32, correlation: u32, params: *const c_void) {
    let (Some(function), Some(ids)) = (function_of(cbid), Ids::get()) else {
        return;
    };
    let does = if params.is_null() {
        Does::Copies
    } else {
        // SAFETY: not null, so by the caller's word the parameters of this function.
        unsafe { does(function.does, ids, Parameters(params.cast())) }
    };
    INSIDE.with(|inside| {
        inside.set(Some(Call {
            session,
            cbid,
            correlation,
            does,
        }));
    });
}

/// # Safety
/// The parameters are those of a call that does this, and live. The driver is about to be given the same
/// handles: ones that are not alive are as undefined there.
unsafe fn does(call: GraphCall, ids: Ids, parameters: Parameters) -> Does {
    // SAFETY: the types at these offsets are those of the functions' structs (layout test).
    unsafe {
        let exec = || ids.exec(parameters.read(FIRST_PARAMETER));
        let node = || ids.node(parameters.read(SECOND_PARAMETER));
        let to = match call {
            GraphCall::Instantiates | GraphCall::Clones => return Does::Copies,
            GraphCall::AddsNode => return Does::AddsTo(parameters.read(SECOND_PARAMETER)),
            GraphCall::UpdatesExec => To::Updated {
                graph: ids.graph(parameters.read(SECOND_PARAMETER)),
            },
            GraphCall::UpdatesChild => To::Updated {
                graph: ids.graph(parameters.read(THIRD_PARAMETER)),
            },
            GraphCall::SetsParameters => To::Set { node: node() },
            GraphCall::SetsAnyParameters => {
                let given = Parameters(parameters.read::<*const u8>(THIRD_PARAMETER));
                if !given.0.is_null() && given.read::<u32>(NODE_PARAMS_TYPE) == CHILD {
                    To::Updated {
                        graph: ids.graph(given.read(NODE_PARAMS_CHILD)),
                    }
                } else {
                    To::Set { node: node() }
                }
            }
            GraphCall::EnablesNode => To::Enabled {
                node: node(),
                enabled: parameters.read::<u32>(THIRD_PARAMETER) != 0,
            },
        };
        Does::Changes(Change {
            exec: exec(),
            to,
            is_told: false,
        })
    }
}

/// A driver function is left that asks for no work. A call that failed has changed nothing.
#[cold]
#[inline(never)]
pub(crate) fn left(session: u32, cbid: u32, correlation: u32, result: u32) {
    let same =
        |call: &Call| (call.session, call.cbid, call.correlation) == (session, cbid, correlation);
    let Some(call) = INSIDE.with(Cell::get).filter(same) else {
        return;
    };
    INSIDE.with(Cell::take);
    let Does::Changes(change) = call.does else {
        return;
    };
    let is_set = matches!(change.to, To::Set { .. });
    if result != 0 || (change.is_told && is_set) {
        return;
    }
    let change = change.change().unwrap_or(GraphChange::Lost { count: 1 });
    tell(Some(correlation), change);
}

fn inside() -> Option<Call> {
    let session = super::state::session();
    INSIDE
        .with(Cell::get)
        .filter(|call| call.session == session)
}

/// Whether a node that is made in this graph now is of the program's making.
pub(super) fn makes_nodes_of(graph: Handle) -> bool {
    match inside().map(|call| call.does) {
        None => true,
        Some(Does::AddsTo(target)) => target == graph,
        Some(Does::Copies | Does::Changes(_)) => false,
    }
}

/// The correlation id of the change of an executable graph that the thread is in.
pub(super) fn correlation() -> Option<u32> {
    let is_change = |call: &Call| matches!(call.does, Does::Changes(_));
    inside().filter(is_change).map(|call| call.correlation)
}

/// The executable graph of the change that the thread is in.
pub(super) fn exec() -> Option<u32> {
    match inside()?.does {
        Does::Changes(change) => change.exec,
        _ => None,
    }
}

/// A callback has told of the change that the thread is in.
pub(super) fn is_told() {
    if let Some(mut call) = inside()
        && let Does::Changes(change) = &mut call.does
    {
        change.is_told = true;
        INSIDE.with(|inside| inside.set(Some(call)));
    }
}
