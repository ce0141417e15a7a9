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
    /// More was waited for than is kept, and none of those that are kept is known to hide it.
    pub(super) more: bool,
    /// Among what was waited for is an event of which no record says when it happened: not before what
    /// was before its record had ended, and later where its channel was held up.
    pub(super) untimed: bool,
    pub(super) partial: Partials,
    /// Since when all that orders it is known: the last clean point.
    pub(super) since: Option<HostNanos>,
}

impl Frontier {
    pub(super) const fn of(partial: Partials) -> Self {
        Self {
            latest: [None; KEPT],
            more: false,
            untimed: false,
            partial,
            since: None,
        }
    }

    /// An event that the device came to at this time, recorded behind what `before` waits for: that is
    /// over by then. Which work it was is named where all of it is known.
    pub(super) fn event(at: HostNanos, before: Option<&Self>) -> Self {
        let mut frontier = Self::default();
        let kind = DependencyKind::Event;
        frontier.more = before.is_some_and(|before| before.more);
        let before = before.filter(|before| before.partial.is_empty());
        for &(end, dependency) in before.iter().flat_map(|of| of.latest.iter().flatten()) {
            frontier.wait_for(end.min(at), Dependency { kind, ..dependency });
        }
        let row = frontier.latest[0].and_then(|(_, last)| last.row);
        frontier.wait_for(at, Dependency { kind, row });
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
        self.more |= entry.is_some();
    }

    /// Waits for what another waits for, too.
    pub(super) fn merge(&mut self, other: &Self, kind: Option<DependencyKind>) {
        self.partial = self.partial.and(other.partial);
        self.since = self.since.max(other.since);
        self.more |= other.more;
        self.untimed |= other.untimed;
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

    /// The latest end that is known.
    pub(super) fn last(&self) -> Option<HostNanos> {
        self.latest[0].map(|(at, _)| at)
    }

    /// The rows whose ends are kept and not after this start.
    pub(super) fn rows_before(&self, start: HostNanos) -> [Option<usize>; KEPT] {
        self.latest
            .map(|of| of.filter(|(at, _)| *at <= start)?.1.row)
    }

    fn apply(&mut self, effect: Effect, exit: HostNanos, overlapped: bool) {
        match effect {
            Effect::Work { end, strict } => {
                let hides = end.filter(|_| strict && !overlapped);
                if let Some((at, _)) = hides {
                    self.partial = Partials::NONE;
                    self.since = Some(at);
                }
                match end {
                    Some((at, dependency)) => self.wait_for(at, dependency),
                    None => self.partial.add(Partial::TimeMissing),
                }
                self.more &= hides.is_none();
                self.untimed &= hides.is_none();
            }
            Effect::Wait(other) => self.merge(&other, Some(DependencyKind::Event)),
            Effect::Untimed => self.untimed = true,
            Effect::Partial(reason) => self.partial.add(reason),
            Effect::Clean => {
                if !overlapped {
                    self.partial = Partials::NONE;
                    self.more = false;
                    self.untimed = false;
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
    /// A wait for something that happened nobody knows when, and not before what is waited for anyway.
    Untimed,
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
        let untimed = |open: &Open| matches!(open.effect, Effect::Untimed);
        frontier.untimed |= self.open.iter().any(untimed);
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
        let queues = !matches!(effect, Effect::Clean | Effect::Untimed);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(row: usize) -> Dependency {
        Dependency {
            kind: DependencyKind::SameStream,
            row: Some(row),
        }
    }

    /// Four are kept: a fifth is not forgotten until something is seen that had waited for all.
    #[test]
    fn that_more_was_waited_for_than_is_kept_is_known() {
        let mut frontier = Frontier::default();
        for (row, at) in [(1, 500), (2, 100), (3, 400), (4, 300)] {
            frontier.wait_for(HostNanos(at), behind(row));
        }
        assert!(!frontier.more);
        frontier.wait_for(HostNanos(200), behind(5));
        assert!(frontier.more);
        let rows = frontier.rows_before(HostNanos(1_000));
        assert_eq!(rows, [Some(1), Some(3), Some(4), Some(5)]);
        let work = |strict| Effect::Work {
            end: Some((HostNanos(900), behind(6))),
            strict,
        };
        frontier.apply(work(false), HostNanos(600), false);
        assert!(frontier.more);
        frontier.apply(work(true), HostNanos(600), false);
        assert!(!frontier.more);
    }

    /// What was before an event is named only where all of it is known.
    #[test]
    fn an_event_names_what_was_before_it_where_that_is_known() {
        let mut before = Frontier::default();
        before.wait_for(HostNanos(500), behind(1));
        let row_of = |event: Frontier| event.latest[0].map(|(at, of)| (at.0, of.row));
        let event = Frontier::event(HostNanos(510), Some(&before));
        assert_eq!(row_of(event), Some((510, Some(1))));
        before.partial.add(Partial::HostFunction);
        let event = Frontier::event(HostNanos(510), Some(&before));
        assert_eq!(row_of(event), Some((510, None)));
        assert!(event.partial.is_empty(), "when it was over is known");
        assert_eq!(
            row_of(Frontier::event(HostNanos(510), None)),
            Some((510, None))
        );
    }
}
