//! The private interface between the three parts of the simulator.
//!
//! This one file is compiled into the loader (the rlib), into the simulated driver and into the
//! simulated CUPTI, so that all three agree on every layout. Its own text, hashed at compile
//! time, is the version of the interface: a library built from another text is not loaded.
//!
//! Nothing here is reachable under a `cu*` or `cupti*` name.

// Each of the three parts uses its own share of this file.
#![allow(dead_code, missing_docs, unreachable_pub)]

use core::ffi::{c_char, c_void};

use lineage_sim_model::{Cause, SETTINGS_HASH, Settings};

/// FNV-1a, 64 bits, usable in constants.
const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < bytes.len() {
        hash ^= bytes[index] as u64;
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    hash
}

/// What [`MARKER`] starts with. The first byte is rare in a library, so that a search for it is quick.
const MARKER_PREFIX: &[u8; 20] = b"\xfelineage-sim-abi-no:";

/// Bytes that are found in both libraries, and by which the loader knows its own: a prefix and
/// the hash of this file, and of the model's settings, in hexadecimal.
pub static MARKER: [u8; 36] = marker();

const fn marker() -> [u8; 36] {
    let digits = b"0123456789abcdef";
    let hash = fnv1a(include_bytes!("abi.rs")) ^ SETTINGS_HASH.rotate_left(32);
    let mut out = [0_u8; 36];
    let mut index = 0;
    while index < 20 {
        out[index] = MARKER_PREFIX[index];
        index += 1;
    }
    while index < 36 {
        out[index] = digits[((hash >> (4 * (35 - index))) & 15) as usize];
        index += 1;
    }
    out
}

/// The configuration as plain numbers. Two configurations are equal when all of these are.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawConfig {
    pub cupti_version: u32,
    pub driver_version: u32,
    pub per_thread_buffers: u32,
    pub compute_capability_major: u32,
    pub compute_capability_minor: u32,
    pub truth_mode: u32,
    pub memory_bytes: u64,
    pub default_kernel_ns: u64,
    pub copy_latency_ns: u64,
    pub copy_bytes_per_ns: u64,
    pub push_inside_enter_counts: u32,
    pub runtime_calls: u32,
    pub first_correlation_id: u32,
    pub zero_time_every_nth: u32,
    pub fail_subscribe_with: u32,
    pub activity_enable_fails_with: u32,
    /// `u64::MAX` where there is no limit.
    pub activity_buffer_limit_bytes: u64,
    pub truth_capacity: u64,
    pub reuse_graph_ids: u32,
    pub failed_waits_are_recorded: u32,
    pub buffer_request_ns: u64,
    pub resource_ns: u64,
    pub instrumentation_ns: u64,
    pub exclusive_process: u32,
    pub mps: u32,
    pub faults: RawFaults,
    pub model: Settings,
}

/// What goes wrong on demand. "Every n-th" is never where n is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFaults {
    pub seed: u64,
    pub drop_record_every_nth: u32,
    pub lose_record_every_nth: u32,
    pub incomplete_record_every_nth: u32,
    pub duplicate_record_every_nth: u32,
    pub drop_buffer_every_nth: u32,
    pub null_buffer_every_nth: u32,
    pub shuffle_buffers: u32,
    pub correlation_id_step: u32,
    pub hold_buffers_ns: u64,
    /// `u64::MAX` where all have them.
    pub device_records_with_times: u64,
    pub flush_takes_ns: u64,
    pub kill_at_call: u64,
    pub fail_launch_every_nth: u32,
    pub failed_launch_result: u32,
    pub other_tool: u32,
    pub reuse_thread_ids: u32,
    pub reuse_event_ids: u32,
    pub drop_call_record_every_nth: u32,
    pub lose_call_record_every_nth: u32,
    pub lose_clone_callback_every_nth: u32,
    pub stale_node_records: u32,
}

