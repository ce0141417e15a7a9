use lineage_sim::{DependencyKind, isolated};

use crate::call;
use crate::driver::{Driver, Handle};
use crate::program::virtual_gpu;

const NAME: &str = "branches_overlap_and_join";

/// 1 on the first stream; 2 behind it there, 3 beside that on a second; 4 behind both. All of 10 µs: 0, 10, 10, 20.
#[test]
fn a_fork_over_an_event_and_its_join() {
    isolated(
        &format!("{NAME}::a_fork_over_an_event_and_its_join"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let side = driver.new_stream();
            let (fork, join) = (driver.new_event(), driver.new_event());
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            driver.launch(1);
            assert_eq!(driver.record(fork, driver.stream), 0);
            assert_eq!(driver.wait(side, fork), 0);
            driver.launch(2);
            assert_eq!(driver.launch_in(side, 3), 0);
            assert_eq!(driver.record(join, side), 0);
            assert_eq!(driver.wait(driver.stream, join), 0);
            driver.launch(4);
            let graph = driver.end_capture(driver.stream).unwrap();
            assert_eq!(driver.nodes(graph).len(), 4);
            let exec = driver.instantiate(graph);
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            let operations = gpu.truth().operations;
            let begin_ns = operations[0].start_ns;
            let mut starts: Vec<_> = operations
                .iter()
                .map(|one| (one.label.unwrap(), one.start_ns - begin_ns))
                .collect();
            starts.sort_unstable();
            assert_eq!(starts, [(1, 0), (2, 10_000), (3, 10_000), (4, 20_000)]);
            let last = operations.iter().find(|one| one.label == Some(4)).unwrap();
            assert_eq!(last.last_dependency, DependencyKind::GraphEdge);
        },
    );
}

/// The forked stream's work is captured by another thread; the one that began ends it.
#[test]
fn a_fork_goes_across_threads() {
    isolated(&format!("{NAME}::a_fork_goes_across_threads"), || {
        let gpu = virtual_gpu();
        let driver = Driver::open();
        let side = driver.new_stream();
        let (fork, join) = (driver.new_event(), driver.new_event());
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        assert_eq!(driver.record(fork, driver.stream), 0);
        assert_eq!(driver.wait(side, fork), 0);
        let side_number = side as usize;
        std::thread::scope(|scope| {
            let driver = &driver;
            scope.spawn(move || {
                driver.bind();
                let side = std::ptr::without_provenance_mut(side_number);
                assert_eq!(driver.launch_in(side, 5), 0);
            });
        });
        assert_eq!(driver.record(join, side), 0);
        assert_eq!(driver.wait(driver.stream, join), 0);
        let graph = driver.end_capture(driver.stream).unwrap();
        let exec = driver.instantiate(graph);
        driver.launch_graph(exec, driver.stream);
        driver.synchronize();
        let truth = gpu.truth();
        let node = truth.operations[0].graph.unwrap();
        let captured = truth.call(node.capture_call_ordinal.unwrap()).unwrap();
        assert_ne!(captured.thread_id, truth.operations[0].thread_id);
    });
}

