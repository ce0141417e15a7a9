//! Scenarios: one launch that is held up by one cause, or by several at once.

use lineage_core::id::LaunchEpoch;
use lineage_core::observation::Mark;
use lineage_sim_model::{Footprint, Programmatic, Settings, Work};

use crate::world::{ENGINE, HostTruth, Launch, Recorded, World, epoch};

/// A cause, or something that looks like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// While the application has it, other work is launched into its stream, and runs for a part of
    /// that time.
    EarlierWork,
    /// Its own marks say that it was not ready.
    ApplicationLate,
    /// By its own mark it was due, and it was handed over later.
    Overdue,
    /// By its own mark it was not due before its thread took it: nothing was late until then.
    DueLater,
    /// Its batch was formed late.
    BatchWait,
    /// Its thread was preempted when it had been handed over.
    HostLate,
    /// Its thread slept in a call of the system's when it had been handed over.
    HostAsleep,
    /// Its thread was in the scope of another epoch.
    HostBusy,
    /// Its thread computed.
    HostWork,
    /// Its thread waited for another stream.
    ReadBack,
    /// Its thread allocated.
    Allocation,
    /// Its thread was preempted within its scope.
    Preempted,
    /// Its thread slept in a call of the system's within its scope.
    Asleep,
    /// Its thread was preempted within the call.
    PreemptedInCall,
    /// The function was loaded in the call.
    Loading,
    /// The ring was full.
    QueueFull,
    /// The doorbell was rung late.
    SubmitHeld,
    /// Earlier work of its stream.
    SameStream,
    /// An event of another stream.
    EventWait,
    /// Another stream's work is ahead in its channel.
    SharedChannel,
    /// Its kind of copy engine is busy.
    CopyEngine,
    /// Another stream's kernel fills the device.
    DeviceFull,
    /// Another stream's kernel runs, and excludes nothing.
    DeviceShared,
    /// It runs three times as long as its kind.
    LongKernel,
    /// It may begin before what is before it has ended.
    Programmatic,
}

impl Cause {
    pub(crate) const ALL: [Self; 25] = [
        Self::EarlierWork,
        Self::ApplicationLate,
        Self::Overdue,
        Self::DueLater,
        Self::BatchWait,
        Self::HostLate,
        Self::HostAsleep,
        Self::HostBusy,
        Self::HostWork,
        Self::ReadBack,
        Self::Allocation,
        Self::Preempted,
        Self::Asleep,
        Self::PreemptedInCall,
        Self::Loading,
        Self::QueueFull,
        Self::SubmitHeld,
        Self::SameStream,
        Self::EventWait,
        Self::SharedChannel,
        Self::CopyEngine,
        Self::DeviceFull,
        Self::DeviceShared,
        Self::LongKernel,
        Self::Programmatic,
    ];
}

/// The launch that is looked at, by its number, and what was recorded of everything.
pub(crate) struct Scenario {
    pub(crate) target: u64,
    pub(crate) recorded: Recorded,
}

/// How many launches each kind's history has.
const WARM_UP: usize = 30;

