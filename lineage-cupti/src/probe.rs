//! What the machine has, asked without recording anything: for `lineage doctor`, and for the
//! advice that goes with a failure.

/// What NVIDIA's driver says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Driver {
    /// Drivers are only looked for on Linux, and where recording is compiled in.
    NotSupported,
    /// The loader finds neither `libcuda.so.1` nor `libcuda.so`, or what it finds is no driver.
    Absent,
    /// `cuInit` failed.
    Failed {
        /// What it answered, a `CUresult` of `cuda.h`.
        code: u32,
        /// The newest CUDA that the driver is for.
        version: DriverVersion,
    },
    /// `cuInit` succeeded.
    Works {
        /// The newest CUDA that the driver is for.
        version: DriverVersion,
        /// Names of the devices that this process may use, by ordinal.
        devices: Vec<String>,
    },
}

/// A version of CUDA as `cuDriverGetVersion` answers it: 12040 is 12.4. 0 where it answered
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion(pub u32);

impl DriverVersion {
    /// The major version.
    pub const fn major(self) -> u32 {
        self.0 / 1000
    }
}

/// As people write it, for example `12.4`.
impl std::fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major(), self.0 % 1000 / 10)
    }
}

impl Driver {
    /// Loads the driver and asks it. It stays loaded: whoever else is in the process may be using
    /// it. Initialises CUDA in this process, so a program that records asks after its session has
    /// started.
    pub fn ask() -> Self {
        ask()
    }

    /// What a failure of `cuInit` means, in a few words.
    pub const fn failure_meaning(code: u32) -> &'static str {
        match code {
            2 => "out of memory",
            3 => "not initialized",
            34 => "a stub library in place of the driver",
            46 => "device unavailable",
            100 => "no device",
            304 => "the operating system refused a call",
            802 => "system not ready",
            803 => "driver and kernel module do not match",
            804 => "forward compatibility is not supported on this GPU",
            999 => "unknown error",
            _ => "see CUresult in cuda.h",
        }
    }
}

#[cfg(not(all(target_os = "linux", feature = "record")))]
const fn ask() -> Driver {
    Driver::NotSupported
}

#[cfg(all(target_os = "linux", feature = "record"))]
fn ask() -> Driver {
    use std::ffi::{c_int, c_uint};

    type Init = unsafe extern "C" fn(c_uint) -> c_uint;
    type Number = unsafe extern "C" fn(*mut c_int) -> c_uint;

    let Some(library) = crate::driver::load() else {
        return Driver::Absent;
    };
    let number = |symbol: &[u8]| {
        let mut answer: c_int = 0;
        // SAFETY: the functions asked for take one valid place for an `int`, in every libcuda, and
        // may be called on any thread.
        let code = unsafe { library.get::<Number>(symbol).map(|ask| ask(&mut answer)) };
        match code {
            Ok(0) => u32::try_from(answer).ok(),
            _ => None,
        }
    };
    // SAFETY: `cuInit` has this signature in every libcuda, and may be called at any time.
    let init = unsafe { library.get::<Init>(b"cuInit\0").map(|init| init(0)) };
    let version = DriverVersion(number(b"cuDriverGetVersion\0").unwrap_or(0));
    match init {
        Ok(0) => {
            let count = number(b"cuDeviceGetCount\0").unwrap_or(0);
            let devices = (0..count.min(1024)).map(|ordinal| device_name(&library, ordinal));
            Driver::Works {
                version,
                devices: devices.collect(),
            }
        }
        Ok(code) => Driver::Failed { code, version },
        Err(_) => Driver::Absent,
    }
}

/// The name of a device; its ordinal where the driver gives none.
#[cfg(all(target_os = "linux", feature = "record"))]
fn device_name(library: &libloading::os::unix::Library, ordinal: u32) -> String {
    use std::ffi::{CStr, c_char, c_int, c_uint};

    type Get = unsafe extern "C" fn(*mut c_int, c_int) -> c_uint;
    type Name = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_uint;

    let unnamed = || format!("device {ordinal}");
    let (mut device, mut name) = (0, [0_u8; 256]);
    // SAFETY: both functions have these signatures in every libcuda. The name is written into a
    // place of the length that is given.
    let code = unsafe {
        let (Ok(get), Ok(ask)) = (
            library.get::<Get>(b"cuDeviceGet\0"),
            library.get::<Name>(b"cuDeviceGetName\0"),
        ) else {
            return unnamed();
        };
        match get(&mut device, ordinal as c_int) {
            0 => ask(name.as_mut_ptr().cast(), name.len() as c_int, device),
            code => code,
        }
    };
    match CStr::from_bytes_until_nul(&name) {
        Ok(name) if code == 0 => name.to_string_lossy().into_owned(),
        _ => unnamed(),
    }
}

/// The CUDA toolkit that a version of CUPTI belongs to, for a person: 28 is `12.9 Update 1`.
/// Source: the comments of
/// `cupti_version.h`, but for 18, which the libraries of 12.0 and 12.1 answer, too.
pub fn cupti_toolkit(version: u32) -> String {
    let named = match version {
        18 => "11.8 to 12.1",
        19 => "12.0",
        20 => "12.2",
        21 => "12.3",
        22 => "12.4",
        23 => "12.5",
        24 => "12.6",
        25 => "12.6 to 12.8",
        26 => "12.8",
        27 => "12.9",
        28 => "12.9 Update 1",
        130_000.. => {
            return format!("{}.{}", version / 10_000, version / 100 % 100);
        }
        _ => "unknown",
    };
    named.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(DriverVersion(12_040).to_string(), "12.4");
        assert_eq!(DriverVersion(13_010).major(), 13);
        assert_eq!(cupti_toolkit(28), "12.9 Update 1");
        assert_eq!(cupti_toolkit(130_501), "13.5");
        assert_eq!(cupti_toolkit(7), "unknown");
    }
}
