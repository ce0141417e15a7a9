//! Activity attributes: accepted and kept; only the one about buffers per thread changes anything.

use std::ffi::c_void;
use std::sync::Mutex;

use crate::cupti::{buffers, result};
use crate::sync::lock;

const PER_THREAD_ACTIVITY_BUFFER: u32 = 9;

/// Size in bytes and default value by number, as the headers have them.
const ATTRIBUTES: [(u32, usize, u64); 11] = [
    // device buffer size, device buffer size for dynamic parallelism, pool limit
    (0, 8, 3_200_000),
    (1, 8, 8 << 20),
    (2, 8, 250),
    // profiling semaphore pool size and limit
    (3, 8, 25_000),
    (4, 8, 250),
    // zeroed out activity buffer
    (5, 1, 0),
    // pre-allocated device buffers and semaphore pools
    (6, 8, 3),
    (7, 8, 3),
    // pinned host memory for device buffers
    (8, 1, 0),
    (PER_THREAD_ACTIVITY_BUFFER, 1, 0),
    // device buffer size for device graphs
    (10, 8, 16 << 20),
];

static SET: Mutex<[Option<u64>; ATTRIBUTES.len()]> = Mutex::new([None; ATTRIBUTES.len()]);

fn find(attribute: u32) -> Result<(usize, usize, u64), u32> {
    let at = ATTRIBUTES
        .iter()
        .position(|(number, _, _)| *number == attribute);
    let at = at.ok_or(result::INVALID_PARAMETER)?;
    Ok((at, ATTRIBUTES[at].1, ATTRIBUTES[at].2))
}

/// # Safety
///
/// `size` must be null or valid; `value` must hold as many bytes as `size` says.
pub(crate) unsafe fn set(
    attribute: u32,
    size: *const usize,
    value: *const c_void,
) -> Result<(), u32> {
    if size.is_null() || value.is_null() {
        return Err(result::INVALID_PARAMETER);
    }
    let (at, bytes, _) = find(attribute)?;
    // SAFETY: not null, and valid by this function's own contract.
    if unsafe { size.read() } < bytes {
        return Err(result::PARAMETER_SIZE_NOT_SUFFICIENT);
    }
    let mut number = [0; 8];
    // SAFETY: `value` holds at least `bytes` bytes.
    unsafe { std::ptr::copy_nonoverlapping(value.cast(), number.as_mut_ptr(), bytes) };
    let number = u64::from_le_bytes(number);
    lock(&SET)[at] = Some(number);
    if attribute == PER_THREAD_ACTIVITY_BUFFER {
        buffers::set_per_thread(number != 0);
    }
    Ok(())
}

/// # Safety
///
/// `size` must be null or valid; `value` must be writable for as many bytes as `size` says.
pub(crate) unsafe fn get(attribute: u32, size: *mut usize, value: *mut c_void) -> Result<(), u32> {
    if size.is_null() || value.is_null() {
        return Err(result::INVALID_PARAMETER);
    }
    let (at, bytes, default) = find(attribute)?;
    // SAFETY: not null, and valid by this function's own contract.
    if unsafe { size.read() } < bytes {
        return Err(result::PARAMETER_SIZE_NOT_SUFFICIENT);
    }
    let number = if attribute == PER_THREAD_ACTIVITY_BUFFER {
        buffers::is_per_thread().into()
    } else {
        lock(&SET)[at].unwrap_or(default)
    };
    // SAFETY: `value` is writable for at least `bytes` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(number.to_le_bytes().as_ptr(), value.cast(), bytes);
        size.write(bytes);
    }
    Ok(())
}

pub(crate) fn reset() {
    *lock(&SET) = [None; ATTRIBUTES.len()];
}
