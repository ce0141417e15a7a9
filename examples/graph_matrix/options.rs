//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::cell::Cupti;

/// Every way in which a CUDA graph comes to be replayed, on the simulated GPU, against truth that is carried by data.
#[derive(Debug, Clone, Parser)]
#[command(name = "graph_matrix", version, after_help = AFTER_HELP)]
pub struct Options {
    /// Kernels of the graphs, each a column of cells
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10], value_name = "N,…", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub nodes: Vec<u32>,

    /// Replays by each thread, each a column of cells
    #[arg(long, value_delimiter = ',', default_values_t = [1, 20], value_name = "N,…", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub replays: Vec<u32>,

    /// Versions of CUPTI [default: all four]
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "12.4|12.9|13.1|13.5,…",
        hide_possible_values = true
    )]
    pub cupti: Vec<Cupti>,

    /// Only cells whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,

    /// Write what came out as JSON as well
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Run nothing: print the tables of an earlier run's JSON as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Used by this program itself: run the cells of the one version here, and print their record
    #[arg(long, hide = true)]
    pub here: bool,

    /// Used by this program itself: the cells in which ids come again, and no others
    #[arg(long, hide = true)]
    pub reuse: bool,
}

const AFTER_HELP: &str = "Exit status: 0 everything is as it must be; 1 something is lost, wrong or faulty; 2 could not run.";
