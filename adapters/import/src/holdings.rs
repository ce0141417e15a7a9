//! What a recording holds: what `lineage show` prints.

use std::collections::{BTreeMap, BTreeSet};

use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::Recorder;

use crate::given::{DeviceDescription, ProcessDescription};
use crate::skip::Skip;

/// A stream: device, context, stream.
pub type StreamKey = (u32, u32, u32);

/// Streams and threads of one process that are told apart; more are only known to be more.
pub(crate) const TOLD_APART: usize = 1 << 16;

/// What a recording holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holdings {
    /// Who recorded it.
    pub recorder: Recorder,
    /// Version of the recorder, or of its file's schema, as shown.
    pub version: Option<String>,
    /// The processes, by their ordinals.
    pub processes: Vec<ProcessHoldings>,
    /// The devices that the recording describes.
    pub devices: Vec<DeviceDescription>,
    /// What a person should know: the recorder's own diagnostics, and what is odd about the file.
    pub notes: Vec<String>,
    /// Notes beyond those kept.
    pub more_notes: u64,
    /// What could not be used, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// Records that no join needs, by the file's own name for them.
    pub others: BTreeMap<String, u64>,
    /// Whether the recorder says which calls failed.
    pub results_recorded: bool,
}

/// What a recording holds of one process. Counts are of records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessHoldings {
    /// Its number here.
    pub ordinal: ProcessOrdinal,
    /// What is known of it.
    pub description: ProcessDescription,
    /// API calls.
    pub api_calls: u64,
    /// API calls that ask for GPU work.
    pub launches: u64,
    /// Launches of graphs among them.
    pub graph_launches: u64,
    /// API calls that failed, where the recorder says so.
    pub failed_calls: u64,
    /// Kernels.
    pub kernels: u64,
    /// Copies.
    pub memcpys: u64,
    /// Sets.
    pub memsets: u64,
    /// Launches of whole graphs, whose nodes are not in the recording.
    pub graphs: u64,
    /// Operations that say which graph node they are.
    pub graph_node_operations: u64,
    /// Operations with a submission time, and so a queue that can be seen.
    pub submissions: u64,
    /// Operations without a start or an end.
    pub operations_without_times: u64,
    /// Waits of threads and streams.
    pub synchronizations: u64,
    /// Waits for events of which the recording says which record they wait for.
    pub linked_waits: u64,
    /// Records of events.
    pub event_records: u64,
    /// Records of events with the time at which the device came to them.
    pub event_times: u64,
    /// Graph nodes made.
    pub graph_nodes: u64,
    /// Times at which a capture was open.
    pub captures: u64,
    /// Threads put on a processor, or taken off it.
    pub scheduled: u64,
    /// Calls of the operating system's runtime.
    pub os_calls: u64,
    /// Ranges of any kind.
    pub ranges: u64,
    /// Ranges that carry a request's id.
    pub requests: u64,
    /// Ranges that became candidate epochs.
    pub epochs: u64,
    /// Threads that made calls.
    pub threads: BTreeSet<u64>,
    /// Streams that operations ran on, by device, context and stream.
    pub streams: BTreeMap<StreamKey, u64>,
    /// The earliest time in any of them, in nanoseconds of the recording's clock.
    pub first_ns: Option<u64>,
    /// The latest.
    pub last_ns: Option<u64>,
}

impl ProcessHoldings {
    pub(crate) fn new(ordinal: ProcessOrdinal, description: ProcessDescription) -> Self {
        Self {
            ordinal,
            description,
            api_calls: 0,
            launches: 0,
            graph_launches: 0,
            failed_calls: 0,
            kernels: 0,
            memcpys: 0,
            memsets: 0,
            graphs: 0,
            graph_node_operations: 0,
            submissions: 0,
            operations_without_times: 0,
            synchronizations: 0,
            linked_waits: 0,
            event_records: 0,
            event_times: 0,
            graph_nodes: 0,
            captures: 0,
            scheduled: 0,
            os_calls: 0,
            ranges: 0,
            requests: 0,
            epochs: 0,
            threads: BTreeSet::new(),
            streams: BTreeMap::new(),
            first_ns: None,
            last_ns: None,
        }
    }

    pub(crate) fn spans(&mut self, times: [Option<u64>; 2]) {
        for at in times.into_iter().flatten() {
            self.first_ns = Some(self.first_ns.map_or(at, |first| first.min(at)));
            self.last_ns = Some(self.last_ns.map_or(at, |last| last.max(at)));
        }
    }

    /// The clock's beginning was so much earlier than was taken.
    pub(crate) fn later_by(&mut self, base_ns: u64) {
        for at in [&mut self.first_ns, &mut self.last_ns]
            .into_iter()
            .flatten()
        {
            *at = at.saturating_add(base_ns);
        }
    }

    /// Operations of any kind.
    pub const fn operations(&self) -> u64 {
        self.kernels + self.memcpys + self.memsets + self.graphs
    }
}

impl Holdings {
    /// The sum of a count over all processes.
    pub fn sum(&self, count: fn(&ProcessHoldings) -> u64) -> u64 {
        self.processes.iter().map(count).sum()
    }

    /// Records of calls and operations that could not be used.
    pub fn lost_records(&self) -> u64 {
        let losses = self.skipped.iter().filter(|(why, _)| why.is_loss());
        losses.map(|(_, count)| count).sum()
    }
}
