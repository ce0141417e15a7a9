//! Strangers' crates load the simulator, in every way in which cargo lays out its folders.
//!
//! Builds a small crate some ten times, so it runs only when `LINEAGE_SIM_CONSUMERS=1` asks.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

#[test]
fn a_stranger_takes_it_by_git_and_by_path() {
    if std::env::var_os("LINEAGE_SIM_CONSUMERS").is_none_or(|value| value != "1") {
        println!("skipped: LINEAGE_SIM_CONSUMERS=1 runs it");
        return;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = package
        .parent()
        .expect("the package lies in the repository");
    let scratch =
        std::env::temp_dir().join(format!("lineage-sim-consumers-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("a scratch folder");
    let status = Command::new("sh")
        .arg(package.join("tests/consumers.sh"))
        .args([repository, &scratch])
        .status()
        .expect("sh runs");
    let removed = std::fs::remove_dir_all(&scratch);
    assert!(status.success(), "{status}");
    removed.expect("the scratch folder is removed");
}
