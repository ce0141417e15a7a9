//! The bytes of activity records.
//!
//! Offsets are those of NVIDIA's structures, which grow at the end: `CUpti_ActivityKernel9`,
//! `Memcpy6`, `Memset4`, `Context3` in CUPTI 12.9, `Kernel13`, `Memcpy7`, `Memset5`, `Context4` in 13.5, and
//! `CUpti_ActivityAPI`, `ExternalCorrelation`, `Synchronization2` and `Stream` in both. They were
//! printed by a C program compiled against the headers; `tests/cupti/client.rs` repeats them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lineage_sim_model::Facts;

use crate::abi;
use crate::config::{config, model};
use crate::cupti::activity::{self, Domain, kind};
use crate::cupti::buffers::{Sink, Slot};
use crate::cupti::time;
use crate::objects::Function;
use crate::threads::{ThreadState, Tops};

/// `CUPTI_INVALID_STREAM_ID`, `CUPTI_SYNCHRONIZATION_INVALID_VALUE`.
pub(crate) const INVALID_ID: u32 = u32::MAX;

const API_BYTES: usize = 40;
const EXTERNAL_BYTES: usize = 24;
const OVERHEAD_BYTES: usize = 56;

/// `CUpti_ChannelType`.
const CHANNEL_COMPUTE: u32 = 1;
const CHANNEL_COPY: u32 = 2;

fn is_13_5() -> bool {
    config().cupti_version >= 130_500
}

/// The size of a record of a kind, by the configured version; none for kinds that are not written.
pub(crate) fn size_of_kind(of: u32) -> Option<usize> {
    let new = is_13_5();
    Some(match of {
        kind::MEMCPY => {
            if new {
                112
            } else {
                96
            }
        }
        kind::MEMCPY2 => 96,
        kind::MEMSET => {
            if new {
                104
            } else {
                88
            }
        }
        kind::KERNEL | kind::CONCURRENT_KERNEL => {
            if new {
                248
            } else {
                208
            }
        }
        kind::DRIVER | kind::RUNTIME => API_BYTES,
        kind::CONTEXT => {
            if new {
                40
            } else {
                32
            }
        }
        kind::STREAM => 24,
        kind::OVERHEAD => OVERHEAD_BYTES,
        kind::SYNCHRONIZATION => 56,
        kind::EXTERNAL_CORRELATION => EXTERNAL_BYTES,
        _ => return None,
    })
}

/// Writes numbers at offsets.
struct Writer<'a>(&'a mut [u8]);

macro_rules! writer {
    ($($name:ident: $type:ty),*) => { $(
        fn $name(&mut self, offset: usize, value: $type) {
            let bytes = value.to_ne_bytes();
            self.0[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
    )* };
}

impl Writer<'_> {
    writer!(u8: u8, u16: u16, u32: u32, u64: u64, i32: i32);
}

/// One API call's record, with the external correlation records before it.
pub(crate) struct ApiRecord {
    pub(crate) domain: Domain,
    pub(crate) id: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) correlation_id: u32,
    pub(crate) result: u32,
}

pub(crate) fn write_api(thread: &ThreadState, record: &ApiRecord, tops: &Tops) {
    let external: Vec<_> = if activity::is_enabled(kind::EXTERNAL_CORRELATION) {
        tops.iter()
            .enumerate()
            .filter_map(|(kind, top)| Some((kind as u32, (*top)?)))
            .collect()
    } else {
        Vec::new()
    };
    let thread_id = match activity::THREAD_ID_TYPE.load(Ordering::Acquire) {
        0 => thread.pthread_id,
        _ => thread.id,
    };
    let before = external.len() * EXTERNAL_BYTES;
    let _ = Sink::of(&thread.sink).write(before + API_BYTES, external.len() + 1, |place| {
        for ((external_kind, id), place) in external.iter().zip(place.chunks_mut(EXTERNAL_BYTES)) {
            let mut writer = Writer(place);
            writer.u32(0, kind::EXTERNAL_CORRELATION);
            writer.u32(4, *external_kind);
            writer.u64(8, *id);
            writer.u32(16, record.correlation_id);
        }
        let mut writer = Writer(&mut place[before..]);
        writer.u32(0, record.domain.activity_kind());
        writer.u32(4, record.id);
        writer.u64(8, record.start_ns);
        writer.u64(16, record.end_ns);
        writer.u32(24, std::process::id());
        writer.u32(28, thread_id);
        writer.u32(32, record.correlation_id);
        writer.u32(36, record.result);
    });
}

