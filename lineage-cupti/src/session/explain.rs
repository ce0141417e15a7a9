//! What the tiers collect that explain: calls that order work, waits, events, overheads, the times of
//! queueing and submission, attributes of launches.

use std::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use lineage_core::hook::{self, LaunchAttributesRead};
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::Collected;
use lineage_core::source::Tier;

use crate::order;
use crate::sys::Library;
use crate::sys::codes::{domain, kind, launch_attribute, result};
use crate::sys::layout::launch_config as at;

/// Kinds of records, each of which may be missing.
const KINDS: [u32; 5] = [
    kind::SYNCHRONIZATION,
    kind::CUDA_EVENT,
    kind::OVERHEAD,
    kind::CONTEXT,
    kind::STREAM,
];

/// Callback ids of `cuLaunchKernelEx` and its variant for per-thread streams.
pub(super) const LAUNCHES_WITH_ATTRIBUTES: [u32; 2] = [652, 653];

/// Attributes of one launch that are looked at; CUDA has fewer than this.
const ATTRIBUTES: u32 = 64;

/// Whether the session reads the attributes of launches.
static READS_ATTRIBUTES: AtomicBool = AtomicBool::new(false);

/// Whether this tier collects what explains. What CUPTI does not let be switched is collected from
/// the start, so `burst` begins as `explain` does.
pub(super) fn is_wanted(tier: Tier) -> bool {
    matches!(tier, Tier::Explain | Tier::Burst)
}

/// The part that has to come before any context: CUPTI keeps to what it was told by then.
pub(super) fn enable_latency(library: &Library) -> bool {
    let Some(enable) = library.functions().activity_enable_latency_timestamps else {
        return false;
    };
    // SAFETY: takes a number.
    unsafe { enable(1) == result::SUCCESS }
}

/// Switches it on, and says what of it is there. `chosen`: whether calls are chosen one by one.
pub(super) fn enable(library: &Library, session: u32, chosen: bool, latency: bool) -> Collected {
    let functions = library.functions();
    if let Some(enable) = functions.activity_enable_cuda_event_device_timestamps {
        // SAFETY: takes a number. Where it fails, events have no times of the device.
        unsafe { enable(1) };
    }
    let enabled = KINDS.map(|kind| {
        // SAFETY: takes a number. A library that does not know the kind says so, and that is all.
        unsafe { (functions.activity_enable)(kind) == result::SUCCESS }
    });
    let [waits, events, overheads, contexts, streams] = enabled;
    let order_calls = !chosen || choose(library);
    READS_ATTRIBUTES.store(true, Relaxed);
    Collected {
        session,
        at: HostNanos(hook::now()),
        order_calls: order_calls && contexts && streams,
        latency,
        events: waits && events,
        overheads,
        launch_attributes: true,
    }
}

/// Switches off what may have been switched on.
pub(super) fn disable(library: &Library) {
    READS_ATTRIBUTES.store(false, Relaxed);
    for kind in KINDS {
        // SAFETY: takes a number.
        unsafe { (library.functions().activity_disable)(kind) };
    }
    if let Some(enable) = library.functions().activity_enable_driver_api {
        for function in order::functions() {
            // SAFETY: takes numbers.
            unsafe { enable(function.cbid, 0) };
        }
    }
}

/// Chooses the calls that order work; whether all that this version has are.
fn choose(library: &Library) -> bool {
    let Some(enable) = library.functions().activity_enable_driver_api else {
        return false;
    };
    let (mut any, mut all) = (false, true);
    for function in order::functions() {
        // SAFETY: takes numbers. A function that this version does not know is refused.
        let chosen = unsafe { enable(function.cbid, 1) } == result::SUCCESS;
        any |= chosen;
        // One that has a name can be called, and would order work unseen.
        all &= chosen || super::callback_name(library, domain::DRIVER_API, function.cbid).is_none();
    }
    any && all
}

/// What the attributes of a launch say of its order; `None` where the session does not ask.
///
/// # Safety
/// `params` are null, or the parameters of a call of `cuLaunchKernelEx`, and live.
pub(super) unsafe fn attributes_of(params: *const c_void) -> Option<(bool, bool)> {
    if params.is_null() || !READS_ATTRIBUTES.load(Relaxed) {
        return None;
    }
    // SAFETY: the first parameter is the address of a `CUlaunchConfig`, whose fields are where the
    // layout test says; the attributes it points to are as many as it says, and live as it does.
    unsafe {
        let config = params.cast::<*const u8>().read();
        if config.is_null() {
            return None;
        }
        let attributes = config.add(at::ATTRIBUTES).cast::<*const u8>().read();
        let count = config.add(at::ATTRIBUTE_COUNT).cast::<u32>().read();
        let (mut programmatic, mut records_event) = (false, false);
        let count = if attributes.is_null() { 0 } else { count };
        if count > ATTRIBUTES {
            // Nobody asks for so many: whatever this is, its order is not known.
            return None;
        }
        for place in 0..count as usize {
            let attribute = attributes.add(place * at::ATTRIBUTE_SIZE);
            match attribute.add(at::ATTRIBUTE_ID).cast::<u32>().read() {
                launch_attribute::PROGRAMMATIC_STREAM_SERIALIZATION => {
                    programmatic |= attribute.add(at::ATTRIBUTE_VALUE).cast::<i32>().read() != 0;
                }
                launch_attribute::PROGRAMMATIC_EVENT
                | launch_attribute::LAUNCH_COMPLETION_EVENT => records_event = true,
                _ => {}
            }
        }
        Some((programmatic, records_event))
    }
}

/// Records them.
pub(super) fn launched(
    session: u32,
    correlation: u32,
    at: HostNanos,
    (programmatic, records_event): (bool, bool),
) {
    hook::launch_attributes(&LaunchAttributesRead {
        session,
        correlation: CorrelationId(correlation),
        at,
        programmatic,
        records_event,
    });
}
