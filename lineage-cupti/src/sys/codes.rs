//! Result codes, kinds, domains and flags, as plain `u32`.

/// `CUptiResult`: what every function of CUPTI answers.
pub mod result {
    /// Done.
    pub const SUCCESS: u32 = 0;
    /// A parameter is not valid; also the answer for a callback id that this version does not know.
    pub const INVALID_PARAMETER: u32 = 1;
    /// Out of memory.
    pub const OUT_OF_MEMORY: u32 = 8;
    /// A buffer holds no further record.
    pub const MAX_LIMIT_REACHED: u32 = 12;
    /// An activity kind cannot be enabled now.
    pub const NOT_COMPATIBLE: u32 = 14;
    /// CUPTI could not initialise itself: no driver, or no device.
    pub const NOT_INITIALIZED: u32 = 15;
    /// There is no external correlation id to pop.
    pub const QUEUE_EMPTY: u32 = 18;
    /// An activity kind is unknown; in a buffer: the next record is incomplete.
    pub const INVALID_KIND: u32 = 21;
    /// Not supported here.
    pub const NOT_SUPPORTED: u32 = 27;
    /// A virtual GPU without profiling.
    pub const VIRTUALIZED_DEVICE_NOT_SUPPORTED: u32 = 33;
    /// The user may not profile.
    pub const INSUFFICIENT_PRIVILEGES: u32 = 35;
    /// Another subscriber has CUPTI.
    pub const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: u32 = 39;
    /// A virtual GPU on which the user may not profile.
    pub const VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES: u32 = 40;
    /// The GPU runs in confidential-computing mode.
    pub const CONFIDENTIAL_COMPUTING_NOT_SUPPORTED: u32 = 41;
    /// An internal error; the answer of CUPTI 13 to everything where there is no driver for it.
    pub const UNKNOWN: u32 = 999;

    /// What a code means, in words of our own; `None` for codes that this crate does not know.
    pub const fn meaning(code: u32) -> Option<&'static str> {
        Some(match code {
            SUCCESS => "success",
            INVALID_PARAMETER => "invalid parameter",
            OUT_OF_MEMORY => "out of memory",
            MAX_LIMIT_REACHED => "no more records",
            NOT_COMPATIBLE => "not compatible with what is already enabled",
            NOT_INITIALIZED => "not initialized",
            QUEUE_EMPTY => "nothing to pop",
            INVALID_KIND => "invalid kind",
            NOT_SUPPORTED => "not supported",
            VIRTUALIZED_DEVICE_NOT_SUPPORTED => "virtual GPU not supported",
            INSUFFICIENT_PRIVILEGES => "insufficient privileges",
            MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => "another subscriber has CUPTI",
            VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES => {
                "insufficient privileges on this virtual GPU"
            }
            CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => "not supported in confidential computing",
            UNKNOWN => "unknown internal error",
            _ => return None,
        })
    }
}

/// `CUpti_ActivityKind`: the kinds of records this crate enables or meets.
pub mod kind {
    /// Where the rest of a buffer is incomplete.
    pub const INVALID: u32 = 0;
    /// A memory copy.
    pub const MEMCPY: u32 = 1;
    /// A memory set.
    pub const MEMSET: u32 = 2;
    /// A kernel, serialised. Never enabled: it changes what it measures.
    pub const KERNEL: u32 = 3;
    /// A call of the driver.
    pub const DRIVER: u32 = 4;
    /// A call of the runtime.
    pub const RUNTIME: u32 = 5;
    /// A context was made.
    pub const CONTEXT: u32 = 9;
    /// A kernel.
    pub const CONCURRENT_KERNEL: u32 = 10;
    /// Overhead of CUPTI, the driver or the compiler.
    pub const OVERHEAD: u32 = 17;
    /// An event was recorded on a stream.
    pub const CUDA_EVENT: u32 = 36;
    /// A stream was made.
    pub const STREAM: u32 = 37;
    /// A wait, of a thread or of a stream.
    pub const SYNCHRONIZATION: u32 = 38;
    /// A copy between two devices.
    pub const MEMCPY2: u32 = 22;
    /// An external correlation id.
    pub const EXTERNAL_CORRELATION: u32 = 39;
    /// A launch by the driver outside any public function.
    pub const INTERNAL_LAUNCH_API: u32 = 48;
    /// The whole of a graph launch.
    pub const GRAPH_TRACE: u32 = 51;
}