/// What a record of the device says beside its times.
pub(crate) enum Shape {
    Kernel {
        kind: u32,
        function: Arc<Function>,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared_bytes: u32,
        cooperative: bool,
        priority: i32,
    },
    Copy {
        copy_kind: u8,
        source_kind: u8,
        target_kind: u8,
        asynchronous: bool,
        bytes: u64,
        /// Source and target of a copy between devices.
        peers: Option<[Peer; 2]>,
    },
    Set {
        value: u32,
        bytes: u64,
        asynchronous: bool,
        memory_kind: u16,
    },
}

/// One side of a copy between devices.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) device: u32,
    pub(crate) context_id: u32,
}

/// The record of an operation, from the call that asks for it to the operation's end.
pub(crate) struct DeviceRecord {
    slot: Slot,
    shape: Shape,
    context_id: u32,
    stream_id: u32,
    correlation_id: u32,
    runtime_correlation_id: u32,
    /// Latency timestamps are on.
    latency: bool,
    /// One of those whose times CUPTI could not collect.
    without_times: bool,
    device: u32,
    channel: u32,
    start_ns: u64,
}

/// Where an operation belongs, for its record.
pub(crate) struct Owner {
    pub(crate) context_id: u32,
    pub(crate) stream_id: u32,
    pub(crate) correlation_id: u32,
    pub(crate) runtime_correlation_id: u32,
}

static DEVICE_RECORDS: AtomicU64 = AtomicU64::new(0);
static NEXT_GRID: AtomicU64 = AtomicU64::new(1);

/// The kind under which kernels are recorded now, if at all.
pub(crate) fn kernel_kind() -> Option<u32> {
    [kind::CONCURRENT_KERNEL, kind::KERNEL]
        .into_iter()
        .find(|kind| activity::is_enabled(*kind))
}

impl DeviceRecord {
    /// Takes a place in the calling thread's buffer.
    pub(crate) fn open(thread: &ThreadState, owner: &Owner, shape: Shape) -> Option<Self> {
        let kind = match &shape {
            Shape::Kernel { kind, .. } => *kind,
            Shape::Copy { peers: None, .. } => kind::MEMCPY,
            Shape::Copy { peers: Some(_), .. } => kind::MEMCPY2,
            Shape::Set { .. } => kind::MEMSET,
        };
        let slot = Sink::of(&thread.sink).open(size_of_kind(kind)?)?;
        let number = DEVICE_RECORDS.fetch_add(1, Ordering::Relaxed) + 1;
        let every = u64::from(config().zero_time_every_nth);
        let latency = activity::LATENCY_TIMESTAMPS.load(Ordering::Acquire);
        Some(Self {
            slot,
            shape,
            context_id: owner.context_id,
            stream_id: owner.stream_id,
            correlation_id: owner.correlation_id,
            runtime_correlation_id: owner.runtime_correlation_id,
            latency,
            without_times: every > 0 && number.is_multiple_of(every),
            device: 0,
            channel: 0,
            start_ns: 0,
        })
    }

    /// The operation starts: everything is known but the end.
    pub(crate) fn begin(&mut self, start_ns: u64, facts: &Facts) {
        self.device = facts.device;
        self.channel = facts.channel;
        self.start_ns = if self.without_times {
            0
        } else {
            time::from_device_ns(self.device, start_ns)
        };
        let latency = |at_ns| {
            if self.latency {
                time::from_device_ns(facts.device, at_ns)
            } else {
                0
            }
        };
        let (queued_ns, submitted_ns) = (latency(facts.queued_ns), latency(facts.submitted_ns));
        let this = &*self;
        self.slot.update(|place| match &this.shape {
            Shape::Kernel { .. } => this.write_kernel(place, queued_ns, submitted_ns),
            Shape::Copy { .. } => this.write_copy(place),
            Shape::Set { .. } => this.write_set(place),
        });
    }

    /// The operation has ended.
    pub(crate) fn finish(self, end_ns: u64) {
        let end_ns = if self.without_times {
            0
        } else {
            let end_ns = time::from_device_ns(self.device, end_ns);
            // Reading two clocks is not exact; only a clock that steps may turn a record round.
            if model().device_step_ns == 0 {
                end_ns.max(self.start_ns)
            } else {
                end_ns
            }
        };
        let is_kernel = matches!(self.shape, Shape::Kernel { .. });
        self.slot.complete(|place| {
            let mut writer = Writer(place);
            // All three structures have `end` at 24; only the kernel's has `completed` behind it.
            writer.u64(24, end_ns);
            if is_kernel {
                writer.u64(32, end_ns);
            }
        });
    }

