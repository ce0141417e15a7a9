//! The model's state, what is put into it, and what comes out.
//!
//! Everything happens in the order of time. At one moment, first come ends, then arrivals, then the
//! channels issue, and only when nothing more can happen at that moment do engines take new work: so
//! that of two kernels that arrive together the one with the higher priority is first.

mod channel;
mod collective;
mod compute;
mod copy_engine;
mod dependency;
mod events;
mod graph;
mod multiprocessor;
mod operations;
mod semaphore;

use std::collections::{HashMap, VecDeque};

use crate::facts::{Facts, HostWait, WaitSplit};
use crate::settings::Settings;
use crate::work::Work;
use channel::Channel;
pub use compute::Absence;
use compute::Compute;
use copy_engine::CopyEngines;
use dependency::Edges;
use events::Events;
pub use graph::GraphNode;
pub use operations::OperationKey;
use operations::{Operations, State};
pub use semaphore::Memory;
use semaphore::Watched;

/// How a stream is ordered beside others of its context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// The legacy default stream: before and behind every blocking stream.
    Legacy,
    /// Ordered with the legacy default stream.
    Blocking,
    /// Ordered with no other.
    #[default]
    NonBlocking,
}

/// What a stream is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// The device, from 0.
    pub device: u32,
    /// The context: default streams concern the streams of theirs only.
    pub context: u32,
    /// The order beside other streams.
    pub order: Order,
    /// Lower numbers go first, as with CUDA's streams.
    pub priority: i32,
}

impl StreamOptions {
    /// Sets the device.
    #[must_use]
    pub fn device(mut self, device: u32) -> Self {
        self.device = device;
        self
    }

    /// Sets the context.
    #[must_use]
    pub fn context(mut self, context: u32) -> Self {
        self.context = context;
        self
    }

    /// Sets the order.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

/// A stream of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey(u32);

/// Work for a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Submission<P = ()> {
    /// Handed back when the work begins and when it ends.
    pub payload: P,
    /// The number by which facts name this operation; 0 for work that is none (then others name what is behind it).
    pub number: u64,
    /// What is to be done.
    pub work: Work,
    /// What the host waited for.
    pub host: HostWait,
    /// Bytes of parameters, which take room in the push buffer.
    pub parameter_bytes: u32,
    /// An operation that must have ended first, as an event captured it.
    pub waits_for: Option<OperationKey>,
    /// Overrides the stream's priority.
    pub priority: Option<i32>,
}

impl Submission {
    /// Work without a payload.
    pub fn new(number: u64, work: Work) -> Self {
        Self::with((), number, work)
    }
}

impl<P> Submission<P> {
    /// Work with a payload.
    pub fn with(payload: P, number: u64, work: Work) -> Self {
        Self {
            payload,
            number,
            work,
            host: HostWait::default(),
            parameter_bytes: 0,
            waits_for: None,
            priority: None,
        }
    }

    /// Says what the host waited for.
    #[must_use]
    pub fn host(mut self, host: HostWait) -> Self {
        self.host = host;
        self
    }

    /// Says how many bytes of parameters there are.
    #[must_use]
    pub fn parameter_bytes(mut self, bytes: u32) -> Self {
        self.parameter_bytes = bytes;
        self
    }

    /// Lets it wait for an operation, as for what an event captured.
    #[must_use]
    pub fn waits_for(mut self, operation: Option<OperationKey>) -> Self {
        self.waits_for = operation;
        self
    }

    /// Overrides the stream's priority.
    #[must_use]
    pub fn priority(mut self, priority: Option<i32>) -> Self {
        self.priority = priority;
        self
    }
}

/// What happens next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Effect<P> {
    /// Work begins: to be done now, and answered with [`Model::begun`].
    Begin {
        /// Which.
        key: OperationKey,
        /// As submitted; goes back with the answer.
        payload: P,
        /// What is known so far; `start_ns` is when it was due.
        facts: Facts,
    },
    /// Work has ended: to be answered with [`Model::ended`] once that is written down.
    End {
        /// Which.
        key: OperationKey,
        /// As submitted.
        payload: P,
        /// All that is known.
        facts: Facts,
    },
}

struct Stream {
    options: StreamOptions,
    channel: usize,
    /// The newest operation.
    last: Option<OperationKey>,
    /// What ended last, and when.
    ended_ns: u64,
    ended_number: u64,
    /// Operations whose end has not been answered.
    open: u32,
    retired: bool,
}

