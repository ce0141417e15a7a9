//! What the device executed: kernels, copies, sets, and graphs that were recorded as a whole.

use lineage_core::observation::ActivityKind;
use lineage_import::{Activity, NameId, Skip};

use crate::ImportError;
use crate::database::Database;
use crate::fields::device_times;
use crate::processes::Thread;
use crate::reading::{Fault, Pass, Reading, Source};
use crate::tables::{Table, Value, scan};

pub(crate) const KERNELS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_KERNEL",
    process_column: "globalPid",
    read: read_kernels,
};

pub(crate) const COPIES: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_MEMCPY",
    process_column: "globalPid",
    read: read_copies,
};

pub(crate) const SETS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_MEMSET",
    process_column: "globalPid",
    read: read_sets,
};

/// Without `--cuda-graph-trace=node` a graph's launch is one row, and its nodes have none.
pub(crate) const GRAPHS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    process_column: "globalPid",
    read: read_graphs,
};

/// `copyKind` by number, in the words that CUPTI's own records get in a live session.
const COPY_KINDS: [&str; 14] = [
    "memcpy unknown",
    "memcpy HtoD",
    "memcpy DtoH",
    "memcpy HtoA",
    "memcpy AtoH",
    "memcpy AtoA",
    "memcpy AtoD",
    "memcpy DtoA",
    "memcpy DtoD",
    "memcpy HtoH",
    "memcpy PtoP",
    // Unified memory on the move: no call asks for these, and their correlation id is 0.
    "memcpy unified HtoD",
    "memcpy unified DtoH",
    "memcpy unified DtoD",
];

/// The columns that all these tables have.
struct Common<'a> {
    correlation: Value<'a>,
    start: Value<'a>,
    end: Value<'a>,
    device: Value<'a>,
    context: Value<'a>,
    stream: Value<'a>,
}

impl Common<'_> {
    /// The record, but for what is of its kind.
    fn activity(
        self,
        reading: &mut Reading<'_>,
        owner: Thread,
        kind: ActivityKind,
    ) -> Result<Activity, Skip> {
        let start_ns = reading.optional(self.start.time_ns());
        let end_ns = reading.optional(self.end.time_ns());
        let (start_ns, end_ns) = device_times(start_ns, end_ns);
        Ok(Activity {
            process: owner.process,
            correlation: self.correlation.correlation()?,
            kind,
            device: self.device.number()?.unwrap_or(0),
            context: self.context.number()?.unwrap_or(0),
            stream: self.stream.number()?.unwrap_or(0),
            queued_ns: None,
            submitted_ns: None,
            start_ns,
            end_ns,
            name: None,
            graph_node: None,
            graph: None,
            bytes: 0,
            copies: 1,
            grid: [0; 3],
            block: [0; 3],
        })
    }
}

fn read_kernels(
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
        "deviceId",
        "contextId",
        "streamId",
        "demangledName",
        "shortName",
        "mangledName",
        "graphNodeId",
        "graphId",
        "gridX",
        "gridY",
        "gridZ",
        "blockX",
        "blockY",
        "blockZ",
    ];
    scan(database, table, columns, |values| {
        reading.row(|reading| {
            let [
                global,
                correlation,
                start,
                end,
                device,
                context,
                stream,
                demangled,
                short,
                mangled,
                node,
                graph,
                sizes @ ..,
            ] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let common = Common {
                correlation,
                start,
                end,
                device,
                context,
                stream,
            };
            let mut kernel = common.activity(reading, owner, ActivityKind::Kernel)?;
            kernel.name = kernel_name(reading, [demangled, short, mangled])?;
            kernel.graph_node = graph_id(reading.optional(node.bits()));
            kernel.graph = reading.optional(graph.number());
            let [grid @ .., block_x, block_y, block_z] =
                sizes.map(|size| reading.optional(size.number()).unwrap_or(0));
            (kernel.grid, kernel.block) = (grid, [block_x, block_y, block_z]);
            Ok(reading.collector.activity(kernel)?)
        })
    })
}

/// The first of a kernel's names that the file has.
fn kernel_name(
    reading: &mut Reading<'_>,
    numbers: [Value<'_>; 3],
) -> Result<Option<NameId>, Fault> {
    for number in numbers {
        match reading.names.get(&mut reading.collector, number) {
            Ok(name) => return Ok(Some(name.id)),
            Err(Fault::Skip(_)) => {}
            Err(stop) => return Err(stop),
        }
    }
    reading.collector.skip(Skip::UnknownName);
    Ok(None)
}

/// Ids of graphs and their nodes are counted from 1.
fn graph_id(id: Option<u64>) -> Option<u64> {
    id.filter(|&id| id != 0)
}

fn read_copies(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
) -> Result<(), ImportError> {
    let names = COPY_KINDS.map(|name| reading.collector.name(name));
    let columns = [
        "globalPid",
        "correlationId",
        "start",
        "end",
        "deviceId",
        "contextId",
        "streamId",
        "copyKind",
        "bytes",
        "copyCount",
        "graphNodeId",
    ];
    scan(database, table, columns, |values| {
        reading.row(|reading| {
            let [
                global,
                correlation,
                start,
                end,
                device,
                context,
                stream,
                kind,
                bytes,
                count,
                node,
            ] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let common = Common {
                correlation,
                start,
                end,
                device,
                context,
                stream,
            };
            let mut copy = common.activity(reading, owner, ActivityKind::Copy)?;
            let kind: Option<usize> = reading.optional(kind.number());
            copy.name = Some(
                kind.and_then(|kind| names.get(kind))
                    .copied()
                    .unwrap_or(names[0]),
            );
            copy.bytes = reading.optional(bytes.number()).unwrap_or(0);
            copy.copies = reading.optional(count.number()).unwrap_or(1).max(1);
            copy.graph_node = graph_id(reading.optional(node.bits()));
            Ok(reading.collector.activity(copy)?)
        })
    })
}

fn read_sets(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
) -> Result<(), ImportError> {
    let name = reading.collector.name("memset");
    let columns = [
        "globalPid",
        "correlationId",
        "start",
        "end",
        "deviceId",
        "contextId",
        "streamId",
        "bytes",
        "graphNodeId",
    ];
    scan(database, table, columns, |values| {
        reading.row(|reading| {
            let [
                global,
                correlation,
                start,
                end,
                device,
                context,
                stream,
                bytes,
                node,
            ] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let common = Common {
                correlation,
                start,
                end,
                device,
                context,
                stream,
            };
            let mut set = common.activity(reading, owner, ActivityKind::Set)?;
            set.name = Some(name);
            set.bytes = reading.optional(bytes.number()).unwrap_or(0);
            set.graph_node = graph_id(reading.optional(node.bits()));
            Ok(reading.collector.activity(set)?)
        })
    })
}

fn read_graphs(
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
        "deviceId",
        "contextId",
        "streamId",
        "graphExecId",
        "graphId",
    ];
    scan(database, table, columns, |values| {
        reading.row(|reading| {
            let [
                global,
                correlation,
                start,
                end,
                device,
                context,
                stream,
                executable,
                graph,
            ] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let common = Common {
                correlation,
                start,
                end,
                device,
                context,
                stream,
            };
            let mut launch = common.activity(reading, owner, ActivityKind::Graph)?;
            let executable = reading.optional(executable.id());
            launch.graph = executable.or(reading.optional(graph.id()));
            Ok(reading.collector.activity(launch)?)
        })
    })
}
