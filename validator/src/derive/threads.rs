//! What is known of each thread: its life, its scopes, its gaps, its first lineage event.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use lineage_core::id::{HostNanos, ScopeToken, ThreadKey};
use lineage_core::observation::{Gap, Scope};

use super::gather::Gathered;

/// All threads of a process, sorted by system id and generation.
pub(crate) struct Threads<'a> {
    threads: Vec<Thread<'a>>,
}

/// One thread.
#[derive(Debug)]
pub(crate) struct Thread<'a> {
    pub(crate) key: ThreadKey,
    pub(crate) name: Option<Arc<str>>,
    started: Option<HostNanos>,
    pub(crate) ended: Option<HostNanos>,
    /// Sorted by token: the order of entry.
    pub(crate) scopes: Vec<&'a Scope>,
    pub(crate) gaps: Vec<&'a Gap>,
    first_call: Option<HostNanos>,
    first_lineage: Option<HostNanos>,
    /// Whether the interface itself reported a misuse here.
    pub(crate) misused: bool,
}

impl<'a> Threads<'a> {
    pub(crate) fn new(gathered: &Gathered<'a>) -> Self {
        let mut keys: Vec<ThreadKey> = Vec::new();
        keys.extend(gathered.threads_started.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.threads_ended.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.scopes.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.calls.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.gaps.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.declared.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.stepped.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.marked.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.sent.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.received.iter().map(|seen| seen.what.thread));
        keys.extend(gathered.misuses.iter().map(|seen| seen.what.thread));
        keys.sort_unstable();
        keys.dedup();
        let new = |key| Thread {
            key,
            name: None,
            started: None,
            ended: None,
            scopes: Vec::new(),
            gaps: Vec::new(),
            first_call: None,
            first_lineage: None,
            misused: false,
        };
        let mut threads = Self {
            threads: keys.into_iter().map(new).collect(),
        };
        threads.fill(gathered);
        threads
    }

    fn fill(&mut self, gathered: &Gathered<'a>) {
        let earliest = |slot: &mut Option<HostNanos>, at: HostNanos| {
            *slot = Some(slot.map_or(at, |known| known.min(at)));
        };
        for seen in &gathered.threads_started {
            if let Some(thread) = self.get_mut(seen.what.thread) {
                thread.name.clone_from(&seen.what.name);
                earliest(&mut thread.started, seen.what.at);
            }
        }
        for seen in &gathered.threads_ended {
            if let Some(thread) = self.get_mut(seen.what.thread) {
                thread.ended = Some(seen.what.at);
            }
        }
        for seen in &gathered.calls {
            if let Some(thread) = self.get_mut(seen.what.thread) {
                earliest(&mut thread.first_call, seen.what.entered);
            }
        }
        for seen in &gathered.gaps {
            if let Some(thread) = self.get_mut(seen.what.thread) {
                thread.gaps.push(seen.what);
            }
        }
        for seen in &gathered.scopes {
            if let Some(thread) = self.get_mut(seen.what.thread) {
                thread.scopes.push(seen.what);
                earliest(&mut thread.first_lineage, seen.what.entered);
            }
        }
        let mut lineage: Vec<(ThreadKey, HostNanos)> = Vec::new();
        lineage.extend(
            gathered
                .declared
                .iter()
                .map(|seen| (seen.what.thread, seen.what.at)),
        );
        lineage.extend(
            gathered
                .stepped
                .iter()
                .map(|seen| (seen.what.thread, seen.what.at)),
        );
        lineage.extend(
            gathered
                .marked
                .iter()
                .map(|seen| (seen.what.thread, seen.what.at)),
        );
        lineage.extend(
            gathered
                .sent
                .iter()
                .map(|seen| (seen.what.thread, seen.what.at)),
        );
        lineage.extend(
            gathered
                .received
                .iter()
                .map(|seen| (seen.what.thread, seen.what.at)),
        );
        lineage.extend(
            gathered
                .misuses
                .iter()
                .map(|seen| (seen.what.thread, seen.what.at)),
        );
        for (key, at) in lineage {
            if let Some(thread) = self.get_mut(key) {
                earliest(&mut thread.first_lineage, at);
            }
        }
        for seen in &gathered.misuses {
            if let Some(thread) = self.get_mut(seen.what.thread) {
                thread.misused = true;
            }
        }
        for thread in &mut self.threads {
            thread
                .scopes
                .sort_by_key(|scope| (scope.token, scope.entered));
            thread
                .gaps
                .sort_by_key(|gap| gap.not_after.unwrap_or(HostNanos(u64::MAX)));
            // A thread is first seen at its first event. If that was no call, it was lineage's.
            if let (Some(started), Some(first_call)) = (thread.started, thread.first_call)
                && started < first_call
            {
                earliest(&mut thread.first_lineage, started);
            }
        }
    }

