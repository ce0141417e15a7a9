//! The simulated GPU, and the one thing that every request asks of it: a kernel that is told whose it is.
//!
//! Nothing here knows of lineage.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg, result,
};
use cudarc::nvrtc::Ptx;
use lineage_sim::Config;

/// One kernel, whose only parameter is the label of the work that it is launched for.
const PTX: &str = ".version 7.0\n.target sm_50\n.address_size 64\n\
                   .visible .entry serve(.param .u64 label) { ret; }";
/// How long the kernel runs. The matrix is about threads, not about the device.
const KERNEL_NS: u64 = 100;
/// How much truth is kept, in operations: a cell's.
const TRUTH_CAPACITY: usize = 1 << 22;

/// The device, and what really ran on it.
pub struct Gpu {
    simulated: lineage_sim::Gpu,
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
}

/// Why there is no simulated GPU.
#[derive(Debug, thiserror::Error)]
pub enum NoGpu {
    /// The simulator says why.
    #[error("the simulated gpu does not start: {0}")]
    Load(#[from] lineage_sim::LoadError),
    /// The kernel has no place.
    #[error("the simulated gpu takes no kernel: {0}")]
    Register(#[from] lineage_sim::RegisterError),
    /// cudarc cannot use it.
    #[error("the simulated gpu cannot be used: {0:?}")]
    Driver(#[from] DriverError),
}

impl Gpu {
    /// Loads it. Once per process, before anything else touches CUDA.
    pub fn load(push_inside_enter: bool) -> Result<Self, NoGpu> {
        let config = Config::default()
            .push_inside_enter_counts(push_inside_enter)
            .default_kernel_ns(KERNEL_NS)
            .truth_capacity(TRUTH_CAPACITY);
        let simulated = lineage_sim::load(config)?;
        let kernel = simulated.kernel("serve").label_argument(0);
        kernel.duration_ns(KERNEL_NS).timed()?;
        let context = CudaContext::new(0)?;
        let module = context.load_module(Ptx::from_src(PTX))?;
        Ok(Self {
            simulated,
            stream: context.default_stream(),
            kernel: module.load_function("serve")?,
        })
    }

    /// Asks for the work with this label. From any thread.
    pub fn launch(&self, label: u64) -> Result<(), DriverError> {
        let mut call = self.stream.launch_builder(&self.kernel);
        call.arg(&label);
        // SAFETY: the kernel's one parameter is a `u64`.
        unsafe { call.launch(LaunchConfig::for_num_elems(1)) }?;
        Ok(())
    }

    /// Has the device call this on a thread of its own when the work before it is done
    /// (`cuLaunchHostFunc`). The callback may call no CUDA function.
    pub fn call_back(&self, callback: impl FnOnce() + Send + 'static) -> Result<(), DriverError> {
        unsafe extern "C" fn call(callback: *mut c_void) {
            // SAFETY: the pointer is that of the box below, and the driver calls once.
            let callback = unsafe { Box::from_raw(callback.cast::<Box<dyn FnOnce() + Send>>()) };
            // A panic must not cross into the driver.
            drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(
                callback,
            )));
        }
        let callback: Box<Box<dyn FnOnce() + Send>> = Box::new(Box::new(callback));
        let callback = Box::into_raw(callback);
        self.stream.context().bind_to_thread()?;
        // SAFETY: the stream lives as long as `self`; `call` takes the box, which nobody else holds.
        let outcome = unsafe {
            result::stream::launch_host_function(self.stream.cu_stream(), call, callback.cast())
        };
        if outcome.is_err() {
            // SAFETY: the driver refused, so it will not call, and the box is still ours.
            drop(unsafe { Box::from_raw(callback) });
        }
        outcome
    }

    /// Waits until all work is done.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.stream.synchronize()
    }

    /// The simulator, for its truth and its counts.
    pub fn simulated(&self) -> &lineage_sim::Gpu {
        &self.simulated
    }
}
