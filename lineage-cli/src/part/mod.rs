//! Which part of a recording is asked for, as a person says it, and what is said of it.
//!
//! What has to be held for that, and what belongs to it, is in [`lineage_core::part`].

mod moment;

use std::path::Path;

use clap::Args;
use lineage_core::id::HostNanos;
use lineage_core::part::{Bounds, Counts};
use moment::{Moment, length_ns, moment};

use crate::input::Refusal;

/// Which part of a recording is looked at.
#[derive(Debug, Clone, Args)]
pub(crate) struct Within {
    /// Only what ended at this time of the run or later: after its start (12m30s), before its end (-10m), or
    /// a date (2026-11-30T02:14:00Z)
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    from: Option<Moment>,

    /// Only what ended at this time of the run or before it, said as with `--from`
    #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
    to: Option<Moment>,

    /// Only the run's last so long: 10m, 90s; as `--from -10m`
    #[arg(long, value_name = "TIME", value_parser = length_ns, conflicts_with_all = ["from", "to"])]
    last: Option<u64>,

    /// How long before the part is read along with it, so that what was under way then is known
    #[arg(long, value_name = "TIME", value_parser = length_ns, default_value = "10s")]
    lead_in: u64,
}

impl Within {
    /// All of it.
    pub(crate) const WHOLE: Self = Self {
        from: None,
        to: None,
        last: None,
        lead_in: 0,
    };

    /// Whether no less than the whole is asked for.
    pub(crate) const fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.last.is_none()
    }

    /// Whether it can only be told where the run ended.
    pub(crate) fn needs_end(&self) -> bool {
        let of_end = |of: Option<Moment>| matches!(of, Some(Moment::BeforeEnd(_)));
        self.last.is_some() || of_end(self.from) || of_end(self.to)
    }

    /// What is looked at of a recording of one process or several, and of each.
    pub(crate) fn of(&self, file: &Path, runs: &[Run]) -> Result<Part, Refusal> {
        let refuse = |why: String| Refusal::Part {
            file: file.to_owned(),
            why,
        };
        let axis = Axis::of(runs);
        let start = axis.start(runs);
        let end = axis.end(runs);
        let at = |moment: Moment| {
            match moment {
            Moment::AfterStart(ns) => Ok(start.saturating_add(i128::from(ns))),
            Moment::BeforeEnd(ns) => end
                .map(|end| end.saturating_sub(i128::from(ns)).max(start))
                .ok_or_else(|| refuse("nothing in it has a time, so it has no end".to_owned())),
            Moment::Wall(ns) if axis.is_wall => Ok(i128::from(ns)),
            Moment::Wall(_) => Err(refuse(
                "it does not say when it started by the wall clock, so no date can be placed in it: name a time after \
                 its start (`--from 12m30s`) or before its end (`--from -10m`)"
                    .to_owned(),
            )),
        }
        };
        let last = self.last.map(Moment::BeforeEnd);
        let from = self.from.or(last).map(at).transpose()?;
        let to = self.to.map(at).transpose()?;
        let extent = || match end {
            Some(end) => axis.said(start, end),
            None => "it has no times".to_owned(),
        };
        if let (Some(from), Some(to)) = (from, to)
            && from > to
        {
            return Err(refuse(format!(
                "the part ends before it begins: `--from` is {} after the start, `--to` {}; {}",
                said_ns(from - start),
                said_ns(to - start),
                extent()
            )));
        }
        // Where the end is not known yet, this is asked again once it is.
        let outside = end.is_some_and(|end| {
            from.is_some_and(|from| from > end) || to.is_some_and(|to| to < start)
        });
        if outside {
            return Err(refuse(format!("the part lies outside of it: {}", extent())));
        }
        let from = from.unwrap_or(start);
        let bounds = runs.iter().zip(&axis.offsets).map(|(run, offset)| {
            let on_clock = |at: i128| HostNanos(u64::try_from(at - offset).unwrap_or(0));
            let begins = on_clock(from);
            Bounds {
                from: begins,
                to: to.map_or(HostNanos(u64::MAX), on_clock),
                since: HostNanos(begins.0.saturating_sub(self.lead_in)),
                start: HostNanos(run.start_ns),
            }
        });
        Ok(Part {
            bounds: bounds.collect(),
            from_ns: ns(from - start),
            to_ns: to.map(|to| ns(to - start)),
            run_ns: end.map(|end| ns(end - start)),
            lead_in_ns: self.lead_in,
        })
    }
}

