//! Copies and sets.

use std::ffi::c_void;

use lineage_sim_model::Direction;

use crate::abi::{
    OPERATION_COPY_DEVICE_TO_DEVICE, OPERATION_COPY_DEVICE_TO_HOST, OPERATION_COPY_HOST_TO_DEVICE,
    OPERATION_COPY_PEER, OPERATION_SET,
};
use crate::call::{Asks, Call};
use crate::config::model;
use crate::cupti::activity::{self, kind};
use crate::cupti::api::runtime;
use crate::cupti::records::{Peer, Shape, copy_kind};
use crate::device;
use crate::driver::driver_functions;
use crate::handles::Handle;
use crate::memory::{self, Kind};
use crate::objects::{CONTEXTS, stream};
use crate::operation::{HostSource, Work};
use crate::result;
use crate::submit::{Request, submit};

const COPY: Asks = Asks::Work(runtime::COPY);
const COPY_ASYNC: Asks = Asks::Work(runtime::COPY_ASYNC);
const SET: Asks = Asks::Work(runtime::SET);
const SET_ASYNC: Asks = Asks::Work(runtime::SET_ASYNC);

/// `CUpti_ActivityMemoryKind`.
fn memory_kind(kind: Option<Kind>) -> u8 {
    match kind {
        None => 1,
        Some(Kind::Pinned | Kind::Registered) => 2,
        Some(Kind::Device) => 3,
        Some(Kind::Managed) => 5,
    }
}

/// A copy in either direction or inside the device, in a stream.
///
/// Without a stream the call returns when the copy is done; also where the host's side is
/// pageable memory that is written, as the driver's documentation has it. Pageable memory that
/// is read is staged during the call.
pub(crate) fn copy(
    call: &Call<'_>,
    direction: u32,
    to: u64,
    from: u64,
    bytes: usize,
    of: Option<Handle>,
) -> Result<(), u32> {
    let stream = stream(of.unwrap_or(std::ptr::null_mut()))?;
    let bytes = bytes as u64;
    if bytes == 0 {
        return Ok(());
    }
    let is_device = |address| memory::is_device_range(address, bytes);
    let valid = match direction {
        OPERATION_COPY_HOST_TO_DEVICE => from != 0 && is_device(to),
        OPERATION_COPY_DEVICE_TO_HOST => to != 0 && is_device(from),
        _ => is_device(from) && is_device(to),
    };
    if !valid {
        return Err(result::INVALID_VALUE);
    }
    let (source, target) = (memory::kind_of(from, bytes), memory::kind_of(to, bytes));
    let mut waits = of.is_none();
    let work = match direction {
        OPERATION_COPY_HOST_TO_DEVICE if !waits && source.is_none() => {
            let pointer = std::ptr::with_exposed_provenance::<u8>(from as usize);
            // SAFETY: the caller's source holds so many bytes during the call.
            let staged = unsafe { std::slice::from_raw_parts(pointer, bytes as usize) };
            Work::CopyHostToDevice {
                source: HostSource::Staged(staged.into()),
                to,
            }
        }
        OPERATION_COPY_HOST_TO_DEVICE => Work::CopyHostToDevice {
            source: HostSource::Pinned(from),
            to,
        },
        OPERATION_COPY_DEVICE_TO_HOST => {
            waits |= target.is_none();
            Work::CopyDeviceToHost { from, to }
        }
        _ => Work::CopyDeviceToDevice { from, to },
    };
    let peers = peers(from, to);
    let direction = if peers.is_some() {
        OPERATION_COPY_PEER
    } else {
        direction
    };
    let record_kind = peers.map_or(kind::MEMCPY, |_| kind::MEMCPY2);
    let shape = activity::is_enabled(record_kind).then(|| Shape::Copy {
        copy_kind: copy_kind(direction),
        source_kind: memory_kind(source),
        target_kind: memory_kind(target),
        asynchronous: of.is_some(),
        bytes,
        peers,
    });
    let model = lineage_sim_model::Work::copy(
        match direction {
            OPERATION_COPY_HOST_TO_DEVICE => Direction::ToDevice,
            OPERATION_COPY_DEVICE_TO_HOST => Direction::ToHost,
            _ => Direction::Within,
        },
        0,
    );
    let number = submit(
        call,
        &stream,
        Request {
            kind: direction,
            name: None,
            bytes,
            work,
            shape,
            model,
            parameter_bytes: 0,
            priority: None,
        },
    );
    if waits {
        device::wait(&stream, number)?;
        if let error @ 1.. = stream.error.load(std::sync::atomic::Ordering::Acquire) {
            return Err(error);
        }
    }
    Ok(())
}

