//! What came out, as it is written to JSON and shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::baseline::Missed;
use crate::matrix::{Carrier, Column, Runs};
use crate::mutation::{Mutation, Shows};
use crate::run::Outcome;

/// Everything that came out.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    /// Callers at once.
    pub callers: u64,
    /// Requests of each of them in each cell in which nothing is broken.
    pub requests_per_caller: u64,
    /// How many times the matrix was run.
    pub rounds: u32,
    /// Cells that were run, those with a mutation apart, all rounds together.
    pub cells: u64,
    /// Cells with a mutation.
    pub mutated_cells: u64,
    /// What was found that must not be: each a sentence.
    pub problems: Vec<String>,
    /// The rows.
    pub carriers: Vec<Row>,
}

/// A carrier.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What is written for the epoch to come along.
    pub write: String,
    /// Its cells, all rounds together.
    pub cells: Vec<CellRecord>,
    /// Cells that cannot be.
    pub cannot_be: Vec<CannotBe>,
    /// What the current span would have said.
    pub by_span: Missed,
    /// What a plain thread-local would have said.
    pub by_thread_local: Missed,
    /// What came of each mutation.
    pub mutations: Vec<MutationRecord>,
}

/// What a column came to.
#[derive(Debug, Serialize, Deserialize)]
pub struct CellRecord {
    /// What ran the work.
    pub column: String,
    /// How many times it was run.
    pub runs: u64,
    /// Kernels launched, all runs together.
    pub launches: u64,
    /// Joined to nobody.
    pub lost: u64,
    /// Joined to others.
    pub wrong: u64,
}

/// A cell that cannot be, and why.
#[derive(Debug, Serialize, Deserialize)]
pub struct CannotBe {
    /// What would run the work.
    pub column: String,
    /// Why it cannot.
    pub why: String,
}

/// What a mutation came to, all rounds together.
#[derive(Debug, Serialize, Deserialize)]
pub struct MutationRecord {
    /// Its name.
    pub mutation: String,
    /// What shows it, in a word or two.
    pub shows: String,
    /// Why it cannot be made, where it cannot.
    pub why_not: Option<String>,
    /// Kernels launched.
    pub launches: u64,
    /// Joined to nobody.
    pub lost: u64,
    /// Joined to others.
    pub wrong: u64,
    /// The codes that were raised while the program ran.
    pub codes: BTreeMap<String, u64>,
}

impl Record {
    /// An empty record of these carriers.
    pub fn new(carriers: &[Carrier], callers: u64, requests_per_caller: u64, rounds: u32) -> Self {
        Self {
            callers,
            requests_per_caller,
            rounds,
            cells: 0,
            mutated_cells: 0,
            problems: Vec::new(),
            carriers: carriers.iter().map(Row::new).collect(),
        }
    }

    /// Takes in what came of a cell.
    pub fn take(&mut self, carrier: &Carrier, outcome: &Outcome) {
        let place = format!("{}, {}", outcome.carrier, outcome.column.name());
        let found = outcome.problems.iter().chain(&outcome.leaks);
        let found = found.map(|found| match outcome.mutation {
            None => format!("{place}: {found}"),
            Some(mutation) => format!("{place}, {}: {found}", mutation.name()),
        });
        self.problems.extend(found);
        let Some(row) = self
            .carriers
            .iter_mut()
            .find(|row| row.name == outcome.carrier)
        else {
            return;
        };
        match outcome.mutation {
            None => {
                self.cells += 1;
                row.take(outcome);
            }
            Some(mutation) => {
                self.mutated_cells += 1;
                row.take_mutation(mutation, outcome);
                let unnoticed = unnoticed(carrier.shows(mutation), outcome);
                let told = unnoticed.map(|what| format!("{place}, {}: {what}", mutation.name()));
                self.problems.extend(told);
            }
        }
    }

    /// Kernels that were launched where nothing was broken.
    pub fn launches(&self) -> u64 {
        self.sum(|cell| cell.launches)
    }

