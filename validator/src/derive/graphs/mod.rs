//! Executable graphs, their launches, and who built their nodes: looked up in timelines.
//!
//! All changes of a session's graphs lie open in their order. A node's or an executable graph's id is
//! a timeline of lives; a launch is a point on it. Who built a node is asked backwards from that
//! point: the last change that says what the node is, then the life of what it was copied from at the
//! moment of the copy, until a node that was no copy. What lies before a loss is not looked at.

mod templates;
mod timeline;

use std::collections::{BTreeMap, HashMap};

use lineage_core::evidence::Why;
use lineage_core::id::{Attribution, CorrelationId, HostNanos};
use lineage_core::observation::{ActivityKind, GraphEvent, GraphLaunch, GraphNodeKind, Operation};

use super::calls::{Calls, LogicalCall};
use super::gather::Gathered;
use super::operations::Operations;
use super::sessions::Sessions;
use timeline::Timeline;

/// An executable graph between its instantiation and its destruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exec<'a> {
    pub(crate) id: u32,
    /// Which of those that had the id, from 1.
    pub(crate) generation: u32,
    pub(crate) created: &'a GraphEvent,
    /// Nodes that were copied into the id after this change are its own.
    filled_since: u64,
}

/// A node that was captured or made by hand, as far as a row can be held to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BuiltNode {
    pub(crate) graph: u32,
    pub(crate) node: u64,
    pub(crate) order: u32,
    pub(crate) capture: Attribution,
    pub(crate) in_call: Option<CorrelationId>,
    pub(crate) at: HostNanos,
}

/// A launch of a graph.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub(crate) told: &'a GraphLaunch,
    /// The call that it is.
    pub(crate) call: Option<usize>,
    /// What it launched, or why that is not known.
    pub(crate) exec: Result<Exec<'a>, Why>,
    /// Its number among the launches of that; `None` where one may have been missed.
    pub(crate) number: Option<u64>,
    /// Changes from before it may still come.
    pub(crate) pending: bool,
}

/// What follows for an operation that ran in a graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replayed {
    /// The launch that it belongs to.
    pub(crate) replay: Option<usize>,
    /// How often its node had run in its call by then, from 1.
    pub(crate) iteration: u32,
    /// Who built its node.
    pub(crate) template: Result<BuiltNode, Why>,
}

/// All graphs of a process.
#[derive(Debug, Default)]
pub(crate) struct Graphs<'a> {
    timelines: BTreeMap<u32, Timeline<'a>>,
    pub(crate) replays: Vec<Replay<'a>>,
    of_call: HashMap<usize, usize>,
    /// Of each operation, what follows, where it ran in a graph of a session that watched them.
    pub(crate) of_operation: Vec<Option<Replayed>>,
}

impl<'a> Graphs<'a> {
    pub(crate) fn new(
        gathered: &Gathered<'a>,
        sessions: &Sessions,
        calls: &Calls<'_>,
        operations: &Operations<'_>,
        operations_of: &[Vec<usize>],
    ) -> Self {
        let mut graphs = Self::default();
        let mut of_sessions: BTreeMap<u32, Vec<&'a GraphEvent>> = BTreeMap::new();
        for seen in &gathered.graphs {
            let of_session = of_sessions.entry(seen.what.session).or_default();
            of_session.push(seen.what);
        }
        for seen in &gathered.graph_launches {
            of_sessions.entry(seen.what.session).or_default();
        }
        for (session, changes) in of_sessions {
            let timeline = Timeline::new(changes, sessions.has_ended(session));
            graphs.timelines.insert(session, timeline);
        }
        graphs.take_launches(gathered, calls);
        graphs.number(gathered, calls);
        graphs.place(operations, operations_of);
        graphs
    }

