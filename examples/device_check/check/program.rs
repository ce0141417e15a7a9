//! The work that CUPTI is asked about: a context, a stream, two kernels, copies and sets.

use std::ffi::{CStr, c_void};
use std::path::Path;

use cudarc::driver::{DriverError, result, sys};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::failure::Failure;
use super::options::Of;

const PTX: &str = concat!(include_str!("../kernels.ptx"), "\0");

/// Bytes of device memory, and of pinned host memory.
pub const BYTES: usize = 1 << 20;
/// How long the kernel `spin` runs where it matters that it runs.
pub const SPIN_NS: u64 = 200_000_000;

/// Loads the simulator if it is asked for. Before anything else: the first libcuda is the process's.
pub fn prepare(of: &Of) -> Result<(), Failure> {
    if !of.is_simulated() {
        return Ok(());
    }
    let gpu =
        lineage_sim::load(of.config()).map_err(|error| Failure::Simulator(error.to_string()))?;
    gpu.kernel("spin")
        .duration_ns(SPIN_NS)
        .timed()
        .map_err(|error| Failure::Simulator(error.to_string()))
}

/// A program that has CUDA set up. Its handles may be used on every thread.
pub struct Program {
    context: sys::CUcontext,
    stream: sys::CUstream,
    tick: sys::CUfunction,
    spin: sys::CUfunction,
    memory: sys::CUdeviceptr,
    pinned: *mut u8,
}

// SAFETY: CUDA's handles belong to no thread; `pinned` is used by one call at a time, see `copy_to_host`.
unsafe impl Sync for Program {}

pub fn driver<T>(call: &'static str, outcome: Result<T, DriverError>) -> Result<T, Failure> {
    outcome.map_err(|error| Failure::Driver { call, error })
}

impl Program {
    /// Initialises the driver on device 0.
    pub fn open() -> Result<Self, Failure> {
        // SAFETY: opens the library that any CUDA program opens, and closes it again.
        if !unsafe { sys::is_culib_present() } {
            return Err(Failure::NoDriver);
        }
        driver("cuInit", result::init())?;
        let device = driver("cuDeviceGet", result::device::get(0))?;
        // SAFETY: a device that the driver gave; the context is kept for the life of the process.
        let context = driver("cuDevicePrimaryCtxRetain", unsafe {
            result::primary_ctx::retain(device)
        })?;
        // SAFETY: a live context.
        driver("cuCtxSetCurrent", unsafe {
            result::ctx::set_current(context)
        })?;
        let stream = driver(
            "cuStreamCreate",
            result::stream::create(result::stream::StreamKind::NonBlocking),
        )?;
        // SAFETY: the text ends with a zero byte.
        let module = driver("cuModuleLoadData", unsafe {
            result::module::load_data(PTX.as_ptr().cast())
        })?;
        let function = |name: &CStr| {
            // SAFETY: a live module.
            driver("cuModuleGetFunction", unsafe {
                result::module::get_function(module, name.to_owned())
            })
        };
        let (tick, spin) = (function(c"tick")?, function(c"spin")?);
        // SAFETY: kept for the life of the process, as is the pinned memory.
        let memory = driver("cuMemAlloc", unsafe { result::malloc_sync(BYTES) })?;
        // SAFETY: as above.
        let pinned = driver("cuMemHostAlloc", unsafe { result::malloc_host(BYTES, 0) })?;
        Ok(Self {
            context,
            stream,
            tick,
            spin,
            memory,
            pinned: pinned.cast(),
        })
    }

    /// Makes the context current on this thread.
    pub fn use_here(&self) -> Result<(), Failure> {
        // SAFETY: a live context.
        driver("cuCtxSetCurrent", unsafe {
            result::ctx::set_current(self.context)
        })
    }

    /// The context, as CUPTI takes it.
    pub fn context(&self) -> *mut c_void {
        self.context.cast()
    }

    /// The kernel that does nothing, and the one that runs for as many nanoseconds as it is told.
    pub fn kernels(&self) -> [sys::CUfunction; 2] {
        [self.tick, self.spin]
    }

    /// [`BYTES`] of device memory, and as many of pinned host memory.
    pub fn memory(&self) -> (sys::CUdeviceptr, *mut u8) {
        (self.memory, self.pinned)
    }

    /// Launches a kernel that does nothing.
    pub fn launch(&self, label: u64) -> Result<(), Failure> {
        self.launch_function(self.tick, label)
    }

    /// Launches a kernel that runs for [`SPIN_NS`].
    pub fn launch_spin(&self) -> Result<(), Failure> {
        self.launch_function(self.spin, SPIN_NS)
    }

