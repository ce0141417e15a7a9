//! A small client of CUPTI, of the kind a tracing tool is: one subscriber, buffers, a callback.

use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lineage_core::observation::ApiDomain;
use lineage_cupti::sys::codes::{THREAD_ID_TYPE_SYSTEM, domain, external_kind, kind, result, site};
use lineage_cupti::sys::layout::callback_data;
use lineage_cupti::sys::{Functions, Library, Subscriber, TimestampCallback};
use lineage_cupti::work;
use serde::Serialize;

use super::clock;
use super::failure::Failure;
use super::record::Record;
use super::resources;

/// CUPTI's callback id of `cuLaunchKernel`.
pub const LAUNCH_KERNEL: u32 = 307;
/// The external correlation kind that all pushes use.
pub const OWN_KIND: u32 = external_kind::CUSTOM2;

/// How long complete records may take to come after the work is done.
const SETTLING: Duration = Duration::from_secs(2);

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// The CUPTI of this process: the one that `LINEAGE_CUPTI_LIBRARY` names, or that is found.
pub fn library() -> Result<&'static Library, Failure> {
    if let Some(library) = LIBRARY.get() {
        return Ok(library);
    }
    let library = Library::load()?;
    Ok(LIBRARY.get_or_init(|| library))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- buffers

/// A buffer that CUPTI gave back.
struct Delivered {
    memory: *mut u8,
    valid_bytes: usize,
}

// SAFETY: whoever holds it owns the memory: CUPTI gave it back.
unsafe impl Send for Delivered {}

static DELIVERED: Mutex<Vec<Delivered>> = Mutex::new(Vec::new());
static BUFFER_BYTES: AtomicUsize = AtomicUsize::new(0);
static BUFFERS_LEFT: AtomicUsize = AtomicUsize::new(0);
static REQUESTED: AtomicU64 = AtomicU64::new(0);
static DENIED: AtomicU64 = AtomicU64::new(0);

/// `CUpti_BuffersCallbackRequestFunc`. The memory is never freed: this process asks one question.
unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    REQUESTED.fetch_add(1, Relaxed);
    let bytes = BUFFER_BYTES.load(Relaxed);
    let is_left = BUFFERS_LEFT
        .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
        .is_ok();
    let memory = match Layout::from_size_align(bytes, 64) {
        // SAFETY: the size is not 0.
        Ok(layout) if is_left && bytes > 0 => unsafe { std::alloc::alloc_zeroed(layout) },
        _ => null_mut(),
    };
    if memory.is_null() {
        DENIED.fetch_add(1, Relaxed);
    }
    // SAFETY: CUPTI passes valid places for all three.
    unsafe {
        *buffer = memory;
        *size = if memory.is_null() { 0 } else { bytes };
        *max_records = 0;
    }
}

/// `CUpti_BuffersCallbackCompleteFunc`.
unsafe extern "C" fn completed(
    _: *mut c_void,
    _: u32,
    memory: *mut u8,
    _: usize,
    valid_bytes: usize,
) {
    if !memory.is_null() && valid_bytes > 0 {
        lock(&DELIVERED).push(Delivered {
            memory,
            valid_bytes,
        });
    }
}

// ---- the callback

static ENTERED: AtomicU64 = AtomicU64::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);
/// The site at which the callback pushes and pops; [`NEVER`] for none.
static PUSH_AT: AtomicU32 = AtomicU32::new(NEVER);
static POP_AT: AtomicU32 = AtomicU32::new(NEVER);
static PUSHED_ID: AtomicU64 = AtomicU64::new(0);
static CODES_OF_PUSH_AND_POP: AtomicU32 = AtomicU32::new(0);
static KEEPS_CALLS: AtomicBool = AtomicBool::new(false);
static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());

const NEVER: u32 = u32::MAX;

/// What the callback does inside a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Never,
    Enter,
    Exit,
}

impl At {
    fn number(self) -> u32 {
        match self {
            Self::Never => NEVER,
            Self::Enter => site::ENTER,
            Self::Exit => site::EXIT,
        }
    }
}

/// A call as the callback saw it, at its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Seen {
    pub domain: u32,
    pub cbid: u32,
    pub correlation: u32,
}

