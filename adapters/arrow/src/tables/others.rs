//! Switches of threads, faults that belong to no row, and everything else.

use lineage_core::fault::FaultCode;
use lineage_core::id::ProcessOrdinal;
use lineage_core::ledger::Entry;
use lineage_core::observation::{Event, Observation, Scheduled};
use lineage_core::row::{LooseFault, Row};
use std::sync::Arc;

use super::{Given, of_kind};
use crate::column::Column;
use crate::port::{self, Bad, Port, need};

pub(super) fn switch<P: Port>(port: &mut P, given: Option<&Event>) -> Result<Event, Bad> {
    let given = of_kind!(given, Scheduled);
    let tid = port.number(Column::u64("tid"), given.map(|of| of.tid))?;
    let at = port::time(port, Column::delta("at_ns"), given.map(|of| of.at))?;
    let cpu = port::u32(port, Column::u32("cpu"), given.and_then(|of| of.cpu))?;
    let running = port::bool(port, "running", given.map(|of| of.running))?;
    let off = port.variant(Column::name("off"), given.and_then(|of| of.off))?;
    let state = port::u32(port, Column::u32("state"), given.and_then(|of| of.state))?;
    Ok(Scheduled {
        tid: need("tid", tid)?,
        at: need("at_ns", at)?,
        cpu,
        running: need("running", running)?,
        off,
        state,
    }
    .into())
}

pub(super) fn fault<P: Port>(
    port: &mut P,
    process: Option<u32>,
    given: Option<&LooseFault>,
) -> Result<LooseFault, Bad> {
    let code = port.variant(Column::name("code"), given.map(|of| of.code))?;
    let epoch = port::epoch(port, Column::delta("epoch"), given.and_then(|of| of.epoch))?;
    let at = port::time(port, Column::delta("at_ns"), given.and_then(|of| of.at))?;
    let count = port.number(Column::u64("count"), given.map(|of| of.count))?;
    let detail = port.text(Column::text("detail"), given.map(|of| of.detail.as_str()))?;
    Ok(LooseFault {
        process: ProcessOrdinal(need("process", process)?),
        code: need::<FaultCode>("code", code)?,
        epoch,
        at,
        count: need("count", count)?,
        detail: need("detail", detail)?,
    })
}

/// A line of the JSON-lines ledger, to be written.
#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum LineOut<'a> {
    Observation(&'a Observation),
    Row(&'a Row),
    Fault(&'a LooseFault),
}

/// A line of the JSON-lines ledger that was read.
#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and taken apart at once"
)]
enum LineIn {
    Observation(Observation),
    Row(Row),
    Fault(LooseFault),
}

pub(super) fn fact<P: Port>(port: &mut P, given: Option<Given<'_>>) -> Result<Option<Entry>, Bad> {
    let line = match given {
        None => None,
        Some(given) => {
            let line = match given {
                Given::Observation(of) => serde_json::to_string(&LineOut::Observation(of)),
                Given::Row(of) => serde_json::to_string(&LineOut::Row(of)),
                Given::Fault(of) => serde_json::to_string(&LineOut::Fault(of)),
            };
            Some(line.map_err(|_| Bad::Range("json"))?)
        }
    };
    let kind = line.as_deref().and_then(kind_of).map(Arc::from);
    port.name(Column::name("kind"), kind.as_ref())?;
    let read = port.text(Column::text("json"), line.as_deref())?;
    if given.is_some() {
        return Ok(None);
    }
    let line = need("json", read)?;
    match serde_json::from_str(&line) {
        Ok(LineIn::Observation(of)) => Ok(Some(Entry::Observation(of))),
        Ok(LineIn::Row(of)) => Ok(Some(Entry::Row(of))),
        Ok(LineIn::Fault(of)) => Ok(Some(Entry::Fault(of))),
        Err(error) => Err(match unknown_variant(&error.to_string()) {
            Some(kind) => Bad::Unknown("json", kind.to_owned()),
            None => Bad::Range("json"),
        }),
    }
}

/// The event's kind in a line, or else the line's: `scheduler_session`, `row`.
fn kind_of(line: &str) -> Option<&str> {
    let (_, event) = line
        .split_once(r#""event":{""#)
        .or_else(|| line.split_once('"'))?;
    event.split('"').next()
}

/// Name of an enumeration's value that this build does not know, by serde's message for it.
fn unknown_variant(message: &str) -> Option<&str> {
    message
        .strip_prefix("unknown variant `")?
        .split('`')
        .next()
        .filter(|name| !name.is_empty())
}
