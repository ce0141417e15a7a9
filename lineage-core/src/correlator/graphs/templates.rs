//! Graphs and executable graphs of one session, as their changes come.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::exec::{Exec, ExecNode, Origin};
use super::launches::Pending;
use super::seen::Seen;
use super::windows::Windows;
use crate::evidence::Why;
use crate::id::{HostNanos, UnwrappedCorrelationId};
use crate::observation::{GraphChange, GraphEvent, GraphNodeKind};
use crate::row::TemplateNode;

/// Flushes after which every launch from before the first of them is here.
const LAUNCHES_ARE_HERE_AFTER: usize = 2;

/// Threads whose updates of nodes are followed at a time. One that is not leaves its nodes unknown.
const UPDATING: usize = 1_024;

/// Names a generation of an executable graph, also after it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExecRef {
    slot: u32,
    /// The change that created it.
    created: u64,
}

/// A graph that can be changed, copied or instantiated.
#[derive(Debug, Default)]
struct Graph {
    nodes: FxHashSet<u64>,
    /// Nodes made so far.
    made: u32,
    /// All that was made in it is known: it was made in this session.
    is_whole: bool,
    /// It had more nodes than there was room for.
    incomplete: bool,
}

/// A node of such a graph, as it is now.
#[derive(Debug)]
struct Node {
    graph: u32,
    kind: GraphNodeKind,
    copied_from: Option<(u32, u64)>,
    origin: Origin,
}

/// What a thread last told of updates: the executable graph, and the first of the changes that
/// followed one another.
#[derive(Debug, Clone, Copy)]
struct Updating {
    tid: u64,
    exec: u32,
    since: u64,
}

/// What an executable graph's id meant at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    /// This generation.
    Exec(ExecRef),
    /// None that is known, and why.
    Unknown(Why),
}

/// Graphs and executable graphs of one session.
#[derive(Debug, Default)]
pub(in super::super) struct Graphs {
    /// The last change that came, if any has.
    newest: Option<u64>,
    /// The last change at each of the last flushes.
    at_flushes: VecDeque<u64>,
    graphs: FxHashMap<u32, Graph>,
    nodes: FxHashMap<u64, Node>,
    execs: Vec<Option<Exec>>,
    free: Vec<u32>,
    /// Generations that are still here, by id, in the order of their creation.
    by_id: FxHashMap<u32, Vec<u32>>,
    seen: Seen,
    /// Destroyed, and not gone yet.
    destroyed: Vec<ExecRef>,
    /// Nodes, graphs and changes that are held.
    held: usize,
    /// Changes were lost from there on.
    lost_from: Option<u64>,
    /// Between which times changes were lost.
    lost_while: Windows,
    /// When the last change that came happened.
    newest_at: HostNanos,
    /// A launch was told of.
    pub(super) has_launches: bool,
    /// Something did not fit.
    pub(super) forgot: bool,
    updating: Vec<Updating>,
    pub(super) pending: Pending,
}

/// What a change came to, for the totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Change {
    pub(super) graphs: u64,
    pub(super) execs: u64,
    pub(super) lost: u64,
    /// Nodes for which there was no room.
    pub(super) forgotten: u64,
    /// It was there before.
    pub(super) duplicate: bool,
}

impl Graphs {
    /// Whether anything was ever told of graphs in this session.
    pub(super) fn is_watched(&self) -> bool {
        self.newest.is_some() || self.has_launches
    }

    /// Whether changes between these two times may be lost.
    pub(in super::super) fn may_have_lost(&self, from: HostNanos, to: HostNanos) -> bool {
        self.lost_while.meet(from, to)
    }

    /// The last change that came.
    pub(super) fn newest(&self) -> u64 {
        self.newest.unwrap_or(0)
    }

    /// Before this change no launch comes any more.
    fn floor(&self) -> u64 {
        if self.at_flushes.len() < LAUNCHES_ARE_HERE_AFTER {
            return 0;
        }
        self.at_flushes.front().copied().unwrap_or(0)
    }

