//! The bytes of activity records.
//!
//! Offsets are those of NVIDIA's structures, which grow at the end: `CUpti_ActivityKernel9`,
//! `Memcpy6`, `Memset4`, `Context3` in CUPTI 12.9, `Kernel13`, `Memcpy7`, `Memset5`, `Context4` in 13.5, and
//! `CUpti_ActivityAPI`, `ExternalCorrelation`, `Synchronization2` and `Stream` in both. They were
//! printed by a C program compiled against the headers; `tests/cupti/client.rs` repeats them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi;
use crate::config::config;
use crate::cupti::activity::{self, Domain, kind};
use crate::cupti::buffers::{Sink, Slot};
use crate::cupti::time;
use crate::objects::Function;
use crate::threads::{ThreadState, Tops};

/// `CUPTI_INVALID_STREAM_ID`, `CUPTI_SYNCHRONIZATION_INVALID_VALUE`.
pub(crate) const INVALID_ID: u32 = u32::MAX;

const API_BYTES: usize = 40;
const EXTERNAL_BYTES: usize = 24;

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
    Sink::of(&thread.sink).write(before + API_BYTES, external.len() + 1, |place| {
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
    },
    Set {
        value: u32,
        bytes: u64,
        asynchronous: bool,
        memory_kind: u16,
    },
}

/// The record of an operation, from the call that asks for it to the operation's end.
pub(crate) struct DeviceRecord {
    slot: Slot,
    shape: Shape,
    context_id: u32,
    stream_id: u32,
    correlation_id: u32,
    runtime_correlation_id: u32,
    /// Of the call, on the device's clock; 0 unless latency timestamps are on.
    queued_ns: u64,
    /// One of those whose times CUPTI could not collect.
    without_times: bool,
    start_ns: u64,
}

/// Where an operation belongs, for its record.
pub(crate) struct Owner {
    pub(crate) context_id: u32,
    pub(crate) stream_id: u32,
    pub(crate) correlation_id: u32,
    pub(crate) runtime_correlation_id: u32,
    pub(crate) now_ns: u64,
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
            Shape::Copy { .. } => kind::MEMCPY,
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
            queued_ns: if latency { owner.now_ns } else { 0 },
            without_times: every > 0 && number.is_multiple_of(every),
            start_ns: 0,
        })
    }

    /// The operation starts: everything is known but the end.
    pub(crate) fn begin(&mut self, start_ns: u64) {
        self.start_ns = if self.without_times {
            0
        } else {
            time::from_device_ns(start_ns)
        };
        let queued_ns = if self.queued_ns == 0 {
            0
        } else {
            time::from_device_ns(self.queued_ns)
        };
        let this = &*self;
        self.slot.update(|place| match &this.shape {
            Shape::Kernel { .. } => this.write_kernel(place, queued_ns),
            Shape::Copy { .. } => this.write_copy(place),
            Shape::Set { .. } => this.write_set(place),
        });
    }

    /// The operation has ended.
    pub(crate) fn finish(self, end_ns: u64) {
        let end_ns = if self.without_times {
            0
        } else {
            time::from_device_ns(end_ns).max(self.start_ns)
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

    fn write_kernel(&self, place: &mut [u8], queued_ns: u64) {
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
        writer.u32(40, 0);
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
        writer.u64(128, queued_ns);
        writer.u8(136, u8::from(*cooperative));
        writer.u32(168, 1);
        writer.u32(172, 1);
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
        } = &self.shape
        else {
            return;
        };
        let mut writer = Writer(place);
        writer.u32(0, kind::MEMCPY);
        writer.u8(4, *copy_kind);
        writer.u8(5, *source_kind);
        writer.u8(6, *target_kind);
        writer.u8(7, u8::from(*asynchronous));
        writer.u64(8, *bytes);
        writer.u64(16, self.start_ns);
        writer.u32(36, self.context_id);
        writer.u32(40, self.stream_id);
        writer.u32(44, self.correlation_id);
        writer.u32(48, self.runtime_correlation_id);
        writer.u32(76, 2);
        writer.u32(80, 2);
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
        writer.u32(36, self.context_id);
        writer.u32(40, self.stream_id);
        writer.u32(44, self.correlation_id);
        writer.u16(48, u16::from(*asynchronous));
        writer.u16(50, *memory_kind);
        writer.u32(76, 1);
        writer.u32(80, 1);
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
    Sink::of(&thread.sink).write(56, 1, |place| {
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

pub(crate) fn write_context(thread: &ThreadState, context_id: u32, default_stream_id: u32) {
    let Some(bytes) = size_of_kind(kind::CONTEXT) else {
        return;
    };
    Sink::of(&thread.sink).write(bytes, 1, |place| {
        let mut writer = Writer(place);
        writer.u32(0, kind::CONTEXT);
        writer.u32(4, context_id);
        writer.u32(8, 0);
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
    Sink::of(&thread.sink).write(24, 1, |place| {
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

/// `CUpti_ActivityMemcpyKind` of an operation.
pub(crate) fn copy_kind(operation: u32) -> u8 {
    match operation {
        abi::OPERATION_COPY_HOST_TO_DEVICE => 1,
        abi::OPERATION_COPY_DEVICE_TO_HOST => 2,
        _ => 8,
    }
}
