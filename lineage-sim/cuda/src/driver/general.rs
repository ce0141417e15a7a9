//! Initialisation, versions, errors, addresses of functions, and the device's properties.

use std::ffi::{c_char, c_int, c_void};

use crate::call::{self, Asks};
use crate::config::{config, is_configured, model};
use crate::driver::{Out, Text, driver_functions, simulated, unsupported};
use crate::{device, objects, result};

const NAME: &[u8] = b"Simulated GPU (lineage-sim)\0";

/// Each device's own: the last letter counts them.
fn uuid(device: u32) -> [u8; 16] {
    let mut uuid = *b"lineage-sim-gpu0";
    uuid[15] += device as u8;
    uuid
}

/// The device that a number means.
pub(crate) fn check_device(number: c_int) -> Result<u32, u32> {
    let number = u32::try_from(number).map_err(|_| result::INVALID_DEVICE)?;
    if number < model().devices {
        Ok(number)
    } else {
        Err(result::INVALID_DEVICE)
    }
}

fn copy_text(text: &[u8], to: Out<c_char>, bytes: c_int) -> Result<(), u32> {
    to.check()?;
    let room = usize::try_from(bytes).map_err(|_| result::INVALID_VALUE)?;
    if room == 0 {
        return Err(result::INVALID_VALUE);
    }
    let count = text.len().min(room);
    // SAFETY: the caller's place holds `bytes` bytes, and at most that many are written; the last of them is a NUL.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to.pointer(), count);
        to.pointer().add(count - 1).write(0);
    }
    Ok(())
}

/// `CUdevice_attribute`: those of a large data-centre GPU, as far as a program asks for them.
fn attribute(number: u32) -> Result<i32, u32> {
    Ok(match number {
        // Threads per block; block and grid dimensions.
        1..=3 => 1_024,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65_535,
        // Shared memory per block, constant memory, warp, pitch, registers per block.
        8 => 49_152,
        9 => 65_536,
        10 => 32,
        11 => i32::MAX,
        12 => 65_536,
        // Clock in kHz, texture alignment, overlap, multiprocessors.
        13 => 1_980_000,
        14 => 512,
        15 => 1,
        16 => match model().multiprocessors {
            0 => 132,
            count => count as i32,
        },
        // Compute mode: default, or one process at a time.
        20 => {
            if config().exclusive_process == 1 {
                3
            } else {
                0
            }
        }
        // Can map host memory, concurrent kernels, error correction, PCI bus, memory clock and width, second-level cache.
        19 | 31 | 32 | 33 => 1,
        36 => 2_619_000,
        37 => 5_120,
        38 => 52_428_800,
        // Threads per multiprocessor, copy engines, unified addressing.
        39 => model().threads_per_multiprocessor as i32,
        40 => 2,
        41 => 1,
        75 => config().compute_capability_major as i32,
        76 => config().compute_capability_minor as i32,
        // Stream priorities; shared memory and registers per multiprocessor; managed memory.
        78 => 1,
        81 => model().shared_bytes_per_multiprocessor as i32,
        82 => model().registers_per_multiprocessor as i32,
        83 => 1,
        // Cooperative launch, shared memory per block by opt-in, blocks per multiprocessor, reserved shared memory, memory pools.
        95 => 1,
        97 => 232_448,
        106 => model().blocks_per_multiprocessor as i32,
        111 => 1_024,
        115 => 1,
        // Contexts are shared via MPS; since CUDA 12.3.
        133 if config().driver_version >= 12_030 => config().mps as i32,
        133 => return Err(result::INVALID_VALUE),
        // Every other attribute of the headers up to 13.5: absent.
        17..=161 => 0,
        _ => return Err(result::INVALID_VALUE),
    })
}

