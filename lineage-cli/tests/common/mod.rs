//! What the tests of the command share: real processes, their output and their exit codes.
#![allow(dead_code, reason = "each test file uses what it needs")]

// The same hand-made recordings as the validator's own tests.
#[path = "../../../validator/tests/recording/mod.rs"]
pub(crate) mod recording;
pub(crate) mod schema;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::ledger::Writer;
use lineage_core::observation::Event;
use lineage_core::source::{SessionInfo, Sink};
use recording::{Launch, Recording};

pub(crate) fn lineage() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineage"));
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The objects of the output, one per line.
    pub(crate) fn objects(&self) -> Vec<serde_json::Value> {
        let lines = self.out.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    /// The text with its lines joined, however they were broken.
    pub(crate) fn words(&self) -> String {
        self.out.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn run(command: &mut Command) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the command runs");
    Ran {
        code: status.code(),
        out: String::from_utf8(stdout).expect("UTF-8"),
        err: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// Runs `lineage` with these arguments and this file behind them.
pub(crate) fn on(arguments: &[&str], file: &Path) -> Ran {
    run(lineage().args(arguments).arg(file))
}

/// A folder of the test's own, gone with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file of a test's own, gone with it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file = folder.join(format!("{}-{name}", std::process::id()));
        std::fs::write(&file, bytes).expect("the target folder can be written");
        Self(file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A ledger of a recording.
pub(crate) fn ledger(recording: &Recording) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file);
    let session = SessionInfo::new(uuid::Uuid::from_u128(7), "llm", HostNanos(5));
    writer.begin(&session).expect("in memory");
    writer
        .observations(&recording.observations)
        .expect("in memory");
    writer.finish().expect("in memory");
    drop(writer);
    file
}

/// Three launches, with nothing wrong.
pub(crate) fn sound() -> Vec<u8> {
    ledger(&Recording::sound().ended())
}

/// 13 launches without an epoch, and one call without its operation.
pub(crate) fn faulty() -> Vec<u8> {
    let mut recording = Recording::sound();
    for number in 4..17 {
        let called = 10_000 + u64::from(number) * 500;
        recording.launch(&Launch::of_none(10, number, called));
    }
    let recording = recording.ended();
    ledger(&recording.without(
        |event| matches!(event, Event::Operation(of) if of.correlation == CorrelationId(2)),
    ))
}

/// A small recording of somebody else's, in the repository.
pub(crate) fn kineto(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces/kineto");
    let file = folder.join(name);
    assert!(file.exists(), "{} is in the repository", file.display());
    file
}

/// A larger recording of somebody else's, by its path below `LINEAGE_TRACES`. Where it is absent the
/// test is skipped with a message, or fails if `LINEAGE_REQUIRE` has `traces`.
pub(crate) fn large_trace(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces");
    let folder = std::env::var_os("LINEAGE_TRACES").map_or(beside, PathBuf::from);
    let file = folder.join(name);
    if file.exists() {
        return Some(file);
    }
    let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|part| part.trim() == "traces"),
        "{} is not there, and LINEAGE_REQUIRE asks for traces",
        file.display()
    );
    eprintln!(
        "skipped: {} is not there (LINEAGE_TRACES names the folder)",
        file.display()
    );
    None
}
