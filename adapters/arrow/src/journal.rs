//! The journal of a segment: one line of JSON for each batch that is on disk as a whole.

use std::collections::BTreeMap;

use lineage_core::id::HostNanos;
use lineage_core::ledger::Counts;
use lineage_core::part::Times;
use serde::{Deserialize, Serialize};

/// A line of `batches.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// A batch is written, in every table that it has rows for.
    Batch(Batch),
    /// The session ended. The counts are of all that it had, in this segment and before.
    End(Counts),
    /// The next segment goes on.
    Continued(Continued),
}

/// Where a batch ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// Its number in the session, from 1.
    pub(crate) batch: u64,
    /// Its tables.
    pub(crate) tables: BTreeMap<String, Part>,
    /// From when to when its entries were, where any of them has a time. Writers before 2026-12 do not
    /// say it; such a batch is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) times: Option<BatchTimes>,
}

/// From when to when the entries of a batch were: [`Times`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchTimes {
    from_ns: u64,
    to_ns: u64,
    /// The latest that a thread of the host stamped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host_ns: Option<u64>,
}

impl From<Times> for BatchTimes {
    fn from(of: Times) -> Self {
        Self {
            from_ns: of.from.0,
            to_ns: of.to.0,
            host_ns: of.host.map(|at| at.0),
        }
    }
}

impl From<BatchTimes> for Times {
    fn from(of: BatchTimes) -> Self {
        Self {
            from: HostNanos(of.from_ns),
            to: HostNanos(of.to_ns),
            host: of.host_ns.map(HostNanos),
        }
    }
}

/// A batch in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Rows of the batch.
    pub(crate) rows: u64,
    /// Length of the table's file with this batch.
    pub(crate) bytes: u64,
}

/// The segment that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Continued {
    pub(crate) segment: u64,
}

impl Line {
    /// The line with its line feed.
    pub(crate) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}
