//! Whose part an epoch is, which batches it is in, and so where its span stands.

use lineage_core::id::{EpochId, LaunchEpoch};
use lineage_core::observation::{LinkKind, Linked};
use opentelemetry::KeyValue;

use super::Spans;
use super::epoch::{Epoch, Known, Member, Moment, Place};
use crate::attributes as names;

/// Origins that are followed upwards: forks of forks are rarely three deep.
const MAX_DEPTH: usize = 1_000;

impl Spans {
    pub(super) fn link(&mut self, linked: &Linked) {
        let Linked {
            epoch, from, kind, ..
        } = *linked;
        match kind {
            LinkKind::Retry => self.moment(epoch, || Moment {
                name: names::EVENT_RETRY,
                half_of: None,
                at: linked.at,
                attributes: vec![KeyValue::new(
                    names::EPOCH_VERSION,
                    i64::from(epoch.version.get()),
                )],
            }),
            LinkKind::Merge => self.join_batch(epoch.id, from),
            LinkKind::Continues => {
                // A batch goes on with the members it has.
                let before = self.epochs.get(&from.id.get());
                let members: Vec<LaunchEpoch> = before
                    .into_iter()
                    .flat_map(|before| &before.members)
                    .map(|member| member.epoch)
                    .collect();
                if members.is_empty() {
                    self.part(epoch.id, from, kind);
                }
                for member in members {
                    self.join_batch(epoch.id, member);
                }
            }
            _ => self.part(epoch.id, from, kind),
        }
    }

    /// `member` takes part in the batch.
    fn join_batch(&mut self, batch: EpochId, member: LaunchEpoch) {
        if batch == member.id || self.epoch(batch).is_none() {
            return;
        }
        let known = match self.past.get(member.id) {
            Some(past) => past.known(member, self.ids),
            None => {
                self.epoch(member.id);
                let top = self.top(member.id.get());
                self.epochs.get(&top).map_or(Known::Lost, |top| {
                    top.decided.map_or(Known::Waiting, |outcome| {
                        Known::Decided(self.place(member), outcome)
                    })
                })
            }
        };
        let Some(epoch) = self.epoch(batch) else {
            return;
        };
        let at = u32::try_from(epoch.members.len()).unwrap_or(u32::MAX);
        epoch.members.push(Member {
            epoch: member,
            known,
        });
        if let Some(member) = self.epochs.get_mut(&member.id.get()) {
            member.in_batches += 1;
        }
        let top = self.top(member.id.get());
        if let Some(top) = self.epochs.get_mut(&top) {
            top.open += 1;
            if known == Known::Waiting {
                top.awaited_by.push((batch.get(), at));
            }
        }
    }

    /// `part` is a fork of `of`, or goes on with its work.
    fn part(&mut self, part: EpochId, of: LaunchEpoch, kind: LinkKind) {
        if part == of.id {
            return;
        }
        let adopted = self.past.get(of.id).map(|past| {
            let place = past.place(of, self.ids);
            (place, past.outcome)
        });
        if adopted.is_none() {
            self.epoch(of.id);
        }
        let Some(epoch) = self.epoch(part) else {
            return;
        };
        if epoch.origin.is_some() || epoch.adopted.is_some() || epoch.is_batch() {
            return;
        }
        if let Some((place, outcome)) = adopted {
            epoch.adopted = Some((place, outcome));
            epoch.decided = Some(outcome);
            return;
        }
        epoch.origin = Some((of, kind));
        // What was counted here before it was known whose part this is.
        let open = std::mem::take(&mut epoch.open);
        let awaited_by = std::mem::take(&mut epoch.awaited_by);
        if let Some(origin) = self.epochs.get_mut(&of.id.get()) {
            origin.live_parts += 1;
        }
        let top = self.top(part.get());
        if let Some(top) = self.epochs.get_mut(&top) {
            top.open += 1 + open;
            top.awaited_by.extend(awaited_by);
        }
    }

    /// The epoch that this one is a part of, over every fork; itself if it is none's.
    pub(super) fn top(&self, id: u64) -> u64 {
        let mut top = id;
        for _ in 0..MAX_DEPTH {
            let Some(epoch) = self.epochs.get(&top) else {
                break;
            };
            match epoch.origin {
                Some((origin, _)) if !epoch.is_batch() => top = origin.id.get(),
                _ => break,
            }
        }
        top
    }

    /// Where the span of an epoch that is not over yet is.
    pub(super) fn place(&self, of: LaunchEpoch) -> Place {
        let mut trace_of = of;
        for _ in 0..MAX_DEPTH {
            let Some(epoch) = self.epochs.get(&trace_of.id.get()) else {
                break;
            };
            if let Some((place, _)) = epoch.adopted {
                return Place {
                    trace: place.trace,
                    span: self.ids.epoch(of),
                };
            }
            match epoch.origin {
                Some((origin, _)) if !epoch.is_batch() => trace_of = origin,
                _ => break,
            }
        }
        let epoch = self.epochs.get(&trace_of.id.get());
        let parent = epoch.and_then(|epoch| epoch.parent);
        let trace = match parent {
            Some(parent) => parent.trace_id.into(),
            None if epoch.is_some_and(Epoch::is_batch) => self.ids.trace(trace_of),
            None => self.ids.trace(LaunchEpoch::first(trace_of.id)),
        };
        Place {
            trace,
            span: self.ids.epoch(of),
        }
    }
}
