//! What a file holds, whatever its format.

use std::collections::{BTreeMap, BTreeSet};

use lineage_core::id::ProcessOrdinal;
use lineage_core::ledger::Entry;
use lineage_core::observation::{ActivityKind, DeviceSession, Event, GraphChange, Observation};
use lineage_import::Holdings;

use super::scheduler::Scheduler;
use crate::input::{Format, Read};

/// A stream: device, context, stream.
pub(super) type StreamKey = (u32, u32, u32);

/// Streams and threads of one process that are told apart in a ledger.
const TOLD_APART: usize = 1 << 16;

/// What a file holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) format: Format,
    /// Who recorded it, with version or schema.
    pub(super) recorder: String,
    pub(super) version: Option<String>,
    pub(super) processes: Vec<Process>,
    pub(super) devices: Vec<Device>,
    pub(super) tally: Tally,
    pub(super) notes: Vec<String>,
    /// Records that could not be used, by reason.
    pub(super) skipped: BTreeMap<String, u64>,
    /// Records that no join needs, by the file's own name for them.
    pub(super) others: BTreeMap<String, u64>,
}

/// One process.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) ordinal: u32,
    pub(super) pid: Option<u64>,
    pub(super) rank: Option<u32>,
    pub(super) name: Option<String>,
    pub(super) api_calls: u64,
    pub(super) kernels: u64,
    pub(super) memcpys: u64,
    pub(super) memsets: u64,
    pub(super) graphs: u64,
    pub(super) threads: BTreeSet<u64>,
    /// Operations by stream.
    pub(super) streams: BTreeMap<StreamKey, u64>,
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: Option<u64>,
}

/// A device that is described.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) ordinal: u32,
    pub(super) process: Option<u32>,
    pub(super) name: Option<String>,
}

/// Counts of each kind of evidence.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) api_calls: u64,
    /// Calls as lineage's own callback saw them.
    pub(super) callbacks: u64,
    /// Whether the recorder says which calls failed.
    pub(super) results_recorded: bool,
    pub(super) failed_calls: u64,
    pub(super) operations: u64,
    pub(super) operations_without_times: u64,
    pub(super) submissions: u64,
    pub(super) external_ids: u64,
    pub(super) epochs: u64,
    pub(super) handoffs: u64,
    pub(super) ranges: u64,
    pub(super) requests: u64,
    pub(super) synchronizations: u64,
    pub(super) linked_waits: u64,
    pub(super) event_records: u64,
    pub(super) event_times: u64,
    pub(super) graph_launches: u64,
    /// Launches that say which executable graph they mean.
    pub(super) graph_replays: u64,
    pub(super) graph_node_operations: u64,
    pub(super) whole_graphs: u64,
    pub(super) graph_nodes: u64,
    pub(super) captures: u64,
    pub(super) scheduled: u64,
    pub(super) os_calls: u64,
}

impl Process {
    pub(super) fn span_ns(&self) -> Option<u64> {
        Some(self.last_ns?.saturating_sub(self.first_ns?))
    }

    fn spans(&mut self, times: [Option<u64>; 2]) {
        for at in times.into_iter().flatten() {
            self.first_ns = Some(self.first_ns.map_or(at, |first| first.min(at)));
            self.last_ns = Some(self.last_ns.map_or(at, |last| last.max(at)));
        }
    }
}

impl Held {
    /// What another tool's recording holds.
    pub(super) fn imported(format: Format, holdings: &Holdings) -> Self {
        let sum = |count| holdings.sum(count);
        let processes = holdings.processes.iter().map(|of| Process {
            ordinal: of.ordinal.0,
            pid: of.description.pid,
            rank: of.description.rank,
            name: of.description.name.clone(),
            api_calls: of.api_calls,
            kernels: of.kernels,
            memcpys: of.memcpys,
            memsets: of.memsets,
            graphs: of.graphs,
            threads: of.threads.clone(),
            streams: of.streams.clone(),
            first_ns: of.first_ns,
            last_ns: of.last_ns,
        });
        let devices = holdings.devices.iter().map(|device| Device {
            ordinal: device.ordinal,
            process: device.process.map(|ordinal| ordinal.0),
            name: device.name.clone(),
        });
        let mut notes = holdings.notes.clone();
        if holdings.more_notes > 0 {
            notes.push(format!("and {} notes more", holdings.more_notes));
        }
        let skipped = holdings.skipped.iter();
        Self {
            format,
            recorder: holdings.recorder.to_string(),
            version: holdings.version.clone(),
            processes: processes.collect(),
            devices: devices.collect(),
            tally: Tally {
                api_calls: sum(|of| of.api_calls),
                callbacks: 0,
                results_recorded: holdings.results_recorded,
                failed_calls: sum(|of| of.failed_calls),
                operations: sum(|of| of.operations()),
                operations_without_times: sum(|of| of.operations_without_times),
                submissions: sum(|of| of.submissions),
                external_ids: 0,
                epochs: 0,
                handoffs: 0,
                ranges: sum(|of| of.ranges),
                requests: sum(|of| of.requests),
                synchronizations: sum(|of| of.synchronizations),
                linked_waits: sum(|of| of.linked_waits),
                event_records: sum(|of| of.event_records),
                event_times: sum(|of| of.event_times),
                graph_launches: sum(|of| of.graph_launches),
                graph_replays: 0,
                graph_node_operations: sum(|of| of.graph_node_operations),
                whole_graphs: sum(|of| of.graphs),
                graph_nodes: sum(|of| of.graph_nodes),
                captures: sum(|of| of.captures),
                scheduled: sum(|of| of.scheduled),
                os_calls: sum(|of| of.os_calls),
            },
            notes,
            skipped: skipped
                .map(|(why, count)| (why.name().to_owned(), *count))
                .collect(),
            others: holdings.others.clone(),
        }
    }
}

