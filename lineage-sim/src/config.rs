use lineage_sim_model::{Clock, Settings};

use crate::abi;
use crate::faults::Faults;
use crate::version::CuptiVersion;

/// Whether each launch, copy and set of the driver is wrapped into a call of the CUDA runtime, as
/// it is in a program that uses `libcudart`.
///
/// Whether a runtime call and the driver call inside it carry the same correlation id is not
/// documented by NVIDIA; hence both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuntimeCalls {
    /// Driver calls only, as of a program that uses the driver interface.
    #[default]
    Off,
    /// Runtime and driver call carry one correlation id.
    SameCorrelationId,
    /// Each has its own; the device's records carry the runtime's.
    OwnCorrelationId,
}

/// How the simulated GPU, driver and CUPTI behave.
///
/// The fields may be assigned, or set by the methods of the same names:
///
/// ```
/// use lineage_sim::{Config, CuptiVersion};
///
/// let config = Config::default()
///     .cupti_version(CuptiVersion::V13_5)
///     .push_inside_enter_counts(true);
/// assert!(config.push_inside_enter_counts);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Version and record layouts of CUPTI. Default: 12.9.
    pub cupti_version: CuptiVersion,
    /// Whether activity buffers are per thread. `None`, the default: as that version of CUPTI
    /// does (one global buffer before 13.0, one per thread since).
    pub per_thread_buffers: Option<bool>,
    /// Compute capability, major and minor. Default: 9.0.
    pub compute_capability: (u32, u32),
    /// Memory of the device, in bytes. Default: 8 GiB. Host memory is taken only as allocated.
    pub memory_bytes: u64,
    /// How long a kernel without a host function runs, in ns. Default: 2,000.
    pub default_kernel_ns: u64,
    /// The fixed part of the time of a copy or a set, in ns. Default: 1,000.
    pub copy_latency_ns: u64,
    /// Bytes that a copy or a set moves per ns. Default: 16.
    pub copy_bytes_per_ns: u64,
    /// Whether an external correlation id that is pushed inside CUPTI's API-enter callback counts
    /// for that very call. NVIDIA does not say. Default: false.
    pub push_inside_enter_counts: bool,
    /// Whether driver calls are wrapped into runtime calls. Default: off.
    pub runtime_calls: RuntimeCalls,
    /// The first correlation id that is given. Near `u32::MAX` it lets a test see them wrap.
    /// Default: 1. The id 0 is never given.
    pub first_correlation_id: u32,
    /// Every so many-th record of the device has `start` and `end` 0, as when CUPTI's device buffers ran
    /// out; such a record is not counted as dropped. Default: 0, never.
    pub zero_time_every_nth: u32,
    /// A code that `cuptiSubscribe` fails with.
    pub fail_subscribe_with: Option<u32>,
    /// A code that `cuptiActivityEnable` fails with.
    pub activity_enable_fails_with: Option<u32>,
    /// How many bytes of each activity buffer are used at most. With less than a record takes,
    /// every record is dropped and counted.
    pub activity_buffer_limit_bytes: Option<u64>,
    /// What the truth keeps. Default: the oldest, until they are drained.
    pub truth: TruthMode,
    /// How many operations, and how many calls, the truth keeps; the others are counted. Default:
    /// 1,048,576.
    pub truth_capacity: usize,
    /// Whether a graph gets the smallest id that no other graph or exec has, so that ids come again after a destroy, as
    /// has been seen with NVIDIA's. Default: false, each id is given once.
    pub reuse_graph_ids: bool,
    /// Whether waits that failed have a synchronisation record unless the client says. The header says both. Default: false.
    pub failed_waits_are_recorded: bool,
    /// Host time that CUPTI takes for each request for a buffer, beside the client's own. Default: 0. As of the two costs below, the overhead has a
    /// record of its own where it is not 0; so has a flush ([`Faults::flush_takes_ns`](crate::Faults)).
    pub buffer_request_ns: u64,
    /// Host time that CUPTI takes to prepare for a new context while it records anything. Default: 0.
    pub resource_ns: u64,
    /// Host time that CUPTI takes in each call for work that it traces. Default: 0.
    pub instrumentation_ns: u64,
    /// Whether one process at a time may have a device (`CU_COMPUTEMODE_EXCLUSIVE_PROCESS`), as its attribute says. Default: false. That
    /// nobody else has it is another thing: a neighbour comes in its slices all the same.
    pub exclusive_process: bool,
    /// Whether contexts are shared via MPS, as the device's attribute says. Default: false.
    pub mps: bool,
    /// What goes wrong. Default: nothing.
    pub faults: Faults,
    /// The device model: clock, channels, engines, costs. Default: nothing holds work up that CUDA's order does not.
    pub model: Settings,
}

/// The most devices that the simulated driver has.
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "there is no gpu elsewhere")
)]
const MOST_DEVICES: u32 = 16;

