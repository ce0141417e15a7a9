//! The configuration of this process, set once by the loader.

use std::sync::OnceLock;

use lineage_sim_model::{Clock, Settings};

use crate::abi::{RawConfig, RawFaults};

static CONFIG: OnceLock<RawConfig> = OnceLock::new();

/// What holds while nobody has configured the library (it was opened by somebody else than the
/// loader): there is no device, and CUPTI says that it is not initialised.
fn nothing() -> RawConfig {
    RawConfig {
        cupti_version: 28,
        driver_version: 12_090,
        per_thread_buffers: 0,
        compute_capability_major: 9,
        compute_capability_minor: 0,
        truth_mode: 0,
        memory_bytes: 0,
        default_kernel_ns: 0,
        copy_latency_ns: 0,
        copy_bytes_per_ns: 1,
        push_inside_enter_counts: 0,
        runtime_calls: 0,
        first_correlation_id: 1,
        zero_time_every_nth: 0,
        fail_subscribe_with: 0,
        activity_enable_fails_with: 0,
        activity_buffer_limit_bytes: u64::MAX,
        truth_capacity: 0,
        reuse_graph_ids: 0,
        failed_waits_are_recorded: 0,
        buffer_request_ns: 0,
        resource_ns: 0,
        instrumentation_ns: 0,
        exclusive_process: 0,
        mps: 0,
        faults: RawFaults::NONE,
        model: Settings::default(),
    }
}

pub(crate) fn config() -> &'static RawConfig {
    static NOTHING: OnceLock<RawConfig> = OnceLock::new();
    match CONFIG.get() {
        Some(config) => config,
        None => NOTHING.get_or_init(nothing),
    }
}

/// What the device model was told.
pub(crate) fn model() -> &'static Settings {
    &config().model
}

/// The most devices that there can be.
pub(crate) const MOST_DEVICES: usize = 16;

/// Whether time advances by modelled costs only.
pub(crate) fn is_virtual() -> bool {
    matches!(config().model.clock, Clock::Virtual)
}

pub(crate) fn is_configured() -> bool {
    CONFIG.get().is_some()
}

/// True when the configuration is now `new`: it was set, or equal already.
pub(crate) fn configure(new: &RawConfig) -> bool {
    CONFIG.get_or_init(|| *new) == new
}
