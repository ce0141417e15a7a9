//! What a call means for the order of work, by the name of its function.
//!
//! The ORDER set: everything that can hold work back beside the work before it. A function that is
//! not known here may be of it, so it makes what follows partial; the functions that are known to
//! order nothing are named, too.
//!
//! A recorder chooses what it records by ids (`lineage_cupti::order` and `work`); a test there holds both to
//! the same set, for every function that NVIDIA's headers name.

/// What a call does to the order of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Asks for work whose place in its stream is by the order of calls.
    Work,
    /// A launch whose attributes may loosen that order (`cuLaunchKernelEx`).
    LaunchEx,
    /// Launches a graph.
    GraphLaunch,
    /// Tells a stream to wait for an event.
    StreamWait,
    /// Records an event.
    EventRecord,
    /// A thread waits for a stream, an event, a context or a device.
    HostWait,
    /// Waits for or writes a value in memory, or an external semaphore; or has resources of a graphics
    /// interface, which orders the two sides' work.
    Semaphore,
    /// Puts a function of the host's into a stream.
    HostFunction,
    /// Allocates or frees in the order of a stream.
    PooledAllocation,
    /// Uploads a graph, prefetches or decompresses memory, attaches it to a stream.
    HiddenWork,
    /// Allocates or frees at once.
    Allocation,
    /// Parts of a device, whose streams are ordered by rules of their own; and events of all of a
    /// context's streams at once (`cuCtxRecordEvent`, `cuCtxWaitEvent`).
    GreenContext,
    /// Orders nothing.
    Neutral,
    /// Not known.
    Unknown,
}

