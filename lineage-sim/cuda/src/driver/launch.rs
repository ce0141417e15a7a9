//! Launches.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::call::{Asks, Call};
use crate::clock::spin_ns;
use crate::config::model;
use crate::cupti::api::runtime;
use crate::cupti::records::{self, HostFunctionRecord, Owner};
use crate::device::{self, Entry, HostCall, HostFunction, Item};
use crate::driver::{driver_functions, event};
use crate::graph::capture;
use crate::graph::content::{Content, KernelNode};
use crate::handles::{Handle, number};
use crate::objects::{EVENTS, FUNCTIONS, Function, stream};
use crate::requests::KernelLaunch;
use crate::result;
use crate::submit::submit;

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    stream: Handle,
    attributes: *const LaunchAttribute,
    attribute_count: u32,
}

/// `CUlaunchAttribute`.
#[repr(C)]
struct LaunchAttribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_…`: those that have an effect here.
const COOPERATIVE: u32 = 2;
const CLUSTER: u32 = 4;
const PROGRAMMATIC: u32 = 6;
const PROGRAMMATIC_EVENT: u32 = 7;
const PRIORITY: u32 = 8;
const LAUNCH_COMPLETION_EVENT: u32 = 12;

/// `CU_LAUNCH_PARAM_END`, `BUFFER_POINTER` and `BUFFER_SIZE`.
const PARAMETERS_END: usize = 0;
const PARAMETERS_POINTER: usize = 1;
const PARAMETERS_SIZE: usize = 2;

/// The configuration of a launch, without what is launched.
#[derive(Clone, Copy, Default)]
pub(crate) struct Launch {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) cooperative: bool,
    pub(crate) priority: Option<i32>,
    /// It may start before its predecessor has ended.
    pub(crate) programmatic: bool,
    /// Blocks of a cluster; zeros for none.
    pub(crate) cluster: [u32; 3],
}

/// Copies the parameters' values out of either form in which a launch gives them.
fn parameters(
    function: &Function,
    list: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<Box<[u8]>, u32> {
    let mut block = vec![0; function.parameter_bytes as usize].into_boxed_slice();
    if !extra.is_null() {
        if !list.is_null() {
            return Err(result::INVALID_VALUE);
        }
        let (source, bytes) = parameter_buffer(extra)?;
        if bytes > block.len() || source.is_null() && bytes > 0 {
            return Err(result::INVALID_VALUE);
        }
        // SAFETY: the caller's buffer holds as many bytes as it says.
        unsafe { std::ptr::copy_nonoverlapping(source, block.as_mut_ptr(), bytes) };
        return Ok(block);
    }
    if function.parameters.is_empty() {
        return Ok(block);
    }
    if list.is_null() {
        return Err(result::INVALID_VALUE);
    }
    for (index, parameter) in function.parameters.iter().enumerate() {
        let (offset, size) = (parameter.offset as usize, parameter.size as usize);
        // SAFETY: the caller's list has a pointer for each parameter of the kernel.
        let value = unsafe { list.add(index).read() };
        let place = block
            .get_mut(offset..offset + size)
            .ok_or(result::INVALID_VALUE)?;
        if value.is_null() {
            return Err(result::INVALID_VALUE);
        }
        // SAFETY: each pointer leads to a value of its parameter's size.
        unsafe { std::ptr::copy_nonoverlapping(value.cast(), place.as_mut_ptr(), size) };
    }
    Ok(block)
}

fn parameter_buffer(mut extra: *mut *mut c_void) -> Result<(*const u8, usize), u32> {
    let mut buffer = std::ptr::null();
    let mut bytes = 0;
    loop {
        // SAFETY: the caller's list is pairs of a mark and a pointer, up to the mark of its end.
        let (mark, value) = unsafe {
            let mark = extra.read().addr();
            if mark == PARAMETERS_END {
                return Ok((buffer, bytes));
            }
            (mark, extra.add(1).read())
        };
        match mark {
            PARAMETERS_POINTER => buffer = value.cast_const().cast(),
            // SAFETY: this mark's pointer leads to a size.
            PARAMETERS_SIZE if !value.is_null() => bytes = unsafe { value.cast::<usize>().read() },
            _ => return Err(result::INVALID_VALUE),
        }
        // SAFETY: as above.
        extra = unsafe { extra.add(2) };
    }
}

/// Checks a launch, and copies its parameters.
pub(crate) fn kernel_launch(
    of: Handle,
    launch: &Launch,
    list: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<KernelLaunch, u32> {
    let function: Arc<Function> = FUNCTIONS.get(of).ok_or(result::INVALID_HANDLE)?;
    let threads = launch
        .block
        .iter()
        .map(|extent| u64::from(*extent))
        .product::<u64>();
    let fits_cluster = launch.cluster == [0; 3]
        || launch
            .grid
            .iter()
            .zip(launch.cluster)
            .all(|(grid, cluster)| cluster > 0 && grid.is_multiple_of(cluster));
    let valid = launch.grid.iter().all(|extent| *extent > 0)
        && launch.grid[0] <= i32::MAX as u32
        && launch.grid[1].max(launch.grid[2]) <= 65_535
        && (1..=1_024).contains(&threads)
        && launch.block[2] <= 64
        && fits_cluster
        && launch.dynamic_shared_bytes
            <= function.max_dynamic_shared_bytes.load(Ordering::Relaxed) as u32;
    if !valid {
        return Err(result::INVALID_VALUE);
    }
    let parameters = parameters(&function, list, extra)?;
    Ok(KernelLaunch {
        handle: number(of),
        function,
        grid: launch.grid,
        block: launch.block,
        dynamic_shared_bytes: launch.dynamic_shared_bytes,
        cooperative: launch.cooperative,
        priority: launch.priority,
        programmatic: launch.programmatic,
        cluster: launch.cluster,
        parameters,
    })
}

fn launch(
    call: &Call<'_>,
    stream_handle: Handle,
    of: Handle,
    launch: &Launch,
    list: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<(), u32> {
    let stream = stream(stream_handle)?;
    let kernel = kernel_launch(of, launch, list, extra)?;
    load_lazily(call, &kernel.function);
    if stream.captures.load(Ordering::Acquire) {
        let node = KernelNode::new(kernel.clone());
        if let Some(added) = capture::add(call, &stream, |_, _| Ok(Content::Kernel(node))) {
            return added.map(|_| ());
        }
    }
    let priority = stream.priority.load(Ordering::Relaxed);
    submit(call, &stream, kernel.request(priority));
    Ok(())
}

/// The first launch of a function loads it, where that has a cost.
fn load_lazily(call: &Call<'_>, function: &Function) {
    let cost_ns = model().lazy_loading_ns;
    if cost_ns == 0 || function.is_loaded.swap(true, Ordering::AcqRel) {
        return;
    }
    let overhead = records::Overhead::begin();
    spin_ns(cost_ns);
    call.lazy_loading_ns.set(cost_ns);
    if let Some(overhead) = overhead {
        overhead.lazy_loading(call.thread, call.device_correlation_id());
    }
}

/// The event of an attribute: it does not time. Nothing is promised of how early it is recorded; here that is when the kernel has ended.
fn launch_event(attribute: &LaunchAttribute) -> Result<Handle, u32> {
    let address = u64::from(attribute.value[0]) | u64::from(attribute.value[1]) << 32;
    let event = std::ptr::without_provenance_mut(address as usize);
    let found = EVENTS.get(event).ok_or(result::INVALID_HANDLE)?;
    // The flags after the handle must be 0.
    if found.timed || attribute.value[2] != 0 {
        return Err(result::INVALID_VALUE);
    }
    Ok(event)
}

driver_functions! {
    fn cuLaunchKernel [307 also cuLaunchKernel_ptsz 442, Asks::Work(runtime::LAUNCH)] (
        call, function: Handle, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        dynamic_shared_bytes: u32, of: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        let plain = Launch {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            dynamic_shared_bytes,
            ..Launch::default()
        };
        launch(call, of, function, &plain, parameters, extra)
    }

    fn cuLaunchCooperativeKernel [477 also cuLaunchCooperativeKernel_ptsz 478, Asks::Work(runtime::LAUNCH_COOPERATIVE)] (
        call, function: Handle, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        dynamic_shared_bytes: u32, of: Handle, parameters: *mut *mut c_void,
    ) {
        let cooperative = Launch {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            dynamic_shared_bytes,
            cooperative: true,
            ..Launch::default()
        };
        launch(call, of, function, &cooperative, parameters, std::ptr::null_mut())
    }

    fn cuLaunchKernelEx [652 also cuLaunchKernelEx_ptsz 653, Asks::Work(runtime::LAUNCH_EX)] (
        call, config: *const LaunchConfig, function: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        if config.is_null() {
            return Err(result::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller's to be valid.
        let config = unsafe { config.read() };
        let mut extended = Launch {
            grid: config.grid,
            block: config.block,
            dynamic_shared_bytes: config.dynamic_shared_bytes,
            ..Launch::default()
        };
        let mut events = Vec::new();
        if config.attribute_count > 0 && config.attributes.is_null() {
            return Err(result::INVALID_VALUE);
        }
        for index in 0..config.attribute_count as usize {
            // SAFETY: the caller's list has so many attributes.
            let attribute = unsafe { &*config.attributes.add(index) };
            match attribute.id {
                // None, access policy, synchronization policy, cluster scheduling, memory synchronization domains, preferred
                // cluster, shared memory, NVLink: hints, or without effect on order and time here.
                0 | 1 | 3 | 5 | 9 | 10 | 11 | 14 | 16..=18 => {}
                COOPERATIVE => extended.cooperative = attribute.value[0] != 0,
                PROGRAMMATIC => extended.programmatic = attribute.value[0] != 0,
                PRIORITY => extended.priority = Some(attribute.value[0] as i32),
                CLUSTER => {
                    let [x, y, z] = [0, 1, 2].map(|at| attribute.value[at]);
                    extended.cluster = [x, y, z];
                    if extended.cluster.contains(&0) {
                        return Err(result::INVALID_VALUE);
                    }
                }
                PROGRAMMATIC_EVENT | LAUNCH_COMPLETION_EVENT => {
                    events.push(launch_event(attribute)?);
                }
                // Updatable from the device.
                13 => return Err(result::NOT_SUPPORTED),
                _ => return Err(result::INVALID_VALUE),
            }
        }
        launch(call, config.stream, function, &extended, parameters, extra)?;
        events.into_iter().try_for_each(|event| event::record(call, event, config.stream))
    }

    fn cuLaunchHostFunc [527 also cuLaunchHostFunc_ptsz 528, Asks::Nothing] (call, of: Handle, function: Option<unsafe extern "C" fn(*mut c_void)>, user: *mut c_void) {
        let stream = stream(of)?;
        let function = function.ok_or(result::INVALID_VALUE)?;
        let host = HostCall { function, user };
        if let Some(added) = capture::add(call, &stream, |_, _| Ok(Content::Host(host))) {
            return added.map(|_| ());
        }
        let owner = Owner {
            context_id: stream.context_id,
            stream_id: stream.id,
            correlation_id: call.device_correlation_id(),
            runtime_correlation_id: call.runtime_correlation_id,
            node: None,
        };
        let record = HostFunctionRecord::open(call.thread, &owner);
        let mut entry = Entry::marker(Item::HostFunction(HostFunction { record, function, user }));
        entry.work = lineage_sim_model::Work::Other { duration_ns: 0 };
        device::enqueue(Some(call), &stream, entry);
        Ok(())
    }
}