    /// The launch that a call is.
    pub(crate) fn replay_of_call(&self, call: usize) -> Option<&Replay<'a>> {
        self.of_call.get(&call).map(|&at| &self.replays[at])
    }

    /// Whether a launch may rightly have no operation.
    pub(crate) fn may_launch_nothing(&self, call: usize) -> bool {
        let Some(replay) = self.replay_of_call(call) else {
            return false;
        };
        let timeline = self.timelines.get(&replay.told.session);
        match (replay.exec, timeline) {
            (Ok(exec), Some(timeline)) => !timeline.certainly_works(exec, replay.told.sequence.0),
            _ => true,
        }
    }

    /// Whether a call may have been captured of which our own callback has not told: what tells of a node
    /// that was made in it may be lost, too.
    pub(crate) fn may_be_captured(&self, call: &LogicalCall<'_>) -> bool {
        let timeline = self.timelines.get(&call.session);
        let during = call.start.map(|start| (start, call.end.unwrap_or(start)));
        call.callbacks.is_empty()
            && timeline
                .zip(during)
                .is_some_and(|(timeline, (from, to))| timeline.lost_while(from, to))
    }

    /// Whether a node of this launch can run more than once in it, or that cannot be said.
    pub(crate) fn may_iterate(&self, replay: &Replay<'_>) -> bool {
        let timeline = self.timelines.get(&replay.told.session);
        match (replay.exec, timeline) {
            (Ok(exec), Some(timeline)) => {
                timeline.holds(exec, |kind| kind == GraphNodeKind::Conditional)
            }
            _ => true,
        }
    }

    /// Whether an operation names a node that its launch cannot have run.
    pub(crate) fn names_another(&self, replay: &Replay<'_>, operation: &Operation) -> bool {
        let timeline = self.timelines.get(&replay.told.session);
        let (Ok(exec), Some(timeline), Some(node)) = (replay.exec, timeline, operation.graph_node)
        else {
            return false;
        };
        let sequence = replay.told.sequence.0;
        if timeline.copied_into(exec, node).is_some() {
            return false;
        }
        let others = [Some((node >> 32) as u32), operation.graph];
        let is_of_another = others.into_iter().flatten().any(|id| {
            id != exec.id
                && timeline
                    .exec_at(id, sequence)
                    .is_some_and(|other| timeline.copied_into(other, node).is_some())
        });
        let inner = |kind| matches!(kind, GraphNodeKind::Child | GraphNodeKind::Conditional);
        is_of_another || ((node >> 32) as u32 != exec.id && !timeline.holds(exec, inner))
    }

    /// Of each life of an executable graph, its launches that are known by number of session and
    /// change of birth.
    pub(crate) fn by_exec(&self) -> BTreeMap<(u32, u64), Vec<usize>> {
        let mut by_exec: BTreeMap<(u32, u64), Vec<usize>> = BTreeMap::new();
        for (at, replay) in self.replays.iter().enumerate() {
            if let Ok(exec) = replay.exec {
                let life = (replay.told.session, exec.created.sequence.0);
                by_exec.entry(life).or_default().push(at);
            }
        }
        by_exec
    }

    fn take_launches(&mut self, gathered: &Gathered<'a>, calls: &Calls<'_>) {
        for seen in &gathered.graph_launches {
            let told = seen.what;
            let Some(timeline) = self.timelines.get(&told.session) else {
                continue;
            };
            let candidates = calls.with_wire_id(told.session, told.correlation);
            let around = candidates.iter().find(|key| {
                let call = &calls.calls[key.call];
                let begun = call.start.is_none_or(|start| start <= told.at);
                let goes_on = call.end.is_none_or(|end| told.at <= end);
                call.tid == told.thread.tid && begun && goes_on
            });
            let call = around.map(|key| key.call);
            if call.is_some_and(|call| self.of_call.contains_key(&call)) {
                continue; // It is there twice.
            }
            let sequence = told.sequence.0;
            let newest = timeline.changes.last().map_or(0, |last| last.sequence.0);
            let is_ahead = sequence > newest;
            let exec = match timeline.exec_at(told.exec, sequence) {
                _ if is_ahead => Err(Why::Dropped),
                Some(exec) if timeline.lost_between(exec.created.sequence.0, sequence) => {
                    Err(Why::Dropped)
                }
                Some(exec) => Ok(exec),
                None => Err(timeline.why_no_exec(told.exec)),
            };
            if let Some(call) = call {
                self.of_call.insert(call, self.replays.len());
            }
            self.replays.push(Replay {
                told,
                call,
                exec,
                number: None,
                pending: is_ahead && !timeline.has_ended,
            });
        }
    }

    /// Numbers the launches of each executable graph in the order of their times.
    fn number(&mut self, gathered: &Gathered<'_>, calls: &Calls<'_>) {
        for mut launches in self.by_exec().into_values() {
            launches.sort_by_key(|&at| self.replays[at].told.at);
            let mut number = 0;
            for at in launches {
                let replay = &mut self.replays[at];
                let call = replay.call.map(|call| &calls.calls[call]);
                if call.is_some_and(|call| call.failure().is_some()) {
                    continue;
                }
                number += 1;
                let (Ok(exec), launched) = (replay.exec, replay.told.at) else {
                    continue;
                };
                let missed = gathered.gaps.iter().any(|seen| {
                    let begun = seen.what.not_before.is_none_or(|from| from <= launched);
                    let open = seen.what.not_after.is_none_or(|to| exec.created.at <= to);
                    begun && open
                });
                replay.number = (!missed).then_some(number);
            }
        }
    }

    fn place(&mut self, operations: &Operations<'_>, operations_of: &[Vec<usize>]) {
        let mut of_wire: HashMap<(u32, CorrelationId), Vec<usize>> = HashMap::new();
        for (at, replay) in self.replays.iter().enumerate() {
            if replay.call.is_none() {
                let key = (replay.told.session, replay.told.correlation);
                of_wire.entry(key).or_default().push(at);
            }
        }
        let mut iterations = vec![1_u32; operations.operations.len()];
        for of_call in operations_of {
            let mut ran: HashMap<u64, u32> = HashMap::new();
            for &number in of_call {
                if let Some(node) = operations.operations[number].seen.what.graph_node {
                    let ran = ran.entry(node).or_default();
                    *ran = ran.saturating_add(1);
                    iterations[number] = *ran;
                }
            }
        }
        let mut placed = vec![None; operations.operations.len()];
        for (number, operation) in operations.operations.iter().enumerate() {
            let what = operation.seen.what;
            let ran_in_graph = what.graph_node.is_some() || what.kind == ActivityKind::Graph;
            let Some(timeline) = self.timelines.get(&what.session).filter(|_| ran_in_graph) else {
                continue;
            };
            let replay = match operation.join.call() {
                Some(call) => self.of_call.get(&call).copied(),
                None => match of_wire
                    .get(&(what.session, what.correlation))
                    .map(Vec::as_slice)
                {
                    Some([only]) => Some(*only),
                    _ => None,
                },
            };
            let template = match (replay.map(|at| &self.replays[at]), what.graph_node) {
                _ if what.kind == ActivityKind::Graph => Err(Why::NotVisible),
                (_, None) => Err(Why::NotCollected),
                (Some(replay), Some(node)) => replay
                    .exec
                    .and_then(|exec| timeline.template(exec, node, replay.told.sequence.0)),
                (None, Some(node)) => timeline.template_by_node(what, node),
            };
            placed[number] = Some(Replayed {
                replay,
                iteration: iterations[number],
                template,
            });
        }
        self.of_operation = placed;
    }
}
