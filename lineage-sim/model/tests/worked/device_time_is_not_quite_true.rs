use lineage_sim_model::{DeviceTime, Settings};

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn by_default_it_is_the_true_time() {
    let time = DeviceTime::new(&Settings::default(), 0, 5);
    assert_eq!(
        [0, 5, 123_456_789].map(|ns| time.at(ns)),
        [0, 5, 123_456_789]
    );
}

/// 32 and 1,000 ns: 1,234,567 = 38,580 × 32 + 7.
#[test]
fn it_ticks() {
    let tick = |tick_ns| DeviceTime::new(&Settings::default().device_tick_ns(tick_ns), 0, 0);
    assert_eq!(tick(32).at(1_234_567), 1_234_560);
    assert_eq!(tick(1_000).at(1_234_567), 1_234_000);
}

/// 500 ahead, on device 1 twice that; 20 ns gained in each second, on device 1 twice that, 3 s after the start.
#[test]
fn it_is_skewed_and_drifts_and_no_two_devices_agree() {
    let settings = Settings::default().device_skew_ns(500).device_drift_ppb(20);
    let at = |device| DeviceTime::new(&settings, device, SECOND_NS).at(4 * SECOND_NS);
    assert_eq!(at(0), 4 * SECOND_NS + 500 + 60);
    assert_eq!(at(1), 4 * SECOND_NS + 1_000 + 120);
}

/// A step back by 1 ms at 2 s: one ns earlier it is not there yet.
#[test]
fn it_steps_once() {
    let settings = Settings::default()
        .device_step_at_ns(2 * SECOND_NS)
        .device_step_ns(-1_000_000);
    let time = DeviceTime::new(&settings, 0, 0);
    assert_eq!(time.at(2 * SECOND_NS - 1), 2 * SECOND_NS - 1);
    assert_eq!(time.at(2 * SECOND_NS), 2 * SECOND_NS - 1_000_000);
}
