//! Every way in which work changes hands in a Rust server, and proof that the epoch comes along.
//!
//! ```text
//! cargo run --release --example handoff_matrix
//! ```
//!
//! For each carrier, on a runtime or pool of 4 threads, of 8 and of one, 8 callers at once make
//! requests whose kernels run on the simulated GPU. A request's number travels as data, up to the
//! kernel's argument, which the device reads; its epoch travels by the carrier. Where the two
//! arrive together, the join is right. Beside it, the same launches say what
//! `tracing::Span::current()` and a plain thread-local would have made of them.
//!
//! Then every carrier is broken on purpose, and the table says what shows it while the program
//! runs: a fault code, or only truth.
//!
//! Where to read on:
//!
//! * `carriers/` has the carriers, a few lines each: the right way, and the way that forgets it.
//! * `request.rs` is what travels, `cell.rs` what drives it, `threads.rs` who looks at its threads.
//! * `baseline.rs` has the other ways, `mutation.rs` what is broken.
//! * `score.rs` compares with the truth, `run.rs` looks at what is left behind after each cell.
//! * `record.rs` and `table.rs` are what comes out; the README's table is written from it.

#![cfg_attr(
    target_os = "linux",
    expect(unreachable_pub, reason = "a program has no public interface")
)]

#[cfg(target_os = "linux")]
mod baseline;
#[cfg(target_os = "linux")]
mod carriers;
#[cfg(target_os = "linux")]
mod cell;
#[cfg(target_os = "linux")]
mod gpu;
#[cfg(target_os = "linux")]
mod matrix;
#[cfg(target_os = "linux")]
mod mutation;
#[cfg(target_os = "linux")]
#[path = "../shared/numbers.rs"]
mod numbers;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod request;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod score;
#[cfg(target_os = "linux")]
mod subscriber;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod threads;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    program::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the simulated gpu is for Linux");
}
