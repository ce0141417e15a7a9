//! A file, judged in batches, and what is kept of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lineage_core::fault::FaultCode;
use lineage_core::id::ProcessOrdinal;
use lineage_core::observation::Event;
use lineage_core::readiness::Partial;
use lineage_core::row::Row;
use lineage_core::verdict::{
    DispatchFloor, Judge, Life, Settings, Unsegmented, Verdict, VerdictKind,
};

use super::told::{Names, Told, Wanted};
use crate::arguments::{Diagnose, Slow};
use crate::input::{self, About, Batch, Format, Refusal};

/// What a verdict comes to.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sum {
    pub(super) ns: u64,
    pub(super) segments: u64,
    /// Rows with at least one.
    pub(super) rows: u64,
}

impl Sum {
    /// Both. A row may count twice.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            ns: self.ns.saturating_add(other.ns),
            segments: self.segments + other.segments,
            rows: self.rows + other.rows,
        }
    }

    fn add(&mut self, ns: u64, first_of_row: bool) {
        self.ns = self.ns.saturating_add(ns);
        self.segments += 1;
        self.rows += u64::from(first_of_row);
    }
}

/// What was found of a file.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Rows that were judged.
    pub(super) rows: u64,
    /// Rows with a critical path.
    pub(super) with_path: u64,
    /// Rows whose segments do not sum exactly: there is no such row.
    pub(super) inexact: u64,
    pub(super) time_faults: BTreeMap<FaultCode, u64>,
    pub(super) without_times: u64,
    pub(super) calls_alone: u64,
    /// Rows of which it is known from when on they could have begun.
    pub(super) useful_readiness: u64,
    /// Rows whose dependencies are all known.
    pub(super) complete_readiness: u64,
    pub(super) whole_ns: u64,
    pub(super) by_verdict: BTreeMap<VerdictKind, Sum>,
    /// Of what is unresolved: by what would settle it. A stretch may need several.
    pub(super) by_settle: BTreeMap<&'static str, Sum>,
    /// Rows by reason for which their set of dependencies is partial.
    pub(super) by_partial: BTreeMap<Partial, u64>,
    /// Host time that cost nothing.
    pub(super) covered_ns: u64,
}

/// A file, diagnosed.
pub(super) struct Diagnosis {
    pub(super) file: PathBuf,
    pub(super) format: Format,
    pub(super) about: About,
    pub(super) counts: Counts,
    pub(super) floor: Option<DispatchFloor>,
    /// The slowest of those that were asked for.
    pub(super) slowest: Vec<Told>,
    /// How many were asked for and are not among them.
    pub(super) not_shown: u64,
}

/// Reads a file, whatever its format, and judges its rows.
pub(super) fn gather(file: &Path, arguments: &Diagnose) -> Result<Diagnosis, Refusal> {
    let format = input::format(file)?;
    let mut gathering = Gathering::new(arguments);
    let about = arguments
        .reading
        .each_batch(file, format, &arguments.within, |batch| {
            gathering.batch(batch);
        })?;
    Ok(gathering.finish(file, format, about))
}

struct Gathering<'a> {
    arguments: &'a Diagnose,
    judge: Judge,
    counts: Counts,
    processes: Vec<ProcessOrdinal>,
    /// With the time that they are ordered by.
    slowest: Vec<(u64, Told)>,
    shown_or_not: u64,
}

impl<'a> Gathering<'a> {
    fn new(arguments: &'a Diagnose) -> Self {
        let settings = Settings::default().epsilon_ns(arguments.reading.clock_error_ns);
        Self {
            arguments,
            judge: Judge::new(settings),
            counts: Counts::default(),
            processes: Vec::new(),
            slowest: Vec::new(),
            shown_or_not: 0,
        }
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        let (observations, rows) = (batch.observations, batch.rows);
        batch.limit(&mut self.judge);
        let mut wanted = Wanted::new(self.arguments);
        for observation in observations {
            match &observation.event {
                Event::Declared(of) => wanted.declared(observation.process, of),
                Event::Parented(of) => wanted.parented(observation.process, of),
                _ => {}
            }
        }
        let mut slowest = Slowest::new(self.arguments.slowest);
        let Self {
            arguments,
            judge,
            counts,
            processes,
            shown_or_not,
            ..
        } = self;
        judge.judge_each(observations, rows, |life| {
            let row = &rows[life.row];
            if !batch.has(row) {
                return;
            }
            counts.add(&life);
            if !processes.contains(&row.process) {
                processes.push(row.process);
            }
            if life.unsegmented.is_none() && wanted.has(row) {
                *shown_or_not += 1;
                slowest.add(slow_ns(arguments.by, &life, row), life);
            }
        });
        let names = Names::of(&wanted);
        let told = slowest
            .finish()
            .into_iter()
            .map(|(slow_ns, life)| (slow_ns, Told::new(&life, rows, &names)));
        self.slowest.extend(told);
        self.slowest
            .sort_by_key(|(slow_ns, _)| std::cmp::Reverse(*slow_ns));
        self.slowest.truncate(self.arguments.slowest);
    }

