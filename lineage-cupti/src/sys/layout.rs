//! Where the fields of CUPTI's records are.
//!
//! A record's fields keep their offsets for good; a new version of the library only appends. So a
//! record of any version from 11.8 on is read by the prefix given here, and a field that came
//! later is read only where the loaded library's version has it.

/// Reads fields of one record.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// A record over these bytes, which begin with it and may go on beyond it.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// How many bytes there are.
    pub const fn len(self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// The activity kind, which every record begins with.
    pub fn kind(self) -> Option<u32> {
        self.u32(0)
    }

    /// The byte at this offset; `None` beyond the end.
    pub fn u8(self, offset: usize) -> Option<u8> {
        self.bytes.get(offset).copied()
    }

    /// The `uint32_t` at this offset; `None` beyond the end.
    pub fn u32(self, offset: usize) -> Option<u32> {
        let bytes = self.bytes.get(offset..offset.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// The `uint64_t` at this offset; `None` beyond the end.
    pub fn u64(self, offset: usize) -> Option<u64> {
        let bytes = self.bytes.get(offset..offset.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// The `uint16_t` at this offset; `None` beyond the end.
    pub fn u16(self, offset: usize) -> Option<u16> {
        let bytes = self.bytes.get(offset..offset.checked_add(2)?)?;
        Some(u16::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// The pointer at this offset, as an address; `None` beyond the end.
    pub fn address(self, offset: usize) -> Option<usize> {
        let bytes = self
            .bytes
            .get(offset..offset.checked_add(size_of::<usize>())?)?;
        Some(usize::from_ne_bytes(bytes.try_into().ok()?))
    }
}

macro_rules! offsets {
    ($($(#[$doc:meta])* $name:ident = $offset:literal;)+) => {
        $($(#[$doc])* pub const $name: usize = $offset;)+
    };
}

/// `CUpti_ActivityAPI`: kinds DRIVER, RUNTIME and INTERNAL_LAUNCH_API.
pub mod api {
    offsets! {
        /// Callback id of the function.
        CBID = 4;
        /// When it was entered, in ns.
        START = 8;
        /// When it was left, in ns.
        END = 16;
        /// The calling process.
        PROCESS_ID = 24;
        /// The calling thread, in the chosen type of id.
        THREAD_ID = 28;
        /// The call's correlation id.
        CORRELATION_ID = 32;
        /// The function's own result.
        RETURN_VALUE = 36;
        /// Size of the record.
        SIZE = 40;
    }
}

/// `CUpti_ActivityExternalCorrelation`.
pub mod external {
    offsets! {
        /// Whose id.
        EXTERNAL_KIND = 4;
        /// The id on top of that stack.
        EXTERNAL_ID = 8;
        /// The call it was on top for.
        CORRELATION_ID = 16;
        /// Size of the record.
        SIZE = 24;
    }
}

/// `CUpti_ActivityKernel8` to `CUpti_ActivityKernel13`: what they share.
pub mod kernel {
    offsets! {
        /// Registers of each thread: a `uint16_t`.
        REGISTERS_PER_THREAD = 6;
        /// When it began, in ns.
        START = 16;
        /// When it ended, in ns.
        END = 24;
        /// The device.
        DEVICE_ID = 40;
        /// The context.
        CONTEXT_ID = 44;
        /// The stream.
        STREAM_ID = 48;
        /// Grid size: three `int32_t`.
        GRID = 52;
        /// Block size: three `int32_t`.
        BLOCK = 64;
        /// Shared memory that the function declares, in bytes: an `int32_t`.
        STATIC_SHARED_MEMORY = 76;
        /// Shared memory that the launch asked for, in bytes: an `int32_t`.
        DYNAMIC_SHARED_MEMORY = 80;
        /// The call that asked for it.
        CORRELATION_ID = 92;
        /// Address of the name.
        NAME = 104;
        /// When it was put into a command buffer, in ns.
        QUEUED = 120;
        /// When that buffer was submitted, in ns.
        SUBMITTED = 128;
        /// Node of the executable graph.
        GRAPH_NODE_ID = 144;
        /// The graph.
        GRAPH_ID = 156;
        /// The hardware channel.
        CHANNEL_ID = 168;
        /// Blocks of a cluster: three `uint32_t`, 0 without clusters.
        CLUSTER = 176;
        /// Size of the oldest version read here, `CUpti_ActivityKernel8` of CUDA 11.8.
        SIZE_8 = 200;
        /// Size of `CUpti_ActivityKernel9`, CUDA 12.
        SIZE_9 = 208;
        /// Size of `CUpti_ActivityKernel13`, CUDA 13.4.
        SIZE_13 = 248;
    }
}

/// `CUpti_ActivityMemcpy5` to `CUpti_ActivityMemcpy7`: what they share, and `copyCount`.
pub mod memcpy {
    offsets! {
        /// Kind of the copy, see [`MEMCPY_KINDS`](super::super::codes::MEMCPY_KINDS).
        COPY_KIND = 4;
        /// How many bytes.
        BYTES = 8;
        /// When it began, in ns.
        START = 16;
        /// When it ended, in ns.
        END = 24;
        /// The device.
        DEVICE_ID = 32;
        /// The context.
        CONTEXT_ID = 36;
        /// The stream.
        STREAM_ID = 40;
        /// The call that asked for it.
        CORRELATION_ID = 44;
        /// Node of the executable graph.
        GRAPH_NODE_ID = 64;
        /// The graph.
        GRAPH_ID = 72;
        /// The hardware channel.
        CHANNEL_ID = 76;
        /// How many copies the record stands for; from CUDA 12.8.
        COPY_COUNT = 88;
        /// Size of `CUpti_ActivityMemcpy5`.
        SIZE_5 = 88;
        /// Size of `CUpti_ActivityMemcpy6`, CUDA 12.8.
        SIZE_6 = 96;
        /// Size of `CUpti_ActivityMemcpy7`, CUDA 13.4.
        SIZE_7 = 112;
    }
}

/// `CUpti_ActivityMemcpyPtoP4`, kind MEMCPY2.
pub mod memcpy_peer {
    offsets! {
        /// Kind of the copy.
        COPY_KIND = 4;
        /// How many bytes.
        BYTES = 8;
        /// When it began, in ns.
        START = 16;
        /// When it ended, in ns.
        END = 24;
        /// The device that ran it.
        DEVICE_ID = 32;
        /// The context.
        CONTEXT_ID = 36;
        /// The stream.
        STREAM_ID = 40;
        /// The call that asked for it.
        CORRELATION_ID = 60;
        /// Node of the executable graph.
        GRAPH_NODE_ID = 72;
        /// The graph.
        GRAPH_ID = 80;
        /// The hardware channel.
        CHANNEL_ID = 84;
        /// Size of the record.
        SIZE_4 = 96;
    }
}

/// `CUpti_ActivityMemset4` and `CUpti_ActivityMemset5`: what they share.
pub mod memset {
    offsets! {
        /// How many bytes.
        BYTES = 8;
        /// When it began, in ns.
        START = 16;
        /// When it ended, in ns.
        END = 24;
        /// The device.
        DEVICE_ID = 32;
        /// The context.
        CONTEXT_ID = 36;
        /// The stream.
        STREAM_ID = 40;
        /// The call that asked for it.
        CORRELATION_ID = 44;
        /// Node of the executable graph.
        GRAPH_NODE_ID = 64;
        /// The graph.
        GRAPH_ID = 72;
        /// The hardware channel.
        CHANNEL_ID = 76;
        /// Size of `CUpti_ActivityMemset4`.
        SIZE_4 = 88;
        /// Size of `CUpti_ActivityMemset5`, CUDA 13.4.
        SIZE_5 = 104;
    }
}

/// `CUpti_ActivityOverhead3`, CUDA 12.4.
pub mod overhead {
    offsets! {
        /// What the overhead was.
        OVERHEAD_KIND = 4;
        /// What kind of object it is of.
        OBJECT_KIND = 8;
        /// The thread, where it is of one: `objectId.pt.threadId`.
        THREAD_ID = 16;
        /// When it began, in ns.
        START = 24;
        /// When it ended, in ns.
        END = 32;
        /// The call it belongs to, or 0.
        CORRELATION_ID = 40;
        /// Address of further data, which the reader frees with C's `free`.
        OVERHEAD_DATA = 48;
        /// Size of the record.
        SIZE_3 = 56;
    }
}

/// `CUpti_ActivitySynchronization` and `CUpti_ActivitySynchronization2`.
pub mod synchronization {
    offsets! {
        /// What was waited for, see [`synchronization_type`](super::super::codes::synchronization_type).
        TYPE = 4;
        /// When it began, in ns.
        START = 8;
        /// When it ended, in ns.
        END = 16;
        /// The call that waits.
        CORRELATION_ID = 24;
        /// The context.
        CONTEXT_ID = 28;
        /// The stream, or [`NOT_APPLICABLE`](super::super::codes::NOT_APPLICABLE).
        STREAM_ID = 32;
        /// The event, or the same.
        CUDA_EVENT_ID = 36;
        /// What joins it to the event's record, or the same; from CUDA 12.8.
        CUDA_EVENT_SYNC_ID = 40;
        /// The call's own result; from CUDA 12.8.
        RETURN_VALUE = 48;
        /// Size of the older version.
        SIZE_1 = 40;
        /// Size of `CUpti_ActivitySynchronization2`, CUDA 12.8.
        SIZE_2 = 56;
    }
}

/// `CUpti_ActivityCudaEvent` to `CUpti_ActivityCudaEvent3`.
pub mod cuda_event {
    offsets! {
        /// The call that recorded it.
        CORRELATION_ID = 4;
        /// The context.
        CONTEXT_ID = 8;
        /// The stream it was recorded on.
        STREAM_ID = 12;
        /// The event.
        EVENT_ID = 16;
        /// The device; from CUDA 12.8.
        DEVICE_ID = 24;
        /// When the device came to it, in ns; from CUDA 12.8.
        DEVICE_TIMESTAMP = 40;
        /// What joins a wait to it; from CUDA 12.8.
        CUDA_EVENT_SYNC_ID = 48;
        /// Size of the older version.
        SIZE_1 = 24;
        /// Size of `CUpti_ActivityCudaEvent2`, CUDA 12.8.
        SIZE_2 = 56;
        /// Size of `CUpti_ActivityCudaEvent3`, CUDA 13.5.
        SIZE_3 = 80;
    }
}

/// `CUpti_ActivityStream`.
pub mod stream {
    offsets! {
        /// The context.
        CONTEXT_ID = 4;
        /// The stream.
        STREAM_ID = 8;
        /// Its priority.
        PRIORITY = 12;
        /// What kind it is, see [`stream_flag`](super::super::codes::stream_flag).
        FLAG = 16;
        /// The call that made it.
        CORRELATION_ID = 20;
        /// Size of the record.
        SIZE = 24;
    }
}

/// `CUpti_ActivityContext` and its later versions: what they share.
pub mod context {
    offsets! {
        /// The context.
        CONTEXT_ID = 4;
        /// The device.
        DEVICE_ID = 8;
        /// The default stream's id: `uint16_t`.
        NULL_STREAM_ID = 14;
    }
}

/// `CUpti_ActivityGraphTrace` and `CUpti_ActivityGraphTrace2`: what they share.
pub mod graph_trace {
    offsets! {
        /// The call that asked for it.
        CORRELATION_ID = 4;
        /// When its first node began, in ns.
        START = 8;
        /// When its last node ended, in ns.
        END = 16;
        /// The device that the first node ran on; `INT_MAX` where that is a host node.
        DEVICE_ID = 24;
        /// The executable graph.
        GRAPH_ID = 28;
        /// The context of the first node.
        CONTEXT_ID = 32;
        /// The stream it was launched into.
        STREAM_ID = 36;
        /// Size of `CUpti_ActivityGraphTrace`.
        SIZE_1 = 48;
    }
}

/// `CUpti_ResourceData`, what the callback of a resource is given. Not packed.
pub mod resource_data {
    offsets! {
        /// Address of what describes the resource: of graphs, [`graph_data`](super::graph_data).
        DESCRIPTOR = 16;
        /// Size of the struct.
        SIZE = 24;
    }
}

/// `CUpti_GraphData`, what describes a graph in a resource's callback. Not packed. What does not apply
/// is not said to be null.
pub mod graph_data {
    offsets! {
        /// The graph.
        GRAPH = 0;
        /// What the graph was copied from.
        ORIGINAL_GRAPH = 8;
        /// The node.
        NODE = 16;
        /// What the node was copied from.
        ORIGINAL_NODE = 24;
        /// Type of the node, see [`NODE_TYPES`](super::super::codes::NODE_TYPES).
        NODE_TYPE = 32;
        /// The executable graph.
        EXEC = 48;
        /// Size of the struct.
        SIZE = 56;
    }
}

/// `CUpti_ActivityOverheadCommandBufferFullData`. Not packed.
pub mod command_buffer_full {
    offsets! {
        /// The channel whose buffer was full.
        CHANNEL_ID = 4;
        /// Size of the struct.
        SIZE = 12;
    }
}

/// `CUlaunchConfig` and `CUlaunchAttribute` of `cuda.h`, which `cuLaunchKernelEx` is given. Not packed.
pub mod launch_config {
    offsets! {
        /// Address of the attributes.
        ATTRIBUTES = 40;
        /// How many.
        ATTRIBUTE_COUNT = 48;
        /// Which attribute.
        ATTRIBUTE_ID = 0;
        /// Its value; of a flag an `int`.
        ATTRIBUTE_VALUE = 8;
        /// Size of an attribute.
        ATTRIBUTE_SIZE = 72;
    }
}

/// `CUpti_CallbackData`, what the callback of an API call is given. Not packed.
pub mod callback_data {
    offsets! {
        /// Entering or leaving.
        CALLBACK_SITE = 0;
        /// Address of the function's name.
        FUNCTION_NAME = 8;
        /// Address of the function's parameters, one struct per function.
        FUNCTION_PARAMS = 16;
        /// Address of the function's result; valid when leaving.
        FUNCTION_RETURN_VALUE = 24;
        /// Address of the kernel's name.
        SYMBOL_NAME = 32;
        /// The driver's current context.
        CONTEXT = 40;
        /// Address of a `uint64_t` shared by entering and leaving of one call.
        CORRELATION_DATA = 56;
        /// The call's correlation id.
        CORRELATION_ID = 64;
        /// Size of the struct.
        SIZE = 72;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_beyond_the_end_are_none_and_never_a_panic() {
        let record = Record::new(&[7, 0, 0, 0, 9]);
        assert_eq!(record.kind(), Some(7));
        assert_eq!(record.u8(4), Some(9));
        assert_eq!(record.u8(5), None);
        assert_eq!(record.u32(2), None);
        assert_eq!(record.u64(0), None);
        assert_eq!(record.u64(usize::MAX - 3), None);
        assert_eq!(record.address(usize::MAX), None);
    }
}
