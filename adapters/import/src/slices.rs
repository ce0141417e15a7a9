//! A recording's observations, in parts that fit into memory.

use std::iter::Peekable;

use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::observation::{
    ApiDomain, DeviceSession, DropSite, Dropped, Event, Observation, OperationsDue,
};
use rustc_hash::FxHashMap;

use crate::candidates::{CallTimes, Candidates};
use crate::entry::{Entry, SESSION};
use crate::error::CollectError;
use crate::given::DeviceDescription;
use crate::recording::Recording;
use crate::settings::EpochsFrom;
use crate::spool::Merged;

/// Ids beyond the wanted number of records for which a place to cut is looked for.
const LOOKED_FOR: usize = 4_096;

/// Records of the scheduler and the like that a slice may have, however few calls it has.
const TIMED_AT_LEAST: usize = 4_096;

/// A part of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Slice {
    /// The process that all of it is of.
    pub process: ProcessOrdinal,
    /// What was seen.
    pub observations: Vec<Observation>,
    /// Records of calls and operations in it.
    pub records: usize,
}

/// The slices of a recording, one process after the other.
pub struct Slices<'a> {
    recording: &'a Recording,
    records: usize,
    calls: Peekable<Merged<'a>>,
    ranges: Peekable<Merged<'a>>,
    timed: Peekable<Merged<'a>>,
    candidates: (ProcessOrdinal, Candidates),
    losses_told: bool,
}

