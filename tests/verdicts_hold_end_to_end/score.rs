//! Claims held against what was so.

use std::collections::{BTreeMap, HashMap};

use lineage_core::observation::OverheadKind;
use lineage_core::row::Row;
use lineage_core::verdict::{Lateness, Life, Segment, Verdict, VerdictKind};
use lineage_sim::{Cause, Operation, OperationKind};

use crate::scenario::Scenario;
use crate::world::{HostTruth, Recorded};

/// What came of judging.
#[derive(Debug, Default, Clone)]
pub(crate) struct Score {
    /// Claims, by verdict.
    pub(crate) claims: BTreeMap<VerdictKind, u64>,
    pub(crate) wrong: Vec<String>,
    pub(crate) claimed_ns: u64,
    pub(crate) unresolved_ns: u64,
    pub(crate) before_start_ns: u64,
}

impl Score {
    pub(crate) fn claimed(&self) -> u64 {
        self.claims.values().sum()
    }

    /// In percent.
    pub(crate) fn unresolved_share(&self) -> f64 {
        if self.before_start_ns == 0 {
            return 0.0;
        }
        self.unresolved_ns as f64 * 100.0 / self.before_start_ns as f64
    }
}

/// How far observed times may be from the true ones.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tolerance {
    /// Of a device's time.
    pub(crate) device_ns: u64,
    /// The device's own latency: a stretch between two observed times has some of it at its ends.
    pub(crate) latency_ns: u64,
    /// By how much the device's clock stepped: a dependency's times are of that clock.
    pub(crate) step_ns: u64,
    /// What the tracer itself takes of one call.
    pub(crate) tracer_ns: u64,
}

/// Truth, by what its record says of itself.
pub(crate) struct Truth<'a> {
    recorded: &'a Recorded,
    tolerance: Tolerance,
    by_ordinal: HashMap<u64, &'a Operation>,
    by_record: HashMap<(u32, u64), &'a Operation>,
}

impl<'a> Truth<'a> {
    pub(crate) fn new(recorded: &'a Recorded, tolerance: Tolerance) -> Self {
        let all = &recorded.truth.operations;
        let node = |of: &Operation| of.graph.map_or(0, |node| node.node_id);
        Self {
            recorded,
            tolerance,
            by_ordinal: all.iter().map(|of| (of.ordinal, of)).collect(),
            by_record: all
                .iter()
                .map(|of| ((of.correlation_id, node(of)), of))
                .collect(),
        }
    }

