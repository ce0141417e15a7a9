//! Takes an importer's records.

use std::sync::Arc;

use lineage_core::id::{CorrelationId, ProcessOrdinal};
use lineage_core::observation::{Extent, Recorder};
use rustc_hash::FxHashSet;

use crate::captures::Captures;
use crate::entry::{Entry, SESSION};
use crate::error::CollectError;
use crate::function::{Function, function};
use crate::given::{
    Activity, ApiCall, DeviceDescription, EventRecord, GraphNode, OsCall, ProcessDescription,
    Range, RangeKind, Scheduled, Synchronization,
};
use crate::holdings::{Holdings, ProcessHoldings, TOLD_APART};
use crate::names::{NameId, Names};
use crate::recording::Recording;
use crate::request::request_in;
use crate::settings::{EpochsFrom, Settings};
use crate::skip::Skip;
use crate::spool::{Spool, by_correlation, by_time};
use lineage_core::observation::{ActivityKind, OperationsDue, SynchronizationKind};

/// Notes that are kept; more are counted.
const NOTES: usize = 64;

/// Kinds of other records that are told apart, and of devices that are described.
const KINDS: usize = 1_024;

/// Processes of one recording; what belongs to more of them is skipped.
const PROCESSES: usize = 1 << 12;

/// Takes the records of one recording, in any order.
#[derive(Debug)]
pub struct Collector {
    settings: Settings,
    names: Names,
    /// Of each name that calls have, what its function is.
    functions: Vec<Option<Function>>,
    processes: Vec<ProcessState>,
    holdings: Holdings,
    requests: FxHashSet<(ProcessOrdinal, NameId)>,
    base_ns: u64,
    calls: Spool,
    ranges: Spool,
    timed: Spool,
}

/// What is kept of a process beside its records.
#[derive(Debug)]
struct ProcessState {
    captures: Captures,
    /// Which blocks of 2^16 correlation ids it uses.
    blocks: Box<[u64; 1_024]>,
    calls: Option<(u32, u32)>,
    operations: Option<(u32, u32)>,
}

fn widen(known: &mut Option<(u32, u32)>, id: u32) {
    let (first, last) = known.unwrap_or((id, id));
    *known = Some((first.min(id), last.max(id)));
}

impl Collector {
    /// A collector for a recording of this recorder's.
    pub fn new(recorder: Recorder, settings: Settings) -> Self {
        let in_memory = settings.records_in_memory;
        Self {
            settings,
            names: Names::default(),
            functions: Vec::new(),
            processes: Vec::new(),
            holdings: Holdings {
                recorder,
                version: None,
                processes: Vec::new(),
                devices: Vec::new(),
                notes: Vec::new(),
                more_notes: 0,
                skipped: Default::default(),
                others: Default::default(),
                results_recorded: false,
            },
            requests: FxHashSet::default(),
            base_ns: 0,
            calls: Spool::new(by_correlation, in_memory),
            ranges: Spool::new(by_time, in_memory),
            timed: Spool::new(by_time, in_memory),
        }
    }

    /// How the recording is imported.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Keeps a name. One that is too long is cut and counted.
    pub fn name(&mut self, text: &str) -> NameId {
        let (id, whole) = self.names.id(text);
        if !whole {
            self.skip(Skip::NameNotKept);
        }
        id
    }

    /// The request's id in a range's text, kept as a name.
    pub fn request_in(&mut self, text: NameId) -> Option<NameId> {
        let text = self.names.text(text);
        request_in(&text).map(|id| self.name(id))
    }

    /// A process; the importer knows which of its own numbers it has.
    pub fn process(&mut self, description: ProcessDescription) -> ProcessOrdinal {
        let ordinal = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        let ordinal = ProcessOrdinal(ordinal);
        if self.processes.len() >= PROCESSES {
            // Its records are skipped for want of a process.
            return ordinal;
        }
        self.processes.push(ProcessState {
            captures: Captures::default(),
            blocks: Box::new([0; 1_024]),
            calls: None,
            operations: None,
        });
        let holdings = ProcessHoldings::new(ordinal, description);
        self.holdings.processes.push(holdings);
        ordinal
    }

    /// What became known of a process after it was first met.
    pub fn describe(&mut self, process: ProcessOrdinal, description: ProcessDescription) {
        if let Some(known) = self.holdings.processes.get_mut(process.0 as usize) {
            let known = &mut known.description;
            known.pid = description.pid.or(known.pid);
            known.name = description.name.or(known.name.take());
            known.rank = description.rank.or(known.rank);
        }
    }

