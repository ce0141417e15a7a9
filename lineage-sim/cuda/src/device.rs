//! The device: one thread that does what the streams hold.
//!
//! Each stream is a queue that is worked off in order. A piece of work starts at the latest of: when
//! it was asked for, when its predecessor in the stream ended, and when what it waits for was
//! reached. Those times are computed, so a record does not depend on how soon the device's thread woke up; but nothing
//! is reported as done before the real clock has passed its end. Timed work of several streams overlaps. Host functions of kernels, copies and
//! sets all run on this one thread, hence one after the other, so that device memory has one user.
//!
//! One lock guards the queues. It is never held while work is done, while a record or a truth is
//! written, or while a caller's function runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::now_ns;
use crate::config::config;
use crate::handles::HandleNumber;
use crate::memory;
use crate::objects::{Event, Stream, StreamOrder};
use crate::operation::Operation;
use crate::sync::lock;
use crate::threads;

/// What a stream can hold.
pub(crate) enum Item {
    /// A kernel, a copy or a set.
    Operation(Box<Operation>),
    /// The event reaches this generation.
    Record(Arc<Event>, u64),
    /// Nothing more before the event has reached this generation.
    Wait(Arc<Event>, u64),
    /// Frees an allocation.
    Free(u64),
    /// Frees everything that belongs to a context.
    FreeAllOf(HandleNumber),
    /// Calls a function of the program's (`cuLaunchHostFunc`).
    HostFunction(HostFunction),
}

pub(crate) struct HostFunction {
    pub(crate) function: unsafe extern "C" fn(*mut std::ffi::c_void),
    pub(crate) user: *mut std::ffi::c_void,
}

// SAFETY: the program hands both over to be used on the device's thread.
unsafe impl Send for HostFunction {}

struct Queued {
    item: Item,
    /// Rises over all streams: decides what the legacy default stream is before and behind.
    order: u64,
    asked_ns: u64,
}

struct Running {
    operation: Box<Operation>,
    end_ns: u64,
}

struct Queue {
    mode: StreamOrder,
    context_id: u32,
    items: VecDeque<Queued>,
    running: Option<Running>,
    /// The order of the item that has been taken out of `items` and is not completed.
    current: Option<u64>,
    /// Whether `Device::active` has this queue's key.
    is_active: bool,
    /// When the last piece of work ended.
    free_at_ns: u64,
    enqueued: u64,
    completed: u64,
    retired: bool,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.completed == self.enqueued
    }

    /// The order of the oldest work that has not ended.
    fn oldest(&self) -> Option<u64> {
        self.current
            .or_else(|| self.items.front().map(|queued| queued.order))
    }
}

struct Device {
    queues: Vec<Option<Queue>>,
    /// Keys of queues that are not idle.
    active: Vec<usize>,
    next_order: u64,
    /// The device's thread sleeps and wants to be woken for new work.
    asleep: bool,
    /// What host threads wait for.
    waiting: Vec<(u64, Goal)>,
    next_waiter: u64,
}

/// What a host thread waits for.
#[derive(Clone)]
enum Goal {
    /// The stream has done its first so many items.
    Stream(usize, u64),
    /// The context's streams have done everything before this order.
    Context(u32, u64),
    /// The event has reached this generation.
    Event(Arc<Event>, u64),
    /// The stream has room.
    Room(usize),
}

impl Goal {
    fn is_reached(&self, device: &Device) -> bool {
        match self {
            Self::Stream(key, number) => device
                .queue(*key)
                .is_none_or(|queue| queue.completed >= *number),
            Self::Context(context_id, order) => !device.queues.iter().flatten().any(|queue| {
                queue.context_id == *context_id
                    && queue.oldest().is_some_and(|oldest| oldest < *order)
            }),
            Self::Event(event, generation) => event.has_reached(*generation),
            Self::Room(key) => {
                // Room for several at once, so that a full stream does not wake its caller for each.
                let depth = config().queue_depth as usize;
                device
                    .queue(*key)
                    .is_none_or(|queue| queue.items.len() <= depth - depth.div_ceil(8))
            }
        }
    }
}

impl Device {
    fn queue(&self, key: usize) -> Option<&Queue> {
        self.queues.get(key).and_then(Option::as_ref)
    }
}

static DEVICE: Mutex<Device> = Mutex::new(Device {
    queues: Vec::new(),
    active: Vec::new(),
    next_order: 1,
    asleep: false,
    waiting: Vec::new(),
    next_waiter: 0,
});
/// There is work.
static WORK: Condvar = Condvar::new();
/// Some work is done, or a queue has room again.
static DONE: Condvar = Condvar::new();

static STARTED: AtomicBool = AtomicBool::new(false);
static COMPLETED: AtomicU64 = AtomicU64::new(0);
static ENQUEUED: AtomicU64 = AtomicU64::new(0);