impl RawFaults {
    pub const NONE: Self = Self {
        seed: 0,
        drop_record_every_nth: 0,
        lose_record_every_nth: 0,
        incomplete_record_every_nth: 0,
        duplicate_record_every_nth: 0,
        drop_buffer_every_nth: 0,
        null_buffer_every_nth: 0,
        shuffle_buffers: 0,
        correlation_id_step: 1,
        hold_buffers_ns: 0,
        device_records_with_times: u64::MAX,
        flush_takes_ns: 0,
        kill_at_call: 0,
        fail_launch_every_nth: 0,
        failed_launch_result: 0,
        other_tool: OTHER_TOOL_NONE,
        reuse_thread_ids: 0,
        reuse_event_ids: 0,
        drop_call_record_every_nth: 0,
        lose_call_record_every_nth: 0,
        lose_clone_callback_every_nth: 0,
        stale_node_records: 0,
    };
}

/// [`RawFaults::other_tool`].
pub const OTHER_TOOL_NONE: u32 = 0;
pub const OTHER_TOOL_SUBSCRIBED: u32 = 1;
pub const OTHER_TOOL_TAKES_BUFFERS: u32 = 2;
pub const OTHER_TOOL_ALLOWS_OTHERS: u32 = 3;

/// [`RawConfig::truth_mode`].
pub const TRUTH_OFF: u32 = 0;
pub const TRUTH_RING: u32 = 1;
pub const TRUTH_DRAIN: u32 = 2;

/// [`RawConfig::runtime_calls`].
pub const RUNTIME_CALLS_OFF: u32 = 0;
pub const RUNTIME_CALLS_SAME_ID: u32 = 1;
pub const RUNTIME_CALLS_OWN_ID: u32 = 2;

/// Answers of the private interface.
pub const OK: i32 = 0;
pub const DIFFERENT_CONFIGURATION: i32 = 1;
pub const INVALID_ARGUMENT: i32 = 2;
/// The device thread could not be started.
pub const NO_THREAD: i32 = 3;

/// What a kernel's host function answers.
pub const KERNEL_OK: i32 = 0;
/// It touched memory that is not allocated: the launch fails as an illegal address.
pub const KERNEL_ILLEGAL_ADDRESS: i32 = 1;
/// It failed otherwise, or panicked: the launch fails.
pub const KERNEL_FAILED: i32 = 2;

/// Offset and size in bytes of one kernel parameter inside the parameter block.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawParameter {
    /// Where it begins.
    pub offset: u32,
    /// How many bytes it has.
    pub size: u32,
}

/// One launch, as a host function sees it. Valid during the call only.
#[repr(C)]
pub struct RawLaunch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub dynamic_shared_bytes: u32,
    /// The stream's id, as CUPTI's records have it.
    pub stream_id: u32,
    /// The kernel's name, UTF-8 without a NUL.
    pub name: *const u8,
    /// Its length.
    pub name_bytes: usize,
    /// The parameter block.
    pub parameters: *const u8,
    /// Its length.
    pub parameters_bytes: usize,
    /// Where each parameter lies in the block.
    pub layout: *const RawParameter,
    /// How many parameters there are.
    pub layout_count: usize,
    /// 1 when the whole range lies inside one live allocation, else 0.
    pub device_range_is_valid: extern "C" fn(address: u64, bytes: u64) -> i32,
    /// Sets the value of a conditional handle; 0 where there is no such handle.
    pub set_conditional: extern "C" fn(handle: u64, value: u32) -> i32,
}

/// A kernel's host function: the launch, and the pointer that was registered with it.
pub type RawKernelFunction =
    unsafe extern "C" fn(launch: *const RawLaunch, user: *mut c_void) -> i32;

/// A kernel to register.
#[repr(C)]
pub struct RawKernel {
    pub name: *const u8,
    pub name_bytes: usize,
    /// None: the kernel is timed work only.
    pub function: Option<RawKernelFunction>,
    pub user: *mut c_void,
    /// Called once with `user` when the registration is replaced and its last launch has ended.
    pub drop_user: Option<unsafe extern "C" fn(user: *mut c_void)>,
    /// `u64::MAX`: the default of the configuration for timed work, nothing for host functions.
    pub duration_ns: u64,
    /// Index of the parameter that is the label, `u32::MAX` for none.
    pub label_argument: u32,
    /// 1: that parameter is the device address of the label.
    pub label_is_behind: u32,
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// How long after its start the kernel lets dependents start; `u64::MAX`: when it ends.
    pub triggers_after_ns: u64,
    /// How long after its start, as a dependent, it waits for its primary.
    pub waits_after_ns: u64,
    /// Members of the collective that this kernel is; 0: it is none.
    pub collective_size: u32,
}

