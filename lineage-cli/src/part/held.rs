//! What is held of a ledger while it is read.

use std::collections::{BTreeMap, HashSet};

use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::ledger::{Entry, Times, moment_of};
use lineage_core::observation::{Event, Observation, SchedulerSession};
use lineage_core::row::{Binding, Row};
use lineage_core::verdict::Judge;

use super::epochs::Epochs;
use super::{Bounds, Counts};

/// Entries behind one that reaches into what is held, among which those without a time of their own are
/// held, too: they were written next to what they are of.
const NEXT_TO: u32 = 16_384;

/// What is held of a ledger, while it is read.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    /// Of each directory; of a file one. Nothing is asked of the whole.
    bounds: Vec<Bounds>,
    processes: BTreeMap<ProcessOrdinal, Bounds>,
    observations: Vec<Observation>,
    rows: Vec<Row>,
    epochs: Epochs,
    scheduler: Vec<(HostNanos, Observation)>,
    goes_on: HashSet<(ProcessOrdinal, u64)>,
    has_rows: bool,
    /// Entries since the last that reached into what is held.
    since_held: u32,
    counts: Counts,
    seen: Option<Times>,
}

/// What was held.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) observations: Vec<Observation>,
    pub(crate) rows: Vec<Row>,
    /// Of the processes of a part; nothing is asked of the whole.
    pub(crate) bounds: BTreeMap<ProcessOrdinal, Bounds>,
    pub(crate) counts: Counts,
    /// Epochs with work after the part, by process and number.
    pub(crate) goes_on: HashSet<(ProcessOrdinal, u64)>,
    /// From when to when what was read was.
    pub(crate) seen: Option<Times>,
    /// Whether the ledger has rows; else all that was observed is held, and its joins are to be made.
    pub(crate) has_rows: bool,
}

/// How long after a part is read to see which epochs go on, in nanoseconds.
const AFTER_NS: u64 = 10_000_000_000;

impl Bounds {
    /// The times that are read.
    pub(crate) fn read(&self) -> (HostNanos, HostNanos) {
        (self.since, HostNanos(self.to.0.saturating_add(AFTER_NS)))
    }
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
    /// Of the whole where no bounds are given, else of what is within those of each directory.
    pub(crate) fn new(bounds: Vec<Bounds>) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Takes in the next entry, of the directory of this number.
    pub(crate) fn take(&mut self, directory: usize, entry: Entry) {
        let bounds = self.bounds.get(directory).copied();
        match entry {
            Entry::Observation(of) => {
                self.process(of.process, bounds);
                self.observation(of, bounds);
            }
            Entry::Row(row) => {
                self.process(row.process, bounds);
                if !std::mem::replace(&mut self.has_rows, true) {
                    // What came before was held in case that there are none.
                    for of in std::mem::take(&mut self.observations) {
                        let bounds = self.processes.get(&of.process).copied();
                        self.observation(of, bounds);
                    }
                }
                self.row(row, bounds);
            }
            _ => {}
        }
    }

    fn process(&mut self, process: ProcessOrdinal, bounds: Option<Bounds>) {
        if let Some(bounds) = bounds {
            self.processes.entry(process).or_insert(bounds);
        }
    }

    fn seen(&mut self, times: Option<Times>) {
        self.seen = match (self.seen, times) {
            (Some(all), Some(times)) => Some(all.and(times)),
            (all, times) => all.or(times),
        };
    }

    fn observation(&mut self, of: Observation, bounds: Option<Bounds>) {
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

    fn row(&mut self, row: Row, bounds: Option<Bounds>) {
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

    /// What was held, once all is read; rows that were passed over are counted as outside.
    pub(crate) fn finish(mut self, passed_over: u64) -> Held {
        self.counts.rows_outside = self.counts.rows_outside.saturating_add(passed_over);
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
    /// Tells a judge since when all is held of each process.
    pub(crate) fn limit(&self, judge: &mut Judge) {
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
        _ => None,
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
