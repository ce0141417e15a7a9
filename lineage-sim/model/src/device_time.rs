//! The device's own time, which is not quite the true one.

use crate::settings::Settings;

/// A device's clock: how it turns true times into its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTime {
    begin_ns: u64,
    skew_ns: i64,
    drift_ppb: i64,
    step_at_ns: u64,
    step_ns: i64,
    tick_ns: u64,
}

impl DeviceTime {
    /// The clock of a device that was started at a true time. Skew and drift of device `n` are `n + 1` times what is set, so that no
    /// two devices agree.
    pub fn new(settings: &Settings, device: u32, begin_ns: u64) -> Self {
        let times = i64::from(device) + 1;
        Self {
            begin_ns,
            skew_ns: settings.device_skew_ns.saturating_mul(times),
            drift_ppb: settings.device_drift_ppb.saturating_mul(times),
            step_at_ns: settings.device_step_at_ns,
            step_ns: settings.device_step_ns,
            tick_ns: settings.device_tick_ns.max(1),
        }
    }

    /// What the device says at a true time. 0, which means "unknown" to CUPTI, stays 0.
    pub fn at(&self, true_ns: u64) -> u64 {
        if true_ns == 0 {
            return 0;
        }
        let since_ns = i128::from(true_ns) - i128::from(self.begin_ns);
        let drift_ns = since_ns * i128::from(self.drift_ppb) / 1_000_000_000;
        let has_stepped = self.step_at_ns > 0 && true_ns >= self.step_at_ns;
        let step_ns = if has_stepped { self.step_ns } else { 0 };
        let device_ns =
            i128::from(true_ns) + i128::from(self.skew_ns) + drift_ns + i128::from(step_ns);
        let device_ns = u64::try_from(device_ns.max(1)).unwrap_or(u64::MAX);
        device_ns - device_ns % self.tick_ns
    }
}
