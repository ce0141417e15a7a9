//! Where the fields of NVIDIA's activity records are, by version.
//!
//! A record's fields keep their offsets for good; a later structure only appends. `lineage-sim/tests/layouts.rs` compiles
//! this file, too, and compares all of it with what a C compiler makes of NVIDIA's headers; so it
//! uses nothing of this crate.

/// Numbers of `cuptiGetVersion`, as the real libraries answer them.
pub(crate) mod version {
    /// CUDA 12.0 (and 11.8, and 12.1).
    pub(crate) const CUDA_12_0: u32 = 18;
    pub(crate) const CUDA_12_2: u32 = 20;
    pub(crate) const CUDA_12_4: u32 = 22;
    pub(crate) const CUDA_12_8: u32 = 26;
    /// CUDA 12.9 Update 1.
    pub(crate) const CUDA_12_9: u32 = 28;
    pub(crate) const CUDA_13_0: u32 = 130_000;
    pub(crate) const CUDA_13_1: u32 = 130_100;
    pub(crate) const CUDA_13_2: u32 = 130_200;
    pub(crate) const CUDA_13_3: u32 = 130_300;
    pub(crate) const CUDA_13_4: u32 = 130_400;
    pub(crate) const CUDA_13_5: u32 = 130_500;
}

/// One structure of a record.
pub(crate) struct Structure {
    /// Without `CUpti_Activity`.
    #[allow(dead_code, reason = "for the comparison with the headers")]
    pub(crate) name: &'static str,
    /// The version of CUPTI that writes it first.
    pub(crate) since: u32,
    pub(crate) bytes: usize,
}

/// One field.
#[allow(dead_code, reason = "for the comparison with the headers")]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) offset: usize,
    /// Index of the first structure that has it.
    pub(crate) since: usize,
}

/// A record: its structures, the oldest first, and the fields that are written.
pub(crate) struct Record {
    pub(crate) structures: &'static [Structure],
    #[allow(dead_code, reason = "for the comparison with the headers")]
    pub(crate) fields: &'static [Field],
}

impl Record {
    /// How long the record is in a version; none where that version does not have it.
    pub(crate) fn bytes(&self, version: u32) -> Option<usize> {
        let mut newest_first = self.structures.iter().rev();
        newest_first
            .find(|structure| structure.since <= version)
            .map(|structure| structure.bytes)
    }
}

macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $module:ident: [$($structure:literal $bytes:literal since $since:ident),+]
        { $($name:ident = $field:literal $offset:literal $(in $index:literal)?;)+ }
    )+) => {
        $(
            $(#[$doc])*
            pub(crate) mod $module {
                use super::{Field, Record, Structure, version};

                $(pub(crate) const $name: usize = $offset;)+

                pub(crate) static RECORD: Record = Record {
                    structures: &[$(Structure { name: $structure, since: version::$since, bytes: $bytes }),+],
                    fields: &[$(Field { name: $field, offset: $offset, since: 0 $(+ $index)? }),+],
                };
            }
        )+

        /// All of them.
        #[allow(dead_code, reason = "for the comparison with the headers")]
        pub(crate) static ALL: &[&Record] = &[$(&$module::RECORD),+];
    };
}

