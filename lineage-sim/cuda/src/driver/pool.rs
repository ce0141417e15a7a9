//! Memory pools: allocations and frees in stream order.
//!
//! A free takes effect when its stream reaches it. An allocation of as many bytes may take the memory of a free that is
//! still to come: in the same stream at once, in another one behind that free, if the pool's attribute
//! `REUSE_ALLOW_INTERNAL_DEPENDENCIES` allows it, as it does unless it is set otherwise. What a stream has reached is given back at once.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use lineage_sim_model::OperationKey;

use crate::call::{Asks, Call};
use crate::device::{self, Entry, Item};
use crate::driver::general::check_device;
use crate::driver::memory::{allocate, check_start};
use crate::driver::{Out, driver_functions};
use crate::graph::content::Content;
use crate::graph::{self, capture};
use crate::handles::{Handle, HandleNumber, Registry, handle};
use crate::memory::{self, Kind};
use crate::objects::{Stream, current_context, stream};
use crate::result;
use crate::sync::lock;

static POOLS: Registry<Pool> = Registry::new(0x0c06);

#[derive(Default)]
pub(crate) struct Pool {
    device: u32,
    /// `CUmemPool_attribute` → value, as far as set.
    attributes: Mutex<HashMap<u32, u64>>,
    coming: Mutex<Vec<ComingFree>>,
}

/// A free that its stream has not reached, as far as is known here.
struct ComingFree {
    free: Arc<PooledFree>,
    stream: u32,
    key: OperationKey,
}

/// What a stream holds of a free.
pub(crate) struct PooledFree {
    address: u64,
    bytes: u64,
    state: AtomicU8,
}

const COMING: u8 = 0;
const REUSED: u8 = 1;
const DONE: u8 = 2;

impl PooledFree {
    /// The stream has reached it.
    pub(crate) fn reached(&self) {
        if self.take(DONE) {
            // Freed twice in stream order is the program's error; CUDA reports none either.
            let _ = memory::free(self.address);
        }
    }

    fn take(&self, state: u8) -> bool {
        let taken = self
            .state
            .compare_exchange(COMING, state, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok()
    }

    fn is_coming(&self) -> bool {
        self.state.load(Ordering::Acquire) == COMING
    }
}

/// `CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES`.
const INTERNAL_DEPENDENCIES: u32 = 3;

impl Pool {
    fn attribute(&self, attribute: u32) -> u64 {
        let set = lock(&self.attributes).get(&attribute).copied();
        // The three kinds of reuse are allowed, and nothing is held back for later.
        set.unwrap_or(u64::from(attribute < 4))
    }

