//! What is known of one epoch until its spans are made.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use lineage_core::id::{HandoffId, HostNanos, LaunchEpoch, W3cParent};
use lineage_core::observation::{LinkKind, RetiredAs};
use opentelemetry::{KeyValue, SpanId, TraceId};

use super::decide::{Detail, Outcome};
use super::operation::Operation;
use super::sums::Sums;

/// Events of one epoch that are kept; further ones are counted, as the SDK's limit has it.
const MAX_EVENTS: usize = 128;
/// Spans that say that they asked for the work, likewise.
const MAX_ASKED_BY: usize = 128;

/// Where a span stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
}

/// Where and by whom an epoch was declared.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) at: HostNanos,
    pub(crate) name: Arc<str>,
    pub(crate) tid: u64,
    pub(crate) task: Option<u64>,
    pub(crate) site: Option<Arc<str>>,
}

/// A member of a batch.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) epoch: LaunchEpoch,
    pub(crate) known: Known,
}

/// What is known of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing is decided yet.
    Waiting,
    /// Where its span is, and how much of its work is exported.
    Decided(Place, Outcome),
    /// Its records were lost.
    Lost,
}

/// A moment of an epoch.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) name: &'static str,
    /// The handoff whose other end is not known yet.
    pub(crate) half_of: Option<HandoffId>,
    pub(crate) at: HostNanos,
    pub(crate) attributes: Vec<KeyValue>,
}

/// Moments of an epoch, as many as are kept.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    pub(crate) kept: Vec<Moment>,
    pub(crate) dropped: u32,
}

impl Moments {
    pub(crate) fn add(&mut self, moment: impl FnOnce() -> Moment) {
        if self.kept.len() < MAX_EVENTS {
            self.kept.push(moment());
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// The half of a handoff that came first.
    pub(crate) fn half_of(&mut self, handoff: HandoffId) -> Option<&mut Moment> {
        let mut kept = self.kept.iter_mut().rev();
        kept.find(|moment| moment.half_of == Some(handoff))
    }

    /// Takes out those before a time, or all.
    pub(crate) fn take_before(&mut self, at: Option<HostNanos>) -> Self {
        let is_before = |moment: &mut Moment| at.is_none_or(|at| moment.at < at);
        Self {
            kept: self.kept.extract_if(.., is_before).collect(),
            dropped: std::mem::take(&mut self.dropped),
        }
    }
}

/// A version of an epoch whose span is not made yet.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) epoch: LaunchEpoch,
    pub(crate) began: HostNanos,
    pub(crate) sums: Sums,
    /// Those whose spans are not made yet.
    pub(crate) operations: Vec<Operation>,
}

/// What the batches that an epoch took part in came to.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Shared {
    pub(crate) sums: Sums,
    pub(crate) share_ns: u64,
    pub(crate) steps: u64,
}

impl Shared {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.sums.merge(&other.sums);
        self.share_ns = self.share_ns.saturating_add(other.share_ns);
        self.steps += other.steps;
    }
}

