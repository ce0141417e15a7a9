//! Why a question has no answer.

use cudarc::driver::DriverError;
use lineage_cupti::sys::LoadError;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("no libcupti: {0}")]
    NoCupti(#[from] LoadError),
    #[error("no libcuda: the NVIDIA driver's library is not installed here")]
    NoDriver,
    #[error("{call} failed: {}", in_words(error))]
    Driver {
        call: &'static str,
        error: DriverError,
    },
    #[error("{function} failed with code {code} ({meaning})")]
    Cupti {
        function: &'static str,
        code: u32,
        meaning: String,
    },
    #[error("{function} of the CUDA runtime failed with code {code}")]
    Runtime { function: &'static str, code: u32 },
    #[error("the simulated gpu does not start: {0}")]
    Simulator(String),
    #[error("{0}")]
    Unexpected(String),
    /// There is nothing to ask here: recorded as skipped, not as failed.
    #[error("{0}")]
    Skipped(String),
}

impl Failure {
    pub fn unexpected(what: impl Into<String>) -> Self {
        Self::Unexpected(what.into())
    }
}

/// The driver's own name of the error where it gives one.
fn in_words(error: &DriverError) -> String {
    let code = error.0 as u32;
    match error.error_name() {
        Ok(name) => format!("{} (code {code})", name.to_string_lossy()),
        Err(_) => format!("code {code}"),
    }
}
