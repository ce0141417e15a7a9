//! What calls and graph nodes ask for: their parameters, kept apart from streams, so that a call that is captured and
//! the replays of its node ask for the same.

use std::sync::Arc;

use lineage_sim_model::{Direction, Footprint, Programmatic};

use crate::abi::{
    OPERATION_COPY_DEVICE_TO_DEVICE, OPERATION_COPY_DEVICE_TO_HOST, OPERATION_COPY_HOST_TO_DEVICE,
    OPERATION_COPY_PEER, OPERATION_KERNEL, OPERATION_SET,
};
use crate::config::model;
use crate::cupti::activity::{self, kind};
use crate::cupti::records::{Peer, Shape, copy_kind, records_kernels};
use crate::handles::HandleNumber;
use crate::kernels::{self, Kernel};
use crate::memory::{self, Kind};
use crate::objects::{CONTEXTS, Function};
use crate::operation::{HostSource, Rows, Work};
use crate::submit::Request;

/// A kernel with its configuration and the values of its parameters.
#[derive(Clone)]
pub(crate) struct KernelLaunch {
    pub(crate) handle: HandleNumber,
    pub(crate) function: Arc<Function>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) cooperative: bool,
    pub(crate) priority: Option<i32>,
    /// It may start before its predecessor has ended.
    pub(crate) programmatic: bool,
    /// Blocks of a cluster; zeros for none.
    pub(crate) cluster: [u32; 3],
    pub(crate) parameters: Box<[u8]>,
}

impl KernelLaunch {
    pub(crate) fn request(self, stream_priority: i32) -> Request {
        let name = self.function.name;
        let kernel = kernels::find(name);
        let shape = records_kernels().then(|| Shape::Kernel {
            function: self.function.clone(),
            grid: self.grid,
            block: self.block,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            registers_per_thread: kernels::registers_per_thread(kernel.as_deref()),
            cooperative: self.cooperative,
            priority: self.priority.unwrap_or(stream_priority),
            cluster: self.cluster,
        });
        Request {
            kind: OPERATION_KERNEL,
            name: Some(name),
            bytes: 0,
            model: self.model_work(kernel.as_deref()),
            shape,
            parameter_bytes: self.function.parameter_bytes,
            priority: self.priority,
            work: Work::Kernel {
                kernel,
                function: self.function,
                grid: self.grid,
                block: self.block,
                dynamic_shared_bytes: self.dynamic_shared_bytes,
                parameters: self.parameters,
            },
        }
    }

    /// What the model of the device is told of a kernel.
    fn model_work(&self, kernel: Option<&Kernel>) -> lineage_sim_model::Work {
        let product =
            |extents: &[u32; 3]| extents.iter().map(|extent| u64::from(*extent)).product();
        let (blocks, threads): (u64, u64) = (product(&self.grid), product(&self.block));
        let threads = threads as u32;
        let registers = kernels::registers_per_thread(kernel);
        let mut programmatic = Programmatic::default();
        programmatic.may_overlap = self.programmatic;
        if let Some(kernel) = kernel {
            programmatic.triggers_after_ns = kernel.triggers_after_ns;
            programmatic.waits_after_ns = kernel.waits_after_ns;
        }
        lineage_sim_model::Work::Kernel {
            footprint: Footprint::new(blocks, threads)
                .registers(registers.saturating_mul(threads))
                .shared_bytes(self.dynamic_shared_bytes),
            programmatic,
            collective: kernel.and_then(|kernel| kernel.collective),
            duration_ns: 0,
        }
    }
}

/// A copy between addresses.
#[derive(Clone, Copy)]
pub(crate) struct CopyBetween {
    /// `OPERATION_COPY_…` of the private interface.
    pub(crate) direction: u32,
    pub(crate) to: u64,
    pub(crate) from: u64,
    /// Of all rows together.
    pub(crate) bytes: u64,
    pub(crate) rows: Rows,
    /// In a stream; the call does not wait for it.
    pub(crate) asynchronous: bool,
}

