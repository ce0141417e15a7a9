//! Which call asked for which operation.

use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{Extent, ExternalRecord, Operation};

use super::calls::{Calls, LogicalCall};
use super::gather::{Gathered, Seen};
use super::unwrapping::near;

/// An operation, and what asked for it.
#[derive(Debug)]
pub(crate) struct JoinedOperation<'a> {
    pub(crate) seen: Seen<'a, Operation>,
    pub(crate) join: OperationJoin,
}

/// What asked for an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OperationJoin {
    /// This call.
    Call(usize),
    /// This call by its id, but the operation began before it.
    TooEarly(usize),
    /// One of several calls, or none: they have its id, and their times do not decide it.
    Ambiguous {
        /// One of them.
        like: usize,
        /// How many they are.
        calls: usize,
    },
    /// A call that has no record.
    NoCall,
    /// No call: it was launched by the device or by the driver for itself.
    Uncorrelated,
}

impl OperationJoin {
    /// The call, where there is one.
    pub(crate) const fn call(&self) -> Option<usize> {
        match self {
            Self::Call(call) | Self::TooEarly(call) => Some(*call),
            _ => None,
        }
    }
}

/// All operations of a process.
#[derive(Debug, Default)]
pub(crate) struct Operations<'a> {
    /// In order of session, device, stream and start.
    pub(crate) operations: Vec<JoinedOperation<'a>>,
    /// Records that were there twice.
    pub(crate) duplicates: u64,
}

type Identity = (
    u32,
    CorrelationId,
    Option<u64>,
    Option<HostNanos>,
    Option<HostNanos>,
    [u32; 3],
);

/// What tells one operation from another: the same with the same times is the same record twice.
pub(crate) fn identity(operation: &Operation) -> Identity {
    (
        operation.session,
        operation.correlation,
        operation.graph_node,
        operation.start,
        operation.end,
        [operation.device, operation.context, operation.stream],
    )
}

impl<'a> Operations<'a> {
    pub(crate) fn new(gathered: &Gathered<'a>, calls: &Calls<'a>, clock_error_ns: u64) -> Self {
        let mut seen = gathered.operations.clone();
        seen.sort_by_key(|seen| identity(seen.what));
        let all = seen.len();
        seen.dedup_by(|a, b| a.what == b.what);
        let duplicates = (all - seen.len()) as u64;
        let join = |seen: Seen<'a, Operation>| JoinedOperation {
            seen,
            join: join(seen.what, calls, clock_error_ns),
        };
        Self {
            operations: seen.into_iter().map(join).collect(),
            duplicates,
        }
    }
}

fn join(operation: &Operation, calls: &Calls<'_>, clock_error_ns: u64) -> OperationJoin {
    if operation.correlation == CorrelationId(0) {
        return OperationJoin::Uncorrelated;
    }
    let candidates = calls.with_wire_id(operation.session, operation.correlation);
    let Some(first) = candidates.first() else {
        return OperationJoin::NoCall;
    };
    let ambiguous = OperationJoin::Ambiguous {
        like: first.call,
        calls: candidates.len(),
    };
    let Some(start) = operation.start else {
        // Nothing tells several calls apart.
        return match candidates {
            [only] => OperationJoin::Call(only.call),
            _ => ambiguous,
        };
    };
    let by_then = HostNanos(start.0.saturating_add(clock_error_ns));
    let called = candidates.partition_point(|key| key.start.is_none_or(|called| called <= by_then));
    match (&candidates[..called], candidates) {
        ([.., twin, latest], _) if twin.id == latest.id => ambiguous,
        ([.., latest], _) => OperationJoin::Call(latest.call),
        ([], [only]) => OperationJoin::TooEarly(only.call),
        ([], _) => ambiguous,
    }
}

/// What became of a process's external records.
#[derive(Debug, Default)]
pub(crate) struct Externals<'a> {
    /// Of another tool's kind: none of our business.
    pub(crate) foreign_kind: u64,
    /// Their id is that of several calls, or of none.
    pub(crate) unplaced: Vec<&'a ExternalRecord>,
}

/// Gives each external record to the call it was made for.
pub(crate) fn place_externals<'a>(gathered: &Gathered<'a>, calls: &mut Calls<'a>) -> Externals<'a> {
    let mut externals = Externals::default();
    for seen in &gathered.externals {
        let external = seen.what;
        if !external.own_kind {
            externals.foreign_kind += 1;
            continue;
        }
        let candidates = calls.with_wire_id(external.session, external.correlation);
        let call = match (candidates, external.beside) {
            ([only], _) => Some(only.call),
            (several, Some(beside)) => {
                // The record beside it is the call's own or lies inside of it.
                let begun =
                    several.partition_point(|key| key.start.is_none_or(|start| start <= beside));
                let is_beside = |call: usize| {
                    let mut records = calls.calls[call].apis.iter();
                    records.any(|api| api.what.start == Some(beside))
                };
                let nearest = several[..begun].iter().rev().take(4);
                nearest.map(|key| key.call).find(|&call| is_beside(call))
            }
            _ => None,
        };
        match call {
            Some(call) => calls.calls[call].externals.push(external),
            None => externals.unplaced.push(external),
        }
    }
    externals
}

