//! A simulated CUDA driver and CUPTI, with ground truth, for tests without a GPU.
//!
//! [`load`] puts a simulated `libcuda.so` and `libcupti.so` into the process. A program that opens these
//! libraries by name, as cudarc does, then runs on them unmodified: streams, events, memory, PTX
//! modules and launches do what NVIDIA documents, and CUPTI records what was done. Kernels are
//! host functions, registered under the names that the PTX text gives them. Beside it, [`Gpu::truth`] says
//! what really happened, which no profiler can; its labels are carried by the kernels' own arguments.
//!
//! Linux only; elsewhere [`load`] answers [`LoadError::NotSupported`].

pub(crate) mod abi;
mod config;
mod gpu;
mod isolated;
mod kernel;
mod load;
#[cfg(target_os = "linux")]
mod locate;
mod truth;

pub use abi::{KERNEL_FAILED, KERNEL_ILLEGAL_ADDRESS, KERNEL_OK, RawParameter};
pub use config::{Config, CuptiVersion, RuntimeCalls};
pub use gpu::{Gpu, KernelBuilder, RawLaunch, RegisterError};
pub use isolated::isolated;
pub use kernel::{DeviceRange, Element, KernelError, KernelResult, Launch};
pub use load::{LoadError, load};
pub use truth::{Call, Counts, Operation, OperationKind, StackDepth, Truth};
