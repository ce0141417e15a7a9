//! The record as tables, for the terminal and for a page.

use std::fmt::Write as _;

use crate::baseline::Missed;
use crate::cell::{Cupti, Variation};
use crate::numbers::grouped;
use crate::record::{Record, Sums};

/// For the terminal: aligned columns.
pub fn text(record: &Record) -> String {
    let mut text = String::from("\n");
    for table in [joins(record), ways(record)] {
        let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..table[0].len()).filter_map(width).collect();
        for row in &table {
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(text, "{cell:<width$}  ");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// For a page.
pub fn markdown(record: &Record) -> String {
    let mut text = String::new();
    for (at, table) in [joins(record), ways(record)].into_iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        for (at, row) in table.iter().enumerate() {
            let _ = writeln!(text, "| {} |", row.join(" | "));
            if at == 0 {
                let numbers = vec!["--:"; row.len() - 1];
                let _ = writeln!(text, "| --- | {} |", numbers.join(" | "));
            }
        }
    }
    text
}

/// What lineage says, by variation, and by version where that makes a difference.
fn joins(record: &Record) -> Vec<Vec<String>> {
    let head = [
        "the graph",
        "cells",
        "kernels",
        "lost",
        "wrong",
        "cannot be known",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for variation in Variation::ALL {
        let of = record.sums(|row| row.variation == variation.name());
        if of.cells == 0 {
            continue;
        }
        if of.unknown == 0 {
            rows.push(line(variation.name().to_owned(), &of));
            continue;
        }
        for cupti in Cupti::ALL {
            let of =
                record.sums(|row| row.variation == variation.name() && row.cupti == cupti.name());
            if of.cells > 0 {
                rows.push(line(
                    format!("{}, CUPTI {}", variation.name(), cupti.name()),
                    &of,
                ));
            }
        }
    }
    rows
}

fn line(name: String, of: &Sums) -> Vec<String> {
    let mut row = vec![name];
    let (lost, wrong) = (of.lost + of.capture_lost, of.wrong + of.capture_wrong);
    row.extend([of.cells, of.kernels, lost, wrong, of.unknown].map(grouped));
    row
}

/// What the other ways say beside it.
fn ways(record: &Record) -> Vec<Vec<String>> {
    let head = [
        "read by",
        "kernels",
        "capture lost",
        "capture wrong",
        "replay lost",
        "replay wrong",
    ];
    let all = record.sums(|_| true);
    let lineage = Missed {
        kernels: all.kernels,
        capture_lost: all.capture_lost + all.unknown,
        capture_wrong: all.capture_wrong,
        replay_lost: all.lost,
        replay_wrong: all.wrong,
    };
    let baselines = &record.baselines;
    let ways = [
        ("lineage", &lineage),
        ("external id alone", &baselines.external_id),
        ("correlation id alone", &baselines.correlation_id),
        ("names in their order", &baselines.kernel_names),
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, missed) in ways {
        let mut row = vec![name.to_owned()];
        row.extend(
            [
                missed.kernels,
                missed.capture_lost,
                missed.capture_wrong,
                missed.replay_lost,
                missed.replay_wrong,
            ]
            .map(grouped),
        );
        rows.push(row);
    }
    rows
}
