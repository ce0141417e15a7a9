use lineage_sim::{Cause, DependencyKind, Settings, isolated};

use crate::call;
use crate::driver::{Driver, Handle};
use crate::program::{virtual_gpu, virtual_gpu_with};

const NAME: &str = "a_capture_is_replayed_as_often_as_launched";

#[test]
fn nothing_runs_while_it_is_captured_and_everything_at_each_launch() {
    isolated(
        &format!("{NAME}::nothing_runs_while_it_is_captured_and_everything_at_each_launch"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let graph = driver.captured(&[7, 8, 9]);
            driver.synchronize();
            assert_eq!(gpu.truth().operations.len(), 0, "nothing runs in a capture");
            let captured: Vec<u64> = gpu.truth().calls.iter().map(|call| call.ordinal).collect();
            assert!(gpu.truth().calls.iter().all(|call| call.operations == 0));

            let exec = driver.instantiate(graph);
            driver.launch_graph(exec, driver.stream);
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            let truth = gpu.truth();
            let labels: Vec<_> = truth.operations.iter().map(|one| one.label).collect();
            assert_eq!(labels, [7, 8, 9, 7, 8, 9].map(Some));
            let launches: Vec<_> = truth.calls[3..]
                .iter()
                .map(|call| (call.ordinal, call.operations))
                .collect();
            assert_eq!(
                launches.iter().map(|launch| launch.1).collect::<Vec<_>>(),
                [3, 3]
            );
            for (at, operation) in truth.operations.iter().enumerate() {
                let node = operation.graph.expect("it was a node");
                assert_eq!(
                    operation.call_ordinal,
                    launches[at / 3].0,
                    "the replay's call"
                );
                assert_eq!(
                    node.capture_call_ordinal,
                    Some(captured[at % 3]),
                    "the captured call"
                );
                assert_eq!(node.launch as usize, at / 3 + 1);
                assert_eq!(node.graph_id, driver.exec_id(exec));
                assert_eq!(node.node_id >> 32, u64::from(node.graph_id));
            }
            // One after the other, 10 µs each, without a gap.
            let start_ns = truth.operations[0].start_ns;
            for (at, operation) in truth.operations.iter().enumerate() {
                assert_eq!(operation.start_ns, start_ns + 10_000 * at as u64);
            }
            assert_eq!(gpu.counts().operations_pending, 0);
        },
    );
}

#[test]
fn launches_of_one_exec_never_overlap_and_those_of_two_do() {
    isolated(
        &format!("{NAME}::launches_of_one_exec_never_overlap_and_those_of_two_do"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let other = driver.new_stream();
            let graph = driver.captured(&[1]);
            let (first, second) = (driver.instantiate(graph), driver.instantiate(graph));
            assert_ne!(driver.exec_id(first), driver.exec_id(second));
            for (exec, stream) in [(first, driver.stream), (first, other), (second, other)] {
                driver.launch_graph(exec, stream);
            }
            let third = driver.new_stream();
            driver.launch_graph(second, third);
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            let operations = gpu.truth().operations;
            let begin_ns = operations[0].start_ns;
            let starts: Vec<u64> = operations
                .iter()
                .map(|one| one.start_ns - begin_ns)
                .collect();
            // The second launch is behind the first one's end, in another stream; the third behind its stream; the fourth behind
            // its exec's first launch.
            assert_eq!(starts, [0, 10_000, 20_000, 30_000]);
            assert_eq!(operations[1].last_dependency, DependencyKind::GraphExec);
            assert_eq!(
                operations[1].dependency_ordinal,
                Some(operations[0].ordinal)
            );
            assert_eq!(operations[2].last_dependency, DependencyKind::Stream);
            assert_eq!(operations[3].last_dependency, DependencyKind::GraphExec);
        },
    );
}

