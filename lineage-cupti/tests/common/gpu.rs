//! A program that launches on the simulated GPU, through the driver interface alone.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::time::Duration;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use lineage_core::observation::{
    ApiRecord, Call, DeviceSession, Dropped, Event, ExternalRecord, Flushed, GraphEvent,
    GraphLaunch, Misuse, Operation,
};
use lineage_core::{Lineage, Report};
use lineage_cupti::Cupti;
use lineage_sim::{Config, Gpu};

const PTX: &CStr = c"
.version 8.0
.target sm_90
.address_size 64
.visible .entry work(.param .u64 label) { ret; }
.visible .entry long_work(.param .u64 label) { ret; }
.visible .entry longest_work(.param .u64 label) { ret; }
";

/// The driver's functions that the tests call, with their parameters as machine words.
struct Functions {
    library: Library,
}

impl Functions {
    /// Calls a function of the driver; all parameters are passed as machine words, as integers and
    /// pointers are on x86-64 and aarch64.
    fn call<const N: usize>(&self, name: &CStr, parameters: [usize; N]) -> u32 {
        type F = unsafe extern "C" fn(
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
        ) -> u32;
        let mut all = [0; 11];
        all[..N].copy_from_slice(&parameters);
        // SAFETY: the simulated driver's functions take up to 11 integers or pointers, in registers
        // and then on the stack; those that take fewer do not look at the rest.
        unsafe {
            let function = self
                .library
                .get::<F>(name.to_bytes_with_nul())
                .expect("the function exists");
            function(
                all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7], all[8], all[9],
                all[10],
            )
        }
    }
}

/// A context, a stream, a module and some memory.
pub(crate) struct Program {
    functions: Functions,
    context: usize,
    stream: usize,
    module: usize,
    work: usize,
    long_work: usize,
    longest_work: usize,
    memory: usize,
}

/// Number of bytes of device memory.
pub(crate) const BYTES: usize = 1 << 16;

impl Program {
    /// Loads the simulator and sets a program up on it.
    pub(crate) fn on(config: Config) -> (Gpu, Self) {
        let gpu = lineage_sim::load(config).expect("the simulator loads");
        gpu.kernel("work")
            .label_argument(0)
            .timed()
            .expect("a valid name");
        gpu.kernel("long_work")
            .label_argument(0)
            .duration_ns(300_000_000)
            .timed()
            .expect("a valid name");
        gpu.kernel("longest_work")
            .label_argument(0)
            .duration_ns(3_000_000_000)
            .timed()
            .expect("a valid name");
        (gpu, Self::new())
    }

    /// Sets a program up on the simulator that is loaded.
    pub(crate) fn new() -> Self {
        // SAFETY: the simulated driver is loaded under this name.
        let library = unsafe { Library::open(Some("libcuda.so"), RTLD_NOW | RTLD_LOCAL) };
        let functions = Functions {
            library: library.expect("the simulator is loaded"),
        };
        let ok = |name: &str, code: u32| assert_eq!(code, 0, "{name}");
        let place = |value: &mut usize| std::ptr::from_mut(value) as usize;
        let (mut context, mut stream, mut module, mut memory) = (0, 0, 0, 0);
        ok("cuInit", functions.call(c"cuInit", [0]));
        let retain = functions.call(c"cuDevicePrimaryCtxRetain", [place(&mut context), 0]);
        ok("cuDevicePrimaryCtxRetain", retain);
        ok(
            "cuCtxSetCurrent",
            functions.call(c"cuCtxSetCurrent", [context]),
        );
        ok(
            "cuStreamCreate",
            functions.call(c"cuStreamCreate", [place(&mut stream), 0]),
        );
        let load = functions.call(
            c"cuModuleLoadData",
            [place(&mut module), PTX.as_ptr() as usize],
        );
        ok("cuModuleLoadData", load);
        let function = |name: &CStr| {
            let mut function = 0;
            let parameters = [place(&mut function), module, name.as_ptr() as usize];
            ok(
                "cuModuleGetFunction",
                functions.call(c"cuModuleGetFunction", parameters),
            );
            function
        };
        let (work, long_work) = (function(c"work"), function(c"long_work"));
        let longest_work = function(c"longest_work");
        ok(
            "cuMemAlloc_v2",
            functions.call(c"cuMemAlloc_v2", [place(&mut memory), BYTES]),
        );
        Self {
            functions,
            context,
            stream,
            module,
            work,
            long_work,
            longest_work,
            memory,
        }
    }

    /// Calls a function of the driver.
    pub(crate) fn call<const N: usize>(&self, name: &CStr, parameters: [usize; N]) -> u32 {
        self.functions.call(name, parameters)
    }

    /// The stream.
    pub(crate) fn stream(&self) -> usize {
        self.stream
    }

    /// The kernel of a few microseconds.
    pub(crate) fn kernel(&self) -> usize {
        self.work
    }

