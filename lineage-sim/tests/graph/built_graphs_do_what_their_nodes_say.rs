use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use lineage_sim::{OperationKind, isolated};

use crate::build::{CopyParams, KernelParams, SetParams};
use crate::call;
use crate::driver::{Driver, Handle};
use crate::program::{nothing, virtual_gpu};

const NAME: &str = "built_graphs_do_what_their_nodes_say";

static CALLED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn called(user: *mut c_void) {
    CALLED.fetch_add(user as u64, Ordering::SeqCst);
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
struct HostParams {
    function: unsafe extern "C" fn(*mut c_void),
    user: *mut c_void,
}

/// Memory is set, copied to a second place and from there to the host; a host function is called behind that.
#[test]
fn sets_copies_and_host_functions() {
    isolated(&format!("{NAME}::sets_copies_and_host_functions"), || {
        let gpu = virtual_gpu();
        let driver = Driver::open();
        let library = &driver.library;
        let (from, to) = (driver.allocate(64), driver.allocate(64));
        let mut host = [0_u32; 16];
        let graph = driver.new_graph();
        let set = SetParams {
            to: from,
            pitch: 0,
            value: 5,
            element_bytes: 4,
            width: 16,
            height: 1,
        };
        let mut nodes = [nothing(); 4];
        let code = call!(library, "cuGraphAddMemsetNode"(
            &mut nodes[0] => *mut Handle, graph => Handle, std::ptr::null() => *const Handle, 0 => usize,
            &set => *const SetParams, driver.context => Handle,
        ));
        assert_eq!(code, 0);
        let copy = |source: (u32, u64), target: (u32, u64)| {
            let side = |(kind, address): (u32, u64)| {
                if kind == 1 {
                    (address, 0)
                } else {
                    (0, address)
                }
            };
            CopyParams {
                source: [0; 4],
                source_type: source.0,
                source_host: side(source).0,
                source_device: side(source).1,
                source_array: [0; 2],
                source_pitch: [0; 2],
                target: [0; 4],
                target_type: target.0,
                target_host: side(target).0,
                target_device: side(target).1,
                target_array: [0; 2],
                target_pitch: [0; 2],
                extent: [64, 1, 1],
            }
        };
        let host_address = host.as_mut_ptr().expose_provenance() as u64;
        let copies = [copy((2, from), (2, to)), copy((2, to), (1, host_address))];
        for (at, params) in copies.iter().enumerate() {
            let behind = nodes[at];
            let code = call!(library, "cuGraphAddMemcpyNode"(
                &mut nodes[at + 1] => *mut Handle, graph => Handle, &behind => *const Handle, 1 => usize,
                params => *const CopyParams, driver.context => Handle,
            ));
            assert_eq!(code, 0);
        }
        let params = HostParams {
            function: called,
            user: std::ptr::without_provenance_mut(7),
        };
        let behind = nodes[2];
        let code = call!(library, "cuGraphAddHostNode"(
            &mut nodes[3] => *mut Handle, graph => Handle, &behind => *const Handle, 1 => usize, &params => *const HostParams,
        ));
        assert_eq!(code, 0);
        let exec = driver.instantiate(graph);
        driver.launch_graph(exec, driver.stream);
        driver.launch_graph(exec, driver.stream);
        driver.synchronize();
        assert_eq!(host, [5; 16]);
        assert_eq!(CALLED.load(Ordering::SeqCst), 14);
        let kinds: Vec<_> = gpu.truth().operations.iter().map(|one| one.kind).collect();
        let once = [
            OperationKind::Set,
            OperationKind::CopyDeviceToDevice,
            OperationKind::CopyDeviceToHost,
        ];
        assert_eq!(kinds, [once, once].concat());

        let types: Vec<u32> = nodes
            .iter()
            .map(|node| {
                let mut node_type = 99;
                let code = call!(library, "cuGraphNodeGetType"(*node => Handle, &mut node_type => *mut u32));
                assert_eq!(code, 0);
                node_type
            })
            .collect();
        assert_eq!(types, [2, 1, 1, 3]);
        let mut shown = SetParams {
            to: 0,
            pitch: 9,
            value: 0,
            element_bytes: 0,
            width: 0,
            height: 0,
        };
        let code = call!(library, "cuGraphMemsetNodeGetParams"(nodes[0] => Handle, &mut shown => *mut SetParams));
        assert_eq!((code, shown), (0, set));
        // The exec sets 6 from now on; the template still 5.
        let six = SetParams { value: 6, ..set };
        let code = call!(library, "cuGraphExecMemsetNodeSetParams"(
            exec => Handle, nodes[0] => Handle, &six => *const SetParams, driver.context => Handle,
        ));
        assert_eq!(code, 0);
        driver.launch_graph(exec, driver.stream);
        driver.synchronize();
        assert_eq!(host, [6; 16]);
        driver.launch_graph(driver.instantiate(graph), driver.stream);
        driver.synchronize();
        assert_eq!(host, [5; 16]);
    });
}

#[test]
fn nodes_roots_edges_and_their_data_are_told() {
    isolated(
        &format!("{NAME}::nodes_roots_edges_and_their_data_are_told"),
        || {
            virtual_gpu();
            let driver = Driver::open();
            let library = &driver.library;
            let graph = driver.new_graph();
            let a = driver.add_kernel(graph, &[], 1);
            let b = driver.add_kernel(graph, &[a], 2);
            let c = driver.add_kernel(graph, &[a], 3);
            assert_eq!(driver.nodes(graph), [a, b, c]);
            let mut roots = [nothing(); 3];
            let mut count = 3;
            let code = call!(library, "cuGraphGetRootNodes"(graph => Handle, roots.as_mut_ptr() => *mut Handle, &mut count => *mut usize));
            assert_eq!((code, count, roots), (0, 1, [a, nothing(), nothing()]));
            // A programmatic edge: port 1, type 1.
            let data = [1_u8, 0, 1, 0, 0, 0, 0, 0];
            let add = |from: Handle, to: Handle, data: &[u8; 8]| {
                call!(library, "cuGraphAddDependencies_v2"(
                    graph => Handle, &from => *const Handle, &to => *const Handle, data.as_ptr() => *const u8, 1 => usize,
                ))
            };
            assert_eq!(add(b, c, &data), 0);
            assert_eq!(add(b, c, &data), 1, "it is there already");
            assert_eq!(
                add(b, c, &[3, 0, 0, 0, 0, 0, 0, 0]),
                1,
                "there is no such port"
            );
            let (mut from, mut to, mut edges) = ([nothing(); 4], [nothing(); 4], [[9_u8; 8]; 4]);
            let mut count = 4;
            let code = call!(library, "cuGraphGetEdges_v2"(
                graph => Handle, from.as_mut_ptr() => *mut Handle, to.as_mut_ptr() => *mut Handle,
                edges.as_mut_ptr() => *mut [u8; 8], &mut count => *mut usize,
            ));
            assert_eq!((code, count), (0, 3));
            assert_eq!(
                (from[..3].to_vec(), to[..3].to_vec()),
                (vec![a, a, b], vec![b, c, c])
            );
            assert_eq!(edges[..3], [[0; 8], [0; 8], data]);
            // LOSSY_QUERY: without a place for the data.
            let code = call!(library, "cuGraphGetEdges"(
                graph => Handle, from.as_mut_ptr() => *mut Handle, to.as_mut_ptr() => *mut Handle, &mut count => *mut usize,
            ));
            assert_eq!(code, 402);
            let mut before = [nothing(); 2];
            let mut count = 2;
            let code = call!(library, "cuGraphNodeGetDependencies"(b => Handle, before.as_mut_ptr() => *mut Handle, &mut count => *mut usize));
            assert_eq!((code, count, before[0]), (0, 1, a));
            let mut shown = KernelParams {
                function: nothing(),
                grid: [0; 3],
                block: [0; 3],
                shared: 0,
                parameters: std::ptr::null_mut(),
                extra: nothing(),
                kernel: nothing(),
                context: nothing(),
            };
            let code = call!(library, "cuGraphKernelNodeGetParams_v2"(b => Handle, &mut shown => *mut KernelParams));
            assert_eq!(
                (code, shown.function, shown.grid),
                (0, driver.function, [1; 3])
            );
            // SAFETY: the node's own list: one parameter, a number of 64 bits.
            assert_eq!(unsafe { shown.parameters.read().cast::<u64>().read() }, 2);
            // A circle cannot be instantiated.
            assert_eq!(add(c, a, &[0; 8]), 0);
            let mut exec = nothing();
            let code = call!(library, "cuGraphInstantiateWithFlags"(&mut exec => *mut Handle, graph => Handle, 0 => u64));
            assert_eq!(code, 1);
        },
    );
}

#[test]
fn child_graphs_run_inside_and_clones_stand_alone() {
    isolated(
        &format!("{NAME}::child_graphs_run_inside_and_clones_stand_alone"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let library = &driver.library;
            let inner = driver.new_graph();
            let first = driver.add_kernel(inner, &[], 2);
            driver.add_kernel(inner, &[first], 3);
            let graph = driver.new_graph();
            let begin = driver.add_kernel(graph, &[], 1);
            let mut child = nothing();
            let code = call!(library, "cuGraphAddChildGraphNode"(
                &mut child => *mut Handle, graph => Handle, &begin => *const Handle, 1 => usize, inner => Handle,
            ));
            assert_eq!(code, 0);
            driver.add_kernel(graph, &[child], 4);
            // The child was cloned: what its original becomes does not concern it.
            assert_eq!(call!(library, "cuGraphDestroy"(inner => Handle)), 0);
            let mut clone = nothing();
            assert_eq!(
                call!(library, "cuGraphClone"(&mut clone => *mut Handle, graph => Handle)),
                0
            );
            let mut found = nothing();
            let code = call!(library, "cuGraphNodeFindInClone"(&mut found => *mut Handle, begin => Handle, clone => Handle));
            assert_eq!((code, found), (0, driver.nodes(clone)[0]));
            assert_eq!(call!(library, "cuGraphDestroy"(graph => Handle)), 0);
            let exec = driver.instantiate(clone);
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            let operations = gpu.truth().operations;
            let begin_ns = operations[0].start_ns;
            let runs: Vec<_> = operations
                .iter()
                .map(|one| (one.label.unwrap(), one.start_ns - begin_ns))
                .collect();
            assert_eq!(runs, [(1, 0), (2, 10_000), (3, 20_000), (4, 30_000)]);
            let graphs: Vec<_> = operations
                .iter()
                .map(|one| one.graph.unwrap().graph_id)
                .collect();
            assert_eq!(graphs, [driver.exec_id(exec); 4]);
        },
    );
}

/// A launched exec becomes a child of what captures.
#[test]
fn a_launch_can_be_captured() {
    isolated(&format!("{NAME}::a_launch_can_be_captured"), || {
        let gpu = virtual_gpu();
        let driver = Driver::open();
        let exec = driver.instantiate(driver.captured(&[2, 3]));
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        driver.launch(1);
        driver.launch_graph(exec, driver.stream);
        driver.launch(4);
        let graph = driver.end_capture(driver.stream).unwrap();
        assert_eq!(driver.nodes(graph).len(), 3);
        driver.launch_graph(driver.instantiate(graph), driver.stream);
        driver.synchronize();
        let labels: Vec<_> = gpu
            .truth()
            .operations
            .iter()
            .map(|one| one.label.unwrap())
            .collect();
        assert_eq!(labels, [1, 2, 3, 4]);
    });
}

/// A stream's work, an event that the graph records, and one that it waits for at each launch.
#[test]
fn events_are_recorded_and_waited_for_at_each_launch() {
    isolated(
        &format!("{NAME}::events_are_recorded_and_waited_for_at_each_launch"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let other = driver.new_stream();
            let (go, done) = (driver.new_event(), driver.new_event());
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            // CU_EVENT_WAIT_EXTERNAL and CU_EVENT_RECORD_EXTERNAL
            let wait = call!(driver.library, "cuStreamWaitEvent"(driver.stream => Handle, go => Handle, 1 => u32));
            driver.launch(2);
            let record = call!(driver.library, "cuEventRecordWithFlags"(done => Handle, driver.stream => Handle, 1 => u32));
            assert_eq!((wait, record), (0, 0));
            let graph = driver.end_capture(driver.stream).unwrap();
            assert_eq!(driver.nodes(graph).len(), 3);
            let exec = driver.instantiate(graph);
            assert_eq!(driver.launch_in(other, 1), 0);
            assert_eq!(driver.record(go, other), 0);
            driver.launch_graph(exec, driver.stream);
            let third = driver.new_stream();
            assert_eq!(driver.wait(third, done), 0);
            assert_eq!(driver.launch_in(third, 3), 0);
            assert_eq!(
                call!(driver.library, "cuEventSynchronize"(done => Handle)),
                0
            );
            assert_eq!(
                call!(driver.library, "cuStreamSynchronize"(third => Handle)),
                0
            );
            let operations = gpu.truth().operations;
            let begin_ns = operations[0].start_ns;
            let runs: Vec<_> = operations
                .iter()
                .map(|one| (one.label.unwrap(), one.start_ns - begin_ns))
                .collect();
            assert_eq!(runs, [(1, 0), (2, 10_000), (3, 20_000)]);
        },
    );
}