    fn launch_function(
        &self,
        function: sys::CUfunction,
        mut parameter: u64,
    ) -> Result<(), Failure> {
        let mut parameters = [(&raw mut parameter).cast::<c_void>()];
        let one = (1, 1, 1);
        // SAFETY: both kernels take one number and touch no memory; the driver copies the parameter during the call.
        let outcome =
            unsafe { result::launch_kernel(function, one, one, 0, self.stream, &mut parameters) };
        driver("cuLaunchKernel", outcome)
    }

    /// Sets this many bytes of device memory.
    pub fn set(&self, bytes: usize) -> Result<(), Failure> {
        // SAFETY: our own memory, not exceeded.
        let outcome =
            unsafe { result::memset_d8_async(self.memory, 1, bytes.min(BYTES), self.stream) };
        driver("cuMemsetD8Async", outcome)
    }

    /// Copies this many bytes to the device, blocking.
    pub fn copy_to_device(&self, bytes: usize) -> Result<(), Failure> {
        let host = vec![7_u8; bytes.min(BYTES)];
        // SAFETY: our own memory, not exceeded.
        driver("cuMemcpyHtoD", unsafe {
            result::memcpy_htod_sync(self.memory, &host)
        })
    }

    /// Copies this many bytes to pinned host memory, blocking.
    pub fn copy_to_host(&mut self, bytes: usize) -> Result<(), Failure> {
        // SAFETY: our own pinned memory, not exceeded, and ours alone: `self` is borrowed mutably.
        let host = unsafe { std::slice::from_raw_parts_mut(self.pinned, bytes.min(BYTES)) };
        // SAFETY: both sides are our own.
        driver("cuMemcpyDtoH", unsafe {
            result::memcpy_dtoh_sync(host, self.memory)
        })
    }

    /// Waits for the stream.
    pub fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: a live stream.
        driver("cuStreamSynchronize", unsafe {
            result::stream::synchronize(self.stream)
        })
    }
}

/// Where a call of the CUDA runtime comes from.
pub enum Runtime {
    /// A real `libcudart`.
    Library(Cudart),
    /// The simulator, which wraps the driver's calls.
    Simulated,
}

/// The three functions of `libcudart` that are called.
pub struct Cudart {
    free: unsafe extern "C" fn(*mut c_void) -> u32,
    memset_async: unsafe extern "C" fn(*mut c_void, i32, usize, *mut c_void) -> u32,
}

impl Runtime {
    /// The runtime of this arm.
    pub fn open(of: &Of, path: Option<&Path>) -> Result<Self, Failure> {
        if of.is_simulated() {
            return match of.sim_runtime_calls {
                super::options::RuntimeCallsChoice::Off => Err(Failure::Skipped(
                    "the simulator makes no runtime calls here".to_owned(),
                )),
                _ => Ok(Self::Simulated),
            };
        }
        let path = path.ok_or_else(|| Failure::Skipped("no libcudart was found".to_owned()))?;
        let cannot = |error: libloading::Error| {
            Failure::unexpected(format!("{} cannot be used: {error}", path.display()))
        };
        // SAFETY: loading the CUDA runtime runs initialisers that every program using it runs.
        let library =
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(cannot)?;
        // SAFETY: these names have these signatures in every CUDA runtime.
        let cudart = unsafe {
            Cudart {
                free: *library.get(b"cudaFree\0").map_err(cannot)?,
                memset_async: *library.get(b"cudaMemsetAsync\0").map_err(cannot)?,
            }
        };
        // The functions live as long as the library: for good.
        std::mem::forget(library);
        Ok(Self::Library(cudart))
    }

    /// One call of the runtime that asks for one set.
    pub fn set(&self, program: &Program, bytes: usize) -> Result<(), Failure> {
        let Self::Library(cudart) = self else {
            return program.set(bytes);
        };
        let memory = std::ptr::with_exposed_provenance_mut(program.memory as usize);
        // SAFETY: our own device memory and stream, of the primary context, which the runtime uses as well.
        let code =
            unsafe { (cudart.memset_async)(memory, 1, bytes.min(BYTES), program.stream.cast()) };
        runtime("cudaMemsetAsync", code)
    }

    /// Lets the runtime initialise itself.
    pub fn warm_up(&self, program: &Program) -> Result<(), Failure> {
        if let Self::Library(cudart) = self {
            // SAFETY: freeing null does nothing but initialise.
            runtime("cudaFree", unsafe { (cudart.free)(std::ptr::null_mut()) })?;
        }
        self.set(program, 64)?;
        program.synchronize()
    }
}

fn runtime(function: &'static str, code: u32) -> Result<(), Failure> {
    if code == 0 {
        Ok(())
    } else {
        Err(Failure::Runtime { function, code })
    }
}