/// Devices, streams, and what is under way in them.
pub struct Model<P = ()> {
    settings: Settings,
    now_ns: u64,
    streams: Vec<Option<Stream>>,
    channels: Vec<Option<Channel>>,
    /// Per device: the channel that the next stream gets, where they are shared.
    next_channel: Vec<usize>,
    operations: Operations<P>,
    edges: Edges,
    events: Events,
    compute: Vec<Compute>,
    copy_engines: Vec<CopyEngines>,
    memory: Watched,
    collectives: collective::Collectives,
    /// How often each stream has launched each collective.
    rounds: HashMap<(u64, u32), u64>,
    /// Channels that may issue something.
    touched: Vec<usize>,
    effects: VecDeque<(OperationKey, Begins)>,
    /// Beginnings that were handed out and not answered. Ends change nothing here until they are.
    unanswered: u32,
    sequence: u64,
    /// Programmatic launches so far, for the seeded choice of which overlap.
    programmatic: u64,
    watches_absences: bool,
}

/// Whether an effect is a beginning or an end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    Yes,
    No,
}

impl<P> std::fmt::Debug for Model<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Model")
            .field("now_ns", &self.now_ns)
            .field("operations", &self.operations.len())
            .finish_non_exhaustive()
    }
}

impl<P> Model<P> {
    /// A model in which nothing has happened yet, at a time.
    pub fn new(settings: Settings, now_ns: u64) -> Self {
        let devices = settings.devices.max(1) as usize;
        let mut model = Self {
            settings,
            now_ns,
            streams: Vec::new(),
            channels: Vec::new(),
            next_channel: vec![0; devices],
            operations: Operations::default(),
            edges: Edges::default(),
            events: Events::default(),
            compute: (0..devices).map(|_| Compute::new(&settings)).collect(),
            copy_engines: (0..devices).map(|_| CopyEngines::new(&settings)).collect(),
            memory: Watched::default(),
            collectives: collective::Collectives::default(),
            rounds: HashMap::new(),
            touched: Vec::new(),
            effects: VecDeque::new(),
            unanswered: 0,
            sequence: 0,
            programmatic: 0,
            watches_absences: false,
        };
        for _ in 0..devices * settings.channels as usize {
            model.channels.push(Some(Channel::default()));
        }
        for device in 0..devices {
            model.start_slices(device);
        }
        model
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The time up to which everything has happened.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Makes a stream. A device that does not exist is taken for the last.
    pub fn add_stream(&mut self, mut options: StreamOptions) -> StreamKey {
        options.device = options.device.min(self.compute.len() as u32 - 1);
        let device = options.device as usize;
        let shared = self.settings.channels as usize;
        let channel = if shared > 0 {
            let next = self.next_channel[device];
            self.next_channel[device] = (next + 1) % shared;
            device * shared + next
        } else {
            place(&mut self.channels, Channel::default())
        };
        let stream = Stream {
            options,
            channel,
            last: None,
            ended_ns: 0,
            ended_number: 0,
            open: 0,
            retired: false,
        };
        StreamKey(place(&mut self.streams, stream) as u32)
    }

    /// Nothing more will be put into the stream; what it holds is done all the same.
    pub fn retire_stream(&mut self, stream: StreamKey) {
        if let Some(stream) = self.stream_mut(stream) {
            stream.retired = true;
        }
        self.forget_if_unused(stream);
    }

    /// The channel of a stream, counted per device.
    pub fn channel_of(&self, stream: StreamKey) -> u32 {
        self.stream(stream)
            .map_or(0, |stream| self.channel_number(stream.channel))
    }

    fn channel_number(&self, channel: usize) -> u32 {
        match self.settings.channels as usize {
            0 => channel as u32,
            shared => (channel % shared) as u32,
        }
    }

    /// The newest operation of a stream, as an event record captures it.
    pub fn last_of(&self, stream: StreamKey) -> Option<OperationKey> {
        self.stream(stream)?.last
    }

    /// Whether the operation has ended and its end was answered.
    pub fn is_done(&self, operation: OperationKey) -> bool {
        self.operations.get(operation).is_none()
    }

    /// Whether the stream holds nothing.
    pub fn is_idle(&self, stream: StreamKey) -> bool {
        self.stream(stream).is_none_or(|stream| stream.open == 0)
    }

    /// The newest operations of all streams of a context that hold any.
    pub fn last_of_context(&self, context: u32) -> Vec<OperationKey> {
        let streams = self.streams.iter().flatten();
        streams
            .filter(|stream| stream.options.context == context && stream.open > 0)
            .filter_map(|stream| stream.last)
            .collect()
    }

    /// Operations that were submitted and whose end was not answered.
    pub fn open_operations(&self) -> usize {
        self.operations.len()
    }

    /// How long an operation lasts, as far as it was said when it was submitted.
    pub fn duration_of(&self, operation: OperationKey) -> u64 {
        self.operations
            .get(operation)
            .map_or(0, |operation| operation.work.duration_ns())
    }

    /// The operation begins at `start_ns`, not before it was due, and lasts so long (each of its blocks, where
    /// multiprocessors are modelled).
    pub fn begun(&mut self, key: OperationKey, payload: P, start_ns: u64, duration_ns: u64) {
        self.unanswered = self.unanswered.saturating_sub(1);
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.payload = Some(payload);
        operation.duration_ns = duration_ns;
        operation.start_ns = start_ns.max(operation.facts.resources_ns);
        let start_ns = operation.start_ns;
        operation.state = State::Running;
        if matches!(operation.work, Work::Kernel { .. }) {
            self.kernel_begun(key);
        } else {
            self.events.at(
                start_ns.saturating_add(duration_ns),
                events::Event::End(key),
            );
        }
    }

    /// The end of the operation is written down; whoever waits for it may go on.
    pub fn ended(&mut self, key: OperationKey) {
        let Some(operation) = self.operations.remove(key) else {
            return;
        };
        if !operation.is_node {
            self.count_unanswered(operation.stream, true);
        }
        if let Some(stream) = self.stream_mut(operation.stream) {
            stream.open -= 1;
        }
        self.forget_if_unused(operation.stream);
    }

    /// What happens next, at or before a time. None: nothing more until then, or a beginning was not answered yet. Several ends
    /// may be answered later together, in their order.
    pub fn poll(&mut self, until_ns: u64) -> Option<Effect<P>> {
        if self.unanswered > 0 {
            return None;
        }
        loop {
            if let Some((key, begins)) = self.effects.pop_front() {
                if let Some(effect) = self.effect(key, begins) {
                    self.unanswered += u32::from(begins == Begins::Yes);
                    return Some(effect);
                }
                continue;
            }
            if let Some(channel) = self.touched.pop() {
                self.issue_from(channel);
                continue;
            }
            // Engines take work only when nothing else happens at this moment.
            if self.next_event_ns().is_none_or(|next| next > self.now_ns) && self.fill_engines() {
                continue;
            }
            if let Some(next) = self.next_event_ns().filter(|next| *next <= until_ns) {
                self.now_ns = self.now_ns.max(next);
                self.next_event();
            } else if !self.look_at_memory(until_ns) {
                return None;
            }
        }
    }

    /// When something happens next; now, if it already can. None: never, unless work is submitted.
    pub fn next_ns(&self) -> Option<u64> {
        if !self.effects.is_empty() || !self.touched.is_empty() || self.engines_can_be_filled() {
            return Some(self.now_ns);
        }
        self.next_event_ns()
    }

    /// Whether nothing that was submitted will ever end, unless a host does something.
    pub fn is_stuck(&self) -> bool {
        self.effects.is_empty()
            && self.touched.is_empty()
            && self.unanswered == 0
            && self.events.is_empty()
            && !self.engines_can_be_filled()
            && !self.compute.iter().any(Compute::has_work)
    }

    /// Whether a channel waits for a value that only memory knows.
    pub fn watches_memory(&self) -> bool {
        self.memory.is_watched()
    }

    fn effect(&mut self, key: OperationKey, begins: Begins) -> Option<Effect<P>> {
        let operation = self.operations.get_mut(key)?;
        let payload = operation.payload.take()?;
        let waits = match begins {
            Begins::Yes => WaitSplit::default(),
            Begins::No => operation.split_wait(),
        };
        let facts = operation.facts.with(waits);
        let (stream, is_node) = (operation.stream, operation.graph.is_some());
        if begins == Begins::No && !is_node {
            self.count_unanswered(stream, false);
        }
        Some(match begins {
            Begins::Yes => Effect::Begin {
                key,
                payload,
                facts,
            },
            Begins::No => Effect::End {
                key,
                payload,
                facts,
            },
        })
    }

    fn stream(&self, stream: StreamKey) -> Option<&Stream> {
        self.streams.get(stream.0 as usize)?.as_ref()
    }

    fn stream_mut(&mut self, stream: StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(stream.0 as usize)?.as_mut()
    }

    fn forget_if_unused(&mut self, key: StreamKey) {
        let Some(stream) = self.stream(key) else {
            return;
        };
        if !stream.retired || stream.open > 0 {
            return;
        }
        let channel = stream.channel;
        self.streams[key.0 as usize] = None;
        self.rounds.retain(|(_, stream), _| *stream != key.0);
        // Should it be touched once more, whoever has its place then is looked at in vain.
        if self.settings.channels == 0 {
            self.channels[channel] = None;
        }
    }

    /// Work leaves its channel or its graph for an engine, or is done at once.
    fn issue(&mut self, key: OperationKey) {
        let now_ns = self.now_ns;
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.state = State::Issued;
        operation.facts.issued_ns = now_ns;
        match operation.work {
            _ if operation.is_graph() => self.graph_begins(key),
            // In a channel the value is there already.
            Work::WaitValue { place, condition } if !self.memory.meets(place, condition) => {
                self.memory.watch_for_node(key);
            }
            Work::Marker | Work::WaitValue { .. } => self.end_at_once(key),
            Work::WriteValue { place, value } => {
                self.memory.write(place, value);
                self.memory_changed();
                self.end_at_once(key);
            }
            _ if self.settings.dispatch_ns > 0 => {
                let at_ns = now_ns.saturating_add(self.settings.dispatch_ns);
                self.events.at(at_ns, events::Event::Dispatch(key));
            }
            _ => self.dispatch(key),
        }
    }

    /// Work reaches its engine.
    fn dispatch(&mut self, key: OperationKey) {
        let now_ns = self.now_ns;
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.dispatched_ns = now_ns;
        let device = operation.facts.device as usize;
        match operation.work {
            Work::Kernel { .. } => self.kernel_arrives(device, key),
            Work::Copy { direction, .. } => self.copy_arrives(device, direction, key),
            _ => self.begin(key),
        }
    }

    /// An engine has room: the effect that says so. Everything before the start is known now.
    fn begin(&mut self, key: OperationKey) {
        let now_ns = self.now_ns;
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.facts.resources_ns = now_ns;
        operation.facts.start_ns = now_ns;
        operation.start_ns = now_ns;
        operation.state = State::Running;
        self.effects.push_back((key, Begins::Yes));
    }

    fn end_at_once(&mut self, key: OperationKey) {
        let now_ns = self.now_ns;
        if let Some(operation) = self.operations.get_mut(key) {
            operation.facts.resources_ns = now_ns;
            operation.facts.start_ns = now_ns;
            operation.start_ns = now_ns;
            operation.dispatched_ns = now_ns;
        }
        self.end(key, now_ns);
    }

    /// Work has ended: those that depend on it are told, and so is the driver.
    fn end(&mut self, key: OperationKey, end_ns: u64) {
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.state = State::Ended;
        operation.facts.start_ns = operation.start_ns;
        operation.facts.end_ns = end_ns;
        let (stream, graph) = (operation.stream, operation.graph);
        let direction = match operation.work {
            Work::Copy { direction, .. } => Some(direction),
            _ => None,
        };
        let (device, number) = (operation.facts.device as usize, operation.facts.number);
        let behind = operation.behind();
        self.effects.push_back((key, Begins::No));
        if let Some(direction) = direction {
            self.copy_engines[device].release(direction, number);
        }
        if let Some(stream) = self.stream_mut(stream).filter(|_| graph.is_none()) {
            stream.ended_ns = end_ns;
            stream.ended_number = behind.1;
        }
        self.satisfy(key, dependency::Moment::End);
        if let Some(graph) = graph {
            self.node_ended(graph, behind.1);
        }
    }
}

/// Puts a value into the first free place.
fn place<T>(places: &mut Vec<Option<T>>, value: T) -> usize {
    match places.iter().position(Option::is_none) {
        Some(at) => {
            places[at] = Some(value);
            at
        }
        None => {
            places.push(Some(value));
            places.len() - 1
        }
    }
}
