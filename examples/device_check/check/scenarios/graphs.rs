//! Graphs: captured, built, copied, updated, and with a node disabled.

use std::ffi::c_void;

use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphExecUpdateResultInfo, CUgraphNode,
    CUstreamCaptureMode,
};

use super::stage::{Kernel, Stage, call};
use crate::check::failure::Failure;
use crate::check::program::SPIN_NS;

pub(super) fn graph() -> Result<CUgraph, Failure> {
    let mut graph = std::ptr::null_mut();
    call!(cuGraphCreate(&mut graph, 0))?;
    Ok(graph)
}

/// The parameters of a kernel of so many blocks.
fn parameters(
    stage: &Stage,
    kernel: Kernel,
    blocks: u32,
    values: &mut [*mut c_void; 1],
) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: stage.function(kernel),
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: values.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// Adds a kernel of so many blocks behind these.
fn add(
    stage: &Stage,
    graph: CUgraph,
    kernel: Kernel,
    blocks: u32,
    behind: &[CUgraphNode],
) -> Result<CUgraphNode, Failure> {
    let mut duration = SPIN_NS;
    let mut values = [(&raw mut duration).cast::<c_void>()];
    let parameters = parameters(stage, kernel, blocks, &mut values);
    let mut node = std::ptr::null_mut();
    call!(cuGraphAddKernelNode_v2(
        &mut node,
        graph,
        behind.as_ptr(),
        behind.len(),
        &parameters,
    ))?;
    Ok(node)
}

pub(super) fn instantiate(graph: CUgraph) -> Result<CUgraphExec, Failure> {
    let mut exec = std::ptr::null_mut();
    call!(cuGraphInstantiateWithFlags(&mut exec, graph, 0))?;
    Ok(exec)
}

/// Kernels that do nothing, of so many blocks each, one behind the other.
pub(super) fn chain(stage: &Stage, blocks: &[u32]) -> Result<(CUgraph, Vec<CUgraphNode>), Failure> {
    let graph = graph()?;
    let mut nodes: Vec<CUgraphNode> = Vec::new();
    for &blocks in blocks {
        let behind = nodes.last().copied();
        nodes.push(add(stage, graph, Kernel::Tick, blocks, behind.as_slice())?);
    }
    Ok((graph, nodes))
}

/// Captures kernels that do nothing, of so many blocks each.
pub(super) fn capture(stage: &Stage, blocks: &[u32]) -> Result<CUgraph, Failure> {
    let stream = stage.free_stream()?;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    call!(cuStreamBeginCapture_v2(stream, mode))?;
    for &blocks in blocks {
        stage.launch(Kernel::Tick, stream, blocks)?;
    }
    let mut graph = std::ptr::null_mut();
    call!(cuStreamEndCapture(stream, &mut graph))?;
    Ok(graph)
}

pub(super) fn destroy(exec: CUgraphExec) -> Result<(), Failure> {
    call!(cuGraphExecDestroy(exec))
}

pub(super) fn update(exec: CUgraphExec, graph: CUgraph) -> Result<(), Failure> {
    // SAFETY: of C, all of whose values may be zero.
    let mut outcome: CUgraphExecUpdateResultInfo = unsafe { std::mem::zeroed() };
    call!(cuGraphExecUpdate_v2(exec, graph, &mut outcome))
}

/// Gives an exec's copy of a node other parameters: so many blocks.
pub(super) fn set_params(
    stage: &Stage,
    exec: CUgraphExec,
    node: CUgraphNode,
    blocks: u32,
) -> Result<(), Failure> {
    let mut duration = SPIN_NS;
    let mut values = [(&raw mut duration).cast::<c_void>()];
    let parameters = parameters(stage, Kernel::Tick, blocks, &mut values);
    call!(cuGraphExecKernelNodeSetParams_v2(exec, node, &parameters))
}

