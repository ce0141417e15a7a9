//! One process: everything derived from its observations.

use std::collections::BTreeMap;

use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::observation::{DropSite, OperationsDue};

use super::bindings::{CallBinding, bind};
use super::calls::{Calls, LogicalCall};
use super::epochs::Epochs;
use super::gather::Gathered;
use super::graphs::Graphs;
use super::operations::{
    Externals, JoinedOperation, OperationJoin, Operations, Window, place_externals,
};
use super::sessions::Sessions;
use super::threads::Threads;
use crate::options::Options;

/// Everything derived from one process.
pub(crate) struct Process<'a> {
    pub(crate) ordinal: ProcessOrdinal,
    pub(crate) gathered: Gathered<'a>,
    pub(crate) sessions: Sessions,
    pub(crate) threads: Threads<'a>,
    pub(crate) epochs: Epochs<'a>,
    pub(crate) calls: Calls<'a>,
    pub(crate) externals: Externals<'a>,
    pub(crate) operations: Operations<'a>,
    pub(crate) graphs: Graphs<'a>,
    /// Of each call, its operations, in order of their starts.
    pub(crate) operations_of: Vec<Vec<usize>>,
    /// Of each call, whether an operation has its id and may be that of another call.
    has_ambiguous: Vec<bool>,
    /// Of each call, its binding.
    pub(crate) bindings: Vec<CallBinding<'a>>,
    windows: BTreeMap<u32, Window>,
}

/// Why an operation has no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orphan {
    /// It was asked for before the recording began.
    BeforeRecording,
    /// It was asked for after the last call that was recorded.
    AfterRecording,
    /// No call of its process was recorded at all.
    NotCollected,
    /// Its call's record may still come.
    Pending,
    /// Its call's record is lost.
    Lost,
}

/// Why a call has no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Childless {
    /// None is due: it asked for no work, or it was captured.
    NoneDue,
    /// There may be none: as of an empty copy, or a call that may have been captured.
    MaybeNone,
    /// It failed.
    Failed,
    /// A capture was open, and it may have been captured.
    MaybeCaptured,
    /// The recording has no operations at all: none were collected.
    NotCollected,
    /// It was made when the recording of operations was over.
    AfterRecording,
    /// Its operation may still come.
    Pending,
    /// Its operation is lost.
    Lost,
}

impl<'a> Process<'a> {
    pub(crate) fn new(ordinal: ProcessOrdinal, gathered: Gathered<'a>, options: &Options) -> Self {
        let sessions = Sessions::new(&gathered);
        let threads = Threads::new(&gathered);
        let epochs = Epochs::new(&gathered);
        let mut calls = Calls::new(&gathered, &sessions);
        let externals = place_externals(&gathered, &mut calls);
        let operations = Operations::new(&gathered, &calls, options.clock_error_ns);

        let mut operations_of = vec![Vec::new(); calls.calls.len()];
        let mut has_ambiguous = vec![false; calls.calls.len()];
        for (number, operation) in operations.operations.iter().enumerate() {
            if let Some(call) = operation.join.call() {
                operations_of[call].push(number);
            }
            if matches!(operation.join, OperationJoin::Ambiguous { .. }) {
                let what = operation.seen.what;
                for key in calls.with_wire_id(what.session, what.correlation) {
                    has_ambiguous[key.call] = true;
                }
            }
        }
        for of_call in &mut operations_of {
            of_call.sort_by_key(|&number| operations.operations[number].seen.what.start);
        }
        let graphs = Graphs::new(&gathered, &sessions, &calls, &operations, &operations_of);
        let mut windows = windows(&calls, &operations);
        for seen in &gathered.extents {
            windows
                .entry(seen.what.session)
                .or_default()
                .widen(seen.what);
        }
        let evicted = options.evicted_observations > 0;
        let bindings = bind(&gathered, &calls, &threads, &epochs, &sessions, evicted);
        Self {
            ordinal,
            gathered,
            sessions,
            threads,
            epochs,
            calls,
            externals,
            operations,
            graphs,
            operations_of,
            has_ambiguous,
            bindings,
            windows,
        }
    }

    /// All calls with their numbers and bindings.
    pub(crate) fn calls(
        &self,
    ) -> impl Iterator<Item = (usize, &LogicalCall<'a>, &CallBinding<'a>)> {
        let calls = self.calls.calls.iter().zip(&self.bindings);
        calls
            .enumerate()
            .map(|(number, (call, binding))| (number, call, binding))
    }