/// Starts the device's thread, once. False when the system refuses.
pub(crate) fn start() -> bool {
    if STARTED.swap(true, Ordering::AcqRel) {
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

pub(crate) fn add_stream(mode: StreamOrder, context_id: u32) -> usize {
    let queue = Queue {
        mode,
        context_id,
        items: VecDeque::new(),
        running: None,
        current: None,
        is_active: false,
        free_at_ns: 0,
        enqueued: 0,
        completed: 0,
        retired: false,
    };
    let mut device = lock(&DEVICE);
    match device.queues.iter().position(Option::is_none) {
        Some(key) => {
            device.queues[key] = Some(queue);
            key
        }
        None => {
            device.queues.push(Some(queue));
            device.queues.len() - 1
        }
    }
}

/// The stream's handle is gone; what it still holds is done all the same.
pub(crate) fn retire_stream(key: usize) {
    let mut device = lock(&DEVICE);
    let Some(queue) = device.queues.get_mut(key).and_then(Option::as_mut) else {
        return;
    };
    queue.retired = true;
    // An active queue is taken away by the device's thread when it finds it idle.
    if !queue.is_active {
        device.queues[key] = None;
    }
}

/// Puts work at the end of a stream; waits while the stream is full. Returns the number by which
/// [`wait`] knows it.
pub(crate) fn enqueue(stream: &Stream, item: Item) -> u64 {
    let depth = config().queue_depth as usize;
    if matches!(item, Item::Operation(_)) {
        ENQUEUED.fetch_add(1, Ordering::AcqRel);
    }
    let mut device = lock(&DEVICE);
    if device
        .queue(stream.key)
        .is_some_and(|queue| queue.items.len() >= depth)
    {
        device = wait_until(device, &Goal::Room(stream.key));
    }
    let device = &mut *device;
    let Some(queue) = device.queues.get_mut(stream.key).and_then(Option::as_mut) else {
        return 0;
    };
    queue.items.push_back(Queued {
        item,
        order: device.next_order,
        asked_ns: now_ns(),
    });
    device.next_order += 1;
    queue.enqueued += 1;
    // A stream that has work already is looked at again without being woken for.
    if !std::mem::replace(&mut queue.is_active, true) {
        device.active.push(stream.key);
        if std::mem::take(&mut device.asleep) {
            WORK.notify_one();
        }
    }
    queue.enqueued
}

/// Waits until the stream has done its first `number` items.
pub(crate) fn wait(stream: &Stream, number: u64) {
    drop(wait_until(lock(&DEVICE), &Goal::Stream(stream.key, number)));
}

/// Waits for everything that the stream holds now.
pub(crate) fn wait_for_stream(stream: &Stream) {
    let device = lock(&DEVICE);
    let number = device.queue(stream.key).map_or(0, |queue| queue.enqueued);
    drop(wait_until(device, &Goal::Stream(stream.key, number)));
}

pub(crate) fn stream_is_idle(stream: &Stream) -> bool {
    lock(&DEVICE).queue(stream.key).is_none_or(Queue::is_idle)
}

/// Waits for everything that the streams of a context hold now.
pub(crate) fn wait_for_context(context_id: u32) {
    let device = lock(&DEVICE);
    let order = device.next_order;
    drop(wait_until(device, &Goal::Context(context_id, order)));
}

/// Waits until the event has reached a generation.
pub(crate) fn wait_for_event(event: &Arc<Event>, generation: u64) {
    drop(wait_until(
        lock(&DEVICE),
        &Goal::Event(event.clone(), generation),
    ));
}

fn wait_until(mut device: MutexGuard<'static, Device>, goal: &Goal) -> MutexGuard<'static, Device> {
    if goal.is_reached(&device) {
        return device;
    }
    let waiter = device.next_waiter;
    device.next_waiter += 1;
    device.waiting.push((waiter, goal.clone()));
    while !goal.is_reached(&device) {
        device = DONE
            .wait(device)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    device.waiting.retain(|(other, _)| *other != waiter);
    device
}

/// Wakes the host threads if one of them has what it waits for.
fn notify(device: &Device) {
    if device
        .waiting
        .iter()
        .any(|(_, goal)| goal.is_reached(device))
    {
        DONE.notify_all();
    }
}

/// The life of the device's thread.
fn run() {
    threads::set_is_device();
    // Sleeps shall end close to their time: the default slack is 50 µs.
    // SAFETY: sets a number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_u64) };
    let mut device = lock(&DEVICE);
    loop {
        let mut next_ns = u64::MAX;
        let mut progress = false;
        let mut at = 0;
        while at < device.active.len() {
            let key = device.active[at];
            let (after, step) = work_on(device, key);
            device = after;
            match step {
                Step::Progress => progress = true,
                Step::Until(end_ns) => {
                    next_ns = next_ns.min(end_ns);
                    at += 1;
                }
                Step::Blocked => at += 1,
                Step::Idle => {
                    device.active.swap_remove(at);
                    if let Some(queue) = device.queues[key].as_mut() {
                        queue.is_active = false;
                        if queue.retired {
                            device.queues[key] = None;
                        }
                    }
                }
            }
        }
        if progress {
            // Streams that wait for others were perhaps looked at before those moved.
            continue;
        }
        device = sleep(device, next_ns);
    }
}

fn sleep(mut device: MutexGuard<'static, Device>, until_ns: u64) -> MutexGuard<'static, Device> {
    device.asleep = true;
    let mut device = if until_ns == u64::MAX {
        WORK.wait(device)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    } else {
        let now = now_ns();
        if until_ns <= now {
            device
        } else {
            let duration = Duration::from_nanos(until_ns - now);
            let waited = WORK.wait_timeout(device, duration);
            waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
        }
    };
    device.asleep = false;
    device
}

enum Step {
    /// Something was done; look at this stream again.
    Progress,
    /// Nothing before this time.
    Until(u64),
    /// Nothing before another stream moves.
    Blocked,
    /// Nothing to do.
    Idle,
}

/// One step of one stream.
fn work_on(
    mut device: MutexGuard<'static, Device>,
    key: usize,
) -> (MutexGuard<'static, Device>, Step) {
    let Some(queue) = device.queues[key].as_mut() else {
        return (device, Step::Idle);
    };
    if let Some(running) = queue.running.take() {
        if running.end_ns > now_ns() {
            let end_ns = running.end_ns;
            queue.running = Some(running);
            return (device, Step::Until(end_ns));
        }
        // Only this thread works on streams, and the stream counts as busy until `completed` rises.
        drop(device);
        running.operation.finish(running.end_ns);
        COMPLETED.fetch_add(1, Ordering::AcqRel);
        return (complete(key, running.end_ns), Step::Progress);
    }
    let Some(front) = queue.items.front() else {
        return (device, Step::Idle);
    };
    let mut start_ns = front.asked_ns.max(queue.free_at_ns);
    let order = front.order;
    if let Item::Wait(event, generation) = &front.item {
        if !event.has_reached(*generation) {
            return (device, Step::Blocked);
        }
        start_ns = start_ns.max(event.reached_ns.load(Ordering::Acquire));
    }
    let Some(others_ns) = legacy_order(&device, key, order) else {
        return (device, Step::Blocked);
    };
    start_ns = start_ns.max(others_ns);
    let Some(queue) = device.queues[key].as_mut() else {
        return (device, Step::Idle);
    };
    let Some(queued) = queue.items.pop_front() else {
        return (device, Step::Idle);
    };
    queue.current = Some(order);
    notify(&device);
    let end_ns = match queued.item {
        Item::Operation(mut operation) => {
            drop(device);
            let end_ns = operation.begin(start_ns);
            let mut device = lock(&DEVICE);
            if let Some(queue) = device.queues[key].as_mut() {
                queue.running = Some(Running { operation, end_ns });
            }
            return (device, Step::Progress);
        }
        Item::Record(event, generation) => {
            event.reached_ns.store(start_ns, Ordering::Release);
            event.reached.fetch_max(generation, Ordering::AcqRel);
            start_ns
        }
        Item::Wait(..) => start_ns,
        Item::Free(address) => {
            drop(device);
            // Freed twice in stream order is the program's error; CUDA reports none either.
            let _ = memory::free(address);
            return (complete(key, start_ns), Step::Progress);
        }
        Item::FreeAllOf(context) => {
            drop(device);
            memory::free_all_of(context);
            return (complete(key, start_ns), Step::Progress);
        }
        Item::HostFunction(host) => {
            drop(device);
            // SAFETY: the program gave the function with this pointer to be called here.
            unsafe { (host.function)(host.user) };
            return (complete(key, now_ns()), Step::Progress);
        }
    };
    drop(device);
    (complete(key, end_ns), Step::Progress)
}

fn complete(key: usize, end_ns: u64) -> MutexGuard<'static, Device> {
    let mut device = lock(&DEVICE);
    if let Some(queue) = device.queues[key].as_mut() {
        queue.completed += 1;
        queue.current = None;
        queue.free_at_ns = end_ns;
    }
    notify(&device);
    device
}

/// The order that the legacy default stream brings: it is behind all earlier work of blocking
/// streams of its context, and they are behind its earlier work. None: not yet. Else the time at which the last of those ended.
fn legacy_order(device: &Device, key: usize, order: u64) -> Option<u64> {
    let queue = device.queues[key].as_ref()?;
    let concerns = match queue.mode {
        StreamOrder::NonBlocking => return Some(0),
        StreamOrder::Legacy => StreamOrder::Blocking,
        StreamOrder::Blocking => StreamOrder::Legacy,
    };
    let mut after_ns = 0;
    for other in device.queues.iter().flatten() {
        if other.mode != concerns || other.context_id != queue.context_id {
            continue;
        }
        if other.oldest().is_some_and(|oldest| oldest < order) {
            return None;
        }
        after_ns = after_ns.max(other.free_at_ns);
    }
    Some(after_ns)
}
