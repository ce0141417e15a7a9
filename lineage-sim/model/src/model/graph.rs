//! Graph launches: nodes that only edges order, behind the stream's earlier work and the exec's previous launch.

use crate::facts::{DependencyKind, HostWait};
use crate::work::{Edge, Work};

use super::dependency::Moment;
use super::operations::{OperationKey, State};
use super::{Model, StreamKey, Submission};

/// One node of a graph launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GraphNode<P = ()> {
    /// Handed back when the node begins and when it ends.
    pub payload: P,
    /// The number by which facts name it.
    pub number: u64,
    /// What it does.
    pub work: Work,
    /// The nodes before it, by index in the launch's list, each of them earlier in that list.
    pub after: Vec<(usize, Edge)>,
    /// Overrides the stream's priority.
    pub priority: Option<i32>,
    /// An operation outside of the launch that must have ended first, as an event captured it.
    pub waits_for: Option<OperationKey>,
}

impl GraphNode {
    /// A node without a payload.
    pub fn new(number: u64, work: Work, after: &[usize]) -> Self {
        Self::with((), number, work)
            .after(after.iter().map(|before| (*before, Edge::End)).collect())
    }
}

impl<P> GraphNode<P> {
    /// A root with a payload.
    pub fn with(payload: P, number: u64, work: Work) -> Self {
        Self {
            payload,
            number,
            work,
            after: Vec::new(),
            priority: None,
            waits_for: None,
        }
    }

    /// Overrides the stream's priority.
    #[must_use]
    pub fn priority(mut self, priority: Option<i32>) -> Self {
        self.priority = priority;
        self
    }

    /// Lets it wait for an operation outside of the launch.
    #[must_use]
    pub fn waits_for(mut self, operation: Option<OperationKey>) -> Self {
        self.waits_for = operation;
        self
    }

    /// Sets the edges that lead to it.
    #[must_use]
    pub fn after(mut self, after: Vec<(usize, Edge)>) -> Self {
        self.after = after;
        self
    }
}

impl<P> Model<P> {
    /// Launches a graph into a stream. It takes one entry of the ring, is behind the stream's earlier work and, if given,
    /// behind the previous launch of the same exec; the stream's later work is behind all of its nodes.
    ///
    /// `submission` is the launch itself: its end is an effect after those of all nodes; its work is not looked at. An edge from a node
    /// that is not earlier in the list is left out.
    pub fn submit_graph(
        &mut self,
        now_ns: u64,
        stream: StreamKey,
        submission: Submission<P>,
        previous: Option<OperationKey>,
        nodes: Vec<GraphNode<P>>,
    ) -> OperationKey {
        let host: HostWait = submission.host;
        let graph = self.add_operation(now_ns, stream, submission);
        if let Some(operation) = self.operations.get_mut(graph) {
            operation.holds_graph = true;
            operation.nodes_left = nodes.len() as u32;
        }
        if let Some(previous) = previous {
            self.depend(graph, previous, Moment::End, DependencyKind::GraphExec);
        }
        self.order_in_stream(graph, stream);
        self.add_nodes(now_ns, graph, stream, host, nodes);
        self.enter_ring(now_ns, graph, stream);
        graph
    }

