//! The CUPTI functions themselves: checks of arguments, and the table that libcupti forwards to.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use crate::abi::{
    BufferCompleted, BufferRequested, CallbackFunction, CuptiTable, TimestampCallback,
    cupti_functions,
};
use crate::callback_ids;
use crate::config::{config, is_configured};
use crate::cupti::activity::{Domain, kind};
use crate::cupti::api::LAST_ERROR;
use crate::cupti::buffers::{self, Functions};
use crate::cupti::{attributes, client, result, subscriber};
use crate::graph;
use crate::handles::Handle;
use crate::objects::{self, CONTEXTS, STREAMS, current_context_number};
use crate::threads::{EXTERNAL_KINDS, ThreadState};

/// Runs a function's body; keeps its error, and turns a panic into one.
pub(crate) fn guarded(body: impl FnOnce() -> Result<(), u32>) -> u32 {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if is_configured() {
            body()
        } else {
            Err(result::NOT_INITIALIZED)
        }
    }));
    let code = match outcome {
        Ok(Ok(())) => return result::SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => {
            crate::call::count_panic();
            result::UNKNOWN
        }
    };
    LAST_ERROR.store(code, Ordering::Relaxed);
    code
}

pub(crate) fn check(condition: bool, code: u32) -> Result<(), u32> {
    if condition { Ok(()) } else { Err(code) }
}

/// # Safety
///
/// `place` must be null or valid to be written.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) -> Result<(), u32> {
    check(!place.is_null(), result::INVALID_PARAMETER)?;
    // SAFETY: not null, and valid by this function's own contract.
    unsafe { place.write(value) };
    Ok(())
}

macro_rules! build_table {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        pub(crate) static TABLE: CuptiTable = CuptiTable { $($name,)* };
    };
}
cupti_functions!(build_table);

use crate::cupti::subscriber_functions::*;

/// Defines functions of the table. Their pointers are the client's: null, or valid for what the
/// header says of them.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {
        $(
            #[allow(non_snake_case)]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                guarded(|| $body)
            }
        )*
    };
}

pub(crate) use functions;

/// Subscribes, if neither a configuration nor another tool is against it.
pub(crate) fn subscribe_as(
    request: subscriber::Request,
) -> (Option<std::ffi::CString>, Result<Handle, u32>) {
    match config().fail_subscribe_with {
        0 => subscriber::subscribe(request),
        code => (None, Err(code)),
    }
}