/// Source and target, where both are device memory, and of different devices.
fn peers(from: u64, to: u64) -> Option<[Peer; 2]> {
    if model().devices < 2 {
        return None;
    }
    let peer = |address| {
        let (_, allocation) = memory::find(address)?;
        let context = CONTEXTS.get_number(allocation.context);
        allocation.kind.is_device().then(|| Peer {
            device: allocation.device,
            context_id: context.map_or(0, |context| context.id),
        })
    };
    let (from, to) = (peer(from)?, peer(to)?);
    (from.device != to.device).then_some([from, to])
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
    let is_device = |address| memory::find(address).is_some_and(|found| found.1.kind.is_device());
    let direction = match (is_device(from), is_device(to)) {
        (false, true) => OPERATION_COPY_HOST_TO_DEVICE,
        (true, false) => OPERATION_COPY_DEVICE_TO_HOST,
        // From host to host is left out: no such copy is simulated.
        _ => OPERATION_COPY_DEVICE_TO_DEVICE,
    };
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
    let stream = stream(of.unwrap_or(std::ptr::null_mut()))?;
    let bytes = (count as u64)
        .checked_mul(width.into())
        .ok_or(result::INVALID_VALUE)?;
    if bytes == 0 {
        return Ok(());
    }
    if !to.is_multiple_of(width.into()) || !memory::is_device_range(to, bytes) {
        return Err(result::INVALID_VALUE);
    }
    let shape = activity::is_enabled(kind::MEMSET).then(|| Shape::Set {
        value,
        bytes,
        asynchronous: of.is_some(),
        memory_kind: memory_kind(memory::kind_of(to, bytes)).into(),
    });
    let work = Work::Set { to, value, width };
    let model = lineage_sim_model::Work::Other { duration_ns: 0 };
    let number = submit(
        call,
        &stream,
        Request {
            kind: OPERATION_SET,
            name: None,
            bytes,
            work,
            shape,
            model,
            parameter_bytes: 0,
            priority: None,
        },
    );
    if of.is_none() {
        device::wait(&stream, number)?;
    }
    Ok(())
}

fn address(pointer: *const c_void) -> u64 {
    pointer.expose_provenance() as u64
}

driver_functions! {
    fn cuMemcpyHtoD_v2 [276, COPY] (call, to: u64, from: *const c_void, bytes: usize) {
        copy(call, OPERATION_COPY_HOST_TO_DEVICE, to, address(from), bytes, None)
    }

    fn cuMemcpyDtoH_v2 [278, COPY] (call, to: *mut c_void, from: u64, bytes: usize) {
        copy(call, OPERATION_COPY_DEVICE_TO_HOST, address(to), from, bytes, None)
    }

    fn cuMemcpyDtoD_v2 [280, COPY] (call, to: u64, from: u64, bytes: usize) {
        copy(call, OPERATION_COPY_DEVICE_TO_DEVICE, to, from, bytes, None)
    }

    fn cuMemcpyHtoDAsync_v2 [277, COPY_ASYNC] (call, to: u64, from: *const c_void, bytes: usize, of: Handle) {
        copy(call, OPERATION_COPY_HOST_TO_DEVICE, to, address(from), bytes, Some(of))
    }

    fn cuMemcpyDtoHAsync_v2 [279, COPY_ASYNC] (call, to: *mut c_void, from: u64, bytes: usize, of: Handle) {
        copy(call, OPERATION_COPY_DEVICE_TO_HOST, address(to), from, bytes, Some(of))
    }

    fn cuMemcpyDtoDAsync_v2 [281, COPY_ASYNC] (call, to: u64, from: u64, bytes: usize, of: Handle) {
        copy(call, OPERATION_COPY_DEVICE_TO_DEVICE, to, from, bytes, Some(of))
    }

    fn cuMemcpy [305, COPY] (call, to: u64, from: u64, bytes: usize) {
        copy_any(call, to, from, bytes, None)
    }

    fn cuMemcpyAsync [306, COPY_ASYNC] (call, to: u64, from: u64, bytes: usize, of: Handle) {
        copy_any(call, to, from, bytes, Some(of))
    }

    fn cuMemsetD8_v2 [249, SET] (call, to: u64, value: u8, count: usize) {
        set(call, to, value.into(), 1, count, None)
    }

    fn cuMemsetD16_v2 [250, SET] (call, to: u64, value: u16, count: usize) {
        set(call, to, value.into(), 2, count, None)
    }

    fn cuMemsetD32_v2 [251, SET] (call, to: u64, value: u32, count: usize) {
        set(call, to, value, 4, count, None)
    }

    fn cuMemsetD8Async [216, SET_ASYNC] (call, to: u64, value: u8, count: usize, of: Handle) {
        set(call, to, value.into(), 1, count, Some(of))
    }

    fn cuMemsetD16Async [218, SET_ASYNC] (call, to: u64, value: u16, count: usize, of: Handle) {
        set(call, to, value.into(), 2, count, Some(of))
    }

    fn cuMemsetD32Async [220, SET_ASYNC] (call, to: u64, value: u32, count: usize, of: Handle) {
        set(call, to, value, 4, count, Some(of))
    }
}