    /// Nodes that only edges order, inside a launch or a nested node that has not begun.
    fn add_nodes(
        &mut self,
        now_ns: u64,
        graph: OperationKey,
        stream: StreamKey,
        host: HostWait,
        nodes: Vec<GraphNode<P>>,
    ) {
        let mut keys: Vec<OperationKey> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let submission = Submission::with(node.payload, node.number, node.work)
                .host(host)
                .priority(node.priority);
            let key = self.add_operation(now_ns, stream, submission);
            if let Some(operation) = self.operations.get_mut(key) {
                operation.graph = Some(graph);
            }
            if let Some(of) = self.stream_mut(stream) {
                of.open += 1;
            }
            // Every node also waits for the launch to be issued.
            self.depend(key, graph, Moment::Start, DependencyKind::Stream);
            if let Some(outside) = node.waits_for {
                self.depend(key, outside, Moment::End, DependencyKind::Event);
            }
            for (before, edge) in node.after {
                let Some(before) = keys.get(before).copied() else {
                    continue;
                };
                match edge {
                    Edge::End => self.depend(key, before, Moment::End, DependencyKind::GraphEdge),
                    Edge::LaunchOrder => {
                        self.depend(key, before, Moment::Start, DependencyKind::GraphEdge);
                    }
                    Edge::Programmatic if self.this_one_overlaps() => {
                        self.depend(key, before, Moment::Trigger, DependencyKind::Programmatic);
                        self.wait_inside(key, before);
                    }
                    Edge::Programmatic => {
                        self.depend(key, before, Moment::End, DependencyKind::GraphEdge);
                    }
                }
            }
            keys.push(key);
        }
    }

    /// A node of [`Work::Nested`] begins: with these nodes inside, after whose last end it begins again; without any it ends.
    pub fn begun_with_nodes(
        &mut self,
        key: OperationKey,
        payload: P,
        start_ns: u64,
        nodes: Vec<GraphNode<P>>,
    ) {
        if nodes.is_empty() {
            self.begun(key, payload, start_ns, 0);
            return;
        }
        self.unanswered = self.unanswered.saturating_sub(1);
        let now_ns = self.now_ns;
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.payload = Some(payload);
        operation.holds_graph = true;
        operation.nodes_left = nodes.len() as u32;
        // Its nodes are added as if it had not begun, so that they wait for that.
        operation.state = State::Issued;
        let (stream, host) = (operation.stream, operation.host);
        self.add_nodes(now_ns, key, stream, host, nodes);
        if let Some(operation) = self.operations.get_mut(key) {
            operation.state = State::Running;
        }
        self.satisfy(key, Moment::Start);
    }

    /// The launch leaves its channel: its nodes are only held by edges now.
    pub(super) fn graph_begins(&mut self, graph: OperationKey) {
        let now_ns = self.now_ns;
        let Some(operation) = self.operations.get_mut(graph) else {
            return;
        };
        operation.state = State::Running;
        operation.start_ns = now_ns;
        operation.dispatched_ns = now_ns;
        operation.facts.resources_ns = now_ns;
        let is_empty = operation.nodes_left == 0;
        self.satisfy(graph, Moment::Start);
        if is_empty {
            self.end(graph, now_ns);
        }
    }

    /// The launch is issued: a node goes on from where the launch is.
    pub(super) fn node_released(&mut self, node: OperationKey, graph: OperationKey) {
        let Some(launch) = self.operations.get(graph) else {
            return;
        };
        let (facts, visible_ns) = (launch.facts, launch.visible_ns);
        let Some(operation) = self.operations.get_mut(node) else {
            return;
        };
        operation.visible_ns = visible_ns;
        operation.facts.submitted_ns = facts.submitted_ns;
        operation.facts.dependencies_ns = facts.dependencies_ns;
        operation.facts.last_dependency = facts.last_dependency;
        operation.facts.dependency_number = facts.dependency_number;
        operation.facts.channel_number = facts.channel_number;
        operation.unsatisfied -= 1;
        if operation.unsatisfied == 0 {
            self.issue(node);
        }
    }

    /// A node has ended; with the last one, so has the launch.
    pub(super) fn node_ended(&mut self, graph: OperationKey, node_number: u64) {
        let now_ns = self.now_ns;
        if let Some(operation) = self.operations.get_mut(graph) {
            operation.nodes_left -= 1;
            operation.node_number = node_number;
            let is_nested = matches!(operation.work, Work::Nested);
            if operation.nodes_left == 0 && is_nested {
                // Whether another round follows is asked.
                operation.holds_graph = false;
                self.begin(graph);
            } else if operation.nodes_left == 0 {
                self.end(graph, now_ns);
            }
        }
    }
}
