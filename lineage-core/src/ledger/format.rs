//! What the lines of a ledger hold.

use uuid::Uuid;

use crate::id::HostNanos;
use crate::observation::Observation;
use crate::row::{LooseFault, Row};
use crate::source::SessionInfo;

/// The schema this build writes, and the newest it reads. It rises only when an old reader would
/// misunderstand a new file: new kinds of lines, events and values do not raise it.
pub const SCHEMA: u32 = 1;

/// The longest line, without its line feed, that is written or read: 1 MiB.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// A ledger's first line.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Header {
    /// The schema of the file, from 1.
    pub schema: u32,
    /// The recording process.
    #[serde(with = "uuid_text")]
    pub process: Uuid,
    /// The service's name, as it was given to the session.
    pub service: String,
    /// When the session started, on the session's clock.
    #[serde(rename = "started_ns")]
    pub started: HostNanos,
    /// The same moment in nanoseconds since the Unix epoch, where it was known: what turns the
    /// file's times into dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_ns: Option<u64>,
    /// Package and version that wrote the file.
    pub writer: String,
}

impl Header {
    /// The header that this build writes for a session.
    pub fn of(session: &SessionInfo) -> Self {
        Self {
            schema: SCHEMA,
            process: session.process,
            service: session.service.to_string(),
            started: session.started,
            started_unix_ns: session.started_unix_ns,
            writer: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// How many of each kind of line a ledger holds: its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Lines with an observation.
    pub observations: u64,
    /// Lines with a row.
    pub rows: u64,
    /// Lines with a fault that belongs to no row.
    pub faults: u64,
    /// What the writer could not write, because its line would have been too long.
    #[serde(default)]
    pub not_written: u64,
}

/// One line to be written.
#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LineOut<'a> {
    Lineage(&'a Header),
    Observation(&'a Observation),
    Row(&'a Row),
    Fault(&'a LooseFault),
    End(&'a Counts),
}

/// One line that was read.
#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and taken apart at once"
)]
pub(super) enum LineIn {
    Lineage(Header),
    Observation(Observation),
    Row(Row),
    Fault(LooseFault),
    End(Counts),
}

/// As much of a first line as every schema has, so that a newer file is refused by name.
#[derive(serde::Deserialize)]
pub(super) struct AnyHeader {
    pub(super) lineage: AnyHeaderInner,
}

/// See [`AnyHeader`].
#[derive(serde::Deserialize)]
pub(super) struct AnyHeaderInner {
    pub(super) schema: u64,
    #[serde(default)]
    pub(super) writer: String,
}

/// A UUID as its hyphenated text.
mod uuid_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use uuid::Uuid;

    pub(super) fn serialize<S: Serializer>(uuid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(uuid)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Uuid, D::Error> {
        let text = String::deserialize(deserializer)?;
        Uuid::parse_str(&text).map_err(serde::de::Error::custom)
    }
}
