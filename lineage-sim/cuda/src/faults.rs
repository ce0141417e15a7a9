//! Faults on demand: whether the next of something is one that goes wrong.
//!
//! Every n-th is hit, and the seed says with which it begins, so that a run can be repeated.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::abi::RawFaults;
use crate::clock::spin_ns;
use crate::config::{config, is_virtual};

pub(crate) fn faults() -> &'static RawFaults {
    &config().faults
}

/// Counts what may go wrong.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The number of the next one, from 1.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Whether the one with this number is hit, where every n-th is; 0: none.
pub(crate) fn hits(every_nth: u32, number: u64) -> bool {
    let every = u64::from(every_nth);
    every > 0 && number.wrapping_add(faults().seed).is_multiple_of(every)
}

/// What goes wrong with one record of the device.
#[derive(Clone, Copy, Default)]
pub(crate) struct RecordFaults {
    /// There is no room for it; counted.
    pub(crate) is_dropped: bool,
    /// It never comes, and nothing counts it.
    pub(crate) is_lost: bool,
    pub(crate) has_no_times: bool,
    pub(crate) has_no_end: bool,
    pub(crate) is_doubled: bool,
}

/// Of the next record of the device.
pub(crate) fn of_next_device_record() -> RecordFaults {
    static RECORDS: Counter = Counter::new();
    let faults = faults();
    let number = RECORDS.next();
    let zero_every = u64::from(config().zero_time_every_nth);
    RecordFaults {
        is_dropped: hits(faults.drop_record_every_nth, number),
        is_lost: hits(faults.lose_record_every_nth, number),
        has_no_times: zero_every > 0 && number.is_multiple_of(zero_every)
            || number > faults.device_records_with_times,
        has_no_end: hits(faults.incomplete_record_every_nth, number),
        is_doubled: hits(faults.duplicate_record_every_nth, number),
    }
}

/// What goes wrong with the record of a call for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRecordFault {
    /// There is no room for it; counted.
    Dropped,
    /// It never comes, and nothing counts it.
    Lost,
}

/// Of the next record of a call for work.
pub(crate) fn of_next_call_record() -> Option<CallRecordFault> {
    static RECORDS: Counter = Counter::new();
    let faults = faults();
    if faults.drop_call_record_every_nth == 0 && faults.lose_call_record_every_nth == 0 {
        return None;
    }
    let number = RECORDS.next();
    if hits(faults.drop_call_record_every_nth, number) {
        Some(CallRecordFault::Dropped)
    } else if hits(faults.lose_call_record_every_nth, number) {
        Some(CallRecordFault::Lost)
    } else {
        None
    }
}

/// Whether the next callback about the cloning of a node never comes.
pub(crate) fn loses_clone_callback() -> bool {
    static CALLBACKS: Counter = Counter::new();
    let every_nth = faults().lose_clone_callback_every_nth;
    every_nth > 0 && hits(every_nth, CALLBACKS.next())
}

/// The driver's functions that launch kernels: their callback ids.
const LAUNCHES: [u32; 6] = [307, 442, 477, 478, 652, 653];

/// The error that this call answers instead of launching.
pub(crate) fn of_launch(callback_id: u32) -> Option<u32> {
    static LAUNCHED: Counter = Counter::new();
    let faults = faults();
    if faults.fail_launch_every_nth == 0 || !LAUNCHES.contains(&callback_id) {
        return None;
    }
    hits(faults.fail_launch_every_nth, LAUNCHED.next()).then_some(faults.failed_launch_result)
}

/// Kills the process, as the system does when memory is short, if this call for work is the one.
pub(crate) fn kill_if_due(ordinal: u64) {
    if ordinal > 0 && faults().kill_at_call == ordinal {
        // SAFETY: takes a number. Nothing of this process runs after it.
        unsafe { libc::raise(libc::SIGKILL) };
    }
}

/// How long a flush takes beside its work.
pub(crate) fn slow_flush() {
    match faults().flush_takes_ns {
        0 => {}
        duration_ns if is_virtual() => spin_ns(duration_ns),
        duration_ns => std::thread::sleep(Duration::from_nanos(duration_ns)),
    }
}

/// Puts the parts into an order that the seed and the number of the occasion decide.
pub(crate) fn shuffle<T>(parts: &mut [T], occasion: u64) {
    let mut state = faults().seed ^ occasion.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for last in (1..parts.len()).rev() {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut random = state;
        random = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        parts.swap(last, (random % (last as u64 + 1)) as usize);
    }
}
