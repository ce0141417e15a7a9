//! What is asked of `perf_event_open(2)`, as `linux/perf_event.h` lays it out.

use std::mem::{offset_of, size_of};

/// `struct perf_event_attr` up to and with the clock, `PERF_ATTR_SIZE_VER3` (Linux 3.7 and, for the
/// clock, 4.1). The kernel takes a shorter structure for one whose rest is 0.
#[repr(C)]
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
    breakpoint_length: u64,
    branch_sample_type: u64,
    sample_user_registers: u64,
    sample_user_stack: u32,
    clock: i32,
}

const _: () = {
    assert!(size_of::<Attributes>() == 96);
    assert!(offset_of!(Attributes, flags) == 40);
    assert!(offset_of!(Attributes, clock) == 92);
};

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_DUMMY`: an event that counts nothing, and so costs nothing
/// beside what it is asked to note.
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;

/// `PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU`: with `sample_id_all` each record ends
/// with these, in this order.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7;

/// `PERF_FORMAT_LOST`: reading the event gives how many records were lost (Linux 6.0).
const READ_LOST: u64 = 1 << 4;

/// Bits of the flags, in the order of the structure's bit fields.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCK: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;

/// `CLOCK_MONOTONIC` of `linux/time.h`.
const MONOTONIC: i32 = 1;

impl Attributes {
    /// A thread's switches and its end, in times of `CLOCK_MONOTONIC`. Nothing of the kernel's own
    /// is asked for, so that `kernel.perf_event_paranoid = 2` allows it to anyone.
    pub(super) fn switches(count_lost: bool) -> Self {
        Self {
            kind: SOFTWARE,
            size: size_of::<Self>() as u32,
            config: DUMMY,
            sample_type: SAMPLE_TYPE,
            read_format: if count_lost { READ_LOST } else { 0 },
            flags: EXCLUDE_KERNEL | TASK | WATERMARK | SAMPLE_ID_ALL | USE_CLOCK | CONTEXT_SWITCH,
            // Nobody sleeps until records come: the watched thread shall wake nobody.
            wakeup_watermark: u32::MAX,
            clock: MONOTONIC,
            ..Self::default()
        }
    }
}
