//! Questions to the real CUPTI, asked on a machine with a GPU by a program that is built elsewhere.
//!
//! ```text
//! device_check run --out FOLDER             ask them all, of a real GPU
//! device_check run --out FOLDER --gpu sim   the same list, of the simulated one
//! device_check diff REAL SIMULATED          what the two answered differently
//! ```
//!
//! What NVIDIA does not document, lineage must not rely on, and the simulator has a switch for it. This
//! program finds out what a device does. Each question is asked in a process of its own and within a
//! time limit; whatever fails is recorded and the next one is asked. Everything that is found is
//! written as JSON, which `docs/device/README.md` describes. `scripts/device-check` builds and runs it.

#![expect(unreachable_pub, reason = "a program has no public interface")]

#[cfg(target_os = "linux")]
mod check;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    check::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("device_check runs on Linux only, as lineage-cupti does");
    ExitCode::from(2)
}
