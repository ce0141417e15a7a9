//! The simulated GPU, and the driver's functions for graphs. Nothing here knows of lineage.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUstreamCaptureMode};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr as _, DriverError, LaunchConfig,
    PushKernelArg, result,
};
use cudarc::nvrtc::Ptx;
use lineage_sim::{Config, CuptiVersion};

use crate::cell::Cupti;

/// The kernels, of which every fourth node of a graph has the same: the graphs of a server look alike,
/// too. The only parameter of each is where the label of its capture lies.
pub const KERNELS: [&str; 4] = ["attention", "norm", "feed_forward", "reduce"];
/// How long each runs. The matrix is about graphs, not about the device.
const KERNEL_NS: u64 = 100;

/// The device, and what really ran on it.
pub struct Gpu {
    /// The simulator, for its truth and its counts.
    pub simulated: lineage_sim::Gpu,
    context: Arc<CudaContext>,
    kernels: Vec<CudaFunction>,
}

/// Why there is no simulated GPU.
#[derive(Debug, thiserror::Error)]
pub enum NoGpu {
    /// The simulator says why.
    #[error("the simulated gpu does not start: {0}")]
    Load(#[from] lineage_sim::LoadError),
    /// The kernels have no place.
    #[error("the simulated gpu takes no kernel: {0}")]
    Register(#[from] lineage_sim::RegisterError),
    /// cudarc cannot use it.
    #[error("the simulated gpu cannot be used: {0:?}")]
    Driver(#[from] DriverError),
}

impl Gpu {
    /// Loads it. Once per process, before anything else touches CUDA.
    pub fn load(cupti: Cupti, reuse_graph_ids: bool, truth_capacity: usize) -> Result<Self, NoGpu> {
        let config = Config::default()
            .cupti_version(match cupti {
                Cupti::V12_4 => CuptiVersion::V12_4,
                Cupti::V12_9 => CuptiVersion::V12_9,
                Cupti::V13_1 => CuptiVersion::V13_1,
                Cupti::V13_5 => CuptiVersion::V13_5,
            })
            .reuse_graph_ids(reuse_graph_ids)
            .default_kernel_ns(KERNEL_NS)
            .truth_capacity(truth_capacity);
        let simulated = lineage_sim::load(config)?;
        let mut ptx = String::from(".version 7.0\n.target sm_50\n.address_size 64\n");
        for name in KERNELS {
            simulated
                .kernel(name)
                .label_behind_argument(0)
                .duration_ns(KERNEL_NS)
                .timed()?;
            ptx += &format!(".visible .entry {name}(.param .u64 label) {{ ret; }}\n");
        }
        let context = CudaContext::new(0)?;
        // SAFETY: memory is used on one stream, or on several that wait for each other.
        unsafe { context.disable_event_tracking() };
        let module = context.load_module(Ptx::from_src(ptx))?;
        let kernels: Result<_, _> = KERNELS
            .iter()
            .map(|name| module.load_function(name))
            .collect();
        Ok(Self {
            simulated,
            context,
            kernels: kernels?,
        })
    }

    /// A new stream.
    pub fn stream(&self) -> Result<Arc<CudaStream>, DriverError> {
        self.context.new_stream()
    }

    /// Makes the context current on this thread.
    pub fn bind(&self) -> Result<(), DriverError> {
        self.context.bind_to_thread()
    }

    /// Captures so many kernels that read their label from this word.
    pub fn capture(
        &self,
        stream: &CudaStream,
        nodes: usize,
        words: &CudaSlice<u64>,
        word: usize,
    ) -> Result<Graph, DriverError> {
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        let label = words.slice(word..=word);
        for kernel in self.kernels.iter().cycle().take(nodes) {
            let mut launch = stream.launch_builder(kernel);
            launch.arg(&label);
            // SAFETY: the kernel's one parameter is that address.
            unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }?;
        }
        // SAFETY: the stream is live and captures.
        Ok(Graph(unsafe {
            result::stream::end_capture(stream.cu_stream())
        }?))
    }

    /// The kernels of a capture of so many nodes.
    pub fn names(nodes: usize) -> Vec<&'static str> {
        KERNELS.iter().copied().cycle().take(nodes).collect()
    }
}

/// A graph; destroyed when dropped.
pub struct Graph(sys::CUgraph);

/// An executable graph; destroyed when dropped.
pub struct Exec(sys::CUgraphExec);

/// A node of a graph. As long as that is.
#[derive(Clone, Copy)]
pub struct Node(sys::CUgraphNode);

impl Graph {
    /// A clone of it.
    pub fn try_clone(&self) -> Result<Self, DriverError> {
        let mut clone = std::ptr::null_mut();
        // SAFETY: the graph is live, and there is room for the answer.
        unsafe { sys::cuGraphClone(&mut clone, self.0) }.result()?;
        Ok(Self(clone))
    }

