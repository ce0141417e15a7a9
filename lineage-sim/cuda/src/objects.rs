//! Contexts, streams, events, modules and functions, and the handles that mean them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use lineage_sim_model::{OperationKey, StreamKey};

use crate::abi::RawParameter;
use crate::config::MOST_DEVICES;
use crate::device::{self, Entry, Item};
use crate::faults::faults;
use crate::graph::capture::{self, CapturedEvent};
use crate::handles::{Handle, HandleNumber, Registry, handle};
use crate::result;
use crate::sync::lock;
use crate::threads::ThreadState;

pub(crate) static CONTEXTS: Registry<Context> = Registry::new(0x0c01);
pub(crate) static STREAMS: Registry<Stream> = Registry::new(0x0c02);
pub(crate) static EVENTS: Registry<Event> = Registry::new(0x0c03);
pub(crate) static MODULES: Registry<Module> = Registry::new(0x0c04);
pub(crate) static FUNCTIONS: Registry<Function> = Registry::new(0x0c05);

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: handles that are not pointers.
const STREAM_LEGACY: usize = 1;
const STREAM_PER_THREAD: usize = 2;

/// The id that records give to a context's default stream, and the first of the others.
const DEFAULT_STREAM_ID: u32 = 7;
static NEXT_STREAM_ID: AtomicU32 = AtomicU32::new(13);
static NEXT_CONTEXT_ID: AtomicU32 = AtomicU32::new(1);

pub(crate) struct Context {
    pub(crate) number: HandleNumber,
    pub(crate) id: u32,
    pub(crate) device: u32,
    pub(crate) flags: AtomicU32,
    /// The error that a failed operation left: every later call in this context returns it.
    error: Arc<AtomicU32>,
    pub(crate) default_stream: Arc<Stream>,
    /// `CUlimit` → value, as far as set.
    pub(crate) limits: Mutex<HashMap<u32, usize>>,
    pub(crate) cache_config: AtomicU32,
}

impl Context {
    pub(crate) fn create(device: u32, flags: u32) -> Arc<Self> {
        let id = NEXT_CONTEXT_ID.fetch_add(1, Ordering::Relaxed);
        let number = CONTEXTS.reserve();
        let error = Arc::new(AtomicU32::new(0));
        // The default stream of the first context has the id that NVIDIA's tools show; those of
        // later contexts are numbered like any other stream, to stay unique in the process.
        let stream_id = if id == 1 {
            DEFAULT_STREAM_ID
        } else {
            NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed)
        };
        let default_stream = Arc::new(Stream::open(
            stream_id,
            number,
            id,
            StreamOrder::Legacy,
            (0, 0),
            error.clone(),
            device,
        ));
        let context = Arc::new(Self {
            number,
            id,
            device,
            flags: AtomicU32::new(flags),
            error,
            default_stream,
            limits: Mutex::new(HashMap::new()),
            cache_config: AtomicU32::new(0),
        });
        CONTEXTS.insert(number, context.clone());
        context
    }

    /// The error that sticks to the context.
    pub(crate) fn check(&self) -> Result<(), u32> {
        match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(error),
        }
    }

    pub(crate) fn create_stream(&self, flags: u32, priority: i32) -> Arc<Stream> {
        let mode = if flags & 1 == 1 {
            StreamOrder::NonBlocking
        } else {
            StreamOrder::Blocking
        };
        let id = NEXT_STREAM_ID.fetch_add(1, Ordering::Relaxed);
        let error = self.error.clone();
        Arc::new(Stream::open(
            id,
            self.number,
            self.id,
            mode,
            (flags, priority),
            error,
            self.device,
        ))
    }

    /// Waits until every stream of the context has done what was asked for so far.
    pub(crate) fn synchronize(&self) -> Result<(), u32> {
        device::wait_for_context(self.number, self.id)?;
        self.check()
    }
}

/// The id of the oldest context of a device, if there is one.
pub(crate) fn first_context_of(device: u32) -> Option<u32> {
    let contexts = CONTEXTS.all();
    let of_device = contexts.iter().filter(|context| context.device == device);
    of_device.map(|context| context.id).min()
}

/// How a stream is ordered beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamOrder {
    /// The legacy default stream: before and behind every blocking stream.
    Legacy,
    /// Ordered with the legacy default stream.
    Blocking,
    NonBlocking,
}

pub(crate) struct Stream {
    pub(crate) key: StreamKey,
    pub(crate) id: u32,
    pub(crate) context: HandleNumber,
    pub(crate) context_id: u32,
    pub(crate) device: u32,
    pub(crate) flags: u32,
    pub(crate) order: StreamOrder,
    pub(crate) priority: AtomicI32,
    /// It may be part of a capture, see [`capture`].
    pub(crate) captures: AtomicBool,
    /// The context's sticky error.
    pub(crate) error: Arc<AtomicU32>,
}

