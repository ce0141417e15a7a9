//! Rows: what the correlator concludes. A row is an operation, or a call that has none.

use crate::evidence::{Evidence, Rule, Why};
use crate::fault::FaultCode;
use crate::id::{
    Attribution, HostNanos, LaunchEpoch, ProcessOrdinal, TaskId, UnwrappedCorrelationId,
};
use crate::observation::{ApiId, Operation};

/// The sources that named an epoch for a call (joins: external correlation, our own callback,
/// containment in a scope), and whether the epoch is known to have reached the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct JoinSources {
    /// CUPTI's external correlation record of our kind. Observed.
    pub external: Option<Attribution>,
    /// Our own read of the current epoch in the API callback. Observed.
    pub callback: Option<Attribution>,
    /// The call lies inside one scope of its thread. Inferred.
    pub containment: Option<Attribution>,
    /// Whether recorded edges bring the epoch to this thread or task; `None` if that cannot be
    /// said.
    pub reachable: Option<bool>,
}

impl JoinSources {
    /// How many observed sources named something.
    pub fn observed(&self) -> usize {
        usize::from(self.external.is_some()) + usize::from(self.callback.is_some())
    }
}

/// Why a call belongs to no epoch without that being a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Unattributed {
    /// It was made inside `detached`.
    Detached,
    /// It was made before the first declaration.
    BeforeFirstDeclaration,
    /// Its thread never saw lineage: a library's helper.
    ForeignThread,
    /// The driver launched it for itself.
    InternalLaunch,
    /// Its call lies before or after what was recorded, so nothing can be said of it.
    OutsideRecording,
    /// No evidence of any epoch exists: the recording has none.
    NoEpochEvidence,
}

/// To whom a row's work belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Binding {
    /// To this epoch.
    Bound(LaunchEpoch),
    /// On purpose or by nature to none.
    Unattributed(Unattributed),
    /// Two observed sources name different epochs: both are kept, neither is chosen.
    Disputed(LaunchEpoch, LaunchEpoch),
    /// It should belong to an epoch, and which is lost.
    Lost,
}

/// The call of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RowCall {
    /// The CUPTI session's number in its process, from 1.
    pub session: u32,
    /// Its number, unwrapped.
    pub correlation: UnwrappedCorrelationId,
    /// Which function.
    pub api: ApiId,
    /// The calling thread's system id.
    pub tid: u64,
    /// The task that made it, where known.
    pub task: Option<TaskId>,
    /// The function's own result code; 0 is success.
    pub result: u32,
    /// Whether it was made inside a launch boundary; `None` if only CUPTI saw it.
    pub in_boundary: Option<bool>,
}

/// The stages of a row, each with how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stages {
    /// The epoch was declared.
    pub declared: Evidence,
    /// The version had all it needed.
    pub ready: Evidence,
    /// The scope of the call was entered.
    pub scope_enter: Evidence,
    /// The call was entered.
    pub api_enter: Evidence,
    /// The call returned.
    pub api_exit: Evidence,
    /// The work was put into a command buffer.
    pub queued: Evidence,
    /// The command buffer was given to the device.
    pub submitted: Evidence,
    /// The work began.
    pub start: Evidence,
    /// The work ended.
    pub end: Evidence,
}

/// Who built a graph's node: the call that captured or made the node that the executed one was
/// cloned from. The epoch of the *replay* is the row's binding; this is the epoch of the *capture*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Template {
    /// It is known.
    Known(TemplateNode),
    /// It follows by a rule, without events of the node itself.
    Inferred {
        /// The node.
        node: TemplateNode,
        /// By which rule.
        rule: Rule,
    },
    /// It is not known: bound to nothing, rather than by a guess.
    Unknown {
        /// Why.
        why: Why,
    },
}

/// A node as it was captured or made by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TemplateNode {
    /// Its graph, by CUPTI's id; 0 where it is inferred in a recording without ids.
    pub graph: u32,
    /// The node, by CUPTI's id; 0 likewise.
    pub node: u64,
    /// Its place among the nodes of its graph in the order in which they were made, from 1; 0 where the
    /// graph is older than the session, or changes of it were lost.
    pub order: u32,
    /// What was current when it was made, or when its copy in the executable graph was last given other
    /// parameters. Who gave the node itself other parameters is not watched.
    pub capture: Attribution,
    /// The call that it was captured from, where lineage watched it.
    pub captured_by: Option<UnwrappedCorrelationId>,
    /// When it was made.
    pub at: HostNanos,
}

/// The replay that an operation belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RowGraph {
    /// The executable graph, by CUPTI's id; `None` if the launch was not seen.
    pub exec: Option<u32>,
    /// Which of the executable graphs that had this id in turn, from 1; 0 where that is not known, as of
    /// one that is older than the session.
    pub generation: u32,
    /// Number of this launch of the executable graph, from 1; `None` where earlier launches may have
    /// been missed.
    pub replay: Option<u64>,
    /// How often this node has run in this launch, from 1: more than once in the body of a loop, in
    /// the order of the starts. 0 of a call without an operation.
    pub iteration: u32,
    /// Who built the node; of a row for the whole of a launch not visible, of a call without an
    /// operation not applicable.
    pub template: Template,
}

/// One row of the ledger.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Row {
    /// The process.
    pub process: ProcessOrdinal,
    /// The call; `None` for an operation whose call is lost or has none.
    pub call: Option<RowCall>,
    /// The operation; `None` for a call that has none.
    pub operation: Option<Operation>,
    /// The replay it belongs to, if it ran in a graph.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub graph: Option<RowGraph>,
    /// To whom it belongs.
    pub binding: Binding,
    /// By which sources.
    pub sources: JoinSources,
    /// Its stages.
    pub stages: Stages,
    /// What is wrong with it.
    pub faults: Vec<FaultCode>,
    /// It was bound to an epoch that had been retired by then: information, not a fault.
    pub after_retirement: bool,
    /// An earlier row said that this call had no operation, or that this operation had no call;
    /// this one takes its place.
    pub supersedes: bool,
}

/// A fault that belongs to no row: a handoff, an epoch, a count of dropped records.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LooseFault {
    /// The process.
    pub process: ProcessOrdinal,
    /// The code.
    pub code: FaultCode,
    /// The epoch it is about, if any.
    pub epoch: Option<LaunchEpoch>,
    /// When, if it has a time.
    pub at: Option<HostNanos>,
    /// How many it stands for; 1 but for counts of dropped records.
    pub count: u64,
    /// What happened, for a person.
    pub detail: String,
}
