//! The JSON object. Its fields are stable: `schema` rises when one changes its meaning or goes.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::evidence::{Evidence, evidence};
use super::held::Held;

/// Schema of the object.
pub(super) const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    file: String,
    format: &'static str,
    recorder: &'a str,
    version: Option<&'a str>,
    processes: Vec<ProcessObject<'a>>,
    devices: Vec<DeviceObject<'a>>,
    evidence: Vec<Evidence>,
    others: &'a BTreeMap<String, u64>,
    skipped: &'a BTreeMap<String, u64>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct ProcessObject<'a> {
    process: u32,
    pid: Option<u64>,
    rank: Option<u32>,
    name: Option<&'a str>,
    api_calls: u64,
    kernels: u64,
    memcpys: u64,
    memsets: u64,
    graphs: u64,
    threads: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    streams: Vec<StreamObject>,
}

#[derive(Serialize)]
struct StreamObject {
    device: u32,
    context: u32,
    stream: u32,
    operations: u64,
}

#[derive(Serialize)]
struct DeviceObject<'a> {
    device: u32,
    process: Option<u32>,
    name: Option<&'a str>,
}

/// One line with the object of a file.
pub(super) fn object(file: &Path, held: &Held) -> String {
    let processes = held.processes.iter().map(|process| ProcessObject {
        process: process.ordinal,
        pid: process.pid,
        rank: process.rank,
        name: process.name.as_deref(),
        api_calls: process.api_calls,
        kernels: process.kernels,
        memcpys: process.memcpys,
        memsets: process.memsets,
        graphs: process.graphs,
        threads: process.threads.len() as u64,
        first_ns: process.first_ns,
        last_ns: process.last_ns,
        streams: process
            .streams
            .iter()
            .map(|(&(device, context, stream), &operations)| StreamObject {
                device,
                context,
                stream,
                operations,
            })
            .collect(),
    });
    let devices = held.devices.iter().map(|device| DeviceObject {
        device: device.ordinal,
        process: device.process,
        name: device.name.as_deref(),
    });
    crate::text::json_line(&Object {
        schema: SCHEMA,
        file: file.display().to_string(),
        format: held.format.name(),
        recorder: &held.recorder,
        version: held.version.as_deref(),
        processes: processes.collect(),
        devices: devices.collect(),
        evidence: evidence(held.format, &held.tally),
        others: &held.others,
        skipped: &held.skipped,
        notes: &held.notes,
    })
}
