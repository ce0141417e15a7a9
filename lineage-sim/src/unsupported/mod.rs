//! The functions that exist and do nothing, by name.

#[cfg(target_os = "linux")]
mod cupti;
#[cfg(target_os = "linux")]
mod driver;

use crate::version::CuptiVersion;

/// Which functions of the simulated libraries exist and answer "not supported", whatever they are asked: see [`not_supported`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotSupported {
    /// Functions of the driver, by name in alphabetical order: they answer [`NotSupported::DRIVER_CODE`].
    pub driver: Vec<&'static str>,
    /// Functions of CUPTI, by name in alphabetical order: they answer [`NotSupported::CUPTI_CODE`].
    pub cupti: Vec<&'static str>,
}

impl NotSupported {
    /// `CUDA_ERROR_NOT_SUPPORTED` of `cuda.h`.
    pub const DRIVER_CODE: u32 = 801;
    /// `CUPTI_ERROR_NOT_SUPPORTED` of `cupti_result.h`.
    pub const CUPTI_CODE: u32 = 27;
}

/// Lists the functions that exist in the simulated libraries and answer "not supported".
///
/// A program that calls one of these on the simulated GPU gets the error that a real driver gives where a device lacks a feature; this tells
/// a test that fails with 801 or 27 whether the simulator is the reason. Every other function of the driver
/// (CUDA 12.9 and 13.x) and of CUPTI is simulated as `docs/simulator.md` says. The driver's functions
/// are the same for all versions; of CUPTI's, `version` has those that the real library of that version exports.
///
/// Needs no GPU and loads nothing. Elsewhere than on Linux there are no simulated libraries, and the lists are empty.
///
/// ```
/// use lineage_sim::{CuptiVersion, not_supported};
///
/// let functions = not_supported(CuptiVersion::V12_9);
/// # if cfg!(target_os = "linux") {
/// assert!(functions.driver.contains(&"cuMulticastCreate"));
/// # }
/// assert!(!functions.driver.contains(&"cuLaunchKernel"));
/// ```
#[must_use]
pub fn not_supported(version: CuptiVersion) -> NotSupported {
    platform::not_supported(version)
}

#[cfg(target_os = "linux")]
mod platform {
    use std::collections::BTreeSet;

    use super::{NotSupported, cupti, driver};
    use crate::symbols;
    use crate::version::CuptiVersion;

    macro_rules! names {
        ($($name:ident)*) => { &[$(stringify!($name)),*] };
    }

    static DRIVER: &[&str] = driver::unsupported_driver_functions!(names);
    static CUPTI: &[&str] = cupti::unsupported_cupti_functions!(names);

    pub(super) fn not_supported(version: CuptiVersion) -> NotSupported {
        let missing: BTreeSet<&str> = symbols::missing_in(version).collect();
        let exists = |name: &&'static str| !missing.contains(*name);
        NotSupported {
            driver: DRIVER.to_vec(),
            cupti: CUPTI.iter().copied().filter(exists).collect(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::NotSupported;
    use crate::version::CuptiVersion;

    pub(super) fn not_supported(_version: CuptiVersion) -> NotSupported {
        NotSupported::default()
    }
}
