//! The functions of `libcupti.so` that this crate calls.

use std::ffi::{c_char, c_void};

use super::library::LoadError;

/// `CUpti_SubscriberHandle`.
pub type Subscriber = *mut c_void;

/// `CUpti_CallbackFunc`: user data, domain, callback id, and data of that domain.
pub type ApiCallback =
    unsafe extern "C" fn(userdata: *mut c_void, domain: u32, cbid: u32, data: *const c_void);

/// `CUpti_BuffersCallbackRequestFunc`: CUPTI asks for an empty buffer.
pub type BufferRequested =
    unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize);

/// `CUpti_BuffersCallbackCompleteFunc`: CUPTI gives a buffer back.
pub type BufferCompleted = unsafe extern "C" fn(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid_size: usize,
);

/// `CUpti_TimestampCallbackFunc`: now, in ns.
pub type TimestampCallback = unsafe extern "C" fn() -> u64;

/// `cuptiActivityGetNextRecord`.
pub type NextRecord =
    unsafe extern "C" fn(buffer: *mut u8, valid_size: usize, record: *mut *mut u8) -> u32;

/// One function of the library, as this crate looks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol {
    /// Its name.
    pub name: &'static str,
    /// The CUDA version whose CUPTI had it first: found by looking into the libraries of CUDA 12.0
    /// to 12.6, 12.9 and 13.5.
    pub since: &'static str,
    /// Whether this crate works without it.
    pub optional: bool,
}

