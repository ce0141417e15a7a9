//! The one subscriber and its callbacks.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::CallbackFunction;
use crate::config::config;
use crate::cupti::activity::{self, Domain, IdSet};
use crate::cupti::layout::version::{CUDA_12_4, CUDA_13_0, CUDA_13_5};
use crate::cupti::result;
use crate::threads;

struct Subscriber {
    callback: Option<CallbackFunction>,
    userdata: *mut c_void,
}

/// Null while nobody has subscribed. A subscriber's few bytes are never freed: a call on another thread may be
/// about to read them, and its handle shall never mean a later one.
static SUBSCRIBER: AtomicPtr<Subscriber> = AtomicPtr::new(std::ptr::null_mut());

static DRIVER_CALLBACKS: IdSet = IdSet::new();
static RUNTIME_CALLBACKS: IdSet = IdSet::new();
static RESOURCE_CALLBACKS: IdSet = IdSet::new();

fn callbacks(domain: Domain) -> &'static IdSet {
    match domain {
        Domain::Driver => &DRIVER_CALLBACKS,
        Domain::Runtime => &RUNTIME_CALLBACKS,
    }
}

/// Domains that exist: driver, runtime, resource, synchronise, NVTX, state.
pub(crate) const LAST_DOMAIN: u32 = 6;

/// `CUPTI_CB_DOMAIN_RESOURCE`: its callbacks are about graphs, see [`crate::graph`]; the others of it exist and stay silent.
pub(crate) const RESOURCE: u32 = 3;

/// The last id of the domain: `CUPTI_CBID_RESOURCE_…` of the configured version's header.
pub(crate) fn last_resource() -> u32 {
    match config().cupti_version {
        ..CUDA_12_4 => 20,
        CUDA_12_4..CUDA_13_0 => 21,
        CUDA_13_0..CUDA_13_5 => 23,
        _ => 25,
    }
}

pub(crate) fn set_resource(id: u32, on: bool) {
    RESOURCE_CALLBACKS.set(id, on);
}

pub(crate) fn set_all_resources(on: bool) {
    RESOURCE_CALLBACKS.set_all(on);
}

pub(crate) fn is_resource_enabled(id: u32) -> bool {
    RESOURCE_CALLBACKS.contains(id)
}

/// Calls the subscriber about a resource, if it asked for that. Nothing of the simulator may be locked.
pub(crate) fn call_resource(id: u32, data: *const c_void) {
    if is_resource_enabled(id) {
        call_subscriber(RESOURCE, id, data);
    }
}

/// The two domains of API calls; of the others only [`RESOURCE`] is simulated.
pub(crate) fn domain(number: u32) -> Option<Domain> {
    match number {
        1 => Some(Domain::Driver),
        2 => Some(Domain::Runtime),
        _ => None,
    }
}

pub(crate) fn subscribe(
    callback: Option<CallbackFunction>,
    userdata: *mut c_void,
) -> Result<*mut c_void, u32> {
    let new = Box::into_raw(Box::new(Subscriber { callback, userdata }));
    match SUBSCRIBER.compare_exchange(
        std::ptr::null_mut(),
        new,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        Ok(_) => Ok(new.cast()),
        Err(_) => {
            // SAFETY: nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
            Err(result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        }
    }
}

pub(crate) fn is_subscriber(handle: *mut c_void) -> bool {
    !handle.is_null() && SUBSCRIBER.load(Ordering::Acquire).cast() == handle
}

/// No callback begins after this; one that has begun on another thread is not waited for.
pub(crate) fn unsubscribe() {
    SUBSCRIBER.store(std::ptr::null_mut(), Ordering::Release);
    DRIVER_CALLBACKS.set_all(false);
    RUNTIME_CALLBACKS.set_all(false);
    RESOURCE_CALLBACKS.set_all(false);
    activity::refresh();
}

pub(crate) fn set_callback(domain: Domain, id: u32, on: bool) {
    callbacks(domain).set(id, on);
    activity::refresh();
}

pub(crate) fn set_domain(domain: Domain, on: bool) {
    callbacks(domain).set_all(on);
    activity::refresh();
}

pub(crate) fn is_enabled(domain: Domain, id: u32) -> bool {
    callbacks(domain).contains(id)
}

/// Whether any callback is on.
pub(crate) fn wants_calls() -> bool {
    !DRIVER_CALLBACKS.is_empty() || !RUNTIME_CALLBACKS.is_empty()
}

/// Calls the subscriber for one side of an API call, if it asked for that.
pub(crate) fn call(domain: Domain, id: u32, data: *const c_void) {
    if is_enabled(domain, id) {
        call_subscriber(domain.number(), id, data);
    }
}

fn call_subscriber(domain: u32, id: u32, data: *const c_void) {
    let subscriber = SUBSCRIBER.load(Ordering::Acquire);
    if subscriber.is_null() {
        return;
    }
    // SAFETY: a subscriber is never freed.
    let (callback, userdata) = unsafe { ((*subscriber).callback, (*subscriber).userdata) };
    if let Some(callback) = callback {
        // SAFETY: the client gave the function with this pointer, and `data` outlives the call.
        threads::in_callback(|| unsafe { callback(userdata, domain, id, data) });
    }
}
