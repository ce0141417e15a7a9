//! What a stream waits for at its tail, and calls that are still under way.

use super::{Dependency, DependencyKind, Partial, Partials};
use crate::id::HostNanos;

/// How many of the latest ends are kept: where the latest is refuted by an observed overlap, the
/// one before it still holds.
pub(crate) const KEPT: usize = 4;

/// What the next work of a stream has to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Frontier {
    /// The latest proved ends, the latest first.
    latest: [Option<(HostNanos, Dependency)>; KEPT],
    pub(super) partial: Partials,
    /// Since when all that orders it is known: the last clean point.
    pub(super) since: Option<HostNanos>,
}

impl Frontier {
    pub(super) const fn of(partial: Partials) -> Self {
        Self {
            latest: [None; KEPT],
            partial,
            since: None,
        }
    }

    /// Nothing is waited for but until this time.
    pub(super) fn until(at: HostNanos, dependency: Dependency) -> Self {
        let mut frontier = Self::default();
        frontier.wait_for(at, dependency);
        frontier
    }

    pub(super) fn wait_for(&mut self, at: HostNanos, dependency: Dependency) {
        let mut entry = Some((at, dependency));
        for kept in &mut self.latest {
            let later = match (&entry, &kept) {
                (Some((new, _)), Some((known, _))) => new > known,
                (Some(_), None) => true,
                (None, _) => return,
            };
            if later {
                std::mem::swap(kept, &mut entry);
            }
        }
    }

    /// Waits for what another waits for, too.
    pub(super) fn merge(&mut self, other: &Self, kind: Option<DependencyKind>) {
        self.partial = self.partial.and(other.partial);
        self.since = self.since.max(other.since);
        for &(at, dependency) in other.latest.iter().flatten() {
            let kind = kind.unwrap_or(dependency.kind);
            self.wait_for(at, Dependency { kind, ..dependency });
        }
    }

    /// The latest end that is not after this start; adds to the reasons if a later one is, for that
    /// refutes the order.
    pub(super) fn before(
        &self,
        start: HostNanos,
        partial: &mut Partials,
    ) -> Option<(HostNanos, Dependency)> {
        let latest = self.latest.iter().flatten();
        if latest.clone().any(|(at, _)| *at > start) {
            partial.add(Partial::OverlapObserved);
        }
        latest.copied().find(|(at, _)| *at <= start)
    }

    /// The rows whose ends are kept and not after this start.
    pub(super) fn rows_before(&self, start: HostNanos) -> [Option<usize>; KEPT] {
        self.latest
            .map(|of| of.filter(|(at, _)| *at <= start)?.1.row)
    }

    fn apply(&mut self, effect: Effect, exit: HostNanos, overlapped: bool) {
        match effect {
            Effect::Work { end, strict } => {
                if let Some((at, _)) = end.filter(|_| strict && !overlapped) {
                    self.partial = Partials::NONE;
                    self.since = Some(at);
                }
                match end {
                    Some((at, dependency)) => self.wait_for(at, dependency),
                    None => self.partial.add(Partial::TimeMissing),
                }
            }
            Effect::Wait(other) => self.merge(&other, Some(DependencyKind::Event)),
            Effect::Partial(reason) => self.partial.add(reason),
            Effect::Clean => {
                if !overlapped {
                    self.partial = Partials::NONE;
                    self.since = Some(exit);
                }
            }
        }
    }
}

/// What a call does to the tail of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Effect {
    /// Work that ends then. Strict: it waited for all that was before it.
    Work {
        end: Option<(HostNanos, Dependency)>,
        strict: bool,
    },
    /// A wait for what something else waits for.
    Wait(Frontier),
    /// Something of which no more is known.
    Partial(Partial),
    /// All that was before it had ended when it returned.
    Clean,
}

/// A call that has not returned yet.
#[derive(Debug)]
struct Open {
    exit: HostNanos,
    effect: Effect,
    /// Whether it puts something into the queue.
    queues: bool,
    overlapped: bool,
    /// Operations whose set of dependencies it concerns.
    operations: Vec<usize>,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    settled: Frontier,
    open: Vec<Open>,
}

impl Stream {
    pub(super) fn new(partial: Partials, since: Option<HostNanos>) -> Self {
        Self {
            settled: Frontier {
                since,
                ..Frontier::of(partial)
            },
            open: Vec::new(),
        }
    }

    /// What is certain for a call that begins now, and whether others are under way.
    pub(super) fn at(&mut self, now: HostNanos) -> Frontier {
        if self.open.iter().any(|open| open.exit <= now) {
            self.open.sort_by_key(|open| open.exit);
            let done = self.open.partition_point(|open| open.exit <= now);
            for open in self.open.drain(..done) {
                self.settled.apply(open.effect, open.exit, open.overlapped);
            }
        }
        let mut frontier = self.settled;
        if self.open.iter().any(|open| open.queues) {
            frontier.partial.add(Partial::CallsOverlap);
        }
        frontier
    }

    /// A call begins. Operations of calls that overlap with it are named to `overlapped`.
    pub(super) fn begin(
        &mut self,
        exit: HostNanos,
        effect: Effect,
        operations: Vec<usize>,
        overlapped: &mut Vec<usize>,
    ) {
        let queues = !matches!(effect, Effect::Clean);
        let mut overlaps = false;
        for open in &mut self.open {
            overlaps = true;
            open.overlapped |= queues;
            if queues && open.queues {
                overlapped.extend_from_slice(&open.operations);
            }
        }
        self.open.push(Open {
            exit,
            effect,
            queues,
            overlapped: overlaps,
            operations,
        });
    }

    /// Something happened of which no more is known.
    pub(super) fn disturb(&mut self, reason: Partial) {
        self.settled.partial.add(reason);
    }
}