/// `CUpti_ActivitySynchronizationType`: what was waited for.
pub mod synchronization_type {
    /// A thread waits for an event.
    pub const EVENT: u32 = 1;
    /// A stream waits for an event.
    pub const STREAM_WAIT: u32 = 2;
    /// A thread waits for a stream.
    pub const STREAM: u32 = 3;
    /// A thread waits for a context.
    pub const CONTEXT: u32 = 4;
}

/// `CUpti_ActivityStreamFlag`: what kind a stream is.
pub mod stream_flag {
    /// It waits for the default stream, and the default stream for it.
    pub const DEFAULT: u32 = 1;
    /// It does not.
    pub const NON_BLOCKING: u32 = 2;
    /// The default stream.
    pub const NULL: u32 = 3;
}

/// `CUpti_ActivityOverheadKind`: what a thread's time went into.
pub mod overhead_kind {
    /// The driver compiled for this device.
    pub const DRIVER_COMPILER: u32 = 1;
    /// CUPTI flushed a buffer.
    pub const BUFFER_FLUSH: u32 = 1 << 16;
    /// CUPTI instrumented code.
    pub const INSTRUMENTATION: u32 = 2 << 16;
    /// CUPTI made or destroyed resources of its own.
    pub const RESOURCE: u32 = 3 << 16;
    /// The runtime loaded a module when it was first needed.
    pub const MODULE_LOADING: u32 = 4 << 16;
    /// A function was loaded at its first launch.
    pub const LAZY_FUNCTION_LOADING: u32 = 5 << 16;
    /// The command buffer was full; from CUDA 12.4.
    pub const COMMAND_BUFFER_FULL: u32 = 6 << 16;
    /// CUPTI asked for a buffer.
    pub const BUFFER_REQUEST: u32 = 7 << 16;
    /// Managed memory was set up.
    pub const UVM_ACTIVITY_INIT: u32 = 8 << 16;
}

/// `CUPTI_ACTIVITY_OBJECT_THREAD`: an overhead is a thread's.
pub const OVERHEAD_OF_A_THREAD: u32 = 2;

/// `CUPTI_INVALID_CHANNEL_ID`: work that is on no channel, or on one that is not known.
pub const NO_CHANNEL: u32 = u32::MAX;

/// `CUlaunchAttributeID`: attributes of a launch that loosen its order, or record an event.
pub mod launch_attribute {
    /// It may begin before the launch before it in its stream has ended.
    pub const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;
    /// It records an event when all of its blocks have triggered it.
    pub const PROGRAMMATIC_EVENT: u32 = 7;
    /// It records an event when all of its blocks have begun.
    pub const LAUNCH_COMPLETION_EVENT: u32 = 12;
}

/// `CUPTI_SYNCHRONIZATION_INVALID_VALUE`: a field of a wait that does not apply.
pub const NOT_APPLICABLE: u32 = u32::MAX;

/// `CUpti_ExternalCorrelationKind`: whose ids a stack holds.
pub mod external_kind {
    /// The first of three kinds for anybody. Kineto uses it.
    pub const CUSTOM0: u32 = 3;
    /// The second. Kineto uses it.
    pub const CUSTOM1: u32 = 4;
    /// The third: ours.
    pub const CUSTOM2: u32 = 5;
}

/// `CUpti_CallbackDomain`.
pub mod domain {
    /// Functions of the driver.
    pub const DRIVER_API: u32 = 1;
    /// Functions of the runtime.
    pub const RUNTIME_API: u32 = 2;
    /// What is made and destroyed, see [`resource`](super::resource).
    pub const RESOURCE: u32 = 3;
}

/// `CUpti_CallbackIdResource`: the callbacks about graphs that this crate asks for.
pub mod resource {
    /// A graph was made.
    pub const GRAPH_CREATED: u32 = 9;
    /// A graph is about to be destroyed.
    pub const GRAPH_DESTROY_STARTING: u32 = 10;
    /// A graph was made as the copy of another.
    pub const GRAPH_CLONED: u32 = 11;
    /// A node was made; it comes inside an instantiation, too, for the nodes of the executable graph.
    pub const NODE_CREATED: u32 = 13;
    /// A node is about to be destroyed.
    pub const NODE_DESTROY_STARTING: u32 = 14;
    /// A graph was instantiated.
    pub const EXEC_CREATED: u32 = 18;
    /// An executable graph is about to be destroyed.
    pub const EXEC_DESTROY_STARTING: u32 = 19;
    /// A node was made as the copy of another.
    pub const NODE_CLONED: u32 = 20;
    /// A node of an executable graph was updated; from CUDA 13.0.
    pub const NODE_UPDATED: u32 = 22;
    /// A node of an executable graph was given other parameters; from CUDA 13.0, for nodes other than
    /// kernels from 13.2.
    pub const NODE_SET_PARAMS: u32 = 23;
}

