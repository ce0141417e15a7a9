//! Copies and sets of rows.

use crate::call::{Asks, Call};
use crate::cupti::api::runtime;
use crate::driver::driver_functions;
use crate::driver::graph_params::{fill_of, read, rows_between};
use crate::driver::transfer::{copy_between, fill_rows};
use crate::handles::Handle;
use crate::result;

const COPY: Asks = Asks::Work(runtime::COPY_2D);
const COPY_ASYNC: Asks = Asks::Work(runtime::COPY_2D_ASYNC);
const SET: Asks = Asks::Work(runtime::SET_2D);
const SET_ASYNC: Asks = Asks::Work(runtime::SET_2D_ASYNC);

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side {
    x_bytes: usize,
    y: usize,
    memory_type: u32,
    host: u64,
    device: u64,
    array: Handle,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Copy2D {
    source: Side,
    target: Side,
    width_bytes: usize,
    height: usize,
}

impl Side {
    fn address(&self) -> Result<u64, u32> {
        // CU_MEMORYTYPE_HOST, DEVICE, ARRAY and UNIFIED
        let base = match self.memory_type {
            1 => self.host,
            2 | 4 => self.device,
            3 => return Err(result::NOT_SUPPORTED),
            _ => return Err(result::INVALID_VALUE),
        };
        let offset = (self.y as u64).checked_mul(self.pitch as u64);
        let offset = offset.and_then(|rows| rows.checked_add(self.x_bytes as u64));
        offset
            .and_then(|offset| base.checked_add(offset))
            .ok_or(result::INVALID_VALUE)
    }
}

fn copy(call: &Call<'_>, asked: *const Copy2D, of: Option<Handle>) -> Result<(), u32> {
    let asked = read(asked)?;
    if asked.width_bytes == 0 || asked.height == 0 {
        return Ok(());
    }
    // A pitch of 0 is that of packed rows.
    let pitch = |side: &Side| {
        if side.pitch == 0 {
            asked.width_bytes
        } else {
            side.pitch
        }
    };
    let copy = rows_between(
        (asked.source.address()?, pitch(&asked.source)),
        (asked.target.address()?, pitch(&asked.target)),
        (asked.width_bytes, asked.height),
        of.is_some(),
    )?;
    copy_between(call, copy, of)
}

fn set(
    call: &Call<'_>,
    target: (u64, usize),
    value: (u32, u8),
    extent: (usize, usize),
    of: Option<Handle>,
) -> Result<(), u32> {
    if extent.0 == 0 || extent.1 == 0 {
        return Ok(());
    }
    fill_rows(call, fill_of(target, value, extent, of.is_some())?, of)
}

driver_functions! {
    fn cuMemcpy2D_v2 [287 also cuMemcpy2D_v2_ptds 405, COPY] (call, asked: *const Copy2D) {
        copy(call, asked, None)
    }

    fn cuMemcpy2DUnaligned_v2 [288 also cuMemcpy2DUnaligned_v2_ptds 406, COPY] (call, asked: *const Copy2D) {
        copy(call, asked, None)
    }

    fn cuMemcpy2DAsync_v2 [289 also cuMemcpy2DAsync_v2_ptsz 424, COPY_ASYNC] (call, asked: *const Copy2D, of: Handle) {
        copy(call, asked, Some(of))
    }

    fn cuMemsetD2D8_v2 [252 also cuMemsetD2D8_v2_ptds 414, SET] (call, to: u64, pitch: usize, value: u8, width: usize, height: usize) {
        set(call, (to, pitch), (value.into(), 1), (width, height), None)
    }

    fn cuMemsetD2D16_v2 [253 also cuMemsetD2D16_v2_ptds 415, SET] (call, to: u64, pitch: usize, value: u16, width: usize, height: usize) {
        set(call, (to, pitch), (value.into(), 2), (width, height), None)
    }

    fn cuMemsetD2D32_v2 [254 also cuMemsetD2D32_v2_ptds 416, SET] (call, to: u64, pitch: usize, value: u32, width: usize, height: usize) {
        set(call, (to, pitch), (value, 4), (width, height), None)
    }

    fn cuMemsetD2D8Async [222 also cuMemsetD2D8Async_ptsz 431, SET_ASYNC] (call, to: u64, pitch: usize, value: u8, width: usize, height: usize, of: Handle) {
        set(call, (to, pitch), (value.into(), 1), (width, height), Some(of))
    }

    fn cuMemsetD2D16Async [224 also cuMemsetD2D16Async_ptsz 432, SET_ASYNC] (call, to: u64, pitch: usize, value: u16, width: usize, height: usize, of: Handle) {
        set(call, (to, pitch), (value.into(), 2), (width, height), Some(of))
    }

    fn cuMemsetD2D32Async [226 also cuMemsetD2D32Async_ptsz 433, SET_ASYNC] (call, to: u64, pitch: usize, value: u32, width: usize, height: usize, of: Handle) {
        set(call, (to, pitch), (value, 4), (width, height), Some(of))
    }
}
