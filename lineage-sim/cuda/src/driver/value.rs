//! Values in memory that streams wait for and write.

use lineage_sim_model::{Condition, Place, Work};

use crate::call::{Asks, Call};
use crate::device::{self, Entry, Item};
use crate::driver::driver_functions;
use crate::graph::capture;
use crate::graph::content::Content;
use crate::handles::Handle;
use crate::memory;
use crate::objects::{Stream, stream};
use crate::result;

/// `CU_STREAM_WAIT_VALUE_FLUSH`, which concerns writes from outside the device, of which there are none.
const FLUSH: u32 = 1 << 30;

/// Where a value is: aligned, in memory of the driver's.
fn place(address: u64, is_wide: bool) -> Result<Place, u32> {
    let bytes = if is_wide { 8 } else { 4 };
    if !address.is_multiple_of(bytes) || memory::kind_of(address, bytes).is_none() {
        return Err(result::INVALID_VALUE);
    }
    Ok(Place { address, is_wide })
}

pub(crate) fn wait(
    call: &Call<'_>,
    of: Handle,
    address: u64,
    is_wide: bool,
    value: u64,
    flags: u32,
) -> Result<(), u32> {
    let stream = stream(of)?;
    let place = place(address, is_wide)?;
    // CU_STREAM_WAIT_VALUE_GEQ, EQ, AND and NOR.
    let condition = match flags & !FLUSH {
        0 => Condition::AtLeast(value),
        1 => Condition::Equal(value),
        2 => Condition::And(value),
        3 => Condition::Nor(value),
        _ => return Err(result::INVALID_VALUE),
    };
    put(call, &stream, Work::WaitValue { place, condition })
}

pub(crate) fn write(
    call: &Call<'_>,
    of: Handle,
    address: u64,
    is_wide: bool,
    value: u64,
    flags: u32,
) -> Result<(), u32> {
    let stream = stream(of)?;
    let place = place(address, is_wide)?;
    // CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER is the one flag.
    if flags > 1 {
        return Err(result::INVALID_VALUE);
    }
    put(call, &stream, Work::WriteValue { place, value })
}

/// Into the stream, or as a node into its capture.
fn put(call: &Call<'_>, stream: &Stream, work: Work) -> Result<(), u32> {
    if let Some(added) = capture::add(call, stream, |_, _| Ok(Content::Value(work.clone()))) {
        return added.map(|_| ());
    }
    let mut entry = Entry::marker(Item::Value);
    entry.work = work;
    device::enqueue(Some(call), stream, entry);
    Ok(())
}

driver_functions! {
    fn cuStreamWaitValue32 [458 also cuStreamWaitValue32_ptsz 459, Asks::Nothing] (call, of: Handle, address: u64, value: u32, flags: u32) {
        wait(call, of, address, false, value.into(), flags)
    }

    fn cuStreamWaitValue32_v2 [659 also cuStreamWaitValue32_v2_ptsz 660, Asks::Nothing] (call, of: Handle, address: u64, value: u32, flags: u32) {
        wait(call, of, address, false, value.into(), flags)
    }

    fn cuStreamWaitValue64 [473 also cuStreamWaitValue64_ptsz 474, Asks::Nothing] (call, of: Handle, address: u64, value: u64, flags: u32) {
        wait(call, of, address, true, value, flags)
    }

    fn cuStreamWaitValue64_v2 [661 also cuStreamWaitValue64_v2_ptsz 662, Asks::Nothing] (call, of: Handle, address: u64, value: u64, flags: u32) {
        wait(call, of, address, true, value, flags)
    }

    fn cuStreamWriteValue32 [460 also cuStreamWriteValue32_ptsz 461, Asks::Nothing] (call, of: Handle, address: u64, value: u32, flags: u32) {
        write(call, of, address, false, value.into(), flags)
    }

    fn cuStreamWriteValue32_v2 [663 also cuStreamWriteValue32_v2_ptsz 664, Asks::Nothing] (call, of: Handle, address: u64, value: u32, flags: u32) {
        write(call, of, address, false, value.into(), flags)
    }

    fn cuStreamWriteValue64 [475 also cuStreamWriteValue64_ptsz 476, Asks::Nothing] (call, of: Handle, address: u64, value: u64, flags: u32) {
        write(call, of, address, true, value, flags)
    }

    fn cuStreamWriteValue64_v2 [665 also cuStreamWriteValue64_v2_ptsz 666, Asks::Nothing] (call, of: Handle, address: u64, value: u64, flags: u32) {
        write(call, of, address, true, value, flags)
    }
}
