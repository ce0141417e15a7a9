//! Nodes: added to a template, asked for, and changed there or in an exec.

use std::sync::Arc;

use crate::call::Asks;
use crate::driver::graph::behind;
use crate::driver::graph_exec::find;
use crate::driver::graph_params::{
    AllocateParams, Asked, ConditionalParams, CopyParams, HostParams, KernelParams, KernelParamsV1,
    NodeParams, SetParams, event, read,
};
use crate::driver::{Out, driver_functions};
use crate::graph::content::{Content, ShownBodies};
use crate::graph::resource::{self, Event, What};
use crate::graph::world::{EdgeData, Holder, World, world};
use crate::graph::{exec, launch, memory};
use crate::handles::{Handle, handle, number};
use crate::objects::CONTEXTS;
use crate::result;

/// Adds a node behind others, with what else `content` makes in the same step.
fn add_with(
    node: Out<Handle>,
    graph: Handle,
    (nodes, edges, count): (*const Handle, *const EdgeData, usize),
    content: impl FnOnce(&mut World, &mut Vec<Event>) -> Result<Content, u32>,
) -> Result<(), u32> {
    node.check()?;
    let behind = behind(nodes, edges, count)?;
    let mut events = Vec::new();
    let added = {
        let mut world = world();
        world.check_changeable(number(graph))?;
        let content = content(&mut world, &mut events)?;
        let inner = content.inner_graphs().to_vec();
        let added = world.add_node(number(graph), content, &behind, 0, &mut events);
        if added.is_err() {
            inner
                .into_iter()
                .for_each(|inner| world.destroy_graph(inner));
        }
        added
    };
    if added.is_ok() {
        resource::tell(&events);
    }
    node.put(handle(added?))
}

fn add(
    node: Out<Handle>,
    graph: Handle,
    nodes: *const Handle,
    count: usize,
    content: Result<Content, u32>,
) -> Result<(), u32> {
    add_with(node, graph, (nodes, std::ptr::null(), count), |_, _| {
        content
    })
}

/// A graph of the node's own: a clone, or the program's, which the node takes over.
fn child(
    world: &mut World,
    graph: Handle,
    moves: bool,
    events: &mut Vec<Event>,
) -> Result<Content, u32> {
    let number = number(graph);
    if !moves {
        return Ok(Content::Child(world.clone_graph(
            number,
            Holder::Node,
            events,
        )?));
    }
    let graph = world.graphs.get_mut(&number).ok_or(result::INVALID_VALUE)?;
    if graph.holder != Holder::Program {
        return Err(result::INVALID_VALUE);
    }
    graph.holder = Holder::Node;
    Ok(Content::Child(number))
}

/// A conditional node with its empty bodies, which the caller is told.
fn conditional(
    world: &mut World,
    params: *mut ConditionalParams,
    events: &mut Vec<Event>,
) -> Result<Content, u32> {
    let asked = read(params.cast_const())?;
    let mut conditional = asked.conditional()?;
    for _ in 0..asked.size {
        let body = world.create_graph(Holder::Node);
        events.push(Event::of_graph(What::GraphCreated, body));
        conditional.bodies.push(body);
    }
    conditional.shown = Arc::new(ShownBodies::new(&conditional.bodies));
    // SAFETY: `read` has seen that it is not null; the caller's to be written.
    unsafe { (*params).bodies = conditional.shown.list() };
    Ok(Content::Conditional(conditional))
}

