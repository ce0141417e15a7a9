use lineage_sim_model::{Cause, Condition, DependencyKind, GraphNode, Place, Settings, Work};

use crate::{Bench, starts};

const HERE: Place = Place {
    address: 0x1000,
    is_wide: true,
};

fn wait(value: u64) -> Work {
    Work::WaitValue {
        place: HERE,
        condition: Condition::AtLeast(value),
    }
}

/// B waits for a value that A writes behind its kernel of 100: A runs from 1 to 101, and B's kernel starts at 101.
#[test]
fn another_stream_can_write_it() {
    let mut bench = Bench::new(Settings::default());
    let [a, b] = bench.streams();
    bench.call(0, b, 0, wait(1));
    bench.call(1, b, 2, Work::kernel(10));
    bench.call(0, a, 1, Work::kernel(100));
    let write = Work::WriteValue {
        place: HERE,
        value: 1,
    };
    bench.call(0, a, 0, write);
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 101]);
    assert_eq!(facts[1].last_dependency, DependencyKind::Semaphore);
}

/// A host writes it at 500.
#[test]
fn a_host_can_write_it() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    bench.call(0, stream, 0, wait(7));
    bench.call(1, stream, 1, Work::kernel(10));
    bench.host.rest_until(500);
    bench.model.host_writes(500, HERE.address, 7);
    assert_eq!(starts(&bench.finish()), [500]);
}

/// What nobody writes is never there: the model says that it is stuck, and a host that waits does not wait for ever.
#[test]
fn what_nobody_writes_is_never_there() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    bench.call(0, stream, 0, wait(7));
    let key = bench.call(1, stream, 1, Work::kernel(10));
    bench.host.wait(&mut bench.model, key);
    assert!(bench.model.is_stuck() && bench.model.watches_memory());
    assert_eq!(bench.model.open_operations(), 2);
}

/// It holds its channel, hence also other streams' work behind it.
#[test]
fn it_holds_whatever_is_behind_it_in_the_channel() {
    let mut bench = Bench::new(Settings::default().channels(1));
    let [a, b] = bench.streams();
    bench.call(0, a, 0, wait(7));
    bench.call(1, b, 1, Work::kernel(10));
    bench.host.rest_until(500);
    bench.model.host_writes(500, HERE.address, 7);
    assert_eq!(starts(&bench.finish()), [500]);
}

/// NVIDIA's four comparisons, of 32 and of 64 bits.
#[test]
fn conditions_compare_as_cuda_documents() {
    let at_least = Condition::AtLeast(5);
    assert!(at_least.is_met_by(5, true) && at_least.is_met_by(6, true));
    assert!(!at_least.is_met_by(4, true));
    // The difference is signed, so that counters may wrap.
    assert!(Condition::AtLeast(u64::MAX).is_met_by(2, true));
    assert!(Condition::AtLeast(0xffff_ffff).is_met_by(2, false));
    assert!(!Condition::AtLeast(0xffff_ffff).is_met_by(2, true));
    assert!(Condition::Equal(3).is_met_by(3, true) && !Condition::Equal(3).is_met_by(4, true));
    assert!(Condition::And(6).is_met_by(2, true) && !Condition::And(6).is_met_by(1, true));
    assert!(Condition::Nor(0).is_met_by(1, true) && !Condition::Nor(u64::MAX).is_met_by(0, true));
    assert!(!Condition::Nor(0xffff_ffff).is_met_by(0, false));
}

/// A node waits for a value as a stream does, and holds only what is behind it: of a launch at 1, the kernel of 10 beside it runs from 1 to 11, and the one
/// behind it starts at 101, when another stream's kernel of 100 has ended and the value is written.
#[test]
fn a_node_of_a_graph_waits_for_it_alone() {
    let mut bench = Bench::new(Settings::default());
    let [a, b] = bench.streams();
    let nodes = vec![
        GraphNode::new(0, wait(1), &[]),
        GraphNode::new(2, Work::kernel(10), &[0]),
        GraphNode::new(3, Work::kernel(10), &[]),
    ];
    bench.host.spend(1);
    bench.host.submit_graph(&mut bench.model, b, None, nodes);
    bench.call(0, a, 1, Work::kernel(100));
    let write = Work::WriteValue {
        place: HERE,
        value: 1,
    };
    bench.call(0, a, 0, write);
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 101, 1]);
    assert_eq!(facts[1].last_dependency, DependencyKind::Semaphore);
    assert_eq!(facts[1].waits.of(Cause::Dependency), 100);
}
