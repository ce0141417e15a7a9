//! What is read of graphs: callbacks, their data, functions and their parameters.

use std::collections::BTreeMap;

use lineage_cupti::graph::{
    self, FIRST_PARAMETER, GraphCall, NODE_PARAMS_CHILD, NODE_PARAMS_TYPE, SECOND_PARAMETER,
    THIRD_PARAMETER,
};
use lineage_cupti::sys::codes::{NODE_TYPES, domain, edge, kind, resource};
use lineage_cupti::sys::layout::{graph_data, graph_trace, resource_data};

use super::Claims;

pub(super) fn claims(claims: &mut Claims) {
    codes(claims);
    structs(claims);
    parameters(claims);
}

fn codes(claims: &mut Claims) {
    for (name, ours) in [
        ("CB_DOMAIN_RESOURCE", domain::RESOURCE),
        ("ACTIVITY_KIND_GRAPH_TRACE", kind::GRAPH_TRACE),
        ("CBID_RESOURCE_GRAPH_CREATED", resource::GRAPH_CREATED),
        (
            "CBID_RESOURCE_GRAPH_DESTROY_STARTING",
            resource::GRAPH_DESTROY_STARTING,
        ),
        ("CBID_RESOURCE_GRAPH_CLONED", resource::GRAPH_CLONED),
        ("CBID_RESOURCE_GRAPHNODE_CREATED", resource::NODE_CREATED),
        (
            "CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING",
            resource::NODE_DESTROY_STARTING,
        ),
        ("CBID_RESOURCE_GRAPHEXEC_CREATED", resource::EXEC_CREATED),
        (
            "CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING",
            resource::EXEC_DESTROY_STARTING,
        ),
        ("CBID_RESOURCE_GRAPHNODE_CLONED", resource::NODE_CLONED),
    ] {
        claims.value(&format!("CUPTI_{name}"), ours);
    }
    for (name, ours) in [
        ("UPDATED", resource::NODE_UPDATED),
        ("SET_PARAMS", resource::NODE_SET_PARAMS),
    ] {
        let name = format!("CUPTI_CBID_RESOURCE_GRAPH_NODE_{name}");
        claims.0.push((name, ours.into(), 130_000));
    }
    for (number, name) in (0..).zip(NODE_TYPES) {
        // The last came later.
        let since = if name == "MEMCPY_BATCH" { 130_500 } else { 0 };
        let name = format!("CU_GRAPH_NODE_TYPE_{name}");
        claims.0.push((name, number, since));
    }
    for (name, ours) in [
        ("KERNEL_NODE_PORT_DEFAULT", edge::PORT_DEFAULT),
        ("KERNEL_NODE_PORT_PROGRAMMATIC", edge::PORT_PROGRAMMATIC),
        ("KERNEL_NODE_PORT_LAUNCH_ORDER", edge::PORT_LAUNCH_ORDER),
        ("DEPENDENCY_TYPE_DEFAULT", edge::TYPE_DEFAULT),
        ("DEPENDENCY_TYPE_PROGRAMMATIC", edge::TYPE_PROGRAMMATIC),
    ] {
        claims.value(&format!("CU_GRAPH_{name}"), ours.into());
    }
}

fn structs(claims: &mut Claims) {
    let resource = "CUpti_ResourceData";
    let descriptor = ("resourceDescriptor", resource_data::DESCRIPTOR);
    claims.offsets(0, resource, &[descriptor]);
    claims.size(0, resource, resource_data::SIZE);

    let data = "CUpti_GraphData";
    claims.offsets(
        0,
        data,
        &[
            ("graph", graph_data::GRAPH),
            ("originalGraph", graph_data::ORIGINAL_GRAPH),
            ("node", graph_data::NODE),
            ("originalNode", graph_data::ORIGINAL_NODE),
            ("nodeType", graph_data::NODE_TYPE),
            ("graphExec", graph_data::EXEC),
        ],
    );
    claims.size(0, data, graph_data::SIZE);
    claims.width(data, "nodeType", 4);

    let trace = "CUpti_ActivityGraphTrace2";
    claims.offsets(
        0,
        trace,
        &[
            ("kind", 0),
            ("correlationId", graph_trace::CORRELATION_ID),
            ("start", graph_trace::START),
            ("end", graph_trace::END),
            ("deviceId", graph_trace::DEVICE_ID),
            ("graphId", graph_trace::GRAPH_ID),
            ("contextId", graph_trace::CONTEXT_ID),
            ("streamId", graph_trace::STREAM_ID),
            // The older version ends here.
            ("endDeviceId", graph_trace::SIZE_1),
        ],
    );

    // What `cuGraphGetEdges_v2` fills.
    let edge = "CUgraphEdgeData";
    claims.offsets(0, edge, &[("from_port", 0), ("to_port", 1), ("type", 2)]);
    claims.size(0, edge, 8);

    let node = "CUgraphNodeParams";
    let fields = [
        ("type", NODE_PARAMS_TYPE),
        ("graph.graph", NODE_PARAMS_CHILD),
    ];
    claims.offsets(0, node, &fields);
    claims.width(node, "type", 4);
}