macro_rules! functions {
    (
        required { $($(#[$doc:meta])* $field:ident = $name:literal, since $since:literal: $type:ty;)+ }
        optional { $($(#[$odoc:meta])* $ofield:ident = $oname:literal, since $osince:literal: $otype:ty;)+ }
    ) => {
        /// The functions, resolved. All answer a [result code](super::codes::result).
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub struct Functions {
            $($(#[$doc])* pub $field: $type,)+
            $($(#[$odoc])* pub $ofield: Option<$otype>,)+
        }

        /// Every function that is looked for.
        pub const SYMBOLS: &[Symbol] = &[
            $(Symbol { name: $name, since: $since, optional: false },)+
            $(Symbol { name: $oname, since: $osince, optional: true },)+
        ];

        impl Functions {
            /// Looks all functions up.
            ///
            /// # Safety
            /// `library` is a `libcupti`, in which these names have these signatures.
            pub(super) unsafe fn resolve(
                library: &libloading::os::unix::Library,
                path: &str,
            ) -> Result<Self, LoadError> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the caller vouches that the library is CUPTI, whose headers
                        // give this name this signature.
                        let symbol = unsafe { library.get::<$type>(concat!($name, "\0").as_bytes()) };
                        *symbol.map_err(|_| LoadError::SymbolMissing {
                            symbol: $name,
                            since: $since,
                            path: path.into(),
                        })?
                    },)+
                    $($ofield: {
                        // SAFETY: as above.
                        let symbol = unsafe { library.get::<$otype>(concat!($oname, "\0").as_bytes()) };
                        symbol.ok().map(|symbol| *symbol)
                    },)+
                })
            }
        }
    };
}

functions! {
    required {
        /// `cuptiGetVersion(version)`.
        get_version = "cuptiGetVersion", since "12.0 or earlier":
            unsafe extern "C" fn(*mut u32) -> u32;
        /// `cuptiGetResultString(code, text)`.
        get_result_string = "cuptiGetResultString", since "12.0 or earlier":
            unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
        /// `cuptiSubscribe(subscriber, callback, userdata)`.
        subscribe = "cuptiSubscribe", since "12.0 or earlier":
            unsafe extern "C" fn(*mut Subscriber, ApiCallback, *mut c_void) -> u32;
        /// `cuptiUnsubscribe(subscriber)`.
        unsubscribe = "cuptiUnsubscribe", since "12.0 or earlier":
            unsafe extern "C" fn(Subscriber) -> u32;
        /// `cuptiEnableCallback(enable, subscriber, domain, cbid)`.
        enable_callback = "cuptiEnableCallback", since "12.0 or earlier":
            unsafe extern "C" fn(u32, Subscriber, u32, u32) -> u32;
        /// `cuptiGetCallbackName(domain, cbid, name)`.
        get_callback_name = "cuptiGetCallbackName", since "12.0 or earlier":
            unsafe extern "C" fn(u32, u32, *mut *const c_char) -> u32;
        /// `cuptiActivityEnable(kind)`.
        activity_enable = "cuptiActivityEnable", since "12.0 or earlier":
            unsafe extern "C" fn(u32) -> u32;
        /// `cuptiActivityDisable(kind)`.
        activity_disable = "cuptiActivityDisable", since "12.0 or earlier":
            unsafe extern "C" fn(u32) -> u32;
        /// `cuptiActivityRegisterCallbacks(requested, completed)`.
        activity_register_callbacks = "cuptiActivityRegisterCallbacks", since "12.0 or earlier":
            unsafe extern "C" fn(BufferRequested, BufferCompleted) -> u32;
        /// `cuptiActivityGetNextRecord(buffer, valid_size, record)`.
        activity_get_next_record = "cuptiActivityGetNextRecord", since "12.0 or earlier":
            NextRecord;
        /// `cuptiActivityGetNumDroppedRecords(context, stream, dropped)`: resets the count.
        activity_get_num_dropped_records = "cuptiActivityGetNumDroppedRecords", since "12.0 or earlier":
            unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> u32;
        /// `cuptiActivityFlushAll(flag)`.
        activity_flush_all = "cuptiActivityFlushAll", since "12.0 or earlier":
            unsafe extern "C" fn(u32) -> u32;
        /// `cuptiActivityPushExternalCorrelationId(kind, id)`, on the calling thread's stack.
        activity_push_external_correlation_id = "cuptiActivityPushExternalCorrelationId", since "12.0 or earlier":
            unsafe extern "C" fn(u32, u64) -> u32;
        /// `cuptiActivityPopExternalCorrelationId(kind, last_id)`, from the calling thread's stack.
        activity_pop_external_correlation_id = "cuptiActivityPopExternalCorrelationId", since "12.0 or earlier":
            unsafe extern "C" fn(u32, *mut u64) -> u32;
        /// `cuptiActivityRegisterTimestampCallback(callback)`.
        activity_register_timestamp_callback = "cuptiActivityRegisterTimestampCallback", since "12.0 or earlier":
            unsafe extern "C" fn(TimestampCallback) -> u32;
        /// `cuptiSetThreadIdType(type)`.
        set_thread_id_type = "cuptiSetThreadIdType", since "12.0 or earlier":
            unsafe extern "C" fn(u32) -> u32;
    }
    optional {
        /// `cuptiActivityEnableDriverApi(cbid, enable)`.
        activity_enable_driver_api = "cuptiActivityEnableDriverApi", since "12.5":
            unsafe extern "C" fn(u32, u8) -> u32;
        /// `cuptiActivityEnableRuntimeApi(cbid, enable)`.
        activity_enable_runtime_api = "cuptiActivityEnableRuntimeApi", since "12.5":
            unsafe extern "C" fn(u32, u8) -> u32;
        /// `cuptiGetErrorMessage(code, text)`: says more than `cuptiGetResultString`.
        get_error_message = "cuptiGetErrorMessage", since "12.2":
            unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
        /// `cuptiGetThreadIdType(type)`.
        get_thread_id_type = "cuptiGetThreadIdType", since "12.0 or earlier":
            unsafe extern "C" fn(*mut u32) -> u32;
        /// `cuptiGetTimestamp(timestamp)`: CUPTI's own clock, in ns.
        get_timestamp = "cuptiGetTimestamp", since "12.0 or earlier":
            unsafe extern "C" fn(*mut u64) -> u32;
        /// `cuptiActivityFlushPeriod(milliseconds)`.
        activity_flush_period = "cuptiActivityFlushPeriod", since "12.0 or earlier":
            unsafe extern "C" fn(u32) -> u32;
        /// `cuptiActivityEnableLatencyTimestamps(enable)`: queued and submitted times of kernels.
        activity_enable_latency_timestamps = "cuptiActivityEnableLatencyTimestamps", since "12.0 or earlier":
            unsafe extern "C" fn(u8) -> u32;
        /// `cuptiActivityEnableCudaEventDeviceTimestamps(enable)`: when the device came to an event.
        activity_enable_cuda_event_device_timestamps = "cuptiActivityEnableCudaEventDeviceTimestamps", since "13.0":
            unsafe extern "C" fn(u8) -> u32;
        /// `cuptiActivitySetAttribute(attribute, size, value)`.
        activity_set_attribute = "cuptiActivitySetAttribute", since "12.0 or earlier":
            unsafe extern "C" fn(u32, *mut usize, *mut c_void) -> u32;
        /// `cuptiActivityGetAttribute(attribute, size, value)`.
        activity_get_attribute = "cuptiActivityGetAttribute", since "12.0 or earlier":
            unsafe extern "C" fn(u32, *mut usize, *mut c_void) -> u32;
        /// `cuptiGetGraphId(graph, id)`.
        get_graph_id = "cuptiGetGraphId", since "12.0 or earlier":
            unsafe extern "C" fn(*mut c_void, *mut u32) -> u32;
        /// `cuptiGetGraphExecId(exec, id)`: the id that records of its launches have.
        get_graph_exec_id = "cuptiGetGraphExecId", since "12.3":
            unsafe extern "C" fn(*mut c_void, *mut u32) -> u32;
        /// `cuptiGetGraphNodeId(node, id)`.
        get_graph_node_id = "cuptiGetGraphNodeId", since "12.0 or earlier":
            unsafe extern "C" fn(*mut c_void, *mut u64) -> u32;
        /// `cuptiFinalize()`: detaches CUPTI. Never called by this crate.
        finalize = "cuptiFinalize", since "12.0 or earlier":
            unsafe extern "C" fn() -> u32;
    }
}