impl Role {
    /// The role of the function of this name, in CUDA's or HIP's interface.
    pub fn of(name: Option<&str>) -> Self {
        let Some(name) = name else {
            return Self::Unknown;
        };
        let name = bare(name);
        let rest = ["cuda", "hip", "cu"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        match rest {
            Some(rest) => of_rest(rest),
            None => Self::Unknown,
        }
    }

    /// Whether it may put something into a stream that is no operation, and that what is behind it in
    /// its channel waits for.
    pub(crate) const fn may_hold_channel(self) -> bool {
        !matches!(
            self,
            Self::Work | Self::LaunchEx | Self::HostWait | Self::Allocation | Self::Neutral
        )
    }

    /// Whether the thread that calls waits for the device in it.
    pub(crate) const fn blocks_thread(self) -> bool {
        matches!(self, Self::HostWait)
    }
}

fn of_rest(rest: &str) -> Role {
    let has = |part: &str| rest.contains(part);
    let begins = |parts: &[&str]| parts.iter().any(|part| rest.starts_with(part));
    if has("GreenCtx")
        || has("DevSm")
        || begins(&["ExecutionCtx", "CtxRecordEvent", "CtxWaitEvent"])
    {
        return Role::GreenContext;
    }
    if begins(&["GraphLaunch"]) {
        return Role::GraphLaunch;
    }
    if begins(&[
        "GraphUpload",
        "MemPrefetch",
        "MemBatchDecompress",
        "StreamAttachMem",
        "MemDiscard",
    ]) {
        return Role::HiddenWork;
    }
    if has("LaunchHostFunc") || begins(&["StreamAddCallback"]) {
        return Role::HostFunction;
    }
    if begins(&["LaunchKernelEx"]) {
        return Role::LaunchEx;
    }
    if has("Launch") && !begins(&["Graph", "Get", "Set"]) {
        return Role::Work;
    }
    if begins(&["StreamWaitEvent"]) {
        return Role::StreamWait;
    }
    if begins(&["EventRecord"]) {
        return Role::EventRecord;
    }
    if begins(&[
        "StreamWaitValue",
        "StreamWriteValue",
        "StreamBatchMemOp",
        "SignalExternalSemaphores",
        "WaitExternalSemaphores",
        "GraphicsMapResources",
        "GraphicsUnmapResources",
    ]) {
        return Role::Semaphore;
    }
    if has("Synchronize") {
        return Role::HostWait;
    }
    if begins(&[
        "MallocAsync",
        "FreeAsync",
        "MallocFromPool",
        "MemAllocAsync",
        "MemAllocFromPool",
        "MemFreeAsync",
    ]) {
        return Role::PooledAllocation;
    }
    if begins(&["Memcpy", "Memset"]) {
        return Role::Work;
    }
    if begins(&[
        "Malloc",
        "Free",
        "HostAlloc",
        "HostFree",
        "HostMalloc",
        "HostRegister",
        "HostUnregister",
        "MemAlloc",
        "MemFree",
        "MemHostAlloc",
        "MemHostRegister",
        "MemHostUnregister",
        "MemCreate",
        "MemMap",
        "MemUnmap",
        "MemRelease",
        "MemSetAccess",
        "ArrayCreate",
        "Array3DCreate",
    ]) {
        return Role::Allocation;
    }
    const NEUTRAL: [&str; 33] = [
        "Get",
        "Set",
        "Peek",
        "Init",
        "Driver",
        "Runtime",
        "Device",
        "Module",
        "Library",
        "Kernel",
        "Func",
        "Occupancy",
        "Ctx",
        "Choose",
        "Pointer",
        "Link",
        "Event",
        "Tex",
        "Surf",
        "Profiler",
        "Ipc",
        "MemGet",
        "MemAddress",
        "MemExport",
        "MemPool",
        "MemAdvise",
        "MemRange",
        "StreamCreate",
        "StreamDestroy",
        "StreamQuery",
        "StreamGet",
        "StreamIsCapturing",
        "Graph",
    ];
    // `Mem…` and `Stream…` at large are not: new ones of them may order work.
    const ALSO: [&str; 9] = [
        "StreamBeginCapture",
        "StreamEndCapture",
        "StreamUpdateCapture",
        "ThreadExchangeStreamCapture",
        "StreamSet",
        "StreamCopyAttributes",
        "UserObject",
        "_",
        "PushCallConfiguration",
    ];
    if begins(&NEUTRAL) || begins(&ALSO) || begins(&["PopCallConfiguration"]) {
        return Role::Neutral;
    }
    Role::Unknown
}

/// The name without what recorders and headers append: `_v3020`, `_ptsz`, `_ptds`.
fn bare(name: &str) -> &str {
    let mut name = name.trim_start_matches('_');
    loop {
        let shorter = ["_ptsz", "_ptds", "_spt"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .or_else(|| {
                let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
                (digits.len() < name.len())
                    .then(|| digits.strip_suffix("_v"))
                    .flatten()
            });
        match shorter {
            Some(shorter) => name = shorter,
            None => return name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_orders_work_is_known_by_name() {
        for (name, role) in [
            ("cudaLaunchKernel_v7000", Role::Work),
            ("cuLaunchKernel", Role::Work),
            ("cuLaunchKernelEx_ptsz", Role::LaunchEx),
            ("cudaLaunchKernelExC_v11060", Role::LaunchEx),
            ("cudaGraphLaunch_ptsz_v10000", Role::GraphLaunch),
            ("cudaMemcpyAsync_v3020", Role::Work),
            ("cuMemsetD8Async", Role::Work),
            ("cudaStreamWaitEvent_v3020", Role::StreamWait),
            ("cuEventRecordWithFlags_ptsz", Role::EventRecord),
            ("cudaEventSynchronize", Role::HostWait),
            ("cuStreamBatchMemOp_v2", Role::Semaphore),
            ("cudaWaitExternalSemaphoresAsync_v2", Role::Semaphore),
            ("cudaLaunchHostFunc", Role::HostFunction),
            ("cuMemFreeAsync", Role::PooledAllocation),
            ("cudaMallocFromPoolAsync", Role::PooledAllocation),
            ("cudaMalloc_v3020", Role::Allocation),
            ("cudaHostAlloc", Role::Allocation),
            ("cuMemAlloc_v2", Role::Allocation),
            ("cudaMemPrefetchAsync", Role::HiddenWork),
            ("cuGraphUpload", Role::HiddenWork),
            ("cuGreenCtxCreate", Role::GreenContext),
            ("cuCtxWaitEvent", Role::GreenContext),
            ("cudaExecutionCtxRecordEvent_v13010", Role::GreenContext),
            ("cudaGetDevice", Role::Neutral),
            ("cuModuleLoadData", Role::Neutral),
            ("cudaStreamCreateWithFlags", Role::Neutral),
            ("cudaEventQuery", Role::Neutral),
            ("cuGraphInstantiateWithFlags", Role::Neutral),
            ("cuGraphAddExternalSemaphoresWaitNode", Role::Neutral),
            ("cudaStreamIsCapturing_v10000", Role::Neutral),
            ("cuMemBatchDecompressAsync", Role::HiddenWork),
            ("cudaGraphicsMapResources_v3020", Role::Semaphore),
            ("cuStreamSomethingNew", Role::Unknown),
            ("INVALID", Role::Unknown),
        ] {
            assert_eq!(Role::of(Some(name)), role, "{name}");
        }
        assert_eq!(Role::of(None), Role::Unknown);
    }
}