    /// Memory of a free that is still to come, and what it must wait for.
    fn reuse(&self, bytes: u64, stream: &Stream) -> Option<(u64, Option<OperationKey>)> {
        let crosses = self.attribute(INTERNAL_DEPENDENCIES) != 0;
        let mut coming = lock(&self.coming);
        coming.retain(|one| one.free.is_coming());
        let fits = |one: &ComingFree, same: bool| {
            one.free.bytes == bytes && (one.stream == stream.id) == same
        };
        let own = coming.iter().position(|one| fits(one, true));
        let other = || coming.iter().position(|one| crosses && fits(one, false));
        let at = own.or_else(other)?;
        let one = coming.swap_remove(at);
        let behind = (one.stream != stream.id).then_some(one.key);
        one.free.take(REUSED).then_some((one.free.address, behind))
    }
}

/// The default pool of a device.
fn default_pool(device: u32) -> Handle {
    static DEFAULTS: OnceLock<Mutex<HashMap<u32, HandleNumber>>> = OnceLock::new();
    let mut defaults = lock(DEFAULTS.get_or_init(Default::default));
    let number = defaults.entry(device).or_insert_with(|| new_pool(device));
    handle(*number)
}

fn new_pool(device: u32) -> HandleNumber {
    let number = POOLS.reserve();
    let pool = Pool {
        device,
        ..Pool::default()
    };
    POOLS.insert(number, Arc::new(pool));
    number
}

/// The pool that each device allocates from, where it was set.
static CHOSEN: Mutex<Vec<(u32, HandleNumber)>> = Mutex::new(Vec::new());

fn chosen_pool(device: u32) -> Handle {
    let chosen = lock(&CHOSEN);
    let found = chosen.iter().find(|(of, _)| *of == device);
    match found {
        Some((_, number)) if POOLS.get_number(*number).is_some() => handle(*number),
        _ => default_pool(device),
    }
}

fn find(pool: Handle) -> Result<Arc<Pool>, u32> {
    POOLS.get(pool).ok_or(result::INVALID_VALUE)
}

fn allocate_from(
    call: &Call<'_>,
    pool: Option<Handle>,
    bytes: usize,
    of: Handle,
) -> Result<u64, u32> {
    let stream = stream(of)?;
    if capture::is_capturing(&stream) {
        let allocated = graph::memory::allocate(bytes)?;
        let address = allocated.address;
        let added = capture::add(call, &stream, |_, _| Ok(Content::Allocate(allocated)));
        return added.unwrap_or(Err(result::ILLEGAL_STATE)).map(|_| address);
    }
    let pool = find(pool.unwrap_or_else(|| chosen_pool(stream.device)))?;
    let Some((address, behind)) = pool.reuse(bytes as u64, &stream) else {
        return allocate(bytes, Kind::Device);
    };
    if behind.is_some() {
        let mut wait = Entry::marker(Item::Wait);
        wait.waits_for = behind;
        device::enqueue(Some(call), &stream, wait);
    }
    Ok(address)
}

fn free(call: &Call<'_>, address: u64, of: Handle) -> Result<(), u32> {
    let stream = stream(of)?;
    if capture::is_capturing(&stream) {
        let freed = graph::memory::find(address)?;
        let added = capture::add(call, &stream, |_, _| Ok(Content::Free(freed)));
        return added.unwrap_or(Err(result::ILLEGAL_STATE)).map(|_| ());
    }
    if let Ok(of_graph) = graph::memory::find(address) {
        of_graph.free()?;
        device::enqueue(
            Some(call),
            &stream,
            Entry::marker(Item::FreedOfGraph(of_graph)),
        );
        return Ok(());
    }
    // A graph's, too, where that is gone.
    check_start(address, |kind| matches!(kind, Kind::Device | Kind::Graph))?;
    let bytes = memory::find(address).map_or(0, |found| found.1.bytes);
    let free = Arc::new(PooledFree {
        address,
        bytes,
        state: AtomicU8::new(COMING),
    });
    let entry = Entry::marker(Item::PooledFree(free.clone()));
    let key = device::enqueue(Some(call), &stream, entry);
    let pool = find(chosen_pool(stream.device))?;
    let mut coming = lock(&pool.coming);
    coming.retain(|one| one.free.is_coming());
    coming.push(ComingFree {
        free,
        stream: stream.id,
        key,
    });
    Ok(())
}

/// `CUmemPoolProps`, as far as it is looked at.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PoolProperties {
    allocation_type: u32,
    handle_types: u32,
    location_type: u32,
    location_id: i32,
}