    /// A device.
    pub fn device(&mut self, device: DeviceDescription) {
        if self.holdings.devices.len() < KINDS && !self.holdings.devices.contains(&device) {
            self.holdings.devices.push(device);
        }
    }

    /// A record, or a part of one, could not be used.
    pub fn skip(&mut self, why: Skip) {
        self.skip_many(why, 1);
    }

    /// So many could not be used.
    pub fn skip_many(&mut self, why: Skip, count: u64) {
        if count > 0 {
            *self.holdings.skipped.entry(why).or_default() += count;
        }
    }

    /// Records of a kind that no join needs.
    pub fn other(&mut self, what: &str, count: u64) {
        if let Some(known) = self.holdings.others.get_mut(what) {
            *known += count;
            return;
        }
        let what = if self.holdings.others.len() < KINDS {
            what.chars().take(128).collect()
        } else {
            "others".to_owned()
        };
        *self.holdings.others.entry(what).or_default() += count;
    }

    /// Something that a person should know.
    pub fn note(&mut self, text: impl Into<String>) {
        if self.holdings.notes.len() < NOTES {
            self.holdings.notes.push(text.into());
        } else {
            self.holdings.more_notes += 1;
        }
    }

    /// The version of the recorder, or of the file's schema.
    pub fn version(&mut self, text: impl Into<String>) {
        self.holdings.version = Some(text.into());
    }

    /// Times were given relative to this one, which the file may name after its records: it is
    /// added to all of them. 0 unless said.
    pub fn times_are_relative_to(&mut self, base_ns: u64) {
        self.base_ns = base_ns;
    }

    /// Whether the recorder says which calls failed.
    pub fn results_recorded(&mut self, recorded: bool) {
        self.holdings.results_recorded = recorded;
    }

    /// The id on the wire, and the process of a record; `None` if it has none that can be used.
    fn placed(&mut self, process: ProcessOrdinal, correlation: u64) -> Option<u32> {
        if process.0 as usize >= self.processes.len() {
            self.skip(Skip::NoProcess);
            return None;
        }
        match u32::try_from(correlation) {
            Ok(wire) => Some(wire),
            Err(_) => {
                self.skip(Skip::IdTooLarge);
                None
            }
        }
    }

    fn use_id(&mut self, process: ProcessOrdinal, wire: u32) -> &mut ProcessState {
        let state = &mut self.processes[process.0 as usize];
        if wire != 0 {
            let block = wire >> 16;
            state.blocks[(block >> 6) as usize] |= 1 << (block & 63);
        }
        state
    }

    /// What the function of this name is.
    fn function(&mut self, name: NameId) -> Function {
        let at = name.0 as usize;
        if self.functions.len() <= at {
            self.functions.resize(at + 1, None);
        }
        let names = &self.names;
        *self.functions[at].get_or_insert_with(|| function(&names.text(name)))
    }

    /// A record of an API call, whatever it asks for.
    ///
    /// # Errors
    /// Those of the temporary file, if records do not fit into memory.
    pub fn api(&mut self, call: ApiCall) -> Result<(), CollectError> {
        let Some(wire) = self.placed(call.process, call.correlation) else {
            return Ok(());
        };
        let function = self.function(call.name);
        let state = self.use_id(call.process, wire);
        if wire != 0 {
            widen(&mut state.calls, wire);
        }
        if let Some(boundary) = function.capture {
            let captures = &mut state.captures;
            captures.call(boundary, call.start_ns, call.end_ns, call.result);
        }
        let holdings = &mut self.holdings.processes[call.process.0 as usize];
        holdings.api_calls += 1;
        holdings.launches += u64::from(function.due != OperationsDue::None);
        holdings.graph_launches += u64::from(function.graph_launch);
        holdings.failed_calls += u64::from(call.result != 0);
        holdings.spans([call.start_ns, call.end_ns]);
        if holdings.threads.len() < TOLD_APART {
            holdings.threads.insert(call.tid);
        }
        self.calls.push(Entry::api(&call, wire))
    }

