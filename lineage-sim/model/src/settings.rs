//! What the model is told: limits, costs and switches, as plain numbers.

/// Whose time it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clock {
    /// The machine's `CLOCK_MONOTONIC`. Modelled costs are really waited for.
    #[default]
    Real,
    /// A clock that advances by modelled costs only: deterministic, and as fast as the simulator.
    Virtual,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr;)*) => {
        /// How the devices and the hosts of the model behave.
        ///
        /// The defaults hold nothing up: each stream has a channel of its own, work of several
        /// streams overlaps without limit, and only what is documented orders it. Every mechanism is switched on
        /// by itself. The fields may be assigned, or set by the methods of the same names.
        ///
        /// Numbers are nanoseconds and bytes where the name says so, and counts elsewhere; 0 switches a
        /// mechanism or a limit off where that makes sense.
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub struct Settings {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Settings {
            $(
                #[doc = concat!("Sets [`Settings::", stringify!($name), "`](#structfield.", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.$name = $name;
                    self
                }
            )*
        }
    };
}

settings! {
    /// Real or virtual. Default: real.
    clock: Clock = Clock::Real;
    /// Where the virtual clock begins. Default: 1 s, because 0 means "unknown" to CUPTI.
    virtual_start_ns: u64 = 1_000_000_000;
    /// What chance is drawn from, where a setting leaves something to chance. Default: 1.
    seed: u64 = 1;
    /// How many devices there are; the simulated driver has 16 at most. Default: 1.
    devices: u32 = 1;

    /// Channels of each device, on which streams are put in turn. More streams than channels
    /// share: an operation is issued only after those ahead of it in the channel. Default: 0, each stream has its own.
    channels: u32 = 0;
    /// Entries of a channel's ring (GPFIFO): each operation takes one until it is issued. A full ring blocks the call.
    /// Default: 1,024.
    ring_entries: u32 = 1_024;
    /// Bytes of a channel's push buffer; a full one blocks the call. Default: 0, no limit.
    push_buffer_bytes: u64 = 0;
    /// What each operation takes of the push buffer beside its parameters. Default: 256.
    push_bytes_per_operation: u32 = 256;
    /// How many operations one doorbell covers. It is rung at the latest when a host thread waits or asks. Default: 1.
    operations_per_doorbell: u32 = 1;
    /// From the doorbell until the device sees the operations. Default: 0.
    doorbell_ns: u64 = 0;
    /// From the moment at which everything is ready until the start. Default: 0.
    dispatch_ns: u64 = 0;

    /// How long this process has the device before another process gets it. Default: 0, there is no other.
    time_slice_ns: u64 = 0;
    /// How long the other process then has it. Default: 0.
    neighbour_slice_ns: u64 = 0;
    /// What each switch between the two takes. Default: 0.
    context_switch_ns: u64 = 0;
    /// A running kernel can be preempted at multiples of this after its start. Default: 0, at any time; `u64::MAX`: only when it ends.
    preemption_granularity_ns: u64 = 0;

    /// Multiprocessors of each device. Kernels start when a block of theirs fits, and blocks that do not fit
    /// run in later waves; each block lasts as long as the kernel is said to. Default: 0, everything fits.
    multiprocessors: u32 = 0;
    /// Threads that one multiprocessor holds. Default: 2,048.
    threads_per_multiprocessor: u32 = 2_048;
    /// Its registers. Default: 65,536.
    registers_per_multiprocessor: u32 = 65_536;
    /// Its shared memory. Default: 233,472.
    shared_bytes_per_multiprocessor: u32 = 233_472;
    /// Its blocks. Default: 32.
    blocks_per_multiprocessor: u32 = 32;

    /// Engines for copies from host to device. Default: 0, as many as are wanted.
    copy_engines_to_device: u32 = 0;
    /// Engines for copies from device to host. Default: 0, as many as are wanted.
    copy_engines_to_host: u32 = 0;
    /// Engines for copies inside a device, and from it to a peer. Default: 0, as many as are wanted.
    copy_engines_within: u32 = 0;

    /// How many of a hundred programmatic launches overlap their primary; NVIDIA promises none. Default: 100.
    programmatic_overlap_percent: u32 = 100;

    /// Host time of each driver call. Default: 0.
    call_ns: u64 = 0;
    /// Host time of each driver call that asks for work, as a launch, beside that. Default: 0.
    work_call_ns: u64 = 0;
    /// Host time for each node of a graph launch, beside the call's. Default: 0.
    graph_node_ns: u64 = 0;
    /// Host time of the first launch of each function (lazy loading). Default: 0.
    lazy_loading_ns: u64 = 0;
    /// Host time of loading a module. Default: 0.
    module_loading_ns: u64 = 0;
    /// Host time of compiling a module's PTX, for each 1,024 bytes of text, begun ones counted. Default: 0.
    compile_ns_per_kib: u64 = 0;
    /// From a fence's signal until a host thread that spins goes on. Default: 0.
    spin_fence_ns: u64 = 0;
    /// From a fence's signal until a host thread that sleeps goes on (blocking synchronisation). Default: 0.
    sleep_fence_ns: u64 = 0;

    /// Device time is this much ahead of true time on device 0, twice that on device 1, and so on. Default: 0.
    device_skew_ns: i64 = 0;
    /// Device time gains so many ns in each second on device 0, twice that on device 1, and so on. Default: 0.
    device_drift_ppb: i64 = 0;
    /// When device time steps, on the clock of the model; 0: never.
    device_step_at_ns: u64 = 0;
    /// By how much.
    device_step_ns: i64 = 0;
    /// Device times are multiples of this, rounded down; NVIDIA's have been seen to tick in 32 ns and in 1 µs. Default: 1.
    device_tick_ns: u64 = 1;
}

/// The hash of this file's text: the version of the layout of [`Settings`], for those who hand it
/// to another library.
pub const SETTINGS_HASH: u64 = {
    let bytes = include_bytes!("settings.rs");
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < bytes.len() {
        hash ^= bytes[index] as u64;
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    hash
};