/// `CUpti_CallbackFunc`: counts, and does what it is told.
unsafe extern "C" fn called_back(_: *mut c_void, of: u32, cbid: u32, data: *const c_void) {
    if of == domain::RESOURCE {
        if let Some(library) = LIBRARY.get() {
            // SAFETY: in this domain the data is a `CUpti_ResourceData`, and the library is the one that calls.
            unsafe { resources::note(library.functions(), cbid, data) };
        }
        return;
    }
    // SAFETY: in the two API domains the data is a `CUpti_CallbackData`, in which this offset is a `uint32_t`.
    let field =
        |offset: usize| unsafe { data.cast::<u8>().add(offset).cast::<u32>().read_unaligned() };
    let site = field(callback_data::CALLBACK_SITE);
    if site == site::ENTER {
        ENTERED.fetch_add(1, Relaxed);
        if KEEPS_CALLS.load(Relaxed) {
            let correlation = field(callback_data::CORRELATION_ID);
            lock(&SEEN).push(Seen {
                domain: of,
                cbid,
                correlation,
            });
        }
    } else {
        LEFT.fetch_add(1, Relaxed);
    }
    let Some(library) = LIBRARY.get() else { return };
    if PUSH_AT.load(Relaxed) == site {
        // SAFETY: takes numbers.
        let code = unsafe {
            (library.functions().activity_push_external_correlation_id)(
                OWN_KIND,
                PUSHED_ID.load(Relaxed),
            )
        };
        CODES_OF_PUSH_AND_POP.fetch_max(code, Relaxed);
    }
    if POP_AT.load(Relaxed) == site {
        let mut popped = 0;
        // SAFETY: a number and a valid place.
        let code = unsafe {
            (library.functions().activity_pop_external_correlation_id)(OWN_KIND, &mut popped)
        };
        CODES_OF_PUSH_AND_POP.fetch_max(code, Relaxed);
    }
}

// ---- the client

/// How the client is set up, before CUDA is.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub clock: Option<TimestampCallback>,
    pub system_thread_ids: bool,
    /// `None` leaves latency timestamps as they are by default.
    pub latency_timestamps: bool,
    pub buffer_bytes: usize,
    /// How many buffers are given at most.
    pub buffers: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            clock: Some(clock::monotonic_for_cupti),
            system_thread_ids: true,
            latency_timestamps: false,
            buffer_bytes: 1 << 20,
            buffers: usize::MAX,
        }
    }
}

/// The one subscriber of this process.
pub struct Client {
    library: &'static Library,
    subscriber: Cell<Subscriber>,
    buffers: Cell<usize>,
}

impl Client {
    /// Loads CUPTI, subscribes, and sets all up, in lineage's order.
    pub fn open(setup: &Setup) -> Result<Self, Failure> {
        let client = Self {
            library: library()?,
            subscriber: Cell::new(null_mut()),
            buffers: Cell::new(0),
        };
        let functions = client.functions();
        BUFFER_BYTES.store(setup.buffer_bytes, Relaxed);
        BUFFERS_LEFT.store(setup.buffers, Relaxed);
        client.check("cuptiSubscribe", client.subscribe())?;
        if let Some(clock) = setup.clock {
            // SAFETY: the function has this signature and may be called at any time.
            let code = unsafe { (functions.activity_register_timestamp_callback)(clock) };
            client.check("cuptiActivityRegisterTimestampCallback", code)?;
        }
        if setup.system_thread_ids {
            client.use_system_thread_ids()?;
        }
        // SAFETY: both callbacks have these signatures and live for good.
        let code = unsafe { (functions.activity_register_callbacks)(requested, completed) };
        client.check("cuptiActivityRegisterCallbacks", code)?;
        if setup.latency_timestamps {
            let name = "cuptiActivityEnableLatencyTimestamps";
            let enable = client.optional(name, functions.activity_enable_latency_timestamps)?;
            // SAFETY: takes a number.
            client.check(name, unsafe { enable(1) })?;
        }
        Ok(client)
    }

    /// As `cuptiGetVersion` gives it.
    pub fn version(&self) -> u32 {
        self.library.version()
    }

    /// A function's name; none where CUPTI has none.
    pub fn callback_name(&self, domain: u32, cbid: u32) -> Option<String> {
        let mut name = std::ptr::null();
        // SAFETY: numbers and a valid place.
        let code = unsafe { (self.functions().get_callback_name)(domain, cbid, &mut name) };
        if code != result::SUCCESS || name.is_null() {
            return None;
        }
        // SAFETY: a text of CUPTI's own, which ends with a zero byte and stays.
        let name = unsafe { std::ffi::CStr::from_ptr(name) };
        Some(name.to_string_lossy().into_owned())
    }

