//! A small CUPTI client: buffers, records and callbacks. Its layouts are written down from
//! NVIDIA's headers, apart from the simulator's own.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use libloading::os::unix::Library;

use crate::call;

pub const MEMCPY: u32 = 1;
pub const MEMSET: u32 = 2;
pub const DRIVER: u32 = 4;
pub const RUNTIME: u32 = 5;
pub const CONTEXT: u32 = 9;
pub const CONCURRENT_KERNEL: u32 = 10;
pub const OVERHEAD: u32 = 17;
pub const MEMCPY2: u32 = 22;
pub const CUDA_EVENT: u32 = 36;
pub const STREAM: u32 = 37;
pub const SYNCHRONIZATION: u32 = 38;
pub const EXTERNAL_CORRELATION: u32 = 39;

pub const GRAPH_HOST_NODE: u32 = 56;
pub const CONTEXT_SWITCH: u32 = 57;
pub const HOST_LAUNCH: u32 = 58;

pub const CUSTOM0: u32 = 3;
pub const CUSTOM2: u32 = 5;

pub const DRIVER_DOMAIN: u32 = 1;

/// CUPTI's callback id, from `cupti_driver_cbid.h`.
pub const LAUNCH_KERNEL: u32 = 307;

/// A record, decoded.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Api {
        kind: u32,
        cbid: u32,
        start: u64,
        end: u64,
        process: u32,
        thread: u32,
        correlation: u32,
        result: u32,
    },
    External {
        kind: u32,
        id: u64,
        correlation: u32,
    },
    Kernel {
        start: u64,
        end: u64,
        completed: u64,
        correlation: u32,
        stream: u32,
        context: u32,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u32,
        name: String,
        queued: u64,
        submitted: u64,
        priority: Option<i32>,
        channel: u32,
        device: u32,
    },
    Overhead {
        kind: u32,
        start: u64,
        end: u64,
        correlation: u32,
        /// Of a full command buffer: what is left of it, the channel and its kind.
        channel: Option<[u32; 3]>,
    },
    Copy {
        copy_kind: u8,
        source: u8,
        target: u8,
        bytes: u64,
        start: u64,
        end: u64,
        correlation: u32,
        runtime_correlation: u32,
        stream: u32,
        count: u64,
    },
    PeerCopy {
        bytes: u64,
        start: u64,
        end: u64,
        correlation: u32,
        /// Source and target.
        devices: [u32; 2],
    },
    Set {
        value: u32,
        bytes: u64,
        start: u64,
        end: u64,
        correlation: u32,
        stream: u32,
    },
    Synchronization {
        of: u32,
        start: u64,
        end: u64,
        correlation: u32,
        stream: u32,
        event: u32,
        /// Since 12.8.
        sync: Option<u64>,
        result: Option<u32>,
    },
    Event {
        correlation: u32,
        stream: u32,
        event: u32,
        /// Since 12.8.
        timestamp: Option<u64>,
        sync: Option<u64>,
    },
    HostLaunch {
        stream: u32,
        correlation: u32,
        process: u32,
        start: u64,
        end: u64,
    },
    HostNode {
        correlation: u32,
        graph: u32,
        node: u64,
        start: u64,
        end: u64,
    },
    ContextSwitch {
        context: u32,
        at: u64,
        /// 1: it begins; 2: it has ended.
        operation: u32,
    },
    Other(u32),
}

impl Record {
    pub fn correlation(&self) -> u32 {
        match self {
            Self::Api { correlation, .. }
            | Self::External { correlation, .. }
            | Self::Kernel { correlation, .. }
            | Self::Overhead { correlation, .. }
            | Self::PeerCopy { correlation, .. }
            | Self::Copy { correlation, .. }
            | Self::Set { correlation, .. }
            | Self::Synchronization { correlation, .. }
            | Self::Event { correlation, .. }
            | Self::HostNode { correlation, .. }
            | Self::HostLaunch { correlation, .. } => *correlation,
            Self::ContextSwitch { .. } | Self::Other(_) => 0,
        }
    }
}

