//! The parameters of nodes as `cuda.h` lays them out, and what they mean.

use std::ffi::c_void;
use std::sync::Arc;

use crate::device::HostCall;
use crate::driver::launch::{Launch, kernel_launch};
use crate::graph::content::{Conditional, ConditionalKind, Content, KernelNode};
use crate::graph::{launch, memory};
use crate::handles::{Handle, handle, number};
use crate::objects::EVENTS;
use crate::operation::Rows;
use crate::requests::{CopyBetween, Fill};
use crate::result;

/// `CUDA_KERNEL_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelParamsV1 {
    function: Handle,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`, and `_v3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelParams {
    pub(crate) first: KernelParamsV1,
    kernel: Handle,
    context: Handle,
}

impl KernelParamsV1 {
    pub(crate) fn content(&self) -> Result<Content, u32> {
        let launch = Launch {
            grid: self.grid,
            block: self.block,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            ..Launch::default()
        };
        let kernel = kernel_launch(self.function, &launch, self.parameters, self.extra)?;
        Ok(Content::Kernel(KernelNode::new(kernel)))
    }

    /// The parameters of a node: the list of their values is the node's.
    pub(crate) fn of(content: &Content) -> Result<Self, u32> {
        let Content::Kernel(kernel) = content else {
            return Err(result::INVALID_VALUE);
        };
        Ok(Self {
            function: handle(kernel.launch.handle),
            grid: kernel.launch.grid,
            block: kernel.launch.block,
            dynamic_shared_bytes: kernel.launch.dynamic_shared_bytes,
            parameters: kernel.shown.list(),
            extra: std::ptr::null_mut(),
        })
    }
}

impl From<KernelParamsV1> for KernelParams {
    fn from(first: KernelParamsV1) -> Self {
        Self {
            first,
            kernel: std::ptr::null_mut(),
            context: std::ptr::null_mut(),
        }
    }
}

/// `CUmemorytype`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

/// One side of `CUDA_MEMCPY3D` and its offsets.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side {
    x_bytes: usize,
    y: usize,
    z: usize,
    level: usize,
    memory_type: u32,
    host: u64,
    device: u64,
    array: Handle,
    reserved: Handle,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CopyParams {
    source: Side,
    target: Side,
    width_bytes: usize,
    height: usize,
    depth: usize,
}

impl Side {
    fn at(memory_type: u32, address: u64, pitch: u64) -> Self {
        let (host, device) = if memory_type == HOST {
            (address, 0)
        } else {
            (0, address)
        };
        Self {
            x_bytes: 0,
            y: 0,
            z: 0,
            level: 0,
            memory_type,
            host,
            device,
            array: std::ptr::null_mut(),
            reserved: std::ptr::null_mut(),
            pitch: pitch as usize,
            height: 0,
        }
    }

    fn address(&self) -> Result<u64, u32> {
        let base = match self.memory_type {
            HOST => self.host,
            DEVICE | UNIFIED => self.device,
            // Arrays are not simulated.
            3 => return Err(result::NOT_SUPPORTED),
            _ => return Err(result::INVALID_VALUE),
        };
        if self.z != 0 {
            return Err(result::NOT_SUPPORTED);
        }
        (self.y as u64)
            .checked_mul(self.pitch as u64)
            .and_then(|rows| rows.checked_add(self.x_bytes as u64))
            .and_then(|offset| base.checked_add(offset))
            .ok_or(result::INVALID_VALUE)
    }
}

impl CopyParams {
    /// One or more rows between two places; several planes are not simulated.
    pub(crate) fn copy(&self, asynchronous: bool) -> Result<CopyBetween, u32> {
        if self.depth > 1 {
            return Err(result::NOT_SUPPORTED);
        }
        let (from, to) = (self.source.address()?, self.target.address()?);
        rows_between(
            (from, self.source.pitch),
            (to, self.target.pitch),
            (self.width_bytes, self.height.max(1)),
            asynchronous,
        )
    }

    pub(crate) fn of(content: &Content) -> Result<Self, u32> {
        let Content::Copy(copy) = content else {
            return Err(result::INVALID_VALUE);
        };
        let types = match copy.direction {
            crate::abi::OPERATION_COPY_HOST_TO_DEVICE => (HOST, DEVICE),
            crate::abi::OPERATION_COPY_DEVICE_TO_HOST => (DEVICE, HOST),
            _ => (DEVICE, DEVICE),
        };
        Ok(Self {
            source: Side::at(types.0, copy.from, copy.rows.source_pitch),
            target: Side::at(types.1, copy.to, copy.rows.target_pitch),
            width_bytes: (copy.bytes / copy.rows.count.max(1)) as usize,
            height: copy.rows.count as usize,
            depth: 1,
        })
    }
}

