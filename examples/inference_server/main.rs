//! A real HTTP inference server under load, and whose request each of its kernels was.
//!
//! ```text
//! cargo run --release --example inference_server
//! ```
//!
//! starts the [`server`] on a free loopback port, sends it 500 requests at concurrency 32 through an HTTP client,
//! with lineage off and with lineage on, checks every answer against a plain Rust [`model`], and
//! every join against [`truth`] that is carried by data. Without a usable NVIDIA GPU it runs on the simulated one.
//!
//! The lineage code is in [`server`]: a span field in the handler, two envelopes, a merge, two launch boundaries.

#![expect(unreachable_pub, reason = "a program has no public interface")]

mod cannot_run;
mod check;
mod device;
mod gpu;
mod load;
mod model;
mod options;
mod probe;
mod run;
mod sabotage;
mod server;
mod subscriber;
mod summary;
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
