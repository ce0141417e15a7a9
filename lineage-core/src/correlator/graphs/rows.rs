//! What a row says of its graph, and what is wrong with that.

use super::exec::{Exec, Origin};
use super::launches::Told;
use super::templates::{ExecRef, Graphs, Meant};
use crate::correlator::calls::Entry;
use crate::correlator::emit::FaultSet;
use crate::correlator::join::Joined;
use crate::correlator::session::Session;
use crate::evidence::Why;
use crate::fault::FaultCode;
use crate::observation::{ActivityKind, ApiDomain, ApiId, Operation};
use crate::row::{Binding, RowGraph, Template};

/// A row's graph, where nothing but the node's own id says anything of it.
const NOTHING_KNOWN: RowGraph = RowGraph {
    exec: None,
    generation: 0,
    replay: None,
    iteration: 1,
    template: Template::Unknown { why: Why::Dropped },
};

impl Session {
    /// What the row of this call says of its graph: of this operation of it, or that it has none.
    pub(in super::super) fn graph_of(
        &mut self,
        slot: u32,
        operation: Option<&Operation>,
        joined: &Joined,
        faults: &mut FaultSet,
        epsilon_ns: u64,
    ) -> Option<RowGraph> {
        let is_node = operation.is_some_and(is_of_graph);
        let Some(launching) = self.launching(slot) else {
            let operation = operation.filter(|_| is_node)?;
            let entry = self.calls.get_mut(slot);
            let is_other_call = entry
                .host
                .as_ref()
                .is_some_and(|call| !launches_graph(&call.api));
            let node = operation.graph_node.unwrap_or(0);
            let iteration = ran_unknown(entry, node);
            if is_other_call {
                // As the call that it was captured from: that one has no operations.
                faults.add(FaultCode::W06);
            }
            let graph = self.graph_by_node(operation, faults);
            return graph.map(|graph| RowGraph { iteration, ..graph });
        };
        self.number(launching);
        let told = self.told(launching)?;
        let (exec, at, sequence) = (told.exec, told.at, told.sequence);
        let mut graph = RowGraph {
            exec: Some(exec),
            generation: told.generation,
            replay: told.replay,
            iteration: 0,
            template: Template::Unknown {
                why: Why::NotApplicable,
            },
        };
        let Some(operation) = operation else {
            return Some(graph);
        };
        let meant = told.exec_ref().ok_or_else(|| told.why_unknown());
        let found = meant.and_then(|exec| {
            let known = self.graphs.exec(exec).ok_or(Why::Dropped)?;
            Ok((exec, known))
        });
        let (origin, place) = match (&found, operation.graph_node) {
            _ if operation.kind == ActivityKind::Graph => (Origin::Unknown(Why::NotVisible), None),
            (_, None) => (Origin::Unknown(Why::NotCollected), None),
            (Err(why), Some(_)) => (Origin::Unknown(*why), None),
            (Ok((_, known)), Some(node)) => node_at(known, node, sequence),
        };
        if let Ok((_, known)) = found {
            let too_early = operation
                .start
                .is_some_and(|start| start.0.saturating_add(epsilon_ns) < known.created_at.0);
            if too_early || at.0.saturating_add(epsilon_ns) < known.created_at.0 {
                faults.add(FaultCode::W08);
            }
            if place.is_none() && names_another(&self.graphs, known, operation, sequence) {
                faults.add(FaultCode::W06);
            }
        }
        let runs_once = found
            .is_ok_and(|(_, known)| operation.kind == ActivityKind::Kernel && !known.may_iterate());
        let of_exec = found.ok().map(|(exec, known)| (exec, known.nodes()));
        graph.iteration = self.iteration(launching, operation.graph_node, place, of_exec);
        if graph.iteration > 1 && runs_once && place.is_some() {
            faults.add(FaultCode::W06);
        }
        if let Some((exec, _)) = of_exec {
            self.check_overlap(launching, exec, operation, faults, epsilon_ns);
        }
        graph.template = template(origin, faults);
        if let Template::Known(node) = graph.template
            && let (Some(captured), Binding::Disputed(first, second)) =
                (node.capture.epoch(), joined.binding)
            && (captured == first || captured == second)
        {
            faults.add(FaultCode::W06);
        }
        Some(graph)
    }

    /// How often this node has run in its launch by now.
    fn iteration(
        &mut self,
        launching: u32,
        node: Option<u64>,
        place: Option<usize>,
        of_exec: Option<(ExecRef, usize)>,
    ) -> u32 {
        let entry = self.calls.get_mut(launching);
        let (Some(place), Some((_, nodes))) = (place, of_exec) else {
            return ran_unknown(entry, node.unwrap_or(0));
        };
        let graph = entry.graph.get_or_insert_default();
        if graph.ran.len() < nodes {
            graph.ran.resize(nodes, 0);
        }
        let ran = &mut graph.ran[place];
        *ran = ran.saturating_add(1);
        *ran
    }

