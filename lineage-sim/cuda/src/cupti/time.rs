//! The clocks of CUPTI's records.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use lineage_sim_model::DeviceTime;

use crate::abi::TimestampCallback;
use crate::clock::{now_ns, realtime_ns};
use crate::config::{is_virtual, model};
use crate::cupti::client::PerClient;
use crate::sync::lock;

/// A difference that is smaller is taken for the cost of reading two clocks.
const SAME_CLOCK_NS: u64 = 1_000;

/// The clock of one client's records.
pub(crate) struct RecordsClock {
    /// The registered callback as an address; 0 for none.
    callback: AtomicUsize,
    /// What to add to device times, and whether it was measured since the callback was registered.
    offset: Mutex<Option<i64>>,
}

impl RecordsClock {
    pub(crate) const fn new() -> Self {
        Self {
            callback: AtomicUsize::new(0),
            offset: Mutex::new(None),
        }
    }

    pub(crate) fn set_callback(&self, callback: Option<TimestampCallback>) {
        let address = callback.map_or(0, |callback| callback as usize);
        self.callback.store(address, Ordering::Release);
        *lock(&self.offset) = None;
    }

    /// The callback's address; 0 for none.
    pub(crate) fn callback_address(&self) -> usize {
        self.callback.load(Ordering::Acquire)
    }

    /// The time now.
    pub(crate) fn stamp_ns(&self) -> u64 {
        match self.callback_address() {
            0 => realtime_ns(),
            address => {
                // SAFETY: the address was stored from a function of this type by `set_callback`.
                let callback = unsafe { std::mem::transmute::<usize, TimestampCallback>(address) };
                // SAFETY: the client registered it to be called at any time.
                unsafe { callback() }
            }
        }
    }

    /// A true time of the device, as it says it.
    ///
    /// Both clocks are read together each time, and the difference is replaced only when it has
    /// changed by more than reading takes: a record is not shifted against its neighbours by noise.
    pub(crate) fn of_device_ns(&self, device: u32, true_ns: u64) -> u64 {
        self.of_host_ns(device_time(device).at(true_ns))
    }

    /// A true time of the host.
    pub(crate) fn of_host_ns(&self, true_ns: u64) -> u64 {
        if is_virtual() && self.callback_address() == 0 {
            return true_ns;
        }
        let (mut difference, mut window) = self.measure();
        for _ in 0..3 {
            if window < SAME_CLOCK_NS {
                break;
            }
            let again = self.measure();
            if again.1 < window {
                (difference, window) = again;
            }
        }
        let mut offset = lock(&self.offset);
        let known = offset.unwrap_or(0);
        if difference.abs_diff(known) > SAME_CLOCK_NS + window {
            *offset = Some(difference);
        } else {
            offset.get_or_insert(known);
        }
        true_ns.saturating_add_signed(offset.unwrap_or(0))
    }

    /// The difference of the clocks, and the time that it took to find out.
    fn measure(&self) -> (i64, u64) {
        let before = now_ns();
        let stamp = self.stamp_ns();
        let window = now_ns() - before;
        (stamp.wrapping_sub(before + window / 2) as i64, window)
    }
}

/// The time now, on each client's clock.
pub(crate) type Stamp = PerClient<u64>;

pub(crate) fn stamp() -> Stamp {
    PerClient::new(|client| client.clock.stamp_ns())
}

/// The clock of a device.
fn device_time(device: u32) -> DeviceTime {
    static BEGIN_NS: OnceLock<u64> = OnceLock::new();
    DeviceTime::new(model(), device, *BEGIN_NS.get_or_init(now_ns))
}