/// `CUgraphNodeType`, by value, as the driver's header names them.
pub const NODE_TYPES: [&str; 15] = [
    "KERNEL",
    "MEMCPY",
    "MEMSET",
    "HOST",
    "GRAPH",
    "EMPTY",
    "WAIT_EVENT",
    "EVENT_RECORD",
    "EXT_SEMAS_SIGNAL",
    "EXT_SEMAS_WAIT",
    "MEM_ALLOC",
    "MEM_FREE",
    "BATCH_MEM_OP",
    "CONDITIONAL",
    "MEMCPY_BATCH",
];

/// `CUgraphKernelNodePortType` and `CUgraphDependencyType`: what an edge of a graph begins at, and of
/// which kind it is.
pub mod edge {
    /// The end of the earlier node.
    pub const PORT_DEFAULT: u8 = 0;
    /// All blocks of the earlier kernel have triggered it, or ended.
    pub const PORT_PROGRAMMATIC: u8 = 1;
    /// All blocks of the earlier kernel have begun.
    pub const PORT_LAUNCH_ORDER: u8 = 2;
    /// The later node is launched at that point.
    pub const TYPE_DEFAULT: u8 = 0;
    /// The later kernel waits by `griddepcontrol.wait`.
    pub const TYPE_PROGRAMMATIC: u8 = 1;
}

/// `CUpti_ApiCallbackSite`.
pub mod site {
    /// The call is being entered.
    pub const ENTER: u32 = 0;
    /// The call is being left.
    pub const EXIT: u32 = 1;
}

/// Callback ids and names of the driver's functions that may unload modules, alone or with their
/// context. Kernels' names in activity records are good until then.
pub const UNLOADING: [(u32, &str); 9] = [
    (11, "cuCtxDestroy"),
    (13, "cuCtxDetach"),
    (22, "cuModuleUnload"),
    (322, "cuCtxDestroy_v2"),
    (387, "cuDevicePrimaryCtxRelease"),
    (389, "cuDevicePrimaryCtxReset"),
    (544, "cuDevicePrimaryCtxRelease_v2"),
    (545, "cuDevicePrimaryCtxReset_v2"),
    (680, "cuLibraryUnload"),
];

/// Flag of `cuptiActivityFlushAll` that returns buffers with incomplete records, too.
pub const FLUSH_FORCED: u32 = 1;

/// `CUpti_ActivityThreadIdType` for the system's thread id (`gettid`).
pub const THREAD_ID_TYPE_SYSTEM: u32 = 1;

/// `CUpti_ActivityMemcpyKind`, by value, as CUPTI names them.
pub const MEMCPY_KINDS: [&str; 11] = [
    "unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
];

/// What `cuptiGetVersion` answers, and from when: numbers were counted up to 12.9, and are
/// `xxyyzz` from 13.0.
///
/// CUDA 12.0 and 12.1 answer 18, as 11.8 does (asked of the libraries themselves; the comment in
/// the header says otherwise).
pub mod version {
    /// CUDA 11.8, 12.0 and 12.1: the oldest that this crate works with.
    pub const OLDEST: u32 = 18;
    /// CUDA 12.3, from which executable graphs have ids that can be asked for.
    pub const CUDA_12_3: u32 = 21;
    /// CUDA 12.4, from which overhead records carry data that their reader frees.
    pub const CUDA_12_4: u32 = 22;
    /// CUDA 12.8, from which a copy record may stand for several copies.
    pub const CUDA_12_8: u32 = 26;
    /// CUDA 12.9 Update 1.
    pub const CUDA_12_9_1: u32 = 28;
    /// CUDA 13.0.
    pub const CUDA_13_0: u32 = 130_000;
    /// CUDA 13.5: the newest whose headers this crate was checked against. Later ones are read by
    /// the same prefixes.
    pub const CUDA_13_5: u32 = 130_500;
}
