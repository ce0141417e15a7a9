//! The record as a table, for the terminal and for a page.

use std::fmt::Write as _;

use crate::baseline::Missed;
use crate::numbers::grouped;
use crate::record::{MutationRecord, Record, Row};

const HEAD: [&str; 8] = [
    "handed over by",
    "cells",
    "launches",
    "lost, wrong",
    "current span: lost, wrong",
    "thread-local: lost, wrong",
    "forgotten",
    "not restored",
];

/// For the terminal: aligned columns.
pub fn text(record: &Record) -> String {
    let mut rows = vec![
        HEAD.map(str::to_owned)
            .into_iter()
            .chain(["swapped".to_owned()])
            .collect::<Vec<_>>(),
    ];
    for row in &record.carriers {
        let [launches, lost, wrong] = sums(row);
        let mut cells = vec![
            row.name.clone(),
            runs(row).to_string(),
            grouped(launches),
            format!("{lost}, {wrong}"),
            missed(&row.by_span),
            missed(&row.by_thread_local),
        ];
        cells.extend(row.mutations.iter().map(came_to));
        rows.push(cells);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).filter_map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:<width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// For a page: what is written, what came of it, what would have come of other ways, and what shows
/// a mistake.
pub fn markdown(record: &Record) -> String {
    let mut text = String::from(
        "| the work goes over | write | launches | lost | wrong | by the current span | by a thread-local | the carrier is forgotten | a scope is left open | two get swapped |\n\
         | --- | --- | --: | --: | --: | --- | --- | --- | --- | --- |\n",
    );
    for row in &record.carriers {
        let [launches, lost, wrong] = sums(row);
        let write = if row.write.starts_with("nothing") {
            row.write.clone()
        } else {
            format!("`{}`", row.write.replace('|', "\\|"))
        };
        let _ = write!(
            text,
            "| {} | {write} | {} | {lost} | {wrong} | {} | {} |",
            row.name,
            grouped(launches),
            in_words(&row.by_span),
            in_words(&row.by_thread_local),
        );
        for mutation in &row.mutations {
            let _ = write!(text, " {} |", mutation.shows);
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "\n{} cells were run: every row with 4 workers, 8 workers and one thread, {} callers at once, {} requests of each, {} {}. \
         {} more had a handoff that was broken on purpose.",
        grouped(record.cells),
        record.callers,
        grouped(record.requests_per_caller),
        record.rounds,
        if record.rounds == 1 {
            "time"
        } else {
            "times in a row"
        },
        grouped(record.mutated_cells),
    );
    let mut notes = Vec::new();
    for row in &record.carriers {
        for cell in &row.cannot_be {
            notes.push(format!(
                "* {} with {}: {}.",
                row.name, cell.column, cell.why
            ));
        }
        for mutation in &row.mutations {
            if let Some(why) = &mutation.why_not {
                notes.push(format!("* {}, {}: {why}.", row.name, mutation.mutation));
            }
        }
    }
    if !notes.is_empty() {
        let _ = writeln!(text, "What cannot be:\n\n{}", notes.join("\n"));
    }
    text
}

fn runs(row: &Row) -> u64 {
    row.cells.iter().map(|cell| cell.runs).sum()
}

fn sums(row: &Row) -> [u64; 3] {
    row.cells
        .iter()
        .fold([0; 3], |[launches, lost, wrong], cell| {
            [
                launches + cell.launches,
                lost + cell.lost,
                wrong + cell.wrong,
            ]
        })
}

fn missed(of: &Missed) -> String {
    format!(
        "{}, {}",
        percent(of.lost, of.launches),
        percent(of.wrong, of.launches)
    )
}

fn in_words(of: &Missed) -> String {
    match (of.lost, of.wrong) {
        (0, 0) => "right".to_owned(),
        (_, 0) => format!("{} lost", percent(of.lost, of.launches)),
        (0, _) => format!("{} wrong", percent(of.wrong, of.launches)),
        _ => format!(
            "{} lost, {} wrong",
            percent(of.lost, of.launches),
            percent(of.wrong, of.launches)
        ),
    }
}

/// What a mutation did, and what shows it.
fn came_to(of: &MutationRecord) -> String {
    if of.why_not.is_some() {
        return of.shows.clone();
    }
    let raised: Vec<&str> = of.codes.keys().map(String::as_str).collect();
    let raised = if raised.is_empty() {
        &of.shows
    } else {
        &raised.join(" ")
    };
    format!("{} lost, {} wrong: {raised}", of.lost, of.wrong)
}

fn percent(part: u64, whole: u64) -> String {
    match part {
        0 => "0 %".to_owned(),
        _ => {
            let share = 100.0 * part as f64 / whole.max(1) as f64;
            if share < 1.0 {
                "< 1 %".to_owned()
            } else {
                format!("{share:.0} %")
            }
        }
    }
}
