//! Graphs that are built node by node: the structures are written down from `cuda.h` (13.x), apart from the simulator's own.

use std::ffi::c_void;

use crate::call;
use crate::driver::{Driver, Handle};
use crate::program::nothing;

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelParams {
    pub function: Handle,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub parameters: *mut *mut c_void,
    pub extra: *mut c_void,
    pub kernel: Handle,
    pub context: Handle,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetParams {
    pub to: u64,
    pub pitch: usize,
    pub value: u32,
    pub element_bytes: u32,
    pub width: usize,
    pub height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CopyParams {
    /// Offsets in x, y and z, and the level.
    pub source: [usize; 4],
    pub source_type: u32,
    pub source_host: u64,
    pub source_device: u64,
    pub source_array: [u64; 2],
    pub source_pitch: [usize; 2],
    pub target: [usize; 4],
    pub target_type: u32,
    pub target_host: u64,
    pub target_device: u64,
    pub target_array: [u64; 2],
    pub target_pitch: [usize; 2],
    pub extent: [usize; 3],
}

/// `CUgraphNodeParams`.
#[repr(C)]
pub struct NodeParams {
    pub node_type: u32,
    pub reserved: [u32; 3],
    pub words: [u64; 29],
    pub reserved_after: u64,
}

impl NodeParams {
    /// `CUDA_CONDITIONAL_NODE_PARAMS`: if 0, while 1, switch 2.
    pub fn conditional(value: u64, kind: u32, bodies: u32) -> Self {
        let mut words = [0; 29];
        words[0] = value;
        words[1] = u64::from(kind) | u64::from(bodies) << 32;
        Self {
            node_type: 13,
            reserved: [0; 3],
            words,
            reserved_after: 0,
        }
    }

    /// The bodies' graphs, as the call has filled them in.
    pub fn bodies(&self, count: usize) -> Vec<Handle> {
        let list = std::ptr::with_exposed_provenance::<Handle>(self.words[2] as usize);
        // SAFETY: the driver's list has so many.
        unsafe { std::slice::from_raw_parts(list, count) }.to_vec()
    }
}

impl Driver {
    pub fn new_graph(&self) -> Handle {
        let mut graph = nothing();
        assert_eq!(
            call!(self.library, "cuGraphCreate"(&mut graph => *mut Handle, 0 => u32)),
            0
        );
        graph
    }

    /// A kernel with a label, in one block.
    pub fn kernel_params(&self, label: &mut u64, list: &mut [*mut c_void; 1]) -> KernelParams {
        list[0] = std::ptr::from_mut(label).cast();
        KernelParams {
            function: self.function,
            grid: [1; 3],
            block: [1; 3],
            shared: 0,
            parameters: list.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kernel: nothing(),
            context: nothing(),
        }
    }

    pub fn add_kernel(&self, graph: Handle, behind: &[Handle], label: u64) -> Handle {
        let (mut label, mut list) = (label, [nothing()]);
        let params = self.kernel_params(&mut label, &mut list);
        let mut node = nothing();
        let code = call!(self.library, "cuGraphAddKernelNode_v2"(
            &mut node => *mut Handle, graph => Handle, behind.as_ptr() => *const Handle, behind.len() => usize,
            &params => *const KernelParams,
        ));
        assert_eq!(code, 0);
        node
    }

    pub fn set_label_in(&self, exec: Handle, node: Handle, label: u64) -> u32 {
        let (mut label, mut list) = (label, [nothing()]);
        let params = self.kernel_params(&mut label, &mut list);
        call!(self.library, "cuGraphExecKernelNodeSetParams_v2"(exec => Handle, node => Handle, &params => *const KernelParams))
    }

    pub fn add_params(
        &self,
        graph: Handle,
        behind: &[Handle],
        params: &mut NodeParams,
    ) -> Result<Handle, u32> {
        let mut node = nothing();
        match call!(self.library, "cuGraphAddNode_v2"(
            &mut node => *mut Handle, graph => Handle, behind.as_ptr() => *const Handle, std::ptr::null() => *const u64,
            behind.len() => usize, params => *mut NodeParams,
        )) {
            0 => Ok(node),
            code => Err(code),
        }
    }

    /// A conditional handle that has this value at the begin of each launch.
    pub fn conditional_value(&self, graph: Handle, default: u32) -> u64 {
        let mut value = 0;
        let code = call!(self.library, "cuGraphConditionalHandleCreate"(
            &mut value => *mut u64, graph => Handle, nothing() => Handle, default => u32, 1 => u32,
        ));
        assert_eq!(code, 0);
        value
    }
}
