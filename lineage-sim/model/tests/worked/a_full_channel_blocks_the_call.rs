use lineage_sim_model::{Cause, Settings, Submission, Work};

use crate::{Bench, starts};

/// A ring of 2 entries, calls of 1, kernels of 10. Kernel 1 is queued at 1 and leaves the ring at once, to run 1 to 11; kernels 2 and 3
/// fill the ring at 2 and 3. The call for kernel 4 is ready at 4 and finds no room until kernel 2 leaves at 11: blocked for 7.
/// The call for kernel 5 begins at 11, is ready at 12 and waits until kernel 3 leaves at 21: blocked for 9.
#[test]
fn a_full_ring_blocks_until_an_entry_is_issued() {
    let mut bench = Bench::new(Settings::default().ring_entries(2));
    let stream = bench.stream();
    let mut returned = Vec::new();
    for number in 1..=5 {
        bench.call(1, stream, number, Work::kernel(10));
        returned.push(bench.host.now_ns());
    }
    assert_eq!(returned, [1, 2, 3, 11, 21]);
    let facts = bench.finish();
    let blocked: Vec<u64> = facts
        .iter()
        .map(|facts| facts.waits.of(Cause::QueueFull))
        .collect();
    assert_eq!(blocked, [0, 0, 0, 7, 9]);
    assert_eq!(starts(&facts), [1, 11, 21, 31, 41]);
    // Kernel 5: host 1, ring 9, then its predecessor from 21 to 41.
    assert_eq!(facts[4].waits.of(Cause::Host), 1);
    assert_eq!(facts[4].waits.of(Cause::Dependency), 20);
}

/// A push buffer of 1,000 bytes, of which each launch takes 200 and its parameters: 400 with 200 bytes of parameters. Two of those wait in it, a
/// third does not fit: 1,200. The ring, of 1,024 entries, has room enough.
#[test]
fn a_full_push_buffer_blocks_long_before_the_ring_does() {
    let settings = Settings::default()
        .push_buffer_bytes(1_000)
        .push_bytes_per_operation(200);
    let mut bench = Bench::new(settings);
    let stream = bench.stream();
    let mut returned = Vec::new();
    for number in 1..=4 {
        let launch = Submission::new(number, Work::kernel(10)).parameter_bytes(200);
        bench.submit(1, stream, launch);
        returned.push(bench.host.now_ns());
    }
    assert_eq!(returned, [1, 2, 3, 11]);
    assert_eq!(bench.finish()[3].waits.of(Cause::QueueFull), 7);
}

/// A channel that is full blocks the calls of every stream that is on it, and of no other.
#[test]
fn the_room_is_the_channels_and_not_the_streams() {
    let mut bench = Bench::new(Settings::default().channels(2).ring_entries(1));
    let [a, b, c] = bench.streams();
    bench.call(1, a, 1, Work::kernel(10));
    bench.call(1, a, 2, Work::kernel(10));
    // B has the other channel. C shares A's, whose one entry is taken until 11.
    bench.call(1, b, 3, Work::kernel(10));
    assert_eq!(bench.host.now_ns(), 3);
    bench.call(1, c, 4, Work::kernel(10));
    assert_eq!(bench.host.now_ns(), 11);
    assert_eq!(starts(&bench.finish()), [1, 11, 3, 11]);
}

/// Launches by default: 1 runs, 1,024 wait, and the call for the 1,026th blocks.
#[test]
fn about_a_thousand_launches_fit_by_default() {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    for number in 1..=1_025 {
        bench.call(0, stream, number, Work::kernel(10));
    }
    assert_eq!(bench.host.now_ns(), 0);
    bench.call(0, stream, 1_026, Work::kernel(10));
    assert_eq!(bench.host.now_ns(), 10, "until the first has ended");
}