    fn finish(self, file: &Path, format: Format, about: About) -> Diagnosis {
        let floors = self.processes.iter();
        let floors = floors.filter_map(|process| self.judge.dispatch_floor(*process));
        Diagnosis {
            file: file.to_owned(),
            format,
            about,
            floor: floors.max_by_key(|floor| floor.samples),
            not_shown: self.shown_or_not - self.slowest.len() as u64,
            slowest: self.slowest.into_iter().map(|(_, told)| told).collect(),
            counts: self.counts,
        }
    }
}

/// The lives with most of a time, of those that are given; no more of them are held than twice what is asked for.
struct Slowest {
    most: usize,
    lives: Vec<(u64, Life)>,
}

impl Slowest {
    /// More than are asked for that are held until they are sorted.
    const ROOM: usize = 64;

    const fn new(most: usize) -> Self {
        Self {
            most,
            lives: Vec::new(),
        }
    }

    fn add(&mut self, slow_ns: u64, life: Life) {
        self.lives.push((slow_ns, life));
        if self.lives.len() >= self.most.saturating_mul(2).saturating_add(Self::ROOM) {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.lives
            .sort_by_key(|(slow_ns, life)| (std::cmp::Reverse(*slow_ns), life.row));
        self.lives.truncate(self.most);
    }

    fn finish(mut self) -> Vec<(u64, Life)> {
        self.sort();
        self.lives
    }
}

/// The time of an operation that is asked for, in nanoseconds.
fn slow_ns(by: Slow, life: &Life, row: &Row) -> u64 {
    let ran = row.operation.as_ref().and_then(|of| {
        let (start, end) = (of.start?, of.end?);
        end.0.checked_sub(start.0)
    });
    let (whole, ran) = (life.whole_ns(), ran.unwrap_or(0));
    match by {
        Slow::Whole => whole,
        Slow::Running => ran,
        Slow::Waiting => whole.saturating_sub(ran),
    }
}

impl Counts {
    fn add(&mut self, life: &Life) {
        self.rows += 1;
        match life.unsegmented {
            Some(Unsegmented::TimeFault(code)) => {
                *self.time_faults.entry(code).or_default() += 1;
                return;
            }
            Some(Unsegmented::NoOperation) => {
                self.calls_alone += 1;
                return;
            }
            Some(_) => {
                self.without_times += 1;
                return;
            }
            None => {}
        }
        self.with_path += 1;
        self.inexact += u64::from(!life.is_exact());
        self.useful_readiness += u64::from(life.has_useful_readiness());
        if let Some(readiness) = &life.readiness {
            self.complete_readiness += u64::from(readiness.is_complete());
            for reason in readiness.partial.iter() {
                *self.by_partial.entry(reason).or_default() += 1;
            }
        }
        self.whole_ns = self.whole_ns.saturating_add(life.whole_ns());
        let mut seen: Vec<VerdictKind> = Vec::new();
        let mut settle: Vec<&'static str> = Vec::new();
        for segment in &life.segments {
            let kind = segment.verdict.kind();
            let ns = segment.duration_ns();
            let sum = self.by_verdict.entry(kind).or_default();
            sum.add(ns, !seen.contains(&kind));
            seen.push(kind);
            if let Verdict::Unresolved(doubt) = &segment.verdict {
                for what in doubt.settle() {
                    let sum = self.by_settle.entry(what).or_default();
                    sum.add(ns, !settle.contains(&what));
                    settle.push(what);
                }
            }
        }
        for covered in &life.covered {
            let ns = covered.to.0.saturating_sub(covered.from.0);
            self.covered_ns = self.covered_ns.saturating_add(ns);
        }
    }

    /// Whether so little is known of readiness that a wait for a dependency and one for the device
    /// are not told apart.
    pub(super) fn merges_dependency_and_device(&self, floor: Option<DispatchFloor>) -> bool {
        self.with_path > 0 && (self.useful_readiness * 2 < self.with_path || floor.is_none())
    }
}
