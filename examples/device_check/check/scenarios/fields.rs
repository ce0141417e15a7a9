//! Records as bytes, and where the fields are that scenarios tell of.
//!
//! Offsets are those of NVIDIA's `cupti_activity.h`; a later structure of a record only appends, so that they hold from CUDA 12.0 on.
//! A test compares them with those that the simulator writes by, which are compared with what a C compiler makes of the headers.

use lineage_cupti::sys::codes::{kind, version};

/// `CUPTI_ACTIVITY_KIND_CUDA_EVENT`.
pub const CUDA_EVENT: u32 = 36;
/// `CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`.
pub const SYNCHRONIZATION: u32 = 38;
/// `CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE`, since CUDA 13.1.
pub const GRAPH_HOST_NODE: u32 = 56;
/// `CUPTI_ACTIVITY_KIND_HOST_LAUNCH`, since CUDA 13.1.
pub const HOST_LAUNCH: u32 = 58;

/// The longest record of those that are read, and some more.
const KEPT_BYTES: usize = 256;

/// How a field is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum As {
    /// The number itself: enumerations, flags, sizes.
    Number,
    /// Only whether it is 0: times, and ids that differ from machine to machine.
    IsZero,
    /// As an ordinal among ids of this sort; 0 stays 0, and all ones stay "invalid".
    Ordinal(&'static str),
}

/// A field: its name in NVIDIA's header, offset, bytes, how it is told, and the version of CUPTI that has it first.
pub struct Field {
    pub name: &'static str,
    pub offset: usize,
    pub bytes: usize,
    pub told: As,
    pub since: u32,
}

const fn field(name: &'static str, offset: usize, bytes: usize, told: As) -> Field {
    Field {
        name,
        offset,
        bytes,
        told,
        since: version::OLDEST,
    }
}

/// One that not every version has.
const fn newer(name: &'static str, offset: usize, bytes: usize, told: As, since: u32) -> Field {
    Field {
        name,
        offset,
        bytes,
        told,
        since,
    }
}

/// What is told of a record's kind.
pub struct Told {
    pub kind: u32,
    /// The word for it.
    pub word: &'static str,
    pub correlation: usize,
    /// Start and end, in ns.
    pub times: Option<(usize, usize)>,
    /// The field by which records of one call are told apart: blocks, bytes, or the type.
    pub label: Option<(usize, usize)>,
    pub fields: &'static [Field],
}

const STREAM: As = As::Ordinal("stream");
const CONTEXT: As = As::Ordinal("context");
const DEVICE: As = As::Number;
const GRAPH: As = As::Ordinal("graph");
const NODE: As = As::Ordinal("node");
const EVENT: As = As::Ordinal("event");
const EVENT_SYNC: As = As::Ordinal("recording");
const CHANNEL: As = As::Ordinal("channel");

