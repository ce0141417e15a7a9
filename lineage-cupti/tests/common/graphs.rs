//! Graphs of the simulated driver's, with ids as its CUPTI tells them.

use std::ffi::{CStr, c_void};

use super::gpu::{self, Program};

/// Handle of a graph, of an executable graph, or of a node.
pub(crate) type Handle = usize;

fn place(value: &mut usize) -> usize {
    std::ptr::from_mut(value) as usize
}

/// `CUDA_KERNEL_NODE_PARAMS`.
#[repr(C)]
struct KernelParams {
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    parameters: *mut *mut c_void,
    extra: usize,
    kernel: usize,
    context: usize,
}

impl Program {
    fn make<const N: usize>(&self, name: &CStr, parameters: [usize; N]) -> Handle {
        let mut made = 0;
        let mut all = [0; N];
        all.copy_from_slice(&parameters);
        all[0] = place(&mut made);
        assert_eq!(self.call(name, all), 0, "{name:?}");
        made
    }

    /// Begins a capture that any thread may go on with.
    pub(crate) fn begin_capture(&self) {
        assert_eq!(self.call(c"cuStreamBeginCapture_v2", [self.stream(), 2]), 0);
    }

    pub(crate) fn end_capture(&self) -> Handle {
        let mut graph = 0;
        let code = self.call(c"cuStreamEndCapture", [self.stream(), place(&mut graph)]);
        assert_eq!(code, 0);
        graph
    }

    /// A graph of so many captured kernels.
    pub(crate) fn captured(&self, kernels: u64) -> Handle {
        self.begin_capture();
        (0..kernels).for_each(|label| self.launch(label));
        self.end_capture()
    }

    pub(crate) fn instantiate(&self, graph: Handle) -> Handle {
        self.make(c"cuGraphInstantiateWithFlags", [0, graph, 0])
    }

    pub(crate) fn create(&self) -> Handle {
        self.make(c"cuGraphCreate", [0, 0])
    }

    pub(crate) fn clone_graph(&self, graph: Handle) -> Handle {
        self.make(c"cuGraphClone", [0, graph])
    }

    /// Adds a kernel behind these nodes.
    pub(crate) fn add_kernel(&self, graph: Handle, behind: &[Handle]) -> Handle {
        let mut label = 7_u64;
        let mut values: [*mut c_void; 1] = [(&raw mut label).cast()];
        let params = self.params(&mut values);
        let params = std::ptr::from_ref(&params) as usize;
        let behind = [behind.as_ptr() as usize, behind.len()];
        self.make(
            c"cuGraphAddKernelNode_v2",
            [0, graph, behind[0], behind[1], params],
        )
    }

    /// Adds an edge from a kernel's programmatic port to another kernel.
    pub(crate) fn programmatic(&self, graph: Handle, from: Handle, to: Handle) {
        let data = [1_u8, 0, 1, 0, 0, 0, 0, 0];
        let [from, to] = [&from, &to].map(|node| std::ptr::from_ref(node) as usize);
        let parameters = [graph, from, to, data.as_ptr() as usize, 1];
        assert_eq!(self.call(c"cuGraphAddDependencies_v2", parameters), 0);
    }

    pub(crate) fn add_child(&self, graph: Handle, child: Handle) -> Handle {
        self.make(c"cuGraphAddChildGraphNode", [0, graph, 0, 0, child])
    }

    fn params(&self, values: &mut [*mut c_void; 1]) -> KernelParams {
        KernelParams {
            function: self.kernel(),
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            parameters: values.as_mut_ptr(),
            extra: 0,
            kernel: 0,
            context: 0,
        }
    }

    /// Gives the executable graph's copy of a node other parameters.
    pub(crate) fn set_params(&self, exec: Handle, node: Handle) -> u32 {
        let mut label = 9_u64;
        let mut values: [*mut c_void; 1] = [(&raw mut label).cast()];
        let params = self.params(&mut values);
        let params = std::ptr::from_ref(&params) as usize;
        self.call(c"cuGraphExecKernelNodeSetParams_v2", [exec, node, params])
    }

    pub(crate) fn update(&self, exec: Handle, graph: Handle) -> u32 {
        let mut info = [0_u64; 3];
        let info = info.as_mut_ptr() as usize;
        self.call(c"cuGraphExecUpdate_v2", [exec, graph, info])
    }

    pub(crate) fn enable(&self, exec: Handle, node: Handle, enabled: bool) -> u32 {
        self.call(c"cuGraphNodeSetEnabled", [exec, node, enabled.into()])
    }

    pub(crate) fn try_launch_graph(&self, exec: Handle) -> u32 {
        self.call(c"cuGraphLaunch", [exec, self.stream()])
    }

    pub(crate) fn launch_graph(&self, exec: Handle) {
        assert_eq!(self.try_launch_graph(exec), 0);
    }

    pub(crate) fn destroy(&self, graph: Handle) {
        assert_eq!(self.call(c"cuGraphDestroy", [graph]), 0);
    }

    pub(crate) fn destroy_exec(&self, exec: Handle) {
        assert_eq!(self.call(c"cuGraphExecDestroy", [exec]), 0);
    }

    /// The nodes of a graph, in the order in which they were made.
    pub(crate) fn nodes(&self, graph: Handle) -> Vec<Handle> {
        let mut nodes = [0_usize; 16];
        let mut count = nodes.len();
        let list = nodes.as_mut_ptr() as usize;
        let code = self.call(c"cuGraphGetNodes", [graph, list, place(&mut count)]);
        assert_eq!(code, 0);
        nodes[..count].to_vec()
    }

    /// The graph of a child node.
    pub(crate) fn child_of(&self, node: Handle) -> Handle {
        let mut graph = 0;
        let parameters = [node, place(&mut graph)];
        assert_eq!(self.call(c"cuGraphChildGraphNodeGetGraph", parameters), 0);
        graph
    }
}

/// The id of a graph, asked by the test itself.
pub(crate) fn graph_id(graph: Handle) -> u32 {
    let ask = gpu::cupti().functions().get_graph_id.expect("exported");
    let mut id = 0;
    // SAFETY: a live handle of the simulator's, and a valid place.
    let code = unsafe { ask(graph as *mut c_void, &mut id) };
    assert_eq!(code, 0);
    id
}

/// Likewise of an executable graph.
pub(crate) fn exec_id(exec: Handle) -> u32 {
    let ask = gpu::cupti()
        .functions()
        .get_graph_exec_id
        .expect("exported");
    let mut id = 0;
    // SAFETY: a live handle of the simulator's, and a valid place.
    let code = unsafe { ask(exec as *mut c_void, &mut id) };
    assert_eq!(code, 0);
    id
}

/// Likewise of a node.
pub(crate) fn node_id(node: Handle) -> u64 {
    let ask = gpu::cupti()
        .functions()
        .get_graph_node_id
        .expect("exported");
    let mut id = 0;
    // SAFETY: a live handle of the simulator's, and a valid place.
    let code = unsafe { ask(node as *mut c_void, &mut id) };
    assert_eq!(code, 0);
    id
}