    fn write_kernel(&self, place: &mut [u8], queued_ns: u64, submitted_ns: u64) {
        let Shape::Kernel {
            kind,
            function,
            grid,
            block,
            dynamic_shared_bytes,
            cooperative,
            priority,
        } = &self.shape
        else {
            return;
        };
        let mut writer = Writer(place);
        writer.u32(0, *kind);
        writer.u16(6, 32);
        writer.u64(16, self.start_ns);
        writer.u32(40, self.device);
        writer.u32(44, self.context_id);
        writer.u32(48, self.stream_id);
        for (at, extent) in grid.iter().chain(block).enumerate() {
            writer.u32(52 + 4 * at, *extent);
        }
        writer.u32(80, *dynamic_shared_bytes);
        writer.u32(92, self.correlation_id);
        writer.u64(96, NEXT_GRID.fetch_add(1, Ordering::Relaxed));
        writer.u64(
            104,
            function.module_name.pointer().expose_provenance() as u64,
        );
        writer.u64(120, queued_ns);
        writer.u64(128, submitted_ns);
        writer.u8(136, u8::from(*cooperative));
        writer.u32(168, self.channel + 1);
        writer.u32(172, CHANNEL_COMPUTE);
        if is_13_5() {
            writer.i32(216, *priority);
        }
    }

    fn write_copy(&self, place: &mut [u8]) {
        let Shape::Copy {
            copy_kind,
            source_kind,
            target_kind,
            asynchronous,
            bytes,
            peers,
        } = &self.shape
        else {
            return;
        };
        let mut writer = Writer(place);
        // What both records have in common.
        writer.u32(0, kind::MEMCPY);
        writer.u8(4, *copy_kind);
        writer.u8(5, *source_kind);
        writer.u8(6, *target_kind);
        writer.u8(7, u8::from(*asynchronous));
        writer.u64(8, *bytes);
        writer.u64(16, self.start_ns);
        writer.u32(32, self.device);
        writer.u32(36, self.context_id);
        writer.u32(40, self.stream_id);
        if let Some([source, target]) = peers {
            writer.u32(0, kind::MEMCPY2);
            writer.u32(44, source.device);
            writer.u32(48, source.context_id);
            writer.u32(52, target.device);
            writer.u32(56, target.context_id);
            writer.u32(60, self.correlation_id);
            writer.u32(84, self.channel + 1);
            writer.u32(88, CHANNEL_COPY);
            return;
        }
        writer.u32(44, self.correlation_id);
        writer.u32(48, self.runtime_correlation_id);
        writer.u32(76, self.channel + 1);
        writer.u32(80, CHANNEL_COPY);
        writer.u64(88, 1);
    }

    fn write_set(&self, place: &mut [u8]) {
        let Shape::Set {
            value,
            bytes,
            asynchronous,
            memory_kind,
        } = &self.shape
        else {
            return;
        };
        let mut writer = Writer(place);
        writer.u32(0, kind::MEMSET);
        writer.u32(4, *value);
        writer.u64(8, *bytes);
        writer.u64(16, self.start_ns);
        writer.u32(32, self.device);
        writer.u32(36, self.context_id);
        writer.u32(40, self.stream_id);
        writer.u32(44, self.correlation_id);
        writer.u16(48, u16::from(*asynchronous));
        writer.u16(50, *memory_kind);
        writer.u32(76, self.channel + 1);
        writer.u32(80, CHANNEL_COMPUTE);
    }
}

/// `CUpti_ActivitySynchronizationType`.
#[derive(Clone, Copy)]
pub(crate) enum Synchronization {
    Event = 1,
    StreamWaitEvent = 2,
    Stream = 3,
    Context = 4,
}

pub(crate) struct SynchronizationRecord {
    pub(crate) of: Synchronization,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) correlation_id: u32,
    pub(crate) context_id: u32,
    pub(crate) stream_id: u32,
    /// The event's id and the number of its newest record call.
    pub(crate) event: Option<(u32, u64)>,
    pub(crate) result: u32,
}

pub(crate) fn write_synchronization(thread: &ThreadState, record: &SynchronizationRecord) {
    let _ = Sink::of(&thread.sink).write(56, 1, |place| {
        let mut writer = Writer(place);
        writer.u32(0, kind::SYNCHRONIZATION);
        writer.u32(4, record.of as u32);
        writer.u64(8, record.start_ns);
        writer.u64(16, record.end_ns);
        writer.u32(24, record.correlation_id);
        writer.u32(28, record.context_id);
        writer.u32(32, record.stream_id);
        writer.u32(36, record.event.map_or(INVALID_ID, |event| event.0));
        writer.u64(40, record.event.map_or(0, |event| event.1));
        writer.u32(48, record.result);
    });
}