/// Kinds of operation in [`RawOperation::kind`].
pub const OPERATION_KERNEL: u32 = 0;
pub const OPERATION_COPY_HOST_TO_DEVICE: u32 = 1;
pub const OPERATION_COPY_DEVICE_TO_HOST: u32 = 2;
pub const OPERATION_COPY_DEVICE_TO_DEVICE: u32 = 3;
pub const OPERATION_SET: u32 = 4;
pub const OPERATION_COPY_PEER: u32 = 5;

/// The truth about one operation. Times are nanoseconds of the model's clock.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawOperation {
    pub ordinal: u64,
    pub call_ordinal: u64,
    /// Null for copies and sets; else UTF-8 that lives as long as the process.
    pub name: *const u8,
    pub name_bytes: usize,
    pub label: u64,
    pub bytes: u64,
    pub call_start_ns: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub kind: u32,
    pub has_label: u32,
    pub thread_id: u32,
    pub stream_id: u32,
    pub context_id: u32,
    pub correlation_id: u32,
    pub result: u32,
    pub thread_ordinal: u32,
    pub device: u32,
    pub channel: u32,
    /// Index in `DependencyKind::ALL`.
    pub last_dependency: u32,
    /// Index in `Limit::ALL`.
    pub limit: u32,
    pub queued_ns: u64,
    pub submitted_ns: u64,
    pub dependencies_ns: u64,
    pub dependency_ordinal: u64,
    pub issued_ns: u64,
    pub channel_ordinal: u64,
    pub resources_ns: u64,
    pub resource_ordinal: u64,
    pub preempted_ns: u64,
    pub waited_inside_ns: u64,
    /// The exec that it was launched with, and its node there; 0: it was none of a graph.
    pub graph_id: u32,
    /// Which launch of that exec it belongs to, from 1.
    pub graph_launch: u32,
    pub graph_node_id: u64,
    /// The node from which that one was cloned or last updated.
    pub source_node_id: u64,
    /// The call that made that node, if it was captured; else 0.
    pub capture_call_ordinal: u64,
    /// In the order of `Cause::ALL`.
    pub waits: [u64; Cause::ALL.len()],
}

/// The truth about one API call that asked for work.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawCall {
    pub ordinal: u64,
    /// NUL-terminated, lives as long as the process.
    pub function: *const c_char,
    pub start_ns: u64,
    pub end_ns: u64,
    pub thread_id: u32,
    pub correlation_id: u32,
    pub runtime_correlation_id: u32,
    pub callback_id: u32,
    pub result: u32,
    pub operations: u32,
    pub thread_ordinal: u32,
    pub padding: u32,
}

/// Depth of one external correlation stack of one live thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawStackDepth {
    pub thread_id: u32,
    pub kind: u32,
    pub depth: u64,
}

/// Totals since the library was loaded.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RawCounts {
    pub api_calls: u64,
    pub work_calls: u64,
    pub operations_completed: u64,
    pub operations_pending: u64,
    pub pushes: u64,
    pub pops: u64,
    pub pops_of_empty_stacks: u64,
    pub records_written: u64,
    pub records_dropped: u64,
    pub buffers_requested: u64,
    pub buffers_completed: u64,
    pub panics_caught: u64,
    pub operations_not_kept: u64,
    pub calls_not_kept: u64,
    pub allocations: u64,
    pub allocated_bytes: u64,
}

