//! Execs: instantiate, launch, update.

use std::ffi::c_char;
use std::sync::Arc;

use crate::call::{Asks, Call};
use crate::cupti::api::runtime;
use crate::driver::{Out, driver_functions};
use crate::graph::exec::{self, EXECS, Exec, INVALID_STRUCTURE};
use crate::graph::{flat, launch};
use crate::handles::{Handle, handle, number};
use crate::objects::{current_context, stream};
use crate::result;
use crate::sync::lock;

pub(crate) fn find(of: Handle) -> Result<Arc<Exec>, u32> {
    EXECS.get(of).ok_or(result::INVALID_VALUE)
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
pub(crate) struct InstantiateParams {
    flags: u64,
    upload_stream: Handle,
    error_node: Handle,
    result: u32,
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
pub(crate) struct UpdateResultInfo {
    result: u32,
    error_node: Handle,
    error_from_node: Handle,
}

fn instantiate(exec: Out<Handle>, graph: Handle, flags: u64) -> Result<(), u32> {
    exec.check()?;
    current_context()?;
    exec.put(handle(exec::instantiate(number(graph), flags)?))
}

/// An update; what it came to, and the node of the new graph that it failed at.
fn update(of: Handle, graph: Handle) -> Result<(u32, Handle), u32> {
    let exec = find(of)?;
    Ok(match exec::update(&exec, number(graph))? {
        Ok(()) => (0, std::ptr::null_mut()),
        Err(error) => (error.mismatch as u32, handle(error.node)),
    })
}

fn outcome(of_update: u32) -> Result<(), u32> {
    match of_update {
        0 => Ok(()),
        _ => Err(result::GRAPH_EXEC_UPDATE_FAILURE),
    }
}

/// Nothing is left to be uploaded; the stream must exist.
fn upload(of: Handle, to: Handle) -> Result<(), u32> {
    find(of)?;
    stream(to).map(|_| ())
}

fn launch(call: &Call<'_>, of: Handle, to: Handle) -> Result<(), u32> {
    let exec = find(of)?;
    launch::launch(call, &exec, &stream(to)?)
}

fn instantiate_with_params(
    exec: Out<Handle>,
    graph: Handle,
    params: *mut InstantiateParams,
) -> Result<(), u32> {
    if params.is_null() {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's to be valid.
    let params = unsafe { &mut *params };
    let outcome = instantiate(exec, graph, params.flags);
    params.error_node = std::ptr::null_mut();
    // CUDA_GRAPH_INSTANTIATE_SUCCESS, ERROR, INVALID_STRUCTURE
    params.result = match outcome {
        Ok(()) => 0,
        Err(result::INVALID_VALUE) => INVALID_STRUCTURE,
        Err(_) => 1,
    };
    outcome
}

driver_functions! {
    fn cuGraphInstantiateWithFlags [643, Asks::Nothing] (_, exec: Out<Handle>, graph: Handle, flags: u64) {
        instantiate(exec, graph, flags)
    }

    fn cuGraphInstantiate [513, Asks::Nothing] (_, exec: Out<Handle>, graph: Handle, error_node: Out<Handle>, _log: *mut c_char, _bytes: usize) {
        error_node.put_if_wanted(std::ptr::null_mut());
        instantiate(exec, graph, 0)
    }

    fn cuGraphInstantiate_v2 [578, Asks::Nothing] (_, exec: Out<Handle>, graph: Handle, error_node: Out<Handle>, _log: *mut c_char, _bytes: usize) {
        error_node.put_if_wanted(std::ptr::null_mut());
        instantiate(exec, graph, 0)
    }

    fn cuGraphInstantiateWithParams [656 also cuGraphInstantiateWithParams_ptsz 657, Asks::Nothing] (_, exec: Out<Handle>, graph: Handle, params: *mut InstantiateParams) {
        instantiate_with_params(exec, graph, params)
    }

    fn cuGraphExecGetFlags [658, Asks::Nothing] (_, of: Handle, flags: Out<u64>) {
        flags.put(find(of)?.flags)
    }

    fn cuGraphUpload [580 also cuGraphUpload_ptsz 581, Asks::Nothing] (_, of: Handle, to: Handle) {
        upload(of, to)
    }

    fn cuGraphLaunch [514 also cuGraphLaunch_ptsz 515, Asks::Work(runtime::GRAPH_LAUNCH)] (call, of: Handle, to: Handle) {
        launch(call, of, to)
    }

    fn cuGraphExecDestroy [516, Asks::Nothing] (_, of: Handle) {
        exec::destroy(&*find(of)?);
        Ok(())
    }

    fn cuGraphExecUpdate [561, Asks::Nothing] (_, of: Handle, graph: Handle, error_node: Out<Handle>, update_result: Out<u32>) {
        let (code, node) = update(of, graph)?;
        error_node.put_if_wanted(node);
        update_result.put_if_wanted(code);
        outcome(code)
    }

    fn cuGraphExecUpdate_v2 [696, Asks::Nothing] (_, of: Handle, graph: Handle, info: Out<UpdateResultInfo>) {
        let (code, node) = update(of, graph)?;
        info.put_if_wanted(UpdateResultInfo {
            result: code,
            error_node: node,
            error_from_node: std::ptr::null_mut(),
        });
        outcome(code)
    }

    fn cuGraphNodeSetEnabled [650, Asks::Nothing] (_, of: Handle, node: Handle, enabled: u32) {
        let exec = find(of)?;
        let mut state = lock(&exec.state);
        let node = flat::find_mut(&mut state.nodes, number(node)).ok_or(result::INVALID_VALUE)?;
        // Kernel, memset and memcpy nodes only.
        if node.content.node_type() > 2 {
            return Err(result::INVALID_VALUE);
        }
        node.is_enabled = enabled != 0;
        Ok(())
    }

    fn cuGraphNodeGetEnabled [651, Asks::Nothing] (_, of: Handle, node: Handle, enabled: Out<u32>) {
        let exec = find(of)?;
        let mut state = lock(&exec.state);
        let node = flat::find_mut(&mut state.nodes, number(node)).ok_or(result::INVALID_VALUE)?;
        if node.content.node_type() > 2 {
            return Err(result::INVALID_VALUE);
        }
        enabled.put(node.is_enabled.into())
    }
}
