//! What was said of epochs before what is held of a recording, as far as work may still belong to them.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::evidence::{Evidence, Why};
use crate::id::{EpochId, HostNanos, LaunchEpoch, ProcessOrdinal};
use crate::observation::{Event, Observation};
use crate::row::{Binding, Row};

/// Versions of one epoch before the last that are kept.
const VERSIONS: u32 = 8;
/// Entries of one epoch beyond which older versions are forgotten.
const MANY: usize = 64;

/// Epochs that were not retired before what is held.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    live: FxHashMap<(ProcessOrdinal, EpochId), Epoch>,
    /// Those that were. What another thread said of one may come later than that.
    retired: FxHashSet<(ProcessOrdinal, EpochId)>,
}

#[derive(Debug, Default)]
struct Epoch {
    declared: bool,
    /// What was said of versions before this one is forgotten.
    oldest: u32,
    said: Vec<Observation>,
}

impl Epochs {
    /// The epoch that an observation is of, if it is of one.
    pub(super) fn epoch_of(event: &Event) -> Option<LaunchEpoch> {
        Some(match event {
            Event::Declared(of) => of.epoch,
            Event::Parented(of) => of.epoch,
            Event::Linked(of) => of.epoch,
            Event::Stepped(of) => of.epoch,
            Event::Marked(of) => of.epoch,
            Event::Sent(of) => of.handoff.epoch,
            Event::Received(of) => of.handoff.epoch,
            Event::Retired(of) => of.epoch,
            _ => return None,
        })
    }

    /// Takes in what is said of an epoch, of which all since then is held.
    pub(super) fn take(&mut self, observation: Observation, since: HostNanos) {
        let Some(epoch) = Self::epoch_of(&observation.event) else {
            return;
        };
        let key = (observation.process, epoch.id);
        if let Event::Retired(of) = &observation.event {
            if of.at < since {
                self.live.remove(&key);
                self.retired.insert(key);
            }
            return;
        }
        if self.retired.contains(&key) {
            return;
        }
        let declared = matches!(observation.event, Event::Declared(_));
        let of = self.live.entry(key).or_default();
        of.declared |= declared;
        of.said.push(observation);
        if of.said.len() > MANY && epoch.version.get() > of.oldest + 2 * VERSIONS {
            of.forget_before(epoch.version.get() - VERSIONS);
        }
    }

    /// Leaves out of a row's life what was before its scope, where what was said of its epoch is not
    /// all held: without it that time would be told wrongly.
    pub(super) fn limit(&self, row: &mut Row) {
        let Binding::Bound(epoch) = row.binding else {
            return;
        };
        let known = self.live.get(&(row.process, epoch.id));
        let known = known.is_some_and(|of| of.declared && epoch.version.get() >= of.oldest);
        if !known {
            let unknown = Evidence::Unknown {
                why: Why::NotVisible,
            };
            row.stages.declared = unknown;
            row.stages.ready = unknown;
        }
    }

    /// What was said of those that were declared in what was read.
    pub(super) fn into_observations(self) -> impl Iterator<Item = Observation> {
        let known = self.live.into_values().filter(|of| of.declared);
        known.flat_map(|of| of.said)
    }
}

impl Epoch {
    fn forget_before(&mut self, version: u32) {
        self.oldest = version;
        self.said.retain(|of| match &of.event {
            Event::Stepped(of) => of.epoch.version.get() >= version,
            Event::Marked(of) => of.epoch.version.get() >= version,
            _ => true,
        });
    }
}
