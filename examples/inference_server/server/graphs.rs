//! A graph of a decode step for each size of batch, as servers have them: 1, 2, 4 and 8 members, and a
//! batch of another size is padded.
//!
//! A graph's kernels have the parameters that they were captured with. What differs from step to
//! step, the batch's label and slots, is copied into memory before a replay.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use cudarc::driver::DriverError;
use launch_lineage::Epoch;
use lineage_cudarc::{Capture, CaptureError, CapturedGraph};

use crate::device::Device;
use crate::truth::Labels;

/// The graphs that were captured so far.
pub(super) struct Graphs {
    by_size: BTreeMap<usize, Owned>,
    labels: Arc<Labels>,
}

struct Owned {
    graph: CapturedGraph,
    /// The epoch that the graph was captured under lives as long as the graph.
    _epoch: Epoch,
}

impl Graphs {
    pub(super) fn new(labels: Arc<Labels>) -> Self {
        Self {
            by_size: BTreeMap::new(),
            labels,
        }
    }

    /// The graph for a batch of so many members, captured now if none was as large before.
    ///
    /// Under an epoch of its own. The batch that happens to be the first of its size does not own the
    /// graph, whose next replay is another's; and `detached` would not say which of the graphs a
    /// kernel came from.
    pub(super) fn for_batch_of(
        &mut self,
        members: usize,
        device: &mut Device,
    ) -> Result<&mut CapturedGraph, CaptureError<DriverError>> {
        let size = members.next_power_of_two();
        match self.by_size.entry(size) {
            Entry::Occupied(captured) => Ok(&mut captured.into_mut().graph),
            Entry::Vacant(place) => {
                let epoch = Epoch::declare("decode graph");
                self.labels.graph(size, &epoch);
                let stream = Arc::clone(device.stream());
                let graph = Capture::on(&stream).run(&epoch, || device.decode(size))?;
                let _epoch = epoch;
                Ok(&mut place.insert(Owned { graph, _epoch }).graph)
            }
        }
    }
}