    /// Takes a change. `captured_by` is the call inside which it happened.
    pub(super) fn change(
        &mut self,
        event: &GraphEvent,
        captured_by: Option<UnwrappedCorrelationId>,
        bound: usize,
    ) -> Change {
        let mut change = Change::default();
        let sequence = event.sequence.0;
        let mut first_missing = sequence;
        if let Some(newest) = self.newest {
            if sequence <= newest {
                change.duplicate = true;
                return change;
            }
            first_missing = newest + 1;
            let missing = sequence - first_missing;
            let told = matches!(event.change, GraphChange::Lost { .. });
            if missing > 0 && !told {
                self.lose(first_missing);
                self.lost_while.add(self.newest_at, Some(event.at));
                change.lost = missing;
            }
        }
        self.lost_while.close(event.at);
        (self.newest, self.newest_at) = (Some(sequence), event.at);
        let floor = self.floor();
        let since = self.updating(event);
        match &event.change {
            GraphChange::GraphCreated { graph } => {
                change.forgotten = self.make_graph(*graph, bound);
                change.graphs = 1;
            }
            GraphChange::GraphCloned { graph, .. } => {
                let (is_new, forgotten) = self.clone_graph(*graph, bound);
                change.graphs = u64::from(is_new);
                change.forgotten = forgotten;
            }
            GraphChange::GraphDestroyed { graph } => self.destroy_graph(*graph),
            GraphChange::NodeCreated { graph, node, kind } => {
                let within = self.graphs.get(graph);
                let order = match within {
                    Some(within) if within.is_whole => within.made.saturating_add(1),
                    _ => 0,
                };
                let origin = Origin::Known(TemplateNode {
                    graph: *graph,
                    node: *node,
                    order,
                    capture: event.attribution,
                    captured_by,
                    at: event.at,
                });
                change.forgotten = self.add_node(*graph, *node, *kind, None, origin, bound);
            }
            GraphChange::NodeCloned {
                graph,
                node,
                original_graph,
                original,
                kind,
            } => {
                let origin = self.origin_of(*original_graph, *original);
                let copied_from = Some((*original_graph, *original));
                change.forgotten = self.add_node(*graph, *node, *kind, copied_from, origin, bound);
            }
            GraphChange::NodeDestroyed { node, .. } => self.destroy_node(*node),
            GraphChange::ExecCreated { exec, graph } => {
                change.forgotten = self.make_exec((*exec, *graph), sequence, event.at, bound);
                change.execs = 1;
            }
            GraphChange::ExecDestroyed { exec } => self.destroy_exec(*exec, sequence),
            GraphChange::ExecUpdated { exec, .. } => {
                change.forgotten =
                    self.of_live(*exec, bound, |exec| exec.update(since, sequence, floor));
            }
            GraphChange::NodeUpdated {
                exec,
                node,
                original,
            } => {
                let origin =
                    original.map(|original| self.origin_of((original >> 32) as u32, original));
                change.forgotten = self.of_live(*exec, bound, |exec| {
                    exec.update_node(*node, origin, sequence, floor);
                });
            }
            GraphChange::ParametersSet { exec, node } => {
                let by = event.attribution;
                change.forgotten = self.of_live(*exec, bound, |exec| {
                    exec.set_parameters(*node, by, sequence, floor);
                });
            }
            GraphChange::NodeEnabled {
                exec,
                node,
                enabled,
            } => {
                change.forgotten = self.of_live(*exec, bound, |exec| {
                    exec.switch(*node, *enabled, sequence, floor);
                });
            }
            GraphChange::Lost { count } => {
                self.lose(first_missing);
                self.lost_while.add(event.at, None);
                change.lost += count;
            }
            // Edges order work, and change no join.
            GraphChange::Edges { .. } => {}
        }
        change
    }

    /// A flush returned: launches from before the one before it are here.
    pub(super) fn flushed(&mut self) {
        self.at_flushes.push_back(self.newest());
        if self.at_flushes.len() > LAUNCHES_ARE_HERE_AFTER {
            self.at_flushes.pop_front();
        }
        self.let_go();
    }

    /// What the id of an executable graph meant after this change.
    pub(super) fn meant(&self, exec: u32, sequence: u64) -> Meant {
        let generations = self.by_id.get(&exec).map_or(&[][..], Vec::as_slice);
        let found = generations.iter().rev().find_map(|&slot| {
            let generation = self.execs.get(slot as usize)?.as_ref()?;
            generation.lives_at(sequence).then_some(ExecRef {
                slot,
                created: generation.created,
            })
        });
        match found {
            Some(exec) => Meant::Exec(exec),
            None => Meant::Unknown(self.why_unknown(exec)),
        }
    }

    /// The only generation that this id ever meant, if nothing was lost: it needs no moment.
    pub(super) fn only_meaning(&self, exec: u32) -> Meant {
        let generations = self.by_id.get(&exec).map_or(&[][..], Vec::as_slice);
        match generations {
            [slot] if self.seen.count(exec) == 1 && self.lost_from.is_none() => {
                let generation = self.execs.get(*slot as usize).and_then(Option::as_ref);
                generation.map_or(Meant::Unknown(Why::Dropped), |generation| {
                    Meant::Exec(ExecRef {
                        slot: *slot,
                        created: generation.created,
                    })
                })
            }
            _ => Meant::Unknown(self.why_unknown(exec)),
        }
    }

