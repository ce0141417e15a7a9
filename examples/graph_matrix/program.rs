//! What the program does, as the options say.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Parser as _;

use crate::cell::{Cell, Cupti, Shape, Variation};
use crate::gpu::Gpu;
use crate::numbers::grouped;
use crate::options::Options;
use crate::record::Record;
use crate::run;
use crate::table;

/// Runs the matrix, or shows an earlier run's.
pub fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.markdown {
        Some(file) => show(file),
        None if options.here => here(&options),
        None => all(&options),
    };
    done.unwrap_or_else(|problem| {
        anstream::eprintln!("{problem}");
        ExitCode::from(2)
    })
}

type Done = Result<ExitCode, Box<dyn std::error::Error>>;

fn show(file: &Path) -> Done {
    let record: Record = serde_json::from_slice(&std::fs::read(file)?)?;
    print!("{}", table::markdown(&record));
    Ok(ExitCode::SUCCESS)
}

/// A process for each version of CUPTI, and one more for the cells in which ids come again: both are
/// settings of the simulator, which is one for a process.
fn all(options: &Options) -> Done {
    let began = Instant::now();
    let versions = match options.cupti.as_slice() {
        [] => Cupti::ALL.to_vec(),
        chosen => chosen.to_vec(),
    };
    let mut record = Record::default();
    for cupti in versions {
        for reuse in [false, true] {
            if cells(options, cupti, reuse).is_empty() {
                continue;
            }
            let output = child(options, cupti, reuse)?
                .stdout(Stdio::piped())
                .spawn()?
                .wait_with_output()?;
            let cupti = cupti.name();
            let part = serde_json::from_slice(&output.stdout).map_err(|error| {
                let status = output.status;
                format!("the cells of CUPTI {cupti} gave no record ({status}): {error}")
            })?;
            record.add(part);
        }
    }
    anstream::println!("{}", table::text(&record));
    let sums = record.sums(|_| true);
    anstream::println!(
        "{} cells; {} operations, {} of them kernels of graphs: {} lost, {} wrong; of the captures {} lost, {} wrong, \
         {} that cannot be known and are said not to be; {:.0} s",
        sums.cells,
        grouped(sums.operations),
        grouped(sums.kernels),
        sums.lost,
        sums.wrong,
        sums.capture_lost,
        sums.capture_wrong,
        grouped(sums.unknown),
        began.elapsed().as_secs_f64(),
    );
    for problem in &record.problems {
        anstream::println!("problem: {problem}");
    }
    if let Some(file) = &options.json {
        let mut json = serde_json::to_string_pretty(&record)?;
        json.push('\n');
        std::fs::write(file, json)?;
    }
    if sums.cells == 0 {
        return Err(format!("no cell's name contains `{}`", options.only).into());
    }
    Ok(if record.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// This program, for the cells of one version.
fn child(options: &Options, cupti: Cupti, reuse: bool) -> Result<Command, std::io::Error> {
    let list = |numbers: &[u32]| {
        let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
        numbers.join(",")
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--here").args(["--cupti", cupti.name()]);
    command.args(["--nodes", &list(&options.nodes)]);
    command.args(["--replays", &list(&options.replays)]);
    command.args(["--only", &options.only]);
    if reuse {
        command.arg("--reuse");
    }
    Ok(command)
}

/// The cells of one version in this process; their record goes to the parent.
fn here(options: &Options) -> Done {
    let [cupti] = options.cupti[..] else {
        return Err("one version of CUPTI at a time can be in a process".into());
    };
    let cells = cells(options, cupti, options.reuse);
    let kernels = |cell: &Cell| 8 * (cell.nodes + 1) * cell.replays.max(4);
    let most = cells.iter().map(kernels).max().unwrap_or_default();
    let gpu = Gpu::load(cupti, options.reuse, most)?;
    let mut record = Record::default();
    for cell in cells {
        record.take(cell, &run::run(&gpu, cell));
    }
    serde_json::to_writer(std::io::stdout().lock(), &record)?;
    Ok(ExitCode::SUCCESS)
}

/// The cells of one version, with or without ids that come again.
fn cells(options: &Options, cupti: Cupti, reuse: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut variations = Variation::ALL.to_vec();
    variations.retain(|variation| (*variation == Variation::Reuse) == reuse);
    for variation in variations {
        for shape in Shape::ALL {
            for nodes in &options.nodes {
                for replays in &options.replays {
                    let (nodes, replays) = (*nodes as usize, *replays as usize);
                    cells.push(Cell {
                        cupti,
                        shape,
                        variation,
                        nodes,
                        replays,
                    });
                }
            }
        }
    }
    cells.retain(|cell| cell.to_string().contains(&options.only));
    cells
}
