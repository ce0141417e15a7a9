//! The calls of one CUPTI session: one entry per unwrapped id, with everything that carries it.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::emit::Effect;
use super::graphs::Launch;
use super::threads::Containment;
use super::unwrap::{RETIRE_AFTER, id_of};
use crate::id::{CorrelationId, HostNanos, PackedEpoch, UnwrappedCorrelationId};
use crate::observation::{ActivityKind, ApiDomain, ApiRecord, Call, Operation, OperationsDue};

/// Keys from here on are of calls whose id CUPTI gave as 0, which never joins.
const WITHOUT_ID: u64 = 1 << 63;

/// Operations of one call that are compared one by one; beyond it their set is hashed.
const COMPARED: usize = 16;

/// Whether CUPTI recorded this for a launch that the driver makes for itself (its kind
/// `INTERNAL_LAUNCH_API`): it names no function, and our callback does not see it.
pub(super) fn is_internal(api: &ApiRecord) -> bool {
    let id = &api.api;
    id.domain == ApiDomain::Driver && id.cbid == 0 && id.name.as_deref() == Some("internal launch")
}

/// Names an entry, also after it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallRef {
    pub(super) slot: u32,
    pub(super) key: u64,
}

/// What makes an operation the same as another: its times, and what it ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    kind: ActivityKind,
    device: u32,
    context: u32,
    stream: u32,
    graph_node: Option<u64>,
    start: Option<HostNanos>,
    end: Option<HostNanos>,
}

/// An operation whose row is not given yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) operation: Operation,
    /// A row of it was given already, without its call.
    pub(super) supersedes: Option<Effect>,
    /// It cannot be told which of several calls it belongs to, or the call has all it can have.
    pub(super) ambiguous: bool,
}

/// What becomes of an entry that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kept {
    /// Something is still to come.
    #[default]
    Open,
    /// All has come; kept for duplicates and for the enclosing runtime call.
    Joined,
    /// Given without an operation; kept in case one comes.
    Lost,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    key: u64,
    live: bool,
    pub(super) host: Option<Call>,
    /// CUPTI's own records: of the driver's function, and of the runtime's.
    pub(super) driver: Option<ApiRecord>,
    pub(super) runtime: Option<ApiRecord>,
    pub(super) external: Option<PackedEpoch>,
    /// A second external id of our kind that is not the first.
    pub(super) other_external: Option<PackedEpoch>,
    pub(super) containment: Containment,
    pub(super) waiting: Vec<Waiting>,
    /// Operations that were given without this call, with what their rows counted for.
    pub(super) orphaned: Vec<(Operation, Effect)>,
    seen: Vec<Identity>,
    seen_more: Option<Box<FxHashSet<Identity>>>,
    /// What it launched, if that is a graph.
    pub(super) graph: Option<Box<Launch>>,
    /// The row that said there is no operation.
    pub(super) without: Option<Effect>,
    /// The runtime call this one is nested in, and the driver calls nested in this one.
    pub(super) parent: Option<u64>,
    pub(super) children: Vec<u64>,
    /// Where it lies on its thread's timeline: thread, and start in nanoseconds.
    pub(super) on_timeline: Option<(u64, u64)>,
    pub(super) operations_given: u32,
    pub(super) kept: Kept,
    /// Operations by which it counts among those that are kept.
    pub(super) kept_operations: u32,
    /// Its operation is joined through the call that it is nested in, or that is nested in it.
    pub(super) satisfied: bool,
    pub(super) fenced: bool,
    pub(super) held: bool,
    /// Further records of one domain: a runtime call may make several driver calls, and where ids
    /// are shared they all bear the one.
    pub(super) further_parts: u32,
    /// Between which middles of calls, in nanoseconds, those records lie, and what is known to
    /// surround them beside the runtime's own record.
    parts: Option<(u64, u64)>,
    surrounded: Option<(HostNanos, HostNanos)>,
    /// Two different calls bear its id.
    pub(super) reused: bool,
    /// It was captured: nothing of it runs.
    pub(super) captured: bool,
    pub(super) holds_epoch: bool,
    /// Whether it is among the totals' calls, calls without work, and pending.
    pub(super) counted: bool,
    pub(super) counted_without_work: bool,
    pub(super) pending: bool,
}

