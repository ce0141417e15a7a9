//! Scenarios: one operation that is held up by one cause, or by several at once.

use cudarc::driver::sys::{CUgraphExec, CUmodule};
use lineage_core::Epoch;
use lineage_core::carrier::Carrier;
use lineage_core::observation::{CarrierKind, Mark};

use crate::driver::{self, Shape, Stream};
use crate::world::{HostTruth, World};

/// A cause, or something that looks like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// Its own marks say that it was not ready.
    ApplicationLate,
    /// Its batch was formed late.
    BatchWait,
    /// Its thread was preempted when it had been handed over.
    HostLate,
    /// Its thread was in the scope of another epoch.
    HostBusy,
    /// Its thread computed.
    HostWork,
    /// Its thread read back from another stream and waited for that.
    ReadBack,
    /// Its thread freed memory, which waits for the device.
    Allocation,
    /// Its thread was preempted within its scope.
    Preempted,
    /// Its thread loaded a module, which was compiled.
    Compiling,
    /// The function was loaded in the call.
    Loading,
    /// The ring was full.
    QueueFull,
    /// The doorbell was rung late, where one covers several operations.
    SubmitHeld,
    /// Earlier work of its stream.
    SameStream,
    /// An event of another stream.
    EventWait,
    /// A node before it in its graph.
    GraphEdge,
    /// The previous launch of its graph, in another stream.
    SameExec,
    /// Another stream's work is ahead in its channel.
    SharedChannel,
    /// Its kind of copy engine is busy.
    CopyEngine,
    /// Another stream's kernel fills the device.
    DeviceFull,
    /// The same, and all its blocks have to be resident at once.
    Cooperative,
    /// Another stream's kernel runs, and excludes nothing.
    DeviceShared,
    /// It runs four times as long as its kind.
    LongKernel,
    /// It may begin before what is before it has ended.
    Programmatic,
    /// A function of the host's is before it in its stream.
    HostFunction,
}

impl Cause {
    pub(crate) const ALL: [Self; 24] = [
        Self::ApplicationLate,
        Self::BatchWait,
        Self::HostLate,
        Self::HostBusy,
        Self::HostWork,
        Self::ReadBack,
        Self::Allocation,
        Self::Preempted,
        Self::Compiling,
        Self::Loading,
        Self::QueueFull,
        Self::SubmitHeld,
        Self::SameStream,
        Self::EventWait,
        Self::GraphEdge,
        Self::SameExec,
        Self::SharedChannel,
        Self::CopyEngine,
        Self::DeviceFull,
        Self::Cooperative,
        Self::DeviceShared,
        Self::LongKernel,
        Self::Programmatic,
        Self::HostFunction,
    ];
}

/// Each cause alone, named pairs, and triples.
pub(crate) fn combinations() -> Vec<Vec<Cause>> {
    use Cause::{
        Allocation, ApplicationLate, BatchWait, Compiling, CopyEngine, DeviceFull, DeviceShared,
        EventWait, GraphEdge, HostBusy, HostFunction, HostLate, HostWork, Loading, LongKernel,
        Preempted, Programmatic, QueueFull, ReadBack, SameExec, SameStream, SharedChannel,
        SubmitHeld,
    };
    let mut all: Vec<Vec<Cause>> = vec![Vec::new()];
    all.extend(Cause::ALL.iter().map(|cause| vec![*cause]));
    let pairs = [
        // Host work that something covers costs nothing, whatever it is.
        [HostWork, SameStream],
        [HostWork, EventWait],
        [Preempted, SameStream],
        [Compiling, SameStream],
        [Loading, SameStream],
        [HostLate, EventWait],
        [ApplicationLate, SameStream],
        [Allocation, EventWait],
        [ReadBack, EventWait],
        [HostWork, GraphEdge],
        // Something that is seen beside something that is not.
        [HostWork, SharedChannel],
        [HostWork, DeviceFull],
        [HostLate, DeviceShared],
        [SameStream, DeviceFull],
        [SameStream, SharedChannel],
        [SharedChannel, DeviceFull],
        [EventWait, HostFunction],
        [SameStream, Programmatic],
        [HostWork, HostFunction],
        [SameExec, HostWork],
        // What makes the other look like itself.
        [LongKernel, DeviceShared],
        [CopyEngine, HostLate],
        [CopyEngine, SameStream],
        [QueueFull, HostWork],
        [SubmitHeld, SameStream],
        [ReadBack, SharedChannel],
        [BatchWait, HostBusy],
    ];
    all.extend(pairs.map(|pair| pair.to_vec()));
    let triples = [
        [HostLate, SameStream, SubmitHeld],
        [HostWork, EventWait, LongKernel],
        [ApplicationLate, Preempted, Loading],
        [BatchWait, ReadBack, SharedChannel],
        [Allocation, CopyEngine, SubmitHeld],
        [HostBusy, Programmatic, DeviceShared],
    ];
    all.extend(triples.map(|triple| triple.to_vec()));
    all
}

