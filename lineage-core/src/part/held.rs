//! What is held of a recording while it is read.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::epochs::Epochs;
use super::{Bounds, Times, moment_of};
use crate::id::{HostNanos, ProcessOrdinal};
use crate::observation::{Event, Observation, SchedulerSession};
use crate::row::{Binding, Row};
use crate::verdict::Judge;

/// Entries behind one that reaches into what is held, among which those without a time of their own are
/// held, too: they were written next to what they are of.
const NEXT_TO: u32 = 16_384;

/// Rows, by where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counts {
    /// In the part.
    pub rows: u64,
    /// Before it or after it.
    pub rows_outside: u64,
    /// Without any time, so that it is not known where they are.
    pub rows_without_time: u64,
}

impl Counts {
    /// Counts a row; one of a process without bounds is in the part.
    pub fn add(&mut self, bounds: Option<&Bounds>, row: &Row) {
        match (bounds, moment_of(row)) {
            (Some(_), None) => self.rows_without_time += 1,
            (Some(bounds), Some(_)) if !bounds.has(row) => self.rows_outside += 1,
            _ => self.rows += 1,
        }
    }
}

/// What is held of a recording, or of several that are read as one, while it is read.
#[derive(Debug, Default)]
pub struct Holding {
    /// Of each recording. None for the whole.
    bounds: Vec<Bounds>,
    processes: BTreeMap<ProcessOrdinal, Bounds>,
    observations: Vec<Observation>,
    rows: Vec<Row>,
    epochs: Epochs,
    scheduler: Vec<(HostNanos, Observation)>,
    goes_on: FxHashSet<(ProcessOrdinal, u64)>,
    has_rows: bool,
    /// Entries since the last that reached into what is held.
    since_held: u32,
    counts: Counts,
    seen: Option<Times>,
}

/// What was held.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Held {
    /// What was observed, in an order that says nothing.
    pub observations: Vec<Observation>,
    /// Rows, those of the lead-in among them.
    pub rows: Vec<Row>,
    /// Of the processes of a part. None for the whole.
    pub bounds: BTreeMap<ProcessOrdinal, Bounds>,
    /// Rows that came, by where they are.
    pub counts: Counts,
    goes_on: FxHashSet<(ProcessOrdinal, u64)>,
    /// From when to when what came was.
    pub seen: Option<Times>,
    /// Whether rows came. If not, all that was observed is held, in its order, and joins are to be made.
    pub has_rows: bool,
}

/// Whether verdicts rest on an event where rows say what was joined.
const fn is_used(event: &Event) -> bool {
    !matches!(
        event,
        Event::ThreadStarted(_)
            | Event::ThreadEnded(_)
            | Event::SpanLinked(_)
            | Event::Abandoned(_)
            | Event::Named(_)
            | Event::Misuse(_)
            | Event::DeviceSession(_)
            | Event::External(_)
            | Event::Operation(_)
            | Event::Flushed(_)
            | Event::Extent(_)
            | Event::GraphNode(_)
            | Event::GraphLaunch(_)
    )
}

impl Holding {
    /// Of the whole where no bounds are given, else of what is within those of each recording, in their
    /// order.
    pub fn new(bounds: Vec<Bounds>) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Says that rows will come, so that what comes before the first need not be held in case that there are
    /// none.
    pub fn expect_rows(&mut self) {
        self.has_rows = true;
    }

    /// Takes in what was observed, of the recording of this number, from 0.
    pub fn observation(&mut self, recording: usize, of: Observation) {
        let bounds = self.process(of.process, recording);
        self.hold(of, bounds);
    }

    /// Takes in a row of the recording of this number, from 0.
    pub fn row(&mut self, recording: usize, row: Row) {
        let bounds = self.process(row.process, recording);
        if !std::mem::replace(&mut self.has_rows, true) {
            // What came before was held in case that there are none.
            for of in std::mem::take(&mut self.observations) {
                let bounds = self.processes.get(&of.process).copied();
                self.hold(of, bounds);
            }
        }
        self.hold_row(row, bounds);
    }

    fn process(&mut self, process: ProcessOrdinal, recording: usize) -> Option<Bounds> {
        let bounds = self.bounds.get(recording).copied()?;
        Some(*self.processes.entry(process).or_insert(bounds))
    }

    fn seen(&mut self, times: Option<Times>) {
        self.seen = match (self.seen, times) {
            (Some(all), Some(times)) => Some(all.and(times)),
            (all, times) => all.or(times),
        };
    }

