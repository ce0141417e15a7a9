//! The device: the model decides when everything starts and ends, and this does it.
//!
//! With the real clock one thread waits until the model says that something is due. Times are the
//! model's, so a record does not depend on how soon that thread woke up; but nothing is reported as done before the
//! clock has passed its end. With the virtual clock there is no such thread: whoever calls or waits lets happen what
//! is due. Host functions of kernels, copies and sets are done one after the other, so that device memory has one user.
//!
//! One lock guards the model. It is never held while work is done, while a record or a truth is
//! written, or while a caller's function runs.

mod perform;
mod wait;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use lineage_sim_model::{
    GraphNode, HostWait, Memory, Model, OperationKey, Order, StreamKey, StreamOptions, Submission,
    Work,
};

use crate::call::Call;
use crate::clock::now_ns;
use crate::config::{is_virtual, model};
use crate::cupti::records::{self, EventRecord, HostFunctionRecord};
use crate::driver::pool::PooledFree;
use crate::graph::launch::{GraphLaunch, RunningConditional};
use crate::graph::memory::GraphMemory;
use crate::handles::HandleNumber;
use crate::memory;
use crate::objects::{Event, Stream, StreamOrder};
use crate::operation::Operation;
use crate::sync::lock;
use crate::threads;
pub(crate) use perform::{catch_up, until_a_goal};
pub(crate) use wait::{Goal, wait, wait_for_context, wait_for_event, wait_for_stream};

/// What a stream can hold.
pub(crate) enum Item {
    /// A kernel, a copy or a set.
    Operation(Box<Operation>),
    /// The event reaches this generation, and the record of that is told the time.
    Record(Arc<Event>, u64, Option<EventRecord>),
    /// Nothing more before what the event captured has ended.
    Wait,
    /// Waits for a value in memory, or writes one.
    Value,
    /// Frees an allocation.
    Free(u64),
    /// Frees an allocation in stream order.
    PooledFree(Arc<PooledFree>),
    /// A graph's memory, which the program has freed.
    FreedOfGraph(
        #[expect(dead_code, reason = "held until the stream has reached it")] Arc<GraphMemory>,
    ),
    /// Frees everything that belongs to a context.
    FreeAllOf(HandleNumber),
    /// Calls a function of the program's (`cuLaunchHostFunc`).
    HostFunction(HostFunction),
    /// A graph launch, which ends after its nodes.
    Graph(Box<GraphLaunch>),
    /// A node whose bodies run as a value says.
    Conditional(Box<RunningConditional>),
    /// Gives conditional handles their defaults.
    Defaults(Vec<u64>),
}

/// A function of the program's and what it is called with.
#[derive(Clone, Copy)]
pub(crate) struct HostCall {
    pub(crate) function: unsafe extern "C" fn(*mut std::ffi::c_void),
    pub(crate) user: *mut std::ffi::c_void,
}

// SAFETY: the program hands both over to be used on the device's thread.
unsafe impl Send for HostCall {}
// SAFETY: as above; only the device's thread uses them.
unsafe impl Sync for HostCall {}

pub(crate) struct HostFunction {
    pub(crate) record: Option<HostFunctionRecord>,
    pub(crate) function: unsafe extern "C" fn(*mut std::ffi::c_void),
    pub(crate) user: *mut std::ffi::c_void,
}

// SAFETY: the program hands both over to be used on the device's thread.
unsafe impl Send for HostFunction {}

pub(crate) struct Device {
    model: Model<Item>,
    /// The device's thread sleeps and wants to be woken for new work.
    asleep: bool,
    /// What host threads wait for.
    waiting: Vec<(u64, Goal)>,
    next_waiter: u64,
}

/// There is work.
static WORK: Condvar = Condvar::new();
/// Some work is done, or a channel has room again.
static DONE: Condvar = Condvar::new();

static STARTED: AtomicBool = AtomicBool::new(false);
static COMPLETED: AtomicU64 = AtomicU64::new(0);
static ENQUEUED: AtomicU64 = AtomicU64::new(0);

fn device() -> MutexGuard<'static, Device> {
    static DEVICE: OnceLock<Mutex<Device>> = OnceLock::new();
    lock(DEVICE.get_or_init(|| {
        let mut model = Model::new(*model(), now_ns());
        model.set_memory(Memory::Outside {
            read: memory::read_value,
            write: memory::write_value,
        });
        model.watch_absences();
        Mutex::new(Device {
            model,
            asleep: false,
            waiting: Vec::new(),
            next_waiter: 0,
        })
    }))
}

/// Starts the device, once. False when the system refuses its thread.
pub(crate) fn start() -> bool {
    if STARTED.swap(true, Ordering::AcqRel) {
        return true;
    }
    drop(device());
    if is_virtual() {
        return true;
    }
    let thread = std::thread::Builder::new()
        .name("lineage-sim-gpu".to_owned())
        .spawn(run);
    if thread.is_err() {
        STARTED.store(false, Ordering::Release);
    }
    thread.is_ok()
}

/// Operations that ended and that have not.
pub(crate) fn totals() -> (u64, u64) {
    let completed = COMPLETED.load(Ordering::Acquire);
    (
        completed,
        ENQUEUED.load(Ordering::Acquire).saturating_sub(completed),
    )
}

pub(crate) fn add_stream(
    order: StreamOrder,
    device_number: u32,
    context_id: u32,
    priority: i32,
) -> StreamKey {
    let order = match order {
        StreamOrder::Legacy => Order::Legacy,
        StreamOrder::Blocking => Order::Blocking,
        StreamOrder::NonBlocking => Order::NonBlocking,
    };
    let options = StreamOptions::default()
        .device(device_number)
        .context(context_id)
        .order(order)
        .priority(priority);
    device().model.add_stream(options)
}

