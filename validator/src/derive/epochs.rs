//! What is known of each epoch: its declaration, versions, links, handoffs and end.

use std::collections::BTreeSet;

use lineage_core::id::{EpochId, HandoffId, HostNanos, LaunchEpoch, TaskId, ThreadKey};
use lineage_core::observation::{
    Abandoned, Declared, LinkKind, Linked, Mark, Received, Retired, RetiredAs, Sent,
};

use super::gather::{Gathered, Seen};

/// All epochs of a process, each list sorted by what it is looked up by.
pub(crate) struct Epochs<'a> {
    declared: Vec<&'a Declared>,
    /// Every version that is known to exist, and since when.
    versions: Vec<(LaunchEpoch, HostNanos)>,
    retired: Vec<Seen<'a, Retired>>,
    cancelled: Vec<EpochId>,
    by_later: Vec<&'a Linked>,
    by_earlier: Vec<&'a Linked>,
    arrivals: Vec<Arrival>,
    handoffs: Vec<Handoffs<'a>>,
    /// Handoffs by the epoch they were sent with.
    handoffs_of: Vec<(EpochId, usize)>,
    /// When the first epoch of the process was declared.
    pub(crate) first_declaration: Option<HostNanos>,
}

/// An epoch came to a thread: it was declared, received or stepped there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    id: EpochId,
    at: HostNanos,
    thread: ThreadKey,
    task: Option<TaskId>,
}

/// All records of one handoff.
#[derive(Debug)]
pub(crate) struct Handoffs<'a> {
    pub(crate) id: HandoffId,
    pub(crate) sent: Option<&'a Sent>,
    pub(crate) received: Vec<&'a Received>,
    pub(crate) abandoned: Option<&'a Abandoned>,
}

impl Handoffs<'_> {
    /// Whether neither end of it was seen.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.received.is_empty() && self.abandoned.is_none()
    }
}

/// The part of a sorted list whose key is this.
fn range<T, K: Ord>(sorted: &[T], key: K, of: impl Fn(&T) -> K) -> &[T] {
    let from = sorted.partition_point(|item| of(item) < key);
    let rest = &sorted[from..];
    &rest[..rest.partition_point(|item| of(item) == key)]
}

impl<'a> Epochs<'a> {
    pub(crate) fn new(gathered: &Gathered<'a>) -> Self {
        let mut declared: Vec<&Declared> = gathered.declared.iter().map(|seen| seen.what).collect();
        let first_declaration = declared.iter().map(|declared| declared.at).min();
        declared.sort_by_key(|declared| (declared.epoch.id, declared.at));

        let mut versions: Vec<(LaunchEpoch, HostNanos)> = Vec::new();
        versions.extend(
            declared
                .iter()
                .map(|declared| (declared.epoch, declared.at)),
        );
        versions.extend(
            gathered
                .stepped
                .iter()
                .map(|seen| (seen.what.epoch, seen.what.at)),
        );
        versions.extend(
            gathered
                .linked
                .iter()
                .map(|seen| (seen.what.epoch, seen.what.at)),
        );
        // The earliest record of a version counts.
        versions.sort_unstable();
        versions.dedup_by_key(|(epoch, _)| *epoch);

        let mut retired = gathered.retired.clone();
        retired.sort_by_key(|seen| (seen.what.epoch.id, seen.what.at));

        let mut cancelled: Vec<EpochId> = Vec::new();
        let marks = gathered.marked.iter().map(|seen| seen.what);
        cancelled.extend(
            marks
                .filter(|marked| marked.mark == Mark::Cancelled)
                .map(|m| m.epoch.id),
        );
        let ends = gathered.retired.iter().map(|seen| seen.what);
        cancelled.extend(
            ends.filter(|end| end.how == RetiredAs::Cancelled)
                .map(|end| end.epoch.id),
        );
        cancelled.sort_unstable();

        let mut by_later: Vec<&Linked> = gathered.linked.iter().map(|seen| seen.what).collect();
        let mut by_earlier = by_later.clone();
        by_later.sort_by_key(|linked| (linked.epoch.id, linked.at));
        by_earlier.sort_by_key(|linked| (linked.from.id, linked.at));

        let mut arrivals: Vec<Arrival> = Vec::new();
        arrivals.extend(declared.iter().map(|declared| Arrival {
            id: declared.epoch.id,
            at: declared.at,
            thread: declared.thread,
            task: declared.task,
        }));
        arrivals.extend(gathered.received.iter().map(|seen| Arrival {
            id: seen.what.handoff.epoch.id,
            at: seen.what.at,
            thread: seen.what.thread,
            task: seen.what.task,
        }));
        // Who steps it has it in hand.
        arrivals.extend(gathered.stepped.iter().map(|seen| Arrival {
            id: seen.what.epoch.id,
            at: seen.what.at,
            thread: seen.what.thread,
            task: None,
        }));
        arrivals.sort_unstable();

        let handoffs = handoffs(gathered);
        let sent = handoffs.iter().enumerate();
        let sent = sent.filter_map(|(at, handoff)| Some((handoff.sent?.handoff.epoch.id, at)));
        let mut handoffs_of: Vec<(EpochId, usize)> = sent.collect();
        handoffs_of.sort_unstable();

        Self {
            declared,
            versions,
            retired,
            cancelled,
            by_later,
            by_earlier,
            arrivals,
            handoffs,
            handoffs_of,
            first_declaration,
        }
    }

