//! What may go wrong while records are collected.

use std::io;

/// Records could not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// The temporary file for records that do not fit into memory failed.
    #[error(
        "a temporary file for records that do not fit into memory cannot be {doing} in {}: {source}; make room there, or set TMPDIR to a directory that has some",
        std::env::temp_dir().display()
    )]
    Spill {
        /// `made`, `written` or `read`.
        doing: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl CollectError {
    pub(crate) fn spill(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Spill { doing, source }
    }
}