    fn why_unknown(&self, exec: u32) -> Why {
        if self.seen.count(exec) > 0 || self.lost_from.is_some() || self.forgot {
            Why::Dropped
        } else {
            Why::BeforeSession
        }
    }

    pub(super) fn exec(&self, exec: ExecRef) -> Option<&Exec> {
        let found = self.execs.get(exec.slot as usize)?.as_ref()?;
        (found.created == exec.created).then_some(found)
    }

    pub(super) fn exec_mut(&mut self, exec: ExecRef) -> Option<&mut Exec> {
        let found = self.execs.get_mut(exec.slot as usize)?.as_mut()?;
        (found.created == exec.created).then_some(found)
    }

    /// Where a node of a graph comes from, as it is now.
    fn origin_of(&self, graph: u32, node: u64) -> Origin {
        if let Some(known) = self.nodes.get(&node) {
            return known.origin;
        }
        let of_this_session = self.graphs.get(&graph).is_some_and(|graph| graph.is_whole);
        Origin::Unknown(
            if of_this_session || self.lost_from.is_some() || self.forgot {
                Why::Dropped
            } else {
                Why::BeforeSession
            },
        )
    }

    /// Notes updates of nodes that follow one another on a thread. Answers with the first of them
    /// where this change is the update of the whole that they belong to.
    fn updating(&mut self, event: &GraphEvent) -> Option<u64> {
        let known = self.updating.iter().position(|of| of.tid == event.tid);
        let known = known.map(|at| self.updating.swap_remove(at));
        match &event.change {
            GraphChange::NodeUpdated { exec, .. } => {
                let since = known.filter(|known| known.exec == *exec);
                if self.updating.len() >= UPDATING {
                    self.updating.swap_remove(0);
                }
                self.updating.push(Updating {
                    tid: event.tid,
                    exec: *exec,
                    since: since.map_or(event.sequence.0, |known| known.since),
                });
                None
            }
            GraphChange::ExecUpdated { exec, .. } => {
                let known = known.filter(|known| known.exec == *exec);
                known.map(|known| known.since)
            }
            _ => None,
        }
    }

    /// Does this to the present generation of an executable graph, if there is one.
    /// Answers with how many changes had to be forgotten to make room.
    fn of_live(&mut self, exec: u32, bound: usize, act: impl FnOnce(&mut Exec)) -> u64 {
        let newest = self.by_id.get(&exec).and_then(|slots| slots.last());
        let exec = newest.and_then(|&slot| self.execs.get_mut(slot as usize)?.as_mut());
        let Some(exec) = exec.filter(|exec| exec.destroyed.is_none()) else {
            return 0;
        };
        let before = exec.weight();
        act(exec);
        let mut forgotten = 0;
        if self.held + exec.weight() > bound + before {
            forgotten = exec.cut();
            self.forgot = true;
        }
        self.held = (self.held + exec.weight()).saturating_sub(before);
        forgotten as u64
    }

    /// Whether there is room for one thing more; that there was none is remembered.
    fn has_room(&mut self, bound: usize) -> bool {
        self.forgot |= self.held >= bound;
        self.held < bound
    }

    /// Answers with 1 where there was no room.
    fn make_graph(&mut self, graph: u32, bound: usize) -> u64 {
        self.destroy_graph(graph);
        if !self.has_room(bound) {
            return 1;
        }
        self.held += 1;
        let made = Graph {
            is_whole: true,
            ..Graph::default()
        };
        self.graphs.insert(graph, made);
        0
    }

    /// A copy may be told of before its nodes or behind them: those that are there are its own, since the
    /// graph that had the id before was told to be destroyed. Answers with whether it is new,
    /// and 1 where there was no room.
    fn clone_graph(&mut self, graph: u32, bound: usize) -> (bool, u64) {
        match self.graphs.get_mut(&graph) {
            Some(known) => (!std::mem::replace(&mut known.is_whole, true), 0),
            None => (true, self.make_graph(graph, bound)),
        }
    }

    fn destroy_graph(&mut self, graph: u32) {
        let Some(gone) = self.graphs.remove(&graph) else {
            return;
        };
        self.held = self.held.saturating_sub(1 + gone.nodes.len());
        for node in gone.nodes {
            self.nodes.remove(&node);
        }
    }

