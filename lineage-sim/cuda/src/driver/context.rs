//! Contexts.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::call::{Asks, Call};
use crate::clock::spin_ns;
use crate::config::config;
use crate::cupti::activity::{self, kind};
use crate::cupti::records::{self, Synchronization, SynchronizationRecord};
use crate::cupti::time::{self, Stamp};
use crate::driver::general::check_device;
use crate::driver::{Out, driver_functions};
use crate::graph::capture;
use crate::handles::{Handle, handle};
use crate::objects::{self, CONTEXTS, Context, current_context, current_context_even_if_failed};
use crate::result;
use crate::sync::lock;

/// `CU_CTX_FLAGS_MASK`.
const FLAGS: u32 = 0xff;
/// The lowest and the highest priority of streams.
pub(crate) const LEAST_PRIORITY: i32 = 0;
pub(crate) const GREATEST_PRIORITY: i32 = -5;

fn create(call: &Call<'_>, place: Out<Handle>, flags: u32, device: c_int) -> Result<(), u32> {
    let device = check_device(device)?;
    place.check()?;
    if flags & !FLAGS != 0 {
        return Err(result::INVALID_VALUE);
    }
    let context = open(call, device, flags);
    objects::push_current_context(context.number);
    place.put(handle(context.number))
}

fn open(call: &Call<'_>, device: u32, flags: u32) -> Arc<Context> {
    let context = Context::create(device, flags);
    let cost_ns = config().resource_ns;
    if cost_ns > 0 && activity::is_active() {
        let overhead = records::Overhead::begin();
        spin_ns(cost_ns);
        if let Some(overhead) = overhead {
            overhead.resource(call.thread, call.device_correlation_id());
        }
    }
    if activity::is_enabled(kind::CONTEXT) {
        records::write_context(call.thread, context.id, device, context.default_stream.id);
    }
    context
}

/// The context that is meant: null is the current one.
fn meant(context: Handle) -> Result<Arc<Context>, u32> {
    if context.is_null() {
        current_context_even_if_failed()
    } else {
        CONTEXTS.get(context).ok_or(result::INVALID_CONTEXT)
    }
}

/// What the record of a synchronisation says, when those are recorded.
pub(crate) fn write_synchronization(
    call: &Call<'_>,
    of: Synchronization,
    start: Option<Stamp>,
    context_id: u32,
    stream_id: u32,
    event: Option<(u32, u64)>,
    outcome: Result<(), u32>,
) {
    let Some(start) = start else {
        return;
    };
    let record = SynchronizationRecord {
        of,
        start,
        end: time::stamp(),
        correlation_id: call.device_correlation_id(),
        context_id,
        stream_id,
        event,
        result: outcome.err().unwrap_or(0),
    };
    records::write_synchronization(call.thread, &record);
}

/// The start of a synchronisation's record; none when those are not recorded.
pub(crate) fn synchronization_start() -> Option<Stamp> {
    activity::is_enabled(kind::SYNCHRONIZATION).then(time::stamp)
}

