//! Which operation waits for which.

use crate::facts::DependencyKind;
use crate::work::Work;

use super::Model;
use super::operations::{Operation, OperationKey, State};

/// The end of a list of edges.
pub(super) const NO_EDGE: u32 = u32::MAX;

/// The moment of an operation that another waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// All its blocks have begun.
    Start,
    /// All its blocks have triggered.
    Trigger,
    /// It has ended.
    End,
}

#[derive(Clone, Copy)]
struct Edge {
    to: OperationKey,
    moment: Moment,
    kind: DependencyKind,
    /// It holds no start: the dependent waits inside for it.
    inside: bool,
    next: u32,
}

/// All edges, in lists that begin at the operations. Their places are used again.
#[derive(Default)]
pub(super) struct Edges {
    all: Vec<Edge>,
    free: Vec<u32>,
}

impl Edges {
    fn add(&mut self, edge: Edge) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = edge;
                at
            }
            None => {
                self.all.push(edge);
                self.all.len() as u32 - 1
            }
        }
    }
}

impl<P> Model<P> {
    /// `key` starts only after this moment of `on`, if that is still to come.
    pub(super) fn depend(
        &mut self,
        key: OperationKey,
        on: OperationKey,
        moment: Moment,
        kind: DependencyKind,
    ) {
        if self.add_edge(key, on, moment, kind, false)
            && let Some(operation) = self.operations.get_mut(key)
        {
            operation.unsatisfied += 1;
        }
    }

    /// `key` waits inside for the end of `on`, if that is still to come.
    pub(super) fn wait_inside(&mut self, key: OperationKey, on: OperationKey) {
        if self.add_edge(key, on, Moment::End, DependencyKind::Programmatic, true)
            && let Some(operation) = self.operations.get_mut(key)
        {
            operation.primary_runs = true;
        }
    }

    fn add_edge(
        &mut self,
        key: OperationKey,
        on: OperationKey,
        moment: Moment,
        kind: DependencyKind,
        inside: bool,
    ) -> bool {
        let Some(before) = self.operations.get_mut(on) else {
            return false;
        };
        let is_past = match moment {
            Moment::Start => before.state == State::Running && before.blocks_left == 0,
            Moment::Trigger => before.triggered,
            Moment::End => false,
        };
        if before.state == State::Ended || is_past {
            return false;
        }
        before.first_edge = self.edges.add(Edge {
            to: key,
            moment,
            kind,
            inside,
            next: before.first_edge,
        });
        true
    }

    /// Behind the operation before it in its stream; or, launched as programmatic dependent, behind that kernel's trigger.
    pub(super) fn depend_on_predecessor(&mut self, key: OperationKey, last: OperationKey) {
        let is_kernel = |operation: &Operation<P>| {
            matches!(operation.work, Work::Kernel { .. }) && !operation.is_graph()
        };
        let may_overlap = self.operations.get(key).is_some_and(|operation| {
            matches!(operation.work, Work::Kernel { programmatic, .. } if programmatic.may_overlap)
        });
        let primary_is_kernel = self.operations.get(last).is_some_and(is_kernel);
        if may_overlap && primary_is_kernel && self.this_one_overlaps() {
            self.depend(key, last, Moment::Trigger, DependencyKind::Programmatic);
            self.wait_inside(key, last);
        } else {
            self.depend(key, last, Moment::End, DependencyKind::Stream);
        }
    }

    /// Draws, by the seed, whether the next programmatic launch overlaps.
    pub(super) fn this_one_overlaps(&mut self) -> bool {
        self.programmatic += 1;
        // The finaliser of a 64-bit mixer: every bit of the input moves every bit of the output.
        let mut drawn = self.settings.seed ^ self.programmatic.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        drawn ^= drawn >> 31;
        drawn % 100 < u64::from(self.settings.programmatic_overlap_percent)
    }

    /// A moment of an operation has come: those that waited for it are told, in the order in which they were made.
    pub(super) fn satisfy(&mut self, of: OperationKey, moment: Moment) {
        let Some(operation) = self.operations.get_mut(of) else {
            return;
        };
        if moment == Moment::Trigger {
            operation.triggered = true;
        }
        let (through, number) = operation.behind();
        let is_graph = operation.is_graph();
        // The list is from the newest to the oldest: turned round, and cut where edges stay.
        let mut at = std::mem::replace(&mut operation.first_edge, NO_EDGE);
        let mut due = NO_EDGE;
        let mut kept = NO_EDGE;
        while at != NO_EDGE {
            let edge = &mut self.edges.all[at as usize];
            let next = edge.next;
            // An end stands for every moment that never came.
            let list = if edge.moment == moment || moment == Moment::End {
                &mut due
            } else {
                &mut kept
            };
            edge.next = std::mem::replace(list, at);
            at = next;
        }
        // What is kept was turned round, too; back to newest first.
        let mut back = NO_EDGE;
        while kept != NO_EDGE {
            let next = self.edges.all[kept as usize].next;
            self.edges.all[kept as usize].next = std::mem::replace(&mut back, kept);
            kept = next;
        }
        if let Some(operation) = self.operations.get_mut(of) {
            operation.first_edge = back;
        }
        while due != NO_EDGE {
            let edge = self.edges.all[due as usize];
            self.edges.free.push(due);
            due = edge.next;
            if edge.inside {
                self.primary_ended(edge.to);
            } else if is_graph && moment == Moment::Start {
                self.node_released(edge.to, of);
            } else {
                // Through a marker, what stands behind it is named, as far as the stream alone led here; through a node that waited for a value, that.
                let kind = match (edge.kind, through) {
                    (kind, DependencyKind::None) => kind,
                    (DependencyKind::Stream, through) => through,
                    (DependencyKind::GraphEdge, DependencyKind::Semaphore) => through,
                    (kind, _) => kind,
                };
                self.satisfied(edge.to, kind, number);
            }
        }
    }

    /// One dependency less.
    pub(super) fn satisfied(&mut self, key: OperationKey, kind: DependencyKind, number: u64) {
        let now_ns = self.now_ns;
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.unsatisfied -= 1;
        operation.facts.dependencies_ns = now_ns;
        operation.facts.last_dependency = kind;
        operation.facts.dependency_number = number;
        if operation.unsatisfied > 0 {
            return;
        }
        if operation.graph.is_some() {
            self.issue(key);
        } else {
            let stream = operation.stream;
            self.touch_stream(stream);
        }
    }
}
