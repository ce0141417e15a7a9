//! When captures were open in a process.

use lineage_core::observation::OperationsDue;

use crate::entry::Entry;
use crate::function::{Boundary, Function};

/// Ends of captures that are remembered of one process; beyond that a capture is taken to be open
/// until the end. 24 bytes each.
const REMEMBERED: usize = 1 << 20;

/// Nodes that are remembered of one process; beyond that they decide nothing. 16 bytes each.
const NODES: usize = 1 << 21;

/// The captures of one process, and where its graph nodes were made.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    ends: Vec<(u64, Boundary)>,
    overflown_at: Option<u64>,
    /// Where nodes were made: thread and time.
    nodes: Vec<(u64, u64)>,
    nodes_overflown: bool,
    /// In order, apart from one another.
    open: Vec<(u64, u64)>,
    decided: bool,
}

impl Captures {
    /// A call that opens or ends a capture. One that failed to open it opened none.
    pub(crate) fn call(
        &mut self,
        boundary: Boundary,
        start: Option<u64>,
        end: Option<u64>,
        result: u32,
    ) {
        let at = match boundary {
            Boundary::Begin if result != 0 => return,
            Boundary::Begin => start.or(end),
            Boundary::End => end.or(start),
        };
        let Some(at) = at else { return };
        if self.ends.len() < REMEMBERED {
            self.ends.push((at, boundary));
        } else {
            self.overflown_at = Some(self.overflown_at.map_or(at, |known| known.min(at)));
        }
    }

    /// A node was made.
    pub(crate) fn node(&mut self, tid: u64, at: u64) {
        if self.nodes.len() < NODES {
            self.nodes.push((tid, at));
        } else {
            self.nodes_overflown = true;
        }
    }

    /// The clock's beginning was so much earlier than was taken.
    pub(crate) fn later_by(&mut self, base_ns: u64) {
        let later = |at: &mut u64| *at = at.saturating_add(base_ns);
        self.ends.iter_mut().for_each(|(at, _)| later(at));
        self.nodes.iter_mut().for_each(|(_, at)| later(at));
        self.overflown_at.iter_mut().for_each(later);
    }

    /// All has come.
    pub(crate) fn decide(&mut self) {
        if std::mem::replace(&mut self.decided, true) {
            return;
        }
        self.nodes.sort_unstable();
        self.ends.sort_by_key(|&(at, _)| at);
        // An end without a beginning: the capture was open when the recording began.
        let (mut depth, mut lowest) = (0_i64, 0_i64);
        for (_, boundary) in &self.ends {
            depth += if *boundary == Boundary::Begin { 1 } else { -1 };
            lowest = lowest.min(depth);
        }
        let mut depth = -lowest;
        let mut since = (depth > 0).then_some(0);
        for &(at, boundary) in &self.ends {
            match boundary {
                Boundary::Begin => {
                    depth += 1;
                    since = since.or(Some(at));
                }
                Boundary::End => {
                    depth -= 1;
                    if depth == 0
                        && let Some(since) = since.take()
                    {
                        self.open.push((since, at));
                    }
                }
            }
        }
        let still_open = since.into_iter().chain(self.overflown_at).min();
        if let Some(since) = still_open {
            self.open.push((since, u64::MAX));
        }
        self.ends = Vec::new();
    }

    /// How many times with an open capture there were.
    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }

    /// In which of the times with an open capture a call was made.
    pub(crate) fn number_at(&self, call: &Entry) -> Option<usize> {
        let at = call.start().or(call.end())?;
        let number = self
            .open
            .partition_point(|&(since, _)| since <= at)
            .checked_sub(1)?;
        (at <= self.open[number].1).then_some(number)
    }

    /// How many operations this call has, given when captures were open.
    pub(crate) fn due(&self, call: &Entry, function: Function) -> OperationsDue {
        let due = function.due;
        // A graph launch is a node of its own when it is captured; allocations are no operations.
        if due == OperationsDue::None || self.open.is_empty() {
            return due;
        }
        let Some(at) = call.start().or(call.end()) else {
            return OperationsDue::MaybeCaptured;
        };
        if self.number_at(call).is_none() {
            return due;
        }
        if self.nodes.is_empty() || self.nodes_overflown {
            return OperationsDue::MaybeCaptured;
        }
        let first = self.nodes.partition_point(|&node| node < (call.tid(), at));
        let until = call.end().unwrap_or(at);
        let made_one = self.nodes.get(first);
        if made_one.is_some_and(|&(tid, made)| tid == call.tid() && made <= until) {
            OperationsDue::None
        } else {
            due
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::function;
    use crate::given::ApiCall;
    use crate::names::NameId;
    use lineage_core::id::ProcessOrdinal;

    fn due(captures: &Captures, start_ns: u64) -> OperationsDue {
        let call = ApiCall {
            process: ProcessOrdinal(0),
            correlation: 1,
            tid: 7,
            start_ns: Some(start_ns),
            end_ns: Some(start_ns + 5),
            result: 0,
            name: NameId(0),
            kernel: None,
        };
        captures.due(&Entry::api(&call, 1), function("cudaLaunchKernel"))
    }

    #[test]
    fn a_launch_while_any_capture_is_open_may_have_been_captured() {
        use OperationsDue::{MaybeCaptured, One};
        let mut captures = Captures::default();
        // Two that overlap, from 100 to 250; one that failed to open; one that is never ended.
        captures.call(Boundary::End, Some(240), Some(250), 0);
        captures.call(Boundary::Begin, Some(100), Some(110), 0);
        captures.call(Boundary::Begin, Some(150), Some(160), 0);
        captures.call(Boundary::End, Some(190), Some(200), 0);
        captures.call(Boundary::Begin, Some(300), Some(310), 900);
        captures.call(Boundary::Begin, Some(400), Some(410), 0);
        captures.decide();
        for (at, expected) in [
            (99, One),
            (100, MaybeCaptured),
            (220, MaybeCaptured),
            (250, MaybeCaptured),
            (251, One),
            (305, One),
            (1_000_000, MaybeCaptured),
        ] {
            assert_eq!(due(&captures, at), expected, "at {at}");
        }
    }

    #[test]
    fn a_capture_that_ends_and_never_began_was_open_from_the_start() {
        let mut captures = Captures::default();
        captures.call(Boundary::End, Some(50), Some(60), 0);
        captures.decide();
        assert_eq!(due(&captures, 10), OperationsDue::MaybeCaptured);
        assert_eq!(due(&captures, 61), OperationsDue::One);
    }

    #[test]
    fn where_nodes_are_recorded_they_say_which_calls_were_captured() {
        let mut captures = Captures::default();
        captures.call(Boundary::Begin, Some(100), Some(110), 0);
        captures.call(Boundary::End, Some(400), Some(410), 0);
        // Inside of the call at 200 on its thread; at the same time on another thread.
        captures.node(7, 203);
        captures.node(8, 303);
        captures.decide();
        assert_eq!(due(&captures, 200), OperationsDue::None);
        assert_eq!(due(&captures, 300), OperationsDue::One);
    }
}
