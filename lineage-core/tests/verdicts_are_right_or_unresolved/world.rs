//! A host thread and the device model, and the records that a tool would have written of them.

#[path = "world_graph.rs"]
mod graph;

use std::collections::BTreeMap;
use std::sync::Arc;

use lineage_core::id::{
    Attribution, CorrelationId, HandoffId, HostNanos, LaunchEpoch, ScopeToken, ThreadKey,
};
use lineage_core::observation::{
    ActivityKind, ApiDomain, ApiId, ApiRecord, Call, CarrierKind, Collected, Declared,
    DeviceDescribed, DeviceSession, Event, EventRecord, Flushed, Footprint, Handoff,
    LaunchAttributes, LaunchOrder, LinkKind, Linked, Mark, Marked, Multiprocessors, Operation,
    OperationsDue, OsCall, Overhead, OverheadKind, Placement, Received, Scheduled,
    SchedulerSession, Scope, Sent, Stepped, StreamDescribed, StreamKind, SwitchedOff,
    Synchronization, SynchronizationKind, Tenancy,
};
use lineage_sim_model::{
    DeviceTime, Direction, Facts, Footprint as Taken, Host, Model, OperationKey, Settings,
    StreamKey, StreamOptions, Submission, Work,
};

/// The thread that launches.
pub(crate) const ENGINE: u64 = 7;
/// Another one, which declares as a rule.
const FRONT: u64 = 3;

/// The call that the thread sleeps in.
pub(crate) const WAITED_IN: &str = "poll";
/// When a world begins.
pub(crate) const BEGIN_NS: u64 = 1_000_000_000;

/// What the host did, as the script says it: the truth of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostTruth {
    ApplicationLate,
    BatchWait,
    Preempted,
    BusyWith(LaunchEpoch),
    Asleep,
    Work,
    SyncWait,
    Allocation,
    ApiSlow,
}

/// What was launched.
struct Launched {
    stream: u32,
    name: Arc<str>,
    kind: ActivityKind,
    /// What a kernel takes.
    footprint: Option<Taken>,
    /// Of a node of a graph: its launch.
    graph_launch: Option<u32>,
}

pub(crate) struct World {
    pub(crate) model: Model,
    pub(crate) host: Host,
    settings: Settings,
    streams: Vec<StreamKey>,
    events: Vec<Event>,
    launched: BTreeMap<u64, Launched>,
    next: u32,
    epoch: Option<LaunchEpoch>,
    scopes: u64,
    /// The thread that declares, marks and hands over.
    pub(crate) front: u64,
    pub(crate) truth: Vec<(u64, u64, HostTruth)>,
}

pub(crate) fn epoch(id: u64) -> LaunchEpoch {
    LaunchEpoch::from_numbers(id, 1).expect("in range")
}

fn at(ns: u64) -> HostNanos {
    HostNanos(ns)
}

