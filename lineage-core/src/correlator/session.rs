//! One CUPTI session: device records and calls come in here and find their entry.

use std::collections::VecDeque;

use super::calls::{CallRef, Calls, Entry, Kept, Waiting, is_internal};
use super::captured::CapturedCalls;
use super::emit::Outbox;
use super::epochs::{Deciding, Epochs};
use super::graphs::Graphs;
use super::lanes::Lanes;
use super::limits::Limits;
use super::nesting::Same;
use super::threads::{Awaiting, Containment, Threads};
use super::unwrap::{RETIRE_AFTER, Unwrapper, nearest};
use crate::id::{Attribution, CorrelationId, HostNanos, LaunchEpoch, PackedEpoch, ProcessOrdinal};
use crate::observation::{
    ApiDomain, ApiRecord, Call, Extent, ExternalRecord, Flushed, Operation, OperationsDue, Recorder,
};

/// A session with this many device records and no call of ours is an import: then calls are not
/// waited for. A live session says that it has started.
const IMPORT_AFTER: u64 = 4_096;

/// How often old candidates are looked for, in ids.
const RETIRE_EVERY: u64 = 1 << 24;

/// What a session needs beside itself.
pub(super) struct Context<'a> {
    pub(super) process: ProcessOrdinal,
    pub(super) limits: &'a Limits,
    pub(super) epochs: &'a mut Epochs,
    pub(super) threads: &'a mut Threads,
    pub(super) out: &'a mut Outbox,
    /// Flushes of any session of this process.
    pub(super) flushes: u64,
    /// Whether lineage itself recorded anything.
    pub(super) host_evidence: bool,
    /// Whether records of any of its threads are known to be lost.
    pub(super) gaps: bool,
}

impl Context<'_> {
    pub(super) fn launched(&mut self, epoch: LaunchEpoch) {
        let (process, limits, flushes) = (self.process, self.limits, self.flushes);
        let mut deciding = Deciding {
            process,
            limits,
            flushes,
            out: self.out,
        };
        self.epochs.launch(epoch, &mut deciding);
    }

    fn hold(&mut self, epoch: LaunchEpoch) {
        let (process, limits, flushes) = (self.process, self.limits, self.flushes);
        let mut deciding = Deciding {
            process,
            limits,
            flushes,
            out: self.out,
        };
        self.epochs.hold(epoch, &mut deciding);
    }
}

/// Records that no entry was found for.
#[derive(Debug, Default)]
struct Unplaced {
    /// Operations without times, with the count of flushes when they came.
    operations: VecDeque<(Operation, u64)>,
    /// External ids by wire id, in order of arrival.
    externals: VecDeque<(CorrelationId, PackedEpoch)>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u32,
    pub(super) calls: Calls,
    pub(super) lanes: Lanes,
    pub(super) ids: Unwrapper,
    pub(super) graphs: Graphs,
    pub(super) captured: CapturedCalls,
    unplaced: Unplaced,
    /// In order of arrival; these may name entries that are gone or kept otherwise by now.
    pub(super) open: VecDeque<CallRef>,
    pub(super) joined: VecDeque<CallRef>,
    pub(super) lost: VecDeque<CallRef>,
    pub(super) open_count: usize,
    /// Operations of calls that are kept as joined or lost.
    pub(super) kept_operations: usize,
    /// Complete but for what another ring may hold, with the count of flushes by then.
    pub(super) held: VecDeque<(CallRef, u64)>,
    /// Entries made by an operation or an external id, with this session's count of flushes.
    pub(super) callless: VecDeque<(CallRef, u64)>,
    /// The ids between which calls were recorded, and the greatest with an operation.
    recorded: Option<(u64, u64)>,
    newest_operation: Option<u64>,
    /// How far the recording reaches beyond what is given here.
    extent: Option<Extent>,
    /// Whose recording it is, where it is another tool's.
    pub(super) imported: Option<Recorder>,
    pub(super) external_seen: bool,
    started: bool,
    calls_seen: bool,
    pub(super) runtime_seen: bool,
    device_records: u64,
    next_retirement: u64,
    pub(super) ended: bool,
}

