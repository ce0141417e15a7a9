//! One generation of an executable graph: its nodes as they were at each moment that a launch may
//! mean.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::evidence::Why;
use crate::id::{Attribution, HostNanos};
use crate::observation::GraphNodeKind;
use crate::row::TemplateNode;

/// Launches of one generation whose extent is remembered: launches of one never overlap.
const EXTENTS: usize = 4;

/// Where a node comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// From this node, which was captured or made by hand.
    Known(TemplateNode),
    /// That is not known.
    Unknown(Why),
}

/// Something that was one way at first and changed at places of the order.
#[derive(Debug)]
struct History<T> {
    /// The earliest change that the first state is known for.
    first_from: u64,
    first: T,
    /// From which change on, ascending.
    later: Vec<(u64, T)>,
}

impl<T: Copy> History<T> {
    fn new(first: T) -> Self {
        Self {
            first_from: 0,
            first,
            later: Vec::new(),
        }
    }

    /// `None` if that is forgotten.
    fn at(&self, sequence: u64) -> Option<T> {
        let mut later = self.later.iter().rev();
        let found = later.find(|(from, _)| *from <= sequence);
        let found = found.map(|(_, value)| *value);
        found.or((self.first_from <= sequence).then_some(self.first))
    }

    fn newest(&self) -> T {
        self.later.last().map_or(self.first, |(_, value)| *value)
    }

    /// From here on it is this; what was before `floor` is not asked for any more. `held` counts
    /// changes.
    fn change(&mut self, from: u64, value: T, floor: u64, held: &mut usize) {
        let settled = self.later.iter().take_while(|(from, _)| *from <= floor);
        let settled = settled.count();
        if let Some((from, last)) = self.later.drain(..settled).next_back() {
            (self.first_from, self.first) = (from, last);
        }
        self.later.push((from, value));
        *held = (*held + 1).saturating_sub(settled);
    }

    /// Forgets what was before.
    fn cut(&mut self) {
        if let Some((from, last)) = std::mem::take(&mut self.later).pop() {
            (self.first_from, self.first) = (from, last);
        }
    }
}

/// A node of an executable graph.
#[derive(Debug)]
pub(super) struct ExecNode {
    pub(super) kind: GraphNodeKind,
    /// The node it was copied from.
    copied_from: u64,
    /// It is copied from a node of the graph that was instantiated itself, and not of a child or body.
    of_root: bool,
    origin: History<Origin>,
    enabled: History<bool>,
    /// The last change that told what it was updated from.
    paired: u64,
}

impl ExecNode {
    pub(super) fn new(
        kind: GraphNodeKind,
        copied_from: u64,
        of_root: bool,
        origin: Origin,
    ) -> Self {
        Self {
            kind,
            copied_from,
            of_root,
            origin: History::new(origin),
            enabled: History::new(true),
            paired: 0,
        }
    }

    pub(super) fn origin_at(&self, sequence: u64) -> Origin {
        let unknown = Origin::Unknown(Why::Dropped);
        self.origin.at(sequence).unwrap_or(unknown)
    }

    /// Where it comes from, if it always came from there.
    pub(super) fn only_origin(&self) -> Option<Origin> {
        let is_first = self.origin.later.is_empty() && self.origin.first_from == 0;
        is_first.then_some(self.origin.first)
    }

    fn runs_on_the_device(&self) -> bool {
        matches!(
            self.kind,
            GraphNodeKind::Kernel | GraphNodeKind::Copy | GraphNodeKind::Set
        )
    }
}

/// From the first start to the last end of a launch on one device.
#[derive(Debug, Clone, Copy)]
struct Extent {
    launch: u64,
    device: u32,
    start: HostNanos,
    end: HostNanos,
}

