//! Device memory, which is host memory with a table of what is allocated.
//!
//! Only the device's thread reads, writes and frees device memory while operations run, so a
//! range that it has checked stays valid until it is done. Pinned host memory is in the same table, under another kind.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use lineage_sim_model::Place;

use crate::config::{MOST_DEVICES, config};
use crate::handles::HandleNumber;
use crate::objects::Context;
use crate::result;
use crate::sync::{read, write};

/// CUDA aligns every allocation at least so.
const ALIGNMENT: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Managed,
    /// Device memory of a graph's allocation node.
    Graph,
    /// Page-locked host memory that the driver allocated.
    Pinned,
    /// Host memory of the program's own that was registered.
    Registered,
}

impl Kind {
    pub(crate) fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::Managed | Self::Graph)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Allocation {
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    /// The context with which it goes.
    pub(crate) context: HandleNumber,
    /// That context's device.
    pub(crate) device: u32,
}

static TABLE: RwLock<BTreeMap<u64, Allocation>> = RwLock::new(BTreeMap::new());
/// What is taken of each device.
static DEVICE_BYTES: [AtomicU64; MOST_DEVICES] = [const { AtomicU64::new(0) }; MOST_DEVICES];

fn taken_of(device: u32) -> &'static AtomicU64 {
    // Devices are counted up to `MOST_DEVICES` by the loader.
    &DEVICE_BYTES[device as usize % MOST_DEVICES]
}

/// Allocates zeroed memory and enters it into the table.
pub(crate) fn allocate(bytes: u64, kind: Kind, context: &Context) -> Result<u64, u32> {
    let (context, device) = (context.number, context.device);
    if bytes == 0 {
        return Err(result::INVALID_VALUE);
    }
    if kind.is_device() {
        let limit = config().memory_bytes;
        let taken = taken_of(device).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            taken.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        if taken.is_err() {
            return Err(result::OUT_OF_MEMORY);
        }
    }
    let refused = || {
        if kind.is_device() {
            taken_of(device).fetch_sub(bytes, Ordering::Relaxed);
        }
        result::OUT_OF_MEMORY
    };
    let layout = layout(bytes).ok_or_else(refused)?;
    // SAFETY: the size is not zero.
    let pointer = unsafe { alloc_zeroed(layout) };
    if pointer.is_null() {
        return Err(refused());
    }
    let address = pointer.expose_provenance() as u64;
    write(&TABLE).insert(
        address,
        Allocation {
            bytes,
            kind,
            context,
            device,
        },
    );
    Ok(address)
}

/// Takes an allocation out of the table and frees it.
pub(crate) fn free(address: u64) -> Result<(), u32> {
    let mut table = write(&TABLE);
    let Some(allocation) = table.remove(&address) else {
        return Err(result::INVALID_VALUE);
    };
    drop(table);
    if allocation.kind.is_device() {
        taken_of(allocation.device).fetch_sub(allocation.bytes, Ordering::Relaxed);
    }
    if allocation.kind != Kind::Registered
        && let Some(layout) = layout(allocation.bytes)
    {
        let pointer = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: the table held it, so it was allocated with this layout and not freed before.
        unsafe { dealloc(pointer, layout) };
    }
    Ok(())
}

/// Frees everything that belongs to a context.
pub(crate) fn free_all_of(context: HandleNumber) {
    let addresses: Vec<u64> = {
        let table = read(&TABLE);
        let of_context = table
            .iter()
            .filter(|(_, allocation)| allocation.context == context);
        of_context.map(|(address, _)| *address).collect()
    };
    for address in addresses {
        // Taken away meanwhile by a free of the program's own.
        let _ = free(address);
    }
}

/// Enters memory of the program's own as pinned.
pub(crate) fn register(address: u64, bytes: u64, context: &Context) -> Result<(), u32> {
    if address == 0 || bytes == 0 {
        return Err(result::INVALID_VALUE);
    }
    if find(address).is_some() {
        return Err(result::HOST_MEMORY_ALREADY_REGISTERED);
    }
    write(&TABLE).insert(
        address,
        Allocation {
            bytes,
            kind: Kind::Registered,
            context: context.number,
            device: context.device,
        },
    );
    Ok(())
}