/// A copy of rows between two places, each with its pitch; checked.
pub(crate) fn rows_between(
    (from, source_pitch): (u64, usize),
    (to, target_pitch): (u64, usize),
    (width, height): (usize, usize),
    asynchronous: bool,
) -> Result<CopyBetween, u32> {
    let is_narrow = |pitch: usize| height > 1 && pitch < width;
    if is_narrow(source_pitch) || is_narrow(target_pitch) {
        return Err(result::INVALID_VALUE);
    }
    let copy = CopyBetween {
        direction: CopyBetween::direction_of(to, from).ok_or(result::NOT_SUPPORTED)?,
        to,
        from,
        bytes: (width as u64)
            .checked_mul(height as u64)
            .ok_or(result::INVALID_VALUE)?,
        rows: Rows {
            count: height as u64,
            source_pitch: source_pitch as u64,
            target_pitch: target_pitch as u64,
        },
        asynchronous,
    };
    if copy.bytes > 0 && !copy.is_valid() {
        return Err(result::INVALID_VALUE);
    }
    Ok(copy)
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SetParams {
    to: u64,
    pitch: usize,
    value: u32,
    element_bytes: u32,
    width: usize,
    height: usize,
}

impl SetParams {
    pub(crate) fn content(&self) -> Result<Content, u32> {
        let width = u8::try_from(self.element_bytes).map_err(|_| result::INVALID_VALUE)?;
        let fill = fill_of(
            (self.to, self.pitch),
            (self.value, width),
            (self.width, self.height),
            true,
        )?;
        Ok(Content::Set(fill))
    }

    pub(crate) fn of(content: &Content) -> Result<Self, u32> {
        let Content::Set(fill) = content else {
            return Err(result::INVALID_VALUE);
        };
        let elements = fill.bytes / fill.rows.count.max(1) / u64::from(fill.width.max(1));
        Ok(Self {
            to: fill.to,
            pitch: fill.rows.target_pitch as usize,
            value: fill.value,
            element_bytes: fill.width.into(),
            width: elements as usize,
            height: fill.rows.count as usize,
        })
    }
}

/// A set of rows of elements; checked.
pub(crate) fn fill_of(
    (to, pitch): (u64, usize),
    (value, width): (u32, u8),
    (elements, rows): (usize, usize),
    asynchronous: bool,
) -> Result<Fill, u32> {
    let row_bytes = (elements as u64)
        .checked_mul(width.into())
        .ok_or(result::INVALID_VALUE)?;
    if rows > 1 && (pitch as u64) < row_bytes {
        return Err(result::INVALID_VALUE);
    }
    let fill = Fill {
        to,
        value,
        width,
        bytes: row_bytes
            .checked_mul(rows as u64)
            .ok_or(result::INVALID_VALUE)?,
        rows: Rows {
            count: rows as u64,
            source_pitch: 0,
            target_pitch: pitch as u64,
        },
        asynchronous,
    };
    if fill.is_valid() || fill.bytes == 0 {
        Ok(fill)
    } else {
        Err(result::INVALID_VALUE)
    }
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HostParams {
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    user: *mut c_void,
}

impl HostParams {
    pub(crate) fn content(&self) -> Result<Content, u32> {
        Ok(Content::Host(HostCall {
            function: self.function.ok_or(result::INVALID_VALUE)?,
            user: self.user,
        }))
    }

    pub(crate) fn of(content: &Content) -> Result<Self, u32> {
        let Content::Host(host) = content else {
            return Err(result::INVALID_VALUE);
        };
        Ok(Self {
            function: Some(host.function),
            user: host.user,
        })
    }
}

/// `CUDA_CONDITIONAL_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ConditionalParams {
    pub(crate) value: u64,
    kind: u32,
    pub(crate) size: u32,
    pub(crate) bodies: *mut Handle,
    context: Handle,
}

impl ConditionalParams {
    /// The node without its bodies.
    pub(crate) fn conditional(&self) -> Result<Conditional, u32> {
        let (kind, most) = match self.kind {
            0 => (ConditionalKind::If, 2),
            1 => (ConditionalKind::While, 1),
            2 => (ConditionalKind::Switch, u32::MAX),
            _ => return Err(result::INVALID_VALUE),
        };
        if !launch::value_exists(self.value) || !(1..=most).contains(&self.size) {
            return Err(result::INVALID_VALUE);
        }
        Ok(Conditional {
            value: self.value,
            kind,
            bodies: Vec::new(),
            shown: Arc::default(),
        })
    }
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocateParams {
    /// `CUmemPoolProps`; from its second half on reserved.
    allocation_type: u32,
    handle_types: u32,
    location_type: u32,
    location_id: i32,
    reserved: [u64; 9],
    accesses: *const c_void,
    accesses_count: usize,
    bytes: usize,
    /// Filled in.
    pub(crate) address: u64,
}

impl AllocateParams {
    /// Pinned memory of a device, not to be shared with other processes.
    pub(crate) fn content(&self) -> Result<(Content, u64), u32> {
        if self.allocation_type != 1 || self.location_type != 1 || self.bytes == 0 {
            return Err(result::INVALID_VALUE);
        }
        if self.handle_types != 0 {
            return Err(result::NOT_SUPPORTED);
        }
        let memory = memory::allocate(self.bytes)?;
        let address = memory.address;
        Ok((Content::Allocate(memory), address))
    }

    pub(crate) fn of(content: &Content) -> Result<Self, u32> {
        let Content::Allocate(memory) = content else {
            return Err(result::INVALID_VALUE);
        };
        Ok(Self {
            allocation_type: 1,
            handle_types: 0,
            location_type: 1,
            location_id: 0,
            reserved: [0; 9],
            accesses: std::ptr::null(),
            accesses_count: 0,
            bytes: memory.bytes as usize,
            address: memory.address,
        })
    }
}

/// `CUgraphNodeParams`: the type, and at 16 the parameters of that type.
#[repr(C)]
pub(crate) struct NodeParams {
    node_type: u32,
    reserved: [u32; 3],
    parameters: [u64; 29],
    reserved_after: i64,
}

/// What a `CUgraphNodeParams` asks for.
pub(crate) enum Asked {
    /// All that is to be known.
    Content(Content),
    /// A graph of its own, cloned from this one, or taken over.
    Child { graph: Handle, moves: bool },
    /// Bodies are made with the node.
    Conditional(*mut ConditionalParams),
    /// The address is filled in.
    Allocate(*mut AllocateParams),
}

/// `CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`.
const MOVE: u32 = 1;

impl NodeParams {
    fn read<T: Copy>(&self, offset: usize) -> T {
        debug_assert!(offset + size_of::<T>() <= size_of_val(&self.parameters));
        // SAFETY: inside the union, which is plain numbers and pointers of any value.
        unsafe {
            self.parameters
                .as_ptr()
                .cast::<u8>()
                .add(offset)
                .cast::<T>()
                .read_unaligned()
        }
    }

    pub(crate) fn asked(&mut self) -> Result<Asked, u32> {
        Ok(Asked::Content(match self.node_type {
            0 => self.read::<KernelParamsV1>(0).content()?,
            // `CUDA_MEMCPY_NODE_PARAMS`: flags, a reserved number, a context, then the copy.
            1 => Content::Copy(self.read::<CopyParams>(16).copy(true)?),
            2 => self.read::<SetParams>(0).content()?,
            3 => self.read::<HostParams>(0).content()?,
            4 => {
                return Ok(Asked::Child {
                    graph: self.read(0),
                    moves: self.read::<u32>(8) == MOVE,
                });
            }
            5 => Content::Empty,
            6 => Content::WaitEvent(event(self.read(0))?),
            7 => Content::RecordEvent(event(self.read(0))?),
            10 => {
                let parameters = self.parameters.as_mut_ptr();
                return Ok(Asked::Allocate(parameters.cast()));
            }
            11 => Content::Free(memory::find(self.read(0))?),
            13 => {
                let parameters = self.parameters.as_mut_ptr();
                return Ok(Asked::Conditional(parameters.cast()));
            }
            8..=9 | 12 | 14..=18 => return Err(result::NOT_SUPPORTED),
            _ => return Err(result::INVALID_VALUE),
        }))
    }
}

/// The number of an event that exists.
pub(crate) fn event(of: Handle) -> Result<u64, u32> {
    EVENTS
        .get(of)
        .map(|_| number(of))
        .ok_or(result::INVALID_HANDLE)
}

/// What is behind a pointer of the caller's: null, or valid to be read.
pub(crate) fn read<T: Copy>(pointer: *const T) -> Result<T, u32> {
    if pointer.is_null() {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller's to be valid.
    Ok(unsafe { pointer.read() })
}
