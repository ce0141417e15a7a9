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
        match pop(functions) {
            Some(popped) if popped == id.bits() => {}
            Some(foreign) => {
                push(functions, foreign);
                // When the session of the push is over, another tool may well have put its own on
                // top: only in a session of ours is that a fault.
                if token.session == state::session() && state::is_recording() {
                    lineage_core::raw::misuse(MisuseKind::ForeignExternalId, id.unpack(), foreign);
                }
            }
            // Somebody popped what was ours.
            None => {
                if token.session == state::session() && state::is_recording() {
                    lineage_core::raw::misuse(MisuseKind::ForeignExternalId, id.unpack(), 0);
                }
            }
        }
    }
}

fn push(functions: &Functions, id: u64) -> bool {
    // SAFETY: takes numbers only, and works on the calling thread's stack.
    let code =
        unsafe { (functions.activity_push_external_correlation_id)(state::external_kind(), id) };
    code == result::SUCCESS
}

fn pop(functions: &Functions) -> Option<u64> {
    let mut id = 0;
    // SAFETY: `id` is a valid `uint64_t` for the duration of the call.
    let code = unsafe {
        (functions.activity_pop_external_correlation_id)(state::external_kind(), &mut id)
    };
    (code == result::SUCCESS).then_some(id)
}
