use lineage_sim_model::{Cause, Settings, Work};

use crate::{Bench, ends, starts};

/// 100 for this process, 40 for the other, 5 for each switch: the device is away from 100 to 150, from 250 to 300, …
fn settings() -> Settings {
    Settings::default()
        .time_slice_ns(100)
        .neighbour_slice_ns(40)
        .context_switch_ns(5)
}

/// A kernel of 150 that starts at 10 has run for 90 when it is preempted at 100; the other 60 run from 150 to 210. The record
/// says 200, of which 50 were not its own.
#[test]
fn a_preempted_kernel_runs_longer() {
    let mut bench = Bench::new(settings());
    let stream = bench.stream();
    bench.call(10, stream, 1, Work::kernel(150));
    let facts = bench.finish();
    assert_eq!((starts(&facts), ends(&facts)), (vec![10], vec![210]));
    assert_eq!(facts[0].preempted_ns, 50);
}

/// A kernel that arrives at 120 waits for the device until 150; the neighbour is why.
#[test]
fn a_kernel_that_arrives_meanwhile_waits_for_the_neighbour() {
    let mut bench = Bench::new(settings());
    let stream = bench.stream();
    bench.host.rest_until(119);
    bench.call(1, stream, 1, Work::kernel(20));
    let facts = bench.finish();
    assert_eq!((starts(&facts), ends(&facts)), (vec![150], vec![170]));
    assert_eq!(facts[0].waits.of(Cause::Neighbour), 30);
    assert_eq!(facts[0].waits.binding(), Some(Cause::Neighbour));
}

/// Where kernels can be preempted every 64 only: started at 10, the next such point after 100 is 10 + 128 = 138. The device is away
/// from 138 to 188; 150 - 128 = 22 are left: the end is at 210. Another kernel, which arrives at 110, is not started any more before
/// the switch: it waits from 110 to 188.
#[test]
fn preemption_waits_for_a_point_at_which_it_is_possible() {
    let mut bench = Bench::new(settings().preemption_granularity_ns(64));
    let [a, b] = bench.streams();
    bench.call(10, a, 1, Work::kernel(150));
    bench.host.rest_until(109);
    bench.call(1, b, 2, Work::kernel(5));
    let facts = bench.finish();
    assert_eq!(
        (starts(&facts), ends(&facts)),
        (vec![10, 188], vec![210, 193])
    );
    assert_eq!(facts[1].waits.of(Cause::Neighbour), 78);
}

/// A kernel that cannot be preempted at all makes the neighbour wait: it ends at 160, and the device is away from then to 210.
#[test]
fn a_kernel_that_cannot_be_preempted_runs_to_its_end() {
    let mut bench = Bench::new(settings().preemption_granularity_ns(u64::MAX));
    let stream = bench.stream();
    bench.call(10, stream, 1, Work::kernel(150));
    bench.call(10, stream, 2, Work::kernel(5));
    let facts = bench.finish();
    assert_eq!(
        (starts(&facts), ends(&facts)),
        (vec![10, 210], vec![160, 215])
    );
    assert_eq!((facts[0].preempted_ns, facts[1].preempted_ns), (0, 0));
}

/// Copies have engines of their own, which the neighbour does not take.
#[test]
fn copies_are_not_preempted() {
    let mut bench = Bench::new(settings());
    let stream = bench.stream();
    let copy = Work::copy(lineage_sim_model::Direction::ToDevice, 150);
    bench.call(10, stream, 1, copy);
    assert_eq!(ends(&bench.finish()), [160]);
}