impl CopyBetween {
    /// The request; the host's source as it was staged, or read when the copy runs.
    pub(crate) fn request(&self, staged: Option<Box<[u8]>>) -> Request {
        let &Self {
            direction,
            to,
            from,
            bytes,
            rows,
            asynchronous,
        } = self;
        let work = match direction {
            OPERATION_COPY_HOST_TO_DEVICE => Work::CopyHostToDevice {
                source: staged.map_or(HostSource::Pinned(from), HostSource::Staged),
                to,
                rows,
            },
            OPERATION_COPY_DEVICE_TO_HOST => Work::CopyDeviceToHost { from, to, rows },
            _ => Work::CopyDeviceToDevice { from, to, rows },
        };
        let peers = peers(from, to);
        let direction = peers.map_or(direction, |_| OPERATION_COPY_PEER);
        let record_kind = peers.map_or(kind::MEMCPY, |_| kind::MEMCPY2);
        let kind_at = |address| memory_kind(memory::find(address).map(|found| found.1.kind));
        let shape = activity::is_enabled(record_kind).then(|| Shape::Copy {
            copy_kind: copy_kind(direction),
            source_kind: kind_at(from),
            target_kind: kind_at(to),
            asynchronous,
            bytes,
            peers,
        });
        let way = match direction {
            OPERATION_COPY_HOST_TO_DEVICE => Direction::ToDevice,
            OPERATION_COPY_DEVICE_TO_HOST => Direction::ToHost,
            _ => Direction::Within,
        };
        Request {
            kind: direction,
            name: None,
            bytes,
            work,
            shape,
            model: lineage_sim_model::Work::copy(way, 0),
            parameter_bytes: 0,
            priority: None,
        }
    }

    /// The direction that follows from the addresses; none between two places of the host's.
    pub(crate) fn direction_of(to: u64, from: u64) -> Option<u32> {
        let is_device =
            |address| memory::find(address).is_some_and(|found| found.1.kind.is_device());
        match (is_device(from), is_device(to)) {
            (false, true) => Some(OPERATION_COPY_HOST_TO_DEVICE),
            (true, false) => Some(OPERATION_COPY_DEVICE_TO_HOST),
            (true, true) => Some(OPERATION_COPY_DEVICE_TO_DEVICE),
            (false, false) => None,
        }
    }

    /// Whether the device's side, or both, is device memory, and the host's not null.
    pub(crate) fn is_valid(&self) -> bool {
        let is_device =
            |address, pitch| memory::is_device_range(address, self.rows.span(self.bytes, pitch));
        let from = || is_device(self.from, self.rows.source_pitch);
        let to = || is_device(self.to, self.rows.target_pitch);
        match self.direction {
            OPERATION_COPY_HOST_TO_DEVICE => self.from != 0 && to(),
            OPERATION_COPY_DEVICE_TO_HOST => self.to != 0 && from(),
            _ => from() && to(),
        }
    }
}

/// A set of elements of `width` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Fill {
    pub(crate) to: u64,
    pub(crate) value: u32,
    pub(crate) width: u8,
    /// Of all rows together.
    pub(crate) bytes: u64,
    pub(crate) rows: Rows,
    pub(crate) asynchronous: bool,
}

impl Fill {
    pub(crate) fn request(&self) -> Request {
        let &Self {
            to,
            value,
            width,
            bytes,
            rows,
            asynchronous,
        } = self;
        let shape = activity::is_enabled(kind::MEMSET).then(|| Shape::Set {
            value,
            bytes,
            asynchronous,
            memory_kind: memory_kind(memory::find(to).map(|found| found.1.kind)).into(),
        });
        Request {
            kind: OPERATION_SET,
            name: None,
            bytes,
            work: Work::Set {
                to,
                value,
                width,
                rows,
            },
            shape,
            model: lineage_sim_model::Work::Other { duration_ns: 0 },
            parameter_bytes: 0,
            priority: None,
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        matches!(self.width, 1 | 2 | 4)
            && self.to.is_multiple_of(self.width.into())
            && memory::is_device_range(self.to, self.rows.span(self.bytes, self.rows.target_pitch))
    }
}

/// Source and target, where both are device memory, and of different devices.
fn peers(from: u64, to: u64) -> Option<[Peer; 2]> {
    if model().devices < 2 {
        return None;
    }
    let peer = |address| {
        let (_, allocation) = memory::find(address)?;
        let context = CONTEXTS.get_number(allocation.context);
        allocation.kind.is_device().then(|| Peer {
            device: allocation.device,
            context_id: context.map_or(0, |context| context.id),
        })
    };
    let (from, to) = (peer(from)?, peer(to)?);
    (from.device != to.device).then_some([from, to])
}

/// `CUpti_ActivityMemoryKind`.
fn memory_kind(kind: Option<Kind>) -> u8 {
    match kind {
        None => 1,
        Some(Kind::Pinned | Kind::Registered) => 2,
        Some(Kind::Device | Kind::Graph) => 3,
        Some(Kind::Managed) => 5,
    }
}
