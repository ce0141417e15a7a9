//! What happens around every driver function: panics are caught, CUPTI traces, the truth is kept.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::abi::{self, RawCall};
use crate::callback_ids;
use crate::clock::{now_ns, spin_ns};
use crate::config::config;
use crate::cupti::activity::{self, Domain};
use crate::cupti::api::{self, Traced, next_correlation_id};
use crate::cupti::records::Overhead;
use crate::faults;
use crate::handles::Handle;
use crate::hosts;
use crate::objects::{FUNCTIONS, Function};
use crate::result;
use crate::threads::{self, ThreadState, add_one};
use crate::truth;

/// What kind of function is called.
#[derive(Clone, Copy)]
pub(crate) enum Asks {
    /// May be called before `cuInit`.
    NothingYet,
    /// Asks for no work.
    Nothing,
    /// Asks for work; the runtime function that would call it.
    Work(api::Function),
}

/// A driver function.
#[derive(Clone, Copy)]
pub(crate) struct Described {
    pub(crate) id: u32,
    pub(crate) asks: Asks,
}

/// One call, as its body sees it.
pub(crate) struct Call<'a> {
    pub(crate) thread: &'a Arc<ThreadState>,
    /// 0 for calls that ask for no work.
    pub(crate) ordinal: u64,
    pub(crate) start_ns: u64,
    /// Of the driver call; 0 where CUPTI gave none.
    pub(crate) correlation_id: u32,
    /// Of the runtime call around it; 0 where there is none.
    pub(crate) runtime_correlation_id: u32,
    /// How many operations the call has asked for.
    pub(crate) operations: Cell<u32>,
    /// How long the call has loaded its function.
    pub(crate) lazy_loading_ns: Cell<u64>,
}

/// A call, as its operations remember it.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) ordinal: u64,
    pub(crate) start_ns: u64,
    /// The id that the device's records carry.
    pub(crate) device_correlation_id: u32,
    pub(crate) runtime_correlation_id: u32,
}

impl Call<'_> {
    pub(crate) fn numbers(&self) -> Numbers {
        Numbers {
            ordinal: self.ordinal,
            start_ns: self.start_ns,
            device_correlation_id: self.device_correlation_id(),
            runtime_correlation_id: self.runtime_correlation_id,
        }
    }

    /// The id that the device's records carry.
    pub(crate) fn device_correlation_id(&self) -> u32 {
        match self.runtime_correlation_id {
            0 => self.correlation_id,
            id => id,
        }
    }
}

static INITIALIZED: AtomicBool = AtomicBool::new(false);
/// Set in a child process after fork, where the device's thread does not exist.
static FORKED: AtomicBool = AtomicBool::new(false);
static PANICS: AtomicU64 = AtomicU64::new(0);
static ORDINALS: AtomicU64 = AtomicU64::new(1);
static OPERATIONS: AtomicU64 = AtomicU64::new(1);

pub(crate) fn set_initialized() {
    INITIALIZED.store(true, Ordering::Release);
}

