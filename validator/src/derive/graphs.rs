//! Executable graphs, their launches, and who built their nodes: looked up in timelines.
//!
//! All changes of a session's graphs lie open in their order. A node's or an executable graph's id is
//! a timeline of lives; a launch is a point on it. Who built a node is asked backwards from that
//! point: the last change that says what the node is, then the life of what it was copied from at the
//! moment of the copy, until a node that was no copy. What lies before a loss is not looked at.

use std::collections::{BTreeMap, HashMap};

use lineage_core::evidence::Why;
use lineage_core::id::{Attribution, CorrelationId, HostNanos};
use lineage_core::observation::{
    ActivityKind, GraphChange, GraphEvent, GraphLaunch, GraphNodeKind, Operation,
};

use super::calls::Calls;
use super::gather::Gathered;
use super::operations::Operations;
use super::sessions::Sessions;

/// Copies of copies that are followed.
const CHAIN: usize = 64;

/// From which change to which: the first is the birth, the second is not part of it.
#[derive(Debug, Clone, Copy)]
struct Life<T> {
    born: u64,
    died: u64,
    what: T,
}

impl<T> Life<T> {
    fn covers(&self, change: u64) -> bool {
        self.born <= change && change < self.died
    }
}

/// Nodes that were made in a graph so far, and whether these are all.
#[derive(Debug, Default)]
struct Made {
    nodes: u32,
    is_whole: bool,
}

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

/// The graphs of one device session.
#[derive(Debug, Default)]
struct Timeline<'a> {
    changes: Vec<&'a GraphEvent>,
    /// Changes before each of these are not known to hold after it.
    losses: Vec<u64>,
    nodes: HashMap<u64, Vec<Life<&'a GraphEvent>>>,
    execs: HashMap<u32, Vec<Life<Exec<'a>>>>,
    /// What changed an executable graph.
    of_execs: HashMap<u32, Vec<&'a GraphEvent>>,
    /// Of the changes that made a node, which node of its graph it was.
    orders: HashMap<u64, u32>,
    has_ended: bool,
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

impl<'a> Timeline<'a> {
    fn new(mut changes: Vec<&'a GraphEvent>, has_ended: bool) -> Self {
        // A stable sort: of two changes of one place the first to come stands.
        changes.sort_by_key(|change| change.sequence);
        changes.dedup_by_key(|change| change.sequence);
        let mut timeline = Self {
            has_ended,
            ..Self::default()
        };
        let mut before: Option<u64> = None;
        let mut made: HashMap<u32, Made> = HashMap::new();
        let mut born_in: HashMap<u32, Vec<u64>> = HashMap::new();
        for change in changes {
            let sequence = change.sequence.0;
            let told = matches!(change.change, GraphChange::Lost { .. });
            let first_missing = before.map_or(sequence, |before| before + 1);
            if told || first_missing < sequence {
                timeline.losses.push(first_missing);
                made.clear();
            }
            before = Some(sequence);
            timeline.changes.push(change);
            match &change.change {
                GraphChange::GraphCreated { graph } => {
                    timeline.bury_nodes(born_in.remove(graph), sequence);
                    let is_whole = true;
                    made.insert(*graph, Made { nodes: 0, is_whole });
                }
                // Before its nodes, or behind them.
                GraphChange::GraphCloned { graph, .. } => {
                    made.entry(*graph).or_default().is_whole = true;
                }
                GraphChange::GraphDestroyed { graph } => {
                    timeline.bury_nodes(born_in.remove(graph), sequence);
                    made.remove(graph);
                }
                GraphChange::NodeCreated { graph, node, .. }
                | GraphChange::NodeCloned { graph, node, .. } => {
                    let made = made.entry(*graph).or_default();
                    made.nodes = made.nodes.saturating_add(1);
                    let order = if made.is_whole { made.nodes } else { 0 };
                    timeline.orders.insert(sequence, order);
                    let lives = timeline.nodes.entry(*node).or_default();
                    bury(lives, sequence);
                    lives.push(Life {
                        born: sequence,
                        died: u64::MAX,
                        what: change,
                    });
                    born_in.entry(*graph).or_default().push(*node);
                }
                GraphChange::NodeDestroyed { node, .. } => {
                    timeline.bury_nodes(Some(vec![*node]), sequence);
                }
                GraphChange::ExecCreated { exec, .. } => {
                    timeline.bury_nodes(born_in.remove(exec), sequence);
                    made.remove(exec);
                    let lives = timeline.execs.entry(*exec).or_default();
                    // Where the end of the one before was not seen, since its beginning.
                    let filled_since = lives.last().map_or(0, |last| match last.died {
                        u64::MAX => last.born,
                        died => died,
                    });
                    bury(lives, sequence);
                    let generation = u32::try_from(lives.len()).unwrap_or(u32::MAX - 1) + 1;
                    lives.push(Life {
                        born: sequence,
                        died: u64::MAX,
                        what: Exec {
                            id: *exec,
                            generation,
                            created: change,
                            filled_since,
                        },
                    });
                }
                GraphChange::ExecDestroyed { exec } => {
                    if let Some(lives) = timeline.execs.get_mut(exec) {
                        bury(lives, sequence);
                    }
                }
                GraphChange::ExecUpdated { exec, .. }
                | GraphChange::NodeUpdated { exec, .. }
                | GraphChange::ParametersSet { exec, .. }
                | GraphChange::NodeEnabled { exec, .. } => {
                    timeline.of_execs.entry(*exec).or_default().push(change);
                }
                _ => {}
            }
        }
        timeline
    }

