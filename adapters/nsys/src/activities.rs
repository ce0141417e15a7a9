//! What the device executed: kernels, copies, sets, and graphs that were recorded as a whole.

use lineage_core::observation::{ActivityKind, Footprint};
use lineage_import::{Activity, NameId, Skip};

use crate::ImportError;
use crate::database::Database;
use crate::fields::device_times;
use crate::reading::{Fault, Pass, Reading, Source};
use crate::tables::{Table, Value, scan};

pub(crate) const KERNELS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_KERNEL",
    process_column: "globalPid",
    read: |database, table, reading, pass| {
        read(database, table, reading, pass, ActivityKind::Kernel)
    },
};

pub(crate) const COPIES: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_MEMCPY",
    process_column: "globalPid",
    read: |database, table, reading, pass| read(database, table, reading, pass, ActivityKind::Copy),
};

pub(crate) const SETS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_MEMSET",
    process_column: "globalPid",
    read: |database, table, reading, pass| read(database, table, reading, pass, ActivityKind::Set),
};

/// Without `--cuda-graph-trace=node` a graph's launch is one row, and its nodes have none.
pub(crate) const GRAPHS: Source = Source {
    table: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    process_column: "globalPid",
    read: |database, table, reading, pass| {
        read(database, table, reading, pass, ActivityKind::Graph)
    },
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

/// The columns of all these tables; one that a table lacks is absent in every row of it.
const COLUMNS: [&str; 28] = [
    "globalPid",
    "correlationId",
    "start",
    "end",
    "deviceId",
    "contextId",
    "streamId",
    "bytes",
    "copyKind",
    "copyCount",
    "graphNodeId",
    "graphId",
    "graphExecId",
    "demangledName",
    "shortName",
    "mangledName",
    "registersPerThread",
    "staticSharedMemory",
    "dynamicSharedMemory",
    "clusterX",
    "clusterY",
    "clusterZ",
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
];

fn read(
    database: &Database,
    table: &Table,
    reading: &mut Reading<'_>,
    pass: Pass,
    kind: ActivityKind,
) -> Result<(), ImportError> {
    let copy_names = match kind {
        ActivityKind::Copy => COPY_KINDS.map(|name| reading.collector.name(name)).to_vec(),
        _ => Vec::new(),
    };
    let set_name = (kind == ActivityKind::Set).then(|| reading.collector.name("memset"));
    scan(database, table, COLUMNS, |values| {
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
                copy_kind,
                copies,
                node,
                graph,
                executable,
                demangled,
                short,
                mangled,
                registers,
                declared,
                asked_for,
                cluster_x,
                cluster_y,
                cluster_z,
                sizes @ ..,
            ] = values;
            let Some(owner) = reading.owner(pass, global)? else {
                return Ok(());
            };
            let start_ns = reading.optional(start.time_ns());
            let end_ns = reading.optional(end.time_ns());
            let (start_ns, end_ns) = device_times(start_ns, end_ns);
            let [grid @ .., block_x, block_y, block_z] =
                sizes.map(|size| reading.optional(size.number()).unwrap_or(0));
            let mut activity = Activity {
                process: owner.process,
                correlation: correlation.correlation()?,
                kind,
                device: device.number()?.unwrap_or(0),
                context: context.number()?.unwrap_or(0),
                stream: stream.number()?.unwrap_or(0),
                queued_ns: None,
                submitted_ns: None,
                start_ns,
                end_ns,
                name: set_name,
                graph_node: graph_id(reading.optional(node.bits())),
                graph: None,
                bytes: reading.optional(bytes.number()).unwrap_or(0),
                copies: reading.optional(copies.number()).unwrap_or(1).max(1),
                grid,
                block: [block_x, block_y, block_z],
                footprint: None,
            };
            match kind {
                ActivityKind::Kernel => {
                    activity.name = kernel_name(reading, [demangled, short, mangled])?;
                    activity.graph = reading.optional(graph.number());
                    let cluster = [cluster_x, cluster_y, cluster_z];
                    activity.footprint =
                        footprint(reading, registers, [declared, asked_for], cluster);
                }
                ActivityKind::Copy => {
                    let number: Option<usize> = reading.optional(copy_kind.number());
                    let name = number.and_then(|number| copy_names.get(number));
                    activity.name = name.or(copy_names.first()).copied();
                }
                ActivityKind::Graph => {
                    let executable = reading.optional(executable.id());
                    activity.graph = executable.or(reading.optional(graph.id()));
                }
                _ => {}
            }
            Ok(reading.collector.activity(activity)?)
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

/// What a kernel takes; `None` where its registers or its shared memory are not there.
fn footprint(
    reading: &mut Reading<'_>,
    registers: Value<'_>,
    shared: [Value<'_>; 2],
    cluster: [Value<'_>; 3],
) -> Option<Footprint> {
    let registers: Option<u16> = reading.optional(registers.number());
    let [declared, asked_for] =
        shared.map(|bytes| -> Option<u32> { reading.optional(bytes.number()) });
    // 0 where there are no clusters; older exports do not have the columns.
    let blocks = cluster.map(|blocks| -> Option<u32> { reading.optional(blocks.number()) });
    let mut blocks = blocks.into_iter();
    let blocks_per_cluster = blocks.try_fold(1_u32, |all, of| all.checked_mul(of?.max(1)));
    Some(Footprint {
        registers_per_thread: u32::from(registers?),
        shared_bytes: declared?.checked_add(asked_for?)?,
        blocks_per_cluster,
    })
}
