//! One recording, cut into units.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use lineage_core::id::ProcessOrdinal;
use lineage_core::row::{Binding, Row};
use lineage_core::verdict::{Judge, Life, Settings, VerdictKind};

use crate::arguments::Compare;
use crate::input::{self, About, Refusal};

/// Operations in a row that are a unit where no epochs are.
pub(super) const RUN: u64 = 16;
/// Epochs that are told apart, about 200 bytes each; work of further ones is counted only.
const EPOCHS: usize = 1 << 20;

const KINDS: usize = VerdictKind::ALL.len();

/// Time of one unit, in ns, by verdict in the order of [`VerdictKind::ALL`].
type Times = [u64; KINDS];

/// What an operation is: name, grid, block.
pub(super) type Kind = (String, [u32; 3], [u32; 3]);

/// Mean and variance of one value a unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread {
    pub(super) count: u64,
    sum: f64,
    squares: f64,
}

impl Spread {
    pub(super) fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += value as f64;
        self.squares += (value as f64).powi(2);
    }

    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum / self.count as f64
        }
    }

    /// The square of the mean's standard error.
    pub(super) fn error_squared(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = self.count as f64;
        let variance = (self.squares - self.sum * self.sum / count) / (count - 1.0);
        variance.max(0.0) / count
    }
}

/// A recording.
pub(super) struct Side {
    pub(super) file: PathBuf,
    pub(super) about: About,
    /// Whether units are epochs; else they are runs of operations.
    pub(super) of_epochs: bool,
    /// Time a unit, all in all.
    pub(super) whole: Spread,
    /// The same by verdict, in the order of [`VerdictKind::ALL`].
    by_verdict: [Spread; KINDS],
    /// Operations by kind.
    pub(super) operations: BTreeMap<Kind, u64>,
    /// Rows without a critical path.
    pub(super) without_path: u64,
    /// Rows with one that are in no unit.
    pub(super) left_out: u64,
}

impl Side {
    pub(super) fn spread(&self, kind: VerdictKind) -> Spread {
        let kinds = VerdictKind::ALL.iter().zip(&self.by_verdict);
        let mut found = kinds.filter(|(of, _)| **of == kind);
        found
            .next()
            .map_or_else(Spread::default, |(_, spread)| *spread)
    }
}

pub(super) fn gather(file: &Path, arguments: &Compare) -> Result<Side, Refusal> {
    let settings = Settings::default().epsilon_ns(arguments.reading.clock_error_ns);
    let mut judge = Judge::new(settings);
    let mut cutting = Cutting::default();
    let format = input::format(file)?;
    let about = arguments
        .reading
        .each_batch(file, format, &arguments.within, |batch| {
            batch.limit(&mut judge);
            judge.judge_each(batch.observations, batch.rows, |life| {
                let row = &batch.rows[life.row];
                if !batch.has(row) || batch.is_cut(row) {
                    cutting.is_cut(row);
                }
                if batch.has(row) {
                    cutting.add(&life, row);
                }
            });
        })?;
    Ok(cutting.finish(file, about))
}

#[derive(Default)]
struct Cutting {
    /// Each with its rows.
    epochs: HashMap<(ProcessOrdinal, u64), (Times, u64)>,
    run: (u64, Times),
    runs: Vec<Times>,
    bound: u64,
    with_path: u64,
    without_path: u64,
    beyond: u64,
    operations: BTreeMap<Kind, u64>,
    /// Epochs with work outside of the part that is looked at: they are no whole units.
    cut: HashSet<(ProcessOrdinal, u64)>,
}

impl Cutting {
    /// A row's epoch reaches out of the part that is looked at.
    fn is_cut(&mut self, row: &Row) {
        if let Binding::Bound(epoch) = row.binding {
            self.cut.insert((row.process, epoch.id.get()));
        }
    }

    fn add(&mut self, life: &Life, row: &Row) {
        if let Some(operation) = &row.operation {
            let name = operation.name.as_deref().unwrap_or("?").to_owned();
            let kind = (name, operation.grid, operation.block);
            *self.operations.entry(kind).or_default() += 1;
        }
        if life.unsegmented.is_some() {
            self.without_path += 1;
            return;
        }
        self.with_path += 1;
        let mut times = [0; KINDS];
        for segment in &life.segments {
            let kind = segment.verdict.kind();
            if let Some(at) = VerdictKind::ALL.iter().position(|&of| of == kind) {
                times[at] += segment.duration_ns();
            }
        }
        if let Binding::Bound(epoch) = row.binding {
            self.bound += 1;
            let key = (row.process, epoch.id.get());
            if self.epochs.len() < EPOCHS || self.epochs.contains_key(&key) {
                let epoch = self.epochs.entry(key).or_default();
                sum(&mut epoch.0, &times);
                epoch.1 += 1;
            } else {
                self.beyond += 1;
            }
        }
        sum(&mut self.run.1, &times);
        self.run.0 += 1;
        if self.run.0 == RUN {
            self.runs.push(self.run.1);
            self.run = Default::default();
        }
    }

    fn finish(self, file: &Path, about: About) -> Side {
        let of_epochs = self.bound * 2 >= self.with_path && self.bound > 0;
        let (units, left_out): (Vec<Times>, u64) = if of_epochs {
            let mut left_out = self.with_path - self.bound + self.beyond;
            let mut epochs = self.epochs;
            epochs.retain(|epoch, (_, rows)| {
                let whole = !self.cut.contains(epoch);
                left_out += if whole { 0 } else { *rows };
                whole
            });
            let epochs = epochs.into_values().map(|(times, _)| times);
            (epochs.collect(), left_out)
        } else {
            // The rest is a shorter run, and would count as a whole one.
            (self.runs, self.run.0)
        };
        let mut side = Side {
            file: file.to_owned(),
            about,
            of_epochs,
            whole: Spread::default(),
            by_verdict: [Spread::default(); KINDS],
            operations: self.operations,
            without_path: self.without_path,
            left_out,
        };
        for times in units {
            side.whole.add(times.iter().sum());
            for (spread, ns) in side.by_verdict.iter_mut().zip(times) {
                spread.add(ns);
            }
        }
        side
    }
}

fn sum(into: &mut Times, times: &Times) {
    for (into, ns) in into.iter_mut().zip(times) {
        *into = into.saturating_add(*ns);
    }
}
