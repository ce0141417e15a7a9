use lineage_sim_model::{Cause, Footprint, Limit, Settings, StreamOptions, Submission, Work};

use crate::{Bench, ends, starts};

fn kernel(blocks: u64, threads: u32, duration_ns: u64) -> Work {
    Work::kernel_with(Footprint::new(blocks, threads), duration_ns)
}

/// Two multiprocessors of 2,048 threads hold 2 × 2 blocks of 1,024 threads. A grid of 10 such blocks takes three waves of 4, 4 and 2;
/// each lasts 100: from 1 to 301.
#[test]
fn a_grid_that_does_not_fit_runs_in_waves() {
    let mut bench = Bench::new(Settings::default().multiprocessors(2));
    let stream = bench.stream();
    bench.call(1, stream, 1, kernel(10, 1_024, 100));
    let facts = bench.finish();
    assert_eq!((starts(&facts), ends(&facts)), (vec![1], vec![301]));
}

/// A fills half of the threads; B fits beside it and starts at 2; C, of 1,024 threads, does not fit beside both until A ends at 101.
#[test]
fn two_kernels_run_together_if_they_fit() {
    let mut bench = Bench::new(Settings::default().multiprocessors(1));
    let [a, b, c] = bench.streams();
    bench.call(1, a, 1, kernel(1, 1_024, 100));
    bench.call(1, b, 2, kernel(1, 512, 200));
    bench.call(1, c, 3, kernel(1, 1_024, 100));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 2, 101]);
    assert_eq!(facts[2].waits.of(Cause::Multiprocessors), 98);
    assert_eq!(
        (facts[2].limit, facts[2].resource_number),
        (Limit::Threads, 1)
    );
}

/// The same by registers (65,536), shared memory (233,472) and blocks (32): the second of two kernels that take more than half waits.
#[test]
fn each_limit_of_a_multiprocessor_holds() {
    let half = Footprint::new(1, 32);
    for (footprint, limit) in [
        (half.registers(32_769), Limit::Registers),
        (half.shared_bytes(116_737), Limit::SharedMemory),
        (Footprint::new(17, 32), Limit::Blocks),
    ] {
        let mut bench = Bench::new(Settings::default().multiprocessors(1));
        let [a, b] = bench.streams();
        bench.call(1, a, 1, Work::kernel_with(footprint, 100));
        bench.call(1, b, 2, Work::kernel_with(footprint, 100));
        let facts = bench.finish();
        match limit {
            // 17 of 32 blocks leave room for 15 of the second kernel's: it starts at once, and its last 2 run from 101 on.
            Limit::Blocks => assert_eq!(ends(&facts), [101, 201]),
            _ => assert_eq!(starts(&facts), [1, 101]),
        }
        if limit != Limit::Blocks {
            assert_eq!(facts[1].limit, limit);
        }
    }
}

/// A small kernel does not overtake a large one that waits for room. A has 1,024 of the 2,048 threads until 101. B has two blocks of 1,536:
/// the first fits at 101, the second when that has ended, at 201. C, of 32 threads, would fit beside any of them, and is not placed before B's last
/// block is, at 201.
#[test]
fn a_small_kernel_does_not_overtake_one_that_waits() {
    let mut bench = Bench::new(
        Settings::default()
            .multiprocessors(1)
            .threads_per_multiprocessor(2_048),
    );
    let [a, b, c] = bench.streams();
    bench.call(1, a, 1, kernel(1, 1_024, 100));
    bench.call(1, b, 2, kernel(2, 1_536, 100));
    bench.call(1, c, 3, kernel(1, 32, 10));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 101, 201]);
    assert_eq!(ends(&facts), [101, 301, 211]);
    assert_eq!(
        (facts[2].limit, facts[2].resource_number),
        (Limit::Order, 2)
    );
}

/// Priorities: while A has the multiprocessor, B of the usual and C of a higher priority arrive, in that order. C is first.
#[test]
fn the_higher_priority_is_placed_first() {
    let mut bench = Bench::new(Settings::default().multiprocessors(1));
    let [a, b] = bench.streams();
    let c = bench
        .model
        .add_stream(StreamOptions::default().priority(-5));
    bench.call(1, a, 1, kernel(2, 1_024, 100));
    bench.call(1, b, 2, kernel(2, 1_024, 100));
    bench.call(1, c, 3, kernel(2, 1_024, 100));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 201, 101]);
    // What B waited for at last is C's room.
    assert_eq!(
        (facts[1].limit, facts[1].resource_number),
        (Limit::Threads, 3)
    );
}

/// A higher priority comes between the waves of a kernel, not into one: A's first wave of two blocks ends at 101; B has the place until 111;
/// A's second wave runs from 111 to 211.
#[test]
fn a_higher_priority_comes_between_two_waves() {
    let mut bench = Bench::new(Settings::default().multiprocessors(1));
    let a = bench.stream();
    let b = bench
        .model
        .add_stream(StreamOptions::default().priority(-5));
    bench.call(1, a, 1, kernel(4, 1_024, 100));
    bench.submit(1, b, Submission::new(2, kernel(2, 1_024, 10)));
    let facts = bench.finish();
    assert_eq!(
        (starts(&facts), ends(&facts)),
        (vec![1, 101], vec![211, 111])
    );
}
