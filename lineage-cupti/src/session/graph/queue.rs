//! What happened to graphs, in one order, until the drain thread takes it.
//!
//! Graphs are built and instantiated rarely and launched often, so a change may take a lock, and a
//! launch may not. A change gets its number and its place under the lock, so the order of the queue is
//! the order of the numbers; a launch reads the newest number, and thereby means every change that
//! happened before it on its own thread, and on any other whose changes it waited for.
//!
//! Numbers begin anew with each session. A change that another session's callback brings late is none
//! of this one's.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lineage_core::id::{Attribution, CorrelationId, HostNanos};
use lineage_core::observation::{GraphChange, GraphEvent, GraphSequence};

/// Changes that may wait to be drained, about 150 bytes each; an edge counts as one. The drain thread
/// is woken when half of them do.
pub(crate) const ROOM: usize = 1 << 16;

/// The number of the newest change.
static NEWEST: AtomicU64 = AtomicU64::new(0);
static QUEUE: Mutex<Queue> = Mutex::new(Queue::new());

/// What a change is given along.
pub(super) struct Happened {
    pub(super) at: HostNanos,
    pub(super) tid: u64,
    pub(super) correlation: Option<CorrelationId>,
    pub(super) attribution: Attribution,
}

struct Queue {
    session: u32,
    newest: u64,
    events: Vec<GraphEvent>,
    used: usize,
    /// How many were lost since the queue was drained.
    lost: u64,
}

impl Queue {
    const fn new() -> Self {
        Self {
            session: 0,
            newest: 0,
            events: Vec::new(),
            used: 0,
            lost: 0,
        }
    }

    /// Keeps a change, or loses it: once one is lost, those that follow are lost with it, so that the
    /// loss has one place in the order. `true` if it is time to drain.
    fn push(&mut self, session: u32, happened: Happened, change: GraphChange) -> bool {
        if session != self.session {
            return false;
        }
        let weight = match &change {
            GraphChange::Edges { edges, .. } => edges.len().max(1),
            _ => 1,
        };
        self.newest += 1;
        if self.lost > 0 || self.used + weight > ROOM {
            self.lost += 1;
            if self.lost == 1 {
                self.events
                    .push(self.event(happened, GraphChange::Lost { count: 1 }));
            }
            return true;
        }
        let was_below = self.used < ROOM / 2;
        self.used += weight;
        self.events.push(self.event(happened, change));
        was_below && self.used >= ROOM / 2
    }

    fn event(&self, happened: Happened, change: GraphChange) -> GraphEvent {
        let Happened {
            at,
            tid,
            correlation,
            attribution,
        } = happened;
        GraphEvent {
            session: self.session,
            sequence: GraphSequence(self.newest),
            at,
            tid,
            correlation,
            attribution,
            change,
        }
    }

    /// All that waits. A loss, the last of them, says how many changes it stands for, and has the
    /// number of the newest.
    fn take(&mut self) -> Vec<GraphEvent> {
        let mut events = std::mem::take(&mut self.events);
        if let (1.., Some(lost)) = (self.lost, events.last_mut()) {
            lost.sequence = GraphSequence(self.newest);
            lost.change = GraphChange::Lost { count: self.lost };
        }
        (self.used, self.lost) = (0, 0);
        events
    }
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Empties the queue for a session that begins, before its callbacks can come.
pub(crate) fn open(session: u32) {
    let mut queue = queue();
    *queue = Queue {
        session,
        ..Queue::new()
    };
    NEWEST.store(0, Release);
}

/// Puts a change into the queue of its session. `true` if it is time to drain.
pub(super) fn push(session: u32, happened: Happened, change: GraphChange) -> bool {
    let mut queue = queue();
    let is_time = queue.push(session, happened, change);
    NEWEST.store(queue.newest, Release);
    is_time
}

/// Takes all that waits.
pub(crate) fn take() -> Vec<GraphEvent> {
    queue().take()
}

/// The number of the newest change.
pub(super) fn newest() -> GraphSequence {
    GraphSequence(NEWEST.load(Acquire))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happened() -> Happened {
        Happened {
            at: HostNanos(1),
            tid: 2,
            correlation: None,
            attribution: Attribution::None,
        }
    }

    fn queue_of(session: u32) -> Queue {
        Queue {
            session,
            ..Queue::new()
        }
    }

    fn numbers(events: &[GraphEvent]) -> Vec<u64> {
        events.iter().map(|event| event.sequence.0).collect()
    }

    const CREATED: GraphChange = GraphChange::GraphCreated { graph: 1 };

    #[test]
    fn changes_are_numbered_in_the_order_of_the_queue() {
        let mut queue = queue_of(3);
        for _ in 0..3 {
            assert!(!queue.push(3, happened(), CREATED));
        }
        assert_eq!(numbers(&queue.take()), [1, 2, 3]);
        queue.push(3, happened(), CREATED);
        assert_eq!(numbers(&queue.take()), [4]);
    }

    #[test]
    fn another_sessions_changes_are_not_taken() {
        let mut queue = queue_of(3);
        queue.push(2, happened(), CREATED);
        assert!(queue.take().is_empty());
        assert_eq!(queue.newest, 0);
    }

    #[test]
    fn what_does_not_fit_is_one_loss_with_a_count_behind_what_did() {
        let mut queue = queue_of(1);
        let woken = (0..ROOM).filter(|_| queue.push(1, happened(), CREATED));
        assert_eq!(woken.count(), 1, "once, when it is half full");
        for _ in 0..5 {
            assert!(queue.push(1, happened(), CREATED));
        }
        let events = queue.take();
        assert_eq!(events.len(), ROOM + 1);
        let last = events.last().map(|event| (event.sequence.0, &event.change));
        let lost = GraphChange::Lost { count: 5 };
        assert_eq!(last, Some((ROOM as u64 + 5, &lost)));
        queue.push(1, happened(), CREATED);
        assert_eq!(numbers(&queue.take()), [ROOM as u64 + 6], "and it goes on");
    }

    #[test]
    fn edges_count_by_their_number() {
        let mut queue = queue_of(1);
        let edge = lineage_core::observation::GraphEdge {
            from: 1,
            to: 2,
            kind: lineage_core::observation::EdgeKind::Unknown,
        };
        let edges = || GraphChange::Edges {
            graph: 1,
            edges: vec![edge; 4096],
            last: false,
        };
        for _ in 0..ROOM / 4096 {
            queue.push(1, happened(), edges());
        }
        assert_eq!(queue.lost, 0);
        queue.push(1, happened(), CREATED);
        assert_eq!(queue.lost, 1);
    }
}
