//! The CUPTI functions that name a subscriber (`…_v2`, CUDA 13.3 and later): what they do is its client's only.

use std::ffi::{CStr, CString, c_void};

use crate::abi::{BufferCompletedTelling, BufferRequestedTelling, CallbackFunction};
use crate::callback_ids;
use crate::config::config;
use crate::cupti::activity::{self, Domain, kind};
use crate::cupti::buffers::{self, Functions};
use crate::cupti::client::{self, Client};
use crate::cupti::functions::{
    check, external_kind, functions, guarded, is_kind, put, subscribe_as,
};
use crate::cupti::parameters::{ActivityConfig, ApiOptions, SubscriberParams};
use crate::cupti::{attributes, layout, records, result, subscriber};
use crate::threads::ThreadState;

/// `CUPTI_SUBSCRIBER_NAME_MAX_LEN`, without the end.
const MOST_NAME_BYTES: usize = 52;

/// How many bytes of [`SubscriberParams`] there were before 13.2.
const OLD_PARAMS_BYTES: usize = 32;

/// How a subscriber describes itself.
///
/// # Safety
///
/// `params` must be null, or valid for as many bytes as it says, and its name null or valid.
unsafe fn describe(params: *const c_void) -> Result<(bool, Option<CString>), u32> {
    if params.is_null() {
        return Ok((false, None));
    }
    let params = params.cast::<SubscriberParams>();
    // SAFETY: by this function's own contract the first field is there, and the others as far as it says.
    unsafe {
        let bytes = (&raw const (*params).bytes).read();
        check(bytes >= OLD_PARAMS_BYTES, result::INVALID_PARAMETER)?;
        let allows_several =
            bytes > OLD_PARAMS_BYTES && (&raw const (*params).allows_several).read() == 1;
        let name = (&raw const (*params).name).read();
        if name.is_null() {
            return Ok((allows_several, None));
        }
        let mut full = b"CUPTI for ".to_vec();
        let name = CStr::from_ptr(name).to_bytes();
        full.extend(&name[..name.len().min(MOST_NAME_BYTES)]);
        Ok((allows_several, CString::new(full).ok()))
    }
}

/// Tells a subscriber what the first one is called, as far as there is room.
///
/// # Safety
///
/// As of [`describe`], and the place for the name must be null or valid for its size.
unsafe fn tell_name(params: *mut c_void, name: &CStr) {
    if params.is_null() {
        return;
    }
    let params = params.cast::<SubscriberParams>();
    // SAFETY: by this function's own contract.
    unsafe {
        let place = (&raw const (*params).first_name).read().cast::<u8>();
        let room = (&raw const (*params).first_name_bytes).read();
        if place.is_null() || room == 0 {
            return;
        }
        let bytes = name.to_bytes();
        let length = bytes.len().min(room - 1);
        place.copy_from_nonoverlapping(bytes.as_ptr(), length);
        place.add(length).write(0);
    }
}

/// The configuration of a kind: its options about calls are applied, and fields cannot be chosen.
///
/// # Safety
///
/// `config` must be null or valid for as many bytes as it says, and so what it leads to.
unsafe fn configure(client: &Client, kind: u32, config: *const c_void) -> Result<(), u32> {
    if config.is_null() {
        return Ok(());
    }
    let config = config.cast::<ActivityConfig>();
    // SAFETY: by this function's own contract.
    let config = unsafe {
        check(
            (&raw const (*config).bytes).read() >= size_of::<ActivityConfig>(),
            result::INVALID_PARAMETER,
        )?;
        config.read()
    };
    check(config.fields_count == 0, result::NOT_SUPPORTED)?;
    let domain = match kind {
        kind::DRIVER => Domain::Driver,
        kind::RUNTIME => Domain::Runtime,
        _ => return Ok(()),
    };
    let options = config.options.cast::<ApiOptions>();
    if options.is_null() {
        return Ok(());
    }
    // SAFETY: by this function's own contract.
    let ids = unsafe {
        let ids = (&raw const (*options).ids).read();
        if ids.is_null() {
            return Ok(());
        }
        ids.read()
    };
    check(
        ids.count == 0 || !ids.ids.is_null(),
        result::INVALID_PARAMETER,
    )?;
    let are_allowed = ids.are_allowed == 1;
    client.recording.ids(domain).set_all(!are_allowed);
    for at in 0..ids.count {
        // SAFETY: the client's list has so many.
        let id = unsafe { ids.ids.add(at).read() };
        client.recording.set_id(domain, id, are_allowed);
    }
    activity::refresh();
    Ok(())
}

