//! Which part of a directory is read, and what its journals say of all of it.

use std::sync::Arc;

use lineage_core::id::HostNanos;
use lineage_core::part::Times;

use super::place::Place;
use super::segment::journal_of;
use crate::column::Kind;
use crate::frame::{Cells, Frame};
use crate::journal::Line;
use crate::tables::Table;

/// What of a directory is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    /// Batches that reach into this time.
    pub(super) between: Option<(HostNanos, HostNanos)>,
    /// Tables of which nothing is.
    pub(super) without: Vec<Table>,
}

impl Selection {
    /// Whether a batch lies outside. Of one whose times are not said it is not known.
    pub(super) fn is_outside(&self, times: Option<Times>) -> bool {
        match (self.between, times) {
            (Some((from, to)), Some(times)) => !times.meets(from, to),
            _ => false,
        }
    }

    /// Whether nothing of a table is read.
    pub(super) fn leaves_out(&self, table: Table) -> bool {
        table != Table::Names && self.without.contains(&table)
    }

    /// Whether a table is not read of a batch.
    pub(super) fn passes_over(&self, table: Table, is_outside: bool) -> bool {
        // The others say what holds for longer: who an epoch is, what a graph is made of.
        let of_one_moment = matches!(
            table,
            Table::Scopes
                | Table::Calls
                | Table::Externals
                | Table::Operations
                | Table::GraphLaunches
                | Table::Switches
                | Table::Launches
        );
        self.leaves_out(table) || (is_outside && of_one_moment)
    }
}

/// Kinds of facts that are of one moment: outside of a part they say nothing of it.
const OF_ONE_MOMENT: [&str; 16] = [
    "api",
    "call",
    "event_record",
    "external",
    "flushed",
    "graph_launch",
    "launch_attributes",
    "operation",
    "os_call",
    "overhead",
    "placement",
    "row",
    "run_queue",
    "scheduled",
    "scope",
    "synchronization",
];

/// Whether a row of the facts is of one moment, by its kind.
pub(super) fn is_of_one_moment(facts: &Frame, names: &[Arc<str>], row: usize) -> bool {
    let columns = Table::Facts.columns();
    let kind = columns
        .iter()
        .position(|of| of.name == "kind" && of.kind == Kind::Name);
    let Some(Cells::Numbers(places)) = kind.and_then(|at| facts.columns.get(at)) else {
        return false;
    };
    let place = places
        .get(row)
        .and_then(|place| usize::try_from(place).ok());
    let kind = place.and_then(|place| names.get(place));
    kind.is_some_and(|kind| OF_ONE_MOMENT.contains(&&**kind))
}

/// What the journals of a directory say of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Its batches, in order.
    pub batches: Vec<BatchHeld>,
}

/// What a journal says of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BatchHeld {
    /// From when to when its entries were; `None` where its writer did not say it, or none has a time.
    pub times: Option<Times>,
    /// Entries in each table, in the order of [`Table::ALL`].
    entries: [u64; Table::ALL.len()],
    /// Bytes on disk.
    pub bytes: u64,
}

impl BatchHeld {
    /// Entries in a table.
    pub fn entries_of(&self, table: Table) -> u64 {
        self.entries.get(table as usize).copied().unwrap_or(0)
    }
}

impl Survey {
    /// Whether of every batch it is known from when to when its entries were.
    pub fn says_when(&self) -> bool {
        self.batches.iter().all(|of| of.times.is_some())
    }

    pub(super) fn of(place: &Place, segments: &[u64]) -> Self {
        let mut survey = Self::default();
        for &number in segments {
            let mut ends = [0_u64; Table::ALL.len()];
            for line in journal_of(place, number) {
                let Line::Batch(batch) = line else { continue };
                let mut held = BatchHeld {
                    times: batch.times.map(Into::into),
                    ..BatchHeld::default()
                };
                for (name, part) in &batch.tables {
                    let Some(table) = Table::of_name(name) else {
                        continue;
                    };
                    held.entries[table as usize] = part.rows;
                    let end = std::mem::replace(&mut ends[table as usize], part.bytes);
                    let bytes = part.bytes.saturating_sub(end);
                    held.bytes = held.bytes.saturating_add(bytes);
                }
                survey.batches.push(held);
            }
        }
        survey
    }
}