    /// A record of an executed activity.
    ///
    /// # Errors
    /// As for [`api`](Self::api).
    pub fn activity(&mut self, activity: Activity) -> Result<(), CollectError> {
        let Some(wire) = self.placed(activity.process, activity.correlation) else {
            return Ok(());
        };
        let state = self.use_id(activity.process, wire);
        if wire != 0 {
            widen(&mut state.operations, wire);
        }
        let holdings = &mut self.holdings.processes[activity.process.0 as usize];
        *match activity.kind {
            ActivityKind::Copy => &mut holdings.memcpys,
            ActivityKind::Set => &mut holdings.memsets,
            ActivityKind::Graph => &mut holdings.graphs,
            _ => &mut holdings.kernels,
        } += 1;
        holdings.graph_node_operations += u64::from(activity.graph_node.is_some());
        holdings.submissions += u64::from(activity.submitted_ns.is_some());
        let timeless = activity.start_ns.is_none() || activity.end_ns.is_none();
        holdings.operations_without_times += u64::from(timeless);
        holdings.spans([activity.start_ns, activity.end_ns]);
        let stream = (activity.device, activity.context, activity.stream);
        let room = holdings.streams.len() < TOLD_APART;
        match holdings.streams.get_mut(&stream) {
            Some(count) => *count += 1,
            None if room => {
                holdings.streams.insert(stream, 1);
            }
            None => {}
        }
        self.calls.push(Entry::activity(&activity, wire))
    }

    /// A record of a wait.
    ///
    /// # Errors
    /// As for [`api`](Self::api).
    pub fn synchronization(&mut self, wait: Synchronization) -> Result<(), CollectError> {
        let Some(wire) = self.placed(wait.process, wait.correlation) else {
            return Ok(());
        };
        let holdings = &mut self.holdings.processes[wait.process.0 as usize];
        holdings.synchronizations += 1;
        let for_event = matches!(
            wait.kind,
            SynchronizationKind::Event | SynchronizationKind::StreamWait
        );
        let linked = for_event && (wait.event_sync.is_some() || wait.recorded_by.is_some());
        holdings.linked_waits += u64::from(linked);
        holdings.spans([wait.start_ns, wait.end_ns]);
        self.calls.push(Entry::synchronization(&wait, wire))
    }

    /// A record of an event.
    ///
    /// # Errors
    /// As for [`api`](Self::api).
    pub fn event_record(&mut self, record: EventRecord) -> Result<(), CollectError> {
        let Some(wire) = self.placed(record.process, record.correlation) else {
            return Ok(());
        };
        let holdings = &mut self.holdings.processes[record.process.0 as usize];
        holdings.event_records += 1;
        holdings.event_times += u64::from(record.device_ns.is_some());
        self.calls.push(Entry::event_record(&record, wire))
    }

    /// A graph's node was made.
    ///
    /// # Errors
    /// As for [`api`](Self::api).
    pub fn graph_node(&mut self, node: GraphNode) -> Result<(), CollectError> {
        if self.placed(node.process, 0).is_none() {
            return Ok(());
        }
        self.holdings.processes[node.process.0 as usize].graph_nodes += 1;
        let captures = &mut self.processes[node.process.0 as usize].captures;
        // A clone is made by instantiating, not by a call that was captured.
        if node.original.is_none() {
            captures.node(node.tid, node.at_ns);
        }
        self.timed.push(Entry::graph_node(&node))
    }

    /// A thread was put on a processor, or taken off it.
    ///
    /// # Errors
    /// As for [`api`](Self::api).
    pub fn scheduled(&mut self, scheduled: Scheduled) -> Result<(), CollectError> {
        let process = scheduled.process.unwrap_or_default();
        match self.holdings.processes.get_mut(process.0 as usize) {
            Some(holdings) => holdings.scheduled += 1,
            None => {
                self.skip(Skip::OtherRecord);
                return Ok(());
            }
        }
        self.timed.push(Entry::scheduled(&scheduled))
    }

    /// A thread was inside a call of the operating system's runtime.
    ///
    /// # Errors
    /// As for [`api`](Self::api).
    pub fn os_call(&mut self, call: OsCall) -> Result<(), CollectError> {
        match self.holdings.processes.get_mut(call.process.0 as usize) {
            Some(holdings) => holdings.os_calls += 1,
            None => {
                self.skip(Skip::OtherRecord);
                return Ok(());
            }
        }
        self.timed.push(Entry::os_call(&call))
    }