records! {
    /// Kinds DRIVER and RUNTIME.
    api: ["API" 40 since CUDA_12_0] {
        CBID = "cbid" 4;
        START = "start" 8;
        END = "end" 16;
        PROCESS_ID = "processId" 24;
        THREAD_ID = "threadId" 28;
        CORRELATION_ID = "correlationId" 32;
        RETURN_VALUE = "returnValue" 36;
    }
    external: ["ExternalCorrelation" 24 since CUDA_12_0] {
        EXTERNAL_KIND = "externalKind" 4;
        EXTERNAL_ID = "externalId" 8;
        CORRELATION_ID = "correlationId" 16;
    }
    kernel: [
        "Kernel9" 208 since CUDA_12_0, "Kernel10" 216 since CUDA_13_0, "Kernel11" 224 since CUDA_13_1,
        "Kernel12" 232 since CUDA_13_3, "Kernel13" 248 since CUDA_13_4
    ] {
        REGISTERS_PER_THREAD = "registersPerThread" 6;
        START = "start" 16;
        END = "end" 24;
        COMPLETED = "completed" 32;
        DEVICE_ID = "deviceId" 40;
        CONTEXT_ID = "contextId" 44;
        STREAM_ID = "streamId" 48;
        GRID_X = "gridX" 52;
        GRID_Y = "gridY" 56;
        GRID_Z = "gridZ" 60;
        BLOCK_X = "blockX" 64;
        BLOCK_Y = "blockY" 68;
        BLOCK_Z = "blockZ" 72;
        DYNAMIC_SHARED_MEMORY = "dynamicSharedMemory" 80;
        CORRELATION_ID = "correlationId" 92;
        GRID_ID = "gridId" 96;
        NAME = "name" 104;
        QUEUED = "queued" 120;
        SUBMITTED = "submitted" 128;
        LAUNCH_TYPE = "launchType" 136;
        GRAPH_NODE_ID = "graphNodeId" 144;
        GRAPH_ID = "graphId" 156;
        CHANNEL_ID = "channelID" 168;
        CHANNEL_TYPE = "channelType" 172;
        CLUSTER_X = "clusterX" 176;
        CLUSTER_Y = "clusterY" 180;
        CLUSTER_Z = "clusterZ" 184;
        PRIORITY = "priority" 216 in 2;
        SOURCE_GRAPH_ID = "sourceGraphId" 232 in 4;
        SOURCE_GRAPH_NODE_ID = "sourceGraphNodeId" 240 in 4;
    }
    memcpy: [
        "Memcpy5" 88 since CUDA_12_0, "Memcpy6" 96 since CUDA_12_8, "Memcpy7" 112 since CUDA_13_4
    ] {
        COPY_KIND = "copyKind" 4;
        SOURCE_KIND = "srcKind" 5;
        TARGET_KIND = "dstKind" 6;
        FLAGS = "flags" 7;
        BYTES = "bytes" 8;
        START = "start" 16;
        END = "end" 24;
        DEVICE_ID = "deviceId" 32;
        CONTEXT_ID = "contextId" 36;
        STREAM_ID = "streamId" 40;
        CORRELATION_ID = "correlationId" 44;
        RUNTIME_CORRELATION_ID = "runtimeCorrelationId" 48;
        GRAPH_NODE_ID = "graphNodeId" 64;
        GRAPH_ID = "graphId" 72;
        CHANNEL_ID = "channelID" 76;
        CHANNEL_TYPE = "channelType" 80;
        COPY_COUNT = "copyCount" 88 in 1;
        SOURCE_GRAPH_ID = "sourceGraphId" 96 in 2;
        SOURCE_GRAPH_NODE_ID = "sourceGraphNodeId" 104 in 2;
    }
    /// What it has in common with `memcpy` is written by that one's offsets.
    memcpy_peer: ["MemcpyPtoP4" 96 since CUDA_12_0] {
        SOURCE_DEVICE_ID = "srcDeviceId" 44;
        SOURCE_CONTEXT_ID = "srcContextId" 48;
        TARGET_DEVICE_ID = "dstDeviceId" 52;
        TARGET_CONTEXT_ID = "dstContextId" 56;
        CORRELATION_ID = "correlationId" 60;
        GRAPH_NODE_ID = "graphNodeId" 72;
        GRAPH_ID = "graphId" 80;
        CHANNEL_ID = "channelID" 84;
        CHANNEL_TYPE = "channelType" 88;
    }
    memset: ["Memset4" 88 since CUDA_12_0, "Memset5" 104 since CUDA_13_4] {
        VALUE = "value" 4;
        BYTES = "bytes" 8;
        START = "start" 16;
        END = "end" 24;
        DEVICE_ID = "deviceId" 32;
        CONTEXT_ID = "contextId" 36;
        STREAM_ID = "streamId" 40;
        CORRELATION_ID = "correlationId" 44;
        FLAGS = "flags" 48;
        MEMORY_KIND = "memoryKind" 50;
        GRAPH_NODE_ID = "graphNodeId" 64;
        GRAPH_ID = "graphId" 72;
        CHANNEL_ID = "channelID" 76;
        CHANNEL_TYPE = "channelType" 80;
        SOURCE_GRAPH_ID = "sourceGraphId" 88 in 1;
        SOURCE_GRAPH_NODE_ID = "sourceGraphNodeId" 96 in 1;
    }
    synchronization: [
        "Synchronization" 40 since CUDA_12_0, "Synchronization2" 56 since CUDA_12_8
    ] {
        TYPE = "type" 4;
        START = "start" 8;
        END = "end" 16;
        CORRELATION_ID = "correlationId" 24;
        CONTEXT_ID = "contextId" 28;
        STREAM_ID = "streamId" 32;
        EVENT_ID = "cudaEventId" 36;
        EVENT_SYNC_ID = "cudaEventSyncId" 40 in 1;
        RETURN_VALUE = "returnValue" 48 in 1;
    }
    cuda_event: [
        "CudaEvent" 24 since CUDA_12_0, "CudaEvent2" 56 since CUDA_12_8, "CudaEvent3" 80 since CUDA_13_5
    ] {
        CORRELATION_ID = "correlationId" 4;
        CONTEXT_ID = "contextId" 8;
        STREAM_ID = "streamId" 12;
        EVENT_ID = "eventId" 16;
        DEVICE_ID = "deviceId" 24 in 1;
        DEVICE_TIMESTAMP = "deviceTimestamp" 40 in 1;
        EVENT_SYNC_ID = "cudaEventSyncId" 48 in 1;
    }
    overhead: [
        "Overhead" 40 since CUDA_12_0, "Overhead2" 48 since CUDA_12_2, "Overhead3" 56 since CUDA_12_4
    ] {
        OVERHEAD_KIND = "overheadKind" 4;
        OBJECT_KIND = "objectKind" 8;
        OBJECT_PROCESS_ID = "objectId.pt.processId" 12;
        OBJECT_THREAD_ID = "objectId.pt.threadId" 16;
        START = "start" 24;
        END = "end" 32;
        CORRELATION_ID = "correlationId" 40 in 1;
        OVERHEAD_DATA = "overheadData" 48 in 2;
    }
    context: [
        "Context" 16 since CUDA_12_0, "Context2" 24 since CUDA_12_4, "Context3" 32 since CUDA_12_8,
        "Context4" 40 since CUDA_13_1
    ] {
        CONTEXT_ID = "contextId" 4;
        DEVICE_ID = "deviceId" 8;
        COMPUTE_API_KIND = "computeApiKind" 12;
        NULL_STREAM_ID = "nullStreamId" 14;
        PROCESS_ID = "processId" 32 in 3;
    }
    stream: ["Stream" 24 since CUDA_12_0] {
        CONTEXT_ID = "contextId" 4;
        STREAM_ID = "streamId" 8;
        PRIORITY = "priority" 12;
        FLAG = "flag" 16;
        CORRELATION_ID = "correlationId" 20;
    }
    graph_trace: ["GraphTrace" 48 since CUDA_12_0, "GraphTrace2" 56 since CUDA_12_4] {
        CORRELATION_ID = "correlationId" 4;
        START = "start" 8;
        END = "end" 16;
        DEVICE_ID = "deviceId" 24;
        GRAPH_ID = "graphId" 28;
        CONTEXT_ID = "contextId" 32;
        STREAM_ID = "streamId" 36;
        END_DEVICE_ID = "endDeviceId" 48 in 1;
        END_CONTEXT_ID = "endContextId" 52 in 1;
    }
    graph_host_node: ["GraphHostNode" 56 since CUDA_13_1] {
        STREAM_ID = "streamId" 4;
        CONTEXT_ID = "contextId" 8;
        DEVICE_ID = "deviceId" 12;
        CORRELATION_ID = "correlationId" 16;
        GRAPH_ID = "graphId" 20;
        GRAPH_NODE_ID = "graphNodeId" 24;
        PROCESS_ID = "processId" 32;
        THREAD_ID = "threadId" 36;
        START = "start" 40;
        END = "end" 48;
    }
    context_switch: ["ComputeEngineCtxSwitch" 24 since CUDA_13_1] {
        CONTEXT_ID = "contextId" 4;
        TIMESTAMP = "timestamp" 8;
        OPERATION = "operationType" 16;
    }
    host_launch: ["HostLaunch" 48 since CUDA_13_1] {
        STREAM_ID = "streamId" 4;
        CONTEXT_ID = "contextId" 8;
        DEVICE_ID = "deviceId" 12;
        CORRELATION_ID = "correlationId" 16;
        PROCESS_ID = "processId" 20;
        THREAD_ID = "threadId" 24;
        START = "start" 32;
        END = "end" 40;
    }
}