functions! {
    fn cuptiGetVersion(version: *mut u32) {
        // SAFETY: the client's pointer.
        unsafe { put(version, config().cupti_version) }
    }

    fn cuptiGetResultString(code: u32, text: *mut *const c_char) {
        let row = result::TABLE.iter().find(|(number, _)| *number == code);
        let name = row.ok_or(result::INVALID_PARAMETER)?.1;
        // SAFETY: the client's pointer.
        unsafe { put(text, name.as_ptr()) }
    }

    fn cuptiGetTimestamp(timestamp: *mut u64) {
        // SAFETY: the client's pointer.
        unsafe { put(timestamp, client::sole()?.clock.stamp_ns()) }
    }

    fn cuptiSubscribe(handle: *mut *mut c_void, callback: Option<CallbackFunction>, userdata: *mut c_void) {
        check(!handle.is_null(), result::INVALID_PARAMETER)?;
        let request = subscriber::Request { callback, userdata, allows_several: false, name: None };
        let new = subscribe_as(request).1?;
        // SAFETY: the client's pointer.
        unsafe { put(handle, new) }
    }

    fn cuptiUnsubscribe(handle: *mut c_void) {
        subscriber::unsubscribe(client::of(handle)?);
        Ok(())
    }

    fn cuptiEnableCallback(enable: u32, handle: *mut c_void, domain: u32, cbid: u32) {
        let callbacks = &client::of(handle)?.callbacks;
        check((1..=subscriber::LAST_DOMAIN).contains(&domain), result::INVALID_PARAMETER)?;
        if let Some(domain) = subscriber::domain(domain) {
            check(callback_ids::known(domain, cbid).is_some(), result::INVALID_PARAMETER)?;
            callbacks.set(domain, cbid, enable != 0);
        } else if domain == subscriber::RESOURCE {
            check((1..=subscriber::last_resource()).contains(&cbid), result::INVALID_PARAMETER)?;
            callbacks.set_resource(cbid, enable != 0);
        }
        Ok(())
    }

    fn cuptiEnableDomain(enable: u32, handle: *mut c_void, domain: u32) {
        let callbacks = &client::of(handle)?.callbacks;
        check((1..=subscriber::LAST_DOMAIN).contains(&domain), result::INVALID_PARAMETER)?;
        if let Some(domain) = subscriber::domain(domain) {
            callbacks.set_domain(domain, enable != 0);
        } else if domain == subscriber::RESOURCE {
            callbacks.set_all_resources(enable != 0);
        }
        Ok(())
    }

    fn cuptiEnableAllDomains(enable: u32, handle: *mut c_void) {
        let callbacks = &client::of(handle)?.callbacks;
        for domain in [Domain::Driver, Domain::Runtime] {
            callbacks.set_domain(domain, enable != 0);
        }
        callbacks.set_all_resources(enable != 0);
        Ok(())
    }

    fn cuptiGetCallbackState(enable: *mut u32, handle: *mut c_void, domain: u32, cbid: u32) {
        let callbacks = &client::of(handle)?.callbacks;
        check((1..=subscriber::LAST_DOMAIN).contains(&domain), result::INVALID_PARAMETER)?;
        let on = match subscriber::domain(domain) {
            Some(domain) => callbacks.has(domain, cbid),
            None => domain == subscriber::RESOURCE && callbacks.has_resource(cbid),
        };
        // SAFETY: the client's pointer.
        unsafe { put(enable, on.into()) }
    }

    fn cuptiGetCallbackName(domain: u32, cbid: u32, name: *mut *const c_char) {
        let domain = subscriber::domain(domain).ok_or(result::INVALID_PARAMETER)?;
        let found = callback_ids::known(domain, cbid).ok_or(result::INVALID_PARAMETER)?;
        // SAFETY: the client's pointer.
        unsafe { put(name, found.as_ptr()) }
    }

    fn cuptiGetDeviceId(context: *mut c_void, device_id: *mut u32) {
        let number = if context.is_null() { current_context_number() } else { context.addr() as u64 };
        let context = CONTEXTS.get_number(number).ok_or(result::INVALID_DEVICE)?;
        // SAFETY: the client's pointer.
        unsafe { put(device_id, context.device) }
    }

    fn cuptiGetContextId(context: *mut c_void, context_id: *mut u32) {
        let context = CONTEXTS.get(context).ok_or(result::INVALID_CONTEXT)?;
        // SAFETY: the client's pointer.
        unsafe { put(context_id, context.id) }
    }

    fn cuptiGetStreamId(context: *mut c_void, stream: *mut c_void, stream_id: *mut u32) {
        // SAFETY: the client's pointer.
        unsafe { put(stream_id, id_of_stream(context, stream)?) }
    }

    fn cuptiGetStreamIdEx(context: *mut c_void, stream: *mut c_void, per_thread_stream: u8, stream_id: *mut u32) {
        let stream = if per_thread_stream != 0 && stream.is_null() {
            // CU_STREAM_PER_THREAD
            std::ptr::without_provenance_mut(2)
        } else {
            stream
        };
        // SAFETY: the client's pointer.
        unsafe { put(stream_id, id_of_stream(context, stream)?) }
    }

    fn cuptiGetGraphId(graph: *mut c_void, id: *mut u32) {
        let found = graph::id_of_graph(graph).ok_or(result::INVALID_PARAMETER)?;
        // SAFETY: the client's pointer.
        unsafe { put(id, found) }
    }

    fn cuptiGetGraphExecId(exec: *mut c_void, id: *mut u32) {
        let found = graph::id_of_exec(exec).ok_or(result::INVALID_PARAMETER)?;
        // SAFETY: the client's pointer.
        unsafe { put(id, found) }
    }

    fn cuptiGetGraphNodeId(node: *mut c_void, id: *mut u64) {
        let found = graph::id_of_node(node).ok_or(result::INVALID_PARAMETER)?;
        // SAFETY: the client's pointer.
        unsafe { put(id, found) }
    }

    fn cuptiActivityEnable(kind: u32) {
        check(config().activity_enable_fails_with == 0, config().activity_enable_fails_with)?;
        check(is_kind(kind), result::INVALID_KIND)?;
        client::sole()?.recording.set_kind(kind, true);
        Ok(())
    }

    fn cuptiActivityDisable(kind: u32) {
        check(is_kind(kind), result::INVALID_KIND)?;
        client::sole()?.recording.set_kind(kind, false);
        Ok(())
    }

    fn cuptiActivityEnableDriverApi(cbid: u32, enable: u8) {
        check(callback_ids::known(Domain::Driver, cbid).is_some(), result::INVALID_PARAMETER)?;
        client::sole()?.recording.set_id(Domain::Driver, cbid, enable != 0);
        Ok(())
    }

    fn cuptiActivityEnableRuntimeApi(cbid: u32, enable: u8) {
        check(callback_ids::known(Domain::Runtime, cbid).is_some(), result::INVALID_PARAMETER)?;
        client::sole()?.recording.set_id(Domain::Runtime, cbid, enable != 0);
        Ok(())
    }

    fn cuptiActivityRegisterCallbacks(requested: Option<BufferRequested>, completed: Option<BufferCompleted>) {
        let requested = requested.ok_or(result::INVALID_PARAMETER)?;
        let completed = completed.ok_or(result::INVALID_PARAMETER)?;
        client::sole()?.delivery.register(Functions::Plain(requested, completed));
        Ok(())
    }

    fn cuptiActivityGetNextRecord(buffer: *mut u8, valid_bytes: usize, record: *mut *mut u8) {
        check(!buffer.is_null() && !record.is_null(), result::INVALID_PARAMETER)?;
        // SAFETY: the client's pointers: a buffer that was handed back with these valid bytes,
        // and a place that holds null or the record before.
        unsafe {
            let next = buffers::next_record(buffer, valid_bytes, record.read())?;
            put(record, next)
        }
    }

    fn cuptiActivityGetNumDroppedRecords(context: *mut c_void, _stream_id: u32, dropped: *mut usize) {
        check(!dropped.is_null(), result::INVALID_PARAMETER)?;
        // All buffers are global: a context's own queue never drops.
        let client = client::sole()?;
        let count = if context.is_null() { client.delivery.take_dropped() } else { 0 };
        // SAFETY: the client's pointer.
        unsafe { put(dropped, count) }
    }

    fn cuptiActivityFlushAll(flag: u32) {
        buffers::flush_all(flag & 1 == 1)
    }

    fn cuptiActivityFlushPeriod(milliseconds: u32) {
        buffers::worker::set_period(milliseconds);
        Ok(())
    }

    fn cuptiActivityGetAttribute(attribute: u32, size: *mut usize, value: *mut c_void) {
        // SAFETY: the client's pointers.
        unsafe { attributes::get(client::sole()?, attributes::LAST_PLAIN, attribute, size, value) }
    }

    fn cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut c_void) {
        // SAFETY: the client's pointers.
        unsafe { attributes::set(client::sole()?, attributes::LAST_PLAIN, attribute, size, value) }
    }

    fn cuptiActivityPushExternalCorrelationId(kind: u32, id: u64) {
        let (client, kind) = (client::sole()?, external_kind(kind)?);
        ThreadState::with(|thread| thread.push(client, kind, id));
        Ok(())
    }

    fn cuptiActivityPopExternalCorrelationId(kind: u32, last_id: *mut u64) {
        let (client, kind) = (client::sole()?, external_kind(kind)?);
        let popped = ThreadState::with(|thread| thread.pop(client, kind)).ok_or(result::QUEUE_EMPTY)?;
        if !last_id.is_null() {
            // SAFETY: the client's pointer, which may be null.
            unsafe { last_id.write(popped) };
        }
        Ok(())
    }

    fn cuptiActivityRegisterTimestampCallback(callback: Option<TimestampCallback>) {
        let callback = callback.ok_or(result::INVALID_PARAMETER)?;
        client::sole()?.clock.set_callback(Some(callback));
        Ok(())
    }

    fn cuptiActivityEnableLatencyTimestamps(enable: u8) {
        client::sole()?.recording.latency_timestamps.store(enable != 0, Ordering::Release);
        Ok(())
    }

    fn cuptiActivityEnableCudaEventDeviceTimestamps(enable: u8) {
        client::sole()?.recording.event_timestamps.store(enable != 0, Ordering::Release);
        Ok(())
    }

    fn cuptiActivityEnableAllSyncRecords(enable: u8) {
        client::sole()?.recording.all_synchronizations.store(u32::from(enable != 0), Ordering::Release);
        Ok(())
    }

    fn cuptiSetThreadIdType(thread_id_type: u32) {
        check(thread_id_type < 2, result::INVALID_PARAMETER)?;
        let client = client::sole().map_err(|_| result::NOT_SUPPORTED)?;
        client.recording.thread_id_type.store(thread_id_type, Ordering::Release);
        Ok(())
    }

    fn cuptiGetThreadIdType(thread_id_type: *mut u32) {
        let client = client::sole().map_err(|_| result::NOT_SUPPORTED)?;
        // SAFETY: the client's pointer.
        unsafe { put(thread_id_type, client.recording.thread_id_type.load(Ordering::Acquire)) }
    }

    fn cuptiFinalize() {
        subscriber::end_all();
        buffers::reset();
        Ok(())
    }
}

