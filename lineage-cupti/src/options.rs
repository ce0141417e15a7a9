//! What a session can be told.

use std::path::PathBuf;

use crate::sys::codes::external_kind;

/// Under which of CUPTI's kinds external correlation ids are pushed.
///
/// CUPTI keeps a stack per thread and kind, so two tools that push under the same kind take each
/// other's ids. Kineto, the profiler of `PyTorch`, uses the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ExternalKind {
    /// `CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0`.
    Custom0,
    /// `CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1`.
    Custom1,
    /// `CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2`.
    #[default]
    Custom2,
}

impl ExternalKind {
    /// CUPTI's number of the kind.
    pub const fn number(self) -> u32 {
        match self {
            Self::Custom0 => external_kind::CUSTOM0,
            Self::Custom1 => external_kind::CUSTOM1,
            Self::Custom2 => external_kind::CUSTOM2,
        }
    }
}

/// Which API calls CUPTI records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RecordedCalls {
    /// Those that ask for GPU work ([`work`](crate::work)), where CUPTI can tell them apart (from
    /// CUDA 12.5 on); else all.
    #[default]
    Launches,
    /// Those that ask for GPU work, as above; all, as soon as it shows that CUPTI writes no external
    /// correlation ids for calls that are chosen one by one. Whether it does is not documented.
    LaunchesOrAll,
    /// All. A loop that launches little and asks much becomes many times slower.
    All,
}

/// What a session was told.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) external_kind: ExternalKind,
    pub(crate) recorded_calls: RecordedCalls,
    pub(crate) graph_level: bool,
    pub(crate) buffer_bytes: usize,
    pub(crate) buffer_limit: usize,
    pub(crate) library: Option<PathBuf>,
}

impl Options {
    /// CUPTI's advice is 1 to 10 MiB a buffer.
    const DEFAULT_BUFFER_BYTES: usize = 1 << 20;
    /// Every launching thread may hold one (CUDA 13), and a drain's worth may wait.
    const DEFAULT_BUFFER_LIMIT: usize = 128;
    /// No more buffers can be managed.
    pub(crate) const MAX_BUFFERS: usize = 1024;
    /// A multiple of this is what buffers are aligned to; CUPTI asks for 8.
    pub(crate) const BUFFER_ALIGNMENT: usize = 64;

    pub(crate) fn set_buffer_bytes(&mut self, bytes: usize) {
        let bytes = bytes.clamp(Self::BUFFER_ALIGNMENT, 1 << 30);
        self.buffer_bytes = bytes.next_multiple_of(Self::BUFFER_ALIGNMENT);
    }

    pub(crate) fn set_buffer_limit(&mut self, buffers: usize) {
        self.buffer_limit = buffers.clamp(1, Self::MAX_BUFFERS);
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            external_kind: ExternalKind::default(),
            recorded_calls: RecordedCalls::default(),
            graph_level: false,
            buffer_bytes: Self::DEFAULT_BUFFER_BYTES,
            buffer_limit: Self::DEFAULT_BUFFER_LIMIT,
            library: None,
        }
    }
}