/// What libcuda gives to the loader.
#[repr(C)]
pub struct SimInterface {
    pub configure: unsafe extern "C" fn(*const RawConfig) -> i32,
    pub register_kernel: unsafe extern "C" fn(*const RawKernel) -> i32,
    pub each_operation:
        unsafe extern "C" fn(unsafe extern "C" fn(*const RawOperation, *mut c_void), *mut c_void),
    pub each_call:
        unsafe extern "C" fn(unsafe extern "C" fn(*const RawCall, *mut c_void), *mut c_void),
    pub each_stack:
        unsafe extern "C" fn(unsafe extern "C" fn(*const RawStackDepth, *mut c_void), *mut c_void),
    pub counts: unsafe extern "C" fn(*mut RawCounts),
    /// As `each_operation` and `each_call`, and forgets what was given.
    pub drain_truth: unsafe extern "C" fn(
        unsafe extern "C" fn(*const RawOperation, *mut c_void),
        *mut c_void,
        unsafe extern "C" fn(*const RawCall, *mut c_void),
        *mut c_void,
    ),
    pub clear_truth: unsafe extern "C" fn(),
    /// The time of the calling thread on the model's clock.
    pub now_ns: unsafe extern "C" fn() -> u64,
    /// The calling thread is busy for so long.
    pub spend_ns: unsafe extern "C" fn(u64),
    /// Makes seats for so many host threads, whose calls the simulator puts in order. Returns the first one's number, or -1.
    pub open_seats: unsafe extern "C" fn(u32) -> i64,
    /// The calling thread takes a seat, or leaves it (-1).
    pub take_seat: unsafe extern "C" fn(i64),
    /// The calling thread is about to wait for something else than the simulator (1), or has done so (0).
    pub away: unsafe extern "C" fn(i32),
    pub cupti: *const CuptiTable,
}

// SAFETY: the table is immutable after construction, and its one pointer leads to another such table.
unsafe impl Sync for SimInterface {}

/// The symbol of libcuda that returns [`SimInterface`].
pub const INTERFACE_SYMBOL: &[u8] = b"lineage_sim_interface\0";
/// Its type.
pub type InterfaceSymbol = unsafe extern "C" fn() -> *const SimInterface;
/// The symbol of libcupti that takes [`CuptiTable`].
pub const BIND_SYMBOL: &[u8] = b"lineage_sim_bind_cupti\0";
/// Its type.
pub type BindSymbol = unsafe extern "C" fn(*const CuptiTable) -> i32;

/// CUPTI's callback for API calls.
pub type CallbackFunction =
    unsafe extern "C" fn(userdata: *mut c_void, domain: u32, cbid: u32, data: *const c_void);
/// CUPTI's request for an empty buffer.
pub type BufferRequested =
    unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize);
/// CUPTI's delivery of a buffer.
pub type BufferCompleted = unsafe extern "C" fn(
    context: *mut c_void,
    stream_id: u32,
    buffer: *mut u8,
    size: usize,
    valid_bytes: usize,
);
/// CUPTI's request for an empty buffer, with more to be told (`CUpti_BufferCallbackRequestInfo`).
pub type BufferRequestedTelling = unsafe extern "C" fn(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
    info: *mut c_void,
);
/// CUPTI's delivery of a buffer, with more to be told (`CUpti_BufferCallbackCompleteInfo`).
pub type BufferCompletedTelling =
    unsafe extern "C" fn(buffer: *mut u8, size: usize, valid_bytes: usize, info: *mut c_void);
/// CUPTI's question for the time.
pub type TimestampCallback = unsafe extern "C" fn() -> u64;

