//! What nodes do.

use std::ffi::c_void;
use std::sync::Arc;

use lineage_sim_model::Work;

use crate::device::HostCall;
use crate::graph::memory::GraphMemory;
use crate::handles::{Handle, HandleNumber};
use crate::requests::{CopyBetween, Fill, KernelLaunch};

/// `CUgraphNodeType` of the nodes that are simulated.
#[derive(Clone)]
pub(crate) enum Content {
    Kernel(KernelNode),
    Copy(CopyBetween),
    Set(Fill),
    Host(HostCall),
    /// A graph of the node's own.
    Child(HandleNumber),
    Empty,
    WaitEvent(HandleNumber),
    RecordEvent(HandleNumber),
    /// Waits for a value in memory, or writes one.
    Value(Work),
    Allocate(Arc<GraphMemory>),
    Free(Arc<GraphMemory>),
    Conditional(Conditional),
}

/// A kernel, and where its parameters lie, as `cuGraphKernelNodeGetParams` shows them.
#[derive(Clone)]
pub(crate) struct KernelNode {
    pub(crate) launch: KernelLaunch,
    pub(crate) shown: Arc<ShownParameters>,
}

/// A copy of the parameters' values, and the list of pointers to them; valid until the node is changed or destroyed.
pub(crate) struct ShownParameters {
    list: Box<[*mut c_void]>,
    #[expect(dead_code, reason = "the list leads into it")]
    values: Box<[u8]>,
}

// SAFETY: the pointers lead into the values beside them, which nothing here writes.
unsafe impl Send for ShownParameters {}
// SAFETY: as above.
unsafe impl Sync for ShownParameters {}

impl ShownParameters {
    pub(crate) fn list(&self) -> *mut *mut c_void {
        self.list.as_ptr().cast_mut()
    }
}

impl KernelNode {
    pub(crate) fn new(launch: KernelLaunch) -> Self {
        let mut values = launch.parameters.clone();
        let start = values.as_mut_ptr();
        let parameters = launch.function.parameters.iter();
        let list = parameters
            .map(|parameter| start.wrapping_add(parameter.offset as usize).cast())
            .collect();
        Self {
            launch,
            shown: Arc::new(ShownParameters { list, values }),
        }
    }
}

/// A node whose bodies run as a value says that kernels set.
#[derive(Clone)]
pub(crate) struct Conditional {
    /// The value's handle (`CUgraphConditionalHandle`).
    pub(crate) value: u64,
    pub(crate) kind: ConditionalKind,
    /// If: run when not 0, and, if there are two, the second when 0. While: again as long as not 0. Switch: the one of that number.
    pub(crate) bodies: Vec<HandleNumber>,
    /// The list of them that the program was shown: the node's, valid until that is destroyed.
    pub(crate) shown: Arc<ShownBodies>,
}

/// The handles of a conditional node's bodies, as `CUDA_CONDITIONAL_NODE_PARAMS` shows them.
#[derive(Default)]
pub(crate) struct ShownBodies(Box<[HandleNumber]>);

impl ShownBodies {
    pub(crate) fn new(bodies: &[HandleNumber]) -> Self {
        Self(bodies.into())
    }

    /// A handle is as wide as its number.
    pub(crate) fn list(&self) -> *mut Handle {
        self.0.as_ptr().cast::<Handle>().cast_mut()
    }
}

/// `CUgraphConditionalNodeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionalKind {
    If,
    While,
    Switch,
}

impl Content {
    /// `CUgraphNodeType`.
    pub(crate) fn node_type(&self) -> u32 {
        match self {
            Self::Kernel(_) => 0,
            Self::Copy(_) => 1,
            Self::Set(_) => 2,
            Self::Host(_) => 3,
            Self::Child(_) => 4,
            Self::Empty => 5,
            Self::WaitEvent(_) => 6,
            Self::RecordEvent(_) => 7,
            Self::Value(_) => 12,
            Self::Allocate(_) => 10,
            Self::Free(_) => 11,
            Self::Conditional(_) => 13,
        }
    }

    /// The graphs that go with the node.
    pub(crate) fn inner_graphs(&self) -> &[HandleNumber] {
        match self {
            Self::Child(graph) => std::slice::from_ref(graph),
            Self::Conditional(conditional) => &conditional.bodies,
            _ => &[],
        }
    }

    pub(crate) fn inner_graphs_mut(&mut self) -> &mut [HandleNumber] {
        match self {
            Self::Child(graph) => std::slice::from_mut(graph),
            Self::Conditional(conditional) => &mut conditional.bodies,
            _ => &mut [],
        }
    }
}
