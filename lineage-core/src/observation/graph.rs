//! What becomes of graphs: made, cloned, instantiated, updated, launched, destroyed.
//!
//! CUPTI's records of a replayed node name the node of the *executable* graph and bear the
//! correlation id of the *replay*. Which call built the node, and under which epoch, no record
//! says: it follows from these events, in the order in which they happened.

use crate::id::{Attribution, CorrelationId, HostNanos, ThreadKey};

/// A place in the order in which the graphs of one process changed, from 1. A launch tells the
/// last change before it: ids of graphs are given again, so a launch means the graph of that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct GraphSequence(pub u64);

/// Kind of a graph's node (`CUgraphNodeType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum GraphNodeKind {
    /// A kernel.
    Kernel,
    /// A copy.
    Copy,
    /// A set.
    Set,
    /// A function of the host's.
    Host,
    /// Another graph.
    Child,
    /// Nothing: it only orders others.
    Empty,
    /// A wait for an event.
    EventWait,
    /// A record of an event.
    EventRecord,
    /// A signal to an external semaphore, or a wait for one.
    Semaphore,
    /// An allocation or a release of memory.
    Memory,
    /// A batch of operations on memory words.
    BatchMemory,
    /// A body that runs, or runs again, as a value says.
    Conditional,
    /// Any other, by its number.
    Other(u32),
}

/// What an edge between two nodes of a graph proves (`CUgraphEdgeData`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum EdgeKind {
    /// The later node starts after the earlier one has ended.
    Completion,
    /// The later kernel may start once all blocks of the earlier one have triggered it or ended.
    Programmatic,
    /// The later kernel may start once all blocks of the earlier one have begun.
    LaunchOrder,
    /// Not known, so it proves nothing.
    Unknown,
}

/// An edge between two nodes of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GraphEdge {
    /// The earlier node.
    pub from: u64,
    /// The later node.
    pub to: u64,
    /// What it proves.
    pub kind: EdgeKind,
}

/// What became of a graph or of one of its nodes. Graphs, executable graphs and nodes are named by
/// CUPTI's ids, which are given again after what they named is destroyed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum GraphChange {
    /// A graph was made, empty or by a capture.
    GraphCreated {
        /// The graph.
        graph: u32,
    },
    /// A graph was made as the copy of another.
    GraphCloned {
        /// The copy.
        graph: u32,
        /// What it was copied from.
        original: u32,
    },
    /// A graph is about to be destroyed.
    GraphDestroyed {
        /// The graph.
        graph: u32,
    },
    /// A node was made, by a captured call or by hand. Where [`NodeCloned`](Self::NodeCloned) of the same
    /// node follows, it was made as a copy.
    NodeCreated {
        /// Its graph.
        graph: u32,
        /// The node.
        node: u64,
        /// Of which kind.
        kind: GraphNodeKind,
    },
    /// A node was made as the copy of another: by cloning a graph, or by instantiating one.
    NodeCloned {
        /// The graph of the copy; of an instantiation the executable graph.
        graph: u32,
        /// The copy.
        node: u64,
        /// The graph it was copied from.
        original_graph: u32,
        /// The node it was copied from.
        original: u64,
        /// Of which kind.
        kind: GraphNodeKind,
    },
    /// A node is about to be destroyed.
    NodeDestroyed {
        /// Its graph.
        graph: u32,
        /// The node.
        node: u64,
    },
    /// A graph was instantiated.
    ExecCreated {
        /// The executable graph.
        exec: u32,
        /// The graph it was made from.
        graph: u32,
    },
    /// An executable graph is about to be destroyed. While it runs, its end is put off.
    ExecDestroyed {
        /// The executable graph.
        exec: u32,
    },
    /// All of an executable graph was updated from another graph (`cuGraphExecUpdate`), by a call that
    /// succeeded. What [`NodeUpdated`](Self::NodeUpdated) tells of the same call comes before it and has
    /// the same correlation id; for the other nodes nothing says which node they were updated from.
    ExecUpdated {
        /// The executable graph.
        exec: u32,
        /// The graph it was updated from.
        graph: u32,
    },
    /// A node of an executable graph was updated, and from which node: CUPTI 13.0 and later.
    NodeUpdated {
        /// The executable graph.
        exec: u32,
        /// Its node.
        node: u64,
        /// The node it was updated from, where that is known.
        original: Option<u64>,
    },
    /// A node of an executable graph was given other parameters, by a call under this event's epoch that
    /// succeeded.
    ParametersSet {
        /// The executable graph.
        exec: u32,
        /// The node, where that is known: its own, or the node that it was cloned from, by which the
        /// call names it.
        node: Option<u64>,
    },
    /// A node of an executable graph was switched on or off.
    NodeEnabled {
        /// The executable graph.
        exec: u32,
        /// The node, where that is known: the one that it was cloned from, by which the call names it.
        node: Option<u64>,
        /// Whether it runs from now on.
        enabled: bool,
    },
    /// Edges of a graph, as they were read from it: all of them, in one event or several.
    Edges {
        /// The graph.
        graph: u32,
        /// Its edges, by nodes of this graph: at most 4,096 an event.
        edges: Vec<GraphEdge>,
        /// Whether these are the last: with them all are known.
        last: bool,
    },
    /// What happened to graphs was lost: nothing that was known of them before holds for sure.
    Lost {
        /// How many events.
        count: u64,
    },
}

/// A graph changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GraphEvent {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// Its place in the order of all changes.
    pub sequence: GraphSequence,
    /// When.
    pub at: HostNanos,
    /// The thread it happened on, by its system id.
    pub tid: u64,
    /// The call inside which it happened, where that is one that lineage watches.
    pub correlation: Option<CorrelationId>,
    /// What was current on the thread: for a node that is made, who captured or built it.
    pub attribution: Attribution,
    /// What changed.
    pub change: GraphChange,
}

/// A graph was launched: which executable graph a call's operations belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GraphLaunch {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// The launching thread.
    pub thread: ThreadKey,
    /// CUPTI's number of the call.
    pub correlation: CorrelationId,
    /// When the call was entered.
    pub at: HostNanos,
    /// The executable graph, by CUPTI's id.
    pub exec: u32,
    /// The last change of any graph before the launch.
    pub sequence: GraphSequence,
}