impl Entry {
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// Whether it stands for anything: what is forgotten leaves an empty place behind.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Its id for a row.
    pub(super) fn correlation(&self) -> UnwrappedCorrelationId {
        if self.key < WITHOUT_ID {
            id_of(self.key)
        } else {
            UnwrappedCorrelationId(0)
        }
    }

    /// Whether any record of the call itself has come.
    pub(super) fn is_call(&self) -> bool {
        self.host.is_some() || self.driver.is_some() || self.runtime.is_some()
    }

    pub(super) fn api(&self) -> Option<&ApiRecord> {
        self.driver.as_ref().or(self.runtime.as_ref())
    }

    pub(super) fn api_of(&mut self, domain: ApiDomain) -> &mut Option<ApiRecord> {
        match domain {
            ApiDomain::Driver => &mut self.driver,
            ApiDomain::Runtime => &mut self.runtime,
        }
    }

    /// What our callback knows comes before the table by function: it looks at the parameters. That it
    /// was captured comes before either.
    pub(super) fn due(&self) -> Option<OperationsDue> {
        let host = self.host.as_ref().map(|call| call.due);
        let due = host
            .or(self.driver.as_ref().map(|api| api.due))
            .or(self.runtime.as_ref().map(|api| api.due))?;
        Some(if self.captured {
            OperationsDue::None
        } else {
            due
        })
    }

    pub(super) fn asks_for_work(&self) -> bool {
        self.due().is_some_and(|due| due != OperationsDue::None)
    }

    pub(super) fn failed(&self) -> bool {
        let host = self.host.as_ref().map(|call| call.result);
        host.or(self.api().map(|api| api.result))
            .is_some_and(|result| result != 0)
    }

    /// Whether all that is known of the call is that the driver made it for itself.
    pub(super) fn is_internal(&self) -> bool {
        self.host.is_none()
            && self.runtime.is_none()
            && self.driver.as_ref().is_some_and(is_internal)
    }

    /// When it was entered.
    pub(super) fn start(&self) -> Option<HostNanos> {
        let host = self.host.as_ref().map(|call| call.entered);
        host.or(self.api().and_then(|api| api.start))
    }

    /// When it was left, or the last known before that.
    pub(super) fn end(&self) -> Option<HostNanos> {
        let host = self
            .host
            .as_ref()
            .map(|call| call.exited.unwrap_or(call.entered));
        host.or(self.api().and_then(|api| api.end.or(api.start)))
    }

    pub(super) fn is_driver(&self) -> bool {
        self.driver.is_some()
            || self
                .host
                .as_ref()
                .is_some_and(|call| call.api.domain == ApiDomain::Driver)
    }

    /// A runtime call of which no driver record has the same id.
    pub(super) fn is_runtime_only(&self) -> bool {
        let host = self.host.as_ref().map(|call| call.api.domain);
        self.driver.is_none()
            && (host == Some(ApiDomain::Runtime) || (host.is_none() && self.runtime.is_some()))
    }

    /// How many operations its function can have at most.
    pub(super) fn room(&self) -> usize {
        match self.due() {
            Some(OperationsDue::One) => self.children.len().max(1 + self.further_parts as usize),
            _ => usize::MAX,
        }
    }

    /// Notes a further record of one domain, from when to when.
    pub(super) fn add_part(&mut self, from: HostNanos, to: HostNanos) {
        let middle = from.0.midpoint(to.0);
        let known = self.start().zip(self.end());
        let known = known.map_or(middle, |(from, to)| from.0.midpoint(to.0));
        let (first, last) = self.parts.unwrap_or((known, known));
        self.parts = Some((first.min(middle), last.max(middle)));
    }

    /// Notes a runtime call of ours around the driver call of the same id.
    pub(super) fn surround(&mut self, call: &Call) {
        self.surrounded = Some((call.entered, call.exited.unwrap_or(call.entered)));
    }

    /// Whether several records of one domain bear its id, and no runtime call is known to have
    /// made them all.
    pub(super) fn is_doubtful(&self) -> bool {
        let Some((first, last)) = self.parts else {
            return false;
        };
        let runtime = self.runtime.as_ref();
        let recorded = runtime.and_then(|api| api.start.zip(api.end));
        let around = |(from, to): (HostNanos, HostNanos)| from.0 <= first && last <= to.0;
        !(recorded.is_some_and(around) || self.surrounded.is_some_and(around))
    }