driver_functions! {
    fn cuDevicePrimaryCtxRetain [386, Asks::Nothing] (call, context: Out<Handle>, device: c_int) {
        let device = check_device(device)?;
        context.check()?;
        let mut primary = objects::primary(device);
        let flags = primary.flags;
        let number = primary.context.get_or_insert_with(|| open(call, device, flags)).number;
        primary.retained += 1;
        context.put(handle(number))
    }

    fn cuDevicePrimaryCtxRelease_v2 [544, Asks::Nothing] (_, device: c_int) {
        release(device)
    }

    fn cuDevicePrimaryCtxRelease [387, Asks::Nothing] (_, device: c_int) {
        release(device)
    }

    fn cuDevicePrimaryCtxReset_v2 [545, Asks::Nothing] (_, device: c_int) {
        let context = objects::primary(check_device(device)?).context.take();
        if let Some(context) = context {
            objects::destroy_context(&context);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState [392, Asks::Nothing] (_, device: c_int, flags: Out<u32>, active: Out<c_int>) {
        let primary = objects::primary(check_device(device)?);
        flags.put(primary.flags)?;
        active.put(primary.context.is_some().into())
    }

    fn cuDevicePrimaryCtxSetFlags_v2 [546, Asks::Nothing] (_, device: c_int, flags: u32) {
        let device = check_device(device)?;
        if flags & !FLAGS != 0 {
            return Err(result::INVALID_VALUE);
        }
        let mut primary = objects::primary(device);
        primary.flags = flags;
        if let Some(context) = &primary.context {
            context.flags.store(flags, Ordering::Relaxed);
        }
        Ok(())
    }

    fn cuCtxCreate_v2 [235, Asks::Nothing] (call, context: Out<Handle>, flags: u32, device: c_int) {
        create(call, context, flags, device)
    }

    fn cuCtxCreate_v3 [645, Asks::Nothing] (call, context: Out<Handle>, _affinity: *mut c_void, count: c_int, flags: u32, device: c_int) {
        if count != 0 {
            return Err(result::NOT_SUPPORTED);
        }
        create(call, context, flags, device)
    }

    fn cuCtxCreate_v4 [757, Asks::Nothing] (call, context: Out<Handle>, parameters: *mut c_void, flags: u32, device: c_int) {
        if !parameters.is_null() {
            return Err(result::NOT_SUPPORTED);
        }
        create(call, context, flags, device)
    }

    fn cuCtxDestroy_v2 [322, Asks::Nothing] (_, context: Handle) {
        let context = CONTEXTS.get(context).ok_or(result::INVALID_CONTEXT)?;
        let is_primary = objects::primary(context.device).context.as_ref().is_some_and(|primary| primary.id == context.id);
        if is_primary {
            return Err(result::INVALID_CONTEXT);
        }
        if objects::current_context_number() == context.number {
            objects::pop_current_context();
        }
        objects::destroy_context(&context);
        Ok(())
    }

    fn cuCtxGetCurrent [304, Asks::Nothing] (_, context: Out<Handle>) {
        context.put(handle(objects::current_context_number()))
    }

    fn cuCtxSetCurrent [303, Asks::Nothing] (_, context: Handle) {
        if !context.is_null() && CONTEXTS.get(context).is_none() {
            return Err(result::INVALID_CONTEXT);
        }
        objects::set_current_context(context.addr() as u64);
        Ok(())
    }

    fn cuCtxPushCurrent_v2 [323, Asks::Nothing] (_, context: Handle) {
        let context = CONTEXTS.get(context).ok_or(result::INVALID_CONTEXT)?;
        objects::push_current_context(context.number);
        Ok(())
    }

    fn cuCtxPopCurrent_v2 [324, Asks::Nothing] (_, context: Out<Handle>) {
        let popped = objects::pop_current_context().ok_or(result::INVALID_CONTEXT)?;
        context.put_if_wanted(handle(popped));
        Ok(())
    }

    fn cuCtxGetDevice [16, Asks::Nothing] (_, device: Out<c_int>) {
        device.put(current_context_even_if_failed()?.device as c_int)
    }

    fn cuCtxGetFlags [391, Asks::Nothing] (_, flags: Out<u32>) {
        flags.put(current_context()?.flags.load(Ordering::Relaxed))
    }

    fn cuCtxSetFlags [705, Asks::Nothing] (_, flags: u32) {
        if flags & !FLAGS != 0 {
            return Err(result::INVALID_VALUE);
        }
        current_context()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    fn cuCtxGetApiVersion [296, Asks::Nothing] (_, context: Handle, version: Out<u32>) {
        meant(context)?;
        version.put(3_020)
    }

    fn cuCtxGetId [695, Asks::Nothing] (_, context: Handle, id: Out<u64>) {
        id.put(meant(context)?.id.into())
    }

    fn cuCtxGetLimit [137, Asks::Nothing] (_, value: Out<usize>, limit: u32) {
        let context = current_context()?;
        // Stack size, printf buffer, heap of device malloc.
        let default = match limit {
            0 => 1_024,
            1 => 1 << 20,
            2 => 8 << 20,
            _ => return Err(result::NOT_SUPPORTED),
        };
        let limits = lock(&context.limits);
        value.put(limits.get(&limit).copied().unwrap_or(default))
    }

    fn cuCtxSetLimit [136, Asks::Nothing] (_, limit: u32, value: usize) {
        let context = current_context()?;
        if limit > 2 {
            return Err(result::NOT_SUPPORTED);
        }
        lock(&context.limits).insert(limit, value);
        Ok(())
    }

    fn cuCtxGetCacheConfig [299, Asks::Nothing] (_, value: Out<u32>) {
        value.put(current_context()?.cache_config.load(Ordering::Relaxed))
    }

    fn cuCtxSetCacheConfig [300, Asks::Nothing] (_, value: u32) {
        if value > 3 {
            return Err(result::INVALID_VALUE);
        }
        current_context()?.cache_config.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn cuCtxGetStreamPriorityRange [370, Asks::Nothing] (_, least: Out<c_int>, greatest: Out<c_int>) {
        current_context()?;
        least.put_if_wanted(LEAST_PRIORITY);
        greatest.put_if_wanted(GREATEST_PRIORITY);
        Ok(())
    }

    fn cuCtxSynchronize [17, Asks::Nothing] (call) {
        let context = current_context()?;
        capture::check_context(context.number)?;
        let start = synchronization_start();
        let outcome = context.synchronize();
        write_synchronization(
            call, Synchronization::Context, start, context.id, records::INVALID_ID, None, outcome,
        );
        outcome
    }
}

fn release(device: c_int) -> Result<(), u32> {
    let mut primary = objects::primary(check_device(device)?);
    if primary.retained == 0 {
        return Err(result::INVALID_CONTEXT);
    }
    primary.retained -= 1;
    if primary.retained > 0 {
        return Ok(());
    }
    let context = primary.context.take();
    drop(primary);
    if let Some(context) = context {
        objects::destroy_context(&context);
    }
    Ok(())
}
