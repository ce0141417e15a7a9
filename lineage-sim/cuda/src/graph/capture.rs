//! Captures: calls on a stream become nodes of a template, each behind those that the stream's order puts before it.
//!
//! Documented with `cuStreamBeginCapture`, `cuThreadExchangeStreamCaptureMode` and the codes 900 to 908 of `CUresult`. A stream that
//! waits for an event that was recorded in a capture joins that capture (fork); what joined must have come back to the
//! first stream at its end (join). A call that a capture forbids makes the capture invalid: from then on every call on its streams answers 901.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::call::Call;
use crate::graph::content::Content;
use crate::graph::resource::{self, Event, What};
use crate::graph::world::{EdgeData, Holder, World, world};
use crate::handles::HandleNumber;
use crate::objects::{Stream, StreamOrder};
use crate::result;

/// `CUstreamCaptureMode`: what else is forbidden meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Unsafe calls of every thread whose own mode is global, and of the capturing thread.
    #[default]
    Global,
    /// Unsafe calls of the capturing thread.
    ThreadLocal,
    /// Nothing.
    Relaxed,
}

impl Mode {
    pub(crate) fn of(number: u32) -> Result<Self, u32> {
        match number {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(result::INVALID_VALUE),
        }
    }
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

/// `cuThreadExchangeStreamCaptureMode`: the mode before.
pub(crate) fn exchange_mode(mode: Mode) -> Mode {
    MODE.with(|cell| cell.replace(mode))
}

/// A node and the edge that leads from it.
pub(crate) type Behind = (HandleNumber, EdgeData);

pub(crate) struct Capture {
    id: u64,
    pub(crate) graph: HandleNumber,
    /// The program's own graph: it outlives a capture that fails.
    is_into_graph: bool,
    origin: u32,
    mode: Mode,
    thread: u32,
    context: HandleNumber,
    is_invalid: bool,
    /// What the next node of each stream is behind.
    streams: HashMap<u32, Vec<Behind>>,
    /// Streams in it that the legacy default stream would be ordered with.
    has_blocking: bool,
}

#[derive(Default)]
pub(crate) struct Captures {
    under_way: Vec<Capture>,
    last_id: u64,
}

/// How many captures are under way, so that calls outside of any pay for one look.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn none_is_under_way() -> bool {
    UNDER_WAY.load(Ordering::Acquire) == 0
}

/// What an event captured of a capture.
#[derive(Clone, Debug)]
pub(crate) struct CapturedEvent {
    capture: u64,
    nodes: Vec<Behind>,
}

/// `CUstreamCaptureStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    None = 0,
    Active = 1,
    Invalidated = 2,
}

/// What `cuStreamGetCaptureInfo` tells of a stream that captures.
pub(crate) struct Info {
    pub(crate) status: Status,
    pub(crate) id: u64,
    pub(crate) graph: HandleNumber,
    pub(crate) behind: Vec<Behind>,
}

impl Captures {
    fn of_stream(&mut self, stream: u32) -> Option<&mut Capture> {
        self.under_way
            .iter_mut()
            .find(|capture| capture.streams.contains_key(&stream))
    }
}

