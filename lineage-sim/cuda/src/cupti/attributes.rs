//! Activity attributes: accepted and kept; those about buffers, clocks and what is recorded change something.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::abi::TimestampCallback;
use crate::cupti::client::Client;
use crate::cupti::{buffers, result, subscriber};
use crate::sync::lock;

const PER_THREAD_ACTIVITY_BUFFER: u32 = 9;
const USER_DEFINED_RECORDS: u32 = 11;
const MULTIPLE_SUBSCRIBER_STATE: u32 = 12;
const KERNEL_LATENCY_TIMESTAMPS: u32 = 15;
const ALL_SYNC_RECORDS: u32 = 16;
const CUDA_EVENT_DEVICE_TIMESTAMPS: u32 = 17;
const MULTI_SUBSCRIBER_GRAPH_TRACE: u32 = 20;
const THREAD_ID_TYPE: u32 = 21;
const TIMESTAMP_CALLBACK: u32 = 22;

/// Size in bytes and default value by number, as the headers have them.
const ATTRIBUTES: [(u32, usize, u64); 25] = [
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
    (USER_DEFINED_RECORDS, 1, 0),
    (MULTIPLE_SUBSCRIBER_STATE, 1, 0),
    // hardware events, sources of allocations
    (13, 1, 0),
    (14, 1, 0),
    (KERNEL_LATENCY_TIMESTAMPS, 1, 0),
    (ALL_SYNC_RECORDS, 1, 0),
    (CUDA_EVENT_DEVICE_TIMESTAMPS, 1, 0),
    // launch attributes, graphs that a device launches
    (18, 1, 0),
    (19, 1, 0),
    (MULTI_SUBSCRIBER_GRAPH_TRACE, 1, 0),
    (THREAD_ID_TYPE, 4, 0),
    (TIMESTAMP_CALLBACK, 8, 0),
    // CUDA in graphics, megabytes for hardware events
    (23, 1, 0),
    (24, 8, 128),
];

/// What functions that name no subscriber know.
pub(crate) const LAST_PLAIN: u32 = 10;
/// What functions that name one know beside those.
pub(crate) const LAST: u32 = 24;

/// What one client has set.
pub(crate) struct Attributes(Mutex<[Option<u64>; ATTRIBUTES.len()]>);

impl Attributes {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new([None; ATTRIBUTES.len()]))
    }

    pub(crate) fn reset(&self) {
        *lock(&self.0) = [None; ATTRIBUTES.len()];
    }
}

fn find(attribute: u32, last: u32) -> Result<(usize, usize, u64), u32> {
    let at = ATTRIBUTES
        .iter()
        .position(|(number, _, _)| *number == attribute && attribute <= last);
    let at = at.ok_or(result::INVALID_PARAMETER)?;
    Ok((at, ATTRIBUTES[at].1, ATTRIBUTES[at].2))
}

/// # Safety
///
/// `size` must be null or valid; `value` must hold as many bytes as `size` says.
pub(crate) unsafe fn set(
    client: &Client,
    last: u32,
    attribute: u32,
    size: *const usize,
    value: *const c_void,
) -> Result<(), u32> {
    if size.is_null() || value.is_null() {
        return Err(result::INVALID_PARAMETER);
    }
    let (at, bytes, default) = find(attribute, last)?;
    // SAFETY: not null, and valid by this function's own contract.
    if unsafe { size.read() } < bytes {
        return Err(result::PARAMETER_SIZE_NOT_SUFFICIENT);
    }
    let mut number = [0; 8];
    // SAFETY: `value` holds at least `bytes` bytes.
    unsafe { std::ptr::copy_nonoverlapping(value.cast(), number.as_mut_ptr(), bytes) };
    let number = u64::from_le_bytes(number);
    let recording = &client.recording;
    match attribute {
        PER_THREAD_ACTIVITY_BUFFER => buffers::set_per_thread(number != 0),
        KERNEL_LATENCY_TIMESTAMPS => {
            let on = number != 0;
            recording.latency_timestamps.store(on, Ordering::Release);
        }
        ALL_SYNC_RECORDS => {
            let on = u32::from(number != 0);
            recording.all_synchronizations.store(on, Ordering::Release);
        }
        CUDA_EVENT_DEVICE_TIMESTAMPS => {
            let on = number != 0;
            recording.event_timestamps.store(on, Ordering::Release);
        }
        MULTI_SUBSCRIBER_GRAPH_TRACE => subscriber::set_whole_graphs(number != 0),
        THREAD_ID_TYPE => {
            let id_type = u32::try_from(number).ok().filter(|number| *number < 2);
            let id_type = id_type.ok_or(result::INVALID_PARAMETER)?;
            recording.thread_id_type.store(id_type, Ordering::Release);
        }
        TIMESTAMP_CALLBACK => {
            let address = std::ptr::with_exposed_provenance::<c_void>(number as usize);
            // SAFETY: null is none; else the client says that it is such a function.
            let callback =
                unsafe { std::mem::transmute::<*const c_void, Option<TimestampCallback>>(address) };
            client.clock.set_callback(callback);
        }
        MULTIPLE_SUBSCRIBER_STATE => return Err(result::INVALID_PARAMETER),
        // What is not simulated can be left alone only.
        USER_DEFINED_RECORDS.. if number != default => return Err(result::NOT_SUPPORTED),
        _ => {}
    }
    lock(&client.attributes.0)[at] = Some(number);
    Ok(())
}

/// # Safety
///
/// `size` must be null or valid; `value` must be writable for as many bytes as `size` says.
pub(crate) unsafe fn get(
    client: &Client,
    last: u32,
    attribute: u32,
    size: *mut usize,
    value: *mut c_void,
) -> Result<(), u32> {
    if size.is_null() || value.is_null() {
        return Err(result::INVALID_PARAMETER);
    }
    let (at, bytes, default) = find(attribute, last)?;
    // SAFETY: not null, and valid by this function's own contract.
    if unsafe { size.read() } < bytes {
        return Err(result::PARAMETER_SIZE_NOT_SUFFICIENT);
    }
    let recording = &client.recording;
    let number = match attribute {
        PER_THREAD_ACTIVITY_BUFFER => buffers::is_per_thread().into(),
        MULTIPLE_SUBSCRIBER_STATE => subscriber::state(),
        KERNEL_LATENCY_TIMESTAMPS => recording.latency_timestamps.load(Ordering::Acquire).into(),
        ALL_SYNC_RECORDS => recording.has_all_synchronizations().into(),
        CUDA_EVENT_DEVICE_TIMESTAMPS => recording.event_timestamps.load(Ordering::Acquire).into(),
        MULTI_SUBSCRIBER_GRAPH_TRACE => subscriber::whole_graphs().into(),
        THREAD_ID_TYPE => recording.thread_id_type.load(Ordering::Acquire).into(),
        TIMESTAMP_CALLBACK => client.clock.callback_address() as u64,
        _ => lock(&client.attributes.0)[at].unwrap_or(default),
    };
    // SAFETY: `value` is writable for at least `bytes` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(number.to_le_bytes().as_ptr(), value.cast(), bytes);
        size.write(bytes);
    }
    Ok(())
}
