//! The private interface: registration and truth, under one exported name that is neither `cu*`
//! nor `cupti*`.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use crate::abi::{
    self, RawCall, RawConfig, RawCounts, RawKernel, RawOperation, RawStackDepth, SimInterface,
};
use crate::cupti::{buffers, functions};
use crate::{call, clock, config, device, hosts, kernels, memory, threads, truth};

/// The bytes by which the loader knows a library of its own build.
#[used]
static MARKER: [u8; 36] = abi::MARKER;

static INTERFACE: SimInterface = SimInterface {
    configure,
    register_kernel,
    each_operation,
    each_call,
    each_stack,
    counts,
    drain_truth,
    clear_truth,
    now_ns,
    spend_ns,
    open_seats,
    take_seat,
    away,
    cupti: &functions::TABLE,
};

#[unsafe(no_mangle)]
extern "C" fn lineage_sim_interface() -> *const SimInterface {
    &INTERFACE
}

/// Runs the body; a panic is counted and answered with `otherwise`.
fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        call::count_panic();
        otherwise
    })
}

/// # Safety
///
/// `new` must be valid to read.
unsafe extern "C" fn configure(new: *const RawConfig) -> i32 {
    guarded(abi::INVALID_ARGUMENT, || {
        // SAFETY: by this function's own contract.
        if !config::configure(unsafe { &*new }) {
            return abi::DIFFERENT_CONFIGURATION;
        }
        if device::start() {
            abi::OK
        } else {
            abi::NO_THREAD
        }
    })
}

/// # Safety
///
/// As [`RawKernel`] says.
unsafe extern "C" fn register_kernel(kernel: *const RawKernel) -> i32 {
    // SAFETY: by this function's own contract.
    guarded(abi::INVALID_ARGUMENT, || unsafe {
        kernels::register(&*kernel)
    })
}

/// # Safety
///
/// `take` must be callable with `user`.
unsafe extern "C" fn each_operation(
    take: unsafe extern "C" fn(*const RawOperation, *mut c_void),
    user: *mut c_void,
) {
    guarded((), || {
        for operation in &truth::operations() {
            // SAFETY: by this function's own contract.
            unsafe { take(operation, user) };
        }
    });
}

/// # Safety
///
/// `take` must be callable with `user`.
unsafe extern "C" fn each_call(
    take: unsafe extern "C" fn(*const RawCall, *mut c_void),
    user: *mut c_void,
) {
    guarded((), || {
        for call in &truth::calls() {
            // SAFETY: by this function's own contract.
            unsafe { take(call, user) };
        }
    });
}

/// # Safety
///
/// `take` must be callable with `user`.
unsafe extern "C" fn each_stack(
    take: unsafe extern "C" fn(*const RawStackDepth, *mut c_void),
    user: *mut c_void,
) {
    guarded((), || {
        for thread in threads::live() {
            for (kind, depth) in thread.depths() {
                let depth = RawStackDepth {
                    thread_id: thread.id,
                    kind,
                    depth,
                };
                // SAFETY: by this function's own contract.
                unsafe { take(&depth, user) };
            }
        }
    });
}

/// # Safety
///
/// `counts` must be valid to be written.
unsafe extern "C" fn counts(counts: *mut RawCounts) {
    guarded((), || {
        let totals = threads::totals();
        let (operations_completed, operations_pending) = device::totals();
        let (operations_not_kept, calls_not_kept) = truth::not_kept();
        let (allocations, allocated_bytes) = memory::totals();
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let all = RawCounts {
            api_calls: read(&totals.api_calls),
            work_calls: read(&totals.work_calls),
            operations_completed,
            operations_pending,
            pushes: read(&totals.pushes),
            pops: read(&totals.pops),
            pops_of_empty_stacks: read(&totals.pops_of_empty_stacks),
            records_written: read(&buffers::WRITTEN),
            records_dropped: read(&buffers::DROPPED_IN_ALL),
            buffers_requested: read(&buffers::REQUESTED),
            buffers_completed: read(&buffers::COMPLETED),
            panics_caught: call::panics(),
            operations_not_kept,
            calls_not_kept,
            allocations,
            allocated_bytes,
        };
        // SAFETY: by this function's own contract.
        unsafe { counts.write(all) };
    });
}

/// # Safety
///
/// Both functions must be callable with their pointers.
unsafe extern "C" fn drain_truth(
    take_operation: unsafe extern "C" fn(*const RawOperation, *mut c_void),
    operations_user: *mut c_void,
    take_call: unsafe extern "C" fn(*const RawCall, *mut c_void),
    calls_user: *mut c_void,
) {
    guarded((), || {
        let (operations, calls) = truth::drain();
        for operation in &operations {
            // SAFETY: by this function's own contract.
            unsafe { take_operation(operation, operations_user) };
        }
        for call in &calls {
            // SAFETY: by this function's own contract.
            unsafe { take_call(call, calls_user) };
        }
    });
}

unsafe extern "C" fn clear_truth() {
    guarded((), truth::clear);
}

unsafe extern "C" fn now_ns() -> u64 {
    clock::now_ns()
}

unsafe extern "C" fn spend_ns(duration_ns: u64) {
    guarded((), || clock::spin_ns(duration_ns));
}

unsafe extern "C" fn open_seats(count: u32) -> i64 {
    guarded(-1, || {
        if config::is_virtual() {
            hosts::open_seats(count)
        } else {
            -1
        }
    })
}

unsafe extern "C" fn take_seat(number: i64) {
    guarded((), || hosts::take_seat(number));
}

unsafe extern "C" fn away(is_away: i32) {
    guarded((), || hosts::away(is_away == 1));
}
