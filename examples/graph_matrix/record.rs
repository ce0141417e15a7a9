//! What came out, as it is written to JSON and shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::baseline::Baselines;
use crate::cell::Cell;
use crate::run::Outcome;

/// Everything that came out.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The cells, by version, variation and shape; those of several sizes together.
    pub rows: Vec<Row>,
    /// What the other ways said of all of them.
    pub baselines: Baselines,
    /// What was found that must not be: each a sentence.
    pub problems: Vec<String>,
}

/// Cells that differ in the numbers of nodes and replays only.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// The version of CUPTI.
    pub cupti: String,
    /// What became of the graph.
    pub variation: String,
    /// Who replayed.
    pub shape: String,
    /// Their sums.
    pub sums: Sums,
    /// The codes that were raised.
    pub codes: BTreeMap<String, u64>,
}

/// Sums over cells.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Cells.
    pub cells: u64,
    /// Operations that the device ran.
    pub operations: u64,
    /// Of them, kernels of graphs.
    pub kernels: u64,
    /// All right.
    pub right: u64,
    /// Of unknown capture, as it must be.
    pub unknown: u64,
    /// Joined to nobody.
    pub lost: u64,
    /// Joined to others.
    pub wrong: u64,
    /// Of a capture that could have been known and is not.
    pub capture_lost: u64,
    /// Joined to another capture.
    pub capture_wrong: u64,
}

impl Sums {
    /// Takes in others.
    pub fn add(&mut self, other: &Self) {
        self.cells += other.cells;
        self.operations += other.operations;
        self.kernels += other.kernels;
        self.right += other.right;
        self.unknown += other.unknown;
        self.lost += other.lost;
        self.wrong += other.wrong;
        self.capture_lost += other.capture_lost;
        self.capture_wrong += other.capture_wrong;
    }
}

impl Record {
    /// Takes in what came of a cell.
    pub fn take(&mut self, cell: Cell, outcome: &Outcome) {
        let score = &outcome.score;
        let (cupti, variation) = (cell.cupti.name(), cell.variation.name());
        let row = Row {
            cupti: cupti.to_owned(),
            variation: variation.to_owned(),
            shape: cell.shape.name().to_owned(),
            sums: Sums {
                cells: 1,
                operations: score.operations,
                kernels: score.kernels,
                right: score.right,
                unknown: score.unknown,
                lost: score.lost,
                wrong: score.wrong,
                capture_lost: score.capture_lost,
                capture_wrong: score.capture_wrong,
            },
            codes: outcome
                .codes
                .iter()
                .map(|(code, count)| (code.code().to_owned(), *count))
                .collect(),
        };
        self.take_row(row);
        self.baselines.add(&outcome.baselines);
        let found = outcome.problems.iter().chain(&score.examples);
        self.problems
            .extend(found.map(|found| format!("{cell}: {found}")));
    }

    /// Takes in another process's record.
    pub fn add(&mut self, other: Self) {
        other.rows.into_iter().for_each(|row| self.take_row(row));
        self.baselines.add(&other.baselines);
        self.problems.extend(other.problems);
    }

    fn take_row(&mut self, row: Row) {
        let same = |of: &&mut Row| {
            of.cupti == row.cupti && of.variation == row.variation && of.shape == row.shape
        };
        let Some(before) = self.rows.iter_mut().find(same) else {
            self.rows.push(row);
            return;
        };
        before.sums.add(&row.sums);
        for (code, count) in row.codes {
            *before.codes.entry(code).or_default() += count;
        }
    }

    /// The sums of all cells for which this holds.
    pub fn sums(&self, of: impl Fn(&Row) -> bool) -> Sums {
        let mut sums = Sums::default();
        let rows = self.rows.iter().filter(|row| of(row));
        rows.for_each(|row| sums.add(&row.sums));
        sums
    }
}
