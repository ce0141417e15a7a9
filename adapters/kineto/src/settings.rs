//! How a trace is imported.

/// How a trace is imported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// What both importers share: candidate epochs, memory.
    pub collect: lineage_import::Settings,
    /// Bytes of decompressed text beyond which a file is refused. Default 64 GiB: a trace that
    /// large takes minutes, and a gzip file of 64 MiB may hold it.
    pub text_bytes_at_most: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            collect: lineage_import::Settings::default(),
            text_bytes_at_most: 64 << 30,
        }
    }
}

impl Settings {
    /// With these settings of what is collected.
    #[must_use]
    pub fn collect(mut self, collect: lineage_import::Settings) -> Self {
        self.collect = collect;
        self
    }

    /// With this limit of decompressed text.
    #[must_use]
    pub const fn text_bytes_at_most(mut self, bytes: u64) -> Self {
        self.text_bytes_at_most = bytes;
        self
    }
}

impl From<lineage_import::Settings> for Settings {
    fn from(collect: lineage_import::Settings) -> Self {
        Self::default().collect(collect)
    }
}