/// One epoch.
#[derive(Debug)]
pub(crate) struct Epoch {
    pub(crate) declared: Option<Declared>,
    pub(crate) parent: Option<W3cParent>,
    pub(crate) asked_by: Vec<W3cParent>,
    pub(crate) asked_by_dropped: u32,
    /// Whose part it is, or what it continues.
    pub(crate) origin: Option<(LaunchEpoch, LinkKind)>,
    /// The span of its origin, where the origin is gone already.
    pub(crate) adopted: Option<(Place, Outcome)>,
    pub(crate) members: Vec<Member>,
    pub(crate) moments: Moments,
    /// In order of their versions.
    pub(crate) steps: VecDeque<Step>,
    /// Of steps that are not held any more, and of those that are.
    pub(crate) sums: Sums,
    /// Of the forks of it that are over.
    pub(crate) parts: Sums,
    pub(crate) shared: Shared,
    pub(crate) retired: Option<(HostNanos, RetiredAs)>,
    /// Forks of it and batches with it, whose work is not over yet; counted at the top.
    pub(crate) open: u32,
    /// Its own work is over, and that of all that `open` counted.
    pub(crate) complete: bool,
    /// Batches with it whose work is not over yet: they have to find whose part it is.
    pub(crate) in_batches: u32,
    /// Direct parts of it that are held still: their spans need its place.
    pub(crate) live_parts: u32,
    /// What its head said, once it was asked.
    pub(crate) head: Option<Detail>,
    /// Decided at the top.
    pub(crate) decided: Option<Outcome>,
    pub(crate) decided_early: bool,
    pub(crate) late: bool,
    pub(crate) faulty: bool,
    /// Batches that wait for what is decided, each with the member it is about.
    pub(crate) awaited_by: Vec<(u64, u32)>,
    /// Newest version that is known.
    pub(crate) version: u32,
}

impl Epoch {
    pub(crate) fn new() -> Self {
        Self {
            declared: None,
            parent: None,
            asked_by: Vec::new(),
            asked_by_dropped: 0,
            origin: None,
            adopted: None,
            members: Vec::new(),
            moments: Moments::default(),
            steps: VecDeque::new(),
            sums: Sums::default(),
            parts: Sums::default(),
            shared: Shared::default(),
            retired: None,
            open: 0,
            complete: false,
            in_batches: 0,
            live_parts: 0,
            head: None,
            decided: None,
            decided_early: false,
            late: false,
            faulty: false,
            awaited_by: Vec::new(),
            version: 1,
        }
    }

    pub(crate) fn ask(&mut self, span: W3cParent) {
        if self.asked_by.len() < MAX_ASKED_BY {
            self.asked_by.push(span);
        } else {
            self.asked_by_dropped = self.asked_by_dropped.saturating_add(1);
        }
    }

    pub(crate) fn is_batch(&self) -> bool {
        !self.members.is_empty()
    }

    pub(crate) fn name(&self) -> Cow<'static, str> {
        let declared = self.declared.as_ref();
        declared.map_or(Cow::Borrowed("unknown"), |declared| {
            Cow::Owned(declared.name.as_ref().to_owned())
        })
    }

    /// When it ended: when it was let go, or when its last operation did.
    pub(crate) fn end(&self) -> HostNanos {
        let began = self.declared.as_ref().map(|declared| declared.at);
        let retired = self.retired.map(|(at, _)| at);
        let sums = [&self.sums, &self.parts, &self.shared.sums];
        let last = sums.into_iter().filter_map(|sums| sums.last_end).max();
        last.max(retired).max(began).unwrap_or(HostNanos(0))
    }

    /// The step of a version, made if it is not there.
    pub(crate) fn step(&mut self, epoch: LaunchEpoch, began: HostNanos) -> &mut Step {
        let version = epoch.version;
        let at = self
            .steps
            .partition_point(|step| step.epoch.version < version);
        if self.steps.get(at).is_none_or(|step| step.epoch != epoch) {
            let step = Step {
                epoch,
                began,
                sums: Sums::default(),
                operations: Vec::new(),
            };
            self.steps.insert(at, step);
        }
        self.version = self.version.max(version.get());
        &mut self.steps[at]
    }

    /// Roughly what it takes to hold it.
    pub(crate) fn held_bytes(&self) -> usize {
        let steps = self.steps.iter().map(|step| {
            let operations = step.operations.iter().map(Operation::held_bytes);
            size_of::<Step>() + operations.sum::<usize>()
        });
        let moments = self
            .moments
            .kept
            .iter()
            .map(|moment| size_of::<Moment>() + size_of_val(&*moment.attributes));
        size_of::<Self>()
            + size_of_val(&*self.members)
            + size_of_val(&*self.asked_by)
            + steps.sum::<usize>()
            + moments.sum::<usize>()
    }
}