/// The stream's handle is gone; what it still holds is done all the same.
pub(crate) fn retire_stream(key: StreamKey) {
    device().model.retire_stream(key);
}

/// What is put into a stream beside the item.
pub(crate) struct Entry {
    pub(crate) item: Item,
    pub(crate) work: Work,
    /// The operation's ordinal; 0 for what is none.
    pub(crate) number: u64,
    pub(crate) parameter_bytes: u32,
    pub(crate) waits_for: Option<OperationKey>,
    pub(crate) priority: Option<i32>,
}

impl Entry {
    /// Something that takes no time.
    pub(crate) fn marker(item: Item) -> Self {
        Self {
            item,
            work: Work::Marker,
            number: 0,
            parameter_bytes: 0,
            waits_for: None,
            priority: None,
        }
    }
}

/// Puts work at the end of a stream; waits while its channel is full. Returns the key by which [`wait`] knows it.
pub(crate) fn enqueue(call: Option<&Call<'_>>, stream: &Stream, entry: Entry) -> OperationKey {
    if matches!(entry.item, Item::Operation(_)) {
        ENQUEUED.fetch_add(1, Ordering::AcqRel);
    }
    catch_up();
    let mut device = device();
    let mut queue_full_ns = 0;
    if !device.model.has_room(stream.key, entry.parameter_bytes) {
        device.ring();
        drop(device);
        queue_full_ns = wait_for_room(call, stream, entry.parameter_bytes);
        device = self::device();
    }
    let asked_ns = now_ns();
    let host = call.map_or(HostWait::since(asked_ns), |call| {
        let mut host = HostWait::since(call.start_ns);
        host.queue_full_ns = queue_full_ns;
        host.lazy_loading_ns = call.lazy_loading_ns.get();
        host
    });
    let submission = Submission::with(entry.item, entry.number, entry.work)
        .host(host)
        .parameter_bytes(entry.parameter_bytes)
        .waits_for(entry.waits_for)
        .priority(entry.priority);
    let was_idle = device.model.is_idle(stream.key);
    let key = device.model.submit(asked_ns, stream.key, submission);
    // A stream that has work already is looked at again without being woken for.
    if was_idle || model().operations_per_doorbell > 1 {
        device.wake();
    }
    key
}

/// More operations are under way.
pub(crate) fn count_enqueued(count: u32) {
    ENQUEUED.fetch_add(count.into(), Ordering::AcqRel);
}

/// Launches a graph: `entry` is the launch itself, behind the exec's previous one.
pub(crate) fn enqueue_graph(
    call: &Call<'_>,
    stream: &Stream,
    entry: Entry,
    previous: Option<OperationKey>,
    nodes: Vec<GraphNode<Item>>,
) -> OperationKey {
    count_enqueued(call.operations.get());
    catch_up();
    let mut device = device();
    let mut host = HostWait::since(call.start_ns);
    if !device.model.has_room(stream.key, entry.parameter_bytes) {
        device.ring();
        drop(device);
        host.queue_full_ns = wait_for_room(Some(call), stream, entry.parameter_bytes);
        device = self::device();
    }
    let submission = Submission::with(entry.item, entry.number, entry.work).host(host);
    let key = device
        .model
        .submit_graph(now_ns(), stream.key, submission, previous, nodes);
    device.wake();
    key
}

impl Device {
    /// Wakes the device's thread, if it sleeps.
    fn wake(&mut self) {
        if std::mem::take(&mut self.asleep) {
            WORK.notify_one();
        }
    }

    /// Rings what doorbell is still to be rung, because a host thread waits or asks.
    fn ring(&mut self) {
        if model().operations_per_doorbell > 1 {
            self.model.ring(now_ns());
            self.wake();
        }
    }
}

/// Waits for room in a full channel: how long. Recorded as overhead, as CUPTI does.
fn wait_for_room(call: Option<&Call<'_>>, stream: &Stream, parameter_bytes: u32) -> u64 {
    let since_ns = now_ns();
    let overhead = call.and_then(|_| records::Overhead::begin());
    let _ = wait::until(Goal::Room(stream.key, parameter_bytes));
    if let (Some(call), Some(overhead)) = (call, overhead) {
        let channel = device().model.channel_of(stream.key);
        overhead.command_buffer_full(call.thread, call.device_correlation_id(), channel);
    }
    now_ns() - since_ns
}

pub(crate) fn stream_is_idle(stream: &Stream) -> bool {
    look();
    device().model.is_idle(stream.key)
}

/// Rings what doorbell is due before a question, and lets happen what is due.
pub(crate) fn look() {
    if model().operations_per_doorbell > 1 {
        device().ring();
    }
    catch_up();
}

/// The life of the device's thread.
fn run() {
    threads::set_is_device();
    // Sleeps shall end close to their time: the default slack is 50 µs.
    // SAFETY: sets a number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_u64) };
    let mut device = device();
    loop {
        device = perform::all_until_now(device);
        device = sleep(device);
    }
}

/// How often a value in memory is looked at for which a stream waits, and which a host may write.
const LOOK_NS: u64 = 20_000;

fn sleep(mut device: MutexGuard<'static, Device>) -> MutexGuard<'static, Device> {
    let mut until_ns = device.model.next_ns().unwrap_or(u64::MAX);
    let now = now_ns();
    if device.model.watches_memory() {
        until_ns = until_ns.min(now + LOOK_NS);
    }
    device.asleep = true;
    let mut device = if until_ns == u64::MAX {
        WORK.wait(device)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    } else if until_ns <= now {
        device
    } else {
        let waited = WORK.wait_timeout(device, Duration::from_nanos(until_ns - now));
        waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
    };
    device.asleep = false;
    device
}