/// `CU_STREAM_ADD_CAPTURE_DEPENDENCIES` 0 and `…_SET_…` 1. A node that the program added itself: the next one is behind both; then a set puts
/// the one after that behind the first only. 10 µs each: 1 and 9 at 0, 2 at 10, 3 at 10.
#[test]
fn what_the_next_node_is_behind_can_be_changed() {
    isolated(
        &format!("{NAME}::what_the_next_node_is_behind_can_be_changed"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let library = &driver.library;
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            driver.launch(1);
            let (mut status, mut id, mut graph) = (9_u32, 0_u64, std::ptr::null_mut());
            let (mut list, mut count) = (std::ptr::null::<Handle>(), 0_usize);
            let asked = call!(library, "cuStreamGetCaptureInfo_v2"(
                driver.stream => Handle, &mut status => *mut u32, &mut id => *mut u64, &mut graph => *mut Handle,
                &mut list => *mut *const Handle, &mut count => *mut usize,
            ));
            assert_eq!((asked, status, count), (0, 1, 1));
            // SAFETY: the answer has one node.
            let first = unsafe { list.read() };
            let own = driver.add_kernel(graph, &[], 9);
            let update = |node: Handle, flags: u32| {
                call!(library, "cuStreamUpdateCaptureDependencies"(
                    driver.stream => Handle, &node => *const Handle, 1 => usize, flags => u32,
                ))
            };
            assert_eq!(update(own, 0), 0);
            driver.launch(2);
            assert_eq!(update(first, 1), 0);
            driver.launch(3);
            // No such flag; a node of another graph; a stream that does not capture (CUDA_ERROR_ILLEGAL_STATE 401).
            assert_eq!(update(first, 2), 1);
            let stranger = driver.add_kernel(driver.new_graph(), &[], 1);
            assert_eq!(update(stranger, 0), 1);
            let side = driver.new_stream();
            let elsewhere = call!(library, "cuStreamUpdateCaptureDependencies"(
                side => Handle, &first => *const Handle, 1 => usize, 0 => u32,
            ));
            assert_eq!(elsewhere, 401);
            let exec = driver.instantiate(driver.end_capture(driver.stream).unwrap());
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            let operations = gpu.truth().operations;
            let begin_ns = operations.iter().map(|one| one.start_ns).min().unwrap();
            let mut starts: Vec<_> = operations
                .iter()
                .map(|one| (one.label.unwrap(), one.start_ns - begin_ns))
                .collect();
            starts.sort_unstable();
            assert_eq!(starts, [(1, 0), (2, 10_000), (3, 10_000), (9, 0)]);
            assert_eq!(driver.edges(graph).len(), 3, "9 to 2, 1 to 2, 1 to 3");
        },
    );
}

/// A captured wait for a value, and a captured write of one: nodes of type 12 (`CU_GRAPH_NODE_TYPE_BATCH_MEM_OP`). The second kernel waits for what another
/// stream writes behind its kernel of 10 µs, at each launch anew, because the graph writes 0 again. Several in one call are refused (900).
#[test]
fn values_are_waited_for_and_written_by_nodes() {
    isolated(
        &format!("{NAME}::values_are_waited_for_and_written_by_nodes"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let library = &driver.library;
            let (value, side) = (driver.allocate(4), driver.new_stream());
            let write = |stream: Handle, number: u32| {
                let code = call!(library, "cuStreamWriteValue32_v2"(stream => Handle, value => u64, number => u32, 0 => u32));
                assert_eq!(code, 0);
            };
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            driver.launch(1);
            let waited = call!(library, "cuStreamWaitValue32_v2"(driver.stream => Handle, value => u64, 1 => u32, 1 => u32));
            assert_eq!(waited, 0);
            driver.launch(2);
            write(driver.stream, 0);
            let graph = driver.end_capture(driver.stream).unwrap();
            let types: Vec<u32> = driver
                .nodes(graph)
                .into_iter()
                .map(|node| {
                    let mut of = 99;
                    assert_eq!(
                        call!(library, "cuGraphNodeGetType"(node => Handle, &mut of => *mut u32)),
                        0
                    );
                    of
                })
                .collect();
            assert_eq!(types, [0, 12, 0, 12]);
            let exec = driver.instantiate(graph);
            for _ in 0..2 {
                driver.launch_graph(exec, driver.stream);
                assert_eq!(driver.launch_in(side, 9), 0);
                assert_eq!(driver.launch_in(side, 9), 0);
                write(side, 1);
                driver.synchronize();
                let operations = gpu.truth().operations;
                let of = |label: u64| {
                    operations
                        .iter()
                        .rfind(|one| one.label == Some(label))
                        .unwrap()
                };
                assert_eq!(of(2).start_ns, of(9).end_ns, "behind the write");
                assert_eq!(of(2).start_ns - of(1).end_ns, 10_000);
                assert_eq!(of(2).last_dependency, DependencyKind::Semaphore);
            }
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            let none = [0_u64; 12];
            let batch = call!(library, "cuStreamBatchMemOp_v2"(driver.stream => Handle, 2 => u32, none.as_ptr() => *const u64, 0 => u32));
            assert_eq!(batch, 900);
            assert_eq!(driver.end_capture(driver.stream), Err(901));
        },
    );
}
