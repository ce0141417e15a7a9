//! Launches of execs.
//!
//! Documented with `cuGraphLaunch`: behind the stream's earlier work and behind the exec's previous launch; nodes are ordered by their edges only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use lineage_sim_model::{GraphNode, Work};

use crate::call::{Call, Numbers};
use crate::clock::spin_ns;
use crate::config::model;
use crate::cupti::activity;
use crate::cupti::records::{EventRecord, EventRecorded, GraphRecord, HostFunctionRecord, Owner};
use crate::device::{self, Entry, HostFunction, Item};
use crate::graph::capture;
use crate::graph::content::{Conditional, ConditionalKind, Content};
use crate::graph::exec::{Exec, FLAG_AUTO_FREE_ON_LAUNCH, FLAG_USE_NODE_PRIORITY};
use crate::graph::flat::FlatNode;
use crate::graph::memory;
use crate::graph::world::Holder;
use crate::objects::{EVENTS, Stream, next_generation};
use crate::result;
use crate::submit::{NodePlace, Request, operation};
use crate::sync::lock;
use crate::threads::ThreadState;

/// A launch that is under way.
pub(crate) struct GraphLaunch {
    /// Its record, where launches are recorded as a whole.
    pub(crate) record: Option<GraphRecord>,
    /// Kept until the launch has ended: the exec may be destroyed meanwhile.
    #[expect(dead_code, reason = "held until the launch has ended")]
    pub(crate) exec: Arc<Exec>,
}

/// Launches an exec into a stream; into a stream that captures, as a child of the template.
pub(crate) fn launch(call: &Call<'_>, exec: &Arc<Exec>, stream: &Arc<Stream>) -> Result<(), u32> {
    if let Some(captured) = capture_launch(call, exec, stream) {
        return captured;
    }
    let mut state = lock(&exec.state);
    memory::launch(&state.nodes, exec.flags & FLAG_AUTO_FREE_ON_LAUNCH != 0)?;
    state.launches += 1;
    let cost_ns = model().graph_node_ns * state.nodes.len() as u64;
    if cost_ns > 0 {
        spin_ns(cost_ns);
    }
    let numbers = call.numbers();
    let previous = state.previous;
    let launching = Launching {
        thread: call.thread,
        numbers,
        stream,
        exec,
        launch: state.launches,
    };
    let nodes = launching.nodes(&state.nodes);
    // Not held while the channel may be full: a conditional node that runs needs it.
    drop(state);
    call.operations.set(count_operations(&nodes));
    let record = GraphRecord::open(call.thread, &launching.owner(), exec.id);
    let launch = GraphLaunch {
        record,
        exec: exec.clone(),
    };
    let entry = Entry::marker(Item::Graph(Box::new(launch)));
    let recorded = recorded_events(&nodes);
    let key = device::enqueue_graph(call, stream, entry, previous, nodes);
    lock(&exec.state).previous = Some(key);
    // Whoever waits in a stream for an event that the graph records waits for the whole launch.
    for (event, generation) in recorded {
        let mut newest = lock(&event.newest);
        if newest.generation == generation {
            newest.captured = Some(key);
        }
    }
    Ok(())
}

fn count_operations(nodes: &[GraphNode<Item>]) -> u32 {
    let operations = nodes
        .iter()
        .filter(|node| matches!(node.payload, Item::Operation(_)));
    operations.count() as u32
}

fn recorded_events(nodes: &[GraphNode<Item>]) -> Vec<(Arc<crate::objects::Event>, u64)> {
    let events = nodes.iter().filter_map(|node| match &node.payload {
        Item::Record(event, generation, _) => Some((event.clone(), *generation)),
        _ => None,
    });
    events.collect()
}

/// As a child graph of the nodes that the exec has now.
fn capture_launch(call: &Call<'_>, exec: &Exec, stream: &Stream) -> Option<Result<(), u32>> {
    let added = capture::add(call, stream, |world, events| {
        let child = world.create_graph(Holder::Node);
        let state = lock(&exec.state);
        let mut made = Vec::with_capacity(state.nodes.len());
        for node in &state.nodes {
            let content = match &node.content {
                Content::Conditional(_) | Content::Allocate(_) | Content::Free(_) => {
                    world.destroy_graph(child);
                    return Err(result::NOT_SUPPORTED);
                }
                // Its nodes follow it in the list.
                Content::Child(_) => Content::Empty,
                content => content.clone(),
            };
            let after: Vec<_> = node
                .after
                .iter()
                .map(|(before, data)| (made[*before], *data))
                .collect();
            made.push(world.add_node(child, content, &after, node.call_ordinal, events)?);
        }
        Ok(Content::Child(child))
    })?;
    Some(added.map(|_| ()))
}

