//! The example `device_check`, run as a program into a folder of its own.
#![allow(dead_code, reason = "each test uses its share")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// The example's binary: cargo builds examples before it runs tests, into a folder beside this test's own. Where
/// only this test was asked for, it is built now.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().expect("the test has a path");
        let profile = test
            .ancestors()
            .nth(2)
            .expect("target/<profile>/deps/<test>");
        let program = profile.join("examples").join("device_check");
        if !program.exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--example", "device_check", "--manifest-path"]);
            cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
            if !cfg!(debug_assertions) {
                cargo.arg("--release");
            }
            assert!(
                cargo.status().expect("cargo runs").success(),
                "the example does not build"
            );
        }
        program
    })
}

/// What came of a run.
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    /// What it printed.
    pub(crate) text: String,
    /// Removed at the end.
    pub(crate) folder: PathBuf,
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Run {
    /// `device_check run` with these arguments.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self::with(arguments, |_| {})
    }

    /// The same, with changes to the command.
    pub(crate) fn with(arguments: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lineage-device-check-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let mut command = Command::new(program());
        command.arg("run").arg("--out").arg(&folder).args(arguments);
        // What the surroundings say of CUPTI is not what these tests are about.
        command.env_remove("LINEAGE_CUPTI_LIBRARY");
        change(&mut command);
        let output = command.output().expect("the example starts");
        Self {
            status: output.status.code(),
            text: text(&output),
            folder,
        }
    }

    pub(crate) fn summary(&self) -> Value {
        self.json("summary.json")
    }

    /// A question's own file.
    pub(crate) fn question(&self, name: &str) -> Value {
        self.json(&format!("{name}.json"))
    }

    pub(crate) fn status_of(&self, question: &str) -> String {
        self.summary()["questions"][question]["status"]
            .as_str()
            .unwrap_or("not asked")
            .to_owned()
    }

    pub(crate) fn answer(&self, question: &str) -> Value {
        assert_eq!(
            self.status_of(question),
            "answered",
            "{question}: {}",
            self.text
        );
        self.summary()["questions"][question]["answer"].clone()
    }

    fn json(&self, file: &str) -> Value {
        let text = std::fs::read_to_string(self.folder.join(file));
        let text = text.unwrap_or_else(|error| panic!("{file}: {error}\n{}", self.text));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

/// `device_check diff` of two runs: its status and what it printed.
pub(crate) fn diff(first: &Run, second: &Run) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    command.arg("diff");
    command.args([first, second].map(|run| run.folder.join("summary.json")));
    let output = command.output().expect("the example starts");
    (output.status.code(), text(&output))
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .concat()
}
