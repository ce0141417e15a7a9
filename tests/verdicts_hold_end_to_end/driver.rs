//! The driver's functions that the scenarios call, as a program does by cudarc's bindings.

use std::ffi::{CString, c_void};
use std::ptr::{null_mut, without_provenance_mut};

use cudarc::driver::sys::{
    self, CUevent, CUfunction, CUgraph, CUgraphExec, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchConfig, CUmodule, CUresult, CUstream, CUstreamCaptureMode,
};

/// How long each kernel runs, by name.
pub(crate) const KERNELS: [(&str, u64); 11] = [
    ("gemv", 40_000),
    ("earlier", 900_000),
    ("elsewhere", 1_100_000),
    ("blocker", 1_200_000),
    ("ahead", 30_000),
    ("full", 1_400_000),
    ("beside", 1_500_000),
    ("long", 700_000),
    ("filler", 1_000),
    ("last", 5_000),
    ("primary", 900_000),
];

/// A kernel as the program knows it.
pub(crate) type Kernel = CUfunction;
/// A stream.
pub(crate) type Stream = CUstream;

/// How a kernel is launched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    /// May begin before what is before it has ended.
    pub(crate) programmatic: bool,
    /// All its blocks are resident at once.
    pub(crate) cooperative: bool,
}

impl Shape {
    pub(crate) const SMALL: Self = Self::of(1, 32);

    pub(crate) const fn of(blocks: u32, threads: u32) -> Self {
        Self {
            blocks,
            threads,
            programmatic: false,
            cooperative: false,
        }
    }
}

#[track_caller]
fn ok(code: CUresult) {
    assert_eq!(code, CUresult::CUDA_SUCCESS);
}

pub(crate) fn initialise() {
    // SAFETY: the simulated driver is loaded.
    unsafe { ok(sys::cuInit(0)) };
}

/// The device's context.
pub(crate) fn start() {
    // SAFETY: the driver is initialised; the places are valid.
    unsafe {
        let mut context = null_mut();
        ok(sys::cuDevicePrimaryCtxRetain(&mut context, 0));
        ok(sys::cuCtxSetCurrent(context));
    }
}

/// A module with all kernels; nothing of it is loaded yet.
pub(crate) fn load_module() -> CUmodule {
    let mut ptx = String::from(".version 7.0\n.target sm_50\n.address_size 64\n");
    for (name, _) in KERNELS {
        ptx += &format!(".visible .entry {name}(.param .u64 label) {{ ret; }}\n");
    }
    let ptx = CString::new(ptx).expect("no NUL");
    let mut module = null_mut();
    // SAFETY: the text is terminated, the place valid.
    unsafe { ok(sys::cuModuleLoadData(&mut module, ptx.as_ptr().cast())) };
    module
}

pub(crate) fn function(module: CUmodule, name: &str) -> Kernel {
    let name = CString::new(name).expect("no NUL");
    let mut function = null_mut();
    // SAFETY: the module is live, the name terminated, the place valid.
    unsafe {
        ok(sys::cuModuleGetFunction(
            &mut function,
            module,
            name.as_ptr(),
        ))
    };
    function
}

/// A stream that no other is ordered with.
pub(crate) fn stream() -> Stream {
    let mut stream = null_mut();
    // SAFETY: a valid place.
    unsafe { ok(sys::cuStreamCreate(&mut stream, 1)) };
    stream
}

pub(crate) fn launch(kernel: Kernel, stream: Stream, shape: Shape) {
    let mut label = 0_u64;
    let mut parameters: [*mut c_void; 1] = [(&raw mut label).cast()];
    let parameters = parameters.as_mut_ptr();
    let (blocks, threads) = (shape.blocks, shape.threads);
    // SAFETY: the kernel's one parameter is a `u64`, and the attribute is of the id it has.
    unsafe {
        if shape.cooperative {
            ok(sys::cuLaunchCooperativeKernel(
                kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters,
            ));
        } else if shape.programmatic {
            let mut attribute: CUlaunchAttribute = std::mem::zeroed();
            attribute.id =
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attribute.value.programmaticStreamSerializationAllowed = 1;
            let config = CUlaunchConfig {
                gridDimX: blocks,
                gridDimY: 1,
                gridDimZ: 1,
                blockDimX: threads,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: 0,
                hStream: stream,
                attrs: &raw mut attribute,
                numAttrs: 1,
            };
            ok(sys::cuLaunchKernelEx(
                &config,
                kernel,
                parameters,
                null_mut(),
            ));
        } else {
            ok(sys::cuLaunchKernel(
                kernel,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream,
                parameters,
                null_mut(),
            ));
        }
    }
}