/// One generation of an executable graph.
#[derive(Debug)]
pub(super) struct Exec {
    pub(super) id: u32,
    /// Which of those that had the id, from 1.
    pub(super) generation: u32,
    pub(super) created: u64,
    pub(super) created_at: HostNanos,
    pub(super) destroyed: Option<u64>,
    /// Changes were lost from here on: it may have been destroyed, and its id given to another.
    pub(super) lost_from: Option<u64>,
    /// It had more nodes than there was room for.
    pub(super) incomplete: bool,
    /// Changes of nodes that are held.
    changes: usize,
    /// It has a body that runs, or runs again, as a value says.
    pub(super) has_bodies: bool,
    /// It has nodes that stand for another graph.
    pub(super) has_children: bool,
    by_id: FxHashMap<u64, u32>,
    nodes: Vec<ExecNode>,
    /// From here on it is not known which node is switched on.
    switches_unknown_from: Option<u64>,
    /// Launches that are open, by the change they know of.
    open: BTreeMap<u64, u32>,
    /// Keys of launches that have no number yet, ascending.
    unnumbered: VecDeque<u64>,
    numbered: u64,
    last_numbered: u64,
    /// A launch came when a later one had its number: nothing is numbered any more.
    disordered: bool,
    extents: VecDeque<Extent>,
}

impl Exec {
    pub(super) fn new(id: u32, generation: u32, created: u64, created_at: HostNanos) -> Self {
        Self {
            id,
            generation,
            created,
            created_at,
            destroyed: None,
            lost_from: None,
            incomplete: false,
            changes: 0,
            has_bodies: false,
            has_children: false,
            by_id: FxHashMap::default(),
            nodes: Vec::new(),
            switches_unknown_from: None,
            open: BTreeMap::new(),
            unnumbered: VecDeque::new(),
            numbered: 0,
            last_numbered: 0,
            disordered: false,
            extents: VecDeque::new(),
        }
    }

    pub(super) fn add(&mut self, id: u64, node: ExecNode) {
        self.has_bodies |= node.kind == GraphNodeKind::Conditional;
        self.has_children |= node.kind == GraphNodeKind::Child;
        // Bounded by the limits, which are far below 2^32.
        self.by_id.insert(id, self.nodes.len() as u32);
        self.nodes.push(node);
    }

    /// Whether it is what its id meant after this change, as far as is known.
    pub(super) fn lives_at(&self, sequence: u64) -> bool {
        let ends = [self.destroyed, self.lost_from];
        self.created <= sequence && ends.into_iter().flatten().all(|end| sequence < end)
    }

    /// A node of it, with its place among them.
    pub(super) fn node(&self, id: u64) -> Option<(usize, &ExecNode)> {
        let at = *self.by_id.get(&id)? as usize;
        Some((at, self.nodes.get(at)?))
    }

    /// How many nodes it has.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes and changes of nodes that it holds.
    pub(super) fn weight(&self) -> usize {
        1 + self.nodes.len() + self.changes
    }

    /// Forgets all changes of its nodes but what they came to. Answers with how many.
    pub(super) fn cut(&mut self) -> usize {
        for node in &mut self.nodes {
            node.origin.cut();
            node.enabled.cut();
        }
        std::mem::take(&mut self.changes)
    }

    /// The earliest change that a launch of it may still know of.
    fn floor(&self, floor: u64) -> u64 {
        let open = self.open.first_key_value().map(|(&sequence, _)| sequence);
        open.map_or(floor, |open| open.min(floor))
    }

    /// Its own node of this name, or its copies of a node of this name.
    fn named(&self, node: u64) -> Vec<usize> {
        if let Some(&at) = self.by_id.get(&node) {
            return vec![at as usize];
        }
        let copies = self.nodes.iter().enumerate();
        copies
            .filter(|(_, copy)| copy.copied_from == node)
            .map(|(at, _)| at)
            .collect()
    }

    /// A node was updated from another, if that is known.
    pub(super) fn update_node(&mut self, node: u64, origin: Option<Origin>, from: u64, floor: u64) {
        let floor = self.floor(floor);
        for at in self.named(node) {
            let node = &mut self.nodes[at];
            if origin.is_some() {
                node.paired = from;
            }
            let origin = origin.unwrap_or(Origin::Unknown(Why::ExecUpdated));
            node.origin.change(from, origin, floor, &mut self.changes);
        }
    }

    /// All of it was updated. Only nodes that were told to be paired since `since` are known.
    pub(super) fn update(&mut self, since: Option<u64>, from: u64, floor: u64) {
        let floor = self.floor(floor);
        for node in &mut self.nodes {
            let is_paired = since.is_some_and(|since| node.paired >= since);
            if !is_paired {
                let unknown = Origin::Unknown(Why::ExecUpdated);
                node.origin.change(from, unknown, floor, &mut self.changes);
            }
        }
    }

