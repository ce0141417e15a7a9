//! Rows of any file, in batches.

use std::path::Path;

use lineage_arrow::Table;
use lineage_core::ledger::{Entry, Header};
use lineage_core::observation::Observation;
use lineage_core::part::{Bounds, Counts, Held, Holding, Times};
use lineage_core::row::{Binding, Row};
use lineage_core::verdict::Judge;
use lineage_import::{CollectError, InferredTemplates};

use super::ledger::{Wanted, read_wanted};
use super::memory::Need;
use super::{Format, Progress, Refusal, header, import, join, notes, read};
use crate::arguments::Reading;
use crate::part::{Looked, Part, Run, Within, read_for};
use crate::text::counted;

/// Records of calls and operations in a batch of another tool's recording: about 150 MB. What was on
/// a stream before a batch is not known to it.
const BATCH: usize = 1 << 17;

/// What a recorder's own warnings begin with among an import's notes.
const WARNING: &str = "a warning of the recorder's";

/// What a file says of itself.
pub(crate) struct About {
    /// Who recorded it; of a ledger its service.
    pub(crate) recorder: String,
    /// What a person should know of how it was made and read: what is missing, and why.
    pub(crate) notes: Vec<String>,
    /// The part that was looked at; `None` for the whole.
    pub(crate) part: Option<Looked>,
}

/// Rows, with what they were joined from.
pub(crate) struct Batch<'a> {
    pub(crate) observations: &'a [Observation],
    pub(crate) rows: &'a [Row],
    within: Of<'a>,
}

/// Which of a batch's rows are asked for.
enum Of<'a> {
    All,
    /// Of a ledger.
    Held(&'a Held),
    /// Of a recording whose processes have one clock.
    Bounds(&'a Bounds),
}

impl Batch<'_> {
    /// Tells a judge since when all that was recorded is in it.
    pub(crate) fn limit(&self, judge: &mut Judge) {
        if let Of::Held(held) = &self.within {
            held.limit(judge);
        }
    }

    /// Whether a row is one of those that are asked for. The others are there for what they say of these.
    pub(crate) fn has(&self, row: &Row) -> bool {
        self.bounds(row).is_none_or(|bounds| bounds.has(row))
    }

    /// Whether a row's epoch has work that lies outside of what is asked for, or that may have.
    pub(crate) fn is_cut(&self, row: &Row) -> bool {
        let (Some(bounds), Binding::Bound(epoch)) = (self.bounds(row), row.binding) else {
            return false;
        };
        let declared = row.stages.declared.at();
        let begun_before = bounds.from > bounds.start && declared.is_none_or(|at| at < bounds.from);
        let (process, number) = (row.process, epoch.id.get());
        begun_before || matches!(self.within, Of::Held(held) if held.goes_on(process, number))
    }

    fn bounds(&self, row: &Row) -> Option<&Bounds> {
        match self.within {
            Of::All => None,
            Of::Held(held) => held.bounds.get(&row.process),
            Of::Bounds(bounds) => Some(bounds),
        }
    }
}

