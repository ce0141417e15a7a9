//! What each device is like, as the driver tells it: how many engines copy, what its multiprocessors hold,
//! and who else can have it.
//!
//! Attributes of `CUdevice_attribute` (`cuda.h`), asked for by `cuDeviceGetAttribute`, which looks things
//! up and waits for nothing. A driver that does not know an attribute says so, and it is not known then.

use std::ffi::c_int;
use std::sync::OnceLock;

use lineage_core::observation::{DeviceDescribed, Multiprocessors, Tenancy};

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSOR_COUNT: u32 = 16;
/// `CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT`: kernels may not run for long, as where a screen hangs on
/// the device, which others draw on then.
const KERNEL_EXEC_TIMEOUT: u32 = 17;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE`.
const COMPUTE_MODE: u32 = 20;
/// `CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR`.
const THREADS_PER_MULTIPROCESSOR: u32 = 39;
/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR`, in bytes.
const SHARED_BYTES_PER_MULTIPROCESSOR: u32 = 81;
/// `CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR`.
const REGISTERS_PER_MULTIPROCESSOR: u32 = 82;
/// `CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR`, since CUDA 11.0.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 106;
/// `CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT`.
const ASYNC_ENGINE_COUNT: u32 = 40;
/// `CU_DEVICE_ATTRIBUTE_MPS_ENABLED`, since CUDA 12.3: contexts on the device are shared via MPS.
const MPS_ENABLED: u32 = 133;
/// `CU_COMPUTEMODE_EXCLUSIVE_PROCESS`: one process at a time.
const EXCLUSIVE_PROCESS: c_int = 3;

/// `cuDeviceGetCount`.
type GetCount = unsafe extern "C" fn(*mut c_int) -> u32;
/// `cuDeviceGet`: device, ordinal.
type Get = unsafe extern "C" fn(*mut c_int, c_int) -> u32;
/// `cuDeviceGetAttribute`: value, attribute, device.
type GetAttribute = unsafe extern "C" fn(*mut c_int, u32, c_int) -> u32;

/// The driver's functions.
struct Driver {
    get_count: GetCount,
    get: Get,
    get_attribute: GetAttribute,
}

impl Driver {
    /// Looked up once the application has loaded the driver: nobody loads it for this.
    fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Driver> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Some(found);
        }
        let library = crate::driver::loaded()?;
        // SAFETY: in every libcuda these names have these signatures (`cuda.h`).
        let found = unsafe {
            Self {
                get_count: *library.get::<GetCount>(b"cuDeviceGetCount\0").ok()?,
                get: *library.get::<Get>(b"cuDeviceGet\0").ok()?,
                get_attribute: *library
                    .get::<GetAttribute>(b"cuDeviceGetAttribute\0")
                    .ok()?,
            }
        };
        Some(FOUND.get_or_init(|| found))
    }

    /// `None` where the driver was not initialised yet.
    fn count(&self) -> Option<u32> {
        let mut count = 0;
        // SAFETY: a valid place.
        let code = unsafe { (self.get_count)(&mut count) };
        u32::try_from(count).ok().filter(|_| code == 0)
    }

    fn describe(&self, number: u32) -> DeviceDescribed {
        let ordinal = c_int::try_from(number).unwrap_or(c_int::MAX);
        let attribute = |attribute: u32| {
            let (mut device, mut value) = (0, 0);
            // SAFETY: valid places; a wrong ordinal or attribute has a code.
            let code = unsafe {
                match (self.get)(&mut device, ordinal) {
                    0 => (self.get_attribute)(&mut value, attribute, device),
                    code => code,
                }
            };
            (code == 0).then_some(value)
        };
        let count = |of: u32| attribute(of).and_then(|count| u32::try_from(count).ok());
        let multiprocessors = Multiprocessors {
            count: count(MULTIPROCESSOR_COUNT),
            threads: count(THREADS_PER_MULTIPROCESSOR),
            registers: count(REGISTERS_PER_MULTIPROCESSOR),
            shared_bytes: count(SHARED_BYTES_PER_MULTIPROCESSOR),
            blocks: count(BLOCKS_PER_MULTIPROCESSOR),
        };
        DeviceDescribed {
            device: number,
            copy_engines: count(ASYNC_ENGINE_COUNT),
            tenancy: tenancy(
                attribute(COMPUTE_MODE),
                attribute(MPS_ENABLED),
                attribute(KERNEL_EXEC_TIMEOUT),
            ),
            multiprocessors: Some(multiprocessors).filter(|of| *of != Multiprocessors::default()),
        }
    }
}

/// Exclusive is what is said to be so in all that is asked. An exclusive mode under MPS is the MPS
/// server's, which lets others in; and it keeps no one from drawing.
fn tenancy(mode: Option<c_int>, mps: Option<c_int>, timeout: Option<c_int>) -> Option<Tenancy> {
    match (mode?, mps, timeout) {
        (EXCLUSIVE_PROCESS, Some(0), Some(0)) => Some(Tenancy::Exclusive),
        (EXCLUSIVE_PROCESS, None, _) | (EXCLUSIVE_PROCESS, _, None) => None,
        _ => Some(Tenancy::Shared),
    }
}

/// What every device is like; `None` as long as the application has not initialised the driver.
pub(super) fn describe() -> Option<Vec<DeviceDescribed>> {
    let driver = Driver::get()?;
    let count = driver.count()?;
    Some((0..count).map(|number| driver.describe(number)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_has_a_device_only_where_all_of_it_is_known() {
        let exclusive = Some(EXCLUSIVE_PROCESS);
        for (mode, mps, timeout, expected) in [
            (exclusive, Some(0), Some(0), Some(Tenancy::Exclusive)),
            // An MPS server has it exclusively, for others as well.
            (exclusive, Some(1), Some(0), Some(Tenancy::Shared)),
            // A screen hangs on it.
            (exclusive, Some(0), Some(1), Some(Tenancy::Shared)),
            // A driver from before CUDA 12.3.
            (exclusive, None, Some(0), None),
            (exclusive, Some(0), None, None),
            // `CU_COMPUTEMODE_DEFAULT`.
            (Some(0), Some(0), Some(0), Some(Tenancy::Shared)),
            (None, Some(0), Some(0), None),
        ] {
            assert_eq!(
                tenancy(mode, mps, timeout),
                expected,
                "{mode:?} {mps:?} {timeout:?}"
            );
        }
    }
}
