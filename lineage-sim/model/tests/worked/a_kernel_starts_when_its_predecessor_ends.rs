use lineage_sim_model::{Settings, Work};

use crate::{Bench, ends, starts};

/// `count` launches of `kernel_ns` in one stream, by a host that takes `host_ns` for each.
fn queue(host_ns: u64, kernel_ns: u64, count: u64) -> (Vec<u64>, Vec<u64>, Vec<u64>, u64) {
    let mut bench = Bench::new(Settings::default());
    let stream = bench.stream();
    for number in 1..=count {
        bench.call(host_ns, stream, number, Work::kernel(kernel_ns));
    }
    let returned_ns = bench.host.now_ns();
    let facts = bench.finish();
    let enqueued = facts.iter().map(|facts| facts.queued_ns).collect();
    (enqueued, starts(&facts), ends(&facts), returned_ns)
}

/// Calls return at 3, 6, 9, 12. The first kernel arrives at an idle device: 3. Each later one finds the one before
/// still running: 3 + 8 = 11, 19, 27, and the last ends at 35, which is 23 after the host returned.
#[test]
fn the_host_runs_ahead_of_slower_kernels() {
    let (enqueued, starts, ends, returned_ns) = queue(3_000, 8_000, 4);
    assert_eq!(enqueued, [3_000, 6_000, 9_000, 12_000]);
    assert_eq!(starts, [3_000, 11_000, 19_000, 27_000]);
    assert_eq!(ends, [11_000, 19_000, 27_000, 35_000]);
    assert_eq!((returned_ns, 35_000 - returned_ns), (12_000, 23_000));
}

/// Calls return at 8, 16, 24, 32, and each kernel finds the device idle: it starts at once. The last ends at 34, and of
/// those 34 the device was busy for 4 × 2 = 8: 23.5 %.
#[test]
fn the_device_waits_for_a_slower_host() {
    let (enqueued, starts, ends, _) = queue(8_000, 2_000, 4);
    assert_eq!(starts, enqueued);
    assert_eq!(ends, [10_000, 18_000, 26_000, 34_000]);
    let busy_ns: u64 = starts
        .iter()
        .zip(&ends)
        .map(|(start, end)| end - start)
        .sum();
    let total_ns = *ends.last().unwrap();
    assert_eq!((busy_ns, total_ns), (8_000, 34_000));
    assert_eq!(busy_ns * 1_000 / total_ns, 235, "23.5 %");
}

/// A kernel of half the length takes 1 off the end, not half of it: 32 + 1.
#[test]
fn a_faster_kernel_hardly_helps_a_slow_host() {
    let (_, _, ends, _) = queue(8_000, 1_000, 4);
    assert_eq!(ends.last(), Some(&33_000));
}

/// Enqueued 2, 4, 6, 8; started 2, 2 + 5 = 7, 12, 17; ended 7, 12, 17, 22; at the last return, 8, there remain 14.
#[test]
fn what_remains_when_the_host_is_done_is_known() {
    let (enqueued, starts, ends, returned_ns) = queue(2_000, 5_000, 4);
    assert_eq!(enqueued, [2_000, 4_000, 6_000, 8_000]);
    assert_eq!(starts, [2_000, 7_000, 12_000, 17_000]);
    assert_eq!(ends, [7_000, 12_000, 17_000, 22_000]);
    assert_eq!(ends[3] - returned_ns, 14_000);
}

/// With 1 from "everything is ready" to the start: 3 + 1 = 4, ends 12; the next is ready at 12 and starts at 13.
#[test]
fn dispatch_takes_its_time_between_kernels() {
    let mut bench = Bench::new(Settings::default().dispatch_ns(1_000));
    let stream = bench.stream();
    for number in 1..=2 {
        bench.call(3_000, stream, number, Work::kernel(8_000));
    }
    let facts = bench.finish();
    assert_eq!(starts(&facts), [4_000, 13_000]);
    assert_eq!(ends(&facts), [12_000, 21_000]);
}