    /// The declaration of an epoch.
    pub(crate) fn declaration(&self, id: EpochId) -> Option<&'a Declared> {
        range(&self.declared, id, |declared| declared.epoch.id)
            .first()
            .copied()
    }

    /// Since when this version exists; `None` if nothing says that it does.
    pub(crate) fn born(&self, epoch: LaunchEpoch) -> Option<HostNanos> {
        let found = range(&self.versions, epoch, |(epoch, _)| *epoch);
        found.first().map(|(_, at)| *at)
    }

    /// The end of an epoch.
    pub(crate) fn retirement(&self, id: EpochId) -> Option<Seen<'a, Retired>> {
        range(&self.retired, id, |seen| seen.what.epoch.id)
            .first()
            .copied()
    }

    /// All ends of epochs.
    pub(crate) fn retirements(&self) -> &[Seen<'a, Retired>] {
        &self.retired
    }

    pub(crate) fn was_cancelled(&self, id: EpochId) -> bool {
        self.cancelled.binary_search(&id).is_ok()
    }

    /// The edges from this epoch to earlier ones.
    pub(crate) fn parents(&self, id: EpochId) -> &[&'a Linked] {
        range(&self.by_later, id, |linked| linked.epoch.id)
    }

    /// The edges from this epoch to those in which its work went on: forks, batches, a
    /// continuation.
    pub(crate) fn successors(&self, id: EpochId) -> impl Iterator<Item = &'a Linked> {
        let later = range(&self.by_earlier, id, |linked| linked.from.id).iter();
        later.copied().filter(move |linked| linked.epoch.id != id)
    }

    /// These epochs, and all whose work went on in one of them; sorted.
    pub(crate) fn with_forerunners(&self, epochs: Vec<EpochId>) -> Vec<EpochId> {
        let (mut found, mut next) = (BTreeSet::new(), epochs);
        while let Some(id) = next.pop() {
            if found.insert(id) {
                next.extend(self.parents(id).iter().map(|linked| linked.from.id));
            }
        }
        found.into_iter().collect()
    }

    /// Epochs whose work went on in one that lives; sorted.
    pub(crate) fn under_way(&self) -> Vec<EpochId> {
        let later = self.by_later.iter().map(|linked| linked.epoch.id);
        let alive = later.filter(|&id| {
            // A continuation ends for both.
            let mut successors = self.successors(id);
            self.retirement(id).is_none()
                && !successors.any(|linked| linked.kind == LinkKind::Continues)
        });
        let mut alive: Vec<EpochId> = alive.collect();
        alive.dedup();
        self.with_forerunners(alive)
    }

    /// All handoffs, in order of their numbers.
    pub(crate) fn handoffs(&self) -> &[Handoffs<'a>] {
        &self.handoffs
    }

    /// The handoffs of an epoch, in order of their numbers.
    pub(crate) fn handoffs_of(
        &self,
        id: EpochId,
    ) -> impl DoubleEndedIterator<Item = &Handoffs<'a>> {
        let of_epoch = range(&self.handoffs_of, id, |(epoch, _)| *epoch);
        of_epoch.iter().filter_map(|(_, at)| self.handoffs.get(*at))
    }

    /// Whether recorded edges bring this epoch to a thread, or to a task, by then; `None` if the
    /// calling task is not known, since our own callback did not see the call, and so may be one
    /// that the epoch was brought to.
    pub(crate) fn reached(
        &self,
        id: EpochId,
        thread: Option<ThreadKey>,
        task: Option<TaskId>,
        task_known: bool,
        by: HostNanos,
    ) -> Option<bool> {
        let (mut id, mut tasks_involved) = (id, false);
        // A continuation lives where the epoch did that it continues. Chains of them are short;
        // the bound keeps a hostile recording from making a circle of them.
        for _ in 0..64 {
            for arrival in range(&self.arrivals, id, |arrival| arrival.id) {
                if arrival.at > by {
                    break;
                }
                let same_thread = thread.is_some_and(|thread| thread == arrival.thread);
                let same_task = arrival.task.is_some() && arrival.task == task;
                if same_thread || same_task {
                    return Some(true);
                }
                tasks_involved |= arrival.task.is_some();
            }
            let continued = self.parents(id).iter().find(|linked| {
                linked.kind == LinkKind::Continues && linked.from.id != linked.epoch.id
            });
            match continued {
                Some(linked) => id = linked.from.id,
                None => break,
            }
        }
        let cannot_be_said = thread.is_none() || (tasks_involved && !task_known);
        (!cannot_be_said).then_some(false)
    }
}