impl Reading {
    /// Gives what was observed in a part of a file of this format, and its rows, so that each row comes with
    /// what it was joined from; answers what the file says of itself. A ledger is one batch, and in memory as
    /// far as it is asked for: nothing bounds how long before its row something was observed.
    pub(crate) fn each_batch(
        &self,
        file: &Path,
        format: Format,
        within: &Within,
        each: impl FnMut(&Batch<'_>),
    ) -> Result<About, Refusal> {
        match format {
            Format::Ledger => self.ledger(file, within, each),
            format => self.import(file, format, within, each),
        }
    }

    /// The same for what looks at each observation and each row by itself: of a ledger, too, no more than a
    /// part is in memory, and a row may come in a later one than what it was joined from.
    pub(crate) fn each_part(
        &self,
        file: &Path,
        format: Format,
        mut each: impl FnMut(&[Observation], &[Row]),
    ) -> Result<About, Refusal> {
        match format {
            Format::Ledger => self.ledger_in_parts(file, each),
            format => self.import(file, format, &Within::WHOLE, |batch| {
                each(batch.observations, batch.rows);
            }),
        }
    }

    /// A ledger in parts of so many entries; where it has no rows, joined as a whole.
    fn ledger_in_parts(
        &self,
        file: &Path,
        mut each: impl FnMut(&[Observation], &[Row]),
    ) -> Result<About, Refusal> {
        let (mut observations, mut rows) = (Vec::new(), Vec::new());
        let mut has_rows = false;
        let read = read(file, |entry| {
            match entry {
                Entry::Observation(of) => observations.push(of),
                Entry::Row(of) => {
                    rows.push(of);
                    has_rows = true;
                }
                _ => {}
            }
            // Until a row has come, there may be none at all.
            if has_rows && observations.len() + rows.len() >= BATCH {
                each(&observations, &rows);
                observations.clear();
                rows.clear();
            }
        })?;
        if !has_rows {
            rows = join(&observations, self.clock_error_ns).0;
        }
        each(&observations, &rows);
        Ok(About {
            notes: read.notes(),
            recorder: read.header.service,
            part: None,
        })
    }

    /// A ledger, as far as it is asked for, as one batch.
    fn ledger(
        &self,
        file: &Path,
        within: &Within,
        mut each: impl FnMut(&Batch<'_>),
    ) -> Result<About, Refusal> {
        let known = Known::of(file, within)?;
        let part = if within.is_whole() {
            None
        } else {
            Some(within.of(file, &known.runs)?)
        };
        let mut wanted = Wanted::default();
        if known.has_rows {
            wanted.without = vec![Table::Externals, Table::Operations, Table::GraphLaunches];
        }
        if let (Some(part), true) = (&part, known.has_rows) {
            wanted.between = part.bounds.iter().map(read_for).collect();
        }
        Need::of(file, &wanted).warn(file, within);
        let bounds = part.as_ref().map_or(Vec::new(), |part| part.bounds.clone());
        let mut holding = Holding::new(bounds);
        if known.has_rows {
            holding.expect_rows();
        }
        let read = read_wanted(file, &wanted, |directory, entry| match entry {
            Entry::Observation(of) => holding.observation(directory, of),
            Entry::Row(of) => holding.row(directory, of),
            _ => {}
        })?;
        let mut held = holding.finish();
        let passed_over = read.passed_over_rows;
        held.counts.rows_outside = held.counts.rows_outside.saturating_add(passed_over);
        if !held.has_rows {
            held.rows = join(&held.observations, self.clock_error_ns).0;
            held.counts = counted_by(&held.bounds, &held.rows);
        }
        let judging = Progress::judging(file, held.rows.len());
        let Some(part) = part else {
            each(&Batch {
                observations: &held.observations,
                rows: &held.rows,
                within: Of::All,
            });
            return Ok(About {
                notes: read.notes(),
                recorder: read.header.service,
                part: None,
            });
        };
        // Where it ended is known by now, if it was not before.
        let runs = known.with_end(&held, &read.header);
        let part = match runs {
            Some(runs) => within.of(file, &runs)?,
            None => part,
        };
        each(&Batch {
            observations: &held.observations,
            rows: &held.rows,
            within: Of::Held(&held),
        });
        drop(judging);
        let lead_in = held.bounds.values().any(|of| !of.is_from_start());
        Ok(About {
            notes: read.notes(),
            recorder: read.header.service,
            part: Some(part.looked(held.counts, lead_in && held.has_rows)),
        })
    }

    fn import(
        &self,
        file: &Path,
        format: Format,
        within: &Within,
        mut each: impl FnMut(&Batch<'_>),
    ) -> Result<About, Refusal> {
        let imported = import(file, format, &self.candidates, self.partial)?;
        let recording = imported.recording;
        let refuse = |why: CollectError| Refusal::Import {
            file: file.to_owned(),
            why: why.to_string(),
        };
        let holdings = recording.holdings();
        let records = holdings.sum(|of| of.api_calls) + holdings.sum(|of| of.operations());
        let part = if within.is_whole() {
            None
        } else {
            let first = holdings.processes.iter().filter_map(|of| of.first_ns).min();
            let last = holdings.processes.iter().filter_map(|of| of.last_ns).max();
            let run = Run {
                start_ns: first.unwrap_or(0),
                end_ns: last,
                start_unix_ns: None,
            };
            Some(within.of(file, &[run])?)
        };
        // All of it is judged, a slice at a time, and what lies outside of the part is not counted.
        let bounds = part.as_ref().and_then(|part| part.bounds.first().copied());
        let mut counts = Counts::default();
        imported.progress.now_joining(records);
        let (captures, replays) = recording.captures_and_replays().map_err(refuse)?;
        let mut templates = InferredTemplates::new(&captures, &replays);
        for slice in recording.slices(BATCH).map_err(refuse)? {
            let slice = slice.map_err(refuse)?;
            let (mut rows, _) = join(&slice.observations, self.clock_error_ns);
            templates.put_into(&mut rows);
            if let Some(bounds) = &bounds {
                rows.iter().for_each(|row| counts.add(Some(bounds), row));
            }
            each(&Batch {
                observations: &slice.observations,
                rows: &rows,
                within: bounds.as_ref().map_or(Of::All, Of::Bounds),
            });
            imported.progress.joined(slice.records as u64);
        }
        let holdings = recording.holdings();
        // What its recorder could not do is seldom about what is asked here, and fills a page.
        let (warnings, mut notes): (Vec<String>, Vec<String>) = notes(holdings)
            .into_iter()
            .partition(|note| note.starts_with(WARNING));
        if !warnings.is_empty() {
            let warnings = counted(warnings.len() as u64, "warning", "warnings");
            notes.push(format!(
                "{warnings} of the recorder's: `lineage show` has them"
            ));
        }
        Ok(About {
            recorder: holdings.recorder.to_string(),
            notes,
            part: part.map(|part: Part| part.looked(counts, false)),
        })
    }
}

fn counted_by(
    bounds: &std::collections::BTreeMap<lineage_core::id::ProcessOrdinal, Bounds>,
    rows: &[Row],
) -> Counts {
    let mut counts = Counts::default();
    for row in rows {
        counts.add(bounds.get(&row.process), row);
    }
    counts
}

/// What is known of a ledger before it is read.
struct Known {
    runs: Vec<Run>,
    /// Whether it has rows. Of a file that is seen when the first comes.
    has_rows: bool,
    /// Whether it is known where it ended.
    has_end: bool,
}

impl Known {
    /// Looks for what is needed to place a part: of a run directory its journals say it, unless an older
    /// writer left their times out; of a file it takes a pass of its own.
    fn of(file: &Path, within: &Within) -> Result<Self, Refusal> {
        if file.is_dir() {
            return Self::of_directory(file, within);
        }
        let header = header(file)?;
        let run = |seen: Option<Times>| run_of(&header, seen);
        let needed = !within.is_whole() && (within.needs_end() || header.started.0 == 0);
        if !needed {
            return Ok(Self {
                runs: vec![run(None)],
                has_rows: false,
                has_end: false,
            });
        }
        let mut holding = Extent::default();
        read(file, |entry| holding.take(0, &entry))?;
        Ok(Self {
            runs: vec![run(holding.of(0))],
            has_rows: false,
            has_end: true,
        })
    }

    fn of_directory(path: &Path, within: &Within) -> Result<Self, Refusal> {
        let reader = lineage_arrow::Reader::open(path).map_err(Refusal::RunDirectory)?;
        let surveys = reader.survey();
        let batches = || surveys.iter().flat_map(|of| &of.batches);
        let has_rows = batches().any(|of| of.entries_of(Table::Launches) > 0);
        let mut extent = Extent::default();
        for (directory, survey) in surveys.iter().enumerate() {
            let times = survey.batches.iter().filter_map(|of| of.times);
            times.for_each(|times| extent.add(directory, times));
        }
        if !within.is_whole() && !surveys.iter().all(lineage_arrow::Survey::says_when) {
            let wanted = Wanted::default();
            read_wanted(path, &wanted, |directory, entry| {
                extent.take(directory, &entry);
            })?;
        }
        let runs = reader.metas().iter().enumerate();
        let runs = runs.map(|(at, meta)| run_of(&meta.lineage_directory, extent.of(at)));
        Ok(Self {
            runs: runs.collect(),
            has_rows,
            has_end: true,
        })
    }

    /// The runs with their ends, where these were not known before all was read.
    fn with_end(&self, held: &Held, header: &Header) -> Option<Vec<Run>> {
        (!self.has_end).then(|| vec![run_of(header, held.seen)])
    }
}

/// From when to when the entries of each directory were.
#[derive(Default)]
struct Extent(Vec<Option<Times>>);

impl Extent {
    fn take(&mut self, directory: usize, entry: &Entry) {
        let times = match entry {
            Entry::Observation(of) => Times::of_observation(of),
            Entry::Row(of) => Times::of_row(of),
            _ => None,
        };
        if let Some(times) = times {
            self.add(directory, times);
        }
    }

    fn add(&mut self, directory: usize, times: Times) {
        if self.0.len() <= directory {
            self.0.resize(directory + 1, None);
        }
        let all = &mut self.0[directory];
        *all = Some(all.map_or(times, |all| all.and(times)));
    }

    fn of(&self, directory: usize) -> Option<Times> {
        self.0.get(directory).copied().flatten()
    }
}

/// When a run began and ended, by its header and what was in it. Its end is the last that a thread of the
/// host stamped: a device's clock may be far off.
fn run_of(header: &Header, seen: Option<Times>) -> Run {
    let started = header.started.0;
    Run {
        start_ns: match (started, seen) {
            (0, Some(seen)) => seen.from.0,
            _ => started,
        },
        end_ns: seen.map(|seen| seen.host.unwrap_or(seen.to).0),
        start_unix_ns: header.started_unix_ns.filter(|_| started > 0),
    }
}