    fn check_overlap(
        &mut self,
        launching: u32,
        exec: ExecRef,
        operation: &Operation,
        faults: &mut FaultSet,
        epsilon_ns: u64,
    ) {
        let key = self.calls.get(launching).key();
        let (Some(start), Some(end)) = (operation.start, operation.end) else {
            return;
        };
        if end < start {
            return;
        }
        if let Some(exec) = self.graphs.exec_mut(exec)
            && exec.overlaps(key, operation.device, (start, end), epsilon_ns)
        {
            faults.add(FaultCode::W06);
        }
    }

    /// What an operation says of its graph whose launch was not seen: its node's id is enough only
    /// where the id of its executable graph was given once, and nothing of it ever changed.
    pub(in super::super) fn graph_by_node(
        &self,
        operation: &Operation,
        faults: &mut FaultSet,
    ) -> Option<RowGraph> {
        if !is_of_graph(operation) {
            return None;
        }
        if !self.graphs.is_watched() {
            return Some(RowGraph {
                template: Template::Unknown {
                    why: Why::NotCollected,
                },
                ..NOTHING_KNOWN
            });
        }
        let Some(node) = operation.graph_node else {
            return Some(RowGraph {
                template: Template::Unknown {
                    why: Why::NotVisible,
                },
                ..NOTHING_KNOWN
            });
        };
        let id = operation.graph.unwrap_or((node >> 32) as u32);
        let mut graph = NOTHING_KNOWN;
        let origin = match self.graphs.only_meaning(id) {
            Meant::Unknown(why) => Origin::Unknown(why),
            Meant::Exec(exec) => match self.graphs.exec(exec) {
                None => Origin::Unknown(Why::Dropped),
                Some(known) => {
                    graph.generation = known.generation;
                    let node = known.node(node).map(|(_, node)| node);
                    let unknown = Origin::Unknown(Why::Dropped);
                    node.map_or(unknown, |node| {
                        node.only_origin()
                            .unwrap_or(Origin::Unknown(Why::ExecUpdated))
                    })
                }
            },
        };
        graph.template = template(origin, faults);
        Some(graph)
    }
}

impl Told {
    fn why_unknown(&self) -> Why {
        match self.meant {
            Some(Meant::Unknown(why)) => why,
            // What its id meant stands in changes that never came.
            Some(Meant::Exec(_)) | None => Why::Dropped,
        }
    }
}

fn is_of_graph(operation: &Operation) -> bool {
    operation.graph_node.is_some() || operation.kind == ActivityKind::Graph
}

/// Whether a function launches graphs.
fn launches_graph(api: &ApiId) -> bool {
    match (&api.name, api.domain) {
        (Some(name), _) => name.contains("GraphLaunch"),
        (None, ApiDomain::Driver) => matches!(api.cbid, 514 | 515),
        (None, ApiDomain::Runtime) => matches!(api.cbid, 311 | 312),
    }
}

/// Where a node of an executable graph came from at this moment, and its place among the nodes.
fn node_at(known: &Exec, node: u64, sequence: u64) -> (Origin, Option<usize>) {
    match known.node(node) {
        Some((place, node)) => (node.origin_at(sequence), Some(place)),
        None => (Origin::Unknown(Why::Dropped), None),
    }
}

/// Whether an operation names a node that another executable graph has. The upper half of a node's id
/// is its graph's (release notes of CUDA 13.4); nodes of children and bodies are said nothing of.
fn names_another(graphs: &Graphs, known: &Exec, operation: &Operation, sequence: u64) -> bool {
    let Some(node) = operation.graph_node else {
        return false;
    };
    let by_node = (node >> 32) as u32;
    let is_of_other = |id: u32| {
        let meant = match graphs.meant(id, sequence) {
            Meant::Exec(exec) if id != known.id => graphs.exec(exec),
            _ => None,
        };
        meant.is_some_and(|other| other.node(node).is_some())
    };
    let can_have_others = known.has_children || known.has_bodies || known.incomplete;
    is_of_other(by_node)
        || operation.graph.is_some_and(is_of_other)
        || (by_node != known.id && !can_have_others)
}

/// How often a node that is not known has run in this call by now.
fn ran_unknown(entry: &mut Entry, node: u64) -> u32 {
    let graph = entry.graph.get_or_insert_default();
    let ran = graph.ran_unknown.entry(node).or_insert(0);
    *ran = ran.saturating_add(1);
    *ran
}

/// What follows for the row; a node whose template is not known is a fault, unless nobody looked.
fn template(origin: Origin, faults: &mut FaultSet) -> Template {
    match origin {
        Origin::Known(node) => Template::Known(node),
        Origin::Unknown(why) => {
            if !matches!(why, Why::NotVisible | Why::NotCollected) {
                faults.add(FaultCode::L06);
            }
            Template::Unknown { why }
        }
    }
}
