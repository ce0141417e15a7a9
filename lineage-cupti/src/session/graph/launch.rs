//! Launches of graphs: which executable graph, and what had happened to graphs by then.

use std::cell::Cell;
use std::ffi::c_void;

use lineage_core::hook::{self, GraphLaunched};
use lineage_core::id::{CorrelationId, HostNanos};

use super::{GraphSequence, Handle, Ids, queue};
use crate::graph::FIRST_PARAMETER;

/// Whether this callback id is that of `cuGraphLaunch` (514) or `cuGraphLaunch_ptsz` (515). Every launch
/// asks, so it is one comparison.
#[inline]
pub(crate) const fn is_launch(cbid: u32) -> bool {
    cbid & !1 == 514
}

/// A launch that was entered.
#[derive(Clone, Copy)]
struct Launching {
    correlation: u32,
    exec: u32,
    sequence: GraphSequence,
}

thread_local! {
    // The driver does not call its own public functions, so one place does. A launch inside another
    // would take it, and the outer one be without its graph: unknown, and not another's.
    static LAUNCHING: Cell<Option<Launching>> = const { Cell::new(None) };
}

/// A graph launch is entered: reads one number and asks CUPTI for one id.
///
/// # Safety
/// `params` are null, or the parameters of a call that [is a launch](is_launch), and live.
#[cold]
#[inline(never)]
pub(crate) unsafe fn launch_entered(correlation: u32, params: *const c_void) {
    let sequence = queue::newest();
    let launching = Ids::get().filter(|_| !params.is_null()).and_then(|ids| {
        // SAFETY: not null, so by the caller's word the parameters, the first of which is the
        // executable graph (layout test). The driver is about to be given the same handle: one that is
        // not alive is as undefined there.
        let exec = unsafe {
            let exec = params.cast::<u8>().add(FIRST_PARAMETER).cast::<Handle>();
            ids.exec(exec.read())?
        };
        Some(Launching {
            correlation,
            exec,
            sequence,
        })
    });
    LAUNCHING.with(|place| place.set(launching));
}

/// A graph launch is left. One that was captured or refused is no launch.
#[cold]
#[inline(never)]
pub(crate) fn launch_left(session: u32, correlation: u32, at: HostNanos, is_launched: bool) {
    let launching = LAUNCHING.with(Cell::take);
    let is_this = |launching: &Launching| launching.correlation == correlation && is_launched;
    if let Some(launching) = launching.filter(is_this) {
        hook::graph_launched(&GraphLaunched {
            session,
            correlation: CorrelationId(correlation),
            at,
            exec: launching.exec,
            sequence: launching.sequence,
        });
    }
}

#[cfg(test)]
mod tests {
    use lineage_core::observation::ApiDomain;

    use super::*;

    #[test]
    fn graph_launches_are_told_by_their_ids() {
        let all = crate::work::functions(ApiDomain::Driver);
        for function in all {
            let is_one = function.name.starts_with("cuGraphLaunch");
            assert_eq!(is_launch(function.cbid), is_one, "{}", function.name);
        }
        assert_eq!(all.iter().filter(|it| is_launch(it.cbid)).count(), 2);
    }
}
