//! What CUPTI's callbacks about graphs name, and in which order they come: what lineage's templates rest on.

use std::collections::BTreeMap;

use lineage_cupti::sys::codes::{domain, kind};
use lineage_cupti::sys::layout::{Record, kernel};
use serde_json::{Value, json};

use super::graphs::{capture, chain, destroy, graph, instantiate, set_params, update};
use super::stage::{Kernel, Stage, call};
use crate::check::failure::Failure;
use crate::check::questions::{Answer, Arm};
use crate::check::resources::{self, OF_GRAPHS, Seen};

/// Numbers in the order in which they come up, from 1.
#[derive(Default)]
struct Ordinals(BTreeMap<u64, usize>);

impl Ordinals {
    fn of(&mut self, id: u64) -> usize {
        let next = self.0.len() + 1;
        *self.0.entry(id).or_insert(next)
    }
}

/// Ids of graphs and executable graphs are one sort here: whether two are equal is what is asked.
#[derive(Default)]
struct Names {
    graphs: Ordinals,
    nodes: Ordinals,
}

impl Names {
    fn node(&mut self, id: u64) -> String {
        let graph = self.graphs.of(id >> 32);
        format!("node {} in {graph}", self.nodes.of(id))
    }

    /// A callback in words, for example `20 graph 2 node 3 in 2 from graph 1 node 1 in 1`.
    fn tell(&mut self, seen: &Seen) -> String {
        let mut words = vec![seen.cbid.to_string()];
        let mut graph = |word: &str, id: Option<u32>| {
            id.map(|id| format!("{word} {}", self.graphs.of(id.into())))
        };
        let (of, from) = (
            graph("graph", seen.graph),
            graph("from graph", seen.original_graph),
        );
        let exec = graph("exec", seen.exec);
        words.extend(of);
        words.extend(exec);
        words.extend(seen.node.map(|node| self.node(node)));
        let original = seen.original.map(|node| match from {
            Some(_) => self.node(node),
            None => format!("from {}", self.node(node)),
        });
        words.extend(from);
        words.extend(original);
        words.join(" ")
    }
}

/// Asks with all callbacks about graphs on.
pub fn ask(arm: &Arm) -> Result<Answer, Failure> {
    let stage = Stage::open(arm)?;
    let client = stage.client();
    let known: Vec<u32> = OF_GRAPHS
        .into_iter()
        .filter(|&cbid| client.call_back(domain::RESOURCE, cbid))
        .collect();
    let mut names = Names::default();
    let mut told = serde_json::Map::new();
    let mut step = |names: &mut Names, step: &str| {
        let seen = resources::take();
        let words: Vec<String> = seen.iter().map(|seen| names.tell(seen)).collect();
        told.insert(step.to_owned(), json!(words));
    };
    step(&mut names, "before");

    let captured = capture(&stage, &[1, 2])?;
    step(&mut names, "capture of two kernels");
    let exec = instantiate(captured)?;
    step(&mut names, "instantiation");
    let recorded = launched(&stage, exec, &mut names)?;
    step(&mut names, "launch");

    let outer = graph()?;
    step(&mut names, "creation");
    let mut child = std::ptr::null_mut();
    call!(cuGraphAddChildGraphNode(
        &mut child,
        outer,
        std::ptr::null(),
        0,
        captured
    ))?;
    step(&mut names, "a node for the captured graph as child");
    let mut clone = std::ptr::null_mut();
    call!(cuGraphClone(&mut clone, outer))?;
    step(&mut names, "clone of the outer graph");
    let of_clone = instantiate(clone)?;
    step(&mut names, "instantiation of the clone");
    let again = instantiate(captured)?;
    step(&mut names, "second instantiation of the captured graph");

    let (other, nodes) = chain(&stage, &[1, 3])?;
    step(&mut names, "building of two kernels");
    update(exec, other)?;
    step(&mut names, "update from the built graph");
    let of_built = instantiate(other)?;
    step(&mut names, "instantiation of the built graph");
    set_params(&stage, of_built, nodes[1], 4)?;
    step(&mut names, "parameters of its second node");
    call!(cuGraphNodeSetEnabled(of_built, nodes[1], 0))?;
    step(&mut names, "disabling of its second node");

    for exec in [exec, of_clone, again, of_built] {
        destroy(exec)?;
    }
    step(&mut names, "destruction of the executable graphs");
    for graph in [captured, outer, clone, other] {
        call!(cuGraphDestroy(graph))?;
    }
    step(&mut names, "destruction of the graphs");
    let answer = json!({ "callback_ids": known, "steps": told, "records_of_the_launch": recorded });
    Ok(Answer::new(answer, json!({})))
}

/// The graph and the node that the records of a launch name.
fn launched(
    stage: &Stage,
    exec: cudarc::driver::sys::CUgraphExec,
    names: &mut Names,
) -> Result<Vec<Value>, Failure> {
    stage.launch(Kernel::Tick, stage.free_stream()?, 1)?;
    stage.begin()?;
    call!(cuGraphLaunch(exec, stage.free_stream()?))?;
    call!(cuCtxSynchronize())?;
    let mut ids = Vec::new();
    stage.client().take_each(|_, bytes| {
        let record = Record::new(bytes);
        if record.kind() == Some(kind::CONCURRENT_KERNEL) {
            let (graph, node) = (
                record.u32(kernel::GRAPH_ID),
                record.u64(kernel::GRAPH_NODE_ID),
            );
            ids.extend(graph.zip(node));
        }
    })?;
    ids.sort_unstable();
    let tell = |(graph, node): (u32, u64)| {
        let graph = names.graphs.of(graph.into());
        json!(format!("graph {graph} {}", names.node(node)))
    };
    Ok(ids.into_iter().map(tell).collect())
}