impl Stream {
    fn open(
        id: u32,
        context: HandleNumber,
        context_id: u32,
        mode: StreamOrder,
        (flags, priority): (u32, i32),
        error: Arc<AtomicU32>,
        device: u32,
    ) -> Self {
        let key = device::add_stream(mode, device, context_id, priority);
        let priority = AtomicI32::new(priority);
        Self {
            key,
            id,
            context,
            context_id,
            device,
            flags,
            order: mode,
            priority,
            captures: AtomicBool::new(false),
            error,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        device::retire_stream(self.key);
    }
}

thread_local! {
    static NULL_IS_PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// While this lives, a null stream means this thread's own one, or the legacy one.
pub(crate) struct NullStream {
    before: bool,
}

impl NullStream {
    pub(crate) fn is_per_thread(is_so: bool) -> Option<Self> {
        is_so.then(|| Self {
            before: NULL_IS_PER_THREAD.with(|cell| cell.replace(true)),
        })
    }
}

impl Drop for NullStream {
    fn drop(&mut self) {
        NULL_IS_PER_THREAD.with(|cell| cell.set(self.before));
    }
}

/// Whether a handle means the legacy default stream.
pub(crate) fn is_legacy(of: Handle) -> bool {
    match of.addr() {
        0 => !NULL_IS_PER_THREAD.with(Cell::get),
        STREAM_LEGACY => true,
        _ => false,
    }
}

/// The stream that a handle means on this thread.
pub(crate) fn stream(of: Handle) -> Result<Arc<Stream>, u32> {
    let of = if of.is_null() && !is_legacy(of) {
        std::ptr::without_provenance_mut(STREAM_PER_THREAD)
    } else {
        of
    };
    match of.addr() {
        0 | STREAM_LEGACY => {
            let context = current_context()?;
            capture::check_legacy(context.number, true)?;
            Ok(context.default_stream.clone())
        }
        STREAM_PER_THREAD => {
            let context = current_context()?;
            Ok(ThreadState::with(|thread| thread.default_stream(&context)))
        }
        _ => {
            let stream = STREAMS.get(of).ok_or(result::INVALID_HANDLE)?;
            match stream.error.load(Ordering::Acquire) {
                0 => Ok(stream),
                error => Err(error),
            }
        }
    }
}

pub(crate) struct Event {
    pub(crate) context: HandleNumber,
    pub(crate) id: u32,
    pub(crate) timed: bool,
    /// Who waits for it sleeps (`CU_EVENT_BLOCKING_SYNC`).
    pub(crate) blocks: bool,
    pub(crate) newest: Mutex<Recorded>,
    /// The newest generation that the device has reached, and when.
    pub(crate) reached: AtomicU64,
    pub(crate) reached_ns: AtomicU64,
}

/// The newest record call of an event.
#[derive(Clone, Default)]
pub(crate) struct Recorded {
    /// Rises with every record call, and is no other event's; 0: never recorded.
    pub(crate) generation: u64,
    /// What it captured.
    pub(crate) captured: Option<OperationKey>,
    /// That call was captured itself: then this, and the rest is of the record call before.
    pub(crate) capture: Option<CapturedEvent>,
}

static NEXT_EVENT_ID: AtomicU32 = AtomicU32::new(1);
/// Ids of events that are gone, where they are to be given anew.
static EVENT_IDS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The number of the next record call of any event. Rises, and is never 0.
pub(crate) fn next_generation() -> u64 {
    static GENERATIONS: AtomicU64 = AtomicU64::new(1);
    GENERATIONS.fetch_add(1, Ordering::Relaxed)
}

impl Drop for Event {
    fn drop(&mut self) {
        if faults().reuse_event_ids == 1 {
            lock(&EVENT_IDS).push(self.id);
        }
    }
}

impl Event {
    pub(crate) fn create(context: HandleNumber, flags: u32) -> HandleNumber {
        let number = EVENTS.reserve();
        let event = Self {
            context,
            id: lock(&EVENT_IDS)
                .pop()
                .unwrap_or_else(|| NEXT_EVENT_ID.fetch_add(1, Ordering::Relaxed)),
            timed: flags & 2 == 0,
            blocks: flags & 1 == 1,
            newest: Mutex::default(),
            reached: AtomicU64::new(0),
            reached_ns: AtomicU64::new(0),
        };
        EVENTS.insert(number, Arc::new(event));
        number
    }

    pub(crate) fn recorded(&self) -> Recorded {
        lock(&self.newest).clone()
    }

    pub(crate) fn has_reached(&self, generation: u64) -> bool {
        self.reached.load(Ordering::Acquire) >= generation
    }
}

pub(crate) struct Module {
    pub(crate) context: HandleNumber,
    pub(crate) functions: Vec<(HandleNumber, Arc<Function>)>,
}

pub(crate) struct Function {
    pub(crate) module: HandleNumber,
    /// The name that lives as long as the process, for the truth.
    pub(crate) name: &'static str,
    /// The name that lives as long as the module, for CUPTI's records.
    pub(crate) module_name: ModuleName,
    pub(crate) parameters: Arc<[RawParameter]>,
    pub(crate) parameter_bytes: u32,
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
    pub(crate) max_dynamic_shared_bytes: AtomicI32,
    /// Whether a launch has loaded it.
    pub(crate) is_loaded: AtomicBool,
}

/// A kernel's name as long as its module is loaded. After that its bytes read `?`, so that a
/// profiler that kept the pointer shows it, and soon they are freed.
pub(crate) struct ModuleName(*mut c_char);

// SAFETY: the pointer is owned, and read-only until it is dropped.
unsafe impl Send for ModuleName {}
// SAFETY: as above.
unsafe impl Sync for ModuleName {}

/// Names of unloaded modules that are not freed yet: a late reader sees `?` and does not crash.
const QUARANTINE: usize = 4_096;

impl ModuleName {
    pub(crate) fn new(name: &str) -> Option<Self> {
        Some(Self(CString::new(name).ok()?.into_raw()))
    }

    pub(crate) fn pointer(&self) -> *const c_char {
        self.0
    }
}

impl Drop for ModuleName {
    fn drop(&mut self) {
        static UNLOADED: Mutex<Vec<ModuleNameBytes>> = Mutex::new(Vec::new());
        let mut at = self.0;
        // SAFETY: the string is owned and NUL-terminated; the NUL stays where it is.
        unsafe {
            while at.read() != 0 {
                at.write_volatile(b'?' as c_char);
                at = at.add(1);
            }
        }
        // SAFETY: it came from `CString::into_raw` and its length is unchanged.
        let bytes = ModuleNameBytes(unsafe { CString::from_raw(self.0) });
        let mut unloaded = lock(&UNLOADED);
        unloaded.push(bytes);
        if unloaded.len() > QUARANTINE {
            unloaded.drain(..QUARANTINE / 2);
        }
    }
}

/// Kept only to be freed later.
struct ModuleNameBytes(#[expect(dead_code, reason = "held until it is freed")] CString);

thread_local! {
    /// The stack of contexts of this thread; the last is current.
    static CURRENT: RefCell<Vec<HandleNumber>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn current_context_number() -> HandleNumber {
    CURRENT
        .try_with(|stack| stack.borrow().last().copied().unwrap_or(0))
        .unwrap_or(0)
}

/// The current context, free of errors.
pub(crate) fn current_context() -> Result<Arc<Context>, u32> {
    let context = current_context_even_if_failed()?;
    context.check()?;
    Ok(context)
}

pub(crate) fn current_context_even_if_failed() -> Result<Arc<Context>, u32> {
    match current_context_number() {
        0 => Err(result::INVALID_CONTEXT),
        number => CONTEXTS
            .get_number(number)
            .ok_or(result::CONTEXT_IS_DESTROYED),
    }
}

/// Replaces the top of the stack; 0 takes it away.
pub(crate) fn set_current_context(number: HandleNumber) {
    let _ = CURRENT.try_with(|stack| {
        let mut stack = stack.borrow_mut();
        stack.pop();
        if number != 0 {
            stack.push(number);
        }
    });
}

pub(crate) fn push_current_context(number: HandleNumber) {
    let _ = CURRENT.try_with(|stack| stack.borrow_mut().push(number));
}

pub(crate) fn pop_current_context() -> Option<HandleNumber> {
    CURRENT
        .try_with(|stack| stack.borrow_mut().pop())
        .ok()
        .flatten()
}

/// The primary context of a device and how often it is retained.
pub(crate) struct Primary {
    pub(crate) context: Option<Arc<Context>>,
    pub(crate) retained: u32,
    pub(crate) flags: u32,
}

static PRIMARY: [Mutex<Primary>; MOST_DEVICES] = [const {
    Mutex::new(Primary {
        context: None,
        retained: 0,
        flags: 0,
    })
}; MOST_DEVICES];

/// What is known of a device's primary context.
pub(crate) fn primary(device: u32) -> MutexGuard<'static, Primary> {
    // Devices are counted up to `MOST_DEVICES` by the loader.
    lock(&PRIMARY[device as usize % MOST_DEVICES])
}

/// Takes a context and everything in it away.
pub(crate) fn destroy_context(context: &Arc<Context>) {
    let number = context.number;
    CONTEXTS.remove(handle(number));
    STREAMS.remove_where(|stream| stream.context == number);
    EVENTS.remove_where(|event| event.context == number);
    // A wait that can never end is no reason to keep the context.
    let _ = device::wait_for_context(number, context.id);
    let free = Entry::marker(Item::FreeAllOf(number));
    let freed = device::enqueue(None, &context.default_stream, free);
    let _ = device::wait(&context.default_stream, freed);
    for module in MODULES.remove_where(|module| module.context == number) {
        unload_functions(&module);
    }
}

pub(crate) fn unload_functions(module: &Module) {
    for (number, _) in &module.functions {
        FUNCTIONS.remove(handle(*number));
    }
}
