//! Typed identities. Every one of them is unique within one recording process.

mod epoch;
mod wire;

pub use epoch::{
    Attribution, DETACHED_ID, DetachedReason, EpochId, EpochVersion, LaunchEpoch, MAX_EPOCH_ID,
    MAX_VERSION, PackedEpoch,
};
pub use wire::{
    CorrelationId, HandoffId, HostNanos, ProcessOrdinal, ScopeToken, TaskId, ThreadKey,
    UnwrappedCorrelationId, W3cParent,
};
