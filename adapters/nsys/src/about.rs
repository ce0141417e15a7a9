//! What a file says of itself: its schema's version, how graphs were traced, the recorder's own
//! warnings, the devices.
//!
//! The tables of capture and export settings and of the target's environment can hold whatever the
//! recorded machine's environment held. Of the first two, rows are read only by the names that are
//! in this file; the environment is never read.

use lineage_import::{DeviceDescription, Multiprocessors};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ImportError;
use crate::database::Database;
use crate::reading::Reading;
use crate::tables::{self, Schema, Value, scan};
use crate::text;

/// The newest schema that this importer was checked against.
const NEWEST_CHECKED: (u32, u32) = (3, 25);
/// The oldest.
const OLDEST_CHECKED: (u32, u32) = (2, 9);

/// `severity` of a warning; errors are above it.
const WARNING: i64 = 2;
const ERROR: i64 = 3;
/// Texts of the recorder's that are passed on.
const MOST_WARNINGS: usize = 32;

/// Devices that are described.
const MOST_DEVICES: usize = 4_096;

/// How the recorder traced graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraphTrace {
    /// One record for each launch of a graph.
    Graph,
    /// One for each node that ran.
    Node,
}

/// The schema's version as `3.24.14`, if the file says it.
pub(crate) fn schema_version(
    database: &Database,
    schema: &Schema,
) -> Result<Option<String>, ImportError> {
    for table in ["META_DATA_EXPORT", "EXPORT_META_DATA"] {
        if let Some(version) = setting(database, schema, table, "EXPORT_SCHEMA_VERSION")? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

/// A note for a version that was not checked.
pub(crate) fn note_on_version(version: &str) -> Option<String> {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return Some(
            "the export's schema version is not one: its tables are read by name all the same"
                .to_owned(),
        );
    };
    let (relation, (known_major, known_minor)) = if (major, minor) > NEWEST_CHECKED {
        ("newer", NEWEST_CHECKED)
    } else if (major, minor) < OLDEST_CHECKED {
        ("older", OLDEST_CHECKED)
    } else {
        return None;
    };
    Some(format!(
        "schema {major}.{minor} is {relation} than {known_major}.{known_minor}, up to which this importer was checked: its tables are read by name all the same"
    ))
}

/// How graphs were traced, if the file says it.
pub(crate) fn graph_trace(
    database: &Database,
    schema: &Schema,
) -> Result<Option<GraphTrace>, ImportError> {
    // The second is how schemas before 3.24 call it.
    for name in [
        "CUDA_GRAPH_TRACE_OPTIONS:MODE",
        "PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE",
    ] {
        let mode = setting(database, schema, "META_DATA_CAPTURE", name)?;
        match mode.as_deref() {
            Some("Graph") => return Ok(Some(GraphTrace::Graph)),
            Some("Node") => return Ok(Some(GraphTrace::Node)),
            _ => {}
        }
    }
    Ok(None)
}

/// The value of the first setting of that name. No other row's value is looked at.
fn setting(
    database: &Database,
    schema: &Schema,
    table: &str,
    name: &str,
) -> Result<Option<String>, ImportError> {
    match schema.table(database, table)? {
        Some(table) if table.has("name") && table.has("value") => {
            tables::first_value(database, &table, name)
        }
        _ => Ok(None),
    }
}

/// Passes on what the recorder itself warned of.
pub(crate) fn read_diagnostics(
    database: &Database,
    schema: &Schema,
    reading: &mut Reading<'_>,
) -> Result<(), ImportError> {
    let Some(table) = schema.table(database, "DIAGNOSTIC_EVENT")? else {
        return Ok(());
    };
    let mut said: FxHashSet<String> = FxHashSet::default();
    let mut more = 0_u64;
    scan(
        database,
        &table,
        ["severity", "text"],
        |[severity, text]| {
            if let Value::Integer(WARNING | ERROR) = severity
                && let Some(text) = text::note(text)
                && !said.contains(&text)
            {
                if said.len() == MOST_WARNINGS {
                    more += 1;
                } else {
                    let word = if severity == Value::Integer(ERROR) {
                        "an error"
                    } else {
                        "a warning"
                    };
                    reading
                        .collector
                        .note(format!("{word} of the recorder's: {text}"));
                    said.insert(text);
                }
            }
            Ok(())
        },
    )?;
    if more > 0 {
        let note = format!("the recorder's other warnings are not shown: {more}");
        reading.collector.note(note);
    }
    Ok(())
}

/// Describes the devices. A process may number them otherwise than the machine does: the newer
/// `TARGET_INFO_CUDA_DEVICE` says how. To be read after the records, which make processes known.
pub(crate) fn read_devices(
    database: &Database,
    schema: &Schema,
    reading: &mut Reading<'_>,
) -> Result<(), ImportError> {
    let Some(table) = schema.table(database, "TARGET_INFO_GPU")? else {
        return Ok(());
    };
    const COLUMNS: [&str; 10] = [
        "id",
        "name",
        "cuDevice",
        "asyncEngines",
        "smCount",
        "maxWarpsPerSm",
        "threadsPerWarp",
        "maxRegistersPerSm",
        "maxShmemPerSm",
        "maxBlocksPerSm",
    ];
    let mut devices: FxHashMap<i64, DeviceDescription> = FxHashMap::default();
    let mut ordinals: Vec<DeviceDescription> = Vec::new();
    scan(database, &table, COLUMNS, |values| {
        let [id, name, ordinal, numbers @ ..] = values;
        if let Value::Integer(id) = id
            && devices.len() < MOST_DEVICES
        {
            let numbers =
                numbers.map(|number| -> Option<u32> { reading.optional(number.number()) });
            let [
                copy_engines,
                count,
                warps,
                threads,
                registers,
                shared_bytes,
                blocks,
            ] = numbers;
            let ordinal = ordinal.number().unwrap_or(None).or(u32::try_from(id).ok());
            let device = DeviceDescription {
                process: None,
                ordinal: ordinal.unwrap_or(0),
                name: text::note(name),
                copy_engines,
                multiprocessors: Multiprocessors {
                    count,
                    threads: warps.and_then(|warps| warps.checked_mul(threads?)),
                    registers,
                    shared_bytes,
                    blocks,
                },
            };
            ordinals.extend(ordinal.map(|_| device.clone()));
            devices.insert(id, device);
        }
        Ok(())
    })?;
    let by_process = schema.table(database, "TARGET_INFO_CUDA_DEVICE")?;
    let mut described = 0;
    if let Some(table) = by_process {
        let columns = ["gpuId", "cudaId", "pid"];
        scan(database, &table, columns, |[gpu, ordinal, pid]| {
            if let Value::Integer(gpu) = gpu
                && let (Ok(Some(ordinal)), Ok(Some(pid))) = (ordinal.number(), pid.number())
                && described < MOST_DEVICES
            {
                for process in reading.processes.of_pid(pid) {
                    described += 1;
                    reading.collector.device(DeviceDescription {
                        process: Some(process),
                        ordinal,
                        ..devices.get(&gpu).cloned().unwrap_or_default()
                    });
                }
            }
            Ok(())
        })?;
    }
    if described == 0 {
        for device in ordinals {
            reading.collector.device(device);
        }
    }
    Ok(())
}

/// Tables of records that take part in no join. They are counted by their names.
const OTHERS: [&str; 12] = [
    "COMPOSITE_EVENTS",
    "CUDA_GPU_MEMORY_USAGE_EVENTS",
    "CUDA_GRAPH_EVENTS",
    "CUDA_HOST_CALLBACK",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
    "CUDNN_EVENTS",
    "CUBLAS_EVENTS",
    "CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH",
    "CUPTI_ACTIVITY_KIND_OVERHEAD",
    "MPI_P2P_EVENTS",
    "PROFILER_OVERHEAD",
];

/// Counts the rows of such tables.
pub(crate) fn count_others(
    database: &Database,
    schema: &Schema,
    reading: &mut Reading<'_>,
) -> Result<(), ImportError> {
    for name in OTHERS {
        let Some(table) = schema.table(database, name)? else {
            continue;
        };
        let mut count = 0;
        // A pass, not `count(*)`: that is one instruction of SQLite's, which nothing could stop.
        scan(database, &table, ["start"], |[_]| {
            count += 1;
            Ok(())
        })?;
        if count > 0 {
            reading.collector.other(name, count);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_were_not_checked_are_noted() {
        for known in ["2.9.1", "3.4.0", "3.25.0", "3.25"] {
            assert_eq!(note_on_version(known), None, "{known}");
        }
        for (other, word) in [
            ("3.26.0", "newer"),
            ("4.0.0", "newer"),
            ("2.8.3", "older"),
            ("three", "not one"),
            ("", "not one"),
        ] {
            let note = note_on_version(other).unwrap_or_default();
            assert!(note.contains(word), "{other}: {note}");
        }
    }
}