    /// Makes the context current on this thread.
    pub(crate) fn use_here(&self) {
        assert_eq!(self.functions.call(c"cuCtxSetCurrent", [self.context]), 0);
    }

    /// Unloads the module.
    pub(crate) fn unload(&self) {
        assert_eq!(self.functions.call(c"cuModuleUnload", [self.module]), 0);
    }

    /// Gives the context back, which goes with all that is in it when the last program does.
    pub(crate) fn release(&self) {
        let code = self.functions.call(c"cuDevicePrimaryCtxRelease_v2", [0]);
        assert_eq!(code, 0);
    }

    /// Launches one kernel of a few microseconds, with this label.
    pub(crate) fn launch(&self, label: u64) {
        assert_eq!(self.try_launch(label), 0);
    }

    /// The same where it may be refused; answers the driver's code.
    pub(crate) fn try_launch(&self, label: u64) -> u32 {
        self.launch_function(self.work, label)
    }

    /// Launches one kernel of 300 ms.
    pub(crate) fn launch_long(&self, label: u64) {
        assert_eq!(self.launch_function(self.long_work, label), 0);
    }

    /// Launches one kernel of 3 s.
    pub(crate) fn launch_longest(&self, label: u64) {
        assert_eq!(self.launch_function(self.longest_work, label), 0);
    }

    /// A launch that the driver refuses.
    pub(crate) fn launch_nothing(&self) -> u32 {
        self.launch_function(0, 0)
    }

    fn launch_function(&self, function: usize, label: u64) -> u32 {
        let mut label = label;
        let mut parameters: [*mut c_void; 1] = [(&raw mut label).cast()];
        self.functions.call(
            c"cuLaunchKernel",
            [
                function,
                2,
                1,
                1,
                64,
                1,
                1,
                0,
                self.stream,
                parameters.as_mut_ptr() as usize,
                0,
            ],
        )
    }

    /// Copies this many bytes to the device.
    pub(crate) fn copy_to_device(&self, bytes: usize) {
        let host = vec![7_u8; bytes.max(1)];
        let parameters = [self.memory, host.as_ptr() as usize, bytes];
        assert_eq!(self.functions.call(c"cuMemcpyHtoD_v2", parameters), 0);
    }

    /// Copies this many bytes from the device.
    pub(crate) fn copy_to_host(&self, bytes: usize) {
        let mut host = vec![0_u8; bytes.max(1)];
        let parameters = [host.as_mut_ptr() as usize, self.memory, bytes];
        assert_eq!(self.functions.call(c"cuMemcpyDtoH_v2", parameters), 0);
    }

    /// Sets this many bytes.
    pub(crate) fn set(&self, bytes: usize) {
        let parameters = [self.memory, 1, bytes, self.stream];
        assert_eq!(self.functions.call(c"cuMemsetD8Async", parameters), 0);
    }

    /// Waits for the stream.
    pub(crate) fn synchronize(&self) {
        assert_eq!(
            self.functions.call(c"cuStreamSynchronize", [self.stream]),
            0
        );
    }
}

/// The simulated CUPTI, called by the test itself as another tool would.
pub(crate) fn cupti() -> &'static lineage_cupti::sys::Library {
    static LIBRARY: OnceLock<lineage_cupti::sys::Library> = OnceLock::new();
    LIBRARY.get_or_init(|| lineage_cupti::sys::Library::load().expect("the simulator is loaded"))
}

/// A session that keeps all it sees.
pub(crate) fn session(device: Cupti) -> Lineage {
    Lineage::builder()
        .service("test")
        .keep_in_memory(1 << 20)
        .device(device)
        .start()
        .expect("no other session is alive")
}

/// Ends a session that has done its work.
pub(crate) fn end(session: Lineage) -> Report {
    session.shutdown(Duration::from_secs(10))
}

macro_rules! observations {
    ($($(#[$doc:meta])* $name:ident: $event:ident($inner:ident);)+) => {
        $($(#[$doc])*
        pub(crate) fn $name(report: &Report) -> Vec<&$inner> {
            let events = report.observations.iter().map(|observation| &observation.event);
            events
                .filter_map(|event| match event {
                    Event::$event(found) => Some(found),
                    _ => None,
                })
                .collect()
        })+
    };
}
observations! {
    /// Calls, as our callback saw them.
    calls: Call(Call);
    /// CUPTI's records of calls.
    api_records: Api(ApiRecord);
    /// CUPTI's records of external ids.
    external_records: External(ExternalRecord);
    /// CUPTI's records of operations.
    operations: Operation(Operation);
    /// What was lost.
    dropped: Dropped(Dropped);
    /// Fences.
    fences: Flushed(Flushed);
    /// Begin and end of the session.
    device_sessions: DeviceSession(DeviceSession);
    /// Wrong use.
    misuses: Misuse(Misuse);
    /// What became of graphs.
    graph_events: Graph(GraphEvent);
    /// Launches of graphs.
    graph_launches: GraphLaunch(GraphLaunch);
}
