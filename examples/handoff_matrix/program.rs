//! What the program does, as the options say.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser as _;
use indicatif::{ProgressBar, ProgressStyle};

use crate::carriers;
use crate::matrix::{Carrier, Column, Runs};
use crate::mutation::{Mutation, Shows};
use crate::numbers::grouped;
use crate::options::Options;
use crate::record::Record;
use crate::run::Setting;
use crate::table;

/// Runs the matrix, or shows an earlier run's.
pub fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.markdown {
        Some(file) => show(file),
        None => run(&options),
    };
    done.unwrap_or_else(|problem| {
        anstream::eprintln!("{problem}");
        ExitCode::from(2)
    })
}

fn show(file: &Path) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let record: Record = serde_json::from_slice(&std::fs::read(file)?)?;
    print!("{}", table::markdown(&record));
    Ok(ExitCode::SUCCESS)
}

fn run(options: &Options) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let mut carriers = carriers::all();
    carriers.retain(|carrier| carrier.name.contains(&options.only));
    if carriers.is_empty() {
        return Err(format!("no carrier's name contains `{}`", options.only).into());
    }
    let setting = Setting::new(options.callers, options.sim_push_inside_enter)?;
    let mut record = Record::new(&carriers, options.callers, options.requests, options.rounds);
    let cells = cells(&carriers);
    let progress = progress_bar(cells.len() as u64 * u64::from(options.rounds));
    for _ in 0..options.rounds {
        for (carrier, column, mutation) in &cells {
            progress.set_message(carrier.name);
            let requests = match mutation {
                None => options.requests,
                Some(_) => options.mutated,
            };
            let outcome = setting.run(carrier, *column, *mutation, requests / 2);
            record.take(carrier, &outcome);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();

    anstream::println!("{}", table::text(&record));
    anstream::println!(
        "{} cells and {} with a mutation, {} callers at once; {} launches: {} lost, {} wrong; {:.0} s",
        record.cells,
        record.mutated_cells,
        record.callers,
        grouped(record.launches()),
        record.lost(),
        record.wrong(),
        began.elapsed().as_secs_f64(),
    );
    for row in &record.carriers {
        for cell in &row.cannot_be {
            anstream::println!("no cell: {}, {}: {}", row.name, cell.column, cell.why);
        }
    }
    for problem in &record.problems {
        anstream::println!("problem: {problem}");
    }
    if let Some(file) = &options.json {
        let mut json = serde_json::to_string_pretty(&record)?;
        json.push('\n');
        std::fs::write(file, json)?;
    }
    Ok(if record.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Every cell that can be, and every mutation in the first of them.
fn cells(carriers: &[Carrier]) -> Vec<(&Carrier, Column, Option<Mutation>)> {
    let mut cells = Vec::new();
    for carrier in carriers {
        let columns = Column::ALL.into_iter().zip(carrier.columns);
        let columns = columns.filter(|(_, runs)| *runs == Runs::Yes);
        let columns: Vec<_> = columns.map(|(column, _)| column).collect();
        cells.extend(columns.iter().map(|column| (carrier, *column, None)));
        let can_be = |mutation: &Mutation| !matches!(carrier.shows(*mutation), Shows::CannotBe(_));
        for mutation in Mutation::ALL.into_iter().filter(can_be) {
            let first = columns.first();
            cells.extend(first.map(|column| (carrier, *column, Some(mutation))));
        }
    }
    cells
}

/// Drawn on the terminal only: indicatif hides it elsewhere.
fn progress_bar(cells: u64) -> ProgressBar {
    let bar = ProgressBar::new(cells);
    if let Ok(style) =
        ProgressStyle::with_template("  {bar:40.green/dim} {pos} of {len} cells  {msg}")
    {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar
}
