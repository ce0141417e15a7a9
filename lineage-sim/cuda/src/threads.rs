//! What is kept per host thread: external correlation stacks, its activity buffer, counts.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::clock;
use crate::cupti::buffers::Sink;
use crate::cupti::client::{Client, MOST_CLIENTS};
use crate::faults::faults;
use crate::objects::{Context, Stream};
use crate::sync::lock;

/// External correlation kinds are 1 to 5; 0 is invalid.
pub(crate) const EXTERNAL_KINDS: usize = 6;

/// The ids on top of the stacks, by kind.
pub(crate) type Tops = [Option<u64>; EXTERNAL_KINDS];

pub(crate) struct ThreadState {
    pub(crate) id: u32,
    /// Counts the threads that have called, from 1: the same in every run whose order of calls is.
    pub(crate) ordinal: u32,
    pub(crate) pthread_id: u32,
    /// An id that a thread had which has exited, or its own: for records, where the system is to give ids anew.
    pub(crate) reused_id: u32,
    /// By client.
    stacks: [Mutex<[Vec<u64>; EXTERNAL_KINDS]>; MOST_CLIENTS],
    /// By client.
    sinks: [OnceLock<Arc<Sink>>; MOST_CLIENTS],
    stream: Mutex<Option<Arc<Stream>>>,
    pub(crate) counts: ThreadCounts,
}

/// Counted per thread, so that threads do not contend.
#[derive(Default)]
pub(crate) struct ThreadCounts {
    pub(crate) api_calls: AtomicU64,
    pub(crate) work_calls: AtomicU64,
    pub(crate) pushes: AtomicU64,
    pub(crate) pops: AtomicU64,
    pub(crate) pops_of_empty_stacks: AtomicU64,
}

impl ThreadCounts {
    fn add_to(&self, total: &ThreadCounts) {
        for (from, to) in [
            (&self.api_calls, &total.api_calls),
            (&self.work_calls, &total.work_calls),
            (&self.pushes, &total.pushes),
            (&self.pops, &total.pops),
            (&self.pops_of_empty_stacks, &total.pops_of_empty_stacks),
        ] {
            to.fetch_add(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

pub(crate) fn add_one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

static ORDINALS: AtomicU32 = AtomicU32::new(0);
static LIVE: Mutex<Vec<Arc<ThreadState>>> = Mutex::new(Vec::new());
/// Ids of threads that have exited, and that nobody has taken on.
static GIVEN_BACK: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static EXITED: Mutex<Option<ThreadCounts>> = Mutex::new(None);

/// Takes the thread out of the list when it exits. Its buffer stays until it is flushed.
struct Entry(Arc<ThreadState>);

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&LIVE).retain(|thread| !Arc::ptr_eq(thread, &self.0));
        self.0.counts.add_to(lock(&EXITED).get_or_insert_default());
        *lock(&self.0.stream) = None;
        if faults().reuse_thread_ids == 1 {
            lock(&GIVEN_BACK).push(self.0.reused_id);
        }
    }
}

thread_local! {
    static ENTRY: Entry = Entry(ThreadState::enter());
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
    static IS_DEVICE: Cell<bool> = const { Cell::new(false) };
}

impl ThreadState {
    fn new() -> Self {
        Self {
            id: clock::thread_id(),
            ordinal: ORDINALS.fetch_add(1, Ordering::Relaxed) + 1,
            pthread_id: clock::pthread_id(),
            reused_id: lock(&GIVEN_BACK).pop().unwrap_or_else(clock::thread_id),
            stacks: Default::default(),
            sinks: Default::default(),
            stream: Mutex::new(None),
            counts: ThreadCounts::default(),
        }
    }

    fn enter() -> Arc<Self> {
        let state = Arc::new(Self::new());
        lock(&LIVE).push(state.clone());
        state
    }

    /// The state of the calling thread. In destructors of other thread-local values, after the
    /// thread's own state is gone, a fresh one that is forgotten again.
    pub(crate) fn with<T>(use_it: impl FnOnce(&Arc<ThreadState>) -> T) -> T {
        let state = ENTRY.try_with(|entry| entry.0.clone());
        use_it(&state.unwrap_or_else(|_| Arc::new(Self::new())))
    }

    /// Where a client's records of this thread go, where each thread has buffers of its own.
    pub(crate) fn sink(&self, client: &'static Client) -> Arc<Sink> {
        self.sinks[client.index]
            .get_or_init(|| Sink::create(client))
            .clone()
    }

    pub(crate) fn push(&self, client: &Client, kind: usize, id: u64) {
        lock(&self.stacks[client.index])[kind].push(id);
        add_one(&self.counts.pushes);
    }

    pub(crate) fn pop(&self, client: &Client, kind: usize) -> Option<u64> {
        let popped = lock(&self.stacks[client.index])[kind].pop();
        let counter = match popped {
            Some(_) => &self.counts.pops,
            None => &self.counts.pops_of_empty_stacks,
        };
        add_one(counter);
        popped
    }

    pub(crate) fn tops(&self, client: &Client) -> Tops {
        let stacks = lock(&self.stacks[client.index]);
        std::array::from_fn(|kind| stacks[kind].last().copied())
    }

    /// Stacks that are not empty: kind and depth.
    pub(crate) fn depths(&self) -> Vec<(u32, u64)> {
        let mut depths = Vec::new();
        for stacks in &self.stacks {
            let stacks = lock(stacks);
            let all = stacks.iter().enumerate();
            depths.extend(all.map(|(kind, stack)| (kind as u32, stack.len() as u64)));
        }
        depths.retain(|(_, depth)| *depth > 0);
        depths
    }

    /// This thread's own default stream (`CU_STREAM_PER_THREAD`) in a context.
    pub(crate) fn default_stream(&self, context: &Context) -> Arc<Stream> {
        let mut stream = lock(&self.stream);
        match &*stream {
            Some(stream) if stream.context == context.number => stream.clone(),
            _ => stream.insert(context.create_stream(0, 0)).clone(),
        }
    }
}

pub(crate) fn live() -> Vec<Arc<ThreadState>> {
    lock(&LIVE).clone()
}

/// Clears the stacks that a client has in all threads.
pub(crate) fn clear_stacks(client: usize) {
    for thread in live() {
        *lock(&thread.stacks[client]) = Default::default();
    }
}

/// The counts of all threads, past ones among them.
pub(crate) fn totals() -> ThreadCounts {
    let total = ThreadCounts::default();
    if let Some(exited) = &*lock(&EXITED) {
        exited.add_to(&total);
    }
    for thread in live() {
        thread.counts.add_to(&total);
    }
    total
}

/// Whether this thread is inside a callback of CUPTI's client, whose own calls are not traced.
pub(crate) fn is_in_callback() -> bool {
    IN_CALLBACK.with(Cell::get)
}

pub(crate) fn in_callback<T>(run: impl FnOnce() -> T) -> T {
    let before = IN_CALLBACK.with(|cell| cell.replace(true));
    let value = run();
    IN_CALLBACK.with(|cell| cell.set(before));
    value
}

/// Whether this is the device's thread, on which CUDA must not be called.
pub(crate) fn is_device() -> bool {
    IS_DEVICE.with(Cell::get)
}

pub(crate) fn set_is_device() {
    IS_DEVICE.with(|cell| cell.set(true));
}

/// Does something as the device would: with the virtual clock it has no thread of its own.
pub(crate) fn as_device<T>(run: impl FnOnce() -> T) -> T {
    let before = IS_DEVICE.with(|cell| cell.replace(true));
    let value = run();
    IS_DEVICE.with(|cell| cell.set(before));
    value
}