/// Begins a capture on a stream, into a new graph or one of the program's.
pub(crate) fn begin(
    call: &Call<'_>,
    stream: &Stream,
    mode: Mode,
    into: Option<(HandleNumber, Vec<Behind>)>,
) -> Result<(), u32> {
    if stream.order == StreamOrder::Legacy {
        return Err(result::STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut events = Vec::new();
    {
        let mut world = world();
        if world.captures.of_stream(stream.id).is_some() {
            return Err(result::ILLEGAL_STATE);
        }
        let is_into_graph = into.is_some();
        let (graph, behind) = match into {
            Some((graph, behind)) => {
                world.check_changeable(graph)?;
                for (node, _) in &behind {
                    if world.node(*node)?.graph != graph {
                        return Err(result::INVALID_VALUE);
                    }
                }
                (graph, behind)
            }
            None => {
                let graph = world.create_graph(Holder::Capture);
                events.push(Event::of_graph(What::GraphCreated, graph));
                (graph, Vec::new())
            }
        };
        world.captures.last_id += 1;
        let id = world.captures.last_id;
        world.captures.under_way.push(Capture {
            id,
            graph,
            is_into_graph,
            origin: stream.id,
            mode,
            thread: call.thread.ordinal,
            context: stream.context,
            is_invalid: false,
            streams: HashMap::from([(stream.id, behind)]),
            has_blocking: stream.order == StreamOrder::Blocking,
        });
        UNDER_WAY.fetch_add(1, Ordering::AcqRel);
        stream.captures.store(true, Ordering::Release);
    }
    resource::tell(&events);
    Ok(())
}

/// Ends the capture that began on this stream: its graph.
pub(crate) fn end(call: &Call<'_>, stream: &Stream) -> Result<HandleNumber, u32> {
    let mut world = world();
    let Some(capture) = world.captures.of_stream(stream.id) else {
        return Err(result::ILLEGAL_STATE);
    };
    if capture.origin != stream.id {
        capture.is_invalid = true;
        return Err(result::STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != Mode::Relaxed && capture.thread != call.thread.ordinal {
        capture.is_invalid = true;
        return Err(result::STREAM_CAPTURE_WRONG_THREAD);
    }
    let id = capture.id;
    let at = world
        .captures
        .under_way
        .iter()
        .position(|other| other.id == id);
    let capture = world.captures.under_way.swap_remove(at.unwrap_or(0));
    UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    stream.captures.store(false, Ordering::Release);
    let outcome = if capture.is_invalid {
        Err(result::STREAM_CAPTURE_INVALIDATED)
    } else if is_joined(&world, &capture) {
        Ok(capture.graph)
    } else {
        Err(result::STREAM_CAPTURE_UNJOINED)
    };
    if capture.is_into_graph {
        return outcome;
    }
    if outcome.is_ok() {
        if let Some(graph) = world.graphs.get_mut(&capture.graph) {
            graph.holder = Holder::Program;
        }
    } else {
        world.destroy_graph(capture.graph);
    }
    outcome
}

/// Whether everything that the other streams captured is before the end of the first one.
fn is_joined(world: &World, capture: &Capture) -> bool {
    let Ok(graph) = world.graph(capture.graph) else {
        return false;
    };
    let mut before: HashMap<HandleNumber, Vec<HandleNumber>> = HashMap::new();
    for edge in &graph.edges {
        before.entry(edge.to).or_default().push(edge.from);
    }
    let ends = capture.streams.get(&capture.origin).into_iter().flatten();
    let mut left: Vec<HandleNumber> = ends.map(|(node, _)| *node).collect();
    let mut joined: HashSet<HandleNumber> = left.iter().copied().collect();
    while let Some(node) = left.pop() {
        for earlier in before.get(&node).into_iter().flatten() {
            if joined.insert(*earlier) {
                left.push(*earlier);
            }
        }
    }
    let mut others = capture.streams.values().flatten();
    others.all(|(node, _)| joined.contains(node))
}

/// What is known of a stream's capture. A stream that joined one that has ended captures no more.
pub(crate) fn info(stream: &Stream) -> Option<Info> {
    if !stream.captures.load(Ordering::Acquire) {
        return None;
    }
    let mut world = world();
    let Some(capture) = world.captures.of_stream(stream.id) else {
        stream.captures.store(false, Ordering::Release);
        return None;
    };
    Some(Info {
        status: if capture.is_invalid {
            Status::Invalidated
        } else {
            Status::Active
        },
        id: capture.id,
        graph: capture.graph,
        behind: capture.streams.get(&stream.id).cloned().unwrap_or_default(),
    })
}

/// Whether a stream captures now.
pub(crate) fn is_capturing(stream: &Stream) -> bool {
    info(stream).is_some()
}

/// Adds what a call asks for as a node behind the stream's newest ones. None: the stream does not capture.
pub(crate) fn add(
    call: &Call<'_>,
    stream: &Stream,
    content: impl FnOnce(&mut World, &mut Vec<Event>) -> Result<Content, u32>,
) -> Option<Result<HandleNumber, u32>> {
    if !stream.captures.load(Ordering::Acquire) {
        return None;
    }
    let mut events = Vec::new();
    let added = {
        let mut world = world();
        let Some(capture) = world.captures.of_stream(stream.id) else {
            stream.captures.store(false, Ordering::Release);
            return None;
        };
        if capture.is_invalid {
            return Some(Err(result::STREAM_CAPTURE_INVALIDATED));
        }
        let graph = capture.graph;
        let mut behind = capture.streams.get(&stream.id).cloned().unwrap_or_default();
        content(&mut world, &mut events).and_then(|content| {
            make_programmatic(&world, &content, &mut behind);
            let node = world.add_node(graph, content, &behind, call.ordinal, &mut events)?;
            if let Some(capture) = world.captures.of_stream(stream.id) {
                capture
                    .streams
                    .insert(stream.id, vec![(node, EdgeData::default())]);
            }
            Ok(node)
        })
    };
    resource::tell(&events);
    Some(added)
}

/// A kernel that was launched as programmatic dependent has a programmatic edge from the kernel before it.
fn make_programmatic(world: &World, content: &Content, behind: &mut [Behind]) {
    if let Content::Kernel(kernel) = content
        && kernel.launch.programmatic
        && let [(before, data)] = behind
        && let Ok(node) = world.node(*before)
        && matches!(node.content, Content::Kernel(_))
    {
        *data = EdgeData::PROGRAMMATIC;
    }
}

/// What an event that is recorded in this stream captures. None: the stream does not capture.
pub(crate) fn record_event(stream: &Stream) -> Option<Result<CapturedEvent, u32>> {
    let info = info(stream)?;
    if info.status == Status::Invalidated {
        return Some(Err(result::STREAM_CAPTURE_INVALIDATED));
    }
    Some(Ok(CapturedEvent {
        capture: info.id,
        nodes: info.behind,
    }))
}

/// A stream waits for an event of a capture: it joins that capture, or is behind those nodes, too.
pub(crate) fn wait_for_event(stream: &Stream, event: &CapturedEvent) -> Result<(), u32> {
    if stream.order == StreamOrder::Legacy {
        return Err(result::STREAM_CAPTURE_IMPLICIT);
    }
    let mut world = world();
    let captures = &mut world.captures.under_way;
    let Some(of_event) = captures
        .iter()
        .position(|capture| capture.id == event.capture)
    else {
        return Err(result::CAPTURED_EVENT);
    };
    let of_stream = captures
        .iter()
        .position(|capture| capture.streams.contains_key(&stream.id));
    if let Some(other) = of_stream.filter(|other| *other != of_event) {
        captures[other].is_invalid = true;
        captures[of_event].is_invalid = true;
        return Err(result::STREAM_CAPTURE_MERGE);
    }
    let capture = &mut captures[of_event];
    if capture.is_invalid {
        return Err(result::STREAM_CAPTURE_INVALIDATED);
    }
    if capture.context != stream.context {
        capture.is_invalid = true;
        return Err(result::STREAM_CAPTURE_ISOLATION);
    }
    capture.has_blocking |= stream.order == StreamOrder::Blocking;
    let behind = capture.streams.entry(stream.id).or_default();
    for node in &event.nodes {
        if !behind.contains(node) {
            behind.push(*node);
        }
    }
    stream.captures.store(true, Ordering::Release);
    Ok(())
}

/// `cuStreamUpdateCaptureDependencies`: adds to what the next node is behind, or sets it.
pub(crate) fn update(stream: &Stream, nodes: Vec<Behind>, sets: bool) -> Result<(), u32> {
    let mut world = world();
    let Some(capture) = world.captures.of_stream(stream.id) else {
        return Err(result::ILLEGAL_STATE);
    };
    if capture.is_invalid {
        return Err(result::STREAM_CAPTURE_INVALIDATED);
    }
    let graph = capture.graph;
    for (node, _) in &nodes {
        if world.node(*node)?.graph != graph {
            return Err(result::INVALID_VALUE);
        }
    }
    if let Some(capture) = world.captures.of_stream(stream.id) {
        let behind = capture.streams.entry(stream.id).or_default();
        if sets {
            behind.clear();
        }
        for node in nodes {
            if !behind.contains(&node) {
                behind.push(node);
            }
        }
    }
    Ok(())
}

/// A call that a stream cannot take while it captures.
pub(crate) fn refuse(stream: &Stream, code: u32) -> Result<(), u32> {
    if !is_capturing(stream) {
        return Ok(());
    }
    let mut world = world();
    let capture = world.captures.of_stream(stream.id);
    Err(match capture {
        Some(capture) if capture.is_invalid => result::STREAM_CAPTURE_INVALIDATED,
        Some(capture) => {
            capture.is_invalid = true;
            code
        }
        None => code,
    })
}

/// The stream goes: its capture can never be ended.
pub(crate) fn stream_is_destroyed(stream: &Stream) {
    if stream.captures.load(Ordering::Acquire)
        && let Some(capture) = world().captures.of_stream(stream.id)
    {
        capture.is_invalid = true;
    }
}

/// The legacy default stream would be ordered with a stream that captures.
pub(crate) fn check_legacy(context: HandleNumber, invalidates: bool) -> Result<(), u32> {
    if none_is_under_way() {
        return Ok(());
    }
    let mut found = Ok(());
    for capture in &mut world().captures.under_way {
        if capture.context == context && capture.has_blocking {
            capture.is_invalid |= invalidates;
            found = Err(result::STREAM_CAPTURE_IMPLICIT);
        }
    }
    found
}

/// A call that may synchronise behind the program's back (`cuMemAlloc`, `cuEventQuery`): forbidden as the modes say, and then it
/// makes the captures invalid that forbid it.
pub(crate) fn check_unsafe(call: &Call<'_>) -> Result<(), u32> {
    if none_is_under_way() {
        return Ok(());
    }
    let own_mode = MODE.with(Cell::get);
    if own_mode == Mode::Relaxed {
        return Ok(());
    }
    let mut found = Ok(());
    for capture in &mut world().captures.under_way {
        let is_own = capture.thread == call.thread.ordinal;
        let forbids = match capture.mode {
            Mode::Relaxed => false,
            Mode::ThreadLocal => is_own,
            Mode::Global => is_own || own_mode == Mode::Global,
        };
        if forbids {
            capture.is_invalid = true;
            found = Err(result::STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    found
}

/// The whole context is waited for: forbidden while any of its streams captures.
pub(crate) fn check_context(context: HandleNumber) -> Result<(), u32> {
    if none_is_under_way() {
        return Ok(());
    }
    let mut found = Ok(());
    for capture in &mut world().captures.under_way {
        if capture.context == context {
            capture.is_invalid = true;
            found = Err(result::STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    found
}
