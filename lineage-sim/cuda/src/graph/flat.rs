//! The nodes of an exec in the order in which a launch hands them to the device.
//!
//! A child graph is taken apart into its nodes, between the child node itself and a marker that is behind all of them. The bodies of
//! a conditional node stay lists of their own.

use std::collections::HashMap;

use crate::graph::content::Content;
use crate::graph::resource::{Event, What};
use crate::graph::world::{EdgeData, World};
use crate::handles::HandleNumber;
use crate::result;

pub(crate) struct FlatNode {
    /// The exec's node, for tools; 0 for markers.
    pub(crate) handle: HandleNumber,
    pub(crate) id: u64,
    /// The template's node, by which the program means it.
    pub(crate) original: HandleNumber,
    /// The node from which it was cloned or last updated.
    pub(crate) source_id: u64,
    pub(crate) content: Content,
    /// Nodes before it, by index.
    pub(crate) after: Vec<(usize, EdgeData)>,
    pub(crate) is_enabled: bool,
    pub(crate) call_ordinal: u64,
    pub(crate) bodies: Vec<Vec<FlatNode>>,
    /// What its records show, where a fault lets them miss that its parameters were set.
    pub(crate) shown: Option<Content>,
}

/// What an exec is cloned from, and into.
pub(crate) struct Flattening<'a> {
    pub(crate) world: &'a mut World,
    /// Where the exec's nodes get their handles and ids; none to look only.
    pub(crate) into: Option<HandleNumber>,
    pub(crate) exec: HandleNumber,
    pub(crate) events: &'a mut Vec<Event>,
}

impl Flattening<'_> {
    /// The nodes of a graph. `INVALID_VALUE` where they form a circle.
    pub(crate) fn list(&mut self, graph: HandleNumber) -> Result<Vec<FlatNode>, u32> {
        let mut nodes = Vec::new();
        self.append(graph, None, &mut nodes)?;
        Ok(nodes)
    }

    /// Appends a graph's nodes, the first of them behind `entry`. Returns the last ones.
    fn append(
        &mut self,
        graph: HandleNumber,
        entry: Option<usize>,
        nodes: &mut Vec<FlatNode>,
    ) -> Result<Vec<usize>, u32> {
        let order = self.world.in_order(graph)?.ok_or(result::INVALID_VALUE)?;
        let mut before: HashMap<HandleNumber, Vec<(HandleNumber, EdgeData)>> = HashMap::new();
        for edge in &self.world.graph(graph)?.edges {
            before
                .entry(edge.to)
                .or_default()
                .push((edge.from, edge.data));
        }
        let mut places = HashMap::new();
        let mut is_last = HashMap::new();
        for number in order {
            let node = self.world.node(number)?;
            let (content, source_id, call_ordinal) =
                (node.content.clone(), node.id, node.call_ordinal);
            let mut after: Vec<(usize, EdgeData)> = Vec::new();
            for (from, data) in before.remove(&number).unwrap_or_default() {
                after.push((places[&from], data));
                is_last.insert(from, false);
            }
            if after.is_empty() {
                after.extend(entry.map(|entry| (entry, EdgeData::default())));
            }
            let (handle, id) = self.clone_node(graph, number, &content, call_ordinal)?;
            let mut bodies = Vec::new();
            if let Content::Conditional(conditional) = &content {
                for body in &conditional.bodies {
                    bodies.push(self.list(*body)?);
                }
            }
            let inner = match &content {
                Content::Child(inner) => Some(*inner),
                _ => None,
            };
            nodes.push(FlatNode {
                handle,
                id,
                original: number,
                source_id,
                content,
                after,
                is_enabled: true,
                call_ordinal,
                bodies,
                shown: None,
            });
            let mut place = nodes.len() - 1;
            if let Some(inner) = inner {
                let last = self.append(inner, Some(place), nodes)?;
                let after = last.into_iter().map(|last| (last, EdgeData::default()));
                let exit = FlatNode {
                    handle: 0,
                    id: 0,
                    original: 0,
                    source_id: 0,
                    content: Content::Empty,
                    after: after.chain([(place, EdgeData::default())]).collect(),
                    is_enabled: true,
                    call_ordinal: 0,
                    bodies: Vec::new(),
                    shown: None,
                };
                nodes.push(exit);
                place = nodes.len() - 1;
            }
            places.insert(number, place);
            is_last.entry(number).or_insert(true);
        }
        let last = is_last.iter().filter(|(_, is_last)| **is_last);
        let mut last: Vec<usize> = last.map(|(number, _)| places[number]).collect();
        last.sort_unstable();
        Ok(last)
    }

    fn clone_node(
        &mut self,
        graph: HandleNumber,
        original: HandleNumber,
        content: &Content,
        call_ordinal: u64,
    ) -> Result<(HandleNumber, u64), u32> {
        let Some(into) = self.into else {
            return Ok((0, 0));
        };
        let clone = self
            .world
            .put_node(into, content.clone(), original, call_ordinal)?;
        let node_type = content.node_type();
        let of_node = |what| Event::of_node(what, into, clone, node_type).exec(self.exec);
        self.events.push(of_node(What::NodeCreateStarting));
        self.events.push(of_node(What::NodeCreated));
        self.events
            .push(of_node(What::NodeCloned).from(graph, original));
        Ok((clone, self.world.node(clone)?.id))
    }
}

/// The exec's node that a template's node means.
pub(crate) fn find_mut(nodes: &mut [FlatNode], original: HandleNumber) -> Option<&mut FlatNode> {
    nodes.iter_mut().find_map(|node| {
        if node.original == original {
            Some(node)
        } else {
            node.bodies
                .iter_mut()
                .find_map(|body| find_mut(body, original))
        }
    })
}
