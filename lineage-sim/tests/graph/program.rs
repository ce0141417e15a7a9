//! A program that uses graphs, against the driver's C functions.

use lineage_sim::{Config, Gpu, Settings, load};

use crate::call;
use crate::driver::{Driver, Handle};

pub const fn nothing() -> Handle {
    std::ptr::null_mut()
}

/// On the virtual clock: kernels of 10 µs, everything else free.
pub fn virtual_gpu() -> Gpu {
    let config = Config::default().virtual_clock().default_kernel_ns(10_000);
    let gpu = load(config).unwrap();
    gpu.kernel("work").label_argument(0).timed().unwrap();
    gpu
}

/// As [`virtual_gpu`], with settings of the model.
pub fn virtual_gpu_with(settings: Settings) -> Gpu {
    let config = Config::default()
        .model(settings)
        .virtual_clock()
        .default_kernel_ns(10_000);
    let gpu = load(config).unwrap();
    gpu.kernel("work").label_argument(0).timed().unwrap();
    gpu
}

impl Driver {
    pub fn begin_capture(&self, stream: Handle, mode: u32) -> u32 {
        call!(self.library, "cuStreamBeginCapture_v2"(stream => Handle, mode => u32))
    }

    pub fn end_capture(&self, stream: Handle) -> Result<Handle, u32> {
        let mut graph = nothing();
        match call!(self.library, "cuStreamEndCapture"(stream => Handle, &mut graph => *mut Handle))
        {
            0 => Ok(graph),
            code => {
                assert_eq!(graph, nothing(), "no graph beside an error");
                Err(code)
            }
        }
    }

    pub fn instantiate(&self, graph: Handle) -> Handle {
        let mut exec = nothing();
        let code = call!(self.library, "cuGraphInstantiateWithFlags"(&mut exec => *mut Handle, graph => Handle, 0 => u64));
        assert_eq!(code, 0);
        exec
    }

    pub fn launch_graph(&self, exec: Handle, stream: Handle) {
        assert_eq!(
            call!(self.library, "cuGraphLaunch"(exec => Handle, stream => Handle)),
            0
        );
    }

    pub fn new_event(&self) -> Handle {
        let mut event = nothing();
        assert_eq!(
            call!(self.library, "cuEventCreate"(&mut event => *mut Handle, 2 => u32)),
            0
        );
        event
    }

    pub fn record(&self, event: Handle, stream: Handle) -> u32 {
        call!(self.library, "cuEventRecord"(event => Handle, stream => Handle))
    }

    pub fn wait(&self, stream: Handle, event: Handle) -> u32 {
        call!(self.library, "cuStreamWaitEvent"(stream => Handle, event => Handle, 0 => u32))
    }

    /// A graph of kernels with these labels, captured on the driver's stream.
    pub fn captured(&self, labels: &[u64]) -> Handle {
        assert_eq!(self.begin_capture(self.stream, 0), 0);
        for label in labels {
            self.launch(*label);
        }
        self.end_capture(self.stream).unwrap()
    }

    pub fn nodes(&self, graph: Handle) -> Vec<Handle> {
        let mut count = 0;
        let ask = |nodes: *mut Handle, count: &mut usize| call!(self.library, "cuGraphGetNodes"(graph => Handle, nodes => *mut Handle, count => *mut usize));
        assert_eq!(ask(std::ptr::null_mut(), &mut count), 0);
        let mut nodes = vec![nothing(); count];
        assert_eq!(ask(nodes.as_mut_ptr(), &mut count), 0);
        nodes
    }

    /// Edges of a graph, by both ends.
    pub fn edges(&self, graph: Handle) -> Vec<(Handle, Handle)> {
        let mut count = 0;
        let ask = |from: *mut Handle, to: *mut Handle, count: &mut usize| call!(self.library, "cuGraphGetEdges"(graph => Handle, from => *mut Handle, to => *mut Handle, count => *mut usize));
        assert_eq!(
            ask(std::ptr::null_mut(), std::ptr::null_mut(), &mut count),
            0
        );
        let (mut from, mut to) = (vec![nothing(); count], vec![nothing(); count]);
        assert_eq!(ask(from.as_mut_ptr(), to.as_mut_ptr(), &mut count), 0);
        from.into_iter().zip(to).collect()
    }

    /// The id of a graph, an exec or a node, by the driver's own function.
    pub fn graph_id(&self, graph: Handle) -> u32 {
        let mut id = 0;
        assert_eq!(
            call!(self.library, "cuGraphGetId"(graph => Handle, &mut id => *mut u32)),
            0
        );
        id
    }

    pub fn exec_id(&self, exec: Handle) -> u32 {
        let mut id = 0;
        assert_eq!(
            call!(self.library, "cuGraphExecGetId"(exec => Handle, &mut id => *mut u32)),
            0
        );
        id
    }

    pub fn node_id(&self, node: Handle) -> u64 {
        let mut id = 0;
        assert_eq!(
            call!(self.library, "cuGraphNodeGetToolsId"(node => Handle, &mut id => *mut u64)),
            0
        );
        id
    }
}
