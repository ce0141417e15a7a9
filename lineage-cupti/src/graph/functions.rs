//! The driver's functions that change graphs: ids and names as in `cupti_driver_cbid.h` of CUDA 13.5.

/// A function of the driver that changes graphs. It asks for no work: its calls are watched, and no
/// record of them is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphFunction {
    /// CUPTI's callback id.
    pub cbid: u32,
    /// Its name, as `cuptiGetCallbackName` gives it.
    pub name: &'static str,
    /// What a call does.
    pub does: GraphCall,
}

/// What a call of such a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphCall {
    /// Copies a graph into an executable one: nodes that are made meanwhile are nobody's making.
    Instantiates,
    /// Copies a graph: likewise.
    Clones,
    /// Adds a node to the graph in the second parameter. With a child graph, that is copied into
    /// another graph: nodes that are made there are nobody's making.
    AddsNode,
    /// Updates the executable graph in the first parameter from the graph in the second.
    UpdatesExec,
    /// Gives a node of the executable graph in the first parameter another child: that graph is the third
    /// parameter.
    UpdatesChild,
    /// Gives a node of the executable graph in the first parameter other parameters; the second
    /// parameter is the node that it was cloned from.
    SetsParameters,
    /// Likewise; where the `CUgraphNodeParams` in the third parameter are a child graph's, it is given
    /// another child.
    SetsAnyParameters,
    /// Switches a node on or off: parameters as above, and the third says which.
    EnablesNode,
}

/// Offset of the first parameter, in each of these functions' structs of `generated_cuda_meta.h`.
pub const FIRST_PARAMETER: usize = 0;
/// Offset of the second parameter.
pub const SECOND_PARAMETER: usize = 8;
/// Offset of the third parameter; of `cuGraphNodeSetEnabled` that is an `unsigned int`.
pub const THIRD_PARAMETER: usize = 16;
/// Offset of the type in a `CUgraphNodeParams`.
pub const NODE_PARAMS_TYPE: usize = 0;
/// Offset of a child graph in it.
pub const NODE_PARAMS_CHILD: usize = 16;

const fn function(cbid: u32, name: &'static str, does: GraphCall) -> GraphFunction {
    GraphFunction { cbid, name, does }
}

/// All of them, in order of their ids.
pub static FUNCTIONS: [GraphFunction; 25] = {
    use GraphCall::{
        AddsNode, Clones, EnablesNode, Instantiates, SetsAnyParameters, SetsParameters,
        UpdatesChild, UpdatesExec,
    };
    [
        function(513, "cuGraphInstantiate", Instantiates),
        function(523, "cuGraphClone", Clones),
        function(525, "cuGraphAddChildGraphNode", AddsNode),
        function(538, "cuGraphExecKernelNodeSetParams", SetsParameters),
        function(561, "cuGraphExecUpdate", UpdatesExec),
        function(562, "cuGraphExecMemcpyNodeSetParams", SetsParameters),
        function(563, "cuGraphExecMemsetNodeSetParams", SetsParameters),
        function(564, "cuGraphExecHostNodeSetParams", SetsParameters),
        function(578, "cuGraphInstantiate_v2", Instantiates),
        function(586, "cuGraphExecChildGraphNodeSetParams", UpdatesChild),
        function(595, "cuGraphExecEventRecordNodeSetEvent", SetsParameters),
        function(596, "cuGraphExecEventWaitNodeSetEvent", SetsParameters),
        function(
            624,
            "cuGraphExecExternalSemaphoresSignalNodeSetParams",
            SetsParameters,
        ),
        function(
            625,
            "cuGraphExecExternalSemaphoresWaitNodeSetParams",
            SetsParameters,
        ),
        function(643, "cuGraphInstantiateWithFlags", Instantiates),
        function(650, "cuGraphNodeSetEnabled", EnablesNode),
        function(656, "cuGraphInstantiateWithParams", Instantiates),
        function(657, "cuGraphInstantiateWithParams_ptsz", Instantiates),
        function(672, "cuGraphExecBatchMemOpNodeSetParams", SetsParameters),
        function(692, "cuGraphExecKernelNodeSetParams_v2", SetsParameters),
        function(696, "cuGraphExecUpdate_v2", UpdatesExec),
        function(712, "cuGraphAddNode", AddsNode),
        function(714, "cuGraphExecNodeSetParams", SetsAnyParameters),
        function(723, "cuGraphAddNode_v2", AddsNode),
        function(863, "cuGraphAddNode_v3", AddsNode),
    ]
};

/// The function of this id; `None` if it does not change graphs, or came after CUDA 13.5.
pub fn function_of(cbid: u32) -> Option<&'static GraphFunction> {
    let place = FUNCTIONS.binary_search_by_key(&cbid, |function| function.cbid);
    FUNCTIONS.get(place.ok()?)
}
