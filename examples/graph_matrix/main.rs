//! Every way in which a CUDA graph comes to be replayed, and whose each of its kernels was.
//!
//! ```text
//! cargo run --release --example graph_matrix
//! ```
//!
//! A kernel of a graph has two owners: who captured it and whom the replay is for. For graphs of
//! different sizes, replayed by one thread, by eight, and over four streams, as they were captured or
//! cloned, instantiated again, updated, partly disabled, under ids that come again, and for four
//! versions of CUPTI, each kernel's row is compared with what the simulated GPU really did.
//!
//! Who they are travels as data. Each capture has a word of device memory, whose address is a
//! parameter of its kernels; before each replay the numbers of the capture and of the replay are
//! copied into it, and the kernel that runs reads them from there. Beside it, the same records are
//! read in three other ways: by the external id alone, by the correlation id alone, and by the
//! names of the kernels in their order.
//!
//! Where to read on:
//!
//! * `cell.rs` has what is varied, `worker.rs` does it, `gpu.rs` says how the driver is called.
//! * `score.rs` compares with the truth, `expected.rs` says what cannot be known, and `baseline.rs` has
//!   the other ways.
//! * `run.rs` runs a cell in a session of its own, `program.rs` all of them, with a process for each
//!   version of CUPTI; `table.rs` shows what came out.

#![cfg_attr(
    target_os = "linux",
    expect(unreachable_pub, reason = "a program has no public interface")
)]

#[cfg(target_os = "linux")]
mod baseline;
#[cfg(target_os = "linux")]
mod cell;
#[cfg(target_os = "linux")]
mod desk;
#[cfg(target_os = "linux")]
mod expected;
#[cfg(target_os = "linux")]
mod gpu;
#[cfg(target_os = "linux")]
#[path = "../shared/numbers.rs"]
mod numbers;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod pace;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod score;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod worker;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    program::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the simulated gpu is for Linux");
}