/// Where executable graph, graph and node are in the parameters.
fn parameters(claims: &mut Claims) {
    for function in &graph::FUNCTIONS {
        let since = if function.name == "cuGraphAddNode_v3" {
            130_000
        } else {
            0
        };
        let of = format!("{}_params", function.name);
        let (exec, second) = (("hGraphExec", FIRST_PARAMETER), SECOND_PARAMETER);
        let node = ("hNode", second);
        let fields = match function.does {
            GraphCall::Instantiates | GraphCall::Clones => vec![],
            GraphCall::AddsNode => vec![("hGraph", second)],
            GraphCall::UpdatesExec => vec![exec, ("hGraph", second)],
            GraphCall::UpdatesChild => vec![exec, node, ("childGraph", THIRD_PARAMETER)],
            GraphCall::SetsParameters => vec![exec, node],
            GraphCall::SetsAnyParameters => vec![exec, node, ("nodeParams", THIRD_PARAMETER)],
            GraphCall::EnablesNode => vec![exec, node, ("isEnabled", THIRD_PARAMETER)],
            other => panic!("a call this test does not know: {other:?}"),
        };
        claims.offsets(since, &of, &fields);
    }
    claims.width("cuGraphNodeSetEnabled_params", "isEnabled", 4);
    // NVIDIA's names differ, what they name does not.
    for (launch, exec) in [
        ("cuGraphLaunch", "hGraph"),
        ("cuGraphLaunch_ptsz", "hGraphExec"),
    ] {
        claims.offsets(0, &format!("{launch}_params"), &[(exec, FIRST_PARAMETER)]);
    }
}

/// What a function does, by its name; written apart from the table. `None`: it changes no executable
/// graph, and copies none.
fn does(name: &str) -> Option<GraphCall> {
    let name = name.split("_v").next()?.split("_ptsz").next()?;
    let exec = name.strip_prefix("cuGraphExec");
    Some(match name {
        "cuGraphInstantiate" | "cuGraphInstantiateWithFlags" | "cuGraphInstantiateWithParams" => {
            GraphCall::Instantiates
        }
        "cuGraphClone" => GraphCall::Clones,
        "cuGraphAddNode" | "cuGraphAddChildGraphNode" => GraphCall::AddsNode,
        "cuGraphExecUpdate" => GraphCall::UpdatesExec,
        "cuGraphExecChildGraphNodeSetParams" => GraphCall::UpdatesChild,
        "cuGraphExecNodeSetParams" => GraphCall::SetsAnyParameters,
        "cuGraphNodeSetEnabled" => GraphCall::EnablesNode,
        _ if exec.is_some_and(|exec| exec.contains("NodeSet")) => GraphCall::SetsParameters,
        _ => return None,
    })
}

/// Holds the table to the ids of a header that ends before `end`.
pub(super) fn compare(theirs: &BTreeMap<String, u32>, end: u32) {
    for function in graph::FUNCTIONS.iter().filter(|ours| ours.cbid < end) {
        assert_eq!(theirs.get(function.name), Some(&function.cbid));
    }
    for (name, cbid) in theirs.iter().filter(|(_, cbid)| **cbid < end) {
        let ours = graph::function_of(*cbid).map(|function| function.does);
        assert_eq!(ours, does(name), "{name} ({cbid})");
    }
}