fn add_any(
    node: Out<Handle>,
    graph: Handle,
    behind: (*const Handle, *const EdgeData, usize),
    params: *mut NodeParams,
) -> Result<(), u32> {
    if params.is_null() {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's to be valid.
    match unsafe { &mut *params }.asked()? {
        Asked::Content(content) => add_with(node, graph, behind, |_, _| Ok(content)),
        Asked::Child { graph: of, moves } => add_with(node, graph, behind, |world, events| {
            child(world, of, moves, events)
        }),
        Asked::Conditional(params) => add_with(node, graph, behind, |world, events| {
            conditional(world, params, events)
        }),
        Asked::Allocate(params) => allocate(node, graph, behind, params),
    }
}

/// An allocation node, whose address the caller is told.
fn allocate(
    node: Out<Handle>,
    graph: Handle,
    behind: (*const Handle, *const EdgeData, usize),
    params: *mut AllocateParams,
) -> Result<(), u32> {
    let (content, address) = read(params.cast_const())?.content()?;
    add_with(node, graph, behind, |_, _| Ok(content))?;
    // SAFETY: `read` has seen that it is not null; the caller's to be written.
    unsafe { (*params).address = address };
    Ok(())
}

/// Changes a template's node; its type stays.
fn set(node: Handle, content: Result<Content, u32>) -> Result<(), u32> {
    let content = content?;
    let mut world = world();
    let graph = world.node(number(node))?.graph;
    world.check_changeable(graph)?;
    let node = world
        .nodes
        .get_mut(&number(node))
        .ok_or(result::INVALID_VALUE)?;
    if node.content.node_type() != content.node_type() {
        return Err(result::INVALID_VALUE);
    }
    node.content = content;
    Ok(())
}

fn set_in_exec(of: Handle, node: Handle, content: Result<Content, u32>) -> Result<(), u32> {
    let exec = find(of)?;
    exec::set_params(&exec, number(node), content?)
}

/// What a `CUgraphNodeParams` may change a node into.
fn plain(params: *mut NodeParams) -> Result<Content, u32> {
    if params.is_null() {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's to be valid.
    match unsafe { &mut *params }.asked()? {
        Asked::Content(content) => Ok(content),
        Asked::Child { .. } | Asked::Conditional(_) | Asked::Allocate(_) => {
            Err(result::NOT_SUPPORTED)
        }
    }
}

fn of_node<T>(
    node: Handle,
    params: Out<T>,
    of: impl FnOnce(&Content) -> Result<T, u32>,
) -> Result<(), u32> {
    params.check()?;
    let found = of(&world().node(number(node))?.content)?;
    params.put(found)
}

fn event_of(node: Handle, wanted: Out<Handle>, waits: bool) -> Result<(), u32> {
    of_node(node, wanted, |content| match content {
        Content::WaitEvent(event) if waits => Ok(handle(*event)),
        Content::RecordEvent(event) if !waits => Ok(handle(*event)),
        _ => Err(result::INVALID_VALUE),
    })
}

fn copy_content(params: *const CopyParams, context: Handle) -> Result<Content, u32> {
    check_context(context)?;
    Ok(Content::Copy(read(params)?.copy(true)?))
}

/// The context of a copy or a set: null for the current one.
fn check_context(context: Handle) -> Result<(), u32> {
    if context.is_null() || CONTEXTS.get(context).is_some() {
        Ok(())
    } else {
        Err(result::INVALID_CONTEXT)
    }
}

/// `CU_GRAPH_COND_ASSIGN_DEFAULT`.
const ASSIGN_DEFAULT: u32 = 1;

driver_functions! {
    fn cuGraphAddKernelNode [502, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, params: *const KernelParamsV1) {
        add(node, graph, nodes, count, read(params).and_then(|params| params.content()))
    }

    fn cuGraphAddKernelNode_v2 [689, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, params: *const KernelParams) {
        add(node, graph, nodes, count, read(params).and_then(|params| params.first.content()))
    }

    fn cuGraphKernelNodeGetParams [503, Asks::Nothing] (_, node: Handle, params: Out<KernelParamsV1>) {
        of_node(node, params, KernelParamsV1::of)
    }

    fn cuGraphKernelNodeGetParams_v2 [690, Asks::Nothing] (_, node: Handle, params: Out<KernelParams>) {
        of_node(node, params, |content| Ok(KernelParamsV1::of(content)?.into()))
    }

    fn cuGraphKernelNodeSetParams [521, Asks::Nothing] (_, node: Handle, params: *const KernelParamsV1) {
        set(node, read(params).and_then(|params| params.content()))
    }

    fn cuGraphKernelNodeSetParams_v2 [691, Asks::Nothing] (_, node: Handle, params: *const KernelParams) {
        set(node, read(params).and_then(|params| params.first.content()))
    }

    fn cuGraphExecKernelNodeSetParams [538, Asks::Nothing] (_, exec: Handle, node: Handle, params: *const KernelParamsV1) {
        set_in_exec(exec, node, read(params).and_then(|params| params.content()))
    }

    fn cuGraphExecKernelNodeSetParams_v2 [692, Asks::Nothing] (_, exec: Handle, node: Handle, params: *const KernelParams) {
        set_in_exec(exec, node, read(params).and_then(|params| params.first.content()))
    }

    fn cuGraphAddMemcpyNode [504, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, params: *const CopyParams, context: Handle) {
        add(node, graph, nodes, count, copy_content(params, context))
    }

    fn cuGraphMemcpyNodeGetParams [505, Asks::Nothing] (_, node: Handle, params: Out<CopyParams>) {
        of_node(node, params, CopyParams::of)
    }

    fn cuGraphMemcpyNodeSetParams [520, Asks::Nothing] (_, node: Handle, params: *const CopyParams) {
        set(node, copy_content(params, std::ptr::null_mut()))
    }

    fn cuGraphExecMemcpyNodeSetParams [562, Asks::Nothing] (_, exec: Handle, node: Handle, params: *const CopyParams, context: Handle) {
        set_in_exec(exec, node, copy_content(params, context))
    }

    fn cuGraphAddMemsetNode [506, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, params: *const SetParams, context: Handle) {
        check_context(context)?;
        add(node, graph, nodes, count, read(params).and_then(|params| params.content()))
    }

    fn cuGraphMemsetNodeGetParams [507, Asks::Nothing] (_, node: Handle, params: Out<SetParams>) {
        of_node(node, params, SetParams::of)
    }

    fn cuGraphMemsetNodeSetParams [508, Asks::Nothing] (_, node: Handle, params: *const SetParams) {
        set(node, read(params).and_then(|params| params.content()))
    }

    fn cuGraphExecMemsetNodeSetParams [563, Asks::Nothing] (_, exec: Handle, node: Handle, params: *const SetParams, context: Handle) {
        check_context(context)?;
        set_in_exec(exec, node, read(params).and_then(|params| params.content()))
    }

    fn cuGraphAddHostNode [530, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, params: *const HostParams) {
        add(node, graph, nodes, count, read(params).and_then(|params| params.content()))
    }

    fn cuGraphHostNodeGetParams [531, Asks::Nothing] (_, node: Handle, params: Out<HostParams>) {
        of_node(node, params, HostParams::of)
    }

    fn cuGraphHostNodeSetParams [533, Asks::Nothing] (_, node: Handle, params: *const HostParams) {
        set(node, read(params).and_then(|params| params.content()))
    }

    fn cuGraphExecHostNodeSetParams [564, Asks::Nothing] (_, exec: Handle, node: Handle, params: *const HostParams) {
        set_in_exec(exec, node, read(params).and_then(|params| params.content()))
    }

    fn cuGraphAddChildGraphNode [525, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, of: Handle) {
        add_with(node, graph, (nodes, std::ptr::null(), count), |world, events| child(world, of, false, events))
    }

    fn cuGraphChildGraphNodeGetGraph [529, Asks::Nothing] (_, node: Handle, graph: Out<Handle>) {
        of_node(node, graph, |content| match content {
            Content::Child(graph) => Ok(handle(*graph)),
            _ => Err(result::INVALID_VALUE),
        })
    }

    fn cuGraphExecChildGraphNodeSetParams [586, Asks::Nothing] (_, exec: Handle, node: Handle, child: Handle) {
        exec::set_child(&*find(exec)?, number(node), number(child))
    }

    fn cuGraphAddEmptyNode [526, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize) {
        add(node, graph, nodes, count, Ok(Content::Empty))
    }

    fn cuGraphAddEventRecordNode [589, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, of: Handle) {
        add(node, graph, nodes, count, event(of).map(Content::RecordEvent))
    }

    fn cuGraphAddEventWaitNode [590, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, of: Handle) {
        add(node, graph, nodes, count, event(of).map(Content::WaitEvent))
    }

    fn cuGraphEventRecordNodeGetEvent [591, Asks::Nothing] (_, node: Handle, event: Out<Handle>) {
        event_of(node, event, false)
    }

    fn cuGraphEventWaitNodeGetEvent [592, Asks::Nothing] (_, node: Handle, event: Out<Handle>) {
        event_of(node, event, true)
    }

    fn cuGraphEventRecordNodeSetEvent [593, Asks::Nothing] (_, node: Handle, of: Handle) {
        set(node, event(of).map(Content::RecordEvent))
    }

    fn cuGraphEventWaitNodeSetEvent [594, Asks::Nothing] (_, node: Handle, of: Handle) {
        set(node, event(of).map(Content::WaitEvent))
    }

    fn cuGraphExecEventRecordNodeSetEvent [595, Asks::Nothing] (_, exec: Handle, node: Handle, of: Handle) {
        set_in_exec(exec, node, event(of).map(Content::RecordEvent))
    }

    fn cuGraphExecEventWaitNodeSetEvent [596, Asks::Nothing] (_, exec: Handle, node: Handle, of: Handle) {
        set_in_exec(exec, node, event(of).map(Content::WaitEvent))
    }

    fn cuGraphAddMemAllocNode [638, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, params: *mut AllocateParams) {
        allocate(node, graph, (nodes, std::ptr::null(), count), params)
    }

    fn cuGraphMemAllocNodeGetParams [648, Asks::Nothing] (_, node: Handle, params: Out<AllocateParams>) {
        of_node(node, params, AllocateParams::of)
    }

    fn cuGraphAddMemFreeNode [639, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, address: u64) {
        add(node, graph, nodes, count, memory::find(address).map(Content::Free))
    }

    fn cuGraphMemFreeNodeGetParams [649, Asks::Nothing] (_, node: Handle, address: Out<u64>) {
        of_node(node, address, |content| match content {
            Content::Free(memory) => Ok(memory.address),
            _ => Err(result::INVALID_VALUE),
        })
    }

    fn cuGraphConditionalHandleCreate [722, Asks::Nothing] (_, value: Out<u64>, graph: Handle, context: Handle, default: u32, flags: u32) {
        value.check()?;
        check_context(context)?;
        world().check_changeable(number(graph))?;
        match flags {
            0 => value.put(launch::create_value(None)),
            ASSIGN_DEFAULT => value.put(launch::create_value(Some(default))),
            _ => Err(result::INVALID_VALUE),
        }
    }

    fn cuGraphAddNode [712, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, count: usize, params: *mut NodeParams) {
        add_any(node, graph, (nodes, std::ptr::null(), count), params)
    }

    fn cuGraphAddNode_v2 [723, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, edges: *const EdgeData, count: usize, params: *mut NodeParams) {
        add_any(node, graph, (nodes, edges, count), params)
    }

    fn cuGraphAddNode_v3 [863, Asks::Nothing] (_, node: Out<Handle>, graph: Handle, nodes: *const Handle, edges: *const EdgeData, count: usize, params: *mut NodeParams) {
        add_any(node, graph, (nodes, edges, count), params)
    }

    fn cuGraphNodeSetParams [713, Asks::Nothing] (_, node: Handle, params: *mut NodeParams) {
        set(node, plain(params))
    }

    fn cuGraphNodeSetParams_v2 [864, Asks::Nothing] (_, node: Handle, params: *mut NodeParams) {
        set(node, plain(params))
    }

    fn cuGraphExecNodeSetParams [714, Asks::Nothing] (_, exec: Handle, node: Handle, params: *mut NodeParams) {
        set_in_exec(exec, node, plain(params))
    }
}