functions! {
    fn cuptiSubscribe_v2(handle: *mut *mut c_void, callback: Option<CallbackFunction>, userdata: *mut c_void, params: *mut c_void) {
        check(!handle.is_null(), result::INVALID_PARAMETER)?;
        // SAFETY: the client's pointers.
        let (allows_several, name) = unsafe { describe(params)? };
        let request = subscriber::Request { callback, userdata, allows_several, name };
        let (first, subscribed) = subscribe_as(request);
        if let Some(first) = first {
            // SAFETY: the client's pointers.
            unsafe { tell_name(params, &first) };
        }
        // SAFETY: the client's pointer.
        unsafe { put(handle, subscribed?) }
    }

    fn cuptiGetTimestamp_v2(handle: *mut c_void, timestamp: *mut u64) {
        let client = client::of(handle)?;
        // SAFETY: the client's pointer.
        unsafe { put(timestamp, client.clock.stamp_ns()) }
    }

    fn cuptiActivityEnable_v2(handle: *mut c_void, kind: u32, activity_config: *mut c_void) {
        let client = client::of(handle)?;
        check(config().activity_enable_fails_with == 0, config().activity_enable_fails_with)?;
        check(is_kind(kind), result::INVALID_KIND)?;
        let would_hide_nodes = kind == kind::GRAPH_TRACE && subscriber::allows_several();
        check(!would_hide_nodes || subscriber::whole_graphs(), result::NOT_COMPATIBLE)?;
        client.recording.set_kind(kind, true);
        // SAFETY: the client's pointers.
        let configured = unsafe { configure(client, kind, activity_config) };
        configured.inspect_err(|_| client.recording.set_kind(kind, false))
    }

    fn cuptiActivityDisable_v2(handle: *mut c_void, kind: u32, _activity_config: *mut c_void) {
        let client = client::of(handle)?;
        check(is_kind(kind), result::INVALID_KIND)?;
        client.recording.set_kind(kind, false);
        Ok(())
    }

    fn cuptiActivityEnableDriverApi_v2(handle: *mut c_void, cbid: u32, enable: u8) {
        let client = client::of(handle)?;
        check(callback_ids::known(Domain::Driver, cbid).is_some(), result::INVALID_PARAMETER)?;
        client.recording.set_id(Domain::Driver, cbid, enable != 0);
        Ok(())
    }

    fn cuptiActivityEnableRuntimeApi_v2(handle: *mut c_void, cbid: u32, enable: u8) {
        let client = client::of(handle)?;
        check(callback_ids::known(Domain::Runtime, cbid).is_some(), result::INVALID_PARAMETER)?;
        client.recording.set_id(Domain::Runtime, cbid, enable != 0);
        Ok(())
    }

    fn cuptiActivityRegisterCallbacks_v2(handle: *mut c_void, requested: Option<BufferRequestedTelling>, completed: Option<BufferCompletedTelling>) {
        let client = client::of(handle)?;
        let requested = requested.ok_or(result::INVALID_PARAMETER)?;
        let completed = completed.ok_or(result::INVALID_PARAMETER)?;
        client.delivery.register(Functions::Telling(requested, completed));
        Ok(())
    }

    fn cuptiActivityGetNextRecord_v2(handle: *mut c_void, buffer: *mut u8, valid_bytes: usize, record: *mut *mut u8) {
        check(!handle.is_null(), result::INVALID_PARAMETER)?;
        check(!buffer.is_null() && !record.is_null(), result::INVALID_PARAMETER)?;
        // SAFETY: the client's pointers: a buffer that was handed back with these valid bytes,
        // and a place that holds null or the record before.
        unsafe {
            let next = buffers::next_record(buffer, valid_bytes, record.read())?;
            put(record, next)
        }
    }

    fn cuptiActivityGetNumDroppedRecords_v2(handle: *mut c_void, _context: *mut c_void, _stream_id: u32, dropped: *mut usize) {
        let client = client::of(handle)?;
        check(!dropped.is_null(), result::INVALID_PARAMETER)?;
        // SAFETY: the client's pointer.
        unsafe { put(dropped, client.delivery.take_dropped()) }
    }

    fn cuptiActivityGetAttribute_v2(handle: *mut c_void, attribute: u32, size: *mut usize, value: *mut c_void) {
        // SAFETY: the client's pointers.
        unsafe { attributes::get(client::of(handle)?, attributes::LAST, attribute, size, value) }
    }

    fn cuptiActivitySetAttribute_v2(handle: *mut c_void, attribute: u32, size: *mut usize, value: *mut c_void) {
        // SAFETY: the client's pointers.
        unsafe { attributes::set(client::of(handle)?, attributes::LAST, attribute, size, value) }
    }

    fn cuptiActivityPushExternalCorrelationId_v2(handle: *mut c_void, kind: u32, id: u64) {
        let (client, kind) = (client::of(handle)?, external_kind(kind)?);
        ThreadState::with(|thread| thread.push(client, kind, id));
        Ok(())
    }

    fn cuptiActivityPopExternalCorrelationId_v2(handle: *mut c_void, kind: u32, last_id: *mut u64) {
        let (client, kind) = (client::of(handle)?, external_kind(kind)?);
        let popped = ThreadState::with(|thread| thread.pop(client, kind)).ok_or(result::QUEUE_EMPTY)?;
        if !last_id.is_null() {
            // SAFETY: the client's pointer, which may be null.
            unsafe { last_id.write(popped) };
        }
        Ok(())
    }

    fn cuptiActivityGetStructSize(kind: u32, version: u32, size: *mut usize) {
        check(!size.is_null(), result::INVALID_PARAMETER)?;
        let version = match version {
            0 => config().cupti_version,
            1..layout::version::CUDA_13_0 => return Err(result::NOT_SUPPORTED),
            version => version,
        };
        let bytes = records::size_in_version(kind, version).ok_or(result::INVALID_KIND)?;
        // SAFETY: the client's pointer.
        unsafe { put(size, bytes) }
    }
}
