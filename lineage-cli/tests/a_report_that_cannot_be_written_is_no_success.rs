//! On a full disk a command says so, and ends with status 2.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

#[test]
fn what_does_not_fit_on_a_full_disk_is_said() {
    for arguments in [&["explain", "L05"][..], &["schema", "validate"], &["man"]] {
        let full = OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it");
        let output = Command::new(env!("CARGO_BIN_EXE_lineage"))
            .args(arguments)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("the output cannot be written"), "{said}");
    }
}