driver_functions! {
    fn cuMemAllocAsync [598 also cuMemAllocAsync_ptsz 599, Asks::Nothing] (call, pointer: Out<u64>, bytes: usize, of: Handle) {
        pointer.check()?;
        pointer.put(allocate_from(call, None, bytes, of)?)
    }

    fn cuMemAllocFromPoolAsync [611 also cuMemAllocFromPoolAsync_ptsz 612, Asks::Nothing] (call, pointer: Out<u64>, bytes: usize, pool: Handle, of: Handle) {
        pointer.check()?;
        pointer.put(allocate_from(call, Some(pool), bytes, of)?)
    }

    fn cuMemFreeAsync [600 also cuMemFreeAsync_ptsz 601, Asks::Nothing] (call, pointer: u64, of: Handle) {
        free(call, pointer, of)
    }

    fn cuMemPoolCreate [607, Asks::Nothing] (_, pool: Out<Handle>, properties: *const PoolProperties) {
        pool.check()?;
        current_context()?;
        let properties = crate::driver::graph_params::read(properties)?;
        // CU_MEM_ALLOCATION_TYPE_PINNED on a device, not to be shared with other processes.
        if properties.allocation_type != 1 || properties.location_type != 1 {
            return Err(result::INVALID_VALUE);
        }
        if properties.handle_types != 0 {
            return Err(result::NOT_SUPPORTED);
        }
        pool.put(handle(new_pool(check_device(properties.location_id)?)))
    }

    fn cuMemPoolDestroy [608, Asks::Nothing] (_, pool: Handle) {
        let found = find(pool)?;
        if default_pool(found.device) == pool {
            return Err(result::INVALID_VALUE);
        }
        POOLS.remove(pool);
        Ok(())
    }

    fn cuDeviceGetDefaultMemPool [606, Asks::Nothing] (_, pool: Out<Handle>, device: c_int) {
        pool.put(default_pool(check_device(device)?))
    }

    fn cuDeviceGetMemPool [610, Asks::Nothing] (_, pool: Out<Handle>, device: c_int) {
        pool.put(chosen_pool(check_device(device)?))
    }

    fn cuDeviceSetMemPool [609, Asks::Nothing] (_, device: c_int, pool: Handle) {
        let device = check_device(device)?;
        if find(pool)?.device != device {
            return Err(result::INVALID_VALUE);
        }
        let mut chosen = lock(&CHOSEN);
        chosen.retain(|(of, _)| *of != device);
        chosen.push((device, pool.addr() as u64));
        Ok(())
    }

    fn cuMemPoolTrimTo [602, Asks::Nothing] (_, pool: Handle, _bytes_to_keep: usize) {
        find(pool).map(|_| ())
    }

    fn cuMemPoolSetAccess [605, Asks::Nothing] (_, pool: Handle, _list: *const c_void, _count: usize) {
        find(pool).map(|_| ())
    }

    fn cuMemPoolGetAccess [617, Asks::Nothing] (_, flags: Out<u32>, pool: Handle, _location: *const c_void) {
        find(pool)?;
        // CU_MEM_ACCESS_FLAGS_PROT_READWRITE: every device reaches every other's memory.
        flags.put(3)
    }

    fn cuMemPoolGetAttribute [604, Asks::Nothing] (_, pool: Handle, attribute: u32, value: Out<c_void>) {
        let pool = find(pool)?;
        value.check()?;
        let number = match attribute {
            // Reserved and used memory, now and at most (not followed: what is used now).
            5..=8 => memory::totals().1,
            1..=4 => pool.attribute(attribute),
            _ => return Err(result::INVALID_VALUE),
        };
        let place = value.pointer();
        if attribute < 4 {
            Out(place.cast::<i32>()).put(number as i32)
        } else {
            Out(place.cast::<u64>()).put(number)
        }
    }

    fn cuMemPoolSetAttribute [603, Asks::Nothing] (_, pool: Handle, attribute: u32, value: *mut c_void) {
        let pool = find(pool)?;
        if value.is_null() {
            return Err(result::INVALID_VALUE);
        }
        // SAFETY: the caller's value has the size that the attribute has.
        let number = unsafe {
            match attribute {
                1..=3 => value.cast::<u32>().read().into(),
                4 | 6 | 8 => value.cast::<u64>().read(),
                _ => return Err(result::INVALID_VALUE),
            }
        };
        lock(&pool.attributes).insert(attribute, number);
        Ok(())
    }
}