/// One buffer that came back: its records in order, and how reading ended.
#[derive(Clone, Debug)]
pub struct Delivered {
    pub records: Vec<Record>,
    /// 12: all were read; 21: an incomplete record ended it.
    pub end: u32,
    pub valid_bytes: usize,
    pub thread: std::thread::ThreadId,
}

static DELIVERED: Mutex<Vec<Delivered>> = Mutex::new(Vec::new());
static BUFFER_BYTES: AtomicUsize = AtomicUsize::new(64 * 1024);
static MAX_RECORDS: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);
static LIBRARY: Mutex<Option<Library>> = Mutex::new(None);

/// Makes the client give buffers of this size; 0 for none at all.
pub fn give_buffers_of(bytes: usize, max_records: usize) {
    BUFFER_BYTES.store(bytes, Ordering::SeqCst);
    MAX_RECORDS.store(max_records, Ordering::SeqCst);
}

/// How often a buffer was asked for.
pub fn asked() -> usize {
    ASKED.load(Ordering::SeqCst)
}

unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    ASKED.fetch_add(1, Ordering::SeqCst);
    let bytes = BUFFER_BYTES.load(Ordering::SeqCst);
    // SAFETY: the places are valid during the call.
    unsafe {
        *size = bytes;
        *max_records = MAX_RECORDS.load(Ordering::SeqCst);
        *buffer = if bytes == 0 {
            std::ptr::null_mut()
        } else {
            // Filled, so that a simulator that relies on zeros is found out.
            Box::into_raw(vec![0xa5_u64; bytes.div_ceil(8)].into_boxed_slice()).cast()
        };
    }
}

unsafe extern "C" fn completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    size: usize,
    valid_bytes: usize,
) {
    let (records, end) = read(buffer, valid_bytes);
    let thread = std::thread::current().id();
    DELIVERED.lock().unwrap().push(Delivered {
        records,
        end,
        valid_bytes,
        thread,
    });
    let words = size.div_ceil(8);
    // SAFETY: made by `requested` with so many words.
    drop(unsafe {
        Box::from_raw(std::ptr::slice_from_raw_parts_mut(
            buffer.cast::<u64>(),
            words,
        ))
    });
}

fn read(buffer: *mut u8, valid_bytes: usize) -> (Vec<Record>, u32) {
    let guard = LIBRARY.lock().unwrap();
    let library = guard.as_ref().expect("the client is open");
    let mut records = Vec::new();
    let mut record: *mut u8 = std::ptr::null_mut();
    loop {
        let code = call!(library, "cuptiActivityGetNextRecord"(buffer => *mut u8, valid_bytes => usize, &mut record => *mut *mut u8));
        if code != 0 {
            return (records, code);
        }
        records.push(decode(record, version(library)));
    }
}

pub fn version(library: &Library) -> u32 {
    let mut version = 0;
    assert_eq!(
        call!(library, "cuptiGetVersion"(&mut version => *mut u32)),
        0
    );
    version
}