/// Lists every CUPTI function that is simulated, with its signature, and hands the list to a macro.
macro_rules! cupti_functions {
    ($with:ident) => {
        $with! {
            fn cuptiGetVersion(version: *mut u32);
            fn cuptiGetResultString(result: u32, text: *mut *const c_char);
            fn cuptiGetLastError();
            fn cuptiGetTimestamp(timestamp: *mut u64);
            fn cuptiSubscribe(subscriber: *mut *mut c_void, callback: Option<CallbackFunction>, userdata: *mut c_void);
            fn cuptiUnsubscribe(subscriber: *mut c_void);
            fn cuptiEnableCallback(enable: u32, subscriber: *mut c_void, domain: u32, cbid: u32);
            fn cuptiEnableDomain(enable: u32, subscriber: *mut c_void, domain: u32);
            fn cuptiEnableAllDomains(enable: u32, subscriber: *mut c_void);
            fn cuptiGetCallbackState(enable: *mut u32, subscriber: *mut c_void, domain: u32, cbid: u32);
            fn cuptiGetCallbackName(domain: u32, cbid: u32, name: *mut *const c_char);
            fn cuptiGetDeviceId(context: *mut c_void, device_id: *mut u32);
            fn cuptiGetContextId(context: *mut c_void, context_id: *mut u32);
            fn cuptiGetStreamId(context: *mut c_void, stream: *mut c_void, stream_id: *mut u32);
            fn cuptiGetStreamIdEx(context: *mut c_void, stream: *mut c_void, per_thread_stream: u8, stream_id: *mut u32);
            fn cuptiGetGraphId(graph: *mut c_void, id: *mut u32);
            fn cuptiGetGraphExecId(exec: *mut c_void, id: *mut u32);
            fn cuptiGetGraphNodeId(node: *mut c_void, id: *mut u64);
            fn cuptiActivityEnable(kind: u32);
            fn cuptiActivityDisable(kind: u32);
            fn cuptiActivityEnableDriverApi(cbid: u32, enable: u8);
            fn cuptiActivityEnableRuntimeApi(cbid: u32, enable: u8);
            fn cuptiActivityRegisterCallbacks(requested: Option<BufferRequested>, completed: Option<BufferCompleted>);
            fn cuptiActivityGetNextRecord(buffer: *mut u8, valid_bytes: usize, record: *mut *mut u8);
            fn cuptiActivityGetNumDroppedRecords(context: *mut c_void, stream_id: u32, dropped: *mut usize);
            fn cuptiActivityFlushAll(flag: u32);
            fn cuptiActivityFlushPeriod(milliseconds: u32);
            fn cuptiActivityGetAttribute(attribute: u32, size: *mut usize, value: *mut c_void);
            fn cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut c_void);
            fn cuptiActivityPushExternalCorrelationId(kind: u32, id: u64);
            fn cuptiActivityPopExternalCorrelationId(kind: u32, last_id: *mut u64);
            fn cuptiActivityRegisterTimestampCallback(callback: Option<TimestampCallback>);
            fn cuptiActivityEnableLatencyTimestamps(enable: u8);
            fn cuptiActivityEnableCudaEventDeviceTimestamps(enable: u8);
            fn cuptiActivityEnableAllSyncRecords(enable: u8);
            fn cuptiSetThreadIdType(thread_id_type: u32);
            fn cuptiGetThreadIdType(thread_id_type: *mut u32);
            fn cuptiFinalize();
            fn cuptiSubscribe_v2(subscriber: *mut *mut c_void, callback: Option<CallbackFunction>, userdata: *mut c_void, params: *mut c_void);
            fn cuptiGetTimestamp_v2(subscriber: *mut c_void, timestamp: *mut u64);
            fn cuptiActivityEnable_v2(subscriber: *mut c_void, kind: u32, config: *mut c_void);
            fn cuptiActivityDisable_v2(subscriber: *mut c_void, kind: u32, config: *mut c_void);
            fn cuptiActivityEnableDriverApi_v2(subscriber: *mut c_void, cbid: u32, enable: u8);
            fn cuptiActivityEnableRuntimeApi_v2(subscriber: *mut c_void, cbid: u32, enable: u8);
            fn cuptiActivityRegisterCallbacks_v2(subscriber: *mut c_void, requested: Option<BufferRequestedTelling>, completed: Option<BufferCompletedTelling>);
            fn cuptiActivityGetNextRecord_v2(subscriber: *mut c_void, buffer: *mut u8, valid_bytes: usize, record: *mut *mut u8);
            fn cuptiActivityGetNumDroppedRecords_v2(subscriber: *mut c_void, context: *mut c_void, stream_id: u32, dropped: *mut usize);
            fn cuptiActivityGetAttribute_v2(subscriber: *mut c_void, attribute: u32, size: *mut usize, value: *mut c_void);
            fn cuptiActivitySetAttribute_v2(subscriber: *mut c_void, attribute: u32, size: *mut usize, value: *mut c_void);
            fn cuptiActivityPushExternalCorrelationId_v2(subscriber: *mut c_void, kind: u32, id: u64);
            fn cuptiActivityPopExternalCorrelationId_v2(subscriber: *mut c_void, kind: u32, last_id: *mut u64);
            fn cuptiActivityGetStructSize(kind: u32, version: u32, size: *mut usize);
        }
    };
}
#[allow(unused_imports)]
pub(crate) use cupti_functions;

macro_rules! declare_table {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        /// One pointer per simulated CUPTI function, all of them inside libcuda.
        #[repr(C)]
        #[allow(non_snake_case)]
        pub struct CuptiTable {
            $(pub $name: unsafe extern "C" fn($($argument: $type),*) -> u32,)*
        }
    };
}
cupti_functions!(declare_table);
