//! Why a session could not start, in words for the person who runs the server.

use crate::probe::Driver;
use crate::sys::codes::result;
use crate::sys::{Library, LoadError};

/// Why no evidence can be collected.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(
        "this process is a fork of one that recorded, and CUDA does not work in forks: start the \
         worker with exec, or start lineage after the fork"
    )]
    ForkedChild,
    #[error("another session of lineage in this process has CUPTI: shut it down first")]
    SessionAlive,
    #[error("{error}{advice}")]
    Load { error: LoadError, advice: String },
    #[error(
        "another subscriber has CUPTI (code 39): a profiler such as Nsight Systems, PyTorch's or \
         cuda-gdb is attached to this process; run without it to get evidence from lineage"
    )]
    OtherSubscriber,
    #[error("{function} of {library} failed with {code}{advice}")]
    Call {
        function: &'static str,
        library: String,
        code: String,
        advice: String,
    },
    #[error(
        "no driver function can be watched: cuptiEnableCallback of {library} failed for all of \
         them, the last time with {code}; report this with the versions of CUDA and the driver"
    )]
    NoCallbacks { library: String, code: String },
}

impl StartError {
    pub(super) fn load(error: LoadError) -> Self {
        let advice = match &error {
            LoadError::VersionUnknown { code, .. } => advice_for(*code, None),
            _ => String::new(),
        };
        Self::Load { error, advice }
    }

    /// A function of CUPTI failed with this code.
    pub(super) fn call(function: &'static str, library: &Library, code: u32) -> Self {
        if code == result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED {
            return Self::OtherSubscriber;
        }
        Self::Call {
            function,
            library: describe(library),
            code: describe_code(library, code),
            advice: advice_for(code, Some(library.version())),
        }
    }
}

/// A library with its version.
pub(super) fn describe(library: &Library) -> String {
    format!("{} (CUPTI version {})", library.path(), library.version())
}

/// A code with its meaning, and CUPTI's own words where it has some.
pub(super) fn describe_code(library: &Library, code: u32) -> String {
    match (result::meaning(code), library.message(code)) {
        (Some(meaning), _) => format!("code {code} ({meaning})"),
        (None, Some(message)) => format!("code {code} ({message})"),
        (None, None) => format!("code {code}"),
    }
}

/// What to do about a code. `cupti` is CUPTI's version, where it is known.
fn advice_for(code: u32, cupti: Option<u32>) -> String {
    match code {
        // CUPTI 12 answers the first, CUPTI 13 the second, where there is no driver or no device.
        result::NOT_INITIALIZED | result::UNKNOWN => {
            format!(": {}", advice_of(&Driver::ask(), cupti))
        }
        result::INSUFFICIENT_PRIVILEGES | result::VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES => {
            ": this user may not profile the GPU; see NVIDIA's page on ERR_NVGPUCTRPERM".into()
        }
        result::VIRTUALIZED_DEVICE_NOT_SUPPORTED => {
            ": profiling is not enabled for this virtual GPU; ask its administrator".into()
        }
        result::CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => {
            ": tracing needs the developer-tools mode of confidential computing".into()
        }
        _ => String::new(),
    }
}

/// What the driver has to do with it, asked only after CUPTI failed. `cupti` as above.
fn advice_of(driver: &Driver, cupti: Option<u32>) -> String {
    let version = match driver {
        Driver::Absent | Driver::NotSupported => {
            return "there is no NVIDIA driver here (libcuda.so.1 is not found); install it, or \
                    run on a machine with a GPU"
                .into();
        }
        Driver::Failed { version, .. } | Driver::Works { version, .. } => *version,
    };
    // CUDA 13 and later say their version in CUPTI's.
    let needs = cupti.map_or(0, |cupti| cupti / 10_000);
    let too_old = if version.major() < needs {
        format!("; CUPTI of CUDA {needs} needs a driver for CUDA {needs}")
    } else {
        String::new()
    };
    let said = format!("the NVIDIA driver (for CUDA {version})");
    match driver {
        Driver::Failed { code, .. } => format!(
            "{said} does not start: cuInit answers {code} ({}); run nvidia-smi to see whether \
             it sees a device{too_old}",
            Driver::failure_meaning(*code)
        ),
        _ if too_old.is_empty() => format!(
            "{said} works; a CUPTI of a newer CUDA needs a newer driver, and an attached \
             debugger or profiler keeps CUPTI out"
        ),
        _ => format!("{said} works{too_old}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::DriverVersion;

    #[test]
    fn advice_names_the_driver_its_version_and_its_answer() {
        let failed = Driver::Failed {
            code: 100,
            version: DriverVersion(12_040),
        };
        let text = advice_of(&failed, Some(28));
        assert!(text.contains("for CUDA 12.4"), "{text}");
        assert!(text.contains("cuInit answers 100 (no device)"), "{text}");
        assert!(!text.contains("needs a driver"), "{text}");
        let text = advice_of(&failed, Some(130_500));
        assert!(
            text.ends_with("CUPTI of CUDA 13 needs a driver for CUDA 13"),
            "{text}"
        );
        let works = |version| Driver::Works {
            version: DriverVersion(version),
            devices: Vec::new(),
        };
        let text = advice_of(&works(13_050), Some(130_500));
        assert!(text.contains("for CUDA 13.5) works; a CUPTI"), "{text}");
        let text = advice_of(&works(12_090), Some(130_000));
        assert!(
            text.contains("CUDA 13 needs a driver for CUDA 13"),
            "{text}"
        );
        assert!(advice_of(&Driver::Absent, None).contains("no NVIDIA driver"));
    }

    #[test]
    fn an_unanswered_version_is_explained_by_the_driver() {
        let error = StartError::load(LoadError::VersionUnknown {
            code: 999,
            path: "libcupti.so.13".into(),
        });
        let text = error.to_string();
        assert!(
            text.contains("cuptiGetVersion of libcupti.so.13 failed with code 999"),
            "{text}"
        );
        assert!(text.contains("driver"), "{text}");
    }
}
