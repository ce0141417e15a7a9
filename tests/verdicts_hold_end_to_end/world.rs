//! A program on the simulated GPU, the session that records it, and what its script says it did.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::sys::CUmodule;
use lineage_core::observation::{Event, Observation, Scheduled, SchedulerSession, SwitchedOff};
use lineage_core::source::{EvidenceSource, NoEvidence, SourceContext, Tier};
use lineage_core::{Epoch, LaunchEpoch, Lineage, Report};
use lineage_cupti::Cupti;
use lineage_sim::{Config, Gpu, Truth};

use crate::driver::{self, KERNELS, Kernel, Memory, Shape, Stream};

/// What the host did, as the script says it: the truth of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostTruth {
    ApplicationLate,
    BatchWait,
    Preempted,
    BusyWith(LaunchEpoch),
    Work,
    SyncWait,
    Allocation,
    /// It loaded a module.
    Module,
}

/// What the operating system would have recorded of the launching thread.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Vec<Event>>>);

impl Scripted {
    fn push(&self, event: impl Into<Event>) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event.into());
    }
}

impl EvidenceSource for Scripted {
    fn start(&mut self, _: SourceContext) -> Result<(), NoEvidence> {
        let at = now();
        self.push(SchedulerSession::Started { at });
        self.push(SchedulerSession::Watched {
            tid: thread_id(),
            at,
            running: Some(true),
        });
        Ok(())
    }

    fn drain(&mut self, out: &mut dyn FnMut(Observation)) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.drain(..).map(Observation::live).for_each(out);
    }

    fn flush(&mut self) {}

    fn stop(&mut self, _: Duration, out: &mut dyn FnMut(Observation)) {
        self.push(SchedulerSession::Ended { at: now() });
        self.drain(out);
    }
}

fn thread_id() -> u64 {
    // SAFETY: takes and changes nothing.
    u64::from(unsafe { libc::gettid() }.unsigned_abs())
}

fn now() -> lineage_core::id::HostNanos {
    lineage_core::id::HostNanos(lineage_sim::now_ns())
}

/// A program, its session, and its script.
pub(crate) struct World {
    pub(crate) gpu: Gpu,
    session: Lineage,
    scripted: Scripted,
    module: CUmodule,
    memory: Memory,
    pub(crate) truth: Vec<(u64, u64, HostTruth)>,
}

impl World {
    pub(crate) fn new(config: Config, tier: Tier) -> Self {
        let gpu = lineage_sim::load(config.virtual_clock()).expect("the simulator loads");
        for (name, ns) in KERNELS {
            let kernel = gpu.kernel(name).duration_ns(ns);
            let kernel = if name == "primary" {
                kernel.triggers_after_ns(100_000)
            } else {
                kernel
            };
            kernel.timed().expect("a valid name");
        }
        // Before the session, so that what it asks the driver falls into no call's time.
        driver::initialise();
        let scripted = Scripted::default();
        let session = Lineage::builder()
            .service("end to end")
            .clock(lineage_sim::now_ns)
            .tier(tier)
            .keep_in_memory(1 << 20)
            .device(Cupti::new().library("libcupti.so"))
            .scheduler(scripted.clone())
            .start()
            .expect("the only session");
        driver::start();
        let module = driver::load_module();
        Self {
            gpu,
            session,
            scripted,
            module,
            memory: Memory::new(1 << 21),
            truth: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.gpu.now_ns()
    }

    /// The thread runs for so long.
    pub(crate) fn spend(&self, ns: u64) {
        self.gpu.spend_ns(ns);
    }

    /// The script says what was done here.
    pub(crate) fn timed<T>(&mut self, truth: HostTruth, body: impl FnOnce(&mut Self) -> T) -> T {
        let from = self.now();
        let value = body(self);
        let to = self.now();
        self.truth.push((from, to, truth));
        value
    }

    /// From now on the kernel runs for so long.
    pub(crate) fn register(&self, name: &str, ns: u64) {
        let kernel = self.gpu.kernel(name).duration_ns(ns);
        kernel.timed().expect("a valid name");
    }

    pub(crate) fn kernel(&self, name: &str) -> Kernel {
        driver::function(self.module, name)
    }

    /// Launches a kernel after a little of the program's own work; when the call began.
    pub(crate) fn launch(&self, name: &str, stream: Stream) -> u64 {
        self.launch_as(name, stream, Shape::SMALL)
    }

    pub(crate) fn launch_as(&self, name: &str, stream: Stream, shape: Shape) -> u64 {
        let kernel = self.kernel(name);
        self.spend(1_000);
        let at = self.now();
        driver::launch(kernel, stream, shape);
        at
    }

    /// A copy of so many nanoseconds; when the call began.
    pub(crate) fn copy(&self, ns: usize, stream: Stream) -> u64 {
        self.spend(1_000);
        let at = self.now();
        self.memory.to_device(ns, stream);
        at
    }

    pub(crate) fn read_back(&self, stream: Stream) {
        self.spend(1_000);
        self.memory.to_host(4_096, stream);
    }

    /// The thread is taken off its processor for so long.
    pub(crate) fn preempted(&mut self, ns: u64) {
        self.switch(false);
        self.timed(HostTruth::Preempted, |world| world.spend(ns));
        self.switch(true);
    }

    fn switch(&self, running: bool) {
        self.scripted.push(Scheduled {
            tid: thread_id(),
            at: now(),
            cpu: Some(3),
            running,
            off: (!running).then_some(SwitchedOff::Preempted),
            state: None,
        });
    }

    /// Something that another thread does, for which this one waits.
    pub(crate) fn elsewhere<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(body).join()).expect("it does not panic")
    }

    /// In the scope of other work, for so long.
    pub(crate) fn busy_with(&mut self, epoch: &Epoch, ns: u64) {
        let id = epoch.id().expect("recording");
        self.timed(HostTruth::BusyWith(id), |world| {
            epoch.launch(|| world.spend(ns));
        });
    }

    /// Everything ends: what was recorded, and what was so.
    pub(crate) fn finish(self) -> Recorded {
        driver::synchronize_all();
        let report = self.session.shutdown(Duration::from_secs(10));
        let truth = self.gpu.truth();
        assert_eq!((truth.operations_not_kept, truth.calls_not_kept), (0, 0));
        Recorded {
            report,
            truth,
            host: self.truth,
        }
    }
}

/// What was recorded, and what was so.
pub(crate) struct Recorded {
    pub(crate) report: Report,
    pub(crate) truth: Truth,
    pub(crate) host: Vec<(u64, u64, HostTruth)>,
}
