//! The README's table of handoffs is what `examples/handoff_matrix` wrote of its last long run
//! (`docs/handoffs.json`), and what the program does today.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::Value;

const BEGIN: &str = "<!-- handoffs: written by .ci/handoffs -->\n";
const END: &str = "<!-- handoffs: end -->\n";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The example's binary: `cargo test` builds it before it runs tests; `cargo test --test …` does
/// not, so what is missing or old is built here.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().expect("the test has a path");
        let profile = test
            .ancestors()
            .nth(2)
            .expect("target/<profile>/deps/<test>");
        let program = profile.join("examples").join("handoff_matrix");
        let built = program.metadata().and_then(|file| file.modified()).ok();
        let sources = [
            "examples/handoff_matrix",
            "src",
            "lineage-core/src",
            "lineage-tokio/src",
            "lineage-cupti/src",
            "adapters/rayon/src",
            "adapters/tower/src",
            "validator/src",
        ];
        if sources.iter().any(|of| built < newest(&root().join(of))) {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--example", "handoff_matrix", "--manifest-path"]);
            cargo.arg(root().join("Cargo.toml"));
            if !cfg!(debug_assertions) {
                cargo.arg("--release");
            }
            let status = cargo.status().expect("cargo runs");
            assert!(status.success(), "the example does not build");
        }
        program
    })
}

fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).expect("the sources are there");
    let times = entries.map(|entry| {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            newest(&path)
        } else {
            path.metadata().and_then(|file| file.modified()).ok()
        }
    });
    times.max().flatten()
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).output().expect("it starts")
}

fn record() -> PathBuf {
    root().join("docs/handoffs.json")
}

/// What does not depend on how a run went: the carriers, what is written for each, where it cannot
/// be, and what shows each mutation.
fn rows(record: &Value) -> Vec<Value> {
    let carriers = record["carriers"].as_array().expect("an array");
    let row = |carrier: &Value| {
        let each = |of: &str, keep: &[&str]| -> Vec<Value> {
            let all = carrier[of].as_array().expect("an array");
            all.iter()
                .map(|one| keep.iter().map(|key| one[*key].clone()).collect())
                .collect()
        };
        serde_json::json!([
            carrier["name"],
            carrier["write"],
            each("cells", &["column"]),
            each("cannot_be", &["column", "why"]),
            each("mutations", &["mutation", "shows", "why_not"]),
        ])
    };
    carriers.iter().map(row).collect()
}

#[test]
fn the_readme_shows_the_record() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("it is there");
    let shown = readme
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.split_once(END));
    let (shown, _) = shown.expect("the README has the table's two marks");
    let markdown = run(&["--markdown", record().to_str().expect("UTF-8")]);
    assert!(markdown.status.success());
    let markdown = String::from_utf8(markdown.stdout).expect("UTF-8");
    assert_eq!(shown, markdown, "write it anew with .ci/handoffs");
}

#[test]
fn the_record_is_clean_and_long() {
    let text = std::fs::read(record()).expect("it is there");
    let record: Value = serde_json::from_slice(&text).expect("valid JSON");
    assert_eq!(record["problems"], serde_json::json!([]));
    assert_eq!(record["callers"], 8);
    assert_eq!(record["rounds"], 20);
    for carrier in record["carriers"].as_array().expect("an array") {
        let cells = carrier["cells"].as_array().expect("an array");
        for cell in cells {
            assert_eq!((&cell["lost"], &cell["wrong"]), (&0.into(), &0.into()));
            let launches = cell["launches"].as_u64().expect("a number");
            assert!(launches >= 10_000, "thousands of launches: {cell}");
        }
        for mutation in carrier["mutations"].as_array().expect("an array") {
            let count = |key: &str| mutation[key].as_u64().expect("a number");
            let missed = count("lost") + count("wrong");
            assert_eq!(missed == 0, mutation["shows"] == "cannot be", "{mutation}");
        }
    }
}

#[test]
fn what_is_run_today_is_what_was_recorded() {
    let name = format!("lineage-handoffs-{}.json", std::process::id());
    let json = std::env::temp_dir().join(name);
    let path = json.to_str().expect("UTF-8");
    let ran = run(&["--requests", "16", "--mutated", "24", "--json", path]);
    let text = std::fs::read(&json);
    let _ = std::fs::remove_file(&json);
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    let today: Value = serde_json::from_slice(&text.expect("written")).expect("valid JSON");
    let text = std::fs::read(record()).expect("it is there");
    let recorded: Value = serde_json::from_slice(&text).expect("valid JSON");
    assert_eq!(rows(&today), rows(&recorded));
}
