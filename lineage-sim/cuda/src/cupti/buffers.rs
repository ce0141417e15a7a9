//! Activity buffers: asked from a client, filled, and handed back.
//!
//! A [`Sink`] is where a client's records go: one for the whole process, or one per thread. It fills one
//! buffer at a time; full ones wait beside it until every record in them is complete. A record of the device takes its
//! place in the buffer of the launching thread during the call, and is completed by the device's
//! thread later:
//!
//! * not begun: its place holds kind `INVALID`, so that reading a forcedly flushed buffer ends there;
//! * begun: its start is written and its end is 0;
//! * complete: the buffer's count of open records falls by one.
//!
//! A flush without force takes only buffers without open records. A forced one takes all; what is
//! completed later finds its buffer gone, and is lost without being counted.
//!
//! Locks, in this order: `DELIVERY` (one delivery at a time), a sink, the worker's queue. The
//! client's functions are called with no sink locked.

pub(crate) mod worker;

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::abi::{
    self, BufferCompleted, BufferCompletedTelling, BufferRequested, BufferRequestedTelling,
};
use crate::clock::{self, now_ns};
use crate::config::config;
use crate::cupti::activity::kind;
use crate::cupti::client::{self, Client, MOST_CLIENTS};
use crate::cupti::parameters::{CompleteInfo, RequestInfo};
use crate::cupti::{overhead, records, result};
use crate::faults::{self, Counter, faults};
use crate::sync::lock;
use crate::threads::{self, ThreadState};

/// A buffer of the client's while it is here.
struct Buffer {
    client: &'static Client,
    /// Never 0, never used twice.
    id: u64,
    memory: *mut u8,
    /// As the client gave it.
    size: usize,
    /// How much of it is used at most.
    limit: usize,
    /// 0 for no limit.
    max_records: usize,
    used: usize,
    records: usize,
    /// Records that are not complete.
    open: usize,
    /// When it was asked for, on the simulator's clock.
    since_ns: u64,
}

// SAFETY: the client handed the memory over until it gets it back; it is written under a lock.
unsafe impl Send for Buffer {}

impl Buffer {
    fn fits(&self, bytes: usize, records: usize) -> bool {
        self.limit - self.used >= bytes
            && (self.max_records == 0 || self.records + records <= self.max_records)
    }

    /// All records are complete, and it was not asked for just now where a fault lets buffers lie.
    fn is_ready(&self) -> bool {
        let hold_ns = faults().hold_buffers_ns;
        self.open == 0 && (hold_ns == 0 || now_ns() >= self.since_ns.saturating_add(hold_ns))
    }

    fn place(&mut self, offset: usize, bytes: usize) -> &mut [u8] {
        debug_assert!(offset + bytes <= self.used);
        // SAFETY: the place lies inside what was reserved of the client's buffer, which is ours
        // until it is handed back, and which was zeroed when it was reserved.
        unsafe { std::slice::from_raw_parts_mut(self.memory.add(offset), bytes) }
    }
}

impl Buffer {
    /// Puts complete records into another order. External ids stay right before their API record.
    fn shuffle(&mut self, occasion: u64) {
        if self.open > 0 {
            return;
        }
        let used = self.used;
        let bytes = self.place(0, used);
        let mut parts = Vec::new();
        let (mut begin, mut end) = (0, 0);
        while let Some(head) = bytes.get(end..end + 4) {
            let of = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
            let Some(record_bytes) = records::size_of_kind(of) else {
                return;
            };
            end += record_bytes;
            if of != kind::EXTERNAL_CORRELATION {
                parts.push(bytes[begin..end].to_vec());
                begin = end;
            }
        }
        faults::shuffle(&mut parts, occasion);
        bytes[..begin].copy_from_slice(&parts.concat());
    }
}

#[derive(Default)]
struct Buffers {
    current: Option<Buffer>,
    full: Vec<Buffer>,
}

impl Buffers {
    fn find(&mut self, id: u64) -> Option<&mut Buffer> {
        self.current
            .iter_mut()
            .chain(&mut self.full)
            .find(|buffer| buffer.id == id)
    }

    /// Hands a full buffer over, or keeps it until its records are complete.
    fn set_aside(&mut self, buffer: Buffer) {
        if buffer.is_ready() {
            worker::hand_over(vec![buffer]);
        } else {
            self.full.push(buffer);
        }
    }

    /// Full buffers without open records, or all of them.
    fn take_full(&mut self, force: bool) -> Vec<Buffer> {
        self.full
            .extract_if(.., |buffer| force || buffer.is_ready())
            .collect()
    }
}

/// Where one client's records of a thread, or of all threads, go.
pub(crate) struct Sink {
    client: &'static Client,
    buffers: Mutex<Buffers>,
}