/// All kinds of operations, waits, and records of events; calls and external ids are told elsewhere.
#[rustfmt::skip]
pub const TOLD: &[Told] = &[
    Told {
        kind: kind::CONCURRENT_KERNEL, word: "kernel", correlation: 92, times: Some((16, 24)), label: Some((52, 4)),
        fields: &[
            field("start", 16, 8, As::IsZero), field("end", 24, 8, As::IsZero), field("completed", 32, 8, As::IsZero),
            field("deviceId", 40, 4, DEVICE), field("contextId", 44, 4, CONTEXT), field("streamId", 48, 4, STREAM),
            field("gridX", 52, 4, As::Number), field("blockX", 64, 4, As::Number),
            field("dynamicSharedMemory", 80, 4, As::Number), field("gridId", 96, 8, As::IsZero),
            field("queued", 120, 8, As::IsZero), field("submitted", 128, 8, As::IsZero),
            field("launchType", 136, 1, As::Number), field("graphNodeId", 144, 8, NODE), field("graphId", 156, 4, GRAPH),
            field("channelID", 168, 4, CHANNEL), field("channelType", 172, 4, As::Number),
            field("clusterX", 176, 4, As::Number),
        ],
    },
    Told {
        kind: kind::MEMCPY, word: "copy", correlation: 44, times: Some((16, 24)), label: Some((8, 8)),
        fields: &[
            field("copyKind", 4, 1, As::Number), field("srcKind", 5, 1, As::Number), field("dstKind", 6, 1, As::Number),
            field("flags", 7, 1, As::Number), field("bytes", 8, 8, As::Number),
            field("start", 16, 8, As::IsZero), field("end", 24, 8, As::IsZero),
            field("deviceId", 32, 4, DEVICE), field("contextId", 36, 4, CONTEXT), field("streamId", 40, 4, STREAM),
            field("runtimeCorrelationId", 48, 4, As::IsZero), field("graphNodeId", 64, 8, NODE), field("graphId", 72, 4, GRAPH),
            field("channelID", 76, 4, CHANNEL), field("channelType", 80, 4, As::Number),
            newer("copyCount", 88, 8, As::Number, version::CUDA_12_8),
        ],
    },
    Told {
        kind: kind::MEMSET, word: "set", correlation: 44, times: Some((16, 24)), label: Some((8, 8)),
        fields: &[
            field("value", 4, 4, As::Number), field("bytes", 8, 8, As::Number),
            field("start", 16, 8, As::IsZero), field("end", 24, 8, As::IsZero),
            field("deviceId", 32, 4, DEVICE), field("contextId", 36, 4, CONTEXT), field("streamId", 40, 4, STREAM),
            field("flags", 48, 2, As::Number), field("memoryKind", 50, 2, As::Number),
            field("graphNodeId", 64, 8, NODE), field("graphId", 72, 4, GRAPH),
            field("channelID", 76, 4, CHANNEL), field("channelType", 80, 4, As::Number),
        ],
    },
    Told {
        kind: SYNCHRONIZATION, word: "wait", correlation: 24, times: None, label: Some((4, 4)),
        fields: &[
            field("type", 4, 4, As::Number), field("start", 8, 8, As::IsZero), field("end", 16, 8, As::IsZero),
            field("contextId", 28, 4, CONTEXT), field("streamId", 32, 4, STREAM), field("cudaEventId", 36, 4, EVENT),
            newer("cudaEventSyncId", 40, 8, EVENT_SYNC, version::CUDA_12_8),
            newer("returnValue", 48, 4, As::Number, version::CUDA_12_8),
        ],
    },
    Told {
        kind: CUDA_EVENT, word: "event", correlation: 4, times: None, label: None,
        fields: &[
            field("contextId", 8, 4, CONTEXT), field("streamId", 12, 4, STREAM), field("eventId", 16, 4, EVENT),
            newer("deviceId", 24, 4, DEVICE, version::CUDA_12_8),
            newer("deviceTimestamp", 40, 8, As::IsZero, version::CUDA_12_8),
            newer("cudaEventSyncId", 48, 8, EVENT_SYNC, version::CUDA_12_8),
        ],
    },
    Told {
        kind: GRAPH_HOST_NODE, word: "host node", correlation: 16, times: Some((40, 48)), label: None,
        fields: &[
            field("streamId", 4, 4, STREAM), field("contextId", 8, 4, CONTEXT), field("deviceId", 12, 4, DEVICE),
            field("graphId", 20, 4, GRAPH), field("graphNodeId", 24, 8, NODE), field("threadId", 36, 4, As::IsZero),
            field("start", 40, 8, As::IsZero), field("end", 48, 8, As::IsZero),
        ],
    },
    Told {
        kind: HOST_LAUNCH, word: "host function", correlation: 16, times: Some((32, 40)), label: None,
        fields: &[
            field("streamId", 4, 4, STREAM), field("contextId", 8, 4, CONTEXT), field("deviceId", 12, 4, DEVICE),
            field("threadId", 24, 4, As::IsZero), field("start", 32, 8, As::IsZero), field("end", 40, 8, As::IsZero),
        ],
    },
];

/// A record's bytes.
#[derive(Debug, Clone)]
pub struct Raw {
    bytes: Vec<u8>,
    /// Of CUPTI.
    version: u32,
    /// Of the kernel.
    pub name: Option<String>,
}

impl Raw {
    /// What a record begins with.
    pub fn new(bytes: &[u8], version: u32, name: Option<String>) -> Self {
        let bytes = bytes[..bytes.len().min(KEPT_BYTES)].to_vec();
        Self {
            bytes,
            version,
            name,
        }
    }

    /// A number of up to 8 bytes; 0 where the record does not reach so far.
    pub fn number(&self, offset: usize, bytes: usize) -> u64 {
        let mut number = [0; 8];
        let end = offset.saturating_add(bytes.min(8));
        if let Some(found) = self.bytes.get(offset..end) {
            number[..found.len()].copy_from_slice(found);
        }
        u64::from_ne_bytes(number)
    }

    pub fn kind(&self) -> u32 {
        self.number(0, 4) as u32
    }

    pub fn told(&self) -> Option<&'static Told> {
        TOLD.iter().find(|told| told.kind == self.kind())
    }

    pub fn has(&self, field: &Field) -> bool {
        self.version >= field.since && self.bytes.len() >= field.offset + field.bytes
    }
}
