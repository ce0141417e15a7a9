//! The spans of what is decided.

use std::borrow::Cow;

use lineage_core::id::{HostNanos, LaunchEpoch};
use lineage_core::observation::{LinkKind, RetiredAs};
use opentelemetry::trace::SpanId;
use opentelemetry::{KeyValue, StringValue};
use rustc_hash::FxHashSet;

use super::Spans;
use super::build::{self, Draft, context, signed};
use super::decide::{Because, Outcome};
use super::epoch::{Epoch, Known, Moments, Place, Step};
use super::operation::Operation;
use super::sums::Sums;
use super::text::TextKind;
use crate::attributes as names;

impl Spans {
    /// The span of an operation, under the span of its epoch's version.
    pub(super) fn operation(&mut self, operation: &Operation, parent: Place) {
        let place = Place {
            trace: parent.trace,
            span: self.ids.operation(&operation.key),
        };
        let name = match &operation.name {
            Some(name) => self.text(TextKind::KernelName, &name.clone()),
            None => Cow::Borrowed(build::kind_name(operation.kind)),
        };
        let thread_name = self.thread_name(operation.tid).map(StringValue::from);
        let span = build::operation(
            &self.frame,
            operation,
            place,
            parent.span,
            name,
            thread_name,
        );
        self.out.push(span);
        self.counts.operations += 1;
    }

    /// One whose epoch's spans are made already.
    pub(super) fn operation_of_past(&mut self, operation: &Operation) {
        let of = operation.epoch;
        let Some(&gone) = self.past.get(of.id) else {
            return;
        };
        if gone.lost {
            self.counts.operations_without_epoch += 1;
            return;
        }
        match gone.outcome {
            Outcome::Full(_) => self.operation(operation, gone.place(of, self.ids)),
            Outcome::Sums => self.counts.operations_summed += 1,
            Outcome::Nothing => self.counts.operations_not_sampled += 1,
        }
    }

    /// One version of an epoch is over: that of a batch has a span of its own and one for each
    /// member, a later one of another epoch has a span, and a first one is the epoch's own.
    pub(super) fn step(&mut self, id: u64, step: &Step, next: Option<HostNanos>, outcome: Outcome) {
        let Some(epoch) = self.epochs.get_mut(&id) else {
            return;
        };
        let ended = next.or(epoch.retired.map(|(at, _)| at));
        let end = step.sums.last_end.or(ended).unwrap_or(step.began);
        let end = end.max(step.began);
        if epoch.is_batch() {
            // What happened while it was the newest.
            let moments = epoch.moments.take_before(next);
            self.step_of_batch(id, step, end, outcome, &moments);
        } else if step.epoch.version.get() > 1 {
            let name = epoch.name();
            let place = self.place(step.epoch);
            let parent = self.ids.epoch(LaunchEpoch::first(step.epoch.id));
            let name = Cow::Owned(format!("{} step", name));
            let mut draft = Draft::new(&self.frame, place, parent, name, step.began, end);
            draft.set(names::SPAN, "step");
            draft.epoch(step.epoch);
            set_sums(&mut draft, &step.sums);
            self.out.push(draft.finish());
            self.counts.steps += 1;
        }
    }

    fn step_of_batch(
        &mut self,
        id: u64,
        step: &Step,
        end: HostNanos,
        outcome: Outcome,
        moments: &Moments,
    ) {
        let place = self.place(step.epoch);
        let Some(epoch) = self.epochs.get(&id) else {
            return;
        };
        let parent = epoch.parent.map(|parent| SpanId::from(parent.span_id));
        let mut draft = Draft::new(
            &self.frame,
            place,
            parent.unwrap_or(SpanId::INVALID),
            epoch.name(),
            step.began,
            end,
        );
        if parent.is_some() {
            draft = draft.remote_parent();
        }
        draft.set(names::SPAN, "batch");
        draft.epoch(step.epoch);
        draft.set(names::DETAIL, why_in_full(epoch).unwrap_or(outcome).name());
        draft.number(names::MEMBERS, epoch.members.len() as u64);
        set_sums(&mut draft, &step.sums);
        if let Some(declared) = &epoch.declared
            && let Some(site) = &declared.site
        {
            draft.set(names::EPOCH_SITE, StringValue::from(site.clone()));
        }
        let version = step.epoch.version.get();
        if let Some(previous) = LaunchEpoch::from_numbers(id, version - 1) {
            let previous = self.place(previous);
            draft.link(context(previous, true, false), "previous_step", Vec::new());
        }
        let mut unknown = 0;
        let mut participations = Vec::new();
        // A member that is named twice takes part once.
        let mut seen = FxHashSet::default();
        for member in &epoch.members {
            if !seen.insert(member.epoch) {
                continue;
            }
            let Known::Decided(own, outcome) = member.known else {
                unknown += 1;
                continue;
            };
            let about = epoch_attributes(names::EPOCH_ID, names::EPOCH_VERSION, member.epoch);
            let in_full = outcome.is_full();
            let target = if in_full {
                let span = self.ids.participation(step.epoch, member.epoch);
                participations.push((member.epoch, own, span));
                Place { span, ..own }
            } else {
                own
            };
            let sampled = outcome != Outcome::Nothing;
            draft.link(context(target, sampled, false), "member", about);
        }
        draft.count(names::MEMBERS_UNKNOWN, unknown);
        draft.moments(&self.frame, moments);
        let mut made = vec![draft.finish()];
        self.counts.steps += 1;
        for (member, own, span) in participations {
            let here = Place { span, ..own };
            let name = Cow::Borrowed("batch participation");
            let mut draft = Draft::new(&self.frame, here, own.span, name, step.began, end);
            draft.set(names::SPAN, "participation");
            draft.epoch(member);
            let about = epoch_attributes(names::BATCH_ID, names::BATCH_VERSION, step.epoch);
            draft.number(names::BATCH_ID, step.epoch.id.get());
            draft.number(names::BATCH_VERSION, u64::from(version));
            draft.number(names::MEMBERS, epoch.members.len() as u64);
            draft.link(context(place, true, false), "batch", about);
            made.push(draft.finish());
            self.counts.participations += 1;
        }
        self.out.extend(made);
    }