    fn bury_nodes(&mut self, nodes: Option<Vec<u64>>, sequence: u64) {
        for node in nodes.unwrap_or_default() {
            if let Some(lives) = self.nodes.get_mut(&node) {
                bury(lives, sequence);
            }
        }
    }

    /// Whether changes after the first and up to the second are known to be lost.
    fn lost_between(&self, after: u64, until: u64) -> bool {
        let first = self.losses.partition_point(|loss| *loss <= after);
        self.losses.get(first).is_some_and(|loss| *loss <= until)
    }

    fn exec_at(&self, id: u32, sequence: u64) -> Option<Exec<'a>> {
        let lives = self.execs.get(&id)?;
        let born = lives.partition_point(|life| life.born <= sequence);
        let last = lives.get(born.checked_sub(1)?)?;
        last.covers(sequence).then_some(last.what)
    }

    fn why_no_exec(&self, id: u32) -> Why {
        if self.execs.contains_key(&id) || !self.losses.is_empty() {
            Why::Dropped
        } else {
            Why::BeforeSession
        }
    }

    /// The copy that became this node of an executable graph.
    fn copied_into(&self, exec: Exec<'a>, node: u64) -> Option<&'a GraphEvent> {
        let lives = self.nodes.get(&node)?;
        let born = lives.partition_point(|life| life.born < exec.created.sequence.0);
        let last = lives.get(born.checked_sub(1)?)?;
        let is_own = match last.what.change {
            GraphChange::NodeCreated { graph, .. } | GraphChange::NodeCloned { graph, .. } => {
                graph == exec.id
            }
            _ => false,
        };
        (is_own && last.born > exec.filled_since && last.died >= exec.created.sequence.0)
            .then_some(last.what)
    }

    /// All copies that became nodes of an executable graph.
    fn copies(&self, exec: Exec<'a>) -> impl Iterator<Item = (u64, &'a GraphEvent)> + '_ {
        let until = exec.created.sequence.0;
        let from = self
            .changes
            .partition_point(|change| change.sequence.0 <= exec.filled_since);
        let to = self
            .changes
            .partition_point(|change| change.sequence.0 < until);
        self.changes[from..to].iter().filter_map(move |change| {
            let node = match change.change {
                GraphChange::NodeCreated { node, .. } | GraphChange::NodeCloned { node, .. } => {
                    node
                }
                _ => return None,
            };
            let own = self.copied_into(exec, node)?;
            (own.sequence == change.sequence).then_some((node, own))
        })
    }

    fn holds(&self, exec: Exec<'a>, wanted: impl Fn(GraphNodeKind) -> bool) -> bool {
        self.copies(exec)
            .any(|(_, copy)| node_kind(copy).is_some_and(&wanted))
    }

    /// Whether a node runs in every launch at this moment, and is of a kind that CUPTI records.
    fn certainly_works(&self, exec: Exec<'a>, sequence: u64) -> bool {
        let source = match exec.created.change {
            GraphChange::ExecCreated { graph, .. } => graph,
            _ => return false,
        };
        let has_bodies = self.holds(exec, |kind| kind == GraphNodeKind::Conditional);
        let switches: Vec<(Option<u64>, bool)> = self
            .changes_of(exec, sequence)
            .filter_map(|change| match change.change {
                GraphChange::NodeEnabled { node, enabled, .. } => Some((node, enabled)),
                _ => None,
            })
            .collect();
        let names_one = |node: &Option<u64>| {
            node.is_some_and(|node| self.copies(exec).any(|copy| is_named(copy, node)))
        };
        if !switches.iter().all(|(node, _)| names_one(node)) {
            return false;
        }
        self.copies(exec).any(|(node, copy)| {
            let records = matches!(
                node_kind(copy),
                Some(GraphNodeKind::Kernel | GraphNodeKind::Copy | GraphNodeKind::Set)
            );
            let GraphChange::NodeCloned { original_graph, .. } = copy.change else {
                // Nothing tells where it is.
                return records && !has_bodies;
            };
            let mut switched = switches.iter().rev();
            let last = switched
                .find(|(named, _)| named.is_some_and(|named| is_named((node, copy), named)));
            let enabled = last.is_none_or(|(_, enabled)| *enabled);
            records && enabled && (!has_bodies || original_graph == source)
        })
    }

    /// What changed an executable graph up to this moment.
    fn changes_of(
        &self,
        exec: Exec<'a>,
        sequence: u64,
    ) -> impl DoubleEndedIterator<Item = &'a GraphEvent> + '_ {
        let all = self.of_execs.get(&exec.id).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|change| change.sequence <= exec.created.sequence);
        let to = all.partition_point(|change| change.sequence.0 <= sequence);
        all[from..to.max(from)].iter().copied()
    }

    /// Who built a node of an executable graph, as it was at this moment.
    fn template(&self, exec: Exec<'a>, node: u64, sequence: u64) -> Result<BuiltNode, Why> {
        let copy = self.copied_into(exec, node).ok_or(Why::Dropped)?;
        let mut set_by = None;
        let mut found = None;
        for change in self.changes_of(exec, sequence).rev() {
            let of_this = |named: u64| is_named((node, copy), named);
            match &change.change {
                GraphChange::ParametersSet { node: None, .. } => {
                    found = Some((change.sequence.0, Err(Why::ExecUpdated)));
                }
                GraphChange::ParametersSet {
                    node: Some(named), ..
                } if of_this(*named) => {
                    set_by.get_or_insert(change.attribution);
                }
                GraphChange::NodeUpdated {
                    node: named,
                    original,
                    ..
                } if of_this(*named) => {
                    found = Some((change.sequence.0, original.ok_or(Why::ExecUpdated)));
                }
                GraphChange::ExecUpdated { .. } => {
                    let pair = self.paired(change, exec.id, (node, copy));
                    let pair = pair.map_or((change.sequence.0, Err(Why::ExecUpdated)), |pair| pair);
                    found = Some(pair);
                }
                _ => {}
            }
            if found.is_some() {
                break;
            }
        }
        let (since, from) = match found {
            Some((since, from)) => (since, from.map(Some)),
            None => (copy.sequence.0, Ok(None)),
        };
        if self.lost_between(since, sequence) {
            return Err(Why::Dropped);
        }
        let built = match from? {
            Some(original) => self.built(original, since),
            None => match copy.change {
                GraphChange::NodeCloned { original, .. } => self.built(original, since),
                _ => Err(Why::Dropped),
            },
        }?;
        Ok(BuiltNode {
            capture: set_by.unwrap_or(built.capture),
            ..built
        })
    }

    /// The update of this node that belongs to an update of the whole: those that came right before
    /// it on its thread do.
    fn paired(
        &self,
        whole: &GraphEvent,
        exec: u32,
        copy: (u64, &GraphEvent),
    ) -> Option<(u64, Result<u64, Why>)> {
        let until = self
            .changes
            .partition_point(|change| change.sequence < whole.sequence);
        for change in self.changes[..until].iter().rev() {
            if change.tid != whole.tid {
                continue;
            }
            match &change.change {
                GraphChange::NodeUpdated {
                    exec: of,
                    node,
                    original: Some(original),
                } if *of == exec && is_named(copy, *node) => {
                    return Some((change.sequence.0, Ok(*original)));
                }
                GraphChange::NodeUpdated { exec: of, .. } if *of == exec => {}
                _ => return None,
            }
        }
        None
    }

    /// Who built the node that had this id at this change.
    fn built(&self, node: u64, at: u64) -> Result<BuiltNode, Why> {
        let (mut node, mut at) = (node, at);
        let mut graph = None;
        for _ in 0..CHAIN {
            let lives = self.nodes.get(&node).map_or(&[][..], Vec::as_slice);
            let born = lives.partition_point(|life| life.born < at);
            let life = born.checked_sub(1).map(|last| lives[last]);
            let Some(life) = life.filter(|life| at < life.died) else {
                return Err(self.why_no_node(graph.unwrap_or((node >> 32) as u32), at));
            };
            if self.lost_between(life.born, at) {
                return Err(Why::Dropped);
            }
            match life.what.change {
                GraphChange::NodeCreated { graph, node, .. } => {
                    return Ok(BuiltNode {
                        graph,
                        node,
                        order: self.orders.get(&life.born).copied().unwrap_or(0),
                        capture: life.what.attribution,
                        in_call: life.what.correlation,
                        at: life.what.at,
                    });
                }
                GraphChange::NodeCloned {
                    original,
                    original_graph,
                    ..
                } => {
                    (node, at) = (original, life.born);
                    graph = Some(original_graph);
                }
                _ => return Err(Why::Dropped),
            }
        }
        Err(Why::Dropped)
    }

    /// Why nothing is known of a node of this graph at this change.
    fn why_no_node(&self, graph: u32, at: u64) -> Why {
        let of_session = self.changes.iter().any(|change| {
            change.sequence.0 <= at
                && matches!(change.change, GraphChange::GraphCreated { graph: made }
                    | GraphChange::GraphCloned { graph: made, .. } if made == graph)
        });
        if of_session || !self.losses.is_empty() {
            Why::Dropped
        } else {
            Why::BeforeSession
        }
    }

    /// Who built the node of an operation whose launch was not seen.
    fn template_by_node(&self, operation: &Operation, node: u64) -> Result<BuiltNode, Why> {
        let id = operation.graph.unwrap_or((node >> 32) as u32);
        let lives = self.execs.get(&id).map_or(&[][..], Vec::as_slice);
        match lives {
            [only] if self.losses.is_empty() => {
                let exec = only.what;
                let copy = self.copied_into(exec, node).ok_or(Why::Dropped)?;
                let changed = self
                    .changes_of(exec, u64::MAX)
                    .any(|change| match &change.change {
                        GraphChange::NodeUpdated { node: named, .. }
                        | GraphChange::ParametersSet {
                            node: Some(named), ..
                        } => is_named((node, copy), *named),
                        GraphChange::ExecUpdated { .. }
                        | GraphChange::ParametersSet { node: None, .. } => true,
                        _ => false,
                    });
                if changed {
                    return Err(Why::ExecUpdated);
                }
                self.template(exec, node, exec.created.sequence.0)
            }
            _ => Err(self.why_no_exec(id)),
        }
    }
}

/// Ends the last life.
fn bury<T>(lives: &mut [Life<T>], sequence: u64) {
    if let Some(last) = lives.last_mut() {
        last.died = last.died.min(sequence);
    }
}

fn node_kind(change: &GraphEvent) -> Option<GraphNodeKind> {
    match change.change {
        GraphChange::NodeCreated { kind, .. } | GraphChange::NodeCloned { kind, .. } => Some(kind),
        _ => None,
    }
}

/// Whether a change that names a node means this copy: the driver names the node of the graph that was
/// instantiated, CUPTI the executable one's.
fn is_named((node, copy): (u64, &GraphEvent), named: u64) -> bool {
    let is_copy =
        matches!(copy.change, GraphChange::NodeCloned { original, .. } if original == named);
    node == named || is_copy
}
