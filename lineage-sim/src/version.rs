/// The version of CUPTI that the simulated `libcupti.so` answers with: its record layouts, its behaviour, its symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CuptiVersion {
    /// CUPTI of CUDA 12.0: version 18, kernel record 9 (208 bytes); calls cannot be chosen one by one.
    V12_0,
    /// CUPTI of CUDA 12.4: version 22. Overhead records have data that their reader frees.
    V12_4,
    /// CUPTI of CUDA 12.9 Update 1: version 28, one activity buffer for all threads. Waits say which record call of an event
    /// they waited for (since 12.8).
    #[default]
    V12_9,
    /// CUPTI of CUDA 13.0: version 130000, kernel record 10 (216 bytes), a buffer per thread; device times of events.
    V13_0,
    /// CUPTI of CUDA 13.1: version 130100, kernel record 11 (224 bytes), with the priority.
    V13_1,
    /// CUPTI of CUDA 13.4: version 130400, kernel record 13 (248 bytes), with the graph's source node; functions that
    /// take a subscriber.
    V13_4,
    /// CUPTI of CUDA 13.5: version 130500. Event records tell of graphs.
    V13_5,
}

impl CuptiVersion {
    /// All of them, the oldest first.
    pub const ALL: [Self; 7] = [
        Self::V12_0,
        Self::V12_4,
        Self::V12_9,
        Self::V13_0,
        Self::V13_1,
        Self::V13_4,
        Self::V13_5,
    ];

    /// What `cuptiGetVersion` answers. The real library of 12.0 answers 18, as that of 11.8 does.
    pub fn number(self) -> u32 {
        match self {
            Self::V12_0 => 18,
            Self::V12_4 => 22,
            Self::V12_9 => 28,
            Self::V13_0 => 130_000,
            Self::V13_1 => 130_100,
            Self::V13_4 => 130_400,
            Self::V13_5 => 130_500,
        }
    }

    /// What `cuDriverGetVersion` answers beside it.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "there is no gpu elsewhere")
    )]
    pub(crate) fn driver_number(self) -> u32 {
        match self {
            Self::V12_0 => 12_000,
            Self::V12_4 => 12_040,
            Self::V12_9 => 12_090,
            Self::V13_0 => 13_000,
            Self::V13_1 => 13_010,
            Self::V13_4 => 13_040,
            Self::V13_5 => 13_050,
        }
    }

    /// Whether buffers are per thread unless the client says otherwise.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "there is no gpu elsewhere")
    )]
    pub(crate) fn has_buffers_per_thread(self) -> bool {
        self >= Self::V13_0
    }
}
