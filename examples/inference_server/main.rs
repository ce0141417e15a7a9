//! A real HTTP inference server under load, and whose request each of its kernels was.
//!
//! ```text
//! cargo run --release --example inference_server
//! ```
//!
//! starts the server on a free loopback port and sends it 500 requests through an HTTP client, 32 at
//! once, with lineage off and on in turn. Every answer is checked against a plain Rust model, and
//! every join against truth that is carried by data. Without a usable NVIDIA GPU it runs on the
//! simulated one.
//!
//! Where to read on:
//!
//! * `server/` is the server, and has all of its lineage code: a span field in the handler, two
//!   envelopes and a merge in the batcher, two launch boundaries in the engine; and three marks, which
//!   only `--tier explain` makes use of.
//! * `model/` is what it computes: the reference, the kernels as PTX and for the simulated GPU.
//! * `truth.rs` scores the joins, `sabotage.rs` breaks handoffs to see that it is noticed.
//! * `run.rs` does the runs, `load.rs` is the client, `summary.rs` says what came out.

#![expect(unreachable_pub, reason = "a program has no public interface")]

mod cannot_run;
mod check;
mod device;
mod gpu;
mod load;
mod model;
#[path = "../shared/numbers.rs"]
mod numbers;
mod options;
mod otlp;
mod probe;
mod rates;
mod run;
mod sabotage;
mod server;
mod subscriber;
mod summary;
mod table;
mod truth;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cannot_run::CannotRun;
use crate::options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    if options.probe_real_gpu {
        return probe::main();
    }
    match run_and_show(&options) {
        Ok(exit_code) => exit_code,
        Err(problem) => {
            anstream::eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

fn run_and_show(options: &Options) -> Result<ExitCode, CannotRun> {
    let summary = run::run(options)?;
    summary.print(options);
    summary.write_json(options)?;
    Ok(summary.exit_code())
}