/// The place of a record that is not complete.
pub(crate) struct Slot {
    sink: Arc<Sink>,
    buffer: u64,
    offset: usize,
    bytes: usize,
}

static SINKS: Mutex<Vec<Arc<Sink>>> = Mutex::new(Vec::new());
static NEXT_BUFFER: AtomicU64 = AtomicU64::new(1);
static DELIVERY: Mutex<()> = Mutex::new(());

/// Whether buffers are per thread: 0 and 1, and 2 for what the configuration says.
static PER_THREAD: AtomicU32 = AtomicU32::new(2);

/// A client's functions, with or without more to be told.
#[derive(Clone, Copy)]
pub(crate) enum Functions {
    Plain(BufferRequested, BufferCompleted),
    Telling(BufferRequestedTelling, BufferCompletedTelling),
}

/// How one client gets its records.
pub(crate) struct Delivery {
    functions: Mutex<Option<Functions>>,
    dropped: AtomicUsize,
}

impl Delivery {
    pub(crate) const fn new() -> Self {
        Self {
            functions: Mutex::new(None),
            dropped: AtomicUsize::new(0),
        }
    }

    pub(crate) fn register(&self, functions: Functions) {
        *lock(&self.functions) = Some(functions);
        worker::start();
    }

    fn is_registered(&self) -> bool {
        lock(&self.functions).is_some()
    }

    /// Takes and resets the count of dropped records.
    pub(crate) fn take_dropped(&self) -> usize {
        self.dropped.swap(0, Ordering::AcqRel)
    }

    pub(crate) fn count_dropped(&self, records: usize) {
        self.dropped.fetch_add(records, Ordering::AcqRel);
        DROPPED_IN_ALL.fetch_add(records as u64, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        *lock(&self.functions) = None;
        self.dropped.store(0, Ordering::Release);
    }
}

/// Totals that no CUPTI function tells.
pub(crate) static WRITTEN: AtomicU64 = AtomicU64::new(0);
pub(crate) static DROPPED_IN_ALL: AtomicU64 = AtomicU64::new(0);
pub(crate) static REQUESTED: AtomicU64 = AtomicU64::new(0);
pub(crate) static COMPLETED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The record about a request is being written: should that need another buffer, there is no record about it.
    static REPORTS_REQUEST: Cell<bool> = const { Cell::new(false) };
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn is_per_thread() -> bool {
    match PER_THREAD.load(Ordering::Acquire) {
        2 => config().per_thread_buffers == 1,
        value => value == 1,
    }
}

pub(crate) fn set_per_thread(on: bool) {
    PER_THREAD.store(on.into(), Ordering::Release);
}

impl Sink {
    pub(crate) fn create(client: &'static Client) -> Arc<Self> {
        let sink = Arc::new(Self {
            client,
            buffers: Mutex::default(),
        });
        lock(&SINKS).push(sink.clone());
        sink
    }

    /// The sink for a client's records of a thread.
    pub(crate) fn of(thread: &ThreadState, client: &'static Client) -> Arc<Self> {
        if is_per_thread() {
            thread.sink(client)
        } else {
            Self::of_none(client)
        }
    }

    /// The sink for a client's records that are no thread's.
    pub(crate) fn of_none(client: &'static Client) -> Arc<Self> {
        static GLOBAL: [OnceLock<Arc<Sink>>; MOST_CLIENTS] =
            [const { OnceLock::new() }; MOST_CLIENTS];
        GLOBAL[client.index]
            .get_or_init(|| Self::create(client))
            .clone()
    }

    /// Writes records that are complete, one behind the other. False when they were dropped.
    pub(crate) fn write(&self, bytes: usize, records: usize, fill: impl FnOnce(&mut [u8])) -> bool {
        self.reserve(bytes, records, 0, |place| fill(place))
            .is_some()
    }

    /// Reserves the place of a record that is not complete, or of several of which all are completed at once.
    pub(crate) fn open(self: &Arc<Self>, bytes: usize, records: usize) -> Option<Slot> {
        let (buffer, offset) = self.reserve(bytes, records, 1, |_| ())?;
        Some(Slot {
            sink: self.clone(),
            buffer,
            offset,
            bytes,
        })
    }

