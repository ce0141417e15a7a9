//! Which table an entry goes to, and how its rows are described.

mod calls;
mod epochs;
mod handoffs;
mod launches;
mod operations;
mod others;

use std::sync::{Arc, OnceLock};

use lineage_core::id::ProcessOrdinal;
use lineage_core::ledger::Entry;
use lineage_core::observation::{Event, Observation};
use lineage_core::row::{LooseFault, Row};

use crate::column::Column;
use crate::frame::Frame;
use crate::names::Names;
use crate::port::{Bad, Describing, Port, Reading, Writing, need, u32};

/// A table of a run directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Table {
    /// Texts that other tables refer to by their place.
    Names,
    /// What became of epochs: declared, parented, linked to a span, stepped, marked, retired.
    Epochs,
    /// Edges between epochs.
    Links,
    /// Carriers: sent, received, abandoned.
    Handoffs,
    /// Scopes on launching threads.
    Scopes,
    /// CUDA calls: our own callback's view, and CUPTI's record.
    Calls,
    /// CUPTI's external correlation records.
    Externals,
    /// CUPTI's records of executed kernels, copies and sets.
    Operations,
    /// Launches of graphs.
    GraphLaunches,
    /// Threads put on a processor, or taken off it.
    Switches,
    /// What was concluded: one row per operation, or per call that has none.
    Launches,
    /// Faults that belong to no row.
    Faults,
    /// Everything else that was seen, as the lines of the JSON-lines ledger.
    Facts,
}

impl Table {
    /// Every table. On disk each batch is written in this order.
    pub const ALL: [Self; 13] = [
        Self::Names,
        Self::Epochs,
        Self::Links,
        Self::Handoffs,
        Self::Scopes,
        Self::Calls,
        Self::Externals,
        Self::Operations,
        Self::GraphLaunches,
        Self::Switches,
        Self::Launches,
        Self::Faults,
        Self::Facts,
    ];

    /// The table's name: that of its file, less `.arrows`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Epochs => "epochs",
            Self::Links => "links",
            Self::Handoffs => "handoffs",
            Self::Scopes => "scopes",
            Self::Calls => "calls",
            Self::Externals => "externals",
            Self::Operations => "operations",
            Self::GraphLaunches => "graph_launches",
            Self::Switches => "switches",
            Self::Launches => "launches",
            Self::Faults => "faults",
            Self::Facts => "facts",
        }
    }

    /// The table of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Its columns, in order.
    pub fn columns(self) -> &'static [Column] {
        static COLUMNS: OnceLock<Vec<Vec<Column>>> = OnceLock::new();
        let all = COLUMNS.get_or_init(|| Self::ALL.into_iter().map(describe).collect());
        all.get(self as usize).map_or(&[], Vec::as_slice)
    }
}

fn describe(table: Table) -> Vec<Column> {
    let mut port = Describing::default();
    if table == Table::Names {
        port.columns.push(Column::text("text"));
    } else {
        // That nothing comes of it is right: nothing was given.
        let _ = visit(table, &mut port, 0, None);
    }
    port.columns
}

/// An entry that is to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    Observation(&'a Observation),
    Row(&'a Row),
    Fault(&'a LooseFault),
}

impl<'a> Given<'a> {
    fn process(self) -> ProcessOrdinal {
        match self {
            Self::Observation(observation) => observation.process,
            Self::Row(row) => row.process,
            Self::Fault(fault) => fault.process,
        }
    }

    fn event(self) -> Option<&'a Event> {
        match self {
            Self::Observation(observation) => Some(&observation.event),
            Self::Row(_) | Self::Fault(_) => None,
        }
    }

    /// The table that has columns for it.
    pub(crate) fn table(self) -> Table {
        match self {
            Self::Row(_) => Table::Launches,
            Self::Fault(_) => Table::Faults,
            Self::Observation(observation) => match observation.event {
                Event::Declared(_)
                | Event::Parented(_)
                | Event::SpanLinked(_)
                | Event::Stepped(_)
                | Event::Marked(_)
                | Event::Retired(_) => Table::Epochs,
                Event::Linked(_) => Table::Links,
                Event::Sent(_) | Event::Received(_) | Event::Abandoned(_) => Table::Handoffs,
                Event::Scope(_) => Table::Scopes,
                Event::Call(_) | Event::Api(_) => Table::Calls,
                Event::External(_) => Table::Externals,
                Event::Operation(_) => Table::Operations,
                Event::GraphLaunch(_) => Table::GraphLaunches,
                Event::Scheduled(_) => Table::Switches,
                _ => Table::Facts,
            },
        }
    }
}