impl std::fmt::Debug for Slices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slices")
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl<'a> Slices<'a> {
    pub(crate) fn new(recording: &'a Recording, records: usize) -> Result<Self, CollectError> {
        Ok(Self {
            recording,
            records,
            calls: recording.calls.iter()?.peekable(),
            ranges: recording.ranges.iter()?.peekable(),
            timed: recording.timed.iter()?.peekable(),
            candidates: (ProcessOrdinal::default(), Candidates::default()),
            losses_told: false,
        })
    }

    /// The entries of the next slice: of one process, cut where no call of the rest lies inside of
    /// one of these.
    fn take_entries(&mut self) -> Result<Vec<Entry>, CollectError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut open = OpenCalls::default();
        let mut ids_beyond = 0;
        while let Some(next) = self.calls.peek() {
            let Ok(next) = next else {
                // The error itself is given to whoever asks.
                self.calls.next().transpose()?;
                continue;
            };
            if let Some(last) = entries.last() {
                if next.process != last.process {
                    break;
                }
                let is_new = next.wire != last.wire || next.wire == 0;
                if entries.len() >= self.records && is_new {
                    ids_beyond += 1;
                    if !open.surround(next) || ids_beyond > LOOKED_FOR {
                        break;
                    }
                }
            }
            if let Some(entry) = self.calls.next().transpose()? {
                if entry.is_call()
                    && self.recording.function(entry.name()).domain == ApiDomain::Runtime
                {
                    open.add(&entry);
                }
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// Takes in the ranges of a process that begin by then.
    fn take_ranges(
        &mut self,
        process: ProcessOrdinal,
        calls: &CallTimes,
    ) -> Result<(), CollectError> {
        if self.candidates.0 != process {
            self.candidates = (process, Candidates::default());
        }
        let by_request = self.recording.settings.epochs_from == EpochsFrom::RequestIds;
        let text = |name| self.recording.text(name).unwrap_or_default();
        while let Some(range) = next_until(&mut self.ranges, process, calls.last())? {
            self.candidates.1.add(&range, text, by_request, calls);
        }
        Ok(())
    }

    /// What the scheduler did in a process until then, and other things that have a time and no id.
    /// Where it is too much for one slice, the next goes on.
    fn take_timed(
        &mut self,
        process: ProcessOrdinal,
        until: u64,
        observations: &mut Vec<Observation>,
    ) -> Result<(), CollectError> {
        for _ in 0..self.records.max(TIMED_AT_LEAST) {
            let Some(entry) = next_until(&mut self.timed, process, until)? else {
                break;
            };
            let name = entry.name().and_then(|name| self.recording.text(name));
            let event = entry.event(name);
            observations.extend(event.map(|event| Observation { process, event }));
        }
        Ok(())
    }

    fn slice(
        &mut self,
        entries: &[Entry],
        process: ProcessOrdinal,
        last: bool,
    ) -> Result<Slice, CollectError> {
        let observed = |event: Event| Observation { process, event };
        let calls = || entries.iter().filter(|entry| entry.is_call());
        let until = calls()
            .filter_map(|call| call.start().max(call.end()))
            .max();
        let first = entries.iter().filter_map(Entry::start).min();

        let at = HostNanos(first.unwrap_or(0));
        let recorder = self.recording.holdings.recorder;
        let imported = DeviceSession::Imported {
            session: SESSION,
            recorder,
            at,
        };
        let mut observations = vec![observed(imported.into())];
        if let Some(extent) = self.recording.extents.get(process.0 as usize) {
            observations.push(observed((*extent).into()));
        }
        let devices = self.recording.holdings.devices.iter();
        let own = devices.filter(|of| of.process.is_none_or(|owner| owner == process));
        let described = own.map(DeviceDescription::described);
        let said = described.filter(|of| of.copy_engines.is_some() || of.multiprocessors.is_some());
        observations.extend(said.map(|of| observed(of.into())));
        let reach = if last { u64::MAX } else { until.unwrap_or(0) };
        self.take_timed(process, reach, &mut observations)?;
        let times = CallTimes::of(entries);
        self.take_ranges(process, &times)?;
        let [before, after] = self.candidates.1.around(process, &times);
        observations.extend(before);
        for entry in entries {
            let name = entry.name().and_then(|name| self.recording.text(name));
            let event = if entry.is_call() {
                let function = self.recording.function(entry.name());
                let captures = self.recording.captures.get(process.0 as usize);
                let due = captures.map_or(function.due, |captures| captures.due(entry, function));
                // Without an id its operation cannot be found: it is not lost for that.
                let due = match due {
                    OperationsDue::One | OperationsDue::Many if entry.wire == 0 => {
                        OperationsDue::Any
                    }
                    due => due,
                };
                Some(entry.call_event(function, due, name))
            } else {
                entry.event(name)
            };
            observations.extend(event.map(observed));
        }
        observations.extend(after);
        let lost = self.recording.holdings.lost_records();
        if lost > 0 && !std::mem::replace(&mut self.losses_told, true) {
            let dropped = Dropped {
                site: DropSite::Undecodable,
                count: lost,
                at,
            };
            observations.push(observed(dropped.into()));
        }
        let ended = entries
            .iter()
            .filter_map(|entry| entry.end().max(entry.start()));
        let ended = DeviceSession::Ended {
            session: SESSION,
            at: HostNanos(ended.max().unwrap_or(at.0)),
        };
        observations.push(observed(ended.into()));
        Ok(Slice {
            process,
            observations,
            records: entries.len(),
        })
    }

    fn next_slice(&mut self) -> Result<Option<Slice>, CollectError> {
        // Processes of which nothing but timed entries is known come first, in their turn.
        let next_call = next_process(&mut self.calls)?;
        let next_timed = next_process(&mut self.timed)?;
        match (next_call, next_timed) {
            (None, None) => {
                let tells_losses = self.recording.holdings.lost_records() > 0 && !self.losses_told;
                if !tells_losses {
                    return Ok(None);
                }
                self.slice(&[], ProcessOrdinal::default(), true).map(Some)
            }
            (call, Some(timed)) if call.is_none_or(|call| timed < call) => {
                self.slice(&[], ProcessOrdinal(timed), true).map(Some)
            }
            _ => {
                let entries = self.take_entries()?;
                let Some(first) = entries.first() else {
                    return Ok(None);
                };
                let process = first.process();
                let last = match self.calls.peek() {
                    Some(Ok(next)) => next.process() != process,
                    _ => true,
                };
                self.slice(&entries, process, last).map(Some)
            }
        }
    }
}

/// The next entry of a process that begins by then. Those of processes before it are passed over.
fn next_until(
    entries: &mut Peekable<Merged<'_>>,
    process: ProcessOrdinal,
    until: u64,
) -> Result<Option<Entry>, CollectError> {
    loop {
        match entries.peek() {
            Some(Ok(next)) if next.process() < process => {}
            Some(Ok(next)) if next.process() > process || next.start > until => return Ok(None),
            Some(_) => return entries.next().transpose(),
            None => return Ok(None),
        }
        entries.next();
    }
}

/// The process of the next entry.
fn next_process(entries: &mut Peekable<Merged<'_>>) -> Result<Option<u32>, CollectError> {
    match entries.peek() {
        Some(Ok(entry)) => Ok(Some(entry.process)),
        // The error itself is given.
        Some(Err(_)) => Ok(entries.next().transpose()?.map(|entry| entry.process)),
        None => Ok(None),
    }
}

impl Iterator for Slices<'_> {
    type Item = Result<Slice, CollectError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_slice().transpose()
    }
}

/// The last runtime call of each thread.
#[derive(Debug, Default)]
struct OpenCalls {
    until: FxHashMap<u64, u64>,
}

impl OpenCalls {
    fn add(&mut self, call: &Entry) {
        let until = self.until.entry(call.tid()).or_default();
        *until = call.end().unwrap_or(0).max(*until);
    }

    /// Whether a call of the next id begins inside of one of these.
    fn surround(&self, next: &Entry) -> bool {
        let Some(start) = next.start() else {
            return false;
        };
        next.is_call()
            && self
                .until
                .get(&next.tid())
                .is_some_and(|&until| start < until)
    }
}