    /// Reserves a place; where a buffer was asked for first, and that takes time, its overhead has a record behind that place.
    fn reserve(
        &self,
        bytes: usize,
        records: usize,
        open: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<(u64, usize)> {
        let mut request_ns = None;
        let reserved = self.reserve_in_new(bytes, records, open, fill, &mut request_ns);
        if let Some(times_ns) = request_ns
            && !REPORTS_REQUEST.replace(true)
        {
            overhead::buffer_request(self.client, self, times_ns);
            REPORTS_REQUEST.set(false);
        }
        reserved
    }

    fn reserve_in_new(
        &self,
        bytes: usize,
        records: usize,
        open: usize,
        fill: impl FnOnce(&mut [u8]),
        request_ns: &mut Option<[u64; 2]>,
    ) -> Option<(u64, usize)> {
        if faults().other_tool == abi::OTHER_TOOL_TAKES_BUFFERS {
            // They are that tool's now.
            return None;
        }
        let mut buffers = lock(&self.buffers);
        if !buffers
            .current
            .as_ref()
            .is_some_and(|buffer| buffer.fits(bytes, records))
        {
            // A buffer that is too small even when empty goes back as it is.
            if let Some(full) = buffers.current.take() {
                buffers.set_aside(full);
            }
            drop(buffers);
            let Some(new) = request(self.client, request_ns) else {
                self.client.delivery.count_dropped(records);
                return None;
            };
            buffers = lock(&self.buffers);
            if let Some(other) = buffers.current.replace(new) {
                // Another thread of the same sink was faster; its buffer is the fuller one.
                if other.fits(bytes, records) {
                    let spare = buffers.current.replace(other);
                    worker::hand_over(spare.into_iter().collect());
                } else {
                    buffers.set_aside(other);
                }
            }
        }
        let buffer = buffers
            .current
            .as_mut()
            .filter(|buffer| buffer.fits(bytes, records));
        let Some(buffer) = buffer else {
            self.client.delivery.count_dropped(records);
            return None;
        };
        let offset = buffer.used;
        buffer.used += bytes;
        buffer.records += records;
        buffer.open += open;
        // SAFETY: these bytes of the client's buffer are reserved to us now. They are zeroed
        // before a reference to them exists, because the client may have left them uninitialised.
        unsafe { buffer.memory.add(offset).write_bytes(0, bytes) };
        fill(buffer.place(offset, bytes));
        WRITTEN.fetch_add(records as u64, Ordering::Relaxed);
        Some((buffer.id, offset))
    }
}

impl Slot {
    /// Changes the record, if its buffer is still here.
    pub(crate) fn update(&self, change: impl FnOnce(&mut [u8])) {
        if let Some(buffer) = lock(&self.sink.buffers).find(self.buffer) {
            change(buffer.place(self.offset, self.bytes));
        }
    }

