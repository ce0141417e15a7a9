use lineage_sim_model::{Cause, Settings, Work};

use crate::{Bench, starts};

fn submitted(facts: &[lineage_sim_model::Facts]) -> Vec<u64> {
    facts.iter().map(|facts| facts.submitted_ns).collect()
}

/// One doorbell for three launches, which takes 4 to be seen. Queued at 1, 2, 3; rung at 3; seen at 7; then one after the other, 10 each.
/// The first waits 6 for the doorbell. The second is seen at 7, too, and waits for its predecessor until 17.
#[test]
fn the_first_launches_wait_for_the_last_of_their_doorbell() {
    let settings = Settings::default()
        .operations_per_doorbell(3)
        .doorbell_ns(4);
    let mut bench = Bench::new(settings);
    let stream = bench.stream();
    for number in 1..=3 {
        bench.call(1, stream, number, Work::kernel(10));
    }
    let facts = bench.finish();
    assert_eq!(submitted(&facts), [3, 3, 3]);
    assert_eq!(starts(&facts), [7, 17, 27]);
    assert_eq!(facts[0].waits.of(Cause::Doorbell), 6);
    assert_eq!(facts[1].waits.of(Cause::Doorbell), 5);
    assert_eq!(facts[1].waits.of(Cause::Dependency), 10);
}

/// A wait rings for what is left over: queued at 1, rung when the host waits, at 51.
#[test]
fn a_host_that_waits_rings_first() {
    let mut bench = Bench::new(Settings::default().operations_per_doorbell(3));
    let stream = bench.stream();
    let key = bench.call(1, stream, 1, Work::kernel(10));
    bench.host.rest_until(51);
    bench.host.wait(&mut bench.model, key);
    assert_eq!(bench.host.now_ns(), 61);
    let facts = bench.finish();
    assert_eq!((facts[0].queued_ns, facts[0].submitted_ns), (1, 51));
}

/// Each launch its own doorbell, as by default: submitted when queued.
#[test]
fn by_default_each_launch_rings() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    for number in 1..=2 {
        bench.call(1, stream, number, Work::kernel(10));
    }
    assert_eq!(submitted(&bench.finish()), [1, 2]);
}
