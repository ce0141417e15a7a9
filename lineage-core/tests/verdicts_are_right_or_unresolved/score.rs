//! Claims held against truth.

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::id::HostNanos;
use lineage_core::observation::{
    ActivityKind, Event, Observation, Operation, RunQueue, SchedulerSession,
};
use lineage_core::row::Row;
use lineage_core::verdict::{Judge, Lateness, Life, Segment, Settings, Verdict};
use lineage_sim_model::{Cause, Facts};

use crate::without::Without;
use crate::world::{BEGIN_NS, ENGINE, HostTruth, Recorded, WAITED_IN};

/// What came of judging.
#[derive(Debug, Default, Clone)]
pub(crate) struct Score {
    pub(crate) claims: u64,
    pub(crate) wrong: Vec<String>,
    pub(crate) claimed_ns: u64,
    pub(crate) unresolved_ns: u64,
    pub(crate) before_start_ns: u64,
}

impl Score {
    pub(crate) fn add(&mut self, other: &Self) {
        self.claims += other.claims;
        self.wrong.extend(other.wrong.iter().cloned());
        self.claimed_ns += other.claimed_ns;
        self.unresolved_ns += other.unresolved_ns;
        self.before_start_ns += other.before_start_ns;
    }
}

/// Judges what is left of a recording.
pub(crate) fn judge(recorded: &Recorded, without: Without) -> (Vec<Row>, Vec<Life>) {
    let left = recorded.events.iter().filter_map(|of| without.of(of));
    let mut left: Vec<Event> = left.collect();
    if without == Without::Switches {
        left.extend(run_queues(recorded));
    }
    let observations: Vec<Observation> = left.into_iter().map(Observation::live).collect();
    let mut correlator = Correlator::new(Limits::default());
    for observation in &observations {
        correlator.observe(observation);
    }
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    let lives = Judge::new(Settings::default()).judge(&observations, &rows);
    (rows, lives)
}

/// What `/proc` would have said of the thread every tenth of a millisecond: a wait counts where it
/// ends, and only that it was, not when.
fn run_queues(recorded: &Recorded) -> Vec<Event> {
    const EVERY_NS: u64 = 100_000;
    let at = HostNanos;
    let only = SchedulerSession::RunQueueOnly {
        tid: ENGINE,
        why: "so asked for".into(),
        at: at(BEGIN_NS),
    };
    let preempted = recorded.host.iter();
    let preempted: Vec<(u64, u64)> = preempted
        .filter(|(_, _, of)| *of == HostTruth::Preempted)
        .map(|(begin, end, _)| (*begin, *end))
        .collect();
    let last = preempted.iter().map(|(_, end)| *end).max().unwrap_or(0);
    let windows = (BEGIN_NS..last + EVERY_NS).step_by(EVERY_NS as usize);
    let queues = windows.map(|from| {
        let to = from + EVERY_NS;
        let ended = preempted.iter().filter(|(_, end)| (from..to).contains(end));
        Event::from(RunQueue {
            tid: ENGINE,
            not_before: at(from),
            not_after: at(to),
            waited_ns: ended.map(|(begin, end)| end - begin).sum(),
            ran_ns: 0,
            turns: 0,
        })
    });
    std::iter::once(only.into()).chain(queues).collect()
}

/// Holds every claim against what was so.
pub(crate) fn score(recorded: &Recorded, rows: &[Row], lives: &[Life]) -> Score {
    let mut score = Score::default();
    for life in lives {
        assert!(life.is_exact(), "{life:#?}");
        let operation = rows[life.row].operation.as_ref().expect("all are launches");
        let facts = &recorded.facts[&number_of(operation)];
        assert!(!life.segments.is_empty(), "{life:#?}");
        for segment in &life.segments {
            let ns = segment.duration_ns();
            match segment.verdict.kind() {
                lineage_core::verdict::VerdictKind::Executing => continue,
                lineage_core::verdict::VerdictKind::Unresolved => score.unresolved_ns += ns,
                _ => {}
            }
            let executing = matches!(segment.verdict, Verdict::LongerThanItsKind { .. });
            if !executing {
                score.before_start_ns += ns;
            }
            if !segment.verdict.kind().is_claim() {
                continue;
            }
            score.claims += 1;
            score.claimed_ns += ns;
            if let Err(why) = is_right(recorded, rows, facts, segment) {
                score.wrong.push(format!(
                    "{:?} of {} in {}..{}: {why}; {facts:?}",
                    segment.verdict, facts.number, segment.from.0, segment.to.0
                ));
            }
        }
    }
    score
}

