//! A replayed operation is bound to the epoch of its *replay*, and its template tells the epoch of its
//! *capture*: through copies, re-instantiation, updates and reuse of ids, or it is unknown and why.

#[path = "../correlator_support/mod.rs"]
mod correlator_support;

mod captured_calls;
mod launches;
mod limits;
mod mismatches;
mod origins;

use correlator_support::{declared, started};
use lineage_core::observation::Event;

/// The session has started and these epochs are declared.
fn begun(epochs: &[u64]) -> Vec<Event> {
    let declared = epochs.iter().map(|&id| declared(1, id, id));
    [started(1, 0)].into_iter().chain(declared).collect()
}