/// A ledger's entries, counted as they are read.
#[derive(Debug, Default)]
pub(super) struct Counter {
    processes: BTreeMap<ProcessOrdinal, Process>,
    tally: Tally,
    rows: u64,
    faults: u64,
    notes: Vec<String>,
    scheduler: Scheduler,
    others: BTreeMap<String, u64>,
}

impl Counter {
    pub(super) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Observation(observation) => self.observe(observation),
            Entry::Row(_) => self.rows += 1,
            Entry::Fault(_) => self.faults += 1,
            _ => {}
        }
    }

    fn observe(&mut self, observation: &Observation) {
        let process = self.processes.entry(observation.process).or_default();
        process.ordinal = observation.process.0;
        let tally = &mut self.tally;
        match &observation.event {
            Event::Api(call) => {
                tally.api_calls += 1;
                process.api_calls += 1;
                // CUPTI's records have the result, and so do imports that know it.
                tally.results_recorded = true;
                tally.failed_calls += u64::from(call.result != 0);
                let name = call.api.name.as_deref().unwrap_or_default();
                tally.graph_launches += u64::from(name.contains("GraphLaunch"));
                if process.threads.len() < TOLD_APART {
                    process.threads.insert(call.tid);
                }
                process.spans([call.start.map(|at| at.0), call.end.map(|at| at.0)]);
            }
            Event::Call(call) => {
                tally.callbacks += 1;
                if process.threads.len() < TOLD_APART {
                    process.threads.insert(call.thread.tid);
                }
                process.spans([Some(call.entered.0), call.exited.map(|at| at.0)]);
            }
            Event::Operation(operation) => {
                tally.operations += 1;
                let count = match operation.kind {
                    ActivityKind::Copy => &mut process.memcpys,
                    ActivityKind::Set => &mut process.memsets,
                    ActivityKind::Graph => &mut process.graphs,
                    _ => &mut process.kernels,
                };
                *count += 1;
                let timed = operation.start.is_some() && operation.end.is_some();
                tally.operations_without_times += u64::from(!timed);
                tally.submissions += u64::from(operation.submitted.is_some());
                tally.graph_node_operations += u64::from(operation.graph_node.is_some());
                tally.whole_graphs += u64::from(operation.kind == ActivityKind::Graph);
                let stream = (operation.device, operation.context, operation.stream);
                if process.streams.len() < TOLD_APART || process.streams.contains_key(&stream) {
                    *process.streams.entry(stream).or_default() += 1;
                }
                process.spans([operation.start.map(|at| at.0), operation.end.map(|at| at.0)]);
            }
            Event::External(external) => tally.external_ids += u64::from(external.own_kind),
            Event::Declared(declared) => {
                tally.epochs += 1;
                process.spans([Some(declared.at.0), None]);
            }
            Event::Sent(_) => tally.handoffs += 1,
            Event::Synchronization(wait) => {
                tally.synchronizations += 1;
                let linked = wait.event_sync.is_some() || wait.recorded_by.is_some();
                tally.linked_waits += u64::from(linked);
            }
            Event::EventRecord(record) => {
                tally.event_records += 1;
                tally.event_times += u64::from(record.device.is_some());
            }
            Event::GraphNode(_) => tally.graph_nodes += 1,
            Event::Graph(graph) => {
                let is_node = matches!(
                    graph.change,
                    GraphChange::NodeCreated { .. } | GraphChange::NodeCloned { .. }
                );
                tally.graph_nodes += u64::from(is_node);
            }
            Event::GraphLaunch(_) => tally.graph_replays += 1,
            Event::Scheduled(_) => tally.scheduled += 1,
            Event::OsCall(_) => tally.os_calls += 1,
            Event::SchedulerSession(of) => self.scheduler.learn(observation.process, of),
            Event::DeviceSession(DeviceSession::Started {
                version,
                external_correlation,
                ..
            }) => {
                let external = match external_correlation {
                    Some(true) => "present",
                    Some(false) => "absent",
                    None => return,
                };
                self.notes
                    .push(format!("CUPTI {version}, external correlation {external}"));
            }
            Event::DeviceSession(DeviceSession::Absent { why, .. }) => {
                self.notes.push(format!("no device evidence: {why}"));
            }
            Event::Dropped(dropped) => {
                *self.others.entry("dropped".to_owned()).or_default() += dropped.count;
            }
            _ => {}
        }
    }

    pub(super) fn finish(self, read: &Read) -> Held {
        let header = &read.header;
        let mut others = self.others;
        others.insert("rows".to_owned(), self.rows);
        others.insert("faults".to_owned(), self.faults);
        others.retain(|_, count| *count > 0);
        let mut notes = read.notes();
        notes.extend(self.notes);
        notes.extend(self.scheduler.notes());
        let mut processes: Vec<Process> = self.processes.into_values().collect();
        if let [only] = processes.as_mut_slice() {
            only.name = Some(header.service.clone());
        }
        Held {
            format: Format::Ledger,
            recorder: header.writer.clone(),
            version: Some(format!("schema {}", header.schema)),
            processes,
            devices: Vec::new(),
            tally: self.tally,
            notes,
            skipped: read.summary.unknown_kinds.clone(),
            others,
        }
    }
}
