//! `meta.json`: what a directory is, and what its session collected.

use lineage_core::ledger::{Counts, Header};
use lineage_core::observation::{DeviceSession, Event, Observation, SchedulerSession};
use lineage_core::totals::Totals;
use serde::{Deserialize, Serialize};

/// The file's object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Meta {
    /// Schema, process, service and start of the session, and who wrote the directory.
    pub lineage_directory: Header,
    /// What the times of all tables are.
    #[serde(default)]
    pub clock: String,
    /// What evidence was collected, and what was not.
    #[serde(default)]
    pub collected: Collected,
    /// What was removed to keep within the size that was asked for.
    #[serde(default)]
    pub removed: Removed,
    /// Entries that could not be written, until this file was written.
    #[serde(default)]
    pub not_written: u64,
    /// What the session came to; absent while it runs, and after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// Said of every session, whose clock is `CLOCK_MONOTONIC` unless it was given another.
pub(crate) const CLOCK: &str = "nanoseconds of the session's clock (CLOCK_MONOTONIC unless the program gave another); \
     started_unix_ns - started_ns turns them into nanoseconds since the Unix epoch";

/// What evidence was collected. A kind that nobody asked for is `not_asked`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Collected {
    /// Device evidence: `not_asked`, `cupti VERSION`, or `absent: WHY`.
    pub device: String,
    /// Whether CUPTI's external correlation records come; `None` while that is not known.
    #[serde(default)]
    pub external_correlation: Option<bool>,
    /// Scheduler evidence: `not_asked`, `present`, or `absent: WHY`.
    pub scheduler: String,
}

impl Default for Collected {
    fn default() -> Self {
        Self {
            device: "not_asked".to_owned(),
            external_correlation: None,
            scheduler: "not_asked".to_owned(),
        }
    }
}

impl Collected {
    /// Takes in what an observation says of it; whether that changed anything.
    pub(crate) fn learn(&mut self, observation: &Observation) -> bool {
        match &observation.event {
            Event::DeviceSession(DeviceSession::Started {
                version,
                external_correlation,
                ..
            }) => {
                self.device = format!("cupti {version}");
                self.external_correlation = *external_correlation;
            }
            Event::DeviceSession(DeviceSession::Imported { recorder, .. }) => {
                self.device = format!("imported from {recorder}");
            }
            Event::DeviceSession(DeviceSession::Absent { why, .. }) => {
                self.device = format!("absent: {}", bounded(why));
            }
            Event::SchedulerSession(SchedulerSession::Absent { why, .. }) => {
                self.scheduler = format!("absent: {}", bounded(why));
            }
            Event::SchedulerSession(_) if self.scheduler != "present" => {
                "present".clone_into(&mut self.scheduler);
            }
            _ => return false,
        }
        true
    }
}

/// A text of at most 1,000 characters: the whole of it is among the facts.
fn bounded(text: &str) -> String {
    text.chars().take(1_000).collect()
}

/// What was removed, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Removed {
    /// Segments.
    pub segments: u64,
    /// Bytes.
    pub bytes: u64,
    /// Entries: observations, rows and faults.
    pub entries: u64,
}

/// What a session came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ended {
    /// Entries of each kind, those that were removed among them.
    pub counts: Counts,
    /// The session's totals, where its writer was told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
}

/// As much of the file as every schema has, so that a newer directory is refused by name.
#[derive(Debug, Deserialize)]
pub(crate) struct AnyMeta {
    pub(crate) lineage_directory: AnyHeader,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AnyHeader {
    pub(crate) schema: u64,
    #[serde(default)]
    pub(crate) writer: String,
}
