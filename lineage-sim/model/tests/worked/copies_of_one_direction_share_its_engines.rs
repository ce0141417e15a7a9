use lineage_sim_model::{Cause, Direction, Settings, Work};

use crate::{Bench, starts};

/// One engine for each direction. Two copies to the device, in two streams, follow each other: 1 to 101, then 101. The copy to the host
/// and the kernel have engines of their own: 3 and 4.
#[test]
fn one_engine_for_each_direction() {
    let settings = Settings::default()
        .copy_engines_to_device(1)
        .copy_engines_to_host(1);
    let mut bench = Bench::new(settings);
    let [a, b, c, d] = bench.streams();
    bench.call(1, a, 1, Work::copy(Direction::ToDevice, 100));
    bench.call(1, b, 2, Work::copy(Direction::ToDevice, 100));
    bench.call(1, c, 3, Work::copy(Direction::ToHost, 100));
    bench.call(1, d, 4, Work::kernel(100));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 101, 3, 4]);
    assert_eq!(facts[1].waits.of(Cause::CopyEngine), 99);
    assert_eq!(facts[1].resource_number, 1);
}

/// Two engines take two copies at once; the third waits for the first that ends.
#[test]
fn two_engines_take_two_copies() {
    let mut bench = Bench::new(Settings::default().copy_engines_within(2));
    let streams: [_; 3] = bench.streams();
    for (number, (stream, length)) in streams.into_iter().zip([50, 20, 10]).enumerate() {
        let copy = Work::copy(Direction::Within, length);
        bench.call(1, stream, number as u64 + 1, copy);
    }
    // 1 to 51, 2 to 22, then 22.
    assert_eq!(starts(&bench.finish()), [1, 2, 22]);
}

/// By default copies of several streams overlap without limit.
#[test]
fn by_default_there_are_engines_enough() {
    let mut bench = Bench::new(Settings::default());
    for number in 1..=4 {
        let stream = bench.stream();
        bench.call(1, stream, number, Work::copy(Direction::ToDevice, 100));
    }
    assert_eq!(starts(&bench.finish()), [1, 2, 3, 4]);
}