/// A length of time in words, of one that may be longer than any run.
fn said_ns(length: i128) -> String {
    crate::text::duration(ns(length))
}

fn ns(length: i128) -> u64 {
    u64::try_from(length.max(0)).unwrap_or(u64::MAX)
}

/// How long after a part is read to see which epochs go on, in nanoseconds.
const AFTER_NS: u64 = 10_000_000_000;

/// The times that are read of a process.
pub(crate) fn read_for(bounds: &Bounds) -> (HostNanos, HostNanos) {
    let to = bounds.to.0.saturating_add(AFTER_NS);
    (bounds.since, HostNanos(to))
}

/// What is known of when a process's recording began and ended, on its session's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start_ns: u64,
    /// `None` where nothing has a time, or it was not looked for.
    pub(crate) end_ns: Option<u64>,
    /// The start, by the wall clock.
    pub(crate) start_unix_ns: Option<u64>,
}

/// What the clocks of several processes are held against: the wall clock, where each says when it started
/// by it, or else the clock that they are then taken to have in common.
struct Axis {
    offsets: Vec<i128>,
    is_wall: bool,
}

impl Axis {
    fn of(runs: &[Run]) -> Self {
        let wall: Option<Vec<i128>> = runs
            .iter()
            .map(|run| Some(i128::from(run.start_unix_ns?) - i128::from(run.start_ns)))
            .collect();
        Self {
            is_wall: wall.is_some(),
            offsets: wall.unwrap_or_else(|| vec![0; runs.len()]),
        }
    }

    fn start(&self, runs: &[Run]) -> i128 {
        let all = runs.iter().zip(&self.offsets);
        let starts = all.map(|(run, offset)| i128::from(run.start_ns) + offset);
        starts.min().unwrap_or(0)
    }

    fn end(&self, runs: &[Run]) -> Option<i128> {
        let all = runs.iter().zip(&self.offsets);
        let ends = all.filter_map(|(run, offset)| Some(i128::from(run.end_ns?) + offset));
        ends.max()
    }

    /// From when to when it was, in words.
    fn said(&self, start: i128, end: i128) -> String {
        let length = said_ns(end - start);
        if self.is_wall {
            let (start, end) = (moment::said(ns(start)), moment::said(ns(end)));
            format!("the run is {length} long, from {start} to {end}")
        } else {
            format!("the run is {length} long")
        }
    }
}

/// A part of a recording.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Of each process's clock, in the order of the runs.
    pub(crate) bounds: Vec<Bounds>,
    /// Since the start.
    from_ns: u64,
    /// `None`: up to the end.
    to_ns: Option<u64>,
    run_ns: Option<u64>,
    lead_in_ns: u64,
}

impl Part {
    /// What is said of it once it was looked at.
    pub(crate) fn looked(&self, counts: Counts, lead_in: bool) -> Looked {
        let run_ns = self.run_ns.unwrap_or(self.from_ns);
        Looked {
            from_ns: self.from_ns,
            to_ns: self.to_ns.unwrap_or(run_ns).min(run_ns.max(self.from_ns)),
            run_ns,
            lead_in_ns: if lead_in {
                self.lead_in_ns.min(self.from_ns)
            } else {
                0
            },
            counts,
        }
    }
}

/// The part that was looked at, in nanoseconds since the run's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Looked {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// How long the run is.
    pub(crate) run_ns: u64,
    /// How much before it was read along with it.
    pub(crate) lead_in_ns: u64,
    #[serde(flatten)]
    pub(crate) counts: Counts,
}

impl Looked {
    /// In words, for a person.
    pub(crate) fn words(&self) -> String {
        use crate::text::{counted, duration};
        let mut out = format!(
            "{} of {}: from {} to {} after the start; {} outside not looked at",
            duration(self.to_ns.saturating_sub(self.from_ns)),
            duration(self.run_ns),
            duration(self.from_ns),
            duration(self.to_ns),
            counted(self.counts.rows_outside, "row", "rows"),
        );
        if self.lead_in_ns > 0 {
            out += &format!(
                ", but for what the {} before it say of what was under way",
                duration(self.lead_in_ns)
            );
        }
        if self.counts.rows_without_time > 0 {
            out += &format!(
                "; {} without any time, and in no part",
                counted(self.counts.rows_without_time, "row", "rows")
            );
        }
        out
    }
}
