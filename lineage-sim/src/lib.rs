//! A simulated CUDA driver and CUPTI, with ground truth, for tests without a GPU.
//!
//! [`load`] puts a simulated `libcuda.so` and `libcupti.so` into the process. A program that opens these
//! libraries by name, as cudarc does, then runs on them unmodified: streams, events, memory, PTX
//! modules and launches do what NVIDIA documents, and CUPTI records what was done. Kernels are
//! host functions, registered under the names that the PTX text gives them. Beside it, [`Gpu::truth`] says
//! what really happened, which no profiler can; its labels are carried by the kernels' own arguments.
//!
//! ```
//! use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gpu = lineage_sim::load(lineage_sim::Config::default())?;
//! gpu.kernel("work").label_argument(0).timed()?;
//! let ptx = ".version 8.0 .target sm_90 .entry work(.param .u64 label) { ret; }";
//! let context = CudaContext::new(0)?;
//! let work = context.load_module(cudarc::nvrtc::Ptx::from_src(ptx))?.load_function("work")?;
//! let stream = context.new_stream()?;
//! // SAFETY: the kernel takes one number.
//! unsafe { stream.launch_builder(&work).arg(&42_u64).launch(LaunchConfig::for_num_elems(1)) }?;
//! stream.synchronize()?;
//! assert_eq!(gpu.truth().operations[0].label, Some(42));
//! # Ok(())
//! # }
//! ```
//!
//! A kernel that computes gets a host function:
//!
//! ```
//! use lineage_sim::{Config, DeviceRange};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gpu = lineage_sim::load(Config::default())?;
//! // .visible .entry double(.param .u64 values, .param .u32 length)
//! gpu.register_kernel("double", |launch| {
//!     let length = launch.argument::<u32>(1)? as usize;
//!     let values = DeviceRange::new(launch.argument(0)?, length);
//!     for value in launch.slice_mut::<f32>(values)? {
//!         *value *= 2.0;
//!     }
//!     Ok(())
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! With the virtual clock time is what the model says and nothing else, so that a test can ask for exact numbers, and for the reason:
//!
//! ```
//! use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
//! use lineage_sim::{Cause, Config, Settings};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Each call that asks for work takes 3 µs, each kernel 8 µs.
//! let gpu = lineage_sim::load(Config::default().model(Settings::default().work_call_ns(3_000)).virtual_clock())?;
//! gpu.kernel("work").label_argument(0).duration_ns(8_000).timed()?;
//! # let ptx = ".version 8.0 .target sm_90 .entry work(.param .u64 label) { ret; }";
//! # let context = CudaContext::new(0)?;
//! # let work = context.load_module(cudarc::nvrtc::Ptx::from_src(ptx))?.load_function("work")?;
//! # let stream = context.new_stream()?;
//! # let launch = |label: u64| unsafe { stream.launch_builder(&work).arg(&label).launch(LaunchConfig::for_num_elems(1)) };
//! launch(1)?;
//! launch(2)?;
//! stream.synchronize()?;
//! let second = &gpu.truth().operations[1];
//! assert_eq!(second.waits.of(Cause::Dependency), 5_000); // queued after 3 of the first one's 8 µs
//! assert_eq!(second.waits.binding(), Some(Cause::Dependency));
//! # Ok(())
//! # }
//! ```
//!
//! [`Settings`] has the mechanisms that can be switched on: channels, rings, doorbells, multiprocessors, copy engines, a neighbour, several devices,
//! host costs, device clocks. [`Gpu::host_threads`] puts the calls of several threads in order.
//!
//! The two libraries are global to a process. A test that wants its own configuration, or that
//! counts records, runs in a process of its own: see [`isolated`]. What is documented by NVIDIA,
//! measured by others, or a switch because nobody says, is listed in `docs/simulator.md` of the repository;
//! [`not_supported`] lists the functions that exist and are not simulated.
//!
//! Linux only; elsewhere [`load`] answers [`LoadError::NotSupported`].

pub(crate) mod abi;
mod config;
mod faults;
mod gpu;
mod hosts;
mod isolated;
mod kernel;
mod load;
#[cfg(target_os = "linux")]
mod locate;
#[cfg(target_os = "linux")]
mod symbols;
mod truth;
mod unsupported;
mod version;

pub use abi::{KERNEL_FAILED, KERNEL_ILLEGAL_ADDRESS, KERNEL_OK, RawParameter};
pub use config::{Config, RuntimeCalls, TruthMode};
pub use faults::{Faults, OtherTool};
pub use gpu::{Gpu, KernelBuilder, RawLaunch, RegisterError};
pub use hosts::{HostThread, now_ns};
pub use isolated::isolated;
pub use kernel::{DeviceRange, Element, KernelError, KernelResult, Launch};
pub use lineage_sim_model::{Cause, Clock, DependencyKind, Limit, Settings, WaitSplit};
pub use load::{LoadError, load};
pub use truth::{Call, Counts, GraphNode, Operation, OperationKind, StackDepth, Truth};
pub use unsupported::{NotSupported, not_supported};
pub use version::CuptiVersion;
