//! Judging rows: histories and the dispatch floor first, then each row's life.

use super::Settings;
use super::device::kind_of;
use super::history::{DispatchFloor, Histories};
use super::life::Life;
use super::path::Bench;
use super::scene::{Scene, is_broken};
use crate::id::{HostNanos, ProcessOrdinal};
use crate::observation::Observation;
use crate::readiness::DependencyKind;
use crate::row::Row;

/// How far the host must be ahead of a dependency's end for the gap behind it to be the device's
/// own, in nanoseconds.
const WELL_AHEAD_NS: u64 = 5_000;

/// Judges rows. What it learns of kernels and calls it keeps from one batch to the next, so that
/// the parts of a long recording are judged by the whole of it so far.
///
/// It has no clock, thread, input or output. What it holds of a batch is bounded by the batch, and
/// what it keeps between them by a number of kinds and of samples of each.
#[derive(Debug, Default)]
pub struct Judge {
    settings: Settings,
    histories: Vec<(ProcessOrdinal, Histories)>,
    floors: Vec<(ProcessOrdinal, DispatchFloor)>,
    since: Vec<(ProcessOrdinal, HostNanos)>,
}

impl Judge {
    /// A judge with these settings.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Says that of a process no more is given than a part of what was recorded: all that was at this time
    /// or later, and before it at least what describes devices, streams, graphs and epochs. What was on a
    /// stream before is then taken for unknown, and nothing is claimed of a stage that began before.
    pub fn given_since(&mut self, process: ProcessOrdinal, at: HostNanos) {
        self.since.retain(|(of, _)| *of != process);
        self.since.push((process, at));
    }

    /// The lives of these rows, in their order, judged by these observations: those that the rows
    /// were joined from, of any number of processes. Rows whose place a later one takes have none.
    ///
    /// What was before the first of the observations is not known: a long recording is best given
    /// in few large batches.
    pub fn judge(&mut self, observations: &[Observation], rows: &[Row]) -> Vec<Life> {
        let mut lives: Vec<Life> = Vec::with_capacity(rows.len());
        self.judge_each(observations, rows, |life| lives.push(life));
        lives.sort_by_key(|life| life.row);
        lives
    }

    /// The same, one by one and process by process, for who does not keep them: together the lives of many
    /// rows take more memory than all that they are told by.
    pub fn judge_each(
        &mut self,
        observations: &[Observation],
        rows: &[Row],
        mut each: impl FnMut(Life),
    ) {
        let mut processes: Vec<ProcessOrdinal> = rows.iter().map(|row| row.process).collect();
        processes.sort_unstable();
        processes.dedup();
        for process in processes {
            self.process(process, observations, rows, &mut each);
        }
    }

    /// The device's own latency, as it was measured last in a process; `None` where there was not
    /// enough to measure.
    pub fn dispatch_floor(&self, process: ProcessOrdinal) -> Option<DispatchFloor> {
        let mut floors = self.floors.iter();
        floors
            .find(|(of, _)| *of == process)
            .map(|(_, floor)| *floor)
    }

    fn process(
        &mut self,
        process: ProcessOrdinal,
        observations: &[Observation],
        rows: &[Row],
        each: &mut impl FnMut(Life),
    ) {
        let of_process = observations.iter().filter(|of| of.process == process);
        let events = of_process.map(|of| &of.event);
        let wanted = |at: usize| rows[at].process == process;
        let since = self.since.iter().find(|(of, _)| *of == process);
        let since = since.map(|(_, at)| *at);
        let scene = Scene::new(events, rows, wanted, self.settings.epsilon_ns, since);
        let numbers: Vec<usize> = (0..rows.len())
            .filter(|at| wanted(*at) && !scene.superseded.contains(at))
            .collect();
        let known = self.histories.iter().position(|(of, _)| *of == process);
        let at = known.unwrap_or_else(|| {
            self.histories.push((process, Histories::default()));
            self.histories.len() - 1
        });
        let histories = &mut self.histories[at].1;
        learn(&scene, &numbers, histories);
        let floor = DispatchFloor::of(gaps(&scene, &numbers));
        if let Some(floor) = floor {
            self.floors.retain(|(of, _)| *of != process);
            self.floors.push((process, floor));
        }
        let floors = &self.floors;
        let floor = floor.or_else(|| {
            let known = floors.iter().find(|(of, _)| *of == process);
            known.map(|(_, floor)| *floor)
        });
        let mut bench = Bench {
            scene: &scene,
            histories,
            floor,
            settings: self.settings,
            since,
        };
        for row in numbers {
            each(bench.life(row));
        }
    }
}

/// How long kernels of each kind ran, and calls took: of a graph launch, once.
fn learn(scene: &Scene<'_>, numbers: &[usize], histories: &mut Histories) {
    let mut last_call = None;
    for &number in numbers {
        let row = &scene.rows[number];
        if is_broken(row) {
            continue;
        }
        if let Some(operation) = &row.operation
            && let (Some(kind), Some(start), Some(end)) =
                (kind_of(operation), operation.start, operation.end)
        {
            histories.kernel(kind, end.0 - start.0);
        }
        if let Some(call) = &row.call
            && call.result == 0
            && last_call != Some((call.session, call.correlation))
            && let (Some(enter), Some(exit)) = (row.stages.api_enter.at(), row.stages.api_exit.at())
            && let (Some(name), Some(took)) = (&call.api.name, exit.0.checked_sub(enter.0))
        {
            last_call = Some((call.session, call.correlation));
            histories.call(name, took);
        }
    }
}

/// Gaps between the end of a stream's earlier work and a start, where the call had returned well
/// before that end.
fn gaps(scene: &Scene<'_>, numbers: &[usize]) -> Vec<u64> {
    let gap = |&number: &usize| {
        let row = &scene.rows[number];
        let (at, dependency) = scene.readiness(number)?.not_before?;
        let start = row.operation.as_ref()?.start?;
        let ahead = row.stages.api_exit.at()?.0.saturating_add(WELL_AHEAD_NS) <= at.0;
        let submitted = row.operation.as_ref()?.submitted;
        let ahead = ahead && submitted.is_none_or(|submitted| submitted <= at);
        (dependency.kind == DependencyKind::SameStream && ahead).then(|| start.0 - at.0)
    };
    numbers.iter().filter_map(gap).collect()
}
