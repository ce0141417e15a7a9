//! The program, by what its parts do:
//!
//! * [`run`] asks every question in a child process and writes what came of it; [`process`] is such a
//!   child with its time limit, [`machine`] what there is on this machine, [`privacy`] what is not written;
//! * [`questions`] are the questions, each asked in the child: of CUPTI through [`cupti`], about the
//!   work of a small [`program`];
//! * [`scenarios`] are small pieces of work, each run in a child as well, whose records are the answer;
//! * [`diff`] compares two runs.

mod clock;
mod cupti;
mod diff;
mod failure;
mod machine;
mod options;
mod privacy;
mod process;
mod program;
mod questions;
mod record;
mod resources;
mod run;
mod scenarios;

use std::process::ExitCode;

use clap::Parser as _;

use options::Command;

pub fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Run(run) => run::all(&run),
        Command::Ask(ask) => questions::answer_one(&ask),
        Command::Diff(files) => diff::print(&files),
        Command::Questions => {
            for question in questions::QUESTIONS.iter().chain(scenarios::SCENARIOS) {
                println!("{:<36} {}", question.name, question.asks);
            }
            Ok(ExitCode::SUCCESS)
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}
