//! Databases that a test writes, row by row, and what comes of them.
#![allow(dead_code, reason = "each test uses its share")]

use std::path::{Path, PathBuf};

use lineage_core::observation::{Event, Observation, Operation};
use lineage_import::{Holdings, Recording, Settings, Skip};
use lineage_nsys::ImportError;
use rusqlite::Connection;
use tempfile::TempDir;

/// A process as exports serialize it: machine 1, process 1,000. 2^48 + 1,000 * 2^24.
pub(crate) const PROCESS: i64 = 281_491_753_926_656;
/// Its main thread, whose number is the process's.
pub(crate) const THREAD: i64 = PROCESS + 1_000;
/// Another process of the machine, 1,001, and its main thread.
pub(crate) const OTHER_PROCESS: i64 = PROCESS + (1 << 24);
pub(crate) const OTHER_THREAD: i64 = OTHER_PROCESS + 1_001;

/// Columns of API calls as schema 3.25 has them.
pub(crate) const CALLS: &str = "create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer not null, end integer not null, \
    eventClass integer not null, globalTid integer, correlationId integer, nameId integer not null, \
    returnValue integer not null, callchainId integer)";

/// Columns of kernels, those that are read.
pub(crate) const KERNELS: &str = "create table CUPTI_ACTIVITY_KIND_KERNEL (start integer not null, end integer not null, \
    deviceId integer not null, contextId integer not null, greenContextId integer, streamId integer not null, \
    correlationId integer, globalPid integer, demangledName integer not null, shortName integer not null, \
    mangledName integer, gridX integer, gridY integer, gridZ integer, blockX integer, blockY integer, \
    blockZ integer, graphNodeId integer, graphId integer, registersPerThread integer, \
    staticSharedMemory integer, dynamicSharedMemory integer)";

pub(crate) const STRINGS: &str =
    "create table StringIds (id integer not null primary key, value text not null)";

/// An export that a test writes.
pub(crate) struct Export {
    folder: TempDir,
    connection: Connection,
}

impl Export {
    /// A database without tables.
    pub(crate) fn empty() -> Self {
        let folder = TempDir::new().expect("a folder");
        let connection = Connection::open(folder.path().join("report.sqlite")).expect("a file");
        Self { folder, connection }
    }

    /// One of schema 3.25 with names 1 `cudaLaunchKernel_v7000`, 2 `gemm(float*)`, 3 `gemm`, and no
    /// records.
    pub(crate) fn new() -> Self {
        let export = Self::empty();
        export.run(STRINGS);
        export.run("insert into StringIds values (1, 'cudaLaunchKernel_v7000'), (2, 'gemm(float*)'), (3, 'gemm')");
        export.run("create table META_DATA_EXPORT (name text not null, value text)");
        export.run("insert into META_DATA_EXPORT values ('EXPORT_SCHEMA_VERSION', '3.25.0')");
        export
    }

    /// Runs statements.
    pub(crate) fn run(&self, statements: &str) -> &Self {
        self.connection
            .execute_batch(statements)
            .unwrap_or_else(|error| panic!("{statements}: {error}"));
        self
    }

    /// A call of `cudaLaunchKernel`, from 100 to 200 ns, with this correlation id.
    pub(crate) fn launch(&self, thread: i64, correlation: i64) -> &Self {
        self.run(&format!(
            "insert into CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId, returnValue) \
             values (100, 200, 0, {thread}, {correlation}, 1, 0)"
        ))
    }

    /// A kernel on device 0, context 1, stream 7 from 150 to 250 ns, with this correlation id.
    pub(crate) fn kernel(&self, process: i64, correlation: i64) -> &Self {
        self.run(&format!(
            "insert into CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, \
             demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ) \
             values (150, 250, 0, 1, 7, {correlation}, {process}, 2, 3, 4, 5, 6, 7, 8, 9)"
        ))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("report.sqlite")
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("the file")
    }

    pub(crate) fn import(&self) -> Result<Recording, ImportError> {
        self.import_with(Settings::default())
    }

    pub(crate) fn import_with(&self, settings: Settings) -> Result<Recording, ImportError> {
        lineage_nsys::import(&self.path(), settings, &mut |_| {})
    }

    /// What a sound export holds.
    pub(crate) fn holdings(&self) -> Holdings {
        self.import().expect("a sound export").holdings().clone()
    }
}

/// All observations of a recording.
pub(crate) fn observations(recording: &Recording) -> Vec<Observation> {
    let slices = recording.slices(usize::MAX).expect("slices");
    slices
        .flat_map(|slice| slice.expect("a slice").observations)
        .collect()
}

/// Its operations, each with the number of its process.
pub(crate) fn operations(recording: &Recording) -> Vec<(u32, Operation)> {
    observations(recording)
        .into_iter()
        .filter_map(|seen| match seen.event {
            Event::Operation(operation) => Some((seen.process.0, operation)),
            _ => None,
        })
        .collect()
}

/// How often a reason was counted.
pub(crate) fn skipped(holdings: &Holdings, why: Skip) -> u64 {
    holdings.skipped.get(&why).copied().unwrap_or(0)
}

/// The folder of real exports. Where it is absent the test says so, and fails if `LINEAGE_REQUIRE`
/// asks for traces.
pub(crate) fn real_exports() -> Option<PathBuf> {
    let named = std::env::var_os("LINEAGE_TRACES").filter(|path| !path.is_empty());
    let folder = named.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"),
        PathBuf::from,
    );
    if folder.join("nsys").is_dir() {
        return Some(folder);
    }
    let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|part| part.trim() == "traces"),
        "no recordings in {}, and LINEAGE_REQUIRE asks for traces",
        folder.display()
    );
    eprintln!(
        "skipped: no recordings in {} (LINEAGE_TRACES names their folder)",
        folder.display()
    );
    None
}