fn thread(tid: u64) -> ThreadKey {
    ThreadKey {
        tid,
        generation: tid as u32,
    }
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        let mut world = Self {
            model: Model::new(settings, BEGIN_NS),
            host: Host::new(BEGIN_NS),
            settings,
            streams: Vec::new(),
            events: Vec::new(),
            launched: BTreeMap::new(),
            next: 1,
            epoch: None,
            scopes: 1,
            front: FRONT,
            truth: Vec::new(),
        };
        world.saw(DeviceSession::Started {
            session: 1,
            version: 130_500,
            at: at(BEGIN_NS),
            external_correlation: Some(true),
        });
        world.saw(Collected {
            session: 1,
            at: at(BEGIN_NS),
            order_calls: true,
            latency: true,
            events: true,
            overheads: true,
            launch_attributes: true,
        });
        world.saw(DeviceDescribed {
            device: 0,
            copy_engines: Some(2),
            tenancy: Some(Tenancy::Exclusive),
            multiprocessors: Some(Multiprocessors {
                // Without a limit the driver answers as for a large device.
                count: Some(match settings.multiprocessors {
                    0 => 132,
                    count => count,
                }),
                threads: Some(settings.threads_per_multiprocessor),
                registers: Some(settings.registers_per_multiprocessor),
                shared_bytes: Some(settings.shared_bytes_per_multiprocessor),
                blocks: Some(settings.blocks_per_multiprocessor),
            }),
        });
        world.saw(SchedulerSession::Watched {
            tid: ENGINE,
            at: at(BEGIN_NS),
            running: Some(true),
        });
        world
    }

    pub(crate) fn saw(&mut self, event: impl Into<Event>) {
        self.events.push(event.into());
    }

    pub(crate) fn now(&self) -> u64 {
        self.host.now_ns()
    }

    /// A stream that no other is ordered with.
    pub(crate) fn stream(&mut self) -> u32 {
        self.stream_of(0)
    }

    /// The same, of this priority: the lower number goes first.
    pub(crate) fn stream_of(&mut self, priority: i32) -> u32 {
        let options = StreamOptions::default().priority(priority);
        self.streams.push(self.model.add_stream(options));
        let number = self.streams.len() as u32;
        let now = self.now();
        self.saw(StreamDescribed {
            session: 1,
            device: 0,
            context: 1,
            stream: number,
            kind: StreamKind::NonBlocking,
            made: Some(at(now)),
        });
        number
    }

    fn key(&self, stream: u32) -> StreamKey {
        self.streams[stream as usize - 1]
    }

    /// The thread does nothing that matters until then.
    pub(crate) fn rest(&mut self, ns: u64) {
        let until = self.now() + ns;
        self.host.rest_until(until);
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn api(&mut self, name: &str, correlation: u32, enter: u64, due: OperationsDue) {
        let exit = self.now();
        let api = ApiId {
            domain: ApiDomain::Driver,
            cbid: 1,
            name: Some(name.into()),
        };
        self.saw(ApiRecord {
            session: 1,
            api: api.clone(),
            correlation: CorrelationId(correlation),
            tid: ENGINE,
            start: Some(at(enter)),
            end: Some(at(exit)),
            result: 0,
            due,
        });
        if due != OperationsDue::None
            && let Some(epoch) = self.epoch
        {
            self.saw(Call {
                thread: thread(ENGINE),
                api,
                correlation: CorrelationId(correlation),
                entered: at(enter),
                exited: Some(at(exit)),
                result: 0,
                attribution: Attribution::Epoch(epoch),
                in_boundary: true,
                task: None,
                due,
            });
        }
    }

    /// A launch: what its call takes, and what of that the function's loading took.
    pub(crate) fn launch(&mut self, launch: Launch) -> (u32, OperationKey) {
        self.rest(1_000);
        let correlation = self.number();
        let enter = self.now();
        if launch.loading_ns > 0 {
            self.host.spend(launch.loading_ns);
            let now = self.now();
            self.truth.push((enter, now, HostTruth::ApiSlow));
            self.saw(Overhead {
                session: 1,
                kind: OverheadKind::LazyFunctionLoading,
                correlation: Some(CorrelationId(correlation)),
                thread: Some(ENGINE),
                start: at(enter),
                end: at(now),
                channel: None,
            });
        }
        if launch.preempted_ns > 0 {
            self.preempted(launch.preempted_ns);
        }
        self.host.spend(4_000);
        let kind = match launch.work {
            Work::Copy { .. } => ActivityKind::Copy,
            _ => ActivityKind::Kernel,
        };
        let programmatic = matches!(
            launch.work,
            Work::Kernel { programmatic, .. } if programmatic.may_overlap
        );
        let footprint = match &launch.work {
            Work::Kernel { footprint, .. } => Some(*footprint),
            _ => None,
        };
        let before = self.now();
        let submission = Submission::new(u64::from(correlation), launch.work);
        let key = self.key(launch.stream);
        let operation = self.host.submit(&mut self.model, key, submission);
        let blocked = self.now() - before;
        if blocked > 0 {
            let now = self.now();
            self.truth.push((before, now, HostTruth::ApiSlow));
            self.saw(Overhead {
                session: 1,
                kind: OverheadKind::CommandBufferFull,
                correlation: Some(CorrelationId(correlation)),
                thread: Some(ENGINE),
                start: at(before),
                end: at(now),
                channel: None,
            });
        }
        let name = match (kind, programmatic) {
            (ActivityKind::Copy, _) => "cuMemcpyHtoDAsync_v2",
            (_, true) => "cuLaunchKernelEx",
            _ => "cuLaunchKernel",
        };
        if programmatic {
            self.saw(LaunchAttributes {
                session: 1,
                correlation: CorrelationId(correlation),
                order: LaunchOrder::Programmatic,
                records_event: false,
            });
        }
        self.api(name, correlation, enter, OperationsDue::One);
        self.launched.insert(
            u64::from(correlation),
            Launched {
                stream: launch.stream,
                name: launch.name.into(),
                kind,
                footprint,
                graph_launch: None,
            },
        );
        (correlation, operation)
    }

    /// An event record on one stream, and a wait for it on another.
    pub(crate) fn wait_event(&mut self, from: u32, to: u32) {
        let recording = self.number();
        self.rest(1_000);
        let enter = self.now();
        self.host.spend(1_000);
        let key = self.key(from);
        let marker = Submission::new(0, Work::Marker);
        let captured = self.host.submit(&mut self.model, key, marker);
        self.api("cuEventRecord", recording, enter, OperationsDue::None);
        self.saw(EventRecord {
            session: 1,
            correlation: CorrelationId(recording),
            context: Some(1),
            stream: Some(from),
            event: Some(1),
            event_sync: Some(u64::from(recording)),
            device: None,
        });
        let waiting = self.number();
        self.rest(1_000);
        let enter = self.now();
        self.host.spend(1_000);
        let key = self.key(to);
        let wait = Submission::new(0, Work::Marker).waits_for(Some(captured));
        self.host.submit(&mut self.model, key, wait);
        self.api("cuStreamWaitEvent", waiting, enter, OperationsDue::None);
        let exit = self.now();
        self.saw(Synchronization {
            session: 1,
            correlation: CorrelationId(waiting),
            kind: SynchronizationKind::StreamWait,
            start: Some(at(enter)),
            end: Some(at(exit)),
            context: Some(1),
            stream: Some(to),
            event: Some(1),
            event_sync: Some(u64::from(recording)),
            recorded_by: None,
        });
    }

    /// The thread waits for a stream.
    pub(crate) fn synchronise(&mut self, stream: u32) -> (u64, u64) {
        self.rest(1_000);
        let correlation = self.number();
        let enter = self.now();
        self.host.spend(1_000);
        let key = self.key(stream);
        if let Some(last) = self.model.last_of(key) {
            self.host.wait(&mut self.model, last);
        }
        self.api(
            "cuStreamSynchronize",
            correlation,
            enter,
            OperationsDue::None,
        );
        let exit = self.now();
        self.saw(Synchronization {
            session: 1,
            correlation: CorrelationId(correlation),
            kind: SynchronizationKind::Stream,
            start: Some(at(enter)),
            end: Some(at(exit)),
            context: Some(1),
            stream: Some(stream),
            event: None,
            event_sync: None,
            recorded_by: None,
        });
        (enter, exit)
    }

    /// A call that allocates at once.
    pub(crate) fn allocate(&mut self, ns: u64) {
        let correlation = self.number();
        let enter = self.now();
        self.host.spend(ns);
        self.rest(0);
        self.api("cuMemAlloc_v2", correlation, enter, OperationsDue::None);
        let exit = self.now();
        self.truth.push((enter, exit, HostTruth::Allocation));
    }

    pub(crate) fn declare(&mut self, epoch: LaunchEpoch, name: &str) {
        let now = self.now();
        self.saw(Declared {
            epoch,
            thread: thread(self.front),
            task: None,
            at: at(now),
            name: name.into(),
            site: None,
        });
    }

    pub(crate) fn merge(&mut self, batch: LaunchEpoch, members: &[LaunchEpoch]) {
        let now = self.now();
        for member in members {
            self.saw(Linked {
                epoch: batch,
                from: *member,
                kind: LinkKind::Merge,
                at: at(now),
            });
        }
    }

    pub(crate) fn step(&mut self, epoch: LaunchEpoch) {
        let now = self.now();
        self.saw(Stepped {
            epoch,
            thread: thread(self.front),
            at: at(now),
        });
    }

    pub(crate) fn mark(&mut self, epoch: LaunchEpoch, mark: Mark) {
        let now = self.now();
        self.saw(Marked {
            epoch,
            mark,
            thread: thread(self.front),
            at: at(now),
        });
    }

    fn handoff(epoch: LaunchEpoch) -> Handoff {
        Handoff {
            id: HandoffId(epoch.id.get() << 8 | u64::from(epoch.version.get())),
            epoch,
            carrier: CarrierKind::Envelope,
        }
    }

    pub(crate) fn send(&mut self, epoch: LaunchEpoch) {
        let now = self.now();
        self.saw(Sent {
            handoff: Self::handoff(epoch),
            thread: thread(self.front),
            at: at(now),
            site: None,
        });
    }

    pub(crate) fn receive(&mut self, epoch: LaunchEpoch) {
        let now = self.now();
        self.saw(Received {
            handoff: Self::handoff(epoch),
            thread: thread(ENGINE),
            task: None,
            at: at(now),
        });
    }

    /// Something in the scope of an epoch, on the thread that launches.
    pub(crate) fn scope<T>(
        &mut self,
        epoch: LaunchEpoch,
        inside: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = self.epoch.replace(epoch);
        let token = self.scopes;
        self.scopes += 1;
        let entered = self.now();
        let result = inside(self);
        let exited = self.now();
        self.epoch = outer;
        self.saw(Scope {
            thread: thread(ENGINE),
            attribution: Attribution::Epoch(epoch),
            token: ScopeToken(token),
            entered: at(entered),
            exited: at(exited),
            task: None,
            boundary: true,
            pushed: true,
        });
        result
    }

    /// The thread is taken off its processor for so long.
    pub(crate) fn preempted(&mut self, ns: u64) {
        let (from, to) = self.off(ns, SwitchedOff::Preempted);
        self.truth.push((from, to, HostTruth::Preempted));
    }

    /// The thread waits for so long in a call of the system's.
    pub(crate) fn asleep(&mut self, ns: u64) {
        let (from, to) = self.off(ns, SwitchedOff::Blocked);
        self.truth.push((from, to, HostTruth::Asleep));
        self.saw(OsCall {
            tid: ENGINE,
            name: WAITED_IN.into(),
            start: at(from),
            end: Some(at(to)),
        });
    }

    fn off(&mut self, ns: u64, why: SwitchedOff) -> (u64, u64) {
        let from = self.now();
        self.switch(from, Some(why));
        self.rest(ns);
        let to = self.now();
        self.switch(to, None);
        (from, to)
    }

    fn switch(&mut self, ns: u64, off: Option<SwitchedOff>) {
        self.saw(Scheduled {
            tid: ENGINE,
            at: at(ns),
            cpu: Some(3),
            running: off.is_none(),
            off,
            state: None,
        });
    }

    /// Everything ends: what was seen, and the model's truth of each launch by its number.
    pub(crate) fn finish(mut self) -> Recorded {
        let device_time = DeviceTime::new(&self.settings, 0, 1_000_000_000);
        let last = self.now();
        let host = std::mem::replace(&mut self.host, Host::new(0));
        let facts = host.finish(&mut self.model);
        let end = facts.iter().map(|facts| facts.end_ns).fold(last, u64::max);
        for facts in &facts {
            let launched = &self.launched[&facts.number];
            let device = |ns| Some(at(device_time.at(ns)));
            let node = launched.graph_launch.is_some();
            let correlation = launched.graph_launch.unwrap_or(facts.number as u32);
            let taken = launched.footprint;
            let operation = Operation {
                session: 1,
                kind: launched.kind,
                correlation: CorrelationId(correlation),
                device: 0,
                context: 1,
                stream: launched.stream,
                // Of nodes they are undocumented, so unknown.
                queued: device(facts.queued_ns).filter(|_| !node),
                submitted: device(facts.submitted_ns).filter(|_| !node),
                start: device(facts.start_ns),
                end: device(facts.end_ns),
                name: Some(launched.name.clone()),
                graph_node: node.then_some(facts.number),
                graph: node.then_some(9),
                bytes: 0,
                copies: 1,
                grid: taken.map_or([0; 3], |of| [of.blocks as u32, 1, 1]),
                block: taken.map_or([0; 3], |of| [of.threads, 1, 1]),
                footprint: taken.map(|of| Footprint {
                    registers_per_thread: of.registers / of.threads,
                    shared_bytes: of.shared_bytes,
                    blocks_per_cluster: Some(1),
                }),
            };
            self.events.push(operation.into());
            self.events.push(
                Placement {
                    session: 1,
                    correlation: CorrelationId(correlation),
                    graph_node: node.then_some(facts.number),
                    channel: facts.channel,
                }
                .into(),
            );
        }
        self.events
            .push(SchedulerSession::Ended { at: at(end) }.into());
        self.events.push(
            Flushed {
                session: 1,
                asked: at(end),
                returned: at(end),
                last: true,
            }
            .into(),
        );
        Recorded {
            events: self.events,
            facts: facts.into_iter().map(|of| (of.number, of)).collect(),
            host: self.truth,
            latency_ns: self.settings.dispatch_ns + self.settings.doorbell_ns,
            tolerance_ns: self.settings.device_tick_ns
                + self.settings.device_skew_ns.unsigned_abs(),
        }
    }
}

/// A launch.
pub(crate) struct Launch {
    pub(crate) stream: u32,
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) loading_ns: u64,
    pub(crate) preempted_ns: u64,
}

impl Launch {
    pub(crate) fn kernel(stream: u32, name: &'static str, ns: u64) -> Self {
        Self {
            stream,
            name,
            work: Work::kernel(ns),
            loading_ns: 0,
            preempted_ns: 0,
        }
    }

    pub(crate) fn copy(stream: u32, ns: u64) -> Self {
        Self {
            stream,
            name: "memcpy HtoD",
            work: Work::copy(Direction::ToDevice, ns),
            loading_ns: 0,
            preempted_ns: 0,
        }
    }
}

/// What was seen, and what was so.
#[derive(Clone)]
pub(crate) struct Recorded {
    pub(crate) events: Vec<Event>,
    pub(crate) facts: BTreeMap<u64, Facts>,
    pub(crate) host: Vec<(u64, u64, HostTruth)>,
    /// How much a device time may differ from the true one.
    pub(crate) tolerance_ns: u64,
    /// The device's own latency: a stretch between two observed times has some of it at its ends.
    pub(crate) latency_ns: u64,
}