fn layout(bytes: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(bytes).ok()?, ALIGNMENT).ok()
}

/// The allocation that holds an address, and where it starts.
pub(crate) fn find(address: u64) -> Option<(u64, Allocation)> {
    let table = read(&TABLE);
    let (start, allocation) = table.range(..=address).next_back()?;
    (address - start < allocation.bytes).then_some((*start, *allocation))
}

/// The kind of memory that holds the whole range; none where it is no memory of the driver's.
pub(crate) fn kind_of(address: u64, bytes: u64) -> Option<Kind> {
    let (start, allocation) = find(address)?;
    let end = address.checked_add(bytes)?;
    (end <= start + allocation.bytes).then_some(allocation.kind)
}

/// Whether the whole range is device memory.
pub(crate) fn is_device_range(address: u64, bytes: u64) -> bool {
    bytes == 0 || kind_of(address, bytes).is_some_and(Kind::is_device)
}

/// Reads the label that lies in device memory; `None` where there is none.
pub(crate) fn read_label(address: u64) -> Option<u64> {
    let mut label = [0; 8];
    if !is_device_range(address, label.len() as u64) {
        return None;
    }
    let bytes = std::ptr::with_exposed_provenance::<[u8; 8]>(address as usize);
    // SAFETY: live device memory of as many bytes, as has just been checked; work of the device is done one after the other.
    label.copy_from_slice(&unsafe { bytes.read_unaligned() });
    Some(u64::from_le_bytes(label))
}

/// Reads a value on which a stream waits; 0 where there is no memory of the driver's.
pub(crate) fn read_value(place: Place) -> u64 {
    let bytes = if place.is_wide { 8 } else { 4 };
    if kind_of(place.address, bytes).is_none() {
        return 0;
    }
    let pointer = std::ptr::with_exposed_provenance_mut::<u64>(place.address as usize);
    // SAFETY: live memory of the driver's, aligned as the driver's functions have checked. A host may write it meanwhile, hence atomics.
    unsafe {
        if place.is_wide {
            AtomicU64::from_ptr(pointer).load(Ordering::Acquire)
        } else {
            AtomicU32::from_ptr(pointer.cast())
                .load(Ordering::Acquire)
                .into()
        }
    }
}

/// Writes a value, if there is memory of the driver's.
pub(crate) fn write_value(place: Place, value: u64) {
    let bytes = if place.is_wide { 8 } else { 4 };
    if kind_of(place.address, bytes).is_none() {
        return;
    }
    let pointer = std::ptr::with_exposed_provenance_mut::<u64>(place.address as usize);
    // SAFETY: as in `read_value`.
    unsafe {
        if place.is_wide {
            AtomicU64::from_ptr(pointer).store(value, Ordering::Release);
        } else {
            AtomicU32::from_ptr(pointer.cast()).store(value as u32, Ordering::Release);
        }
    }
}

/// The same question across the private interface.
pub(crate) extern "C" fn device_range_is_valid(address: u64, bytes: u64) -> i32 {
    i32::from(is_device_range(address, bytes))
}

/// Allocations of device memory and their bytes.
pub(crate) fn totals() -> (u64, u64) {
    let table = read(&TABLE);
    let count = table
        .values()
        .filter(|allocation| allocation.kind.is_device())
        .count();
    let bytes = DEVICE_BYTES
        .iter()
        .map(|taken| taken.load(Ordering::Relaxed));
    (count as u64, bytes.sum())
}

/// Free and total bytes of a device.
pub(crate) fn information(device: u32) -> (u64, u64) {
    let total = config().memory_bytes;
    (
        total - taken_of(device).load(Ordering::Relaxed).min(total),
        total,
    )
}