/// Plays a scenario with these causes.
pub(crate) fn play(causes: &[Cause], settings: Settings) -> Scenario {
    let has = |cause: Cause| causes.contains(&cause);
    let mut settings = settings;
    if has(Cause::SharedChannel) {
        settings = settings.channels(1);
    }
    if has(Cause::CopyEngine) {
        settings = settings.copy_engines_to_device(1);
    }
    if has(Cause::DeviceFull) {
        settings = settings.multiprocessors(1);
    }
    if has(Cause::QueueFull) {
        settings = settings.ring_entries(48);
    }
    if has(Cause::SubmitHeld) {
        settings = settings.operations_per_doorbell(2);
    }
    let mut world = World::new(settings);
    let [a, b, c] = [world.stream(), world.stream(), world.stream()];
    for _ in 0..WARM_UP {
        world.launch(Launch::kernel(a, "gemv", 40_000));
    }
    world.synchronise(a);
    for _ in 0..WARM_UP {
        world.launch(Launch::copy(a, 20_000));
    }
    world.synchronise(a);

    // The epoch, up to the thread that launches.
    let (own, other) = (epoch(1), epoch(2));
    world.declare(other, "other");
    world.declare(own, "request");
    let since = world.now();
    // The application takes its time.
    let wait = |world: &mut World, ns: u64| {
        let until = world.now() + ns;
        if has(Cause::EarlierWork) {
            world.rest(ns / 2);
            world.launch(Launch::kernel(a, "before", 30_000));
        }
        let rest = until - world.now();
        world.rest(rest);
    };
    if has(Cause::ApplicationLate) {
        wait(&mut world, 300_000);
        let now = world.now();
        world.truth.push((since, now, HostTruth::ApplicationLate));
    }
    world.mark(own, Mark::Ready);
    if has(Cause::BatchWait) {
        let from = world.now();
        wait(&mut world, 200_000);
        world.mark(own, Mark::BatchFormed);
        let now = world.now();
        world.truth.push((from, now, HostTruth::BatchWait));
    }
    let due = world.now();
    if has(Cause::Overdue) {
        world.mark(own, Mark::Expected);
    }
    background(&mut world, causes, [a, b, c]);
    if has(Cause::Overdue) {
        wait(&mut world, 220_000);
        let now = world.now();
        world.truth.push((due, now, HostTruth::ApplicationLate));
    }
    world.send(own);
    if has(Cause::HostLate) {
        world.preempted(400_000);
    }
    if has(Cause::HostAsleep) {
        world.asleep(180_000);
    }
    if has(Cause::HostBusy) {
        let from = world.now();
        world.scope(other, |world| world.rest(250_000));
        let now = world.now();
        world.truth.push((from, now, HostTruth::BusyWith(other)));
    }
    if has(Cause::DueLater) {
        world.mark(own, Mark::Expected);
    }
    world.receive(own);
    let target = world.scope(own, |world| in_scope(world, causes, [a, b, c]));
    // What rings the doorbell where that is put off.
    world.rest(250_000);
    world.launch(Launch::kernel(c, "last", 5_000));
    Scenario {
        target,
        recorded: world.finish(),
    }
}

/// Plays a launch whose function has to be loaded, behind so many others of its stream.
pub(crate) fn play_behind(fillers: usize, settings: Settings) -> Scenario {
    let mut world = World::new(settings);
    let a = world.stream();
    for _ in 0..WARM_UP {
        world.launch(Launch::kernel(a, "gemv", 40_000));
    }
    world.synchronise(a);
    world.launch(Launch::kernel(a, "long", 1_000_000));
    for _ in 0..fillers {
        world.launch(Launch::kernel(a, "filler", 12_000));
    }
    let (number, _) = world.launch(Launch {
        loading_ns: 300_000,
        ..Launch::kernel(a, "gemv", 40_000)
    });
    Scenario {
        target: u64::from(number),
        recorded: world.finish(),
    }
}

/// Plays a launch behind a copy of its stream, which waits for the copy engine for longer than the host
/// works in between.
pub(crate) fn play_behind_blocked_copy(settings: Settings) -> Scenario {
    let mut world = World::new(settings);
    let [a, c] = [world.stream(), world.stream()];
    for _ in 0..WARM_UP {
        world.launch(Launch::kernel(a, "gemv", 40_000));
    }
    world.synchronise(a);
    world.launch(Launch::copy(c, 1_300_000));
    world.launch(Launch::copy(a, 20_000));
    let own = epoch(1);
    world.declare(own, "request");
    world.mark(own, Mark::Ready);
    world.send(own);
    world.receive(own);
    let (number, _) = world.scope(own, |world| {
        let from = world.now();
        world.rest(150_000);
        let now = world.now();
        world.truth.push((from, now, HostTruth::Work));
        world.launch(Launch::kernel(a, "gemv", 40_000))
    });
    Scenario {
        target: u64::from(number),
        recorded: world.finish(),
    }
}