    fn of(&self, row: &Row) -> Option<&'a Operation> {
        let of = row.operation.as_ref()?;
        let node = of.graph_node.unwrap_or(0);
        self.by_record.get(&(of.correlation.0, node)).copied()
    }

    /// The life of the operation that a scenario is about.
    pub(crate) fn life<'l>(
        &self,
        scenario: &Scenario,
        rows: &[Row],
        lives: &'l [Life],
    ) -> Option<&'l Life> {
        lives.iter().find(|life| {
            self.of(&rows[life.row]).is_some_and(|of| {
                let kernel = of.name.as_deref().is_none_or(|name| name == "gemv");
                of.call_start_ns == scenario.called_ns && kernel
            })
        })
    }

    /// Holds every claim on these lives against what was so.
    pub(crate) fn score<'l>(
        &self,
        rows: &[Row],
        lives: impl IntoIterator<Item = &'l Life>,
    ) -> Score {
        let mut score = Score::default();
        for life in lives {
            assert!(life.is_exact(), "{life:#?}");
            let Some(truth) = self.of(&rows[life.row]) else {
                assert!(
                    life.segments.is_empty(),
                    "nothing is known of it: {life:#?}"
                );
                continue;
            };
            for segment in &life.segments {
                let (ns, kind) = (segment.duration_ns(), segment.verdict.kind());
                if !matches!(
                    kind,
                    VerdictKind::Executing | VerdictKind::LongerThanItsKind
                ) {
                    score.before_start_ns += ns;
                }
                if kind == VerdictKind::Unresolved {
                    score.unresolved_ns += ns;
                }
                if !kind.is_claim() {
                    continue;
                }
                *score.claims.entry(kind).or_default() += 1;
                score.claimed_ns += ns;
                if let Err(why) = self.is_right(rows, truth, segment) {
                    score.wrong.push(format!(
                        "{:?} of {} ({:?}) in {}..{}: {why}; {truth:?}",
                        segment.verdict, truth.ordinal, truth.name, segment.from.0, segment.to.0
                    ));
                }
            }
        }
        score
    }

    fn is_right(&self, rows: &[Row], truth: &Operation, segment: &Segment) -> Result<(), String> {
        let (from, to) = (segment.from.0, segment.to.0);
        let tolerance = self.tolerance.device_ns;
        let slack = tolerance + self.tolerance.latency_ns;
        let inside = |of: Option<(u64, u64)>| match of {
            Some((begin, end)) if begin <= from + slack && to <= end + slack => Ok(()),
            Some(of) => Err(format!("it was so in {of:?}")),
            None => Err("it was not so".to_owned()),
        };
        let host = |wanted: HostTruth| {
            self.critical(truth, from, to)?;
            let mut of_kind = self.recorded.host.iter().filter(|(_, _, of)| *of == wanted);
            if of_kind.any(|(begin, end, _)| inside(Some((*begin, *end))).is_ok()) {
                Ok(())
            } else {
                Err("the host was not at that".to_owned())
            }
        };
        let named = |row: usize| self.of(&rows[row]).map_or(0, |of| of.ordinal);
        match &segment.verdict {
            Verdict::ApplicationLate => host(HostTruth::ApplicationLate),
            Verdict::BatchWait => host(HostTruth::BatchWait),
            Verdict::SubmitterLate(Lateness::Preempted) => host(HostTruth::Preempted),
            Verdict::SubmitterLate(Lateness::BusyWith(epoch)) => host(HostTruth::BusyWith(*epoch)),
            // It says no more than that the work was handed over and not taken: the script has it so.
            Verdict::SubmitterLate(Lateness::Unknown) => self.critical(truth, from, to),
            Verdict::HostWork => {
                self.critical(truth, from, to)?;
                self.nothing_else(from, to)
            }
            // The script's waits are all of the thread that launches.
            Verdict::HostSyncWait { .. } => host(HostTruth::SyncWait),
            Verdict::Allocation { .. } => host(HostTruth::Allocation),
            Verdict::ApiSlow { cause, .. } => {
                self.critical(truth, from, to)?;
                match cause {
                    Some(OverheadKind::LazyFunctionLoading) => {
                        inside(interval(truth, Cause::LazyLoading))
                    }
                    Some(OverheadKind::CommandBufferFull) => {
                        inside(interval(truth, Cause::QueueFull))
                    }
                    Some(OverheadKind::DriverCompiler) => host(HostTruth::Module),
                    // By its history, which says neither why nor where in the call.
                    None => {
                        let more =
                            [Cause::LazyLoading, Cause::QueueFull].map(|of| truth.waits.of(of));
                        let in_call = truth.call_start_ns <= from && Some(to) <= truth.call_end_ns;
                        let long = to - from <= more.iter().sum::<u64>();
                        (in_call && long)
                            .then_some(())
                            .ok_or_else(|| "it was not so slow".to_owned())
                    }
                    // Of its own costs only those for a buffer and for each call come in calls for work.
                    Some(OverheadKind::Tracer) if to - from <= self.tolerance.tracer_ns => Ok(()),
                    _ => Err("nothing else is slow".to_owned()),
                }
            }
            Verdict::SubmitWait => {
                self.critical(truth, from, to)?;
                inside(interval(truth, Cause::Doorbell))
            }
            Verdict::DependencyWait(dependency) => {
                // What came last is told apart to within the device's own latency.
                let submitted_later = truth.submitted_ns > to + slack;
                if truth.waits.of(Cause::Dependency) == 0 && submitted_later {
                    return Err("its dependencies did not hold it up".to_owned());
                }
                // What it waited for in the end, or what that waited for, and right behind which something
                // short came that nobody saw: a function of the host's, or work whose record is lost.
                let ready = truth.dependencies_ns;
                let clock = tolerance + self.tolerance.step_ns;
                let direct = ready.abs_diff(to) <= clock;
                let hidden =
                    !direct && to < ready && ready <= to + clock + 2 * self.tolerance.latency_ns;
                let Some(row) = dependency.row else {
                    return (direct || hidden)
                        .then_some(())
                        .ok_or_else(|| "ready later".to_owned());
                };
                let mut before = truth.dependency_ordinal;
                let named = named(row);
                if direct && before == Some(named) {
                    return Ok(());
                }
                while let Some(of) = before.and_then(|of| self.by_ordinal.get(&of)) {
                    if hidden && of.ordinal == named && of.end_ns.abs_diff(to) <= clock {
                        return Ok(());
                    }
                    before = of.dependency_ordinal;
                }
                let truly = truth.dependency_ordinal;
                Err(format!(
                    "it waited for {truly:?} until {ready}, not for {named}"
                ))
            }
            Verdict::FalseDependency { row, .. } => {
                inside(interval(truth, Cause::Channel))?;
                // The one named was queued before it and left the channel while it waited there.
                let Some(other) = self.by_ordinal.get(&named(*row)) else {
                    return Err("nobody knows the one that was named".to_owned());
                };
                let ahead = other.channel == truth.channel && other.queued_ns < truth.queued_ns;
                let waited = truth.submitted_ns..=truth.issued_ns;
                if ahead && waited.contains(&other.issued_ns) {
                    Ok(())
                } else {
                    Err(format!("{:?} was ahead", truth.channel_ordinal))
                }
            }
            Verdict::DeviceWait { row } => {
                // One copy at a time: while that one had the engine, this one could not, whatever else
                // held it up until then.
                let Some(other) = self.by_ordinal.get(&named(*row)) else {
                    return Err("nobody knows the one that was named".to_owned());
                };
                if other.kind == OperationKind::Kernel {
                    inside(interval(truth, Cause::Multiprocessors))?;
                    return (truth.resource_ordinal == Some(other.ordinal))
                        .then_some(())
                        .ok_or_else(|| format!("{:?} made room", truth.resource_ordinal));
                }
                let one_engine = (other.device, other.kind) == (truth.device, truth.kind);
                let ran = other.start_ns <= from + slack && to <= other.end_ns + slack;
                if one_engine && ran && to <= truth.start_ns + slack {
                    Ok(())
                } else {
                    Err(format!("{:?} made room", truth.resource_ordinal))
                }
            }
            Verdict::LongerThanItsKind { typical_ns, .. } => {
                // Beyond what it waited inside and was preempted, it ran no longer than it was told to.
                let lost_ns = truth.waited_inside_ns + truth.preempted_ns;
                let ran = truth.end_ns - truth.start_ns - lost_ns;
                if ran > typical_ns + typical_ns / 2 {
                    Ok(())
                } else {
                    Err("it ran as long as its kind".to_owned())
                }
            }
            other => Err(format!("a claim that this test does not know: {other:?}")),
        }
    }

    /// Host time is only critical where nothing of what it truly had to wait for was at the device.
    fn critical(&self, truth: &Operation, from: u64, to: u64) -> Result<(), String> {
        let tolerance = self.tolerance.device_ns;
        let mut before = truth.dependency_ordinal;
        while let Some(of) = before.and_then(|of| self.by_ordinal.get(&of)) {
            if of.submitted_ns + tolerance < to && from + tolerance < of.end_ns {
                return Err(format!("it was covered by {} ({:?})", of.ordinal, of.name));
            }
            before = of.dependency_ordinal;
        }
        Ok(())
    }

    /// The script's thread runs whenever it is not said to do something else.
    fn nothing_else(&self, from: u64, to: u64) -> Result<(), String> {
        let other = self.recorded.host.iter().find(|(begin, end, of)| {
            // Of what a module's loading took, only the compiler has a record.
            let its_own = matches!(
                of,
                HostTruth::Work | HostTruth::ApplicationLate | HostTruth::Module
            );
            !its_own && *begin < to && from < *end
        });
        match other {
            Some(other) => Err(format!("the host was at {other:?}")),
            None => Ok(()),
        }
    }
}

/// When a cause of the truth held an operation up: each stage begins where the one before ended.
fn interval(truth: &Operation, wanted: Cause) -> Option<(u64, u64)> {
    let mut at = truth.call_start_ns;
    for cause in Cause::ALL {
        let share = truth.waits.of(cause);
        if cause == wanted && share > 0 {
            return Some((at, at + share));
        }
        at += share;
    }
    None
}