pub fn decode(record: *const u8, version: u32) -> Record {
    macro_rules! at {
        ($offset:literal, $type:ty) => {
            // SAFETY: inside the record, by the header's layout.
            unsafe { record.add($offset).cast::<$type>().read_unaligned() }
        };
    }
    match at!(0, u32) {
        kind @ (DRIVER | RUNTIME) => Record::Api {
            kind,
            cbid: at!(4, u32),
            start: at!(8, u64),
            end: at!(16, u64),
            process: at!(24, u32),
            thread: at!(28, u32),
            correlation: at!(32, u32),
            result: at!(36, u32),
        },
        EXTERNAL_CORRELATION => Record::External {
            kind: at!(4, u32),
            id: at!(8, u64),
            correlation: at!(16, u32),
        },
        CONCURRENT_KERNEL => Record::Kernel {
            start: at!(16, u64),
            end: at!(24, u64),
            completed: at!(32, u64),
            context: at!(44, u32),
            stream: at!(48, u32),
            grid: at!(52, [u32; 3]),
            block: at!(64, [u32; 3]),
            dynamic_shared: at!(80, u32),
            correlation: at!(92, u32),
            name: {
                let name = at!(104, *const c_char);
                // SAFETY: the module is loaded.
                unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned()
            },
            queued: at!(120, u64),
            submitted: at!(128, u64),
            priority: (version >= 130_100).then(|| at!(216, i32)),
            channel: at!(168, u32),
            device: at!(40, u32),
        },
        OVERHEAD => Record::Overhead {
            kind: at!(4, u32),
            start: at!(24, u64),
            end: at!(32, u64),
            correlation: if version >= 20 { at!(40, u32) } else { 0 },
            channel: {
                let data = if version >= 22 {
                    at!(48, *mut [u32; 3])
                } else {
                    std::ptr::null_mut()
                };
                // SAFETY: null, or CUPTI's to be read and freed by us.
                (!data.is_null()).then(|| unsafe {
                    let channel = data.read();
                    libc::free(data.cast());
                    channel
                })
            },
        },
        MEMCPY => Record::Copy {
            copy_kind: at!(4, u8),
            source: at!(5, u8),
            target: at!(6, u8),
            bytes: at!(8, u64),
            start: at!(16, u64),
            end: at!(24, u64),
            stream: at!(40, u32),
            correlation: at!(44, u32),
            runtime_correlation: at!(48, u32),
            count: if version >= 26 { at!(88, u64) } else { 0 },
        },
        MEMCPY2 => Record::PeerCopy {
            bytes: at!(8, u64),
            start: at!(16, u64),
            end: at!(24, u64),
            devices: [at!(44, u32), at!(52, u32)],
            correlation: at!(60, u32),
        },
        MEMSET => Record::Set {
            value: at!(4, u32),
            bytes: at!(8, u64),
            start: at!(16, u64),
            end: at!(24, u64),
            stream: at!(40, u32),
            correlation: at!(44, u32),
        },
        SYNCHRONIZATION => Record::Synchronization {
            of: at!(4, u32),
            start: at!(8, u64),
            end: at!(16, u64),
            correlation: at!(24, u32),
            stream: at!(32, u32),
            event: at!(36, u32),
            sync: (version >= 26).then(|| at!(40, u64)),
            result: (version >= 26).then(|| at!(48, u32)),
        },
        CUDA_EVENT => Record::Event {
            correlation: at!(4, u32),
            stream: at!(12, u32),
            event: at!(16, u32),
            timestamp: (version >= 26).then(|| at!(40, u64)),
            sync: (version >= 26).then(|| at!(48, u64)),
        },
        HOST_LAUNCH => Record::HostLaunch {
            stream: at!(4, u32),
            correlation: at!(16, u32),
            process: at!(20, u32),
            start: at!(32, u64),
            end: at!(40, u64),
        },
        GRAPH_HOST_NODE => Record::HostNode {
            correlation: at!(16, u32),
            graph: at!(20, u32),
            node: at!(24, u64),
            start: at!(40, u64),
            end: at!(48, u64),
        },
        CONTEXT_SWITCH => Record::ContextSwitch {
            context: at!(4, u32),
            at: at!(8, u64),
            operation: at!(16, u32),
        },
        other => Record::Other(other),
    }
}

/// `CUpti_CallbackData`, from `cupti_callbacks.h`.
#[repr(C)]
pub struct CallbackData {
    pub site: u32,
    pub function_name: *const c_char,
    pub function_params: *const c_void,
    pub return_value: *const u32,
    pub symbol_name: *const c_char,
    pub context: *mut c_void,
    pub context_uid: u32,
    pub correlation_data: *mut u64,
    pub correlation_id: u32,
}

pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const CallbackData);

pub struct Cupti {
    pub library: Library,
}