/// Plays work that one thread declares, marks as ready and launches, and for so long is in the scope of
/// another epoch in between.
pub(crate) fn play_alone(busy_ns: u64, settings: Settings) -> Scenario {
    let mut world = World::new(settings);
    world.front = ENGINE;
    let a = world.stream();
    for _ in 0..WARM_UP {
        world.launch(Launch::kernel(a, "gemv", 40_000));
    }
    world.synchronise(a);
    let (own, other) = (epoch(1), epoch(2));
    world.declare(other, "other");
    world.declare(own, "request");
    world.mark(own, Mark::Ready);
    let from = world.now();
    world.scope(other, |world| world.rest(busy_ns));
    let now = world.now();
    world.truth.push((from, now, HostTruth::BusyWith(other)));
    let (number, _) = world.scope(own, |world| world.launch(Launch::kernel(a, "gemv", 40_000)));
    Scenario {
        target: u64::from(number),
        recorded: world.finish(),
    }
}

/// Plays a batch of two requests, and 3,000,000 later its next step: looked at is that one's launch.
pub(crate) fn play_step(settings: Settings) -> Scenario {
    let mut world = World::new(settings);
    let a = world.stream();
    for _ in 0..WARM_UP {
        world.launch(Launch::kernel(a, "gemv", 40_000));
    }
    world.synchronise(a);
    let (first, second) = (epoch(1), epoch(2));
    let batch = epoch(3);
    world.declare(first, "request");
    world.declare(second, "request");
    world.declare(batch, "batch");
    world.merge(batch, &[first, second]);
    let launch = |world: &mut World, of: LaunchEpoch| {
        world.send(of);
        world.rest(20_000);
        world.receive(of);
        world.scope(of, |world| world.launch(Launch::kernel(a, "gemv", 40_000)))
    };
    launch(&mut world, batch);
    world.synchronise(a);
    world.rest(3_000_000);
    let next = LaunchEpoch::from_numbers(3, 2).expect("in range");
    world.step(next);
    world.mark(next, Mark::Ready);
    let (number, _) = launch(&mut world, next);
    Scenario {
        target: u64::from(number),
        recorded: world.finish(),
    }
}

/// Plays a request that waits for its batch while so many kernels of others run in its stream.
pub(crate) fn play_waiting(others: usize, settings: Settings) -> Scenario {
    let mut world = World::new(settings);
    let a = world.stream();
    for _ in 0..WARM_UP {
        world.launch(Launch::kernel(a, "gemv", 40_000));
    }
    world.synchronise(a);
    let own = epoch(1);
    world.declare(own, "request");
    world.mark(own, Mark::Ready);
    for _ in 0..others {
        world.rest(10_000);
        world.launch(Launch::kernel(a, "other", 2_000));
    }
    world.rest(10_000);
    world.mark(own, Mark::BatchFormed);
    world.send(own);
    world.receive(own);
    let (number, _) = world.scope(own, |world| world.launch(Launch::kernel(a, "gemv", 40_000)));
    Scenario {
        target: u64::from(number),
        recorded: world.finish(),
    }
}

/// Plays a graph of three nodes behind earlier work, and a kernel behind it. Looked at is one of
/// the nodes, by its place, or what follows.
pub(crate) fn play_graph(target: usize, settings: Settings) -> Scenario {
    let mut world = World::new(settings);
    let a = world.stream();
    for _ in 0..WARM_UP {
        world.launch(Launch::kernel(a, "gemv", 40_000));
    }
    world.synchronise(a);
    world.launch(Launch::kernel(a, "earlier", 300_000));
    let mut numbers = world.graph(
        a,
        &[
            ("first", 200_000, &[]),
            ("second", 50_000, &[0]),
            ("beside", 400_000, &[]),
        ],
    );
    let (follows, _) = world.launch(Launch::kernel(a, "gemv", 40_000));
    numbers.push(u64::from(follows));
    Scenario {
        target: numbers[target],
        recorded: world.finish(),
    }
}

