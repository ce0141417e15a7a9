//! What a kernel takes of a multiprocessor, and what a device's multiprocessors have.

/// What a kernel takes beside its grid and block: its record says so, as it was launched.
///
/// Nominal numbers. What the device sets aside for a block is more by an amount that depends on its
/// architecture (registers by the warp, shared memory by the block, and some for the system).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Footprint {
    /// Registers of each thread (`registersPerThread` of CUPTI's kernel records).
    pub registers_per_thread: u32,
    /// Shared memory of each block, in bytes: what the function declares and what the launch asked for
    /// together (`staticSharedMemory` and `dynamicSharedMemory`; Kineto records the sum).
    pub shared_bytes: u32,
    /// Blocks of a cluster, which are placed together (`clusterX` and so on); 1 without clusters,
    /// `None` where not recorded.
    pub blocks_per_cluster: Option<u32>,
}

/// How many multiprocessors a device has, and what each of them holds (`CUdevice_attribute` of
/// `cuda.h`). Each is `None` where not collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Multiprocessors {
    /// How many there are (`…_MULTIPROCESSOR_COUNT`).
    pub count: Option<u32>,
    /// Threads that one holds (`…_MAX_THREADS_PER_MULTIPROCESSOR`).
    pub threads: Option<u32>,
    /// Its registers, of 32 bits (`…_MAX_REGISTERS_PER_MULTIPROCESSOR`).
    pub registers: Option<u32>,
    /// The most shared memory that it can be set to, in bytes
    /// (`…_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR`).
    pub shared_bytes: Option<u32>,
    /// Blocks that one holds (`…_MAX_BLOCKS_PER_MULTIPROCESSOR`, since CUDA 11.0).
    pub blocks: Option<u32>,
}
