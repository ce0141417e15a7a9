//! A simulated CUDA driver and CUPTI, with ground truth, for tests without a GPU.
//!
//! Run the tests of a CUDA program where there is no GPU. [`load`] puts a simulated `libcuda.so` and `libcupti.so` into the process. A program
//! that opens these libraries by name, as cudarc does with its feature `dynamic-loading`, then runs on them unmodified: streams, events, memory, graphs, PTX
//! modules and launches do what NVIDIA documents, and CUPTI records what was done. Kernels are
//! host functions, registered under the names that the PTX text gives them. Beside it, [`Gpu::truth`] says
//! what really happened, which no profiler can; its labels are carried by the kernels' own arguments.
//!
//! ```toml
//! [dev-dependencies]
//! lineage-sim = { git = "https://github.com/launch-lineage/launch-lineage" }
//! ```
//!
//! A test loads the simulator first, and says what each kernel computes:
//!
//! ```
//! use lineage_sim::{Config, DeviceRange};
//!
//! # use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
//! # fn scaled(factor: f32, values: &[f32]) -> Result<Vec<f32>, DriverError> {
//! #     let ptx = ".version 8.0 .target sm_90 .entry scale(.param .u32 length, .param .f32 factor, .param .u64 from, .param .u64 to) { ret; }";
//! #     let context = CudaContext::new(0)?;
//! #     let scale = context.load_module(cudarc::nvrtc::Ptx::from_src(ptx))?.load_function("scale")?;
//! #     let stream = context.new_stream()?;
//! #     let (from, length) = (stream.clone_htod(values)?, values.len() as u32);
//! #     let mut to = stream.alloc_zeros::<f32>(values.len())?;
//! #     // SAFETY: the kernel takes these.
//! #     unsafe { stream.launch_builder(&scale).arg(&length).arg(&factor).arg(&from).arg(&mut to).launch(LaunchConfig::for_num_elems(length)) }?;
//! #     stream.clone_dtoh(&to)
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gpu = lineage_sim::load(Config::default())?;
//! // .entry scale(.param .u32 length, .param .f32 factor, .param .u64 from, .param .u64 to)
//! gpu.register_kernel("scale", |launch| {
//!     let (length, factor) = (launch.argument::<u32>(0)? as usize, launch.argument::<f32>(1)?);
//!     let [from, to] = [2, 3].map(|index| launch.argument(index).map(|address| DeviceRange::new(address, length)));
//!     let (to, [from]) = launch.write_and_read::<f32, f32, 1>(to?, [from?])?;
//!     to.iter_mut().zip(from).for_each(|(to, from)| *to = factor * from);
//!     Ok(())
//! })?;
//! assert_eq!(scaled(2.0, &[1.0, 2.0])?, [2.0, 4.0]); // the program under test: copies, launches and copies back with cudarc
//! # Ok(())
//! # }
//! ```
//!
//! A kernel that nobody registers takes [`Config::default_kernel_ns`](Config) and computes nothing. Modules are PTX texts, as `nvcc -ptx` writes them or a program
//! holds them: of each entry its name and its parameters count. Machine code and NVRTC are not simulated.
//!
//! The two libraries are global to a process, and stay as they were loaded first. A test that wants its own configuration, or that
//! counts what happened, runs in a process of its own, which nextest gives it anyway, and `cargo test` by [`isolated`]:
//!
//! ```no_run
//! #[test]
//! fn sixty_four_requests_are_sixty_four_kernels() {
//!     lineage_sim::isolated("sixty_four_requests_are_sixty_four_kernels", || {
//!         let gpu = lineage_sim::load(lineage_sim::Config::default()).unwrap();
//! # fn serve(_: u32) {}
//!         serve(64);
//!         assert_eq!(gpu.truth().kernels().count(), 64);
//!     });
//! }
//! ```
//!
//! With the virtual clock time is what the model says and nothing else, so that a test can ask for exact numbers, and for the reason:
//!
//! ```
//! use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
//! use lineage_sim::{Cause, Config, Settings};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Each call that asks for work takes 3 µs, each kernel 8 µs; its first argument is a label for the truth.
//! let gpu = lineage_sim::load(Config::default().model(Settings::default().work_call_ns(3_000)).virtual_clock())?;
//! gpu.kernel("work").label_argument(0).duration_ns(8_000).timed()?;
//! let ptx = ".version 8.0 .target sm_90 .entry work(.param .u64 label) { ret; }";
//! let context = CudaContext::new(0)?;
//! let work = context.load_module(cudarc::nvrtc::Ptx::from_src(ptx))?.load_function("work")?;
//! let stream = context.new_stream()?;
//! for label in [7_u64, 9] {
//!     // SAFETY: the kernel takes one number.
//!     unsafe { stream.launch_builder(&work).arg(&label).launch(LaunchConfig::for_num_elems(1)) }?;
//! }
//! stream.synchronize()?;
//! let truth = gpu.truth();
//! let second = truth.labelled(9).next().expect("it ran");
//! assert_eq!(second.waits.of(Cause::Dependency), 5_000); // queued after 3 of the first one's 8 µs
//! assert_eq!(second.waits.binding(), Some(Cause::Dependency));
//! # Ok(())
//! # }
//! ```
//!
//! [`Settings`] has the mechanisms that can be switched on: channels, rings, doorbells, multiprocessors, copy engines, a neighbour, several devices,
//! host costs, device clocks. [`Gpu::host_threads`] puts the calls of several threads in order. [`Faults`] has what goes wrong on demand: records that are dropped,
//! lost, doubled or without times, buffers that never come, clocks that step, launches that fail, another profiler in the process.
//!
//! What is documented by NVIDIA, measured by others, or a switch because nobody says, is listed in `docs/simulator.md` of the repository;
//! [`not_supported`] lists the functions that exist and are not simulated, and answer so.
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
