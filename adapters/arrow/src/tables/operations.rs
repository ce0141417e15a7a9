//! Executed kernels, copies and sets, and launches of graphs.

use lineage_core::id::CorrelationId;
use lineage_core::observation::{Event, Footprint, GraphLaunch, GraphSequence, Operation};

use super::calls::correlation;
use super::of_kind;
use crate::column::Column;
use crate::port::{self, Bad, Port, need};

/// Names of the columns that differ between the table of operations and that of rows.
pub(super) struct Columns {
    pub(super) session: Column,
    pub(super) correlation: Column,
    pub(super) queued: Column,
    pub(super) submitted: Column,
    pub(super) start: Column,
    pub(super) end: Column,
}

const OWN: Columns = Columns {
    session: Column::u32("session"),
    correlation: Column::delta("correlation"),
    queued: Column::after("queued_ns", "start_ns"),
    submitted: Column::after("submitted_ns", "start_ns"),
    start: Column::delta("start_ns"),
    end: Column::after("end_ns", "start_ns"),
};

pub(super) fn event<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    let operation = operation(port, of_kind!(given, Operation), &OWN)?;
    Ok(need("kind", operation)?.into())
}

/// An operation; `None` where its kind is null.
pub(super) fn operation<P: Port>(
    port: &mut P,
    given: Option<&Operation>,
    columns: &Columns,
) -> Result<Option<Operation>, Bad> {
    let kind = port.variant(Column::name("kind"), given.map(|of| of.kind))?;
    let session = port::u32(port, columns.session, given.map(|of| of.session))?;
    let wire = given.map(|of| of.correlation.0);
    let wire = port::u32(port, columns.correlation, wire)?;
    let device = port::u32(port, Column::u32("device"), given.map(|of| of.device))?;
    let context = port::u32(port, Column::u32("context"), given.map(|of| of.context))?;
    let stream = port::u32(port, Column::u32("stream"), given.map(|of| of.stream))?;
    let start = port::time(port, columns.start, given.and_then(|of| of.start))?;
    let end = port::time(port, columns.end, given.and_then(|of| of.end))?;
    let queued = port::time(port, columns.queued, given.and_then(|of| of.queued))?;
    let submitted = port::time(port, columns.submitted, given.and_then(|of| of.submitted))?;
    let name = port.name(Column::name("name"), given.and_then(|of| of.name.as_ref()))?;
    let column = Column::u64("graph_node");
    let graph_node = port.number(column, given.and_then(|of| of.graph_node))?;
    let graph = port::u32(port, Column::u32("graph"), given.and_then(|of| of.graph))?;
    let bytes = port.number(Column::u64("bytes"), given.map(|of| of.bytes))?;
    let copies = port::u32(port, Column::u32("copies"), given.map(|of| of.copies))?;
    let grid = three(
        port,
        ["grid_x", "grid_y", "grid_z"],
        given.map(|of| of.grid),
    )?;
    let block = three(
        port,
        ["block_x", "block_y", "block_z"],
        given.map(|of| of.block),
    )?;
    let footprint = footprint(port, given.and_then(|of| of.footprint))?;
    let Some(kind) = kind else {
        return Ok(None);
    };
    Ok(Some(Operation {
        session: need(columns.session.name, session)?,
        kind,
        correlation: CorrelationId(need(columns.correlation.name, wire)?),
        device: need("device", device)?,
        context: need("context", context)?,
        stream: need("stream", stream)?,
        queued,
        submitted,
        start,
        end,
        name,
        graph_node,
        graph,
        bytes: need("bytes", bytes)?,
        copies: need("copies", copies)?,
        grid: need("grid_x", grid)?,
        block: need("block_x", block)?,
        footprint,
    }))
}

/// What a kernel takes; `None` where its registers are null, as in the directories of older writers.
fn footprint<P: Port>(port: &mut P, given: Option<Footprint>) -> Result<Option<Footprint>, Bad> {
    let mut number = |name, given| port::u32(port, Column::u32(name), given);
    let registers = number(
        "registers_per_thread",
        given.map(|of| of.registers_per_thread),
    )?;
    let shared = number("shared_bytes", given.map(|of| of.shared_bytes))?;
    let blocks_per_cluster = number(
        "blocks_per_cluster",
        given.and_then(|of| of.blocks_per_cluster),
    )?;
    let Some(registers_per_thread) = registers else {
        return Ok(None);
    };
    Ok(Some(Footprint {
        registers_per_thread,
        shared_bytes: need("shared_bytes", shared)?,
        blocks_per_cluster,
    }))
}

fn three<P: Port>(
    port: &mut P,
    names: [&'static str; 3],
    given: Option<[u32; 3]>,
) -> Result<Option<[u32; 3]>, Bad> {
    let [x, y, z] = names;
    let x = port::u32(port, Column::u32(x), given.map(|of| of[0]))?;
    let y = port::u32(port, Column::u32(y), given.map(|of| of[1]))?;
    let z = port::u32(port, Column::u32(z), given.map(|of| of[2]))?;
    Ok(match (x, y, z) {
        (Some(x), Some(y), Some(z)) => Some([x, y, z]),
        _ => None,
    })
}

pub(super) fn graph_launch<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    let given = of_kind!(given, GraphLaunch);
    let session = port::u32(port, Column::u32("session"), given.map(|of| of.session))?;
    let thread = port::thread(port, given.map(|of| of.thread))?;
    let correlation = correlation(port, given.map(|of| of.correlation))?;
    let at = port::time(port, Column::delta("at_ns"), given.map(|of| of.at))?;
    let exec = port::u32(port, Column::u32("exec"), given.map(|of| of.exec))?;
    let sequence = port.number(Column::delta("sequence"), given.map(|of| of.sequence.0))?;
    Ok(GraphLaunch {
        session: need("session", session)?,
        thread: need("tid", thread)?,
        correlation: need("correlation", correlation)?,
        at: need("at_ns", at)?,
        exec: need("exec", exec)?,
        sequence: GraphSequence(need("sequence", sequence)?),
    }
    .into())
}