    fn hold(&mut self, of: Observation, bounds: Option<Bounds>) {
        let times = Times::of_observation(&of);
        self.seen(times);
        if !self.has_rows {
            return self.observations.push(of);
        }
        if let Event::Retired(_) = of.event {
            if let Some(bounds) = bounds {
                self.epochs.take(of, bounds.since);
            }
            return;
        }
        if !is_used(&of.event) {
            return;
        }
        let Some(bounds) = bounds else {
            return self.observations.push(of);
        };
        if Epochs::epoch_of(&of.event).is_some() {
            if bounds.is_from_start() {
                return self.observations.push(of);
            }
            return self.epochs.take(of, bounds.since);
        }
        match &of.event {
            Event::SchedulerSession(session) => {
                let at = at(session).unwrap_or_default();
                return self.scheduler.push((at, of));
            }
            // What holds for longer.
            Event::Gap(_)
            | Event::Dropped(_)
            | Event::Graph(_)
            | Event::StreamDescribed(_)
            | Event::DeviceDescribed(_)
            | Event::Collected(_) => return self.observations.push(of),
            // Of one that began before it is not known when in it the thread waited.
            Event::RunQueue(queue) if queue.not_before < bounds.since => return,
            _ => {}
        }
        let near = self.since_held < NEXT_TO;
        let held = match times {
            Some(times) => self.meets(times, bounds),
            None => near,
        };
        if held {
            self.observations.push(of);
        }
    }

    fn meets(&mut self, times: Times, bounds: Bounds) -> bool {
        let meets = times.meets(bounds.since, bounds.to);
        self.since_held = if meets {
            0
        } else {
            self.since_held.saturating_add(1)
        };
        meets
    }

    fn hold_row(&mut self, row: Row, bounds: Option<Bounds>) {
        let times = Times::of_row(&row);
        self.seen(times);
        let Some(bounds) = bounds else {
            self.counts.rows += 1;
            return self.rows.push(row);
        };
        self.counts.add(Some(&bounds), &row);
        if let (Some(at), Binding::Bound(epoch)) = (moment_of(&row), row.binding)
            && at > bounds.to
        {
            self.goes_on.insert((row.process, epoch.id.get()));
        }
        if times.is_none_or(|times| self.meets(times, bounds)) {
            self.rows.push(row);
        }
    }

    /// What was held, once all is read.
    pub fn finish(mut self) -> Held {
        let mut observations = self.observations;
        if self.has_rows {
            for row in &mut self.rows {
                let bounds = self.processes.get(&row.process);
                if bounds.is_some_and(|bounds| !bounds.is_from_start()) {
                    self.epochs.limit(row);
                }
            }
            observations.extend(self.epochs.into_observations());
            // In the order of time, since the last of those before what is held stands.
            self.scheduler.sort_by_key(|(at, _)| *at);
            let processes = &self.processes;
            observations.extend(self.scheduler.into_iter().map(|(_, mut of)| {
                if let (Some(bounds), Event::SchedulerSession(session)) =
                    (processes.get(&of.process), &mut of.event)
                {
                    put_after(session, bounds.since);
                }
                of
            }));
        }
        Held {
            observations,
            rows: self.rows,
            bounds: self.processes,
            counts: self.counts,
            goes_on: self.goes_on,
            seen: self.seen,
            has_rows: self.has_rows,
        }
    }
}

impl Held {
    /// Whether an epoch, by its number, has work after the part, as far as rows of it came.
    pub fn goes_on(&self, process: ProcessOrdinal, epoch: u64) -> bool {
        self.goes_on.contains(&(process, epoch))
    }

    /// Tells a judge since when all is held of each process.
    pub fn limit(&self, judge: &mut Judge) {
        for (process, bounds) in &self.bounds {
            if !bounds.is_from_start() {
                judge.given_since(*process, bounds.since);
            }
        }
    }
}

/// When something was said of how a thread is watched.
const fn at(session: &SchedulerSession) -> Option<HostNanos> {
    match session {
        SchedulerSession::Started { at }
        | SchedulerSession::Absent { at, .. }
        | SchedulerSession::Watched { at, .. }
        | SchedulerSession::RunQueueOnly { at, .. }
        | SchedulerSession::Unwatched { at, .. }
        | SchedulerSession::ThreadEnded { at, .. }
        | SchedulerSession::Ended { at } => Some(*at),
        SchedulerSession::Lost {
            not_before,
            not_after,
            ..
        } => match not_before {
            Some(_) => *not_before,
            None => *not_after,
        },
    }
}

/// What held before is said for the first moment at which all is held. Whether a thread ran then is told by
/// its switches before, and is not known.
fn put_after(session: &mut SchedulerSession, since: HostNanos) {
    match session {
        SchedulerSession::Watched { at, running, .. } if *at < since => {
            *at = since;
            *running = None;
        }
        SchedulerSession::RunQueueOnly { at, .. }
        | SchedulerSession::Unwatched { at, .. }
        | SchedulerSession::ThreadEnded { at, .. } => *at = (*at).max(since),
        SchedulerSession::Lost {
            not_before,
            not_after,
            ..
        } => {
            *not_before = Some(not_before.unwrap_or_default().max(since));
            *not_after = not_after.map(|at| at.max(since));
        }
        _ => {}
    }
}
