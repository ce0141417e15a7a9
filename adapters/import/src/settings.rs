//! How a recording is imported.

/// What a recording's candidate epochs are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EpochsFrom {
    /// There are none: joins end at the call.
    #[default]
    Nothing,
    /// NVTX ranges.
    Nvtx,
    /// The user's annotations, as `record_function` makes them.
    Annotations,
    /// Ranges with which a request id was recorded.
    RequestIds,
}

/// How a recording is imported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// What candidate epochs are made of.
    pub epochs_from: EpochsFrom,
    /// Only ranges whose text contains this become candidates.
    pub epoch_name: Option<String>,
    /// Records of each of two sorts (calls and operations; scheduler, ranges and graph nodes) that
    /// are held in memory before they go to a temporary file; 112 bytes each. Default 262,144.
    pub records_in_memory: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            epochs_from: EpochsFrom::Nothing,
            epoch_name: None,
            records_in_memory: 1 << 18,
        }
    }
}

impl Settings {
    /// With candidate epochs made of these.
    #[must_use]
    pub const fn epochs_from(mut self, epochs_from: EpochsFrom) -> Self {
        self.epochs_from = epochs_from;
        self
    }

    /// With candidate epochs only of ranges whose text contains this.
    #[must_use]
    pub fn epoch_name(mut self, text: impl Into<String>) -> Self {
        self.epoch_name = Some(text.into());
        self
    }

    /// With this many records of each sort in memory, and at least one.
    #[must_use]
    pub const fn records_in_memory(mut self, records: usize) -> Self {
        self.records_in_memory = records;
        self
    }
}
