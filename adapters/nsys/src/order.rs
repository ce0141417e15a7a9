//! What orders work: waits, records of events, the making of graph nodes.

use lineage_import::{EventRecord, GraphNode, Skip, Synchronization};

use crate::ImportError;
use crate::database::Database;
use crate::fields::device_times;
use crate::reading::{Pass, Reading, Source};
use crate::tables::{Table, scan};

/// To be read after the calls, whose names say what is waited for.
pub(crate) const WAITS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    process_column: "globalPid",
    read: read_waits,
};

pub(crate) const EVENTS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    process_column: "globalPid",
    read: read_events,
};

pub(crate) const GRAPH_NODES: Source = Source {
    table: "CUDA_GRAPH_NODE_EVENTS",
    process_column: "globalTid",
    read: read_graph_nodes,
};

fn read_waits(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
) -> Result<(), ImportError> {
    let columns = [
        "globalPid",
        "correlationId",
        "start",
        "end",
        "contextId",
        "streamId",
        "eventId",
        "eventSyncId",
    ];
    scan(database, table, columns, |values| {
        reading.other_row(|reading| {
            let [
                global,
                correlation,
                start,
                end,
                context,
                stream,
                event,
                event_sync,
            ] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let correlation = correlation.correlation()?;
            let start_ns = reading.optional(start.time_ns());
            let end_ns = reading.optional(end.time_ns());
            let (start_ns, end_ns) = device_times(start_ns, end_ns);
            let wait = Synchronization {
                process: owner.process,
                correlation,
                kind: reading.waits.kind(owner.process, correlation),
                start_ns,
                end_ns,
                context: reading.optional(context.id()),
                stream: reading.optional(stream.id()),
                event: reading.optional(event.id()),
                event_sync: reading.optional(event_sync.event_sync()),
                recorded_by: None,
            };
            Ok(reading.collector.synchronization(wait)?)
        })
    })
}

fn read_events(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
) -> Result<(), ImportError> {
    let columns = [
        "globalPid",
        "correlationId",
        "timestamp",
        "contextId",
        "streamId",
        "eventId",
        "eventSyncId",
    ];
    scan(database, table, columns, |values| {
        reading.other_row(|reading| {
            let [
                global,
                correlation,
                time,
                context,
                stream,
                event,
                event_sync,
            ] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let record = EventRecord {
                process: owner.process,
                correlation: correlation.correlation()?,
                context: reading.optional(context.id()),
                stream: reading.optional(stream.id()),
                event: reading.optional(event.id()),
                event_sync: reading.optional(event_sync.event_sync()),
                // 0 where the device's time was not collected.
                device_ns: reading.optional(time.time_ns()).filter(|&ns| ns != 0),
            };
            Ok(reading.collector.event_record(record)?)
        })
    })
}

fn read_graph_nodes(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
) -> Result<(), ImportError> {
    let columns = ["globalTid", "start", "graphNodeId", "originalGraphNodeId"];
    scan(database, table, columns, |values| {
        reading.other_row(|reading| {
            let [global, start, node, original] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let made = GraphNode {
                process: owner.process,
                tid: owner.tid,
                at_ns: start.time_ns()?.ok_or(Skip::NoTime)?,
                node: node.bits()?.ok_or(Skip::MissingField)?,
                original: reading.optional(original.bits()).filter(|&node| node != 0),
            };
            Ok(reading.collector.graph_node(made)?)
        })
    })
}