/// Memory of the host's that the device reads, and of the device's.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) pinned: *mut c_void,
    pub(crate) device: u64,
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        let mut memory = Self {
            pinned: null_mut(),
            device: 0,
        };
        // SAFETY: valid places.
        unsafe {
            ok(sys::cuMemHostAlloc(&mut memory.pinned, bytes, 0));
            ok(sys::cuMemAlloc_v2(&mut memory.device, bytes));
        }
        memory
    }

    pub(crate) fn to_device(self, bytes: usize, stream: Stream) {
        // SAFETY: both have as many bytes, and live as long as the process.
        unsafe {
            ok(sys::cuMemcpyHtoDAsync_v2(
                self.device,
                self.pinned,
                bytes,
                stream,
            ))
        };
    }

    pub(crate) fn to_host(self, bytes: usize, stream: Stream) {
        // SAFETY: as above.
        unsafe {
            ok(sys::cuMemcpyDtoHAsync_v2(
                self.pinned,
                self.device,
                bytes,
                stream,
            ))
        };
    }
}

/// An allocation that is freed at once: the call waits for all that is on the device.
pub(crate) fn free_waiting(pointer: u64) {
    // SAFETY: allocated, and used by nobody.
    unsafe { ok(sys::cuMemFree_v2(pointer)) };
}

pub(crate) fn allocate(bytes: usize) -> u64 {
    let mut pointer = 0;
    // SAFETY: a valid place.
    unsafe { ok(sys::cuMemAlloc_v2(&mut pointer, bytes)) };
    pointer
}

pub(crate) fn synchronize(stream: Stream) {
    // SAFETY: a live stream.
    unsafe { ok(sys::cuStreamSynchronize(stream)) };
}

pub(crate) fn synchronize_all() {
    // SAFETY: there is a context.
    unsafe { ok(sys::cuCtxSynchronize()) };
}

pub(crate) fn event() -> CUevent {
    let mut event = null_mut();
    // SAFETY: a valid place.
    unsafe { ok(sys::cuEventCreate(&mut event, 2)) };
    event
}

/// What is on one stream now has to end before what comes on the other.
pub(crate) fn wait_event(event: CUevent, from: Stream, to: Stream) {
    // SAFETY: live handles.
    unsafe {
        ok(sys::cuEventRecord(event, from));
        ok(sys::cuStreamWaitEvent(to, event, 0));
    }
}

/// A graph of a kernel, one behind it and one beside both, captured from two streams.
pub(crate) fn capture(kernels: [Kernel; 3], [own, other]: [Stream; 2]) -> CUgraphExec {
    let [fork, join] = [event(), event()];
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    let mut graph: CUgraph = null_mut();
    let mut exec: CUgraphExec = null_mut();
    // SAFETY: live handles and valid places; nobody else uses the graph.
    unsafe {
        ok(sys::cuStreamBeginCapture_v2(own, mode));
        wait_event(fork, own, other);
        launch(kernels[0], own, Shape::SMALL);
        launch(kernels[1], own, Shape::SMALL);
        launch(kernels[2], other, Shape::SMALL);
        wait_event(join, other, own);
        ok(sys::cuStreamEndCapture(own, &mut graph));
        ok(sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        // Before 12.3 the driver tells none: they are not known then.
        let _ = lineage_cupti::graph::record_edges(graph.cast());
    }
    exec
}

pub(crate) fn launch_graph(exec: CUgraphExec, stream: Stream) {
    // SAFETY: live handles; no other thread launches it.
    unsafe { ok(sys::cuGraphLaunch(exec, stream)) };
}

/// A function of the host's in a stream.
pub(crate) fn host_function(stream: Stream) {
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    // SAFETY: the function does nothing with what it is given.
    unsafe {
        ok(sys::cuLaunchHostFunc(
            stream,
            Some(nothing),
            without_provenance_mut(8),
        ))
    };
}