#[test]
fn template_and_exec_may_go_while_a_launch_is_under_way() {
    isolated(
        &format!("{NAME}::template_and_exec_may_go_while_a_launch_is_under_way"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let graph = driver.captured(&[1, 2]);
            let exec = driver.instantiate(graph);
            assert_eq!(call!(driver.library, "cuGraphDestroy"(graph => Handle)), 0);
            driver.launch_graph(exec, driver.stream);
            assert_eq!(
                call!(driver.library, "cuGraphExecDestroy"(exec => Handle)),
                0
            );
            assert_eq!(
                call!(driver.library, "cuGraphLaunch"(exec => Handle, driver.stream => Handle)),
                1
            );
            assert_eq!(call!(driver.library, "cuGraphDestroy"(graph => Handle)), 1);
            driver.synchronize();
            assert_eq!(gpu.truth().operations.len(), 2);
        },
    );
}

#[test]
fn several_threads_capture_on_their_own_streams_at_once() {
    isolated(
        &format!("{NAME}::several_threads_capture_on_their_own_streams_at_once"),
        || {
            let gpu = lineage_sim::load(lineage_sim::Config::default()).unwrap();
            gpu.kernel("work").label_argument(0).timed().unwrap();
            let driver = Driver::open();
            std::thread::scope(|scope| {
                for thread in 0..8_u64 {
                    let driver = &driver;
                    scope.spawn(move || {
                        driver.bind();
                        let stream = driver.new_stream();
                        for round in 0..20 {
                            // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                            assert_eq!(driver.begin_capture(stream, 1), 0);
                            for node in 0..5 {
                                let label = thread << 32 | round << 16 | node;
                                assert_eq!(driver.launch_in(stream, label), 0);
                            }
                            let graph = driver.end_capture(stream).unwrap();
                            let exec = driver.instantiate(graph);
                            driver.launch_graph(exec, stream);
                            assert_eq!(
                                call!(driver.library, "cuGraphExecDestroy"(exec => Handle)),
                                0
                            );
                            assert_eq!(call!(driver.library, "cuGraphDestroy"(graph => Handle)), 0);
                        }
                        assert_eq!(
                            call!(driver.library, "cuStreamSynchronize"(stream => Handle)),
                            0
                        );
                    });
                }
            });
            let truth = gpu.truth();
            assert_eq!(truth.operations.len(), 8 * 20 * 5);
            for operation in &truth.operations {
                let captured = operation.graph.and_then(|node| node.capture_call_ordinal);
                let captured = truth.call(captured.expect("it was captured")).unwrap();
                assert_eq!(captured.thread_id, operation.thread_id);
            }
        },
    );
}

/// 1 µs for a call, 2 more where it asks for work, and 0.5 for each of three nodes: a launch takes 4.5, the first kernel starts when it is queued then,
/// and the truth says that the host was why. An instantiation takes 1.
#[test]
fn a_launch_takes_host_time_for_each_node() {
    isolated(
        &format!("{NAME}::a_launch_takes_host_time_for_each_node"),
        || {
            let settings = Settings::default()
                .call_ns(1_000)
                .work_call_ns(2_000)
                .graph_node_ns(500);
            let gpu = virtual_gpu_with(settings);
            let driver = Driver::open();
            let graph = driver.captured(&[1, 2, 3]);
            let begin_ns = gpu.now_ns();
            let exec = driver.instantiate(graph);
            assert_eq!(gpu.now_ns() - begin_ns, 1_000);
            let begin_ns = gpu.now_ns();
            driver.launch_graph(exec, driver.stream);
            assert_eq!(gpu.now_ns() - begin_ns, 1_000 + 2_000 + 3 * 500);
            driver.synchronize();
            let truth = gpu.truth();
            let call = truth.calls.last().unwrap();
            assert_eq!(call.end_ns - call.start_ns, 4_500);
            let first = &truth.operations[0];
            assert_eq!(first.start_ns - call.start_ns, 4_500);
            assert_eq!(first.waits.of(Cause::Host), 4_500);
        },
    );
}