fn handoffs<'a>(gathered: &Gathered<'a>) -> Vec<Handoffs<'a>> {
    #[derive(Clone, Copy)]
    enum Record<'a> {
        Sent(&'a Sent),
        Received(&'a Received),
        Abandoned(&'a Abandoned),
    }
    let mut records: Vec<(HandoffId, Record<'a>)> = Vec::new();
    let sent = gathered.sent.iter().map(|seen| seen.what);
    records.extend(sent.map(|sent| (sent.handoff.id, Record::Sent(sent))));
    let received = gathered.received.iter().map(|seen| seen.what);
    records.extend(received.map(|received| (received.handoff.id, Record::Received(received))));
    let abandoned = gathered.abandoned.iter().map(|seen| seen.what);
    records.extend(abandoned.map(|abandoned| (abandoned.handoff.id, Record::Abandoned(abandoned))));
    records.sort_by_key(|(id, _)| *id);

    let mut handoffs: Vec<Handoffs<'a>> = Vec::new();
    for (id, record) in records {
        if handoffs.last().is_none_or(|last| last.id != id) {
            handoffs.push(Handoffs {
                id,
                sent: None,
                received: Vec::new(),
                abandoned: None,
            });
        }
        if let Some(handoff) = handoffs.last_mut() {
            match record {
                Record::Sent(sent) => handoff.sent = handoff.sent.or(Some(sent)),
                Record::Received(received) => handoff.received.push(received),
                Record::Abandoned(abandoned) => {
                    handoff.abandoned = handoff.abandoned.or(Some(abandoned));
                }
            }
        }
    }
    handoffs
}
