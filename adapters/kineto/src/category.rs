//! What an event is, by its category. Kineto's names for the same thing changed over the years;
//! which came when is said beside them.

/// What an event is to the join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Category {
    /// A call of the CUDA or HIP runtime or driver.
    Api,
    /// A kernel.
    Kernel,
    /// A copy.
    Copy,
    /// A memory set.
    Set,
    /// A wait, of a thread or of a stream.
    Synchronization,
    /// An event was recorded on a stream.
    EventRecord,
    /// A range that the application named: `record_function`, `ProfilerStep`.
    Annotation,
    /// Something that needs no join.
    Other,
}

impl Category {
    /// The category of this name.
    pub(crate) fn of(name: &[u8]) -> Self {
        match name {
            // 2020 and 2021; from 2022. HIP's calls are written as CUDA's runtime's.
            b"Runtime" | b"cuda_runtime" | b"cuda_driver" => Self::Api,
            // What other tools write for AMD's, and Kineto for other accelerators.
            b"hip_runtime"
            | b"hip_driver"
            | b"hip_api"
            | b"xpu_runtime"
            | b"xpu_driver"
            | b"privateuse1_runtime"
            | b"privateuse1_driver" => Self::Api,
            b"Kernel" | b"kernel" => Self::Kernel,
            b"Memcpy" | b"gpu_memcpy" => Self::Copy,
            b"Memset" | b"gpu_memset" => Self::Set,
            // From 2023, where the profiler was asked for them.
            b"cuda_sync" => Self::Synchronization,
            // From 2025, likewise.
            b"cuda_event" => Self::EventRecord,
            b"user_annotation" => Self::Annotation,
            _ => Self::Other,
        }
    }
}
