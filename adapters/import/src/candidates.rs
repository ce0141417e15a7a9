//! Candidate epochs, made of ranges.
//!
//! A range that its importer was asked to take becomes an epoch that is declared when the range
//! begins and current on the range's thread until it ends. Ranges inside of one another are linked.
//! With request ids, all ranges of one request are one epoch.

use std::sync::Arc;

use lineage_core::id::{
    Attribution, HostNanos, LaunchEpoch, ProcessOrdinal, ScopeToken, ThreadKey,
};
use lineage_core::observation::{
    Declared, Event, LinkKind, Linked, Observation, Retired, RetiredAs, Scope,
};
use rustc_hash::FxHashMap;

use crate::entry::Entry;
use crate::names::NameId;

/// How long after its end a range is kept for the next slice: ids rise in the order in which calls
/// are entered, on all threads together, but for a moment.
const SLACK_NS: u64 = 10_000_000;

/// Every epoch of an import is at its first version.
const VERSION: u32 = 1;

#[derive(Debug, Clone)]
struct Candidate {
    epoch: LaunchEpoch,
    parent: Option<LaunchEpoch>,
    tid: u64,
    start: u64,
    end: u64,
    /// When the epoch was declared: with request ids, by an earlier range.
    declared: u64,
    name: Arc<str>,
}

/// When the calls of a slice were made.
#[derive(Debug, Default)]
pub(crate) struct CallTimes {
    /// Of each thread, in order.
    starts: FxHashMap<u64, Vec<u64>>,
    last: u64,
}

impl CallTimes {
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let mut times = Self::default();
        for entry in entries.iter().filter(|entry| entry.is_call()) {
            if let Some(start) = entry.start() {
                times.starts.entry(entry.tid()).or_default().push(start);
                times.last = times.last.max(start);
            }
        }
        times
            .starts
            .values_mut()
            .for_each(|starts| starts.sort_unstable());
        times
    }

    /// When the last was made.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    fn any_in(&self, tid: u64, from: u64, until: u64) -> bool {
        let Some(starts) = self.starts.get(&tid) else {
            return false;
        };
        let first = starts.partition_point(|&start| start < from);
        starts.get(first).is_some_and(|&start| start <= until)
    }

    /// Whether a call of the next slice may lie in a range that ends then.
    fn may_go_on(&self, end: u64) -> bool {
        end.saturating_add(SLACK_NS) >= self.last
    }
}

/// The candidates of one process at a time.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    by_request: FxHashMap<NameId, (LaunchEpoch, u64)>,
    numbers: u64,
    /// Of each thread, the ranges that the last one lies inside of.
    nesting: FxHashMap<u64, Vec<(u64, LaunchEpoch)>>,
    /// Those that may reach into the next slice.
    active: Vec<Candidate>,
}

impl Candidates {
    /// A range, in order of time.
    pub(crate) fn add(
        &mut self,
        range: &Entry,
        text: impl Fn(NameId) -> Arc<str>,
        by_request: bool,
        calls: &CallTimes,
    ) {
        let (Some(start), Some(end), Some(name)) = (range.start(), range.end(), range.name())
        else {
            return;
        };
        let request = range.request().filter(|_| by_request);
        let known = request.and_then(|request| self.by_request.get(&request).copied());
        let (epoch, declared) = match known {
            Some(known) => known,
            None => {
                self.numbers += 1;
                // 2^40 ranges do not fit into any file that could be read.
                let Some(epoch) = LaunchEpoch::from_numbers(self.numbers, VERSION) else {
                    return;
                };
                if let Some(request) = request {
                    self.by_request.insert(request, (epoch, start));
                }
                (epoch, start)
            }
        };
        let around = self.nesting.entry(range.tid()).or_default();
        while around.last().is_some_and(|&(until, _)| until < end) {
            around.pop();
        }
        let parent = around.last().map(|&(_, parent)| parent);
        around.push((end, epoch));
        if !calls.any_in(range.tid(), start, end) && !calls.may_go_on(end) {
            return;
        }
        self.active.push(Candidate {
            epoch,
            parent: parent.filter(|&parent| parent != epoch),
            tid: range.tid(),
            start,
            end,
            declared,
            name: text(request.unwrap_or(name)),
        });
    }

    /// Those that calls of a slice lie in: what is seen of them, to come before the calls and after
    /// them. Others that have ended by then are forgotten: no call is owed one.
    pub(crate) fn around(
        &mut self,
        process: ProcessOrdinal,
        calls: &CallTimes,
    ) -> [Vec<Observation>; 2] {
        let these = self
            .active
            .iter()
            .filter(|of| calls.any_in(of.tid, of.start, of.end));
        // Scopes of a thread are numbered without holes.
        let mut tokens: FxHashMap<u64, u64> = FxHashMap::default();
        let mut these: Vec<(u64, &Candidate)> = these
            .map(|candidate| {
                let token = tokens.entry(candidate.tid).or_default();
                *token += 1;
                (*token, candidate)
            })
            .collect();
        let observed = |event: Event| Observation { process, event };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut declared: FxHashMap<LaunchEpoch, u64> = FxHashMap::default();
        for (_, candidate) in &these {
            let Candidate { epoch, parent, .. } = **candidate;
            let thread = thread(candidate.tid);
            let at = HostNanos(candidate.declared);
            let last = declared.entry(epoch).or_insert_with(|| {
                before.push(observed(
                    Declared {
                        epoch,
                        thread,
                        task: None,
                        at,
                        name: candidate.name.clone(),
                        site: None,
                    }
                    .into(),
                ));
                0
            });
            *last = candidate.end.max(*last);
            if let Some(from) = parent {
                let kind = LinkKind::Fork;
                before.push(observed(
                    Linked {
                        epoch,
                        from,
                        kind,
                        at,
                    }
                    .into(),
                ));
            }
        }
        // A scope is seen when it ends, an inner one before the outer one.
        these.sort_by_key(|&(token, candidate)| (candidate.end, std::cmp::Reverse(token)));
        for (token, candidate) in these {
            before.push(observed(
                Scope {
                    thread: thread(candidate.tid),
                    attribution: Attribution::Epoch(candidate.epoch),
                    token: ScopeToken(token),
                    entered: HostNanos(candidate.start),
                    exited: HostNanos(candidate.end),
                    task: None,
                    boundary: false,
                    pushed: false,
                }
                .into(),
            ));
        }
        let mut ended: Vec<(LaunchEpoch, u64)> = declared.into_iter().collect();
        ended.sort_unstable();
        for (epoch, at) in ended {
            let (how, at) = (RetiredAs::Done, HostNanos(at));
            after.push(observed(Retired { epoch, how, at }.into()));
        }
        self.active
            .retain(|candidate| calls.may_go_on(candidate.end));
        [before, after]
    }
}

/// A recording does not say when a thread's number was used again.
fn thread(tid: u64) -> ThreadKey {
    ThreadKey { tid, generation: 1 }
}