    fn get_mut(&mut self, key: ThreadKey) -> Option<&mut Thread<'a>> {
        let at = self
            .threads
            .binary_search_by_key(&key, |thread| thread.key)
            .ok()?;
        self.threads.get_mut(at)
    }

    pub(crate) fn get(&self, key: ThreadKey) -> Option<&Thread<'a>> {
        let at = self
            .threads
            .binary_search_by_key(&key, |thread| thread.key)
            .ok()?;
        self.threads.get(at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Thread<'a>> {
        self.threads.iter()
    }

    /// The thread that bore a system id at a time.
    pub(crate) fn bearing(&self, tid: u64, at: HostNanos) -> Option<&Thread<'a>> {
        let from = self.threads.partition_point(|thread| thread.key.tid < tid);
        let mut bearers = self.threads[from..]
            .iter()
            .take_while(|thread| thread.key.tid == tid);
        // A thread lives before its first event; its life begins where its forerunner's ends.
        bearers.find(|thread| thread.ended.is_none_or(|ended| at <= ended))
    }
}

impl<'a> Thread<'a> {
    /// Whether lineage was in use on the thread by then.
    pub(crate) fn has_lineage_by(&self, at: HostNanos) -> bool {
        self.first_lineage.is_some_and(|first| first <= at)
    }

    /// Whether a record of before then may have been lost.
    pub(crate) fn lost_records_before(&self, at: HostNanos) -> bool {
        let mut gaps = self.gaps.iter();
        gaps.any(|gap| gap.not_before.is_none_or(|not_before| not_before < at))
    }

    /// Whether a record of between `from` and `to` may have been lost.
    pub(crate) fn gap_within(&self, from: HostNanos, to: HostNanos) -> bool {
        // The gaps of a thread follow one another.
        let end = |gap: &&Gap| gap.not_after.unwrap_or(HostNanos(u64::MAX));
        let first = self.gaps.partition_point(|gap| end(gap) < from);
        let gap = self.gaps.get(first);
        gap.is_some_and(|gap| gap.not_before.is_none_or(|not_before| not_before <= to))
    }

    /// The scope that was current during each of these intervals; `None` where there was none, or
    /// where that cannot be said because a record is missing.
    pub(crate) fn scopes_around(
        &self,
        intervals: &[(HostNanos, HostNanos)],
    ) -> Vec<Option<&'a Scope>> {
        let mut by_entry = self.scopes.clone();
        by_entry.sort_by_key(|scope| scope.entered);
        let mut order: Vec<usize> = (0..intervals.len()).collect();
        order.sort_by_key(|&interval| intervals[interval].0);

        let holes = self.holes();
        let mut found = vec![None; intervals.len()];
        let mut coming = by_entry.into_iter().peekable();
        // Open scopes by token; and by their ends, to take them out again.
        let mut open: BTreeMap<ScopeToken, &'a Scope> = BTreeMap::new();
        let mut ends: BinaryHeap<Reverse<(HostNanos, ScopeToken)>> = BinaryHeap::new();
        for interval in order {
            let (from, to) = intervals[interval];
            while let Some(scope) = coming.next_if(|scope| scope.entered <= from) {
                open.insert(scope.token, scope);
                ends.push(Reverse((scope.exited, scope.token)));
            }
            while let Some(&Reverse((exited, token))) = ends.peek() {
                if exited > from {
                    break;
                }
                ends.pop();
                open.remove(&token);
            }
            let Some((_, &scope)) = open.last_key_value() else {
                continue;
            };
            let hole = holes.partition_point(|hole| hole.after < scope.token);
            let hidden = holes
                .get(hole)
                .is_some_and(|hole| hole.entered_from <= from);
            let whole = to <= scope.exited && !self.gap_within(scope.entered, scope.exited);
            if whole && !hidden {
                found[interval] = Some(scope);
            }
        }
        found
    }

    /// When the thread began to record its scopes.
    fn launching_since(&self) -> Option<HostNanos> {
        let scopes = self.scopes.iter().map(|scope| scope.entered);
        scopes.chain(self.first_call).min()
    }

    /// Tokens without a record: scopes are numbered without holes in order of entry, and each is
    /// recorded at its end. Scopes that ended before the thread launched have no records.
    fn holes(&self) -> Vec<Hole> {
        let Some(since) = self.launching_since() else {
            return Vec::new();
        };
        let neighbours = self.scopes.windows(2).filter_map(|pair| {
            let [before, after] = pair else { return None };
            let missing = after
                .token
                .0
                .saturating_sub(before.token.0)
                .saturating_sub(1);
            (missing > 0 && after.entered > since).then_some(Hole {
                after: before.token,
                entered_from: before.entered,
                missing,
            })
        });
        neighbours.collect()
    }

    /// Scopes that were entered on this thread and never ended, although it did.
    pub(crate) fn scopes_without_end(&self) -> u64 {
        // Where lineage itself saw a leak, or records were lost, that says it.
        if self.ended.is_none() || !self.gaps.is_empty() || self.misused {
            return 0;
        }
        self.holes()
            .iter()
            .fold(0, |sum, hole| sum.saturating_add(hole.missing))
    }
}

/// Scopes that were entered and have no record.
struct Hole {
    /// The greatest token below theirs that has a record.
    after: ScopeToken,
    /// They were entered after this.
    entered_from: HostNanos,
    missing: u64,
}
