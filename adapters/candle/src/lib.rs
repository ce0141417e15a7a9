//! Launch epochs for [candle](candle_core).
//!
//! candle launches its kernels on the thread that calls `forward`, and does not wait for them. So a
//! forward pass inside a [launch boundary](Epoch::launch) is joined, kernel by kernel, to the request
//! that it was for: [`ModuleExt::forward_in_epoch`]. An engine that serves several requests with one
//! pass merges their epochs: [`forward_batch`].
//!
//! ```
//! use candle_core::{DType, Device, Module, Result, Tensor};
//! use lineage_candle::ModuleExt as _;
//! use lineage_core::Epoch;
//!
//! # fn main() -> Result<()> {
//! let weights = Tensor::ones((4, 2), DType::F32, &Device::Cpu)?;
//! let model = move |input: &Tensor| input.matmul(&weights)?.relu();
//!
//! let request = Epoch::declare("request");
//! let input = Tensor::ones((1, 4), DType::F32, &Device::Cpu)?;
//! let output = model.forward_in_epoch(&input, &request)?;
//! assert_eq!(output.to_vec2::<f32>()?, [[4.0, 4.0]]);
//! # Ok(())
//! # }
//! ```
//!
//! Copies are GPU work, too: move a request's input to the device inside the boundary
//! (`epoch.launch(|| input.to_device(&device))`), and read its output back there.
//!
//! # Features
//!
//! * `record` (default): recording itself. Without it a forward pass is candle's own.
//!
//! There is no `cuda` feature: turn on candle's. `README.md` says which settings of cudarc go
//! together.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batch;
mod module;

pub use batch::forward_batch;
pub use module::{Launching, ModuleExt};

#[cfg(doc)]
use lineage_core::Epoch;