    /// The span of an epoch that is no batch, which has no other spans to come.
    pub(super) fn request(
        &mut self,
        first: LaunchEpoch,
        epoch: Epoch,
        place: Place,
        outcome: Outcome,
    ) {
        let Some(declared) = &epoch.declared else {
            return;
        };
        let end = epoch.end();
        let inner = match (epoch.adopted, epoch.origin) {
            (Some((origin, _)), _) => Some(origin.span),
            (None, Some((origin, _))) => Some(self.ids.epoch(origin)),
            (None, None) => None,
        };
        let outer = epoch.parent.map(|parent| SpanId::from(parent.span_id));
        let parent = inner.or(outer).unwrap_or(SpanId::INVALID);
        let start = declared.at;
        let mut draft = Draft::new(&self.frame, place, parent, epoch.name(), start, end);
        if inner.is_none() && outer.is_some() {
            draft = draft.remote_parent();
        }
        draft.set(
            names::SPAN,
            if inner.is_some() { "part" } else { "request" },
        );
        draft.number(names::EPOCH_ID, first.id.get());
        draft.number(names::EPOCH_VERSION, u64::from(epoch.version));
        draft.set(names::DETAIL, outcome.name());
        if epoch.decided_early {
            draft.set(names::DECIDED_EARLY, true);
        }
        let ended = match epoch.retired {
            None => "live",
            Some((_, RetiredAs::Cancelled)) => "cancelled",
            Some(_) => "done",
        };
        draft.set(names::EPOCH_ENDED, ended);
        if let Some(site) = &declared.site {
            draft.set(names::EPOCH_SITE, StringValue::from(site.clone()));
        }
        draft.number(names::THREAD_ID, declared.tid);
        if let Some(name) = self.thread_name(declared.tid) {
            draft.set(names::THREAD_NAME, StringValue::from(name));
        }
        if let Some(task) = declared.task {
            draft.number(names::TASK_ID, task);
        }
        set_sums(&mut draft, &epoch.sums);
        let shared = &epoch.shared;
        draft.count(names::SHARED_STEPS, shared.steps);
        draft.count(names::SHARED_OPERATIONS, shared.sums.operations);
        draft.count(names::SHARED_DEVICE_TIME_NS, shared.sums.device_time_ns);
        draft.count(names::SHARE_DEVICE_TIME_NS, shared.share_ns);
        draft.count(names::SHARED_FAULT_COUNT, shared.sums.faults);
        if inner.is_some()
            && let Some(outer) = epoch.parent
        {
            // It has one parent, and this span asked for it all the same.
            draft.asked_by(&[outer], 0);
        }
        draft.asked_by(&epoch.asked_by, epoch.asked_by_dropped);
        if let Some((origin, LinkKind::Continues)) = epoch.origin {
            let origin = Place {
                trace: place.trace,
                span: self.ids.epoch(origin),
            };
            draft.link(context(origin, true, false), "previous_step", Vec::new());
        }
        draft.moments(&self.frame, &epoch.moments);
        self.out.push(draft.finish());
        self.counts.requests += 1;
    }
}

/// The reason that says most: that a member was late, slow or faulty, before that one was sampled.
fn why_in_full(batch: &Epoch) -> Option<Outcome> {
    let outcomes = batch
        .members
        .iter()
        .filter_map(|member| match member.known {
            Known::Decided(_, outcome) if outcome.is_full() => Some(outcome),
            _ => None,
        });
    outcomes.min_by_key(|outcome| *outcome == Outcome::Full(Because::Sampled))
}

fn epoch_attributes(id: &'static str, version: &'static str, of: LaunchEpoch) -> Vec<KeyValue> {
    vec![
        KeyValue::new(id, signed(of.id.get())),
        KeyValue::new(version, i64::from(of.version.get())),
    ]
}

fn set_sums(draft: &mut Draft, sums: &Sums) {
    draft.number(names::OPERATIONS, sums.operations);
    draft.count(names::WITHOUT_TIMES, sums.without_times);
    draft.count(names::DEVICE_TIME_NS, sums.device_time_ns);
    draft.count(names::BYTES, sums.bytes);
    draft.count(names::LAUNCH_DELAY_MAX_NS, sums.launch_delay_max_ns);
    draft.count(names::LAUNCH_DELAY_SUM_NS, sums.launch_delay_sum_ns);
    draft.count(names::FAULT_COUNT, sums.faults);
}
