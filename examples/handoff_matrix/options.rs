//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Every way in which work changes hands, on the simulated GPU, against truth that is carried by data.
#[derive(Debug, Clone, Parser)]
#[command(name = "handoff_matrix", version, after_help = AFTER_HELP)]
pub struct Options {
    /// Requests that each caller makes in each cell
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100_000))]
    pub requests: u64,

    /// The same in cells with a mutation
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100_000))]
    pub mutated: u64,

    /// Callers at once
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub callers: u64,

    /// How many times the whole matrix is run
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Only carriers whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,

    /// Simulated CUPTI: whether an id that is pushed inside its API-enter callback counts for that call
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, value_name = "true|false", hide_possible_values = true)]
    pub sim_push_inside_enter: bool,

    /// Write what came out as JSON as well
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Run nothing: print the table of an earlier run's JSON as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

const AFTER_HELP: &str = "Exit status: 0 everything is as it must be; 1 something is lost, wrong, left behind, or unnoticed; 2 could not run.";
