//! As much of a row as a span needs.

use std::sync::Arc;

use lineage_core::fault::FaultCode;
use lineage_core::id::{HostNanos, LaunchEpoch, UnwrappedCorrelationId};
use lineage_core::observation::ActivityKind;
use lineage_core::row::{Binding, JoinSources, Row, RowGraph};

/// What identifies an operation within its process, whenever and however often it is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OperationKey {
    pub(crate) session: u32,
    pub(crate) correlation: UnwrappedCorrelationId,
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) graph_node: Option<u64>,
    /// A node in a loop has one operation after the other under one key.
    pub(crate) start: HostNanos,
    pub(crate) end: HostNanos,
}

impl OperationKey {
    pub(crate) fn parts(&self) -> [u64; 7] {
        [
            u64::from(self.session),
            self.correlation.0,
            u64::from(self.device),
            u64::from(self.context) << 32 | u64::from(self.stream),
            self.graph_node.unwrap_or(u64::MAX),
            self.start.0,
            self.end.0,
        ]
    }
}

/// An executed operation that is bound to an epoch.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) key: OperationKey,
    pub(crate) epoch: LaunchEpoch,
    pub(crate) kind: ActivityKind,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) graph: Option<u32>,
    /// The replay, for an operation that ran in one.
    pub(crate) replay: Option<RowGraph>,
    pub(crate) bytes: u64,
    pub(crate) copies: u32,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) queued: Option<HostNanos>,
    pub(crate) submitted: Option<HostNanos>,
    pub(crate) api: Arc<str>,
    pub(crate) tid: u64,
    pub(crate) task: Option<u64>,
    pub(crate) api_enter: Option<HostNanos>,
    pub(crate) api_exit: Option<HostNanos>,
    pub(crate) joined_by: &'static str,
    pub(crate) faults: Vec<FaultCode>,
    pub(crate) after_retirement: bool,
}

/// What a row is to the spans.
pub(crate) enum FromRow {
    /// Bound, with both times.
    Operation(Box<Operation>),
    /// Bound, but its times are missing or run backwards: no span can stand for it.
    WithoutTimes(LaunchEpoch),
    /// A call that has no operation, or work that belongs to no epoch.
    Nothing,
}

impl FromRow {
    pub(crate) fn new(row: &Row) -> Self {
        let (Binding::Bound(epoch), Some(operation), Some(call)) =
            (row.binding, &row.operation, &row.call)
        else {
            return Self::Nothing;
        };
        let (Some(start), Some(end)) = (operation.start, operation.end) else {
            return Self::WithoutTimes(epoch);
        };
        if end < start {
            return Self::WithoutTimes(epoch);
        }
        Self::Operation(Box::new(Operation {
            key: OperationKey {
                session: operation.session,
                correlation: call.correlation,
                device: operation.device,
                context: operation.context,
                stream: operation.stream,
                graph_node: operation.graph_node,
                start,
                end,
            },
            epoch,
            kind: operation.kind,
            name: operation.name.clone(),
            graph: operation.graph,
            replay: row.graph,
            bytes: operation.bytes,
            copies: operation.copies,
            grid: operation.grid,
            block: operation.block,
            queued: operation.queued,
            submitted: operation.submitted,
            api: call
                .api
                .name
                .clone()
                .unwrap_or_else(|| call.api.to_string().into()),
            tid: call.tid,
            task: call.task.map(|task| task.0),
            api_enter: row.stages.api_enter.at(),
            api_exit: row.stages.api_exit.at(),
            joined_by: joined_by(&row.sources),
            faults: row.faults.clone(),
            after_retirement: row.after_retirement,
        }))
    }
}

impl Operation {
    /// When it was asked for: its call's entry or, where that is not known, its start.
    pub(crate) fn asked_at(&self) -> HostNanos {
        self.api_enter.unwrap_or(self.key.start)
    }

    pub(crate) fn duration_ns(&self) -> u64 {
        self.key.end.0 - self.key.start.0
    }

    /// From the call's entry to the operation's start; `None` if the entry is not known, or comes
    /// after it (which is a fault of its own).
    pub(crate) fn launch_delay_ns(&self) -> Option<u64> {
        self.key.start.0.checked_sub(self.api_enter?.0)
    }

    /// Roughly what it takes to hold it.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.faults)
    }
}

fn joined_by(sources: &JoinSources) -> &'static str {
    match (sources.external, sources.callback) {
        (Some(_), Some(_)) => "external+callback",
        (Some(_), None) => "external",
        (None, Some(_)) => "callback",
        (None, None) => "containment",
    }
}