    pub fn functions(&self) -> &'static Functions {
        self.library.functions()
    }

    /// A function that not every version of CUPTI has.
    pub fn optional<T>(&self, name: &str, function: Option<T>) -> Result<T, Failure> {
        let version = self.library.version();
        function.ok_or_else(|| Failure::Skipped(format!("CUPTI {version} has no function {name}")))
    }

    pub fn check(&self, function: &'static str, code: u32) -> Result<(), Failure> {
        if code == result::SUCCESS {
            return Ok(());
        }
        let meaning = self
            .library
            .message(code)
            .unwrap_or_else(|| "no text".to_owned());
        Err(Failure::Cupti {
            function,
            code,
            meaning,
        })
    }

    /// Subscribes; the code.
    pub fn subscribe(&self) -> u32 {
        let mut subscriber = null_mut();
        // SAFETY: a valid place; the callback lives for good and needs no user data.
        let code =
            unsafe { (self.functions().subscribe)(&mut subscriber, called_back, null_mut()) };
        if code == result::SUCCESS {
            self.subscriber.set(subscriber);
        }
        code
    }

    pub fn unsubscribe(&self) -> Result<(), Failure> {
        // SAFETY: the handle that CUPTI gave.
        let code = unsafe { (self.functions().unsubscribe)(self.subscriber.get()) };
        self.check("cuptiUnsubscribe", code)
    }

    pub fn use_system_thread_ids(&self) -> Result<(), Failure> {
        // SAFETY: takes a number.
        let code = unsafe { (self.functions().set_thread_id_type)(THREAD_ID_TYPE_SYSTEM) };
        self.check("cuptiSetThreadIdType", code)
    }

    pub fn enable(&self, kinds: &[u32]) -> Result<(), Failure> {
        kinds.iter().try_for_each(|&kind| {
            // SAFETY: takes a number.
            self.check("cuptiActivityEnable", unsafe {
                (self.functions().activity_enable)(kind)
            })
        })
    }

    /// External ids and all executed activities, without the calls.
    pub fn enable_operations(&self) -> Result<(), Failure> {
        self.enable(&[
            kind::EXTERNAL_CORRELATION,
            kind::CONCURRENT_KERNEL,
            kind::MEMCPY,
            kind::MEMSET,
        ])
    }

    /// The above, and all calls of driver and runtime.
    pub fn enable_all(&self) -> Result<(), Failure> {
        self.enable_operations()?;
        self.enable(&[kind::DRIVER, kind::RUNTIME])
    }

    /// Records calls of this function of the driver, chosen alone.
    pub fn enable_driver_call(&self, cbid: u32) -> Result<(), Failure> {
        let name = "cuptiActivityEnableDriverApi";
        let enable = self.optional(name, self.functions().activity_enable_driver_api)?;
        // SAFETY: takes numbers.
        self.check(name, unsafe { enable(cbid, 1) })
    }

    /// Records calls that ask for GPU work, as lineage does: chosen one by one, else all.
    pub fn enable_work_calls(&self) -> Result<(), Failure> {
        let functions = self.functions();
        let (Some(driver), Some(runtime)) = (
            functions.activity_enable_driver_api,
            functions.activity_enable_runtime_api,
        ) else {
            return self.enable(&[kind::DRIVER, kind::RUNTIME]);
        };
        for (domain, enable) in [(ApiDomain::Driver, driver), (ApiDomain::Runtime, runtime)] {
            for function in work::functions(domain) {
                // SAFETY: takes numbers. An id that this version does not know is answered with a code, and that is all.
                unsafe { enable(function.cbid, 1) };
            }
        }
        Ok(())
    }

    /// Calls back for this function; whether CUPTI knows it.
    pub fn call_back(&self, domain: u32, cbid: u32) -> bool {
        // SAFETY: the handle that CUPTI gave, and numbers.
        let code =
            unsafe { (self.functions().enable_callback)(1, self.subscriber.get(), domain, cbid) };
        code == result::SUCCESS
    }

    /// Calls back for every call that asks for GPU work; how many functions that are.
    pub fn call_back_for_work(&self) -> usize {
        [
            (ApiDomain::Driver, domain::DRIVER_API),
            (ApiDomain::Runtime, domain::RUNTIME_API),
        ]
        .into_iter()
        .flat_map(|(of, number)| {
            work::functions(of)
                .iter()
                .map(move |function| (number, function.cbid))
        })
        .filter(|&(domain, cbid)| self.call_back(domain, cbid))
        .count()
    }

    pub fn push(&self, id: u64) -> Result<(), Failure> {
        // SAFETY: takes numbers.
        let code =
            unsafe { (self.functions().activity_push_external_correlation_id)(OWN_KIND, id) };
        self.check("cuptiActivityPushExternalCorrelationId", code)
    }

    /// The id that was on top, or the code.
    pub fn pop(&self) -> Result<u64, u32> {
        let mut popped = 0;
        // SAFETY: a number and a valid place.
        let code = unsafe {
            (self.functions().activity_pop_external_correlation_id)(OWN_KIND, &mut popped)
        };
        if code == result::SUCCESS {
            Ok(popped)
        } else {
            Err(code)
        }
    }

    /// Makes the callback push and pop inside calls.
    pub fn inside_calls(&self, push: At, pop: At, id: u64) {
        PUSHED_ID.store(id, Relaxed);
        CODES_OF_PUSH_AND_POP.store(0, Relaxed);
        PUSH_AT.store(push.number(), Relaxed);
        POP_AT.store(pop.number(), Relaxed);
    }

    /// The greatest code that a push or pop inside calls was answered with.
    pub fn code_inside_calls(&self) -> u32 {
        CODES_OF_PUSH_AND_POP.load(Relaxed)
    }

    /// Makes the callback keep what it sees.
    pub fn keep_calls(&self) {
        KEEPS_CALLS.store(true, Relaxed);
    }

    /// What it saw since the last time.
    pub fn take_calls(&self) -> Vec<Seen> {
        std::mem::take(&mut *lock(&SEEN))
    }

    /// Without force, as everywhere.
    pub fn flush(&self) -> Result<(), Failure> {
        // SAFETY: takes a number.
        self.check("cuptiActivityFlushAll", unsafe {
            (self.functions().activity_flush_all)(0)
        })
    }

    /// Records CUPTI had no buffer for, as it counts them for this context and stream; or the code.
    pub fn dropped(&self, context: *mut c_void, stream: u32) -> Result<usize, u32> {
        let mut dropped = 0;
        // SAFETY: null or a live context, and a valid place.
        let code = unsafe {
            (self.functions().activity_get_num_dropped_records)(context, stream, &mut dropped)
        };
        if code == result::SUCCESS {
            Ok(dropped)
        } else {
            Err(code)
        }
    }

    /// An attribute of up to 8 bytes, or the code.
    pub fn attribute(&self, number: u32, bytes: usize) -> Result<u64, u32> {
        let Some(get) = self.functions().activity_get_attribute else {
            return Err(result::NOT_SUPPORTED);
        };
        let (mut size, mut value) = (bytes.min(8), 0_u64);
        // SAFETY: the place has at least as many bytes as `size` says.
        let code = unsafe { get(number, &mut size, (&raw mut value).cast()) };
        if code == result::SUCCESS {
            Ok(value)
        } else {
            Err(code)
        }
    }

    /// Calls of the callback: at entry, at exit.
    pub fn callbacks(&self) -> (u64, u64) {
        (ENTERED.load(Relaxed), LEFT.load(Relaxed))
    }

    /// Buffers that CUPTI asked for, and those it was not given.
    pub fn requests(&self) -> (u64, u64) {
        (REQUESTED.load(Relaxed), DENIED.load(Relaxed))
    }

    /// Flushes, and decodes what came back since the last time.
    pub fn take(&self) -> Result<Vec<Record>, Failure> {
        let mut records = Vec::new();
        self.take_each(|buffer, bytes| records.push(Record::decode(buffer, bytes)))?;
        Ok(records)
    }

    /// Flushes, and hands over what came back since the last time: the number of the buffer, and its bytes from a record's first on.
    pub fn take_each(&self, mut with: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
        self.flush()?;
        let delivered = std::mem::take(&mut *lock(&DELIVERED));
        for buffer in delivered {
            let number = self.buffers.replace(self.buffers.get() + 1);
            self.each(&buffer, |bytes| with(number, bytes));
        }
        Ok(())
    }

    /// Takes records until enough have come, or for 2 s after the work was done.
    pub fn take_until(
        &self,
        is_enough: impl Fn(&[Record]) -> bool,
    ) -> Result<Vec<Record>, Failure> {
        let start = Instant::now();
        let mut records = self.take()?;
        while !is_enough(&records) && start.elapsed() < SETTLING {
            std::thread::sleep(Duration::from_millis(5));
            records.extend(self.take()?);
        }
        Ok(records)
    }

    fn each(&self, buffer: &Delivered, mut with: impl FnMut(&[u8])) {
        let next = self.functions().activity_get_next_record;
        let mut record = null_mut();
        loop {
            // SAFETY: a buffer that CUPTI gave back with so many valid bytes, and the record before or null.
            let code = unsafe { next(buffer.memory, buffer.valid_bytes, &mut record) };
            // 12 at the end; anything else where the rest is incomplete.
            if code != result::SUCCESS || record.is_null() {
                return;
            }
            let offset = record.addr().wrapping_sub(buffer.memory.addr());
            if offset >= buffer.valid_bytes {
                return;
            }
            // SAFETY: the rest of the valid bytes, which nobody writes to any more.
            let bytes = unsafe { std::slice::from_raw_parts(record, buffer.valid_bytes - offset) };
            with(bytes);
        }
    }
}
