use lineage_sim_model::{DependencyKind, GraphNode, Settings, Work};

use crate::{Bench, ends, starts};

/// A diamond: 1 → 2 and 3 → 4, with kernels of 10, 20, 30, 40, launched at 1.
/// 1: 1 to 11. 2: 11 to 31. 3: 11 to 41. 4 waits for the later, 3: 41 to 81.
fn diamond(from: u64) -> Vec<GraphNode> {
    vec![
        GraphNode::new(from, Work::kernel(10), &[]),
        GraphNode::new(from + 1, Work::kernel(20), &[0]),
        GraphNode::new(from + 2, Work::kernel(30), &[0]),
        GraphNode::new(from + 3, Work::kernel(40), &[1, 2]),
    ]
}

#[test]
fn a_node_starts_when_the_last_node_before_it_ends() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    bench.host.spend(1);
    bench
        .host
        .submit_graph(&mut bench.model, stream, None, diamond(1));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 11, 11, 41]);
    assert_eq!(ends(&facts), [11, 31, 41, 81]);
    assert_eq!(
        (facts[3].last_dependency, facts[3].dependency_number),
        (DependencyKind::GraphEdge, 3)
    );
}

/// The graph's roots wait for the stream's earlier kernel, 1 to 101; the stream's next kernel waits for the graph's last node: 101 + 80 = 181.
#[test]
fn a_graph_is_one_item_of_its_stream() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    bench.call(1, stream, 9, Work::kernel(100));
    bench
        .host
        .submit_graph(&mut bench.model, stream, None, diamond(1));
    bench.call(1, stream, 10, Work::kernel(5));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [101, 111, 111, 141, 1, 181]);
    assert_eq!(
        (facts[0].last_dependency, facts[0].dependency_number),
        (DependencyKind::Stream, 9)
    );
    assert_eq!(
        (facts[5].last_dependency, facts[5].dependency_number),
        (DependencyKind::Stream, 4)
    );
}

/// Two launches of one exec never overlap, even in two streams: the second one's root starts at 81, when the first's last node ends.
#[test]
fn launches_of_one_exec_follow_each_other() {
    let mut bench = Bench::new(Settings::default());
    let [a, b] = bench.streams();
    bench.host.spend(1);
    let first = bench
        .host
        .submit_graph(&mut bench.model, a, None, diamond(1));
    bench
        .host
        .submit_graph(&mut bench.model, b, Some(first), diamond(5));
    let facts = bench.finish();
    assert_eq!(facts[4].start_ns, 81);
    assert_eq!(
        (facts[4].last_dependency, facts[4].dependency_number),
        (DependencyKind::GraphExec, 4)
    );
}

/// However many nodes it has, a graph takes one entry of the ring. An empty one is done at once.
#[test]
fn a_graph_takes_one_entry_of_the_ring() {
    let mut bench = Bench::new(Settings::default().ring_entries(1));
    let stream = bench.stream();
    bench.call(1, stream, 9, Work::kernel(100));
    bench
        .host
        .submit_graph(&mut bench.model, stream, None, diamond(1));
    assert_eq!(
        bench.host.now_ns(),
        1,
        "the one entry is free: the kernel runs"
    );
    bench
        .host
        .submit_graph(&mut bench.model, stream, None, Vec::new());
    assert_eq!(
        bench.host.now_ns(),
        101,
        "it was the graph's until the kernel ended"
    );
    bench.finish();
}