driver_functions! {
    fn cuInit [1, Asks::NothingYet] (_, flags: u32) {
        if flags != 0 {
            return Err(result::INVALID_VALUE);
        }
        // Opened by somebody else than the loader: there is no device.
        if !is_configured() || !device::start() {
            return Err(result::NO_DEVICE);
        }
        call::watch_forks();
        call::set_initialized();
        Ok(())
    }

    fn cuDriverGetVersion [2, Asks::NothingYet] (_, version: Out<c_int>) {
        version.put(config().driver_version as c_int)
    }

    fn cuGetErrorName [373, Asks::NothingYet] (_, error: u32, text: Out<*const c_char>) {
        let row = result::TABLE.iter().find(|row| row.0 == error);
        text.put(row.map_or(std::ptr::null(), |row| row.1.as_ptr()))?;
        row.map(|_| ()).ok_or(result::INVALID_VALUE)
    }

    fn cuGetErrorString [372, Asks::NothingYet] (_, error: u32, text: Out<*const c_char>) {
        let row = result::TABLE.iter().find(|row| row.0 == error);
        text.put(row.map_or(std::ptr::null(), |row| row.2.as_ptr()))?;
        row.map(|_| ()).ok_or(result::INVALID_VALUE)
    }

    fn cuGetProcAddress [626, Asks::NothingYet] (_, symbol: Text, function: Out<*mut c_void>, _version: c_int, flags: u64) {
        function.put(address_of(symbol, flags)?.ok_or(result::NOT_FOUND)?)
    }

    fn cuGetProcAddress_v2 [677, Asks::NothingYet] (_, symbol: Text, function: Out<*mut c_void>, _version: c_int, flags: u64, status: Out<u32>) {
        match address_of(symbol, flags)? {
            Some(address) => {
                status.put_if_wanted(0);
                function.put(address)
            }
            None => {
                // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                status.put_if_wanted(1);
                function.put(std::ptr::null_mut())?;
                Err(result::NOT_FOUND)
            }
        }
    }

    fn cuDeviceGetCount [4, Asks::Nothing] (_, count: Out<c_int>) {
        count.put(model().devices as c_int)
    }

    fn cuDeviceGet [3, Asks::Nothing] (_, device: Out<c_int>, ordinal: c_int) {
        device.put(check_device(ordinal)? as c_int)
    }

    fn cuDeviceGetName [5, Asks::Nothing] (_, name: Out<c_char>, bytes: c_int, device: c_int) {
        check_device(device)?;
        copy_text(NAME, name, bytes)
    }

    fn cuDeviceGetPCIBusId [332, Asks::Nothing] (_, id: Out<c_char>, bytes: c_int, device: c_int) {
        let device = check_device(device)?;
        let text = format!("0000:{:02X}:00.0\0", device + 1);
        copy_text(text.as_bytes(), id, bytes)
    }

    fn cuDeviceGetUuid [482, Asks::Nothing] (_, uuid: Out<[u8; 16]>, device: c_int) {
        uuid.put(self::uuid(check_device(device)?))
    }

    fn cuDeviceGetUuid_v2 [647, Asks::Nothing] (_, uuid: Out<[u8; 16]>, device: c_int) {
        uuid.put(self::uuid(check_device(device)?))
    }

    fn cuDeviceTotalMem_v2 [259, Asks::Nothing] (_, bytes: Out<usize>, device: c_int) {
        check_device(device)?;
        bytes.put(config().memory_bytes as usize)
    }

    fn cuDeviceGetAttribute [9, Asks::Nothing] (_, value: Out<c_int>, number: u32, device: c_int) {
        check_device(device)?;
        value.put(match number {
            // CU_DEVICE_ATTRIBUTE_PCI_BUS_ID
            33 => device + 1,
            _ => attribute(number)?,
        })
    }

    fn cuDeviceComputeCapability [6, Asks::Nothing] (_, major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        check_device(device)?;
        major.put(config().compute_capability_major as c_int)?;
        minor.put(config().compute_capability_minor as c_int)
    }

    fn cuProfilerStart [308, Asks::Nothing] (_) {
        objects::current_context().map(|_| ())
    }

    fn cuProfilerStop [309, Asks::Nothing] (_) {
        objects::current_context().map(|_| ())
    }
}

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;

/// The internal function that a symbol means: as named, or its newest version.
fn address_of(symbol: Text, flags: u64) -> Result<Option<*mut c_void>, u32> {
    let Ok(symbol) = symbol.get()?.to_str() else {
        return Ok(None);
    };
    let find = |wanted: &str| {
        let simulated = simulated().find(|function| function.name == wanted);
        simulated
            .map(|function| function.address)
            .or_else(|| unsupported::address(wanted))
    };
    let versions = (2..=4).rev().map(|version| format!("{symbol}_v{version}"));
    let names: Vec<String> = versions.chain([symbol.to_owned()]).collect();
    let per_thread = names
        .iter()
        .filter(|_| flags & PER_THREAD != 0)
        .find_map(|name| find(&format!("{name}_ptsz")).or_else(|| find(&format!("{name}_ptds"))));
    let found = per_thread.or_else(|| names.iter().find_map(|name| find(name)));
    Ok(found.map(|address| address.cast_mut().cast()))
}
