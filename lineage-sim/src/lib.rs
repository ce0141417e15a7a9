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
//! The two libraries are global to a process. A test that wants its own configuration, or that
//! counts records, runs in a process of its own: see [`isolated`]. What is documented by NVIDIA,
//! measured by others, or a switch because nobody says, is listed in `docs/simulator.md` of the repository.
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
pub use truth::{Call, Counts, Operation, OperationKind, StackDepth, Truth};
pub use version::CuptiVersion;
