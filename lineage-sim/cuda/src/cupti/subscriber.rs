//! Subscribers and their callbacks.

use std::ffi::{CString, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::abi::{CallbackFunction, OTHER_TOOL_ALLOWS_OTHERS, OTHER_TOOL_SUBSCRIBED};
use crate::config::config;
use crate::cupti::activity::{self, Domain, IdSet};
use crate::cupti::client::{self, Client, MOST_CLIENTS};
use crate::cupti::layout::version::{CUDA_12_4, CUDA_13_0, CUDA_13_2, CUDA_13_5};
use crate::cupti::result;
use crate::faults::faults;
use crate::handles::Handle;
use crate::sync::lock;
use crate::threads;

struct Subscriber {
    callback: Option<CallbackFunction>,
    userdata: *mut c_void,
}

/// What one client is called back for.
pub(crate) struct Callbacks {
    /// Null while it has not subscribed. A subscriber's few bytes are never freed: a call on another thread may be
    /// about to read them, and its handle shall never mean a later one.
    subscriber: AtomicPtr<Subscriber>,
    driver: IdSet,
    runtime: IdSet,
    resource: IdSet,
}

impl Callbacks {
    pub(crate) const fn new() -> Self {
        Self {
            subscriber: AtomicPtr::new(std::ptr::null_mut()),
            driver: IdSet::new(),
            runtime: IdSet::new(),
            resource: IdSet::new(),
        }
    }

    pub(crate) fn are_of(&self, handle: Handle) -> bool {
        !handle.is_null() && self.subscriber.load(Ordering::Acquire).cast() == handle
    }

    fn are_taken(&self) -> bool {
        !self.subscriber.load(Ordering::Acquire).is_null()
    }

    fn of(&self, domain: Domain) -> &IdSet {
        match domain {
            Domain::Driver => &self.driver,
            Domain::Runtime => &self.runtime,
        }
    }

    pub(crate) fn set(&self, domain: Domain, id: u32, on: bool) {
        self.of(domain).set(id, on);
        activity::refresh();
    }

    pub(crate) fn set_domain(&self, domain: Domain, on: bool) {
        self.of(domain).set_all(on);
        activity::refresh();
    }

    pub(crate) fn set_resource(&self, id: u32, on: bool) {
        self.resource.set(id, on);
    }

    pub(crate) fn set_all_resources(&self, on: bool) {
        self.resource.set_all(on);
    }

    pub(crate) fn has(&self, domain: Domain, id: u32) -> bool {
        self.of(domain).contains(id)
    }

    pub(crate) fn has_resource(&self, id: u32) -> bool {
        self.resource.contains(id)
    }

    /// Whether any callback about calls is on.
    pub(crate) fn want_calls(&self) -> bool {
        !self.driver.is_empty() || !self.runtime.is_empty()
    }

    /// Calls the subscriber. Nothing of the simulator may be locked.
    pub(crate) fn call(&self, domain: u32, id: u32, data: *const c_void) {
        let subscriber = self.subscriber.load(Ordering::Acquire);
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

    /// No callback begins after this; one that has begun on another thread is not waited for.
    fn end(&self) {
        self.subscriber
            .store(std::ptr::null_mut(), Ordering::Release);
        self.driver.set_all(false);
        self.runtime.set_all(false);
        self.resource.set_all(false);
        activity::refresh();
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

/// Whether any subscriber asked for callbacks about a resource.
pub(crate) fn is_resource_enabled(id: u32) -> bool {
    let mut clients = client::all().iter();
    clients.any(|client| client.callbacks.has_resource(id))
}

/// Calls the subscribers about a resource that asked for that. Nothing of the simulator may be locked.
pub(crate) fn call_resource(id: u32, data: *const c_void) {
    for client in client::all() {
        if client.callbacks.has_resource(id) {
            client.callbacks.call(RESOURCE, id, data);
        }
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

/// Whether subscribers stand beside others. Changed under [`MODE`] only.
static ALLOWS_SEVERAL: AtomicBool = AtomicBool::new(false);

/// How CUPTI is used.
struct Mode {
    /// What the first subscriber is called.
    first_name: Option<CString>,
    /// Graph launches may be recorded as a whole: the first answer holds for good (attribute 20).
    whole_graphs: Option<bool>,
}

static MODE: Mutex<Mode> = Mutex::new(Mode {
    first_name: None,
    whole_graphs: None,
});

/// Whether subscribers allow others beside them, and so have to name themselves.
pub(crate) fn allows_several() -> bool {
    ALLOWS_SEVERAL.load(Ordering::Acquire) || another_tool_allows_others()
}

/// Another tool was first, and allows others.
fn another_tool_allows_others() -> bool {
    faults().other_tool == OTHER_TOOL_ALLOWS_OTHERS && can_have_several()
}

/// `CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE`: not allowed, allowed, or not said yet.
pub(crate) fn state() -> u64 {
    let is_used = client::all()
        .iter()
        .any(|client| client.callbacks.are_taken());
    match (allows_several(), is_used) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => 2,
    }
}

/// `CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE`. The first value holds; where several subscribers are not allowed it changes nothing.
pub(crate) fn set_whole_graphs(on: bool) {
    let mut mode = lock(&MODE);
    if allows_several() && mode.whole_graphs.is_none() {
        mode.whole_graphs = Some(on);
        activity::trace_whole_graphs(on);
    }
}

pub(crate) fn whole_graphs() -> bool {
    lock(&MODE).whole_graphs == Some(true)
}

/// Who subscribes, and how.
pub(crate) struct Request {
    pub(crate) callback: Option<CallbackFunction>,
    pub(crate) userdata: *mut c_void,
    /// It names itself in every call from now on, and allows others beside it.
    pub(crate) allows_several: bool,
    pub(crate) name: Option<CString>,
}

/// A subscriber's handle; or why there is none. In both cases the name of the first subscriber, if there is another one and it has one.
pub(crate) fn subscribe(request: Request) -> (Option<CString>, Result<Handle, u32>) {
    let mut mode = lock(&MODE);
    let other_tool = faults().other_tool;
    let is_shared = another_tool_allows_others();
    let refused = Err(result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    if matches!(other_tool, OTHER_TOOL_SUBSCRIBED | OTHER_TOOL_ALLOWS_OTHERS) {
        mode.first_name
            .get_or_insert_with(|| c"CUPTI for another tool".to_owned());
    }
    if other_tool == OTHER_TOOL_SUBSCRIBED || other_tool == OTHER_TOOL_ALLOWS_OTHERS && !is_shared {
        return (mode.first_name.clone(), refused);
    }
    let is_first = !is_shared
        && !client::all()
            .iter()
            .any(|client| client.callbacks.are_taken());
    if is_first {
        let allows = request.allows_several && can_have_several();
        ALLOWS_SEVERAL.store(allows, Ordering::Release);
    } else if !(allows_several() && request.allows_several) {
        return (mode.first_name.clone(), refused);
    }
    let mut places = (0..MOST_CLIENTS).filter_map(client::place);
    let Some(client) = places.find(|client| !client.callbacks.are_taken()) else {
        return (mode.first_name.clone(), Err(result::OUT_OF_MEMORY));
    };
    let new = Box::into_raw(Box::new(Subscriber {
        callback: request.callback,
        userdata: request.userdata,
    }));
    client.callbacks.subscriber.store(new, Ordering::Release);
    let before = if is_first {
        mode.first_name = request.name;
        None
    } else {
        mode.first_name.clone()
    };
    (before, Ok(new.cast()))
}

/// Versions before 13.2 have one subscriber.
fn can_have_several() -> bool {
    config().cupti_version >= CUDA_13_2
}

/// Ends a subscription. A subscriber beside others takes all that is its own along; what was not flushed is lost. Where there is one only, what is
/// recorded goes on.
pub(crate) fn unsubscribe(client: &Client) {
    let mut mode = lock(&MODE);
    client.callbacks.end();
    if allows_several() {
        client.reset();
    }
    let is_last = !client::all()
        .iter()
        .any(|client| client.callbacks.are_taken());
    if is_last {
        ALLOWS_SEVERAL.store(false, Ordering::Release);
        mode.first_name = None;
    }
}

/// `cuptiFinalize`: everybody goes.
pub(crate) fn end_all() {
    let mut mode = lock(&MODE);
    for client in client::all() {
        client.callbacks.end();
        client.reset();
    }
    ALLOWS_SEVERAL.store(false, Ordering::Release);
    mode.first_name = None;
    mode.whole_graphs = None;
    activity::trace_whole_graphs(false);
}
