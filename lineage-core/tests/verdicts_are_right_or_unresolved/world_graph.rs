//! A graph that was seen being made, and its launch.

use lineage_core::id::{Attribution, CorrelationId};
use lineage_core::observation::{
    ActivityKind, EdgeKind, GraphChange, GraphEdge, GraphEvent, GraphLaunch, GraphNodeKind,
    GraphSequence, OperationsDue,
};
use lineage_sim_model::{GraphNode, Work};

use super::{ENGINE, Launched, Taken, World, at, thread};

impl World {
    /// Launches a graph of these nodes in a stream: name, how long, and which nodes before it. The
    /// graph's making, cloning and edges were seen. Numbers of its nodes.
    pub(crate) fn graph(
        &mut self,
        stream: u32,
        nodes: &[(&'static str, u64, &[usize])],
    ) -> Vec<u64> {
        const MADE: u64 = 8 << 32;
        const CLONED: u64 = 9 << 32;
        let now = self.now();
        let change = |world: &mut Self, change: GraphChange| {
            world.saw(GraphEvent {
                session: 1,
                sequence: GraphSequence(1),
                at: at(now),
                tid: ENGINE,
                correlation: None,
                attribution: Attribution::None,
                change,
            });
        };
        change(self, GraphChange::GraphCreated { graph: 8 });
        let kind = GraphNodeKind::Kernel;
        for number in 1..=nodes.len() as u64 {
            let node = MADE + number;
            change(
                self,
                GraphChange::NodeCreated {
                    graph: 8,
                    node,
                    kind,
                },
            );
        }
        let of_node = |(to, (_, _, before)): (usize, &(&str, u64, &[usize]))| {
            let edge = move |from: &usize| GraphEdge {
                from: MADE + *from as u64 + 1,
                to: MADE + to as u64 + 1,
                kind: EdgeKind::Completion,
            };
            before.iter().map(edge).collect::<Vec<_>>()
        };
        let edges: Vec<GraphEdge> = nodes.iter().enumerate().flat_map(of_node).collect();
        change(
            self,
            GraphChange::Edges {
                graph: 8,
                edges,
                last: true,
            },
        );
        for number in 1..=nodes.len() as u64 {
            change(
                self,
                GraphChange::NodeCloned {
                    graph: 9,
                    node: CLONED + number,
                    original_graph: 8,
                    original: MADE + number,
                    kind,
                },
            );
        }
        change(self, GraphChange::ExecCreated { exec: 9, graph: 8 });
        self.rest(1_000);
        let correlation = self.number();
        let enter = self.now();
        self.host.spend(6_000);
        let numbers: Vec<u64> = (1..=nodes.len() as u64).map(|of| CLONED + of).collect();
        let work = numbers
            .iter()
            .zip(nodes)
            .map(|(number, (_, ns, before))| GraphNode::new(*number, Work::kernel(*ns), before));
        let key = self.key(stream);
        let work: Vec<GraphNode> = work.collect();
        self.host.submit_graph(&mut self.model, key, None, work);
        self.saw(GraphLaunch {
            session: 1,
            thread: thread(ENGINE),
            correlation: CorrelationId(correlation),
            at: at(enter),
            exec: 9,
            sequence: GraphSequence(1),
        });
        self.api("cuGraphLaunch", correlation, enter, OperationsDue::Many);
        for (number, (name, _, _)) in numbers.iter().zip(nodes) {
            self.launched.insert(
                *number,
                Launched {
                    stream,
                    name: (*name).into(),
                    kind: ActivityKind::Kernel,
                    footprint: Some(Taken::default()),
                    graph_launch: Some(correlation),
                },
            );
        }
        numbers
    }
}
