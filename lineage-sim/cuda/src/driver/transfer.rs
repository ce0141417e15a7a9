//! Copies and sets.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use crate::abi::{
    OPERATION_COPY_DEVICE_TO_DEVICE, OPERATION_COPY_DEVICE_TO_HOST, OPERATION_COPY_HOST_TO_DEVICE,
};
use crate::call::{Asks, Call};
use crate::cupti::api::runtime;
use crate::device;
use crate::driver::driver_functions;
use crate::graph::capture;
use crate::graph::content::Content;
use crate::handles::Handle;
use crate::memory;
use crate::objects::stream;
use crate::operation::Rows;
use crate::requests::{CopyBetween, Fill};
use crate::result;
use crate::submit::submit;

const COPY: Asks = Asks::Work(runtime::COPY);
const COPY_ASYNC: Asks = Asks::Work(runtime::COPY_ASYNC);
const SET: Asks = Asks::Work(runtime::SET);
const SET_ASYNC: Asks = Asks::Work(runtime::SET_ASYNC);

/// A copy in either direction or inside the device, in a stream.
pub(crate) fn copy(
    call: &Call<'_>,
    direction: u32,
    to: u64,
    from: u64,
    bytes: usize,
    of: Option<Handle>,
) -> Result<(), u32> {
    copy_between(
        call,
        CopyBetween {
            direction,
            to,
            from,
            bytes: bytes as u64,
            rows: Rows::ONE,
            asynchronous: of.is_some(),
        },
        of,
    )
}

/// Without a stream the call returns when the copy is done; also where the host's side is
/// pageable memory that is written, as the driver's documentation has it. Pageable memory that
/// is read is staged during the call, unless the call is captured.
pub(crate) fn copy_between(
    call: &Call<'_>,
    copy: CopyBetween,
    of: Option<Handle>,
) -> Result<(), u32> {
    if of.is_none() {
        capture::check_unsafe(call)?;
    }
    let stream = stream(of.unwrap_or(std::ptr::null_mut()))?;
    if copy.bytes == 0 {
        return Ok(());
    }
    if !copy.is_valid() {
        return Err(result::INVALID_VALUE);
    }
    if let Some(added) = capture::add(call, &stream, |_, _| Ok(Content::Copy(copy))) {
        return added.map(|_| ());
    }
    let is_pageable =
        |address, pitch| memory::kind_of(address, copy.rows.span(copy.bytes, pitch)).is_none();
    let mut waits = of.is_none();
    let mut staged = None;
    match copy.direction {
        OPERATION_COPY_HOST_TO_DEVICE
            if !waits && is_pageable(copy.from, copy.rows.source_pitch) =>
        {
            let bytes = copy.rows.span(copy.bytes, copy.rows.source_pitch);
            let pointer = std::ptr::with_exposed_provenance::<u8>(copy.from as usize);
            // SAFETY: the caller's source holds so many bytes during the call.
            let source = unsafe { std::slice::from_raw_parts(pointer, bytes as usize) };
            staged = Some(source.into());
        }
        OPERATION_COPY_DEVICE_TO_HOST => {
            waits |= is_pageable(copy.to, copy.rows.target_pitch);
        }
        _ => {}
    }
    let key = submit(call, &stream, copy.request(staged));
    if waits {
        device::wait(&stream, key)?;
        if let error @ 1.. = stream.error.load(Ordering::Acquire) {
            return Err(error);
        }
    }
    Ok(())
}

/// Whether an address is in memory of this device.
pub(crate) fn is_on_device(address: u64, device: u32) -> bool {
    memory::find(address).is_some_and(|(_, found)| found.kind.is_device() && found.device == device)
}

/// A copy whose direction follows from the addresses.
fn copy_any(
    call: &Call<'_>,
    to: u64,
    from: u64,
    bytes: usize,
    of: Option<Handle>,
) -> Result<(), u32> {
    // From host to host is left out: no such copy is simulated.
    let direction = CopyBetween::direction_of(to, from).unwrap_or(OPERATION_COPY_DEVICE_TO_DEVICE);
    copy(call, direction, to, from, bytes, of)
}

/// A set of `count` elements of `width` bytes.
fn set(
    call: &Call<'_>,
    to: u64,
    value: u32,
    width: u8,
    count: usize,
    of: Option<Handle>,
) -> Result<(), u32> {
    let bytes = (count as u64)
        .checked_mul(width.into())
        .ok_or(result::INVALID_VALUE)?;
    let fill = Fill {
        to,
        value,
        width,
        bytes,
        rows: Rows::ONE,
        asynchronous: of.is_some(),
    };
    fill_rows(call, fill, of)
}