/// The number under which the model knows an operation.
pub(crate) fn number_of(operation: &Operation) -> u64 {
    let own = u64::from(operation.correlation.0);
    operation.graph_node.unwrap_or(own)
}

/// When a cause of the model's truth held an operation up: each stage begins where the one before
/// ended.
fn interval(facts: &Facts, wanted: Cause) -> Option<(u64, u64)> {
    let mut at = facts.called_ns;
    for cause in Cause::ALL {
        let share = facts.waits.of(cause);
        if cause == wanted && share > 0 {
            return Some((at, at + share));
        }
        at += share;
    }
    None
}

fn is_right(
    recorded: &Recorded,
    rows: &[Row],
    facts: &Facts,
    segment: &Segment,
) -> Result<(), String> {
    let (from, to) = (segment.from.0, segment.to.0);
    let tolerance = recorded.tolerance_ns;
    let inside = |of: Option<(u64, u64)>| match of {
        Some((begin, end))
            if begin <= from + tolerance + recorded.latency_ns
                && to <= end + tolerance + recorded.latency_ns =>
        {
            Ok(())
        }
        Some(of) => Err(format!("it was so in {of:?}")),
        None => Err("it was not so".to_owned()),
    };
    // Host time is only critical where nothing of what it truly had to wait for was at the device.
    let critical_in = |from: u64, to: u64| {
        let mut before = facts.dependency_number;
        while let Some(of) = recorded.facts.get(&before) {
            if of.submitted_ns + tolerance < to && from + tolerance < of.end_ns {
                return Err(format!("it was covered by {before}"));
            }
            before = of.dependency_number;
        }
        Ok(())
    };
    let critical = || critical_in(from, to);
    let host = |wanted: HostTruth| {
        critical()?;
        let of_kind = recorded.host.iter().filter(|(_, _, of)| *of == wanted);
        let mut found = of_kind.map(|(begin, end, _)| (*begin, *end));
        if found.any(|of| inside(Some(of)).is_ok()) {
            Ok(())
        } else {
            Err("the host was not at that".to_owned())
        }
    };
    // For how long the host was at that within an interval.
    let total = |wanted: HostTruth, begin: u64, end: u64| -> u64 {
        let of_kind = recorded.host.iter().filter(|(_, _, of)| *of == wanted);
        let inside = of_kind.map(|(from, to, _)| (*to).min(end).saturating_sub((*from).max(begin)));
        inside.sum()
    };
    let number = |row: usize| {
        let operation = rows[row].operation.as_ref().expect("all are launches");
        number_of(operation)
    };
    match &segment.verdict {
        Verdict::ApplicationLate => host(HostTruth::ApplicationLate),
        Verdict::BatchWait => host(HostTruth::BatchWait),
        Verdict::SubmitterLate(Lateness::Preempted) => host(HostTruth::Preempted),
        Verdict::SubmitterLate(Lateness::Blocked) => host(HostTruth::Asleep),
        Verdict::SubmitterLate(Lateness::Asleep { function }) if **function == *WAITED_IN => {
            host(HostTruth::Asleep)
        }
        // So much of it, wherever it was.
        Verdict::SubmitterLate(Lateness::WithoutProcessor {
            not_before,
            not_after,
        }) => {
            let (begin, end) = (not_before.0, not_after.0);
            critical_in(begin, end)?;
            let inside = total(HostTruth::Preempted, begin, end);
            if segment.duration_ns() <= inside && begin <= from && to <= end {
                Ok(())
            } else {
                Err(format!("it had no processor for {inside} ns"))
            }
        }
        Verdict::SubmitterLate(Lateness::BusyWith(epoch)) => host(HostTruth::BusyWith(*epoch)),
        // It says no more than that the work was handed over and not taken: the script has it so.
        Verdict::SubmitterLate(Lateness::Unknown) => critical(),
        // The script's thread runs whenever it is not said to do something else.
        Verdict::HostWork => {
            critical()?;
            let idle = [
                HostTruth::ApplicationLate,
                HostTruth::BatchWait,
                HostTruth::Preempted,
                HostTruth::Asleep,
                HostTruth::SyncWait,
                HostTruth::Allocation,
            ];
            let other = recorded
                .host
                .iter()
                .any(|(begin, end, of)| idle.contains(of) && *begin < to && from < *end);
            if other {
                return Err("the host was not running its own work".to_owned());
            }
            Ok(())
        }
        Verdict::HostSyncWait { .. } => {
            let own = host(HostTruth::SyncWait);
            own.or_else(|_| critical())
        }
        Verdict::Allocation { .. } => host(HostTruth::Allocation),
        // By its history it is known how much of the call was slow, and not where in it.
        Verdict::ApiSlow { cause: None, .. } => {
            critical()?;
            let slow = total(HostTruth::ApiSlow, facts.called_ns, facts.queued_ns);
            if segment.duration_ns() <= slow {
                Ok(())
            } else {
                Err(format!("its call was slow for {slow} ns"))
            }
        }
        Verdict::ApiSlow { .. } => host(HostTruth::ApiSlow),
        Verdict::SubmitWait => {
            critical()?;
            inside(interval(facts, Cause::Doorbell))
        }
        Verdict::DependencyWait(dependency) => {
            if facts.waits.of(Cause::Dependency) == 0 {
                return Err("its dependencies did not hold it up".to_owned());
            }
            if facts.dependencies_ns.abs_diff(to) > tolerance {
                return Err(format!(
                    "its dependencies were ready at {}",
                    facts.dependencies_ns
                ));
            }
            match dependency.row.map(number) {
                Some(named) if named != facts.dependency_number => Err(format!(
                    "it waited for {}, not for {named}",
                    facts.dependency_number
                )),
                _ => Ok(()),
            }
        }
        Verdict::FalseDependency { row, .. } => {
            inside(interval(facts, Cause::Channel))?;
            // The one named was queued before it and left the channel while it waited there.
            let named = &recorded.facts[&number(*row)];
            let ahead = named.channel == facts.channel && named.queued_ns < facts.queued_ns;
            let waited = facts.submitted_ns..=facts.issued_ns;
            if ahead && waited.contains(&named.issued_ns) {
                Ok(())
            } else {
                Err(format!("{} was ahead", facts.channel_number))
            }
        }
        Verdict::DeviceWait { row } => {
            let engine = match rows[*row]
                .operation
                .as_ref()
                .expect("all are launches")
                .kind
            {
                ActivityKind::Copy => Cause::CopyEngine,
                _ => Cause::Multiprocessors,
            };
            inside(interval(facts, engine))?;
            if facts.resource_number == number(*row) {
                Ok(())
            } else {
                Err(format!("{} made room", facts.resource_number))
            }
        }
        Verdict::LongerThanItsKind { typical_ns, .. } => {
            // Beyond what it waited inside, it ran no longer than it was told to.
            let ran = facts.end_ns - facts.start_ns - facts.waited_inside_ns;
            if ran > 2 * typical_ns {
                Ok(())
            } else {
                Err("it ran as long as its kind".to_owned())
            }
        }
        other => Err(format!("a claim that this test does not know: {other:?}")),
    }
}