/// What all nodes of a launch share.
pub(crate) struct Launching<'a> {
    pub(crate) thread: &'a Arc<ThreadState>,
    pub(crate) numbers: Numbers,
    pub(crate) stream: &'a Arc<Stream>,
    pub(crate) exec: &'a Arc<Exec>,
    pub(crate) launch: u32,
}

impl Launching<'_> {
    /// The nodes as the model takes them. With conditional nodes there is one more in front, that gives their values their defaults.
    fn nodes(&self, flat: &[FlatNode]) -> Vec<GraphNode<Item>> {
        let values = conditional_values(flat);
        let mut nodes = Vec::with_capacity(flat.len() + 1);
        let shift = usize::from(!values.is_empty());
        if shift == 1 {
            let work = Work::Other { duration_ns: 0 };
            nodes.push(GraphNode::with(Item::Defaults(values), 0, work));
        }
        for node in flat {
            let mut after: Vec<_> = node
                .after
                .iter()
                .map(|(before, data)| (before + shift, data.model()))
                .collect();
            if after.is_empty() && shift == 1 {
                after.push((0, lineage_sim_model::Edge::End));
            }
            nodes.push(self.node(node).after(after));
        }
        nodes
    }

    /// The nodes of a body that runs now.
    pub(crate) fn body(&self, flat: &[FlatNode]) -> Vec<GraphNode<Item>> {
        let after = |node: &FlatNode| {
            let edges = node.after.iter();
            edges
                .map(|(before, data)| (*before, data.model()))
                .collect()
        };
        flat.iter()
            .map(|node| self.node(node).after(after(node)))
            .collect()
    }

    fn node(&self, node: &FlatNode) -> GraphNode<Item> {
        // A disabled node is an empty one.
        if !node.is_enabled {
            return GraphNode::with(Item::Wait, 0, Work::Marker);
        }
        match &node.content {
            Content::Kernel(kernel) => {
                let priority = self
                    .stream
                    .priority
                    .load(std::sync::atomic::Ordering::Relaxed);
                let mut request = kernel.launch.clone().request(priority);
                if self.exec.flags & FLAG_USE_NODE_PRIORITY == 0 {
                    request.priority = None;
                }
                if let Some(Content::Kernel(shown)) = &node.shown {
                    request.shape = shown.launch.clone().request(priority).shape;
                }
                self.operation(node, request)
            }
            Content::Copy(copy) => self.operation(node, copy.request(None)),
            Content::Set(fill) => self.operation(node, fill.request()),
            Content::Host(host) => {
                let work = Work::Other { duration_ns: 0 };
                let owner = Owner {
                    node: Some(self.place(node)),
                    ..self.owner()
                };
                let host = HostFunction {
                    record: HostFunctionRecord::open(self.thread, &owner),
                    function: host.function,
                    user: host.user,
                };
                GraphNode::with(Item::HostFunction(host), 0, work)
            }
            Content::Child(_) | Content::Empty | Content::Allocate(_) | Content::Free(_) => {
                GraphNode::with(Item::Wait, 0, Work::Marker)
            }
            Content::Value(work) => GraphNode::with(Item::Value, 0, work.clone()),
            Content::WaitEvent(event) => {
                let event = EVENTS.get_number(*event);
                let captured = event.and_then(|event| lock(&event.newest).captured);
                GraphNode::with(Item::Wait, 0, Work::Marker).waits_for(captured)
            }
            Content::RecordEvent(event) => {
                let item = match EVENTS.get_number(*event) {
                    Some(event) => {
                        let mut newest = lock(&event.newest);
                        let generation = next_generation();
                        newest.generation = generation;
                        newest.capture = None;
                        drop(newest);
                        let written =
                            EventRecord::open(self.thread, &self.recorded(event.id, generation));
                        Item::Record(event, generation, written)
                    }
                    // Destroyed meanwhile.
                    None => Item::Wait,
                };
                GraphNode::with(item, 0, Work::Marker)
            }
            Content::Conditional(conditional) => {
                let item = Item::Conditional(Box::new(RunningConditional {
                    conditional: conditional.clone(),
                    node: node.original,
                    thread: self.thread.clone(),
                    numbers: self.numbers,
                    stream: self.stream.clone(),
                    exec: self.exec.clone(),
                    launch: self.launch,
                    has_run: false,
                }));
                GraphNode::with(item, 0, Work::Nested)
            }
        }
    }

    fn place(&self, node: &FlatNode) -> NodePlace {
        NodePlace {
            graph_id: self.exec.id,
            launch: self.launch,
            node_id: node.id,
            source_node_id: node.source_id,
            capture_call_ordinal: node.call_ordinal,
        }
    }

    fn owner(&self) -> Owner {
        Owner {
            context_id: self.stream.context_id,
            stream_id: self.stream.id,
            correlation_id: self.numbers.device_correlation_id,
            runtime_correlation_id: self.numbers.runtime_correlation_id,
            node: None,
        }
    }

    fn recorded(&self, event_id: u32, sync_id: u64) -> EventRecorded {
        EventRecorded {
            device: self.stream.device,
            correlation_id: self.numbers.device_correlation_id,
            context_id: self.stream.context_id,
            stream_id: self.stream.id,
            event_id,
            sync_id,
        }
    }

    fn operation(&self, node: &FlatNode, mut request: Request) -> GraphNode<Item> {
        if activity::traces_whole_graphs() {
            request.shape = None;
        }
        let place = self.place(node);
        let (work, priority) = (request.model.clone(), request.priority);
        let (item, number) =
            operation(self.thread, self.numbers, self.stream, request, Some(place));
        GraphNode::with(item, number, work).priority(priority)
    }
}

