//! The operations that are under way.

use crate::facts::{Cause, DependencyKind, HostWait, Known, WaitSplit};
use crate::work::Work;

use super::StreamKey;
use super::compute::Cohort;

/// An operation. Keys are never used twice, so that one of an operation that is long over is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationKey {
    index: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In its channel, or a node whose graph has not begun.
    Queued,
    /// Out of its channel, before its engine.
    Issued,
    Running,
    Ended,
}

pub(super) struct Operation<P> {
    pub(super) payload: Option<P>,
    pub(super) work: Work,
    pub(super) stream: StreamKey,
    pub(super) priority: i32,
    pub(super) state: State,
    /// Rises with every submission.
    pub(super) sequence: u64,
    pub(super) facts: Known,
    pub(super) host: HostWait,
    pub(super) push_bytes: u64,
    /// When the device sees it; `u64::MAX` before the doorbell.
    pub(super) visible_ns: u64,
    pub(super) dispatched_ns: u64,
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    /// Dependencies that are not satisfied.
    pub(super) unsatisfied: u32,
    /// The first edge to an operation that depends on this one.
    pub(super) first_edge: u32,
    /// Whether its trigger has fired.
    pub(super) triggered: bool,
    /// The graph launch that it is a node of.
    pub(super) graph: Option<OperationKey>,
    /// For a graph launch: nodes that have not ended.
    pub(super) nodes_left: u32,
    /// For a graph launch: the node that ended last.
    pub(super) node_number: u64,
    /// Whether it is a graph launch.
    pub(super) holds_graph: bool,
    /// Blocks that have no place yet.
    pub(super) blocks_left: u64,
    /// Cohorts that have not ended.
    pub(super) cohorts: u32,
    /// Cohorts whose end is not known yet.
    pub(super) held: Vec<Cohort>,
    /// As dependent of a programmatic launch: its primary has not ended.
    pub(super) primary_runs: bool,
    /// As member of a collective: the others have not all started.
    pub(super) collective_waits: bool,
    /// The time during which the neighbour held up the device, when this reached its engine.
    pub(super) blocked_before_ns: u64,
    pub(super) neighbour_ns: u64,
    /// The time on the engine when it started.
    pub(super) engine_start_ns: u64,
}

impl<P> Operation<P> {
    pub(super) fn is_graph(&self) -> bool {
        self.holds_graph
    }

    /// What stands behind this operation when it has ended: itself, or what a marker waited for.
    pub(super) fn behind(&self) -> (DependencyKind, u64) {
        if self.holds_graph {
            (DependencyKind::None, self.node_number)
        } else if self.facts.number == 0 {
            (self.facts.last_dependency, self.facts.dependency_number)
        } else {
            (DependencyKind::None, self.facts.number)
        }
    }

    /// Splits the time from the call to the start. Each stage begins where the one before ended.
    pub(super) fn split_wait(&self) -> WaitSplit {
        let facts = &self.facts;
        let mut waits = WaitSplit::default();
        let mut at_ns = self.host.called_ns;
        let mut until = |cause: Cause, end_ns: u64| {
            if end_ns > at_ns {
                waits.add(cause, end_ns - at_ns);
                at_ns = end_ns;
            }
        };
        // The host's own share is what its known waits leave.
        let in_call_ns = facts.queued_ns.saturating_sub(self.host.called_ns);
        let queue_full_ns = self.host.queue_full_ns.min(in_call_ns);
        let loading_ns = self.host.lazy_loading_ns.min(in_call_ns - queue_full_ns);
        let host_end_ns = facts.queued_ns - queue_full_ns - loading_ns;
        until(Cause::Host, host_end_ns);
        until(Cause::LazyLoading, host_end_ns + loading_ns);
        until(Cause::QueueFull, facts.queued_ns);
        until(Cause::Doorbell, self.visible_ns);
        until(Cause::Dependency, facts.dependencies_ns);
        until(Cause::Channel, facts.issued_ns);
        until(Cause::Dispatch, self.dispatched_ns);
        let engine_wait_ns = facts.resources_ns.saturating_sub(self.dispatched_ns);
        let neighbour_ns = self.neighbour_ns.min(engine_wait_ns);
        until(Cause::Neighbour, self.dispatched_ns + neighbour_ns);
        let engine = match self.work {
            Work::Copy { .. } => Cause::CopyEngine,
            _ => Cause::Multiprocessors,
        };
        until(engine, facts.resources_ns);
        until(Cause::Simulator, facts.start_ns);
        waits
    }
}

struct Slot<P> {
    generation: u32,
    operation: Option<Box<Operation<P>>>,
}

pub(super) struct Operations<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u32>,
    /// Boxes that can be used again, so that a steady stream of work allocates nothing.
    spare: Vec<Box<Operation<P>>>,
}

/// How many boxes are kept: as many as a full ring holds by default.
const SPARE: usize = 1_024;

impl<P> Default for Operations<P> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
        }
    }
}

impl<P> Operations<P> {
    pub(super) fn insert(&mut self, operation: Operation<P>) -> OperationKey {
        let boxed = match self.spare.pop() {
            Some(mut boxed) => {
                *boxed = operation;
                boxed
            }
            None => Box::new(operation),
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                operation: None,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.operation = Some(boxed);
        OperationKey {
            index,
            generation: slot.generation,
        }
    }

    pub(super) fn get(&self, key: OperationKey) -> Option<&Operation<P>> {
        let slot = self.slots.get(key.index as usize)?;
        slot.operation
            .as_deref()
            .filter(|_| slot.generation == key.generation)
    }

    pub(super) fn get_mut(&mut self, key: OperationKey) -> Option<&mut Operation<P>> {
        let slot = self.slots.get_mut(key.index as usize)?;
        slot.operation
            .as_deref_mut()
            .filter(|_| slot.generation == key.generation)
    }

    /// What is left of an operation.
    pub(super) fn remove(&mut self, key: OperationKey) -> Option<Removed> {
        self.get(key)?;
        let slot = self.slots.get_mut(key.index as usize)?;
        let mut operation = slot.operation.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index);
        let removed = Removed {
            stream: operation.stream,
            is_node: operation.graph.is_some(),
        };
        operation.payload = None;
        if self.spare.len() < SPARE {
            self.spare.push(operation);
        }
        Some(removed)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

pub(super) struct Removed {
    pub(super) stream: StreamKey,
    pub(super) is_node: bool,
}
