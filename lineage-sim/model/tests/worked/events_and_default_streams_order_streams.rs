use lineage_sim_model::{DependencyKind, Order, Settings, StreamOptions, Work};

use crate::{Bench, starts};

/// A runs kernel 1 from 1 to 101, then kernel 2. B waits for an event recorded between the two: its kernel starts at 101, and the event is what
/// it waited for, with kernel 1 behind it.
#[test]
fn an_event_holds_another_stream_until_what_it_captured_has_ended() {
    let mut bench = Bench::new(Settings::default());
    let [a, b] = bench.streams();
    bench.call(1, a, 1, Work::kernel(100));
    let captured = bench.record(a);
    bench.call(1, a, 2, Work::kernel(100));
    bench.wait_event(b, captured);
    bench.call(1, b, 3, Work::kernel(10));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 101, 101]);
    let of_b = &facts[2];
    assert_eq!(of_b.dependencies_ns, 101);
    assert_eq!(
        (of_b.last_dependency, of_b.dependency_number),
        (DependencyKind::Event, 1)
    );
}

/// The legacy default stream stands behind all earlier work of blocking streams, and they behind its: kernel 1 from 1 to 101 in a blocking stream,
/// kernel 2 in the default stream from 101 to 201, kernel 3 in the blocking one from 201. The non-blocking stream starts at 4.
#[test]
fn the_legacy_default_stream_is_a_barrier_for_blocking_streams_only() {
    let mut bench = Bench::new(Settings::default());
    let blocking = bench
        .model
        .add_stream(StreamOptions::default().order(Order::Blocking));
    let default = bench
        .model
        .add_stream(StreamOptions::default().order(Order::Legacy));
    let apart = bench.stream();
    for (number, stream) in [(1, blocking), (2, default), (3, blocking), (4, apart)] {
        bench.call(1, stream, number, Work::kernel(100));
    }
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 101, 201, 4]);
    assert_eq!(
        (facts[1].last_dependency, facts[1].dependency_number),
        (DependencyKind::DefaultStream, 1)
    );
}

/// Default streams of another context are no barrier.
#[test]
fn default_streams_concern_their_own_context() {
    let mut bench = Bench::new(Settings::default());
    let blocking = bench
        .model
        .add_stream(StreamOptions::default().order(Order::Blocking).context(1));
    let default = bench
        .model
        .add_stream(StreamOptions::default().order(Order::Legacy).context(2));
    bench.call(1, blocking, 1, Work::kernel(100));
    bench.call(1, default, 2, Work::kernel(100));
    assert_eq!(starts(&bench.finish()), [1, 2]);
}

/// What was over before the launch held nobody up, and is still said: kernel 1 ended at 11, kernel 2 was called at 50.
#[test]
fn a_dependency_that_was_over_is_no_wait() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    bench.call(1, stream, 1, Work::kernel(10));
    bench.host.rest_until(50);
    bench.call(1, stream, 2, Work::kernel(10));
    let facts = bench.finish();
    let second = &facts[1];
    assert_eq!((second.dependencies_ns, second.start_ns), (11, 51));
    assert_eq!(second.waits.of(lineage_sim_model::Cause::Dependency), 0);
}