    /// Those joined to nobody.
    pub fn lost(&self) -> u64 {
        self.sum(|cell| cell.lost)
    }

    /// Those joined to others.
    pub fn wrong(&self) -> u64 {
        self.sum(|cell| cell.wrong)
    }

    fn sum(&self, of: fn(&CellRecord) -> u64) -> u64 {
        let cells = self.carriers.iter().flat_map(|row| &row.cells);
        cells.map(of).sum()
    }
}

/// What a mutation must come to, and did not.
fn unnoticed(shows: Shows, outcome: &Outcome) -> Option<String> {
    if outcome.score.lost + outcome.score.wrong == 0 {
        return Some("nothing is lost or wrong by it".to_owned());
    }
    match shows {
        Shows::Live(codes) => {
            let missing = codes
                .iter()
                .find(|code| !outcome.codes.contains_key(code))?;
            Some(format!("{missing} was not raised"))
        }
        Shows::NeedsTruth if outcome.codes.is_empty() => None,
        Shows::NeedsTruth => Some(format!("{:?} were raised after all", outcome.codes)),
        Shows::CannotBe(_) => Some("it was made after all".to_owned()),
    }
}

impl Row {
    fn new(carrier: &Carrier) -> Self {
        let columns = || Column::ALL.into_iter().zip(carrier.columns);
        Self {
            name: carrier.name.to_owned(),
            write: carrier.write.to_owned(),
            cells: columns()
                .filter(|(_, runs)| *runs == Runs::Yes)
                .map(|(column, _)| CellRecord {
                    column: column.name().to_owned(),
                    runs: 0,
                    launches: 0,
                    lost: 0,
                    wrong: 0,
                })
                .collect(),
            cannot_be: columns()
                .filter_map(|(column, runs)| match runs {
                    Runs::Yes => None,
                    Runs::No(why) => Some(CannotBe {
                        column: column.name().to_owned(),
                        why: why.to_owned(),
                    }),
                })
                .collect(),
            by_span: Missed::default(),
            by_thread_local: Missed::default(),
            mutations: Mutation::ALL
                .into_iter()
                .map(|mutation| MutationRecord::new(mutation, carrier.shows(mutation)))
                .collect(),
        }
    }

    fn take(&mut self, outcome: &Outcome) {
        let name = outcome.column.name();
        if let Some(cell) = self.cells.iter_mut().find(|cell| cell.column == name) {
            cell.runs += 1;
            cell.launches += outcome.score.kernels;
            cell.lost += outcome.score.lost;
            cell.wrong += outcome.score.wrong;
        }
        self.by_span = self.by_span.plus(outcome.by_span);
        self.by_thread_local = self.by_thread_local.plus(outcome.by_thread_local);
    }

    fn take_mutation(&mut self, mutation: Mutation, outcome: &Outcome) {
        let name = mutation.name();
        let mut all = self.mutations.iter_mut();
        if let Some(of) = all.find(|of| of.mutation == name) {
            of.launches += outcome.score.kernels;
            of.lost += outcome.score.lost;
            of.wrong += outcome.score.wrong;
            for (code, count) in &outcome.codes {
                *of.codes.entry(code.code().to_owned()).or_default() += count;
            }
        }
    }
}

impl MutationRecord {
    fn new(mutation: Mutation, shows: Shows) -> Self {
        let (shows, why_not) = match shows {
            Shows::Live(codes) => {
                let codes: Vec<_> = codes.iter().map(|code| code.code()).collect();
                (codes.join(", "), None)
            }
            Shows::NeedsTruth => ("needs truth".to_owned(), None),
            Shows::CannotBe(why) => ("cannot be".to_owned(), Some(why.to_owned())),
        };
        Self {
            mutation: mutation.name().to_owned(),
            shows,
            why_not,
            launches: 0,
            lost: 0,
            wrong: 0,
            codes: BTreeMap::new(),
        }
    }
}
