//! A replayed operation is bound to the epoch of its *replay*, and its template tells the epoch of its
//! *capture*: through copies, re-instantiation, updates and reuse of ids, or it is unknown and why.

#[path = "../correlator_support/mod.rs"]
mod correlator_support;

mod captured_calls;
mod launches;
mod limits;
mod mismatches;
mod origins;

use correlator_support::graphs::Changes;
use correlator_support::{Run, declared, started};
use lineage_core::observation::Event;

/// The session has started and these epochs are declared.
fn begun(epochs: &[u64]) -> Vec<Event> {
    let declared = epochs.iter().map(|&id| declared(1, id, id));
    [started(1, 0)].into_iter().chain(declared).collect()
}

/// These epochs are declared. The first captured graph 5, of kernels 1 to `kernels`, in the calls from
/// 10 on, and the graph is instantiated as 6.
fn instantiated(epochs: &[u64], kernels: u32) -> (Run, Changes) {
    let mut changes = Changes::from(100);
    let mut run = Run::new();
    let nodes: Vec<u32> = (1..=kernels).collect();
    run.see(begun(epochs));
    run.see(changes.capture(5, kernels, epochs[0], 10));
    run.see(changes.instantiated(5, 6, &nodes));
    (run, changes)
}