pub(super) fn captured(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stage.begin()?;
    call!(cuStreamBeginCapture_v2(stream, mode))?;
    stage.launch(Kernel::Tick, stream, 1)?;
    call!(cuMemsetD8Async(stage.at(0), 3, 1 << 10, stream))?;
    stage.launch(Kernel::Tick, stream, 2)?;
    let mut graph = std::ptr::null_mut();
    call!(cuStreamEndCapture(stream, &mut graph))?;
    let exec = instantiate(graph)?;
    (0..3).try_for_each(|_| call!(cuGraphLaunch(exec, stream)))
}

pub(super) fn forked(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let graph = graph()?;
    let fork = add(stage, graph, Kernel::Tick, 1, &[])?;
    let left = add(stage, graph, Kernel::Spin, 2, &[fork])?;
    let right = add(stage, graph, Kernel::Spin, 3, &[fork])?;
    add(stage, graph, Kernel::Tick, 4, &[left, right])?;
    let exec = instantiate(graph)?;
    stage.begin()?;
    call!(cuGraphLaunch(exec, stream))
}

pub(super) fn exec_update(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let (graph, _) = chain(stage, &[1, 2])?;
    let (changed, _) = chain(stage, &[1, 3])?;
    let exec = instantiate(graph)?;
    stage.begin()?;
    call!(cuGraphLaunch(exec, stream))?;
    update(exec, changed)?;
    call!(cuGraphLaunch(exec, stream))
}

pub(super) fn disabled_node(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let (graph, nodes) = chain(stage, &[1, 2, 3])?;
    let exec = instantiate(graph)?;
    stage.begin()?;
    call!(cuGraphNodeSetEnabled(exec, nodes[1], 0))?;
    call!(cuGraphLaunch(exec, stream))?;
    call!(cuGraphNodeSetEnabled(exec, nodes[1], 1))?;
    call!(cuGraphLaunch(exec, stream))
}

pub(super) fn set_one(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let (graph, nodes) = chain(stage, &[1, 2])?;
    let exec = instantiate(graph)?;
    stage.begin()?;
    call!(cuGraphLaunch(exec, stream))?;
    set_params(stage, exec, nodes[1], 3)?;
    call!(cuGraphLaunch(exec, stream))
}

pub(super) fn cloned(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let (graph, _) = chain(stage, &[1, 2])?;
    let mut clone = std::ptr::null_mut();
    call!(cuGraphClone(&mut clone, graph))?;
    let execs = [instantiate(graph)?, instantiate(clone)?];
    stage.begin()?;
    execs
        .into_iter()
        .try_for_each(|exec| call!(cuGraphLaunch(exec, stream)))
}

pub(super) fn child(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let inner = capture(stage, &[2, 3])?;
    let outer = graph()?;
    let first = add(stage, outer, Kernel::Tick, 1, &[])?;
    let mut node = std::ptr::null_mut();
    call!(cuGraphAddChildGraphNode(&mut node, outer, &first, 1, inner))?;
    let exec = instantiate(outer)?;
    stage.begin()?;
    call!(cuGraphLaunch(exec, stream))
}

pub(super) fn several_execs(stage: &Stage) -> Result<(), Failure> {
    let streams = [stage.free_stream()?, stage.free_stream()?];
    let (graph, _) = chain(stage, &[1, 2])?;
    let execs = [instantiate(graph)?, instantiate(graph)?];
    stage.begin()?;
    call!(cuGraphLaunch(execs[0], streams[0]))?;
    call!(cuGraphLaunch(execs[1], streams[1]))?;
    call!(cuGraphLaunch(execs[0], streams[1]))
}

pub(super) fn made_again(stage: &Stage) -> Result<(), Failure> {
    let stream = stage.free_stream()?;
    let (graph, _) = chain(stage, &[1])?;
    let exec = instantiate(graph)?;
    stage.begin()?;
    call!(cuGraphLaunch(exec, stream))?;
    call!(cuStreamSynchronize(stream))?;
    destroy(exec)?;
    let exec = instantiate(graph)?;
    call!(cuGraphLaunch(exec, stream))
}