    /// A named interval on a thread. Counted, and a candidate epoch if the settings say so.
    ///
    /// # Errors
    /// As for [`api`](Self::api).
    pub fn range(&mut self, range: Range) -> Result<(), CollectError> {
        let wanted = match (self.settings.epochs_from, range.kind) {
            (EpochsFrom::Nvtx, RangeKind::Nvtx) => true,
            (EpochsFrom::Annotations, RangeKind::Annotation) => true,
            (EpochsFrom::RequestIds, _) => range.request.is_some(),
            _ => false,
        };
        let named = match &self.settings.epoch_name {
            Some(part) if wanted => self.names.text(range.text).contains(part.as_str()),
            _ => true,
        };
        let Some(holdings) = self.holdings.processes.get_mut(range.process.0 as usize) else {
            self.skip(Skip::OtherRecord);
            return Ok(());
        };
        holdings.ranges += 1;
        holdings.requests += u64::from(range.request.is_some());
        if !(wanted && named) {
            return Ok(());
        }
        if range.end_ns.is_none_or(|end| end < range.start_ns) {
            self.skip(Skip::UnclosedRange);
            return Ok(());
        }
        let is_new = match (self.settings.epochs_from, range.request) {
            (EpochsFrom::RequestIds, Some(request)) => {
                self.requests.insert((range.process, request))
            }
            _ => true,
        };
        holdings.epochs += u64::from(is_new);
        self.ranges.push(Entry::range(&range))
    }

    /// Everything has been given.
    ///
    /// # Errors
    /// As for [`api`](Self::api).
    pub fn finish(self) -> Result<Recording, CollectError> {
        let Self {
            settings,
            names,
            mut functions,
            mut processes,
            mut holdings,
            mut calls,
            ranges,
            timed,
            base_ns,
            ..
        } = self;
        let origins: Vec<u32> = processes
            .iter()
            .map(|process| first_block(&process.blocks) << 16)
            .collect();
        if origins.iter().any(|&origin| origin != 0) {
            calls = behind_the_first(calls, &origins, &settings, &mut processes)?;
        }
        let extent = |process: &ProcessState| Extent {
            session: SESSION,
            calls: process.calls.map(ids),
            operations: process.operations.map(ids),
        };
        let extents = processes.iter().map(extent).collect();
        let captures = processes.into_iter().map(|process| process.captures);
        let mut captures: Vec<Captures> = captures.collect();
        for (captures, holdings) in captures.iter_mut().zip(&mut holdings.processes) {
            captures.later_by(base_ns);
            captures.decide();
            holdings.later_by(base_ns);
            holdings.captures = captures.count() as u64;
        }
        let texts: Vec<Arc<str>> = names.into_texts();
        functions.resize(texts.len(), None);
        Ok(Recording {
            settings,
            holdings,
            texts,
            functions,
            captures,
            extents,
            calls: calls.finish(base_ns),
            ranges: ranges.finish(base_ns),
            timed: timed.finish(base_ns),
        })
    }
}

fn ids((first, last): (u32, u32)) -> (CorrelationId, CorrelationId) {
    (CorrelationId(first), CorrelationId(last))
}

/// The block that a process's ids begin with: 0, or, where they wrap, the first after the greatest
/// gap.
fn first_block(blocks: &[u64; 1_024]) -> u32 {
    // Most of the words are empty, and a recording may have thousands of processes.
    let words = (0_u32..).zip(blocks).filter(|(_, word)| **word != 0);
    let mut used = words.flat_map(|(number, &word)| {
        let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
        bits.map(move |bit| number << 6 | bit)
    });
    let Some(first) = used.next() else { return 0 };
    let (mut last, mut greatest, mut after) = (first, 0, 0);
    for block in used {
        if block - last > greatest {
            (greatest, after) = (block - last, block);
        }
        last = block;
    }
    let around = first + (1 << 16) - last;
    if greatest > around { after } else { 0 }
}

/// The same entries, ranked by how far their ids lie behind the first one's of their process; and
/// the first and last ids by that order.
fn behind_the_first(
    calls: Spool,
    origins: &[u32],
    settings: &Settings,
    processes: &mut [ProcessState],
) -> Result<Spool, CollectError> {
    let mut ranked = Spool::new(by_correlation, settings.records_in_memory);
    let mut reach: Vec<[Option<(u32, u32)>; 2]> = vec![[None; 2]; processes.len()];
    for entry in calls.finish(0).iter()? {
        let mut entry = entry?;
        let at = entry.process as usize;
        if entry.wire != 0 {
            entry.rank = entry.wire.wrapping_sub(origins[at]);
            let which = usize::from(entry.is_operation());
            if entry.is_operation() || entry.is_call() {
                widen(&mut reach[at][which], entry.rank);
            }
        }
        ranked.push(entry)?;
    }
    for ((process, reach), origin) in processes.iter_mut().zip(reach).zip(origins) {
        let back =
            |(first, last): (u32, u32)| (first.wrapping_add(*origin), last.wrapping_add(*origin));
        [process.calls, process.operations] = reach.map(|reach| reach.map(back));
    }
    Ok(ranked)
}
