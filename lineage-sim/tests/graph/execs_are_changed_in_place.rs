use lineage_sim::isolated;

use crate::call;
use crate::driver::{Driver, Handle};
use crate::program::{nothing, virtual_gpu};

const NAME: &str = "execs_are_changed_in_place";

/// `cuGraphExecUpdate_v2`: the code, and the result and the node of `CUgraphExecUpdateResultInfo`.
fn update(driver: &Driver, exec: Handle, graph: Handle) -> (u32, u32, Handle) {
    #[repr(C)]
    struct Info {
        result: u32,
        node: Handle,
        from: Handle,
    }
    let mut info = Info {
        result: 9,
        node: nothing(),
        from: nothing(),
    };
    let code = call!(driver.library, "cuGraphExecUpdate_v2"(exec => Handle, graph => Handle, &mut info => *mut Info));
    (code, info.result, info.node)
}

fn labels(gpu: &lineage_sim::Gpu) -> Vec<u64> {
    gpu.truth()
        .operations
        .iter()
        .map(|one| one.label.unwrap())
        .collect()
}

#[test]
fn an_update_takes_the_parameters_of_another_graph() {
    isolated(
        &format!("{NAME}::an_update_takes_the_parameters_of_another_graph"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let exec = driver.instantiate(driver.captured(&[1, 2]));
            let other = driver.captured(&[3, 4]);
            driver.launch_graph(exec, driver.stream);
            assert_eq!(update(&driver, exec, other), (0, 0, nothing()));
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            assert_eq!(labels(&gpu), [1, 2, 3, 4]);
            let operations = gpu.truth().operations;
            let nodes: Vec<_> = operations.iter().map(|one| one.graph.unwrap()).collect();
            assert_eq!(nodes[0].node_id, nodes[2].node_id, "the exec's node stays");
            assert_ne!(nodes[0].source_node_id, nodes[2].source_node_id);
            assert_eq!(
                nodes[2].source_node_id,
                driver.node_id(driver.nodes(other)[0])
            );
            assert_ne!(nodes[0].capture_call_ordinal, nodes[2].capture_call_ordinal);
        },
    );
}

/// GRAPH_EXEC_UPDATE_FAILURE 910; the topology 2, a node's type 3. The exec stays as it was.
#[test]
fn an_update_that_does_not_fit_changes_nothing() {
    isolated(
        &format!("{NAME}::an_update_that_does_not_fit_changes_nothing"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let exec = driver.instantiate(driver.captured(&[1, 2]));
            assert_eq!(update(&driver, exec, driver.captured(&[3])).0, 910);
            assert_eq!(update(&driver, exec, driver.captured(&[3])).1, 2);
            let apart = driver.new_graph();
            driver.add_kernel(apart, &[], 3);
            let second = driver.add_kernel(apart, &[], 4);
            assert_eq!(update(&driver, exec, apart), (910, 2, second));
            let typed = driver.new_graph();
            let first = driver.add_kernel(typed, &[], 3);
            let mut empty = nothing();
            let code = call!(driver.library, "cuGraphAddEmptyNode"(
                &mut empty => *mut Handle, typed => Handle, &first => *const Handle, 1 => usize,
            ));
            assert_eq!(code, 0);
            assert_eq!(update(&driver, exec, typed), (910, 3, empty));
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            assert_eq!(labels(&gpu), [1, 2]);
        },
    );
}

#[test]
fn parameters_are_set_and_nodes_disabled_in_one_exec_only() {
    isolated(
        &format!("{NAME}::parameters_are_set_and_nodes_disabled_in_one_exec_only"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let graph = driver.captured(&[1, 2, 3]);
            let nodes = driver.nodes(graph);
            let (exec, other) = (driver.instantiate(graph), driver.instantiate(graph));
            assert_eq!(driver.set_label_in(exec, nodes[0], 9), 0);
            let enable = |on: u32| call!(driver.library, "cuGraphNodeSetEnabled"(exec => Handle, nodes[1] => Handle, on => u32));
            assert_eq!(enable(0), 0);
            let mut is_enabled = 9;
            let code = call!(driver.library, "cuGraphNodeGetEnabled"(exec => Handle, nodes[1] => Handle, &mut is_enabled => *mut u32));
            assert_eq!((code, is_enabled), (0, 0));
            driver.launch_graph(exec, driver.stream);
            driver.launch_graph(other, driver.stream);
            assert_eq!(enable(1), 0);
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            assert_eq!(labels(&gpu), [9, 3, 1, 2, 3, 9, 2, 3]);
            // A node of another graph, and an exec that is none.
            let stranger = driver.nodes(driver.captured(&[1]))[0];
            assert_eq!(driver.set_label_in(exec, stranger, 1), 1);
            assert_eq!(driver.set_label_in(graph, nodes[0], 1), 1);
        },
    );
}

/// A child of another exec's shape takes its place; one of another shape is refused, and changes nothing.
#[test]
fn a_child_is_exchanged_for_one_of_its_shape() {
    isolated(
        &format!("{NAME}::a_child_is_exchanged_for_one_of_its_shape"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let library = &driver.library;
            let graph = driver.new_graph();
            let before = driver.add_kernel(graph, &[], 1);
            let mut child = nothing();
            let of = driver.captured(&[2, 3]);
            let added = call!(library, "cuGraphAddChildGraphNode"(
                &mut child => *mut Handle, graph => Handle, &before => *const Handle, 1 => usize, of => Handle,
            ));
            assert_eq!(added, 0);
            let exec = driver.instantiate(graph);
            let exchange = |node: Handle, of: Handle| call!(library, "cuGraphExecChildGraphNodeSetParams"(exec => Handle, node => Handle, of => Handle));
            assert_eq!(exchange(child, driver.captured(&[7])), 1, "one node fewer");
            assert_eq!(
                exchange(before, driver.captured(&[7, 8])),
                1,
                "that is no child"
            );
            driver.launch_graph(exec, driver.stream);
            let other = driver.captured(&[7, 8]);
            assert_eq!(exchange(child, other), 0);
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            assert_eq!(labels(&gpu), [1, 2, 3, 1, 7, 8]);
            let nodes: Vec<_> = gpu
                .truth()
                .operations
                .iter()
                .map(|one| one.graph.unwrap())
                .collect();
            assert_eq!(nodes[1].node_id, nodes[4].node_id, "the exec's nodes stay");
            assert_eq!(
                nodes[4].source_node_id,
                driver.node_id(driver.nodes(other)[0])
            );
        },
    );
}