/// Puts an entry at the end of its table's frame; `false`, and no trace of it, where the columns
/// cannot hold it exactly.
pub(crate) fn put(
    table: Table,
    frame: &mut Frame,
    names: &mut Names,
    scratch: &mut String,
    order: u64,
    given: Given<'_>,
) -> bool {
    let rows = frame.rows;
    let mut port = Writing::new(frame, names, scratch);
    if visit(table, &mut port, order, Some(given)).is_ok() {
        frame.rows = rows + 1;
        return true;
    }
    frame.truncate(rows);
    false
}

/// Reads a row of a table's frame.
pub(crate) fn get(
    table: Table,
    frame: &Frame,
    names: &[Arc<str>],
    row: usize,
) -> Result<Entry, Bad> {
    let entry = visit(table, &mut Reading::new(frame, names, row), 0, None)?;
    entry.ok_or(Bad::Missing("order"))
}

/// Where an entry stands in its batch, from 0: the first column of every table but the names'.
const ORDER: Column = Column::delta("order");

/// Order of the entry in a row of a frame.
pub(crate) fn order_of(frame: &Frame, row: usize) -> Option<u64> {
    match frame.columns.first() {
        Some(crate::frame::Cells::Numbers(numbers)) => numbers.get(row),
        _ => None,
    }
}

/// Visits the columns of a table's row. `None` where something was given that need not be read.
fn visit<P: Port>(
    table: Table,
    port: &mut P,
    order: u64,
    given: Option<Given<'_>>,
) -> Result<Option<Entry>, Bad> {
    port.number(ORDER, given.map(|_| order))?;
    let process = given.map(|given| given.process().0);
    let process = u32(port, Column::u32("process"), process)?;
    let event = given.and_then(Given::event);
    let event: Event = match table {
        Table::Launches => {
            let row = given.and_then(|given| match given {
                Given::Row(row) => Some(row),
                _ => None,
            });
            return launches::row(port, process, row).map(|row| Some(Entry::Row(row)));
        }
        Table::Faults => {
            let fault = given.and_then(|given| match given {
                Given::Fault(fault) => Some(fault),
                _ => None,
            });
            return others::fault(port, process, fault).map(|fault| Some(Entry::Fault(fault)));
        }
        Table::Facts => return others::fact(port, given),
        Table::Names => return Err(Bad::Missing("names")),
        Table::Epochs => epochs::event(port, event)?,
        Table::Links => epochs::link(port, event)?,
        Table::Handoffs => handoffs::event(port, event)?,
        Table::Scopes => calls::scope(port, event)?,
        Table::Calls => calls::event(port, event)?,
        Table::Externals => calls::external(port, event)?,
        Table::Operations => operations::event(port, event)?,
        Table::GraphLaunches => operations::graph_launch(port, event)?,
        Table::Switches => others::switch(port, event)?,
    };
    Ok(Some(Entry::Observation(Observation {
        process: ProcessOrdinal(need("process", process)?),
        event,
    })))
}

/// The event that is given, if it is of this kind. Kinds are told apart by `Given::table` before.
macro_rules! of_kind {
    ($given:expr, $kind:ident) => {
        match $given {
            Some(Event::$kind(inner)) => Some(inner),
            _ => None,
        }
    };
}
use of_kind;