    /// Whether a row that stands for this call was given.
    pub(super) fn is_given(&self) -> bool {
        self.operations_given > 0 || self.without.is_some()
    }

    /// Whether a row was given, and its thread's fence has shown that no other is due.
    pub(super) fn is_settled(&self) -> bool {
        self.fenced && (self.is_given() || self.satisfied) && self.waiting.is_empty()
    }

    /// Operations that are remembered to know a duplicate by.
    pub(super) fn remembered(&self) -> u32 {
        let more = self.seen_more.as_ref().map_or(0, |more| more.len());
        u32::try_from(self.seen.len() + more).unwrap_or(u32::MAX)
    }

    /// Notes an operation; `false` if the same one was there before.
    pub(super) fn is_new(&mut self, operation: &Operation) -> bool {
        let identity = Identity {
            kind: operation.kind,
            device: operation.device,
            context: operation.context,
            stream: operation.stream,
            graph_node: operation.graph_node,
            start: operation.start,
            end: operation.end,
        };
        // Without times two operations of one call may well be alike, unless it can have only one.
        let timeless = operation.start.is_none() && operation.end.is_none();
        if timeless && self.due() != Some(OperationsDue::One) {
            return true;
        }
        if let Some(more) = &mut self.seen_more {
            return more.insert(identity);
        }
        if self.seen.contains(&identity) {
            return false;
        }
        self.seen.push(identity);
        if self.seen.len() > COMPARED {
            self.seen_more = Some(Box::new(self.seen.drain(..).collect()));
        }
        true
    }
}

/// Entries by key and by slot.
#[derive(Debug, Default)]
pub(super) struct Calls {
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_key: FxHashMap<u64, u32>,
    without_id: u64,
}

impl Calls {
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// The entry that this names, if it is still there.
    pub(super) fn at(&self, call: CallRef) -> Option<u32> {
        let entry = self.entries.get(call.slot as usize)?;
        (entry.live && entry.key == call.key).then_some(call.slot)
    }

    pub(super) fn reference(&self, slot: u32) -> CallRef {
        let key = self.entries[slot as usize].key;
        CallRef { slot, key }
    }

    pub(super) fn get(&self, slot: u32) -> &Entry {
        &self.entries[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Entry {
        &mut self.entries[slot as usize]
    }

    /// A key that nothing else has, for a call without an id.
    pub(super) fn key_without_id(&mut self) -> u64 {
        self.without_id += 1;
        WITHOUT_ID + self.without_id
    }

    pub(super) fn create(&mut self, key: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            // Bounded by the limits, which are far below 2^32.
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[slot as usize];
        entry.key = key;
        entry.live = true;
        self.by_key.insert(key, slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) -> Entry {
        let entry = std::mem::take(&mut self.entries[slot as usize]);
        // A later call may have taken the key over.
        if self.by_key.get(&entry.key) == Some(&slot) {
            self.by_key.remove(&entry.key);
        }
        self.free.push(slot);
        entry
    }

    pub(super) fn slots(&self) -> Vec<u32> {
        let live = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.live);
        let mut slots: Vec<u32> = live.map(|(slot, _)| slot as u32).collect();
        slots.sort_by_key(|&slot| self.entries[slot as usize].key);
        slots
    }

    /// Entries whose wire id this is and that are not retired, given the newest id.
    pub(super) fn candidates(&self, wire: CorrelationId, newest: u64) -> Vec<u32> {
        let highest = (newest & !0xffff_ffff) | u64::from(wire.0);
        let wrap = 1u64 << 32;
        [
            highest.checked_add(wrap),
            Some(highest),
            highest.checked_sub(wrap),
        ]
        .into_iter()
        .flatten()
        .filter(|key| newest.abs_diff(*key) < RETIRE_AFTER)
        .filter_map(|key| self.find(key))
        .filter(|&slot| self.get(slot).is_call())
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_as_large_as_the_limits_say() {
        assert!(
            std::mem::size_of::<Entry>() <= 768,
            "{}",
            std::mem::size_of::<Entry>()
        );
    }
}
