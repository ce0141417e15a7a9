//! The clock of CUPTI's records.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use lineage_sim_model::DeviceTime;

use crate::abi::TimestampCallback;
use crate::clock::{now_ns, realtime_ns};
use crate::config::{is_virtual, model};
use crate::sync::lock;

/// The registered callback as an address; 0 for none.
static CALLBACK: AtomicUsize = AtomicUsize::new(0);

/// What to add to device times, and whether it was measured since the callback was registered.
static OFFSET: Mutex<Option<i64>> = Mutex::new(None);

/// A difference that is smaller is taken for the cost of reading two clocks.
const SAME_CLOCK_NS: u64 = 1_000;

pub(crate) fn set_callback(callback: TimestampCallback) {
    CALLBACK.store(callback as usize, Ordering::Release);
    *lock(&OFFSET) = None;
}

pub(crate) fn clear_callback() {
    CALLBACK.store(0, Ordering::Release);
    *lock(&OFFSET) = None;
}

/// The time now, on the clock of the records.
pub(crate) fn stamp_ns() -> u64 {
    match CALLBACK.load(Ordering::Acquire) {
        0 => realtime_ns(),
        address => {
            // SAFETY: the address was stored from a function of this type by `set_callback`.
            let callback = unsafe { std::mem::transmute::<usize, TimestampCallback>(address) };
            // SAFETY: the client registered it to be called at any time.
            unsafe { callback() }
        }
    }
}

/// A true time of the device, as it says it, on the clock of the records.
///
/// Both clocks are read together each time, and the difference is replaced only when it has
/// changed by more than reading takes: a record is not shifted against its neighbours by noise.
pub(crate) fn from_device_ns(device: u32, true_ns: u64) -> u64 {
    on_records_clock(device_time(device).at(true_ns))
}

/// A true time of the host, on the clock of the records.
pub(crate) fn from_host_ns(true_ns: u64) -> u64 {
    on_records_clock(true_ns)
}

fn on_records_clock(device_ns: u64) -> u64 {
    if is_virtual() && CALLBACK.load(Ordering::Acquire) == 0 {
        return device_ns;
    }
    let (mut difference, mut window) = measure();
    for _ in 0..3 {
        if window < SAME_CLOCK_NS {
            break;
        }
        let again = measure();
        if again.1 < window {
            (difference, window) = again;
        }
    }
    let mut offset = lock(&OFFSET);
    let known = offset.unwrap_or(0);
    if difference.abs_diff(known) > SAME_CLOCK_NS + window {
        *offset = Some(difference);
    } else {
        offset.get_or_insert(known);
    }
    device_ns.saturating_add_signed(offset.unwrap_or(0))
}

/// The clock of a device.
fn device_time(device: u32) -> DeviceTime {
    static BEGIN_NS: OnceLock<u64> = OnceLock::new();
    DeviceTime::new(model(), device, *BEGIN_NS.get_or_init(now_ns))
}

/// The difference of the clocks, and the time that it took to find out.
fn measure() -> (i64, u64) {
    let before = now_ns();
    let stamp = stamp_ns();
    let window = now_ns() - before;
    (stamp.wrapping_sub(before + window / 2) as i64, window)
}