    /// Why an operation has no call; `None` if it has one, or needs none.
    pub(crate) fn orphan(&self, operation: &JoinedOperation<'_>) -> Option<Orphan> {
        if operation.join != OperationJoin::NoCall {
            return None;
        }
        let what = operation.seen.what;
        let window = self.windows.get(&what.session);
        Some(if window.is_some_and(|window| window.is_before(what)) {
            Orphan::BeforeRecording
        } else if !self.sessions.has_ended(what.session) {
            Orphan::Pending
        } else if window.is_none_or(Window::is_without_calls) {
            Orphan::NotCollected
        } else if window.is_some_and(|window| window.is_beyond(what)) {
            Orphan::AfterRecording
        } else {
            Orphan::Lost
        })
    }

    /// Why a call has no operation; `None` if it has.
    pub(crate) fn childless(&self, number: usize) -> Option<Childless> {
        let call = &self.calls.calls[number];
        if !self.operations_of[number].is_empty() {
            return None;
        }
        let window = self.windows.get(&call.session);
        let after = window.is_some_and(|window| window.is_after(call));
        // That no operation was recorded at all is known when the session is over.
        let ended = self.sessions.has_ended(call.session);
        let settled =
            self.bindings[number].settled && (ended || window.is_some_and(Window::has_operations));
        Some(match call.due() {
            OperationsDue::None => Childless::NoneDue,
            _ if call.failure().is_some() => Childless::Failed,
            // One of the operations of its id may be its own.
            _ if self.has_ambiguous[number] => Childless::MaybeNone,
            OperationsDue::MaybeCaptured => Childless::MaybeCaptured,
            OperationsDue::One | OperationsDue::Many if self.graphs.may_be_captured(call) => {
                Childless::MaybeCaptured
            }
            _ if self.graphs.may_launch_nothing(number) => Childless::MaybeNone,
            OperationsDue::One | OperationsDue::Many
                if window.is_some_and(Window::is_without_operations) =>
            {
                Childless::NotCollected
            }
            OperationsDue::One | OperationsDue::Many => match (settled, after) {
                (false, _) => Childless::Pending,
                (true, true) => Childless::AfterRecording,
                (true, false) => Childless::Lost,
            },
            _ => Childless::MaybeNone,
        })
    }

    /// Whether what the application's threads had recorded before this place of the stream has
    /// all come: rings are read one after the other, so a single pass may cut across a handoff.
    pub(crate) fn host_has_come(&self, place: usize) -> bool {
        let later = self
            .gathered
            .flushes
            .last()
            .is_some_and(|flush| place < flush.place);
        later || self.sessions.all_ended() || !self.sessions.any()
    }

    /// Whether the application's threads recorded anything: an import may have CUPTI's records
    /// only.
    pub(crate) fn has_host_records(&self) -> bool {
        let gathered = &self.gathered;
        !(gathered.threads_started.is_empty()
            && gathered.declared.is_empty()
            && gathered.scopes.is_empty()
            && gathered.calls.is_empty())
    }

    /// Whether records of the application's threads from this time on may be missing, or, without
    /// one, from any time.
    pub(crate) fn host_records_missing_since(
        &self,
        since: Option<HostNanos>,
        options: &Options,
    ) -> bool {
        let mut gaps = self.gathered.gaps.iter().map(|seen| seen.what);
        options.evicted_observations > 0
            || gaps.any(|gap| {
                let before = since.zip(gap.not_after).is_some_and(|(at, to)| to < at);
                gap.count > 0 && !before
            })
    }

    /// Whether a callback panicked, after which calls are not seen any more.
    pub(crate) fn calls_are_unseen(&self) -> bool {
        let mut drops = self.gathered.drops.iter();
        drops.any(|seen| seen.what.site == DropSite::CallbackPanic)
    }

    /// Whether records of the application's threads may be missing, so that nothing follows from
    /// the absence of one.
    pub(crate) fn host_records_missing(&self, options: &Options) -> bool {
        options.evicted_observations > 0 || !self.gathered.gaps.is_empty()
    }
}

/// The window of each session. Calls and operations both lie in order of session.
fn windows(calls: &Calls<'_>, operations: &Operations<'_>) -> BTreeMap<u32, Window> {
    let mut of_sessions: BTreeMap<u32, (&[LogicalCall<'_>], &[JoinedOperation<'_>])> =
        BTreeMap::new();
    for of_session in calls.calls.chunk_by(|a, b| a.session == b.session) {
        of_sessions.entry(of_session[0].session).or_default().0 = of_session;
    }
    let session = |operation: &JoinedOperation<'_>| operation.seen.what.session;
    for of_session in operations
        .operations
        .chunk_by(|a, b| session(a) == session(b))
    {
        of_sessions.entry(session(&of_session[0])).or_default().1 = of_session;
    }
    let window = |(of_calls, of_operations)| Window::new(of_calls, of_operations, calls);
    of_sessions
        .into_iter()
        .map(|(session, both)| (session, window(both)))
        .collect()
}
