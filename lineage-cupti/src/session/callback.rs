//! The callback of driver calls: our own look at the current epoch, as second source beside CUPTI's
//! external correlation records.
//!
//! Also the callback of calls that unload modules, see [`unload`], and of what happens to graphs, see
//! [`graph`].
//!
//! Runs on the launching thread, twice per launch. For a launch it reads two thread-local cells and two clocks
//! and writes one record into the thread's ring; it allocates nothing and locks nothing, and calls
//! nothing of CUPTI's but, for a graph launch, for one id.

use std::cell::Cell;
use std::ffi::c_void;

use lineage_core::hook::{self, CallLeft, CallSnapshot};
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{ApiDomain, OperationsDue};

use super::{explain, graph, self_test, state, unload};
use crate::sys::codes::{self, domain, site};
use crate::sys::layout::callback_data as at;
use crate::work;

/// How deep traced calls nest. The driver does not call its own public functions, so 1 is usual.
const DEPTH: usize = 8;

/// A call that was entered and not left yet.
#[derive(Clone, Copy)]
struct Pending {
    session: u32,
    cbid: u32,
    correlation: u32,
    due: OperationsDue,
    snapshot: CallSnapshot,
}

impl Pending {
    fn left(&self, result: u32, exited: Option<HostNanos>) {
        hook::call_left(
            &self.snapshot,
            &CallLeft {
                domain: ApiDomain::Driver,
                cbid: self.cbid,
                correlation: CorrelationId(self.correlation),
                result,
                due: self.due,
                exited,
            },
        );
    }

    /// For a call whose exit was never seen. What it answered is not known; 0 keeps its operations due.
    fn never_left(&self) {
        self.left(0, None);
    }
}

/// The calls a thread is in, the innermost last. Without a destructor, so that it can be used while
/// the thread's other locals are torn down.
struct Calls {
    depth: Cell<usize>,
    calls: [Cell<Option<Pending>>; DEPTH],
}

thread_local! {
    static CALLS: Calls = const {
        Calls { depth: Cell::new(0), calls: [const { Cell::new(None) }; DEPTH] }
    };
}

impl Calls {
    fn enter(&self, call: Pending) {
        let mut depth = self.depth.get();
        if depth > 0
            && self.calls[0]
                .get()
                .is_none_or(|oldest| oldest.session != call.session)
        {
            // Left over from a session that ended inside them.
            depth = 0;
        }
        if depth == DEPTH {
            // Exits were missed: the oldest will not come any more.
            if let Some(oldest) = self.calls[0].get() {
                oldest.never_left();
            }
            for place in 1..DEPTH {
                self.calls[place - 1].set(self.calls[place].get());
            }
            depth -= 1;
        }
        self.calls[depth].set(Some(call));
        self.depth.set(depth + 1);
    }

    /// The innermost call, if it is of this session.
    fn innermost(&self, session: u32) -> Option<&Cell<Option<Pending>>> {
        let call = &self.calls[self.depth.get().checked_sub(1)?];
        call.get().filter(|call| call.session == session)?;
        Some(call)
    }

    /// Takes the innermost call that is this one. Calls inside it that were not left go with it.
    fn leave(&self, session: u32, cbid: u32, correlation: u32) -> Option<Pending> {
        let depth = self.depth.get();
        let same = |call: &Pending| {
            (call.session, call.cbid, call.correlation) == (session, cbid, correlation)
        };
        let place = (0..depth)
            .rev()
            .find(|&place| self.calls[place].get().as_ref().is_some_and(same))?;
        for inner in place + 1..depth {
            if let Some(inner) = self.calls[inner].get() {
                inner.never_left();
            }
        }
        self.depth.set(place);
        self.calls[place].get()
    }
}

/// `CUpti_CallbackFunc`.
///
/// # Safety
/// Called by CUPTI, with `CUpti_CallbackData` where the domain is one of API calls.
pub(crate) unsafe extern "C" fn api_call(
    _userdata: *mut c_void,
    of: u32,
    cbid: u32,
    data: *const c_void,
) {
    let mode = state::mode();
    if mode == state::OFF || data.is_null() {
        return;
    }
    if of != domain::DRIVER_API {
        // SAFETY: the caller's word.
        return unsafe { other_than_a_call(of, cbid, data) };
    }
    state::guarded((), || {
        if mode == state::PANIC_NEXT {
            panic!("asked to panic by a test");
        }
        // SAFETY: for this domain CUPTI passes its callback data.
        unsafe { driver_call(cbid, data.cast()) };
    });
}

/// # Safety
/// As for [`api_call`].
#[cold]
#[inline(never)]
unsafe fn other_than_a_call(of: u32, cbid: u32, data: *const c_void) {
    if of == domain::RESOURCE {
        // SAFETY: for this domain CUPTI passes its resource data.
        state::guarded((), || unsafe { graph::resource(cbid, data.cast()) });
    }
}

