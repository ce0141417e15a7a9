//! When devices were busy, and what the host did while they were idle.

use std::collections::BTreeMap;

use super::samples::{Samples, Summary};
use crate::id::{HostNanos, ProcessOrdinal};
use crate::interval::{Interval, common, length_ns, union};
use crate::observation::{Event, Observation};
use crate::row::Row;

/// What the host did while a device was idle, in nanoseconds of idle time. Each moment counts once,
/// for the first that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IdleWhile {
    /// A thread was inside a call of CUDA's that was recorded.
    pub in_call_ns: u64,
    /// A thread was inside a scope, between calls: the application's own work for some epoch.
    pub in_scope_ns: u64,
    /// Nothing was recorded: no work was there, or threads did what nobody looked at.
    pub unknown_ns: u64,
}

impl IdleWhile {
    /// All of it.
    pub const fn total_ns(&self) -> u64 {
        self.in_call_ns + self.in_scope_ns + self.unknown_ns
    }
}

/// One device, from the start of its first operation to the end of its last.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DeviceFigures {
    /// The process that used it; what others ran on it is not known.
    pub process: ProcessOrdinal,
    /// Device ordinal.
    pub device: u32,
    /// Operations with both times.
    pub operations: u64,
    /// How long that was.
    pub span_ns: u64,
    /// How long at least one operation ran.
    pub busy_ns: u64,
    /// Gaps in which none did.
    pub gaps: Summary,
    /// What the host did in them.
    pub idle: IdleWhile,
}

impl DeviceFigures {
    /// Idle time in which the host was at work on what the device would run next: in a call or in a
    /// scope.
    pub const fn exposed_host_ns(&self) -> u64 {
        self.idle.in_call_ns + self.idle.in_scope_ns
    }

    /// How many times faster the same operations would be done if no idle time were exposed host
    /// time: an upper bound, since what removes one gap can show another. `None` without any.
    pub fn best_speedup(&self) -> Option<f64> {
        let left = self.span_ns.checked_sub(self.exposed_host_ns())?;
        (left > 0).then(|| self.span_ns as f64 / left as f64)
    }
}

/// Collects what devices and hosts did.
#[derive(Debug)]
pub struct Devices {
    limit: usize,
    kept: usize,
    not_kept: u64,
    busy: BTreeMap<(ProcessOrdinal, u32), Vec<Interval>>,
    calls: BTreeMap<ProcessOrdinal, Vec<Interval>>,
    scopes: BTreeMap<ProcessOrdinal, Vec<Interval>>,
}

impl Default for Devices {
    /// Keeps 16,777,216 intervals, 16 bytes each.
    fn default() -> Self {
        Self::new(1 << 24)
    }
}

impl Devices {
    /// Keeps at most so many intervals; beyond it they are counted only.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: 0,
            not_kept: 0,
            busy: BTreeMap::new(),
            calls: BTreeMap::new(),
            scopes: BTreeMap::new(),
        }
    }

    /// Intervals that could not be kept.
    pub const fn not_kept(&self) -> u64 {
        self.not_kept
    }

    fn interval(&mut self, from: Option<HostNanos>, to: Option<HostNanos>) -> Option<Interval> {
        let (from, to) = from.zip(to)?;
        // What ends before it begins is a fault that rows tell.
        if to < from {
            return None;
        }
        if self.kept == self.limit {
            self.not_kept += 1;
            return None;
        }
        self.kept += 1;
        Some((from, to))
    }

    /// Takes what was observed of the host.
    pub fn observe(&mut self, observation: &Observation) {
        let process = observation.process;
        match &observation.event {
            Event::Call(call) => {
                if let Some(interval) = self.interval(Some(call.entered), call.exited) {
                    self.calls.entry(process).or_default().push(interval);
                }
            }
            Event::Api(api) => {
                if let Some(interval) = self.interval(api.start, api.end) {
                    self.calls.entry(process).or_default().push(interval);
                }
            }
            Event::Scope(scope) => {
                if let Some(interval) = self.interval(Some(scope.entered), Some(scope.exited)) {
                    self.scopes.entry(process).or_default().push(interval);
                }
            }
            _ => {}
        }
    }

    /// Takes a row. One that takes an earlier one's place may be taken beside it.
    pub fn row(&mut self, row: &Row) {
        let Some(operation) = &row.operation else {
            return;
        };
        if let Some(interval) = self.interval(operation.start, operation.end) {
            let device = (row.process, operation.device);
            self.busy.entry(device).or_default().push(interval);
        }
    }

    /// The figures of each device.
    pub fn figures(&self) -> Vec<DeviceFigures> {
        let mut of_process: BTreeMap<ProcessOrdinal, [Vec<Interval>; 2]> = BTreeMap::new();
        for &(process, _) in self.busy.keys() {
            of_process.entry(process).or_insert_with(|| {
                [&self.calls, &self.scopes]
                    .map(|intervals| union(intervals.get(&process).cloned().unwrap_or_default(), 0))
            });
        }
        let mut figures = Vec::new();
        for (&(process, device), operations) in &self.busy {
            let busy = union(operations.clone(), 0);
            let (Some(&(from, _)), Some(&(_, to))) = (busy.first(), busy.last()) else {
                continue;
            };
            let gaps: Vec<Interval> = busy.windows(2).map(|pair| (pair[0].1, pair[1].0)).collect();
            let mut lengths = Samples::new(gaps.len());
            gaps.iter().for_each(|gap| lengths.add(gap.1.0 - gap.0.0));
            let idle_ns = length_ns(&gaps);
            let [calls, scopes] = &of_process[&process];
            let in_calls = common(&gaps, calls);
            let in_call_ns = length_ns(&in_calls);
            // What lies in both counts for the call.
            let in_scope_ns =
                length_ns(&common(&gaps, scopes)) - length_ns(&common(&in_calls, scopes));
            figures.push(DeviceFigures {
                process,
                device,
                operations: operations.len() as u64,
                span_ns: to.0 - from.0,
                busy_ns: length_ns(&busy),
                gaps: lengths.summary(),
                idle: IdleWhile {
                    in_call_ns,
                    in_scope_ns,
                    unknown_ns: idle_ns - in_call_ns - in_scope_ns,
                },
            });
        }
        figures
    }
}