    /// An instance of it.
    pub fn instantiate(&self) -> Result<Exec, DriverError> {
        // SAFETY: the graph is live.
        Ok(Exec(unsafe {
            result::graph::instantiate(self.0, sys::CUgraphInstantiate_flags(0))
        }?))
    }

    /// Its nodes, in the order in which they were made.
    pub fn nodes(&self) -> Result<Vec<Node>, DriverError> {
        let mut count = 0;
        // SAFETY: without a place for nodes their number is given.
        unsafe { sys::cuGraphGetNodes(self.0, std::ptr::null_mut(), &mut count) }.result()?;
        let mut nodes = vec![std::ptr::null_mut(); count];
        // SAFETY: there is room for so many.
        unsafe { sys::cuGraphGetNodes(self.0, nodes.as_mut_ptr(), &mut count) }.result()?;
        nodes.truncate(count);
        Ok(nodes.into_iter().map(Node).collect())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph is live, and nobody else has it. It cannot be refused then.
        let _ = unsafe { result::graph::destroy(self.0) };
    }
}

impl Exec {
    /// Launches it.
    pub fn launch(&self, stream: &CudaStream) -> Result<(), DriverError> {
        // SAFETY: both are live and of one context.
        unsafe { result::graph::launch(self.0, stream.cu_stream()) }
    }

    /// Takes all parameters over from another graph of the same form.
    pub fn update(&self, from: &Graph) -> Result<(), DriverError> {
        let mut info = sys::CUgraphExecUpdateResultInfo_st {
            result: sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS,
            errorNode: std::ptr::null_mut(),
            errorFromNode: std::ptr::null_mut(),
        };
        // SAFETY: both are live, and there is room for the answer.
        unsafe { sys::cuGraphExecUpdate_v2(self.0, from.0, &mut info) }.result()
    }

    /// Switches what was cloned from a node on or off.
    pub fn enable(&self, node: Node, enabled: bool) -> Result<(), DriverError> {
        // SAFETY: the instance is live, and the node is of the graph that it was made from.
        unsafe { sys::cuGraphNodeSetEnabled(self.0, node.0, enabled.into()) }.result()
    }

    /// Has what was cloned from a node read its label from another word.
    pub fn set_word(
        &self,
        node: Node,
        stream: &CudaStream,
        words: &CudaSlice<u64>,
        word: usize,
    ) -> Result<(), DriverError> {
        let label = words.slice(word..=word);
        let (mut address, _order) = label.device_ptr(stream);
        let mut parameters = [(&raw mut address).cast::<c_void>()];
        let mut node_parameters = std::mem::MaybeUninit::<sys::CUDA_KERNEL_NODE_PARAMS>::zeroed();
        // SAFETY: the node is a live kernel node, and there is room for the answer.
        unsafe { sys::cuGraphKernelNodeGetParams_v2(node.0, node_parameters.as_mut_ptr()) }
            .result()?;
        // SAFETY: the driver has written it.
        let mut node_parameters = unsafe { node_parameters.assume_init() };
        node_parameters.kernelParams = parameters.as_mut_ptr();
        // SAFETY: the instance is live, the node is of its graph, and the kernel's one parameter is an address.
        unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.0, node.0, &node_parameters) }.result()
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        // SAFETY: the instance is live, and nobody else has it; while it runs, its end is put off.
        let _ = unsafe { result::graph::exec_destroy(self.0) };
    }
}
