//! Several memory operations, or several copies, with one call.

use crate::call::{Asks, Call};
use crate::cupti::api::runtime;
use crate::driver::transfer::copy_between;
use crate::driver::value::{wait, write};
use crate::driver::{Out, driver_functions};
use crate::graph::capture;
use crate::handles::Handle;
use crate::objects::{is_legacy, stream};
use crate::operation::Rows;
use crate::requests::CopyBetween;
use crate::result;

/// `CUstreamBatchMemOpParams`, as its waits and writes lie in it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemoryOperation {
    operation: u32,
    address: u64,
    value: u64,
    flags: u32,
    alias: u64,
    rest: u64,
}

/// `CUstreamBatchMemOpType`.
const WAIT_32: u32 = 1;
const WRITE_32: u32 = 2;
const FLUSH_REMOTE_WRITES: u32 = 3;
const WAIT_64: u32 = 4;
const WRITE_64: u32 = 5;
const BARRIER: u32 = 6;
const ATOMIC_REDUCTION: u32 = 8;

/// More are refused.
const MOST_OPERATIONS: u32 = 256;

fn batch(
    call: &Call<'_>,
    of: Handle,
    count: u32,
    list: *const MemoryOperation,
    flags: u32,
) -> Result<(), u32> {
    let stream = stream(of)?;
    if flags != 0 || count > MOST_OPERATIONS || count > 0 && list.is_null() {
        return Err(result::INVALID_VALUE);
    }
    if count > 1 {
        // It would be one node.
        capture::refuse(&stream, result::STREAM_CAPTURE_UNSUPPORTED)?;
    }
    for at in 0..count as usize {
        // SAFETY: the caller's list has so many.
        let one = unsafe { list.add(at).read() };
        match one.operation {
            WAIT_32 => wait(
                call,
                of,
                one.address,
                false,
                one.value & 0xffff_ffff,
                one.flags,
            )?,
            WAIT_64 => wait(call, of, one.address, true, one.value, one.flags)?,
            WRITE_32 => write(
                call,
                of,
                one.address,
                false,
                one.value & 0xffff_ffff,
                one.flags,
            )?,
            WRITE_64 => write(call, of, one.address, true, one.value, one.flags)?,
            // Order what is in order here anyway.
            FLUSH_REMOTE_WRITES | BARRIER => {}
            ATOMIC_REDUCTION => return Err(result::NOT_SUPPORTED),
            _ => return Err(result::INVALID_VALUE),
        }
    }
    Ok(())
}

/// The lists of a batch of copies.
#[derive(Clone, Copy)]
struct Lists {
    to: *const u64,
    from: *const u64,
    bytes: *const usize,
    count: usize,
}

/// Copies in a stream, after one another. Where one is wrong, its index is told and none is made.
fn copies(call: &Call<'_>, lists: Lists, failed: Out<usize>, of: Handle) -> Result<(), u32> {
    failed.put_if_wanted(usize::MAX);
    let Lists {
        to,
        from,
        bytes,
        count,
    } = lists;
    if is_legacy(of) || count == 0 || to.is_null() || from.is_null() || bytes.is_null() {
        return Err(result::INVALID_VALUE);
    }
    stream(of)?;
    let mut checked = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: the caller's lists have so many.
        let (to, from, bytes) =
            unsafe { (to.add(at).read(), from.add(at).read(), bytes.add(at).read()) };
        let copy = CopyBetween::direction_of(to, from).map(|direction| CopyBetween {
            direction,
            to,
            from,
            bytes: bytes as u64,
            rows: Rows::ONE,
            asynchronous: true,
        });
        match copy {
            Some(copy) if bytes > 0 && copy.is_valid() => checked.push(copy),
            _ => {
                failed.put_if_wanted(at);
                return Err(result::INVALID_VALUE);
            }
        }
    }
    checked
        .into_iter()
        .try_for_each(|copy| copy_between(call, copy, Some(of)))
}

driver_functions! {
    fn cuStreamBatchMemOp [462 also cuStreamBatchMemOp_ptsz 463, Asks::Nothing] (call, of: Handle, count: u32, list: *const MemoryOperation, flags: u32) {
        batch(call, of, count, list, flags)
    }

    fn cuStreamBatchMemOp_v2 [667 also cuStreamBatchMemOp_v2_ptsz 668, Asks::Nothing] (call, of: Handle, count: u32, list: *const MemoryOperation, flags: u32) {
        batch(call, of, count, list, flags)
    }

    fn cuMemcpyBatchAsync [776 also cuMemcpyBatchAsync_ptsz 777, Asks::Work(runtime::COPY_BATCH)] (
        call, to: *const u64, from: *const u64, bytes: *const usize, count: usize, _attributes: *const u64, _indices: *const usize,
        _attribute_count: usize, failed: Out<usize>, of: Handle,
    ) {
        copies(call, Lists { to, from, bytes, count }, failed, of)
    }

    fn cuMemcpyBatchAsync_v2 [796 also cuMemcpyBatchAsync_v2_ptsz 797, Asks::Work(runtime::COPY_BATCH)] (
        call, to: *const u64, from: *const u64, bytes: *const usize, count: usize, _attributes: *const u64, _indices: *const usize,
        _attribute_count: usize, of: Handle,
    ) {
        copies(call, Lists { to, from, bytes, count }, Out::nowhere(), of)
    }
}