/// What [`Gpu::truth`](crate::Gpu::truth) keeps of a long run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TruthMode {
    /// Nothing.
    Off,
    /// The newest operations and calls.
    Ring,
    /// The oldest, until [`Gpu::drain_truth`](crate::Gpu::drain_truth) takes them away.
    #[default]
    Drain,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cupti_version: CuptiVersion::default(),
            per_thread_buffers: None,
            compute_capability: (9, 0),
            memory_bytes: 8 << 30,
            default_kernel_ns: 2_000,
            copy_latency_ns: 1_000,
            copy_bytes_per_ns: 16,
            push_inside_enter_counts: false,
            runtime_calls: RuntimeCalls::Off,
            first_correlation_id: 1,
            zero_time_every_nth: 0,
            fail_subscribe_with: None,
            activity_enable_fails_with: None,
            activity_buffer_limit_bytes: None,
            truth: TruthMode::default(),
            truth_capacity: 1 << 20,
            reuse_graph_ids: false,
            failed_waits_are_recorded: false,
            buffer_request_ns: 0,
            resource_ns: 0,
            instrumentation_ns: 0,
            exclusive_process: false,
            mps: false,
            faults: Faults::default(),
            model: Settings::default(),
        }
    }
}

macro_rules! setters {
    ($($name:ident: $type:ty;)*) => {
        $(
            #[doc = concat!("Sets [`Config::", stringify!($name), "`](#structfield.", stringify!($name), ").")]
            #[must_use]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )*
    };
}

impl Config {
    setters! {
        cupti_version: CuptiVersion;
        per_thread_buffers: Option<bool>;
        compute_capability: (u32, u32);
        memory_bytes: u64;
        default_kernel_ns: u64;
        copy_latency_ns: u64;
        copy_bytes_per_ns: u64;
        push_inside_enter_counts: bool;
        runtime_calls: RuntimeCalls;
        first_correlation_id: u32;
        zero_time_every_nth: u32;
        fail_subscribe_with: Option<u32>;
        activity_enable_fails_with: Option<u32>;
        activity_buffer_limit_bytes: Option<u64>;
        truth: TruthMode;
        truth_capacity: usize;
        reuse_graph_ids: bool;
        failed_waits_are_recorded: bool;
        buffer_request_ns: u64;
        resource_ns: u64;
        instrumentation_ns: u64;
        exclusive_process: bool;
        mps: bool;
        faults: Faults;
        model: Settings;
    }

    /// How many operations may wait in one channel before the next call blocks: short for
    /// [`Settings::ring_entries`] of [`Config::model`](#structfield.model). Default: 1,024.
    #[must_use]
    pub fn queue_depth(mut self, operations: u32) -> Self {
        self.model.ring_entries = operations;
        self
    }

    /// Time that each driver call burns on the calling thread beside what it costs anyway, in ns: short for
    /// [`Settings::call_ns`] of [`Config::model`](#structfield.model). Default: 0.
    #[must_use]
    pub fn host_cost_ns_per_call(mut self, nanoseconds: u64) -> Self {
        self.model.call_ns = nanoseconds;
        self
    }

    /// Time advances by modelled costs only: short for [`Settings::clock`] of
    /// [`Config::model`](#structfield.model). See [`Gpu::host_threads`](crate::Gpu::host_threads) for programs of several threads.
    #[must_use]
    pub fn virtual_clock(mut self) -> Self {
        self.model.clock = Clock::Virtual;
        self
    }

    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "there is no gpu elsewhere")
    )]
    pub(crate) fn raw(&self) -> abi::RawConfig {
        abi::RawConfig {
            cupti_version: self.cupti_version.number(),
            driver_version: self.cupti_version.driver_number(),
            per_thread_buffers: self
                .per_thread_buffers
                .unwrap_or(self.cupti_version.has_buffers_per_thread())
                .into(),
            compute_capability_major: self.compute_capability.0,
            compute_capability_minor: self.compute_capability.1,
            truth_mode: match self.truth {
                TruthMode::Off => abi::TRUTH_OFF,
                TruthMode::Ring => abi::TRUTH_RING,
                TruthMode::Drain => abi::TRUTH_DRAIN,
            },
            memory_bytes: self.memory_bytes,
            default_kernel_ns: self.default_kernel_ns,
            copy_latency_ns: self.copy_latency_ns,
            copy_bytes_per_ns: self.copy_bytes_per_ns.max(1),
            push_inside_enter_counts: self.push_inside_enter_counts.into(),
            runtime_calls: match self.runtime_calls {
                RuntimeCalls::Off => abi::RUNTIME_CALLS_OFF,
                RuntimeCalls::SameCorrelationId => abi::RUNTIME_CALLS_SAME_ID,
                RuntimeCalls::OwnCorrelationId => abi::RUNTIME_CALLS_OWN_ID,
            },
            first_correlation_id: self.first_correlation_id.max(1),
            zero_time_every_nth: self.zero_time_every_nth,
            fail_subscribe_with: self.fail_subscribe_with.unwrap_or(0),
            activity_enable_fails_with: self.activity_enable_fails_with.unwrap_or(0),
            activity_buffer_limit_bytes: self.activity_buffer_limit_bytes.unwrap_or(u64::MAX),
            truth_capacity: self.truth_capacity as u64,
            reuse_graph_ids: self.reuse_graph_ids.into(),
            failed_waits_are_recorded: self.failed_waits_are_recorded.into(),
            buffer_request_ns: self.buffer_request_ns,
            resource_ns: self.resource_ns,
            instrumentation_ns: self.instrumentation_ns,
            exclusive_process: self.exclusive_process.into(),
            mps: self.mps.into(),
            faults: self.faults.raw(),
            model: self
                .model
                .devices(self.model.devices.clamp(1, MOST_DEVICES)),
        }
    }
}
