//! Which kinds of activity are recorded, and which calls are traced at all.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::config::config;
use crate::cupti::client;

/// Activity kinds, as `CUpti_ActivityKind` numbers them.
pub(crate) mod kind {
    pub(crate) const MEMCPY: u32 = 1;
    pub(crate) const MEMSET: u32 = 2;
    pub(crate) const KERNEL: u32 = 3;
    pub(crate) const DRIVER: u32 = 4;
    pub(crate) const RUNTIME: u32 = 5;
    pub(crate) const CONTEXT: u32 = 9;
    pub(crate) const CONCURRENT_KERNEL: u32 = 10;
    pub(crate) const OVERHEAD: u32 = 17;
    /// Copies between devices.
    pub(crate) const MEMCPY2: u32 = 22;
    pub(crate) const CUDA_EVENT: u32 = 36;
    pub(crate) const STREAM: u32 = 37;
    pub(crate) const SYNCHRONIZATION: u32 = 38;
    pub(crate) const EXTERNAL_CORRELATION: u32 = 39;
    pub(crate) const GRAPH_TRACE: u32 = 51;
    pub(crate) const GRAPH_HOST_NODE: u32 = 56;
    /// Switches of a device's compute engine between contexts.
    pub(crate) const CONTEXT_SWITCH: u32 = 57;
    pub(crate) const HOST_LAUNCH: u32 = 58;

    /// The highest kind of a version of CUPTI, from the enumeration in its header.
    pub(crate) fn last(version: u32) -> u32 {
        use crate::cupti::layout::version::{CUDA_12_8, CUDA_12_9, CUDA_13_1, CUDA_13_4};
        match version {
            ..CUDA_12_8 => 52,
            CUDA_12_8..CUDA_12_9 => 54,
            CUDA_12_9..CUDA_13_1 => 55,
            CUDA_13_1..CUDA_13_4 => 58,
            _ => 59,
        }
    }
}

/// Domains of callbacks and of API records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Driver,
    Runtime,
}

impl Domain {
    /// `CUpti_CallbackDomain`.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Driver => 1,
            Self::Runtime => 2,
        }
    }

    pub(crate) fn activity_kind(self) -> u32 {
        match self {
            Self::Driver => kind::DRIVER,
            Self::Runtime => kind::RUNTIME,
        }
    }
}

/// A set of callback ids that is read on every call.
pub(crate) struct IdSet([AtomicU64; 16]);

impl IdSet {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 16])
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        let word = self.0.get(id as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (id % 64) & 1 == 1)
    }

    pub(crate) fn set(&self, id: u32, on: bool) {
        let Some(word) = self.0.get(id as usize / 64) else {
            return;
        };
        let bit = 1 << (id % 64);
        if on {
            word.fetch_or(bit, Ordering::AcqRel);
        } else {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    pub(crate) fn set_all(&self, on: bool) {
        for word in &self.0 {
            word.store(if on { u64::MAX } else { 0 }, Ordering::Release);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.load(Ordering::Acquire) == 0)
    }
}

/// What one client has switched on.
pub(crate) struct Recording {
    kinds: AtomicU64,
    driver_ids: IdSet,
    runtime_ids: IdSet,
    /// `cuptiActivityEnableLatencyTimestamps`.
    pub(crate) latency_timestamps: AtomicBool,
    /// `cuptiActivityEnableCudaEventDeviceTimestamps`.
    pub(crate) event_timestamps: AtomicBool,
    /// `cuptiActivityEnableAllSyncRecords`: 0 and 1, and 2 for what the configuration says.
    pub(crate) all_synchronizations: AtomicU32,
    /// `CUpti_ActivityThreadIdType`: 0 for `pthread_self`, 1 for the system's.
    pub(crate) thread_id_type: AtomicU32,
}

impl Recording {
    pub(crate) const fn new() -> Self {
        Self {
            kinds: AtomicU64::new(0),
            driver_ids: IdSet::new(),
            runtime_ids: IdSet::new(),
            latency_timestamps: AtomicBool::new(false),
            event_timestamps: AtomicBool::new(false),
            all_synchronizations: AtomicU32::new(2),
            thread_id_type: AtomicU32::new(0),
        }
    }

    pub(crate) fn has(&self, kind: u32) -> bool {
        kind < 64 && self.kinds.load(Ordering::Acquire) >> kind & 1 == 1
    }

    pub(crate) fn ids(&self, domain: Domain) -> &IdSet {
        match domain {
            Domain::Driver => &self.driver_ids,
            Domain::Runtime => &self.runtime_ids,
        }
    }

    pub(crate) fn set_kind(&self, kind: u32, on: bool) {
        if on {
            self.kinds.fetch_or(1 << kind, Ordering::AcqRel);
        } else {
            self.kinds.fetch_and(!(1 << kind), Ordering::AcqRel);
        }
        if on && kind == kind::GRAPH_TRACE {
            WHOLE_GRAPHS.store(true, Ordering::Release);
        }
        // The kind overrides what was set by id before it.
        for domain in [Domain::Driver, Domain::Runtime] {
            if kind == domain.activity_kind() {
                self.ids(domain).set_all(on);
            }
        }
        refresh();
    }

    pub(crate) fn set_id(&self, domain: Domain, id: u32, on: bool) {
        self.ids(domain).set(id, on);
        refresh();
    }

    /// Whether waits that failed are recorded, too.
    pub(crate) fn has_all_synchronizations(&self) -> bool {
        match self.all_synchronizations.load(Ordering::Acquire) {
            2 => config().failed_waits_are_recorded == 1,
            value => value == 1,
        }
    }

    pub(crate) fn reset(&self) {
        self.kinds.store(0, Ordering::Release);
        self.driver_ids.set_all(false);
        self.runtime_ids.set_all(false);
        self.latency_timestamps.store(false, Ordering::Release);
        self.event_timestamps.store(false, Ordering::Release);
        self.all_synchronizations.store(2, Ordering::Release);
        self.thread_id_type.store(0, Ordering::Release);
        refresh();
    }
}

/// Anything is recorded or called back.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Calls get correlation ids: API records or callbacks are on.
static CORRELATES: AtomicBool = AtomicBool::new(false);
/// Graph launches are recorded as a whole, if at all: from the first time that this was asked for.
static WHOLE_GRAPHS: AtomicBool = AtomicBool::new(false);

/// Whether any client records a kind.
pub(crate) fn is_enabled(kind: u32) -> bool {
    client::all()
        .iter()
        .any(|client| client.recording.has(kind))
}

/// Whether the nodes of graph launches have no records of their own: it stays so until CUPTI is finalised.
pub(crate) fn traces_whole_graphs() -> bool {
    WHOLE_GRAPHS.load(Ordering::Acquire)
}

pub(crate) fn trace_whole_graphs(on: bool) {
    WHOLE_GRAPHS.store(on, Ordering::Release);
}

/// Recomputes the two flags that each call reads.
pub(crate) fn refresh() {
    let (mut active, mut correlates) = (false, false);
    for client in client::all() {
        let recording = &client.recording;
        correlates |= !recording.driver_ids.is_empty()
            || !recording.runtime_ids.is_empty()
            || client.callbacks.want_calls();
        active |= recording.kinds.load(Ordering::Acquire) != 0;
    }
    CORRELATES.store(correlates, Ordering::Release);
    ACTIVE.store(active || correlates, Ordering::Release);
}

pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Acquire)
}

pub(crate) fn correlates() -> bool {
    CORRELATES.load(Ordering::Acquire)
}
