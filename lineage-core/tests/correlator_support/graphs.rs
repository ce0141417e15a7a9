//! Changes and launches of graphs with few words.

use lineage_core::evidence::Why;
use lineage_core::id::{Attribution, CorrelationId, LaunchEpoch};
use lineage_core::observation::{
    ApiId, Call, Event, GraphChange, GraphEvent, GraphLaunch, GraphNodeKind, GraphSequence,
    Operation, OperationsDue,
};
use lineage_core::row::{Row, RowGraph, Template, TemplateNode};

use super::{api_of, at, call_of, external, kernel_of, of, scope, thread};

/// The node of this number in this graph: the upper half of its id is the graph's.
pub(crate) fn node(graph: u32, number: u32) -> u64 {
    u64::from(graph) << 32 | u64::from(number)
}

/// Changes in their order, by thread 1, one nanosecond each.
pub(crate) struct Changes {
    next: u64,
    pub(crate) now: u64,
    pub(crate) tid: u64,
}

impl Changes {
    pub(crate) fn from(now: u64) -> Self {
        Self {
            next: 1,
            now,
            tid: 1,
        }
    }

    /// The last change so far.
    pub(crate) fn last(&self) -> u64 {
        self.next - 1
    }

    /// As many changes are lost, and nothing says so.
    pub(crate) fn skip(&mut self, count: u64) {
        self.next += count;
    }

    pub(crate) fn by(
        &mut self,
        by: Attribution,
        in_call: Option<u32>,
        change: GraphChange,
    ) -> Event {
        let sequence = GraphSequence(self.next);
        self.next += 1;
        self.now += 1;
        GraphEvent {
            session: 1,
            sequence,
            at: at(self.now),
            tid: self.tid,
            correlation: in_call.map(CorrelationId),
            attribution: by,
            change,
        }
        .into()
    }

    pub(crate) fn change(&mut self, change: GraphChange) -> Event {
        self.by(Attribution::None, None, change)
    }

    pub(crate) fn made(&mut self, graph: u32) -> Event {
        self.change(GraphChange::GraphCreated { graph })
    }

    /// A kernel is captured inside a call, under an epoch.
    pub(crate) fn captured(&mut self, graph: u32, number: u32, by: u64, in_call: u32) -> Event {
        let change = GraphChange::NodeCreated {
            graph,
            node: node(graph, number),
            kind: GraphNodeKind::Kernel,
        };
        self.by(of(by), Some(in_call), change)
    }

    pub(crate) fn built(&mut self, graph: u32, number: u32, by: u64, kind: GraphNodeKind) -> Event {
        let node = node(graph, number);
        self.by(of(by), None, GraphChange::NodeCreated { graph, node, kind })
    }

    /// A copy of the node of the same number.
    pub(crate) fn copied(&mut self, from: u32, graph: u32, number: u32) -> Event {
        self.copied_as(from, graph, number, GraphNodeKind::Kernel)
    }

    pub(crate) fn copied_as(
        &mut self,
        from: u32,
        graph: u32,
        number: u32,
        kind: GraphNodeKind,
    ) -> Event {
        self.change(GraphChange::NodeCloned {
            graph,
            node: node(graph, number),
            original_graph: from,
            original: node(from, number),
            kind,
        })
    }

    /// An instantiation of a graph with nodes of these numbers.
    pub(crate) fn instantiated(&mut self, graph: u32, exec: u32, nodes: &[u32]) -> Vec<Event> {
        let mut events: Vec<Event> = nodes
            .iter()
            .map(|&number| self.copied(graph, exec, number))
            .collect();
        events.push(self.change(GraphChange::ExecCreated { exec, graph }));
        events
    }

    pub(crate) fn destroyed(&mut self, exec: u32) -> Event {
        self.change(GraphChange::ExecDestroyed { exec })
    }

    /// A capture of kernels 1 to `nodes` in calls from `first` on, each under this epoch.
    pub(crate) fn capture(&mut self, graph: u32, nodes: u32, by: u64, first: u32) -> Vec<Event> {
        let mut events = vec![self.made(graph)];
        events.extend((1..=nodes).map(|node| self.captured(graph, node, by, first + node - 1)));
        events
    }
}

pub(crate) fn launched_at(tid: u64, correlation: u32, ns: u64, exec: u32, sequence: u64) -> Event {
    GraphLaunch {
        session: 1,
        thread: thread(tid),
        correlation: CorrelationId(correlation),
        at: at(ns),
        exec,
        sequence: GraphSequence(sequence),
    }
    .into()
}

fn graph_api() -> ApiId {
    ApiId {
        domain: lineage_core::observation::ApiDomain::Driver,
        cbid: 514,
        name: None,
    }
}

pub(crate) fn graph_call_of(tid: u64, correlation: u32, entered: u64, id: u64) -> Call {
    Call {
        api: graph_api(),
        due: OperationsDue::Many,
        ..call_of(tid, correlation, entered, of(id))
    }
}

/// What is seen of a launch on the host, and of its call by CUPTI, but for its operations.
pub(crate) fn launch_of(
    tid: u64,
    correlation: u32,
    ns: u64,
    id: u64,
    exec: u32,
    sequence: u64,
) -> Vec<Event> {
    let mut api = api_of(tid, correlation, ns);
    api.api = graph_api();
    api.due = OperationsDue::Many;
    vec![
        launched_at(tid, correlation, ns, exec, sequence),
        graph_call_of(tid, correlation, ns, id).into(),
        scope(tid, id, u64::from(correlation), ns - 1, ns + 20),
        external(id, correlation, ns),
        api.into(),
    ]
}

/// A kernel of a node.
pub(crate) fn node_ran_of(correlation: u32, node: u64, start: u64, end: u64) -> Operation {
    Operation {
        graph_node: Some(node),
        graph: Some((node >> 32) as u32),
        ..kernel_of(correlation, start, end)
    }
}

pub(crate) fn node_ran(correlation: u32, node: u64, start: u64, end: u64) -> Event {
    node_ran_of(correlation, node, start, end).into()
}

#[track_caller]
pub(crate) fn graph_of(row: &Row) -> &RowGraph {
    row.graph.as_ref().expect("a row of a graph")
}

#[track_caller]
pub(crate) fn known(row: &Row) -> &TemplateNode {
    match &graph_of(row).template {
        Template::Known(node) => node,
        other => panic!("{other:?} of {row:#?}"),
    }
}

#[track_caller]
pub(crate) fn unknown(row: &Row) -> Why {
    match graph_of(row).template {
        Template::Unknown { why } => why,
        other => panic!("{other:?} of {row:#?}"),
    }
}

#[track_caller]
pub(crate) fn captured_under(row: &Row) -> LaunchEpoch {
    known(row).capture.epoch().expect("an epoch")
}

/// The row of the operation of this node in this call.
#[track_caller]
pub(crate) fn row_of(rows: &[Row], correlation: u32, node: u64) -> &Row {
    let mut found = rows.iter().filter(|row| {
        row.operation.as_ref().is_some_and(|operation| {
            operation.correlation.0 == correlation && operation.graph_node == Some(node)
        })
    });
    let row = found.next().expect("a row");
    assert!(found.next().is_none(), "two rows of one operation");
    row
}
