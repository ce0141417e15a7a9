//! What can be derived from one process's observations: calls, their operations, their epochs.
//!
//! Nothing here is shared with the correlator. The correlator takes observations one by one, in
//! the order in which they come, and keeps a bounded state; here the whole recording lies open,
//! is sorted and grouped, and looked up by binary search. That the two agree is evidence; that
//! they share no code is why.

mod bindings;
mod calls;
mod epochs;
mod gather;
mod graphs;
mod operations;
mod process;
mod sessions;
mod threads;
mod unwrapping;

pub(crate) use bindings::{CallBinding, Derived};
pub(crate) use calls::LogicalCall;
pub(crate) use epochs::Handoffs;
pub(crate) use gather::gather;
pub(crate) use graphs::{BuiltNode, Replay, Replayed};
pub(crate) use operations::{JoinedOperation, OperationJoin, identity};
pub(crate) use process::{Childless, Orphan, Process};