/// A conditional node whose turn has come, or will.
pub(crate) struct RunningConditional {
    conditional: Conditional,
    /// The template's node, which finds the bodies in the exec.
    node: crate::handles::HandleNumber,
    thread: Arc<ThreadState>,
    numbers: Numbers,
    stream: Arc<Stream>,
    exec: Arc<Exec>,
    launch: u32,
    has_run: bool,
}

impl RunningConditional {
    /// The body that runs next; without nodes when none does.
    pub(crate) fn next(&mut self) -> Vec<GraphNode<Item>> {
        let value = values_now(self.conditional.value);
        let body = match self.conditional.kind {
            ConditionalKind::While => (value != 0).then_some(0),
            _ if self.has_run => None,
            ConditionalKind::If => Some(usize::from(value == 0)),
            ConditionalKind::Switch => Some(value as usize),
        };
        self.has_run = true;
        let mut state = lock(&self.exec.state);
        let node = crate::graph::flat::find_mut(&mut state.nodes, self.node);
        let body = body.and_then(|body| node?.bodies.get(body));
        let launching = Launching {
            thread: &self.thread,
            numbers: self.numbers,
            stream: &self.stream,
            exec: &self.exec,
            launch: self.launch,
        };
        let nodes = body.map_or_else(Vec::new, |body| launching.body(body));
        drop(state);
        device::count_enqueued(count_operations(&nodes));
        nodes
    }
}

fn conditional_values(nodes: &[FlatNode]) -> Vec<u64> {
    let mut values = Vec::new();
    for node in nodes {
        if let Content::Conditional(conditional) = &node.content {
            values.push(conditional.value);
        }
        for body in &node.bodies {
            values.extend(conditional_values(body));
        }
    }
    values
}

/// The value of a conditional handle.
struct Value {
    /// Assigned at every launch (`CU_GRAPH_COND_ASSIGN_DEFAULT`).
    default: Option<u32>,
    now: u32,
}

#[derive(Default)]
struct Values {
    all: HashMap<u64, Value>,
    last: u64,
}

fn values() -> &'static Mutex<Values> {
    static VALUES: OnceLock<Mutex<Values>> = OnceLock::new();
    VALUES.get_or_init(Default::default)
}

/// `cuGraphConditionalHandleCreate`.
pub(crate) fn create_value(default: Option<u32>) -> u64 {
    let mut values = lock(values());
    values.last += 1;
    let number = values.last;
    let now = default.unwrap_or(0);
    values.all.insert(number, Value { default, now });
    number
}

pub(crate) fn value_exists(number: u64) -> bool {
    lock(values()).all.contains_key(&number)
}

fn values_now(number: u64) -> u32 {
    lock(values()).all.get(&number).map_or(0, |value| value.now)
}

/// A launch begins.
pub(crate) fn assign_defaults(numbers: &[u64]) {
    let mut values = lock(values());
    for number in numbers {
        if let Some(value) = values.all.get_mut(number)
            && let Some(default) = value.default
        {
            value.now = default;
        }
    }
}

/// A kernel sets the value, as `cudaGraphSetConditional` does on a device. 1 where there is such a handle.
pub(crate) extern "C" fn set_value(number: u64, now: u32) -> i32 {
    match lock(values()).all.get_mut(&number) {
        Some(value) => {
            value.now = now;
            1
        }
        None => 0,
    }
}