/// What the device has to do before.
fn background(world: &mut World, causes: &[Cause], [a, b, c]: [u32; 3]) {
    let has = |cause: Cause| causes.contains(&cause);
    if has(Cause::SameStream) || has(Cause::Programmatic) {
        let work = if has(Cause::Programmatic) {
            let mut programmatic = Programmatic::default();
            programmatic.triggers_after_ns = Some(100_000);
            kernel(programmatic, 900_000)
        } else {
            Work::kernel(900_000)
        };
        world.launch(Launch {
            work,
            ..Launch::kernel(a, "earlier", 0)
        });
    }
    if has(Cause::EventWait) {
        world.launch(Launch::kernel(b, "elsewhere", 1_100_000));
        world.wait_event(b, a);
    }
    if has(Cause::SharedChannel) {
        world.launch(Launch::kernel(b, "blocker", 1_200_000));
        world.launch(Launch::kernel(b, "ahead", 30_000));
    }
    if has(Cause::CopyEngine) {
        world.launch(Launch::copy(c, 1_300_000));
    }
    if has(Cause::DeviceFull) {
        world.launch(Launch {
            work: Work::kernel_with(Footprint::new(2, 1_024), 1_400_000),
            ..Launch::kernel(c, "full", 0)
        });
    }
    if has(Cause::DeviceShared) {
        world.launch(Launch::kernel(c, "beside", 1_500_000));
    }
    if has(Cause::QueueFull) {
        world.launch(Launch::kernel(a, "long", 700_000));
        for _ in 0..47 {
            world.launch(Launch::kernel(a, "filler", 1_000));
        }
    }
}

/// What happens in the scope, up to the launch that is looked at: its number.
fn in_scope(world: &mut World, causes: &[Cause], [a, b, _]: [u32; 3]) -> u64 {
    let has = |cause: Cause| causes.contains(&cause);
    let timed = |world: &mut World, truth, of: &mut dyn FnMut(&mut World)| {
        let from = world.now();
        of(world);
        let now = world.now();
        world.truth.push((from, now, truth));
    };
    if has(Cause::HostWork) {
        timed(world, HostTruth::Work, &mut |world| world.rest(150_000));
    }
    if has(Cause::ReadBack) {
        let (enter, exit) = world.synchronise(b);
        world.truth.push((enter, exit, HostTruth::SyncWait));
    }
    if has(Cause::Allocation) {
        world.allocate(120_000);
    }
    if has(Cause::Preempted) {
        world.preempted(350_000);
    }
    if has(Cause::Asleep) {
        world.asleep(140_000);
    }
    let mut launch = if has(Cause::CopyEngine) {
        Launch::copy(a, 20_000)
    } else {
        Launch::kernel(
            a,
            "gemv",
            if has(Cause::LongKernel) {
                160_000
            } else {
                40_000
            },
        )
    };
    if has(Cause::Programmatic) && !has(Cause::CopyEngine) {
        let mut programmatic = Programmatic::default();
        programmatic.may_overlap = true;
        programmatic.waits_after_ns = 10_000;
        launch.work = kernel(programmatic, launch.work.duration_ns());
    }
    if has(Cause::DeviceFull) && !has(Cause::CopyEngine) && !has(Cause::Programmatic) {
        let ns = launch.work.duration_ns();
        launch.work = Work::kernel_with(Footprint::new(2, 1_024), ns);
    }
    if has(Cause::Loading) {
        launch.loading_ns = 300_000;
    }
    if has(Cause::PreemptedInCall) {
        launch.preempted_ns = 330_000;
    }
    let (number, _) = world.launch(launch);
    u64::from(number)
}

fn kernel(of: Programmatic, ns: u64) -> Work {
    let mut work = Work::kernel(ns);
    if let Work::Kernel { programmatic, .. } = &mut work {
        *programmatic = of;
    }
    work
}