pub(crate) fn write_context(
    thread: &ThreadState,
    context_id: u32,
    device: u32,
    default_stream_id: u32,
) {
    let Some(bytes) = size_of_kind(kind::CONTEXT) else {
        return;
    };
    let _ = Sink::of(&thread.sink).write(bytes, 1, |place| {
        let mut writer = Writer(place);
        writer.u32(0, kind::CONTEXT);
        writer.u32(4, context_id);
        writer.u32(8, device);
        // CUPTI_ACTIVITY_COMPUTE_API_CUDA
        writer.u16(12, 1);
        writer.u16(14, default_stream_id as u16);
        if is_13_5() {
            writer.u64(32, u64::from(std::process::id()));
        }
    });
}

pub(crate) fn write_stream(
    thread: &ThreadState,
    context_id: u32,
    stream_id: u32,
    priority: i32,
    flags: u32,
    correlation_id: u32,
) {
    let _ = Sink::of(&thread.sink).write(24, 1, |place| {
        let mut writer = Writer(place);
        writer.u32(0, kind::STREAM);
        writer.u32(4, context_id);
        writer.u32(8, stream_id);
        writer.i32(12, priority);
        // CUPTI counts the kinds of stream from 1: default, then non-blocking.
        writer.u32(16, flags + 1);
        writer.u32(20, correlation_id);
    });
}

/// Something that held up a call, from when it began.
pub(crate) struct Overhead {
    start_ns: u64,
}

/// `CUpti_ActivityOverheadKind`.
const OVERHEAD_COMPILER: u32 = 1;
const OVERHEAD_LAZY_LOADING: u32 = 5 << 16;
const OVERHEAD_COMMAND_BUFFER_FULL: u32 = 6 << 16;

/// `CUPTI_ACTIVITY_OBJECT_THREAD`.
const OBJECT_THREAD: u32 = 2;

impl Overhead {
    /// None when overhead is not recorded.
    pub(crate) fn begin() -> Option<Self> {
        activity::is_enabled(kind::OVERHEAD).then(|| Self {
            start_ns: time::stamp_ns(),
        })
    }

    /// A module's text was compiled.
    pub(crate) fn compiler(self, thread: &ThreadState, correlation_id: u32) {
        self.write(thread, correlation_id, OVERHEAD_COMPILER, 0);
    }

    /// A function was loaded at its first launch.
    pub(crate) fn lazy_loading(self, thread: &ThreadState, correlation_id: u32) {
        self.write(thread, correlation_id, OVERHEAD_LAZY_LOADING, 0);
    }

    /// The call waited for room in its channel.
    pub(crate) fn command_buffer_full(
        self,
        thread: &ThreadState,
        correlation_id: u32,
        channel: u32,
    ) {
        // `CUpti_ActivityOverheadCommandBufferFullData`: channel and its kind. Allocated for the client, which frees it.
        // SAFETY: allocates as many bytes as are written, if it allocates.
        let data = unsafe {
            let data = libc::malloc(8).cast::<[u32; 2]>();
            if !data.is_null() {
                data.write([channel + 1, CHANNEL_COMPUTE]);
            }
            data
        };
        let address = data.expose_provenance() as u64;
        self.write(
            thread,
            correlation_id,
            OVERHEAD_COMMAND_BUFFER_FULL,
            address,
        );
    }

    fn write(self, thread: &ThreadState, correlation_id: u32, overhead_kind: u32, data: u64) {
        let end_ns = time::stamp_ns();
        let id = match activity::THREAD_ID_TYPE.load(Ordering::Acquire) {
            0 => thread.pthread_id,
            _ => thread.id,
        };
        let is_written = Sink::of(&thread.sink).write(OVERHEAD_BYTES, 1, |place| {
            let mut writer = Writer(place);
            writer.u32(0, kind::OVERHEAD);
            writer.u32(4, overhead_kind);
            writer.u32(8, OBJECT_THREAD);
            writer.u32(12, std::process::id());
            writer.u32(16, id);
            writer.u64(24, self.start_ns);
            writer.u64(32, end_ns);
            writer.u32(40, correlation_id);
            writer.u64(48, data);
        });
        if !is_written && data != 0 {
            let data = std::ptr::with_exposed_provenance_mut::<libc::c_void>(data as usize);
            // SAFETY: it came from `malloc`, and no client will free it.
            unsafe { libc::free(data) };
        }
    }
}

/// `CUpti_ActivityMemcpyKind` of an operation.
pub(crate) fn copy_kind(operation: u32) -> u8 {
    match operation {
        abi::OPERATION_COPY_HOST_TO_DEVICE => 1,
        abi::OPERATION_COPY_DEVICE_TO_HOST => 2,
        abi::OPERATION_COPY_PEER => 10,
        _ => 8,
    }
}
