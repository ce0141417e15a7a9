//! Why a trace could not be imported.

use std::fmt;
use std::io;

use lineage_import::{CollectError, Recording};

/// A trace could not be imported, or not to its end.
///
/// Where a list of events was found, what was read of it comes along as a
/// [recording](Self::into_partial) that says itself that it is not whole: a trace that a killed
/// process left behind is worth a look, and never passes for a good one.
pub struct ImportError {
    kind: ImportErrorKind,
    partial: Option<Box<Recording>>,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportErrorKind {
    /// The file cannot be opened.
    #[error("the file cannot be opened: {0}")]
    Open(#[source] io::Error),
    /// The file cannot be read on.
    #[error("the file cannot be read on: {0}")]
    Read(#[source] io::Error),
    /// The file holds something else than a trace.
    #[error(
        "this is no trace of Kineto's: JSON with a list `traceEvents` was expected, or a bare list of events, or gzip of either"
    )]
    NotATrace,
    /// The text ends before the trace does.
    #[error(
        "the trace is cut off after {text_bytes} bytes of text: the recorder was stopped, or the file was not copied whole; record or copy it again"
    )]
    Truncated {
        /// Bytes of text, decompressed, up to the cut.
        text_bytes: u64,
    },
    /// The text is no JSON.
    #[error("the text is no JSON at byte {at}: {expected}")]
    Malformed {
        /// Where, in bytes of the decompressed text.
        at: u64,
        /// What was expected there.
        expected: &'static str,
    },
    /// The compressed file is damaged.
    #[error("the gzip file is damaged, after {text_bytes} bytes of text: {source}")]
    Damaged {
        /// Bytes of text, decompressed, before the damage.
        text_bytes: u64,
        /// What the decompressor says.
        #[source]
        source: io::Error,
    },
    /// The file decompresses to more than [the settings](crate::Settings::text_bytes_at_most)
    /// allow.
    #[error(
        "the file decompresses to more than {limit} bytes: allow more if it is to be trusted, for it may have been made to fill the machine"
    )]
    TooMuchText {
        /// The limit, in bytes.
        limit: u64,
    },
    /// Records could not be kept.
    #[error(transparent)]
    Collect(#[from] CollectError),
}

impl ImportError {
    pub(crate) const fn new(kind: ImportErrorKind) -> Self {
        Self {
            kind,
            partial: None,
        }
    }

    pub(crate) fn with_partial(kind: ImportErrorKind, partial: Recording) -> Self {
        Self {
            kind,
            partial: Some(Box::new(partial)),
        }
    }

    /// What went wrong.
    pub const fn kind(&self) -> &ImportErrorKind {
        &self.kind
    }

    /// What was read before that, if a list of events was found.
    pub fn into_partial(self) -> Option<Recording> {
        self.partial.map(|recording| *recording)
    }
}

impl From<CollectError> for ImportError {
    fn from(error: CollectError) -> Self {
        Self::new(error.into())
    }
}

impl fmt::Debug for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportError")
            .field("kind", &self.kind)
            .field("has_partial", &self.partial.is_some())
            .finish()
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.kind)
    }
}