/// The operation that a scenario is about.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) causes: Vec<Cause>,
    /// When its call began.
    pub(crate) called_ns: u64,
}

impl Scenario {
    /// `HostWork + SameStream`.
    pub(crate) fn name(&self) -> String {
        let names: Vec<String> = self.causes.iter().map(|of| format!("{of:?}")).collect();
        if names.is_empty() {
            return "nothing".to_owned();
        }
        names.join(" + ")
    }
}

/// How many launches each kind's history has.
const WARM_UP: usize = 30;

/// What every scenario may need, each in its usual state.
pub(crate) struct Stage {
    pub(crate) world: World,
    graph: CUgraphExec,
    event: cudarc::driver::sys::CUevent,
}

impl Stage {
    /// Loads all functions, and lets histories form.
    pub(crate) fn new(world: World) -> Self {
        let stream = driver::stream();
        let other = driver::stream();
        for (name, _) in driver::KERNELS {
            world.launch(name, stream);
        }
        world.gpu.spend_ns(20_000_000);
        driver::synchronize_all();
        for _ in 0..WARM_UP {
            world.launch("gemv", stream);
        }
        driver::synchronize(stream);
        for _ in 0..WARM_UP {
            world.copy(20_000, stream);
        }
        driver::synchronize(stream);
        let kernels = ["ahead", "gemv", "beside"].map(|name| world.kernel(name));
        let graph = driver::capture(kernels, [stream, other]);
        for _ in 0..WARM_UP {
            world.spend(1_000);
            driver::launch_graph(graph, stream);
            driver::synchronize(stream);
        }
        for _ in 0..WARM_UP {
            world.launch_as("gemv", stream, PROGRAMMATIC);
            driver::synchronize(stream);
        }
        driver::synchronize_all();
        Self {
            world,
            graph,
            event: driver::event(),
        }
    }

    /// Plays a scenario.
    pub(crate) fn play(&mut self, causes: &[Cause]) -> Scenario {
        let has = |cause: Cause| causes.contains(&cause);
        // Of the model's four channels the last is the first one's, too.
        let streams = [(); 5].map(|()| driver::stream());
        let fresh = has(Cause::Loading).then(driver::load_module);
        let [other, own] = ["other", "request"].map(|name| {
            let world = &self.world;
            world.elsewhere(|| Epoch::declare(name))
        });
        let background = Epoch::declare("background");
        let world = &mut self.world;
        if has(Cause::ApplicationLate) {
            world.timed(HostTruth::ApplicationLate, |world| world.spend(300_000));
        }
        world.elsewhere(|| own.mark(Mark::Ready));
        if has(Cause::BatchWait) {
            world.timed(HostTruth::BatchWait, |world| {
                world.spend(200_000);
                world.elsewhere(|| own.mark(Mark::BatchFormed));
            });
        }
        background.launch(|| self.background(causes, streams));
        let world = &mut self.world;
        let carrier = world.elsewhere(|| Carrier::new(&own, CarrierKind::Envelope));
        if has(Cause::HostLate) {
            world.preempted(400_000);
        }
        if has(Cause::HostBusy) {
            world.busy_with(&other, 250_000);
        }
        let taken = carrier.open();
        let called_ns = taken.launch(|| self.in_scope(causes, streams, fresh));
        // What rings the doorbell where that is put off.
        self.world.spend(250_000);
        background.launch(|| self.world.launch("last", streams[2]));
        driver::synchronize_all();
        Scenario {
            causes: causes.to_vec(),
            called_ns,
        }
    }