    /// A node was given other parameters: from here on it is the work of who did that.
    pub(super) fn set_parameters(
        &mut self,
        node: Option<u64>,
        by: Attribution,
        from: u64,
        floor: u64,
    ) {
        let floor = self.floor(floor);
        let Some(node) = node else {
            for node in &mut self.nodes {
                let unknown = Origin::Unknown(Why::ExecUpdated);
                node.origin.change(from, unknown, floor, &mut self.changes);
            }
            return;
        };
        for at in self.named(node) {
            let node = &mut self.nodes[at];
            if let Origin::Known(template) = node.origin.newest() {
                let template = TemplateNode {
                    capture: by,
                    ..template
                };
                node.origin
                    .change(from, Origin::Known(template), floor, &mut self.changes);
            }
        }
    }

    /// A node was switched on or off.
    pub(super) fn switch(&mut self, node: Option<u64>, enabled: bool, from: u64, floor: u64) {
        let floor = self.floor(floor);
        let named = node.map_or(Vec::new(), |node| self.named(node));
        if named.is_empty() {
            self.switches_unknown_from.get_or_insert(from);
        }
        for at in named {
            let node = &mut self.nodes[at];
            node.enabled.change(from, enabled, floor, &mut self.changes);
        }
    }

    /// Whether a launch at this moment has a node that certainly runs and that CUPTI records.
    pub(super) fn has_certain_work(&self, sequence: u64) -> bool {
        let unknown = self.switches_unknown_from;
        unknown.is_none_or(|from| sequence < from)
            && self.nodes.iter().any(|node| {
                node.runs_on_the_device()
                    && (node.of_root || !self.has_bodies)
                    && node.enabled.at(sequence) == Some(true)
            })
    }

    /// Whether a node may run more than once in a launch.
    pub(super) fn may_iterate(&self) -> bool {
        self.has_bodies || self.incomplete
    }

    pub(super) fn has_open_launches(&self) -> bool {
        !self.open.is_empty()
    }

    /// A launch came that means this one.
    pub(super) fn open(&mut self, sequence: u64, key: u64) {
        *self.open.entry(sequence).or_insert(0) += 1;
        if key <= self.last_numbered {
            self.disordered = true;
            return;
        }
        let at = self.unnumbered.partition_point(|&other| other < key);
        self.unnumbered.insert(at, key);
    }

    pub(super) fn close(&mut self, sequence: u64) {
        if let Some(count) = self.open.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&sequence);
            }
        }
    }

    /// Takes the next launch that is due a number, up to this one.
    pub(super) fn next_unnumbered(&mut self, until: u64) -> Option<u64> {
        let &next = self.unnumbered.front()?;
        if next > until {
            return None;
        }
        self.unnumbered.pop_front();
        self.last_numbered = next;
        Some(next)
    }

    /// The number of the launch just taken.
    pub(super) fn number(&mut self) -> Option<u64> {
        self.numbered += 1;
        (!self.disordered).then_some(self.numbered)
    }

    /// Whether this operation overlaps one of another launch, which cannot be. Notes it.
    pub(super) fn overlaps(
        &mut self,
        launch: u64,
        device: u32,
        (start, end): (HostNanos, HostNanos),
        epsilon_ns: u64,
    ) -> bool {
        let before =
            |earlier: HostNanos, later: HostNanos| later.0.saturating_add(epsilon_ns) < earlier.0;
        let others = self.extents.iter();
        let overlaps = others.filter(|other| other.device == device).any(|other| {
            match other.launch.cmp(&launch) {
                std::cmp::Ordering::Less => before(other.end, start),
                std::cmp::Ordering::Equal => false,
                std::cmp::Ordering::Greater => before(end, other.start),
            }
        });
        if overlaps {
            return true;
        }
        let own = |other: &&mut Extent| other.launch == launch && other.device == device;
        if let Some(own) = self.extents.iter_mut().find(own) {
            own.start = own.start.min(start);
            own.end = own.end.max(end);
        } else {
            self.extents.push_back(Extent {
                launch,
                device,
                start,
                end,
            });
            if self.extents.len() > EXTENTS {
                self.extents.pop_front();
            }
        }
        false
    }
}
