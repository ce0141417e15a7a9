//! How fast an export is imported, and in how much memory:
//!
//! ```sh
//! cargo run --release -p lineage-nsys --example nsys_throughput -- report1.sqlite
//! ```
//!
//! Prints rows and megabytes a second, and the most memory that the process had (on Linux).

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use lineage_nsys::Settings;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: throughput REPORT.sqlite");
        return ExitCode::from(2);
    };
    let begin = Instant::now();
    let mut bytes = 0;
    let imported = lineage_nsys::import(&path, Settings::default(), &mut |progress| {
        bytes = progress.of;
    });
    let seconds = begin.elapsed().as_secs_f64();
    match imported {
        Ok(recording) => {
            let holdings = recording.holdings();
            let records = holdings.sum(|process| {
                process.api_calls
                    + process.operations()
                    + process.synchronizations
                    + process.event_records
                    + process.graph_nodes
                    + process.scheduled
                    + process.os_calls
                    + process.ranges
            });
            println!(
                "{records} records of {:.1} MB in {seconds:.3} s: {:.0} records/s, {:.0} MB/s",
                bytes as f64 / 1e6,
                records as f64 / seconds,
                bytes as f64 / 1e6 / seconds,
            );
            if let Some(most) = most_memory() {
                println!("most memory: {most}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::from(2)
        }
    }
}

/// The process's greatest resident set, as Linux words it.
fn most_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" "),
    )
}