impl Session {
    pub(super) fn oldest_open_call(&self) -> Option<HostNanos> {
        let open = self.open.iter().filter_map(|&call| self.calls.at(call));
        open.map(|slot| self.calls.get(slot))
            .filter(|entry| entry.kept == Kept::Open && !entry.is_settled())
            .filter_map(Entry::start)
            .min()
    }

    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            calls: Calls::default(),
            lanes: Lanes::default(),
            ids: Unwrapper::default(),
            graphs: Graphs::default(),
            captured: CapturedCalls::default(),
            unplaced: Unplaced::default(),
            open: VecDeque::new(),
            joined: VecDeque::new(),
            lost: VecDeque::new(),
            open_count: 0,
            kept_operations: 0,
            held: VecDeque::new(),
            callless: VecDeque::new(),
            recorded: None,
            newest_operation: None,
            extent: None,
            imported: None,
            external_seen: false,
            started: false,
            calls_seen: false,
            runtime_seen: false,
            device_records: 0,
            next_retirement: 0,
            ended: false,
        }
    }

    pub(super) fn start(&mut self, external_correlation: Option<bool>) {
        self.started = true;
        self.external_seen |= external_correlation == Some(true);
    }

    /// It is another tool's recording.
    pub(super) fn import(&mut self, recorder: Recorder) {
        self.imported = Some(recorder);
    }

    /// What is given is part of a recording that reaches this far.
    pub(super) fn extend(&mut self, extent: &Extent) {
        self.extent = Some(*extent);
    }

    /// Whether our own record of a call is to be waited for.
    pub(super) fn call_expected(&self) -> bool {
        let may_be_live = self.started || self.device_records < IMPORT_AFTER;
        self.calls_seen || (may_be_live && self.imported.is_none())
    }

    /// Between which ids calls were recorded, as seen from this one.
    pub(super) fn recorded(&self, key: u64) -> Option<(u64, u64)> {
        let whole = self.extent.and_then(|extent| extent.calls);
        let whole = whole.map(|(first, last)| (nearest(first, key), nearest(last, key)));
        match (self.recorded, whole) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (recorded, whole) => recorded.or(whole),
        }
    }

    /// The greatest id with an operation, as seen from this one.
    pub(super) fn newest_operation(&self, key: u64) -> Option<u64> {
        let whole = self.extent.and_then(|extent| extent.operations);
        let whole = whole.map(|(_, last)| nearest(last, key));
        self.newest_operation.max(whole)
    }

    /// Whether the recorder recorded no operation at all.
    pub(super) fn without_operations(&self) -> bool {
        self.newest_operation.is_none()
            && self
                .extent
                .is_some_and(|extent| extent.operations.is_none())
    }

    /// Our own record of a call.
    pub(super) fn call(&mut self, call: &Call, context: &mut Context<'_>) {
        self.calls_seen = true;
        let bound = context.limits.threads;
        context
            .threads
            .of(call.thread, call.entered, bound)
            .launches(call.entered);
        let slot = self.entry_of_call(call.correlation, Some(call.entered), context);
        let slot = match self.same_call(slot, call) {
            Same::Free => slot,
            Same::Duplicate => {
                context.out.totals.duplicates += 1;
                return;
            }
            Same::Outer => {
                if call.api.domain == ApiDomain::Runtime {
                    self.calls.get_mut(slot).surround(call);
                }
                if let Some(epoch) = call.attribution.epoch() {
                    context.launched(epoch);
                }
                return;
            }
            Same::Part => {
                let entry = self.calls.get_mut(slot);
                entry.further_parts += 1;
                entry.add_part(call.entered, call.exited.unwrap_or(call.entered));
                if let Some(epoch) = call.attribution.epoch() {
                    context.launched(epoch);
                }
                return;
            }
            Same::Other => self.replace(slot, context),
        };
        if let Some(epoch) = call.attribution.epoch() {
            context.hold(epoch);
            context.launched(epoch);
        }
        let reference = self.calls.reference(slot);
        let entry = self.calls.get_mut(slot);
        entry.holds_epoch = call.attribution.epoch().is_some();
        entry.host = Some(call.clone());
        if entry.kept == Kept::Joined
            && call.due != OperationsDue::None
            && entry.operations_given == 0
        {
            // CUPTI's record alone had said that it asks for no work.
            self.reopen(slot);
        }
        if call.in_boundary || call.attribution != Attribution::None {
            let awaiting = Awaiting {
                call: reference,
                session: self.number,
                entered: call.entered,
                exited: call.exited.unwrap_or(call.entered),
                task: call.task,
                attribution: call.attribution,
            };
            let bound = context.limits.calls_awaiting_scope;
            let thread = context
                .threads
                .of(call.thread, call.entered, context.limits.threads);
            if thread.await_scope(awaiting, bound) {
                context.out.totals.scope_unchecked += 1;
            }
        }
        self.register(slot, call.thread.tid, context);
        if call.due == OperationsDue::None && call.correlation.0 != 0 {
            self.capture(reference.key, context);
        } else {
            self.changed(slot, context);
        }
    }

    /// CUPTI's record of a call.
    pub(super) fn api(&mut self, api: &ApiRecord, context: &mut Context<'_>) {
        self.device_records += 1;
        if let Some(start) = api.start {
            self.lanes.api(api.tid, start.0, context.limits.threads);
        }
        let slot = self.entry_of_call(api.correlation, api.start.or(api.end), context);
        self.runtime_seen |= api.api.domain == ApiDomain::Runtime;
        let entry = self.calls.get_mut(slot);
        let known = entry.api_of(api.api.domain);
        match known {
            Some(known) if *known == *api => {
                context.out.totals.duplicates += 1;
                return;
            }
            // The driver's own launch says nothing of the call whose id it bears.
            Some(known) if is_internal(api) && !is_internal(known) => return,
            Some(known) if is_internal(known) && !is_internal(api) => *known = api.clone(),
            Some(known) => {
                let first = known.start;
                if self.is_adjacent(slot, api.tid, first, api.start) {
                    // The host's own records count the parts where there are any.
                    let entry = self.calls.get_mut(slot);
                    entry.further_parts += u32::from(entry.host.is_none());
                    if let Some((from, to)) = api.start.zip(api.end.or(api.start)) {
                        entry.add_part(from, to);
                    }
                } else {
                    self.reuse(slot, context);
                }
                return;
            }
            None => *known = Some(api.clone()),
        }
        self.register(slot, api.tid, context);
        self.changed(slot, context);
    }

    /// CUPTI's record of an external id.
    pub(super) fn external(&mut self, external: &ExternalRecord, context: &mut Context<'_>) {
        self.device_records += 1;
        if !external.own_kind {
            context.out.totals.external_of_others += 1;
            return;
        }
        self.external_seen = true;
        let packed = PackedEpoch::from_bits(external.external_id);
        if let Some(epoch) = packed.unpack().epoch() {
            context.launched(epoch);
        }
        let wire = external.correlation;
        if wire.0 == 0 {
            context.out.totals.external_unplaced += 1;
            return;
        }
        let slot = match external.beside {
            Some(at) => {
                let key = self.ids.place(wire, at.0);
                Some(self.entry_of_record(key, context))
            }
            None => match self.calls.candidates(wire, self.ids.newest())[..] {
                [only] => Some(only),
                _ => None,
            },
        };
        match slot {
            Some(slot) => {
                self.add_external(slot, packed, context);
                self.changed(slot, context);
            }
            None => {
                self.unplaced.externals.push_back((wire, packed));
                if self.unplaced.externals.len() > context.limits.unplaced {
                    self.unplaced.externals.pop_front();
                    context.out.totals.external_unplaced += 1;
                    context.out.forget(context.process, 1);
                }
            }
        }
    }

    /// CUPTI's record of an executed activity.
    pub(super) fn operation(&mut self, operation: &Operation, context: &mut Context<'_>) {
        self.device_records += 1;
        if operation.correlation.0 == 0 {
            context.out.totals.operations.add(operation.kind);
            self.give_internal(operation.clone(), context);
            return;
        }
        match operation.start.or(operation.end) {
            Some(at) => {
                let key = self.ids.place(operation.correlation, at.0);
                let slot = self.entry_of_record(key, context);
                self.add_operation(slot, operation, false, context);
            }
            None => {
                if !self.place_timeless(operation, context) {
                    self.unplaced
                        .operations
                        .push_back((operation.clone(), self.lanes.flushes()));
                    if self.unplaced.operations.len() > context.limits.unplaced
                        && let Some((oldest, _)) = self.unplaced.operations.pop_front()
                    {
                        self.give_unplaced(oldest, true, context);
                    }
                }
            }
        }
    }

    /// A scope that contains this call has ended.
    pub(super) fn contained(
        &mut self,
        awaiting: &Awaiting,
        containment: Containment,
        context: &mut Context<'_>,
    ) -> ScopeFor {
        let Some(slot) = self.calls.at(awaiting.call) else {
            return ScopeFor::GivenCall;
        };
        let entry = self.calls.get_mut(slot);
        let given = entry.is_given();
        let known = entry.containment;
        entry.containment = match containment {
            Containment::In(scope) => known.or_inner(scope),
            other => other,
        };
        if given && known == Containment::NotYet {
            return ScopeFor::GivenCall;
        }
        self.changed(slot, context);
        ScopeFor::OpenCall
    }

    /// A flush returned: fences may have moved.
    pub(super) fn flushed(&mut self, flushed: &Flushed, context: &mut Context<'_>) {
        self.retry_timeless(context);
        self.graphs_flushed(context);
        let (threads, operations_by) = self.lanes.flushed(flushed);
        for tid in threads {
            self.fence(tid, context);
        }
        self.fence_callless(operations_by, context);
        self.release_held(context);
    }

    /// The last timeless operations and external ids are decided.
    pub(super) fn end_unplaced(&mut self, context: &mut Context<'_>) {
        for (operation, _) in std::mem::take(&mut self.unplaced.operations) {
            self.give_unplaced(operation, false, context);
        }
        context.out.totals.external_unplaced += self.unplaced.externals.len() as u64;
        self.unplaced.externals.clear();
    }

    /// Where an operation without times lies, as far as that can be said.
    pub(super) fn place_by_newest(&self, wire: CorrelationId) -> u64 {
        self.ids.place_by_newest(wire)
    }

    pub(super) fn retry_timeless(&mut self, context: &mut Context<'_>) {
        for (operation, since) in std::mem::take(&mut self.unplaced.operations) {
            if !self.place_timeless(&operation, context) {
                self.unplaced.operations.push_back((operation, since));
            }
        }
    }

    /// Joins an operation without times if exactly one call can have had it; `false` if none can.
    fn place_timeless(&mut self, operation: &Operation, context: &mut Context<'_>) -> bool {
        let candidates = self
            .calls
            .candidates(operation.correlation, self.ids.newest());
        let Some(&slot) = candidates.first() else {
            return false;
        };
        self.add_operation(slot, operation, candidates.len() > 1, context);
        true
    }

    fn add_operation(
        &mut self,
        slot: u32,
        operation: &Operation,
        ambiguous: bool,
        context: &mut Context<'_>,
    ) {
        let entry = self.calls.get_mut(slot);
        if !entry.is_new(operation) {
            context.out.totals.duplicates += 1;
            return;
        }
        context.out.totals.operations.add(operation.kind);
        let newest = entry.children.iter().copied().max();
        let newest = newest.map_or(entry.key(), |child| child.max(entry.key()));
        self.newest_operation = self.newest_operation.max(Some(newest));
        let had = entry.operations_given as usize + entry.waiting.len();
        let ambiguous = ambiguous || had >= entry.room();
        entry.waiting.push(Waiting {
            operation: operation.clone(),
            supersedes: None,
            ambiguous,
        });
        let reference = self.calls.reference(slot);
        self.changed(slot, context);
        if let Some(slot) = self.calls.at(reference)
            && !self.calls.get(slot).waiting.is_empty()
        {
            self.reopen(slot);
        }
    }

    fn add_external(&mut self, slot: u32, packed: PackedEpoch, context: &mut Context<'_>) {
        let entry = self.calls.get_mut(slot);
        match entry.external {
            // A runtime call and the driver call in it give one each.
            Some(known) if known == packed => {}
            Some(_) => entry.other_external = Some(packed),
            None => {
                entry.external = Some(packed);
                self.check_given(slot, context);
            }
        }
    }

    /// The entry for a record of the call itself; its id and time become known.
    fn entry_of_call(
        &mut self,
        wire: CorrelationId,
        at: Option<HostNanos>,
        context: &mut Context<'_>,
    ) -> u32 {
        if wire.0 == 0 {
            let key = self.calls.key_without_id();
            return self.create(key, context);
        }
        let key = match at {
            Some(at) => {
                let key = self.ids.place(wire, at.0);
                self.ids.note(key, at.0);
                key
            }
            None => {
                let key = self.ids.place_by_newest(wire);
                self.ids.note_timeless(key);
                key
            }
        };
        let (smallest, greatest) = self.recorded.unwrap_or((key, key));
        self.recorded = Some((smallest.min(key), greatest.max(key)));
        if self.ids.newest() >= self.next_retirement {
            self.retire_old(context);
        }
        let slot = match self.calls.find(key) {
            Some(slot) => {
                self.recall_orphans(slot, context);
                slot
            }
            None => self.create(key, context),
        };
        if !self.unplaced.externals.is_empty() {
            let mut found = Vec::new();
            self.unplaced.externals.retain(|(of, packed)| {
                if *of == wire {
                    found.push(*packed);
                }
                *of != wire
            });
            for packed in found {
                self.add_external(slot, packed, context);
            }
        }
        slot
    }

    /// The entry for a record that only carries a call's id.
    pub(super) fn entry_of_record(&mut self, key: u64, context: &mut Context<'_>) -> u32 {
        self.calls.find(key).unwrap_or_else(|| {
            let slot = self.create(key, context);
            let reference = self.calls.reference(slot);
            self.callless.push_back((reference, self.lanes.flushes()));
            slot
        })
    }

    pub(super) fn create(&mut self, key: u64, context: &mut Context<'_>) -> u32 {
        self.make_room(context);
        let slot = self.calls.create(key);
        self.calls.get_mut(slot).captured = self.captured.contains(key);
        self.open.push_back(CallRef { slot, key });
        self.open_count += 1;
        slot
    }

    /// Retires what lies 2^31 ids or more behind the newest: the same wire id may soon return.
    fn retire_old(&mut self, context: &mut Context<'_>) {
        let newest = self.ids.newest();
        self.next_retirement = newest + RETIRE_EVERY;
        for slot in self.calls.slots() {
            let key = self.calls.get(slot).key();
            if key.saturating_add(RETIRE_AFTER - RETIRE_EVERY) <= newest {
                self.evict(slot, context);
            }
        }
    }
}

/// Which calls a scope came for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeFor {
    /// One whose row is still to be given.
    OpenCall,
    /// One whose row was given without its scope.
    GivenCall,
}