/// Returns the last error and resets it; as a CUPTI function, it returns the error itself.
#[allow(non_snake_case)]
unsafe extern "C" fn cuptiGetLastError() -> u32 {
    LAST_ERROR.swap(0, Ordering::Relaxed)
}

pub(crate) fn is_kind(number: u32) -> bool {
    (1..=kind::last(config().cupti_version)).contains(&number)
}

pub(crate) fn external_kind(number: u32) -> Result<usize, u32> {
    let kind = number as usize;
    check(
        (1..EXTERNAL_KINDS).contains(&kind),
        result::INVALID_PARAMETER,
    )?;
    Ok(kind)
}

fn id_of_stream(context: Handle, stream: Handle) -> Result<u32, u32> {
    let (id, belongs_to) = match stream.addr() {
        0 | 1 if !context.is_null() => {
            let context = CONTEXTS.get(context).ok_or(result::INVALID_CONTEXT)?;
            (context.default_stream.id, context.number)
        }
        0..=2 => {
            let stream = objects::stream(stream).map_err(|_| result::INVALID_STREAM)?;
            (stream.id, stream.context)
        }
        _ => {
            let stream = STREAMS.get(stream).ok_or(result::INVALID_STREAM)?;
            (stream.id, stream.context)
        }
    };
    let fits = context.is_null() || context.addr() as u64 == belongs_to;
    check(fits, result::INVALID_STREAM)?;
    Ok(id)
}