    /// Changes the record for the last time.
    pub(crate) fn complete(self, change: impl FnOnce(&mut [u8])) {
        let mut buffers = lock(&self.sink.buffers);
        let Some(buffer) = buffers.find(self.buffer) else {
            return;
        };
        change(buffer.place(self.offset, self.bytes));
        buffer.open -= 1;
        if buffer.open == 0 {
            let complete = buffers.take_full(false);
            if !complete.is_empty() {
                worker::hand_over(complete);
            }
        }
    }
}

/// Asks a client for a buffer. From when to when, if that took CUPTI time.
fn request(client: &'static Client, request_ns: &mut Option<[u64; 2]>) -> Option<Buffer> {
    static REQUESTS: Counter = Counter::new();
    let functions = (*lock(&client.delivery.functions))?;
    if faults::hits(faults().null_buffer_every_nth, REQUESTS.next()) {
        return None;
    }
    let cost_ns = config().buffer_request_ns;
    let start_ns = (cost_ns > 0).then(|| client.clock.stamp_ns());
    let (mut memory, mut size, mut max_records) = (std::ptr::null_mut(), 0, 0);
    threads::in_callback(|| match functions {
        // SAFETY: the client registered the function for this; the pointers live during the call.
        Functions::Plain(requested, _) => unsafe {
            requested(&mut memory, &mut size, &mut max_records);
        },
        Functions::Telling(requested, _) => {
            let mut info = RequestInfo::new();
            // SAFETY: as above.
            unsafe {
                requested(
                    &mut memory,
                    &mut size,
                    &mut max_records,
                    (&raw mut info).cast(),
                );
            }
        }
    });
    if let Some(start_ns) = start_ns {
        clock::spin_ns(cost_ns);
        *request_ns = Some([start_ns, client.clock.stamp_ns()]);
    }
    if memory.is_null() {
        return None;
    }
    REQUESTED.fetch_add(1, Ordering::Relaxed);
    let limit = usize::try_from(config().activity_buffer_limit_bytes)
        .unwrap_or(usize::MAX)
        .min(size);
    let id = NEXT_BUFFER.fetch_add(1, Ordering::Relaxed);
    Some(Buffer {
        client,
        id,
        memory,
        size,
        limit,
        max_records,
        used: 0,
        records: 0,
        open: 0,
        since_ns: now_ns(),
    })
}

/// Hands buffers back to their clients. `DELIVERY` is locked.
fn deliver(buffers: Vec<Buffer>) {
    static DELIVERIES: Counter = Counter::new();
    for mut buffer in buffers {
        let delivery = &buffer.client.delivery;
        let Some(functions) = *lock(&delivery.functions) else {
            continue;
        };
        let number = DELIVERIES.next();
        if faults::hits(faults().drop_buffer_every_nth, number) {
            delivery.count_dropped(buffer.records);
            buffer.used = 0;
        }
        if faults().shuffle_buffers == 1 {
            buffer.shuffle(number);
        }
        COMPLETED.fetch_add(1, Ordering::Relaxed);
        DELIVERING.with(|cell| cell.set(true));
        let (memory, size, used) = (buffer.memory, buffer.size, buffer.used);
        threads::in_callback(|| match functions {
            // SAFETY: the client registered the function for this, and the buffer is its own. All
            // buffers are global, so that there is neither context nor stream.
            Functions::Plain(_, completed) => unsafe {
                completed(std::ptr::null_mut(), 0, memory, size, used);
            },
            Functions::Telling(_, completed) => {
                let mut info = CompleteInfo::new(clock::thread_id().into());
                // SAFETY: as above; what is told lives during the call.
                unsafe { completed(memory, size, used, (&raw mut info).cast()) };
            }
        });
        DELIVERING.with(|cell| cell.set(false));
    }
}

/// `cuptiActivityFlushAll`: delivers on the calling thread, to all clients, after what the worker has under way.
pub(crate) fn flush_all(force: bool) -> Result<(), u32> {
    let mut clients = client::all().iter();
    let is_registered = clients.any(|client| client.delivery.is_registered());
    if DELIVERING.with(Cell::get) || !is_registered {
        return Err(result::INVALID_OPERATION);
    }
    let takes_time = faults().flush_takes_ns > 0;
    let overhead = takes_time.then(records::Overhead::begin).flatten();
    let delivery = lock(&DELIVERY);
    deliver(worker::take());
    let sinks = lock(&SINKS).clone();
    for sink in &sinks {
        let mut buffers = lock(&sink.buffers);
        let mut ready = buffers.take_full(force);
        ready.extend(
            buffers
                .current
                .take_if(|current| current.used > 0 && (force || current.is_ready())),
        );
        drop(buffers);
        deliver(ready);
    }
    drop(sinks);
    faults::slow_flush();
    drop(delivery);
    if let Some(overhead) = overhead {
        ThreadState::with(|thread| overhead.flush(thread));
    }
    forget_unused_sinks();
    Ok(())
}

/// Sinks of threads that have exited, once they are empty.
fn forget_unused_sinks() {
    lock(&SINKS).retain(|sink| {
        let buffers = lock(&sink.buffers);
        Arc::strong_count(sink) > 1 || buffers.current.is_some() || !buffers.full.is_empty()
    });
}

/// Forgets a client's buffers; undelivered ones are its loss.
pub(crate) fn forget_those_of(client: &Client) {
    worker::forget_those_of(client);
    for sink in lock(&SINKS).iter() {
        if sink.client.index == client.index {
            *lock(&sink.buffers) = Buffers::default();
        }
    }
}

/// `cuptiFinalize`: as if nothing had been set.
pub(crate) fn reset() {
    worker::set_period(0);
    PER_THREAD.store(2, Ordering::Release);
}

/// Walks the records of a buffer, as `cuptiActivityGetNextRecord` does.
///
/// # Safety
///
/// `buffer` must hold `valid_bytes` readable bytes.
pub(crate) unsafe fn next_record(
    buffer: *mut u8,
    valid_bytes: usize,
    record: *mut u8,
) -> Result<*mut u8, u32> {
    // SAFETY: both reads are inside the valid bytes, by the checks before them.
    let kind_at = |offset: usize| unsafe { buffer.add(offset).cast::<u32>().read_unaligned() };
    let offset = if record.is_null() {
        0
    } else {
        let before = record.addr().wrapping_sub(buffer.addr());
        if before.saturating_add(4) > valid_bytes {
            return Err(result::INVALID_PARAMETER);
        }
        before + records::size_of_kind(kind_at(before)).ok_or(result::INVALID_KIND)?
    };
    if offset.saturating_add(4) > valid_bytes {
        return Err(result::MAX_LIMIT_REACHED);
    }
    let size = records::size_of_kind(kind_at(offset)).ok_or(result::INVALID_KIND)?;
    if offset + size > valid_bytes {
        return Err(result::INVALID_KIND);
    }
    // SAFETY: inside the valid bytes.
    Ok(unsafe { buffer.add(offset) })
}