/// Watches for forks, once.
pub(crate) fn watch_forks() {
    extern "C" fn forked() {
        FORKED.store(true, Ordering::Release);
    }
    static WATCHES: AtomicBool = AtomicBool::new(false);
    if !WATCHES.swap(true, Ordering::AcqRel) {
        // SAFETY: the handler only stores a flag, and this library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    }
}

pub(crate) fn count_panic() {
    PANICS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

pub(crate) fn next_operation() -> u64 {
    OPERATIONS.fetch_add(1, Ordering::Relaxed)
}

/// Runs the body of a driver function.
pub(crate) fn driver(
    described: Described,
    parameters: *const c_void,
    body: impl FnOnce(&Call<'_>) -> Result<(), u32>,
) -> u32 {
    if FORKED.load(Ordering::Acquire) {
        return result::NOT_INITIALIZED;
    }
    if threads::is_device() {
        return result::NOT_PERMITTED;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // Before the thread is known: its ordinal is that of its first turn.
        let _in_call = hosts::begin_call();
        ThreadState::with(|thread| on_thread(thread, described, parameters, body))
    }));
    outcome.unwrap_or_else(|_| {
        count_panic();
        result::UNKNOWN
    })
}

fn on_thread(
    thread: &Arc<ThreadState>,
    described: Described,
    parameters: *const c_void,
    body: impl FnOnce(&Call<'_>) -> Result<(), u32>,
) -> u32 {
    add_one(&thread.counts.api_calls);
    let runtime = match described.asks {
        Asks::Work(runtime) => {
            add_one(&thread.counts.work_calls);
            Some(runtime)
        }
        _ => None,
    };
    let mut call = Call {
        thread,
        ordinal: if runtime.is_some() {
            ORDINALS.fetch_add(1, Ordering::Relaxed)
        } else {
            0
        },
        start_ns: now_ns(),
        correlation_id: 0,
        runtime_correlation_id: 0,
        operations: Cell::new(0),
        lazy_loading_ns: Cell::new(0),
    };
    faults::kill_if_due(call.ordinal);
    let run = |call: &Call<'_>| {
        let model = &config().model;
        let cost_ns = match described.asks {
            Asks::Work(_) => model.call_ns + model.work_call_ns,
            _ => model.call_ns,
        };
        if cost_ns > 0 {
            spin_ns(cost_ns);
        }
        let ready =
            INITIALIZED.load(Ordering::Acquire) || matches!(described.asks, Asks::NothingYet);
        let outcome = if let Some(error) = faults::of_launch(described.id) {
            Err(error)
        } else if ready {
            body(call)
        } else {
            Err(result::NOT_INITIALIZED)
        };
        outcome.err().unwrap_or(result::SUCCESS)
    };
    let code = if activity::is_active() && !threads::is_in_callback() {
        trace(thread, &mut call, described, runtime, parameters, run)
    } else {
        run(&call)
    };
    if runtime.is_some() {
        truth::push_call(RawCall {
            ordinal: call.ordinal,
            function: name(described.id).as_ptr(),
            start_ns: call.start_ns,
            end_ns: now_ns(),
            thread_id: thread.id,
            correlation_id: call.correlation_id,
            runtime_correlation_id: call.runtime_correlation_id,
            callback_id: described.id,
            result: code,
            operations: call.operations.get(),
            thread_ordinal: thread.ordinal,
            padding: 0,
        });
    }
    code
}

/// The runtime call around the driver call, and the driver call.
fn trace(
    thread: &ThreadState,
    call: &mut Call<'_>,
    described: Described,
    runtime: Option<api::Function>,
    parameters: *const c_void,
    run: impl FnOnce(&Call<'_>) -> u32,
) -> u32 {
    let mode = config().runtime_calls;
    let asks_for_work = runtime.is_some();
    let runtime = runtime.filter(|_| mode != abi::RUNTIME_CALLS_OFF);
    if activity::correlates() {
        call.correlation_id = next_correlation_id();
        if runtime.is_some() {
            call.runtime_correlation_id = call.correlation_id;
            if mode == abi::RUNTIME_CALLS_OWN_ID {
                call.correlation_id = next_correlation_id();
            }
        }
    }
    // Held until the callbacks have returned: the name is the module's.
    let launched = launched_function(described.id, parameters);
    let symbol: *const c_char = launched
        .as_ref()
        .map_or(std::ptr::null(), |function| function.module_name.pointer());
    let outer = runtime.map(|function| {
        // The runtime's own parameters are not simulated.
        let parameters = std::ptr::null();
        Traced::enter(
            thread,
            function,
            parameters,
            symbol,
            call.runtime_correlation_id,
        )
    });
    let function = api::Function {
        domain: Domain::Driver,
        id: described.id,
        name: name(described.id),
    };
    let inner = Traced::enter(thread, function, parameters, symbol, call.correlation_id);
    let cost_ns = config().instrumentation_ns;
    if cost_ns > 0 && asks_for_work {
        let overhead = Overhead::begin();
        spin_ns(cost_ns);
        if let Some(overhead) = overhead {
            overhead.instrumentation(thread, call.correlation_id);
        }
    }
    let code = run(call);
    inner.exit(thread, code, asks_for_work);
    if let Some(outer) = outer {
        outer.exit(thread, code, asks_for_work);
    }
    code
}

fn name(id: u32) -> &'static CStr {
    callback_ids::name(Domain::Driver, id).unwrap_or(c"")
}

const LAUNCH: u32 = 307;
const LAUNCH_PER_THREAD: u32 = 442;
const LAUNCH_COOPERATIVE: u32 = 477;
const LAUNCH_COOPERATIVE_PER_THREAD: u32 = 478;
const LAUNCH_EX: u32 = 652;
const LAUNCH_EX_PER_THREAD: u32 = 653;

/// The function that a launch call is about to launch.
fn launched_function(id: u32, parameters: *const c_void) -> Option<Arc<Function>> {
    let at = match id {
        LAUNCH | LAUNCH_PER_THREAD | LAUNCH_COOPERATIVE | LAUNCH_COOPERATIVE_PER_THREAD => 0,
        LAUNCH_EX | LAUNCH_EX_PER_THREAD => 1,
        _ => return None,
    };
    // SAFETY: the parameters of these functions begin with this many pointers before the handle.
    let handle = unsafe { parameters.cast::<Handle>().add(at).read() };
    FUNCTIONS.get(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_is_counted() {
        let described = Described {
            id: 1,
            asks: Asks::NothingYet,
        };
        let before = panics();
        let code = driver(described, std::ptr::null(), |_| panic!("on purpose"));
        assert_eq!((code, panics() - before), (result::UNKNOWN, 1));
        assert_eq!(
            driver(described, std::ptr::null(), |_| Ok(())),
            result::SUCCESS
        );
    }
}