    /// Answers with 1 where there was no room.
    fn add_node(
        &mut self,
        graph: u32,
        node: u64,
        kind: GraphNodeKind,
        copied_from: Option<(u32, u64)>,
        origin: Origin,
        bound: usize,
    ) -> u64 {
        self.destroy_node(node);
        if !self.has_room(bound) {
            if let Some(within) = self.graphs.get_mut(&graph) {
                within.made = within.made.saturating_add(1);
                within.incomplete = true;
            }
            return 1;
        }
        let within = self.graphs.entry(graph).or_insert_with(|| {
            self.held += 1;
            Graph::default()
        });
        within.made = within.made.saturating_add(1);
        within.nodes.insert(node);
        self.held += 1;
        self.nodes.insert(
            node,
            Node {
                graph,
                kind,
                copied_from,
                origin,
            },
        );
        0
    }

    fn destroy_node(&mut self, node: u64) {
        if let Some(gone) = self.nodes.remove(&node) {
            self.held = self.held.saturating_sub(1);
            if let Some(graph) = self.graphs.get_mut(&gone.graph) {
                graph.nodes.remove(&node);
            }
        }
    }

    /// The nodes that were copied into this id by now are those of the executable graph. Answers with
    /// how much there was no room for.
    fn make_exec(
        &mut self,
        (id, graph): (u32, u32),
        created: u64,
        at: HostNanos,
        bound: usize,
    ) -> u64 {
        self.destroy_exec(id, created);
        let generation = self.seen.note(id);
        let mut exec = Exec::new(id, generation, created, at);
        let content = self.graphs.remove(&id);
        let freed = content
            .as_ref()
            .map_or(0, |content| 1 + content.nodes.len());
        self.held = self.held.saturating_sub(freed);
        if !self.has_room(bound) {
            return 1;
        }
        if let Some(content) = content {
            exec.incomplete = content.incomplete;
            // In the order of their ids, so that the same observations give the same rows.
            let mut nodes: Vec<u64> = content.nodes.into_iter().collect();
            nodes.sort_unstable();
            for node in nodes {
                let Some(copy) = self.nodes.remove(&node) else {
                    continue;
                };
                // A node that was made here, and of which nothing tells what it is a copy of.
                let Some((from_graph, from)) = copy.copied_from else {
                    let unknown = Origin::Unknown(Why::Dropped);
                    exec.add(node, ExecNode::new(copy.kind, 0, false, unknown));
                    continue;
                };
                let of_root = from_graph == graph;
                exec.add(node, ExecNode::new(copy.kind, from, of_root, copy.origin));
            }
        }
        self.held += exec.weight();
        let slot = match self.free.pop() {
            Some(slot) => {
                self.execs[slot as usize] = Some(exec);
                slot
            }
            None => {
                self.execs.push(Some(exec));
                // Bounded by the limits, which are far below 2^32.
                (self.execs.len() - 1) as u32
            }
        };
        self.by_id.entry(id).or_default().push(slot);
        0
    }

    fn destroy_exec(&mut self, id: u32, sequence: u64) {
        let newest = self.by_id.get(&id).and_then(|slots| slots.last());
        let Some(&slot) = newest else { return };
        if let Some(Some(exec)) = self.execs.get_mut(slot as usize)
            && exec.destroyed.is_none()
        {
            exec.destroyed = Some(sequence);
            let created = exec.created;
            self.destroyed.push(ExecRef { slot, created });
        }
    }

    /// Lets go of what was destroyed and can be meant by nothing any more.
    fn let_go(&mut self) {
        let floor = self.floor();
        let destroyed = std::mem::take(&mut self.destroyed);
        for exec in destroyed {
            let Some(known) = self.exec(exec) else {
                continue;
            };
            let is_past = known.destroyed.is_some_and(|destroyed| destroyed <= floor);
            if is_past && !known.has_open_launches() {
                self.remove(exec);
            } else {
                self.destroyed.push(exec);
            }
        }
    }

    fn remove(&mut self, exec: ExecRef) {
        let Some(gone) = self
            .execs
            .get_mut(exec.slot as usize)
            .and_then(Option::take)
        else {
            return;
        };
        self.held = self.held.saturating_sub(gone.weight());
        self.free.push(exec.slot);
        if let Some(slots) = self.by_id.get_mut(&gone.id) {
            slots.retain(|&slot| slot != exec.slot);
            if slots.is_empty() {
                self.by_id.remove(&gone.id);
            }
        }
    }

    /// Changes were lost: of what was known nothing holds for sure from here on.
    fn lose(&mut self, sequence: u64) {
        self.lost_from.get_or_insert(sequence);
        self.graphs.clear();
        self.nodes.clear();
        self.updating.clear();
        let mut held = 0;
        for exec in self.execs.iter_mut().flatten() {
            exec.lost_from.get_or_insert(sequence);
            held += exec.weight();
        }
        self.held = held;
    }
}