/// # Safety
/// `data` is the `CUpti_CallbackData` of a driver call.
unsafe fn driver_call(cbid: u32, data: *const u8) {
    // SAFETY: offsets and types are those of `CUpti_CallbackData` (layout test), which is not packed.
    let (at_site, correlation) = unsafe {
        (
            data.add(at::CALLBACK_SITE).cast::<u32>().read(),
            data.add(at::CORRELATION_ID).cast::<u32>().read(),
        )
    };
    let session = state::session();
    if at_site == site::ENTER {
        let Some(function) = work::function(ApiDomain::Driver, cbid) else {
            // SAFETY: the caller's word.
            return unsafe { entered_without_work(session, cbid, correlation, data) };
        };
        // SAFETY: as above; while the call is entered its parameters are live, and they are those
        // of the function of this id.
        let due = unsafe {
            let params = data.add(at::FUNCTION_PARAMS).cast::<*const c_void>().read();
            if graph::is_launch(cbid) {
                graph::launch_entered(correlation, params);
            }
            function.work.due_by_parameters(params)
        };
        let snapshot = hook::call_entered();
        if explain::LAUNCHES_WITH_ATTRIBUTES.contains(&cbid) {
            // SAFETY: as above.
            let attributes = unsafe {
                explain::attributes_of(data.add(at::FUNCTION_PARAMS).cast::<*const c_void>().read())
            };
            if let Some(attributes) = attributes {
                explain::launched(session, correlation, snapshot.at, attributes);
            }
        }
        CALLS.with(|calls| {
            calls.enter(Pending {
                session,
                cbid,
                correlation,
                due,
                snapshot,
            });
        });
    } else if at_site == site::EXIT {
        let exited = HostNanos(hook::now());
        let Some(call) = CALLS.with(|calls| calls.leave(session, cbid, correlation)) else {
            // It asks for no work, or was entered before the session.
            // SAFETY: the caller's word.
            return graph::left(session, cbid, correlation, unsafe { result_of(data) });
        };
        // SAFETY: the caller's word.
        let result = unsafe { result_of(data) };
        if graph::is_launch(cbid) {
            let is_launched = result == 0 && call.due != OperationsDue::None;
            graph::launch_left(session, correlation, call.snapshot.at, is_launched);
        }
        call.left(result, Some(exited));
        if call.snapshot.in_boundary {
            self_test::launched_in_boundary(correlation);
        }
    }
}

/// A driver call that asks for no work is entered.
///
/// # Safety
/// `data` is its `CUpti_CallbackData`.
#[cold]
#[inline(never)]
unsafe fn entered_without_work(session: u32, cbid: u32, correlation: u32, data: *const u8) {
    if codes::UNLOADING
        .iter()
        .any(|(unloading, _)| *unloading == cbid)
    {
        unload::entered();
    }
    // SAFETY: the offset is that of `CUpti_CallbackData` (layout test); while the call is entered its
    // parameters are live, and they are those of the function of this id.
    unsafe {
        let params = data.add(at::FUNCTION_PARAMS).cast::<*const c_void>().read();
        graph::entered(session, cbid, correlation, params);
    }
}

/// # Safety
/// `data` is the `CUpti_CallbackData` of a driver call that is left.
#[inline]
unsafe fn result_of(data: *const u8) -> u32 {
    // SAFETY: the offset is that of `CUpti_CallbackData` (layout test); when a driver call is left, this
    // points to its `CUresult`.
    unsafe {
        let result = data.add(at::FUNCTION_RETURN_VALUE).cast::<*const u32>();
        let result = result.read();
        if result.is_null() { 0 } else { result.read() }
    }
}

/// The call for work that this thread is in is captured: no operation of it is due.
pub(super) fn is_captured() {
    CALLS.with(|calls| {
        if let Some(innermost) = calls.innermost(state::session()) {
            let captured = |call| Pending {
                due: OperationsDue::None,
                ..call
            };
            innermost.set(innermost.get().map(captured));
        }
    });
}

/// Correlation id of the call for work that this thread is in.
pub(super) fn correlation() -> Option<u32> {
    CALLS.with(|calls| Some(calls.innermost(state::session())?.get()?.correlation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> Calls {
        Calls {
            depth: Cell::new(0),
            calls: [const { Cell::new(None) }; DEPTH],
        }
    }

    fn call(session: u32, correlation: u32) -> Pending {
        Pending {
            session,
            cbid: 307,
            correlation,
            due: OperationsDue::One,
            snapshot: hook::call_entered(),
        }
    }

    fn left(calls: &Calls, session: u32, correlation: u32) -> Option<u32> {
        calls
            .leave(session, 307, correlation)
            .map(|call| call.correlation)
    }

    #[test]
    fn nested_calls_are_left_from_the_inside_out() {
        let calls = calls();
        calls.enter(call(1, 10));
        calls.enter(call(1, 11));
        assert_eq!(left(&calls, 1, 12), None, "never entered");
        assert_eq!(left(&calls, 1, 11), Some(11));
        assert_eq!(left(&calls, 1, 11), None, "left once");
        assert_eq!(left(&calls, 1, 10), Some(10));
    }

    #[test]
    fn a_call_that_is_left_takes_those_inside_it_along() {
        let calls = calls();
        (10..13).for_each(|id| calls.enter(call(1, id)));
        assert_eq!(left(&calls, 1, 10), Some(10));
        assert_eq!(left(&calls, 1, 12), None);
        assert_eq!(calls.depth.get(), 0);
    }

    #[test]
    fn when_exits_are_missed_the_oldest_make_room() {
        let calls = calls();
        let deep = DEPTH as u32;
        (0..deep + 3).for_each(|id| calls.enter(call(1, id)));
        assert_eq!(calls.depth.get(), DEPTH);
        assert_eq!(left(&calls, 1, 2), None, "the first three are gone");
        assert_eq!(left(&calls, 1, deep + 2), Some(deep + 2));
        assert_eq!(left(&calls, 1, 3), Some(3));
    }

    #[test]
    fn calls_of_a_session_that_ended_inside_them_are_forgotten() {
        let calls = calls();
        calls.enter(call(1, 10));
        calls.enter(call(1, 11));
        assert_eq!(left(&calls, 2, 10), None, "ids may be given anew");
        calls.enter(call(2, 10));
        assert_eq!(calls.depth.get(), 1);
        assert_eq!(left(&calls, 2, 10), Some(10));
    }
}