    /// What the device has to do before.
    fn background(&mut self, causes: &[Cause], streams: [Stream; 5]) {
        let has = |cause: Cause| causes.contains(&cause);
        let (world, event, graph) = (&mut self.world, self.event, self.graph);
        let [a, b, c, d, shared] = streams;
        if has(Cause::HostFunction) {
            world.launch("elsewhere", a);
            driver::host_function(a);
        }
        if has(Cause::Programmatic) {
            world.launch("primary", a);
        } else if has(Cause::SameStream) {
            world.launch("earlier", a);
        }
        if has(Cause::EventWait) {
            world.launch("elsewhere", b);
            world.spend(1_000);
            driver::wait_event(event, b, a);
        }
        if has(Cause::SharedChannel) {
            world.launch("blocker", shared);
            world.launch("ahead", shared);
        }
        if has(Cause::CopyEngine) {
            world.copy(1_300_000, c);
        }
        if has(Cause::DeviceFull) || has(Cause::Cooperative) {
            // All threads of four multiprocessors.
            world.launch_as("full", c, Shape::of(8, 1_024));
        }
        if has(Cause::DeviceShared) || has(Cause::Allocation) {
            world.launch("beside", c);
        }
        if has(Cause::ReadBack) {
            world.launch("elsewhere", d);
        }
        if has(Cause::SameExec) {
            world.spend(1_000);
            driver::launch_graph(graph, b);
        }
        if has(Cause::QueueFull) {
            world.launch("long", a);
            for _ in 0..47 {
                world.launch("filler", a);
            }
        }
    }

    /// What happens in the scope, up to the launch that is looked at: when its call began.
    fn in_scope(
        &mut self,
        causes: &[Cause],
        [a, _, _, d, _]: [Stream; 5],
        fresh: Option<CUmodule>,
    ) -> u64 {
        let has = |cause: Cause| causes.contains(&cause);
        let graph = self.graph;
        let world = &mut self.world;
        if has(Cause::HostWork) {
            world.timed(HostTruth::Work, |world| world.spend(150_000));
        }
        if has(Cause::ReadBack) {
            world.read_back(d);
            world.timed(HostTruth::SyncWait, |_| driver::synchronize(d));
        }
        if has(Cause::Allocation) {
            world.timed(HostTruth::Allocation, |_| {
                driver::free_waiting(driver::allocate(4_096));
            });
        }
        if has(Cause::Preempted) {
            world.preempted(350_000);
        }
        let mut kernel = world.kernel("gemv");
        if has(Cause::Compiling) {
            let module = world.timed(HostTruth::Module, |_| driver::load_module());
            kernel = driver::function(module, "gemv");
        } else if let Some(module) = fresh {
            kernel = driver::function(module, "gemv");
        }
        world.spend(1_000);
        let called_ns = world.now();
        if has(Cause::CopyEngine) {
            return world.copy(20_000, a);
        }
        if has(Cause::GraphEdge) || has(Cause::SameExec) {
            driver::launch_graph(graph, a);
            return called_ns;
        }
        let ns = if has(Cause::LongKernel) {
            160_000
        } else {
            40_000
        };
        let shape = Shape {
            programmatic: has(Cause::Programmatic),
            cooperative: has(Cause::Cooperative),
            ..if has(Cause::Cooperative) {
                Shape::of(4, 1_024)
            } else {
                Shape::SMALL
            }
        };
        world.register("gemv", ns);
        driver::launch(kernel, a, shape);
        world.register("gemv", 40_000);
        called_ns
    }
}

const PROGRAMMATIC: Shape = Shape {
    programmatic: true,
    ..Shape::SMALL
};

/// All pairs, and so many triples by chance.
pub(crate) fn every_combination(triples: u64) -> Vec<Vec<Cause>> {
    let all = Cause::ALL;
    let mut out: Vec<Vec<Cause>> = Vec::new();
    for (at, first) in all.iter().enumerate() {
        out.extend(all[at + 1..].iter().map(|second| vec![*first, *second]));
    }
    let mut state = 7_u64;
    for _ in 0..triples {
        let mut of = Vec::new();
        while of.len() < 3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let cause = all[(state >> 33) as usize % all.len()];
            if !of.contains(&cause) {
                of.push(cause);
            }
        }
        out.push(of);
    }
    out
}