impl Cupti {
    /// Opens CUPTI by name and registers the buffer callbacks.
    pub fn open() -> Self {
        let open = || {
            // SAFETY: the simulated library, loaded before.
            unsafe { Library::new("libcupti.so") }.expect("the simulator is loaded")
        };
        *LIBRARY.lock().unwrap() = Some(open());
        let cupti = Self { library: open() };
        type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
        type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
        let registered = call!(cupti.library, "cuptiActivityRegisterCallbacks"(requested => Requested, completed => Completed));
        assert_eq!(registered, 0);
        cupti
    }

    pub fn enable(&self, kinds: &[u32]) {
        for kind in kinds {
            assert_eq!(
                call!(self.library, "cuptiActivityEnable"(*kind => u32)),
                0,
                "kind {kind}"
            );
        }
    }

    pub fn disable(&self, kind: u32) {
        assert_eq!(call!(self.library, "cuptiActivityDisable"(kind => u32)), 0);
    }

    pub fn push(&self, kind: u32, id: u64) {
        assert_eq!(
            call!(self.library, "cuptiActivityPushExternalCorrelationId"(kind => u32, id => u64)),
            0
        );
    }

    pub fn pop(&self, kind: u32) -> Result<u64, u32> {
        let mut id = 0;
        match call!(self.library, "cuptiActivityPopExternalCorrelationId"(kind => u32, &mut id => *mut u64))
        {
            0 => Ok(id),
            code => Err(code),
        }
    }

    pub fn flush(&self, flag: u32) {
        assert_eq!(call!(self.library, "cuptiActivityFlushAll"(flag => u32)), 0);
    }

    pub fn dropped(&self) -> usize {
        let mut dropped = usize::MAX;
        let code = call!(self.library, "cuptiActivityGetNumDroppedRecords"(std::ptr::null_mut() => *mut c_void, 0 => u32, &mut dropped => *mut usize));
        assert_eq!(code, 0);
        dropped
    }

    pub fn subscribe(&self, callback: Callback) -> Result<*mut c_void, u32> {
        let mut subscriber = std::ptr::null_mut();
        match call!(self.library, "cuptiSubscribe"(&mut subscriber => *mut *mut c_void, callback => Callback, std::ptr::null_mut() => *mut c_void))
        {
            0 => Ok(subscriber),
            code => Err(code),
        }
    }

    pub fn enable_callback(&self, subscriber: *mut c_void, domain: u32, cbid: u32) {
        let code = call!(self.library, "cuptiEnableCallback"(1 => u32, subscriber => *mut c_void, domain => u32, cbid => u32));
        assert_eq!(code, 0);
    }

    pub fn timestamp(&self) -> u64 {
        let mut timestamp = 0;
        assert_eq!(
            call!(self.library, "cuptiGetTimestamp"(&mut timestamp => *mut u64)),
            0
        );
        timestamp
    }

    /// Takes what came back so far.
    pub fn take(&self) -> Vec<Delivered> {
        std::mem::take(&mut *DELIVERED.lock().unwrap())
    }

    /// Flushes and takes all records.
    pub fn records(&self) -> Vec<Record> {
        self.flush(0);
        let delivered = self.take();
        assert!(
            delivered.iter().all(|buffer| buffer.end == 12),
            "{delivered:#?}"
        );
        delivered
            .into_iter()
            .flat_map(|buffer| buffer.records)
            .collect()
    }
}

/// The records of one kind of API.
pub fn apis(records: &[Record], kind: u32) -> Vec<&Record> {
    records
        .iter()
        .filter(|record| matches!(record, Record::Api { kind: of, .. } if *of == kind))
        .collect()
}

pub fn kernels(records: &[Record]) -> Vec<&Record> {
    records
        .iter()
        .filter(|record| matches!(record, Record::Kernel { .. }))
        .collect()
}

pub fn externals(records: &[Record]) -> Vec<&Record> {
    records
        .iter()
        .filter(|record| matches!(record, Record::External { .. }))
        .collect()
}
