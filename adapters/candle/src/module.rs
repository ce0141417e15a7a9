//! A module's forward pass as a launch boundary.

use candle_core::{Module, Result, Tensor};
use lineage_core::Epoch;

/// Forward passes in epochs.
pub trait ModuleExt: Module {
    /// [`Module::forward`] in a launch boundary of this epoch: what it launches is joined to it.
    ///
    /// On an inert epoch this is a boundary of whatever is current.
    ///
    /// # Errors
    /// As the module's own.
    fn forward_in_epoch(&self, input: &Tensor, epoch: &Epoch) -> Result<Tensor> {
        epoch.launch(|| self.forward(input))
    }

    /// This module, each of whose forward passes is a launch boundary of the epoch that is current
    /// where it is called: for a model deep within a program, whose callers carry epochs already.
    fn launching(self) -> Launching<Self>
    where
        Self: Sized,
    {
        Launching(self)
    }
}

impl<M: Module + ?Sized> ModuleExt for M {}

/// A module whose forward passes are launch boundaries. Made by [`ModuleExt::launching`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Launching<M>(M);

impl<M> Launching<M> {
    /// The module itself.
    pub fn into_inner(self) -> M {
        self.0
    }
}

impl<M: Module> Module for Launching<M> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        lineage_core::launch(|| self.0.forward(input))
    }
}