/// A set of one or more rows.
pub(crate) fn fill_rows(call: &Call<'_>, fill: Fill, of: Option<Handle>) -> Result<(), u32> {
    if of.is_none() {
        capture::check_unsafe(call)?;
    }
    let stream = stream(of.unwrap_or(std::ptr::null_mut()))?;
    if fill.bytes == 0 {
        return Ok(());
    }
    if !fill.is_valid() {
        return Err(result::INVALID_VALUE);
    }
    if let Some(added) = capture::add(call, &stream, |_, _| Ok(Content::Set(fill))) {
        return added.map(|_| ());
    }
    let key = submit(call, &stream, fill.request());
    if of.is_none() {
        device::wait(&stream, key)?;
    }
    Ok(())
}

fn address(pointer: *const c_void) -> u64 {
    pointer.expose_provenance() as u64
}

driver_functions! {
    fn cuMemcpyHtoD_v2 [276 also cuMemcpyHtoD_v2_ptds 397, COPY] (call, to: u64, from: *const c_void, bytes: usize) {
        copy(call, OPERATION_COPY_HOST_TO_DEVICE, to, address(from), bytes, None)
    }

    fn cuMemcpyDtoH_v2 [278 also cuMemcpyDtoH_v2_ptds 398, COPY] (call, to: *mut c_void, from: u64, bytes: usize) {
        copy(call, OPERATION_COPY_DEVICE_TO_HOST, address(to), from, bytes, None)
    }

    fn cuMemcpyDtoD_v2 [280 also cuMemcpyDtoD_v2_ptds 399, COPY] (call, to: u64, from: u64, bytes: usize) {
        copy(call, OPERATION_COPY_DEVICE_TO_DEVICE, to, from, bytes, None)
    }

    fn cuMemcpyHtoDAsync_v2 [277 also cuMemcpyHtoDAsync_v2_ptsz 421, COPY_ASYNC] (call, to: u64, from: *const c_void, bytes: usize, of: Handle) {
        copy(call, OPERATION_COPY_HOST_TO_DEVICE, to, address(from), bytes, Some(of))
    }

    fn cuMemcpyDtoHAsync_v2 [279 also cuMemcpyDtoHAsync_v2_ptsz 422, COPY_ASYNC] (call, to: *mut c_void, from: u64, bytes: usize, of: Handle) {
        copy(call, OPERATION_COPY_DEVICE_TO_HOST, address(to), from, bytes, Some(of))
    }

    fn cuMemcpyDtoDAsync_v2 [281 also cuMemcpyDtoDAsync_v2_ptsz 423, COPY_ASYNC] (call, to: u64, from: u64, bytes: usize, of: Handle) {
        copy(call, OPERATION_COPY_DEVICE_TO_DEVICE, to, from, bytes, Some(of))
    }

    fn cuMemcpy [305 also cuMemcpy_ptds 408, COPY] (call, to: u64, from: u64, bytes: usize) {
        copy_any(call, to, from, bytes, None)
    }

    fn cuMemcpyAsync [306 also cuMemcpyAsync_ptsz 418, COPY_ASYNC] (call, to: u64, from: u64, bytes: usize, of: Handle) {
        copy_any(call, to, from, bytes, Some(of))
    }

    fn cuMemsetD8_v2 [249 also cuMemsetD8_v2_ptds 411, SET] (call, to: u64, value: u8, count: usize) {
        set(call, to, value.into(), 1, count, None)
    }

    fn cuMemsetD16_v2 [250 also cuMemsetD16_v2_ptds 412, SET] (call, to: u64, value: u16, count: usize) {
        set(call, to, value.into(), 2, count, None)
    }

    fn cuMemsetD32_v2 [251 also cuMemsetD32_v2_ptds 413, SET] (call, to: u64, value: u32, count: usize) {
        set(call, to, value, 4, count, None)
    }

    fn cuMemsetD8Async [216 also cuMemsetD8Async_ptsz 428, SET_ASYNC] (call, to: u64, value: u8, count: usize, of: Handle) {
        set(call, to, value.into(), 1, count, Some(of))
    }

    fn cuMemsetD16Async [218 also cuMemsetD16Async_ptsz 429, SET_ASYNC] (call, to: u64, value: u16, count: usize, of: Handle) {
        set(call, to, value.into(), 2, count, Some(of))
    }

    fn cuMemsetD32Async [220 also cuMemsetD32Async_ptsz 430, SET_ASYNC] (call, to: u64, value: u32, count: usize, of: Handle) {
        set(call, to, value, 4, count, Some(of))
    }
}