/// Up to where the calls and the operations of a session reach, in unwrapped ids: what lies
/// beyond is the edge of the recording, not a loss.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    smallest_call: Option<i128>,
    largest_call: Option<i128>,
    largest_operation: Option<i128>,
    /// The recording as a whole is known to have no operation.
    without_operations: bool,
    /// Starts of calls, with their ids.
    by_start: Vec<(HostNanos, u64)>,
}

impl Window {
    /// The window of one session, of whose calls and operations these are all.
    pub(crate) fn new(
        calls: &[LogicalCall<'_>],
        operations: &[JoinedOperation<'_>],
        all: &Calls<'_>,
    ) -> Self {
        let ids = calls.iter().filter_map(|call| call.ids.first().copied());
        let last = calls.iter().filter_map(|call| call.ids.last().copied());
        let by_start = calls
            .iter()
            .filter_map(|call| Some((call.start?, *call.ids.first()?)));
        let mut window = Self {
            smallest_call: ids.min().map(i128::from),
            largest_call: last.max().map(i128::from),
            largest_operation: None,
            without_operations: false,
            by_start: by_start.collect(),
        };
        window.by_start.sort_unstable();
        let ids = operations
            .iter()
            .filter_map(|operation| match &operation.join {
                OperationJoin::Uncorrelated => None,
                join => match join.call() {
                    Some(call) => all.calls[call].ids.last().map(|&id| i128::from(id)),
                    None => Some(window.place(operation.seen.what)),
                },
            });
        window.largest_operation = ids.max();
        window
    }

    /// As wide as the whole recording of which these are a part.
    pub(crate) fn widen(&mut self, extent: &Extent) {
        let known = self.smallest_call.or(self.largest_operation);
        let place = |wire: CorrelationId| {
            let known = known.and_then(|known| u64::try_from(known).ok());
            near(known.unwrap_or(u64::from(wire.0)), wire)
        };
        if let Some((first, last)) = extent.calls {
            let (first, last) = (place(first), place(last));
            self.smallest_call = Some(self.smallest_call.map_or(first, |known| known.min(first)));
            self.largest_call = Some(self.largest_call.map_or(last, |known| known.max(last)));
        }
        match extent.operations {
            Some((_, last)) => {
                self.largest_operation = self.largest_operation.max(Some(place(last)))
            }
            None => self.without_operations = self.largest_operation.is_none(),
        }
    }

    /// Whether the recorder recorded calls and not one operation.
    pub(crate) fn is_without_operations(&self) -> bool {
        self.without_operations
    }

    /// Whether any operation of a call was recorded.
    pub(crate) fn has_operations(&self) -> bool {
        self.largest_operation.is_some()
    }

    /// Whether no call was recorded at all.
    pub(crate) fn is_without_calls(&self) -> bool {
        self.largest_call.is_none()
    }

    /// Whether an operation without a call was asked for before the recording began.
    pub(crate) fn is_before(&self, operation: &Operation) -> bool {
        self.smallest_call
            .is_some_and(|smallest| self.place(operation) < smallest)
    }

    /// Whether an operation without a call was asked for after the last recorded call.
    pub(crate) fn is_beyond(&self, operation: &Operation) -> bool {
        self.largest_call
            .is_none_or(|largest| self.place(operation) > largest)
    }

    /// Whether a call without an operation was made when the recording of operations was over.
    /// Where no operation was recorded at all there is no such edge.
    pub(crate) fn is_after(&self, call: &LogicalCall<'_>) -> bool {
        let first = call.ids.first().map(|&id| i128::from(id));
        let largest = self.largest_operation;
        first
            .zip(largest)
            .is_some_and(|(first, largest)| first > largest)
    }

    /// The unwrapped id of an operation without a call, by the calls around its start.
    fn place(&self, operation: &Operation) -> i128 {
        let called = |start| {
            self.by_start
                .partition_point(|(called, _)| *called <= start)
        };
        let at = operation
            .start
            .map_or(self.by_start.len(), called)
            .saturating_sub(1);
        let known = self.by_start.get(at).map(|(_, id)| *id);
        near(
            known.unwrap_or(u64::from(operation.correlation.0)),
            operation.correlation,
        )
    }
}
