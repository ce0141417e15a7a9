//! External correlation: what a launch boundary does on CUPTI's stack of its thread.

use lineage_core::hook::{BoundaryHook, PushToken};
use lineage_core::id::PackedEpoch;
use lineage_core::observation::MisuseKind;

use super::state;
use crate::sys::Functions;
use crate::sys::codes::result;

/// The hook that the core calls at launch boundaries, for every session of the process.
pub(crate) struct ExternalIds;

/// The one hook.
pub(crate) static HOOK: ExternalIds = ExternalIds;

impl BoundaryHook for ExternalIds {
    fn push(&self, id: PackedEpoch) -> PushToken {
        if !state::is_recording() {
            return PushToken::NOT_PUSHED;
        }
        let Some(functions) = state::functions() else {
            return PushToken::NOT_PUSHED;
        };
        PushToken {
            session: state::session(),
            pushed: push(functions, id.bits()),
        }
    }

    fn pop(&self, token: PushToken, id: PackedEpoch) {
        if !token.pushed || state::is_forked_child() {
            return;
        }
        let Some(functions) = state::functions() else {
            return;
        };
        // When the session of the push is over, another tool may well have CUPTI: only in a session
        // of ours is what we find on our stack a fault.
        let report = |found: u64| {
            if token.session == state::session() && state::is_recording() {
                lineage_core::raw::misuse(MisuseKind::ForeignExternalId, id.unpack(), found);
            }
        };
        match pop(functions) {
            Ok(popped) if popped == id.bits() => {}
            Ok(foreign) => {
                push(functions, foreign);
                report(foreign);
            }
            // Somebody popped what was ours.
            Err(result::QUEUE_EMPTY) => report(0),
            Err(_) => {}
        }
    }
}

fn push(functions: &Functions, id: u64) -> bool {
    // SAFETY: takes numbers only, and works on the calling thread's stack.
    let code =
        unsafe { (functions.activity_push_external_correlation_id)(state::external_kind(), id) };
    code == result::SUCCESS
}

/// The id that was on top, or CUPTI's code.
fn pop(functions: &Functions) -> Result<u64, u32> {
    let mut id = 0;
    // SAFETY: `id` is a valid `uint64_t` for the duration of the call.
    let code = unsafe {
        (functions.activity_pop_external_correlation_id)(state::external_kind(), &mut id)
    };
    match code {
        result::SUCCESS => Ok(id),
        code => Err(code),
    }
}
