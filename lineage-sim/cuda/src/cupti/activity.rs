//! Which kinds of activity are recorded, and which calls are traced at all.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::config::config;
use crate::cupti::subscriber;

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

static KINDS: AtomicU64 = AtomicU64::new(0);
static DRIVER_IDS: IdSet = IdSet::new();
static RUNTIME_IDS: IdSet = IdSet::new();

/// Anything is recorded or called back.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Calls get correlation ids: API records or callbacks are on.
static CORRELATES: AtomicBool = AtomicBool::new(false);

/// `cuptiActivityEnableLatencyTimestamps`.
pub(crate) static LATENCY_TIMESTAMPS: AtomicBool = AtomicBool::new(false);
/// `cuptiActivityEnableCudaEventDeviceTimestamps`.
pub(crate) static EVENT_TIMESTAMPS: AtomicBool = AtomicBool::new(false);
/// `cuptiActivityEnableAllSyncRecords`: 0 and 1, and 2 for what the configuration says.
pub(crate) static ALL_SYNCHRONIZATIONS: AtomicU32 = AtomicU32::new(2);
/// `CUpti_ActivityThreadIdType`: 0 for `pthread_self`, 1 for the system's.
pub(crate) static THREAD_ID_TYPE: AtomicU32 = AtomicU32::new(0);

pub(crate) fn is_enabled(kind: u32) -> bool {
    kind < 64 && KINDS.load(Ordering::Acquire) >> kind & 1 == 1
}

pub(crate) fn ids(domain: Domain) -> &'static IdSet {
    match domain {
        Domain::Driver => &DRIVER_IDS,
        Domain::Runtime => &RUNTIME_IDS,
    }
}

pub(crate) fn set_kind(kind: u32, on: bool) {
    if on {
        KINDS.fetch_or(1 << kind, Ordering::AcqRel);
    } else {
        KINDS.fetch_and(!(1 << kind), Ordering::AcqRel);
    }
    // The kind overrides what was set by id before it.
    for domain in [Domain::Driver, Domain::Runtime] {
        if kind == domain.activity_kind() {
            ids(domain).set_all(on);
        }
    }
    refresh();
}

pub(crate) fn set_id(domain: Domain, id: u32, on: bool) {
    ids(domain).set(id, on);
    refresh();
}

pub(crate) fn disable_everything() {
    KINDS.store(0, Ordering::Release);
    DRIVER_IDS.set_all(false);
    RUNTIME_IDS.set_all(false);
    LATENCY_TIMESTAMPS.store(false, Ordering::Release);
    EVENT_TIMESTAMPS.store(false, Ordering::Release);
    ALL_SYNCHRONIZATIONS.store(2, Ordering::Release);
    refresh();
}

/// Recomputes the two flags that each call reads.
pub(crate) fn refresh() {
    let correlates = !DRIVER_IDS.is_empty() || !RUNTIME_IDS.is_empty() || subscriber::wants_calls();
    CORRELATES.store(correlates, Ordering::Release);
    ACTIVE.store(
        correlates || KINDS.load(Ordering::Acquire) != 0,
        Ordering::Release,
    );
}

/// Whether waits that failed are recorded, too.
pub(crate) fn all_synchronizations() -> bool {
    match ALL_SYNCHRONIZATIONS.load(Ordering::Acquire) {
        2 => config().failed_waits_are_recorded == 1,
        value => value == 1,
    }
}

pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Acquire)
}

pub(crate) fn correlates() -> bool {
    CORRELATES.load(Ordering::Acquire)
}
