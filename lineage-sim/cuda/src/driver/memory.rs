//! Allocation and what is known about it.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use crate::call::{Asks, Call};
use crate::device::{self, Entry, Item};
use crate::driver::{Out, driver_functions};
use crate::graph::{self, capture};
use crate::handles::Handle;
use crate::memory::{self, Kind};
use crate::objects::{Context, current_context};
use crate::result;

/// Allocates; when there is not enough, once more after all frees that streams still hold.
pub(crate) fn allocate(bytes: usize, kind: Kind) -> Result<u64, u32> {
    let context = current_context()?;
    match memory::allocate(bytes as u64, kind, &context) {
        Err(result::OUT_OF_MEMORY) => {
            device::wait_for_context(context.number, context.id)?;
            memory::allocate(bytes as u64, kind, &context)
        }
        other => other,
    }
}

/// Frees when the device is done with it, on the device's thread.
fn free(call: &Call<'_>, context: &Arc<Context>, address: u64) -> Result<(), u32> {
    device::wait_for_context(context.number, context.id)?;
    let free = Entry::marker(Item::Free(address));
    let freed = device::enqueue(Some(call), &context.default_stream, free);
    device::wait(&context.default_stream, freed)
}

pub(crate) fn check_start(address: u64, is_kind: impl Fn(Kind) -> bool) -> Result<(), u32> {
    match memory::find(address) {
        Some((start, allocation)) if start == address && is_kind(allocation.kind) => Ok(()),
        _ => Err(result::INVALID_VALUE),
    }
}

driver_functions! {
    fn cuMemAlloc_v2 [243, Asks::Nothing] (call, pointer: Out<u64>, bytes: usize) {
        capture::check_unsafe(call)?;
        pointer.check()?;
        pointer.put(allocate(bytes, Kind::Device)?)
    }

    fn cuMemAllocManaged [371, Asks::Nothing] (call, pointer: Out<u64>, bytes: usize, flags: c_uint) {
        capture::check_unsafe(call)?;
        pointer.check()?;
        // CU_MEM_ATTACH_GLOBAL or HOST
        if !(1..=2).contains(&flags) {
            return Err(result::INVALID_VALUE);
        }
        pointer.put(allocate(bytes, Kind::Managed)?)
    }

    fn cuMemFree_v2 [245, Asks::Nothing] (call, pointer: u64) {
        capture::check_unsafe(call)?;
        let context = current_context()?;
        if pointer == 0 {
            return Ok(());
        }
        check_start(pointer, Kind::is_device)?;
        if let Ok(of_graph) = graph::memory::find(pointer) {
            device::wait_for_context(context.number, context.id)?;
            return of_graph.free();
        }
        free(call, &context, pointer)
    }

    fn cuMemHostAlloc [39, Asks::Nothing] (call, pointer: Out<Handle>, bytes: usize, flags: c_uint) {
        capture::check_unsafe(call)?;
        pointer.check()?;
        if flags > 7 {
            return Err(result::INVALID_VALUE);
        }
        pointer.put(std::ptr::with_exposed_provenance_mut(allocate(bytes, Kind::Pinned)? as usize))
    }

    fn cuMemAllocHost_v2 [294, Asks::Nothing] (call, pointer: Out<Handle>, bytes: usize) {
        capture::check_unsafe(call)?;
        pointer.check()?;
        pointer.put(std::ptr::with_exposed_provenance_mut(allocate(bytes, Kind::Pinned)? as usize))
    }

    fn cuMemFreeHost [38, Asks::Nothing] (call, pointer: *mut c_void) {
        capture::check_unsafe(call)?;
        let context = current_context()?;
        check_start(pointer.addr() as u64, |kind| kind == Kind::Pinned)?;
        free(call, &context, pointer.addr() as u64)
    }

    fn cuMemHostRegister_v2 [379, Asks::Nothing] (_, pointer: *mut c_void, bytes: usize, flags: c_uint) {
        let context = current_context()?;
        if flags > 15 {
            return Err(result::INVALID_VALUE);
        }
        memory::register(pointer.expose_provenance() as u64, bytes as u64, &context)
    }

    fn cuMemHostUnregister [302, Asks::Nothing] (call, pointer: *mut c_void) {
        let context = current_context()?;
        check_start(pointer.addr() as u64, |kind| kind == Kind::Registered)
            .map_err(|_| result::HOST_MEMORY_NOT_REGISTERED)?;
        free(call, &context, pointer.addr() as u64)
    }

    fn cuMemGetInfo_v2 [242, Asks::Nothing] (_, free: Out<usize>, total: Out<usize>) {
        let device = current_context()?.device;
        let (free_bytes, total_bytes) = memory::information(device);
        free.put(free_bytes as usize)?;
        total.put(total_bytes as usize)
    }

    fn cuMemGetAddressRange_v2 [246, Asks::Nothing] (_, base: Out<u64>, bytes: Out<usize>, pointer: u64) {
        current_context()?;
        let (start, allocation) = memory::find(pointer).ok_or(result::NOT_FOUND)?;
        base.put_if_wanted(start);
        bytes.put_if_wanted(allocation.bytes as usize);
        Ok(())
    }

    fn cuPointerGetAttribute [310, Asks::Nothing] (_, value: Out<c_void>, attribute: u32, pointer: u64) {
        value.check()?;
        let (_, allocation) = memory::find(pointer).ok_or(result::INVALID_VALUE)?;
        let is_device = allocation.kind.is_device();
        let place = value.pointer();
        match attribute {
            // CU_POINTER_ATTRIBUTE_MEMORY_TYPE: host 1, device 2
            2 => Out(place.cast::<u32>()).put(if is_device { 2 } else { 1 }),
            // CU_POINTER_ATTRIBUTE_DEVICE_POINTER
            3 => Out(place.cast::<u64>()).put(pointer),
            // CU_POINTER_ATTRIBUTE_IS_MANAGED
            8 => Out(place.cast::<u32>()).put((allocation.kind == Kind::Managed).into()),
            // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            9 => Out(place.cast::<i32>()).put(allocation.device as i32),
            _ => Err(result::NOT_SUPPORTED),
        }
    }

}
