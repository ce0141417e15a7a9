use lineage_sim_model::{Collective, Footprint, Programmatic, Settings, StreamOptions, Work};

use crate::{Bench, ends, starts};

fn collective(size: u32, duration_ns: u64) -> Work {
    Work::Kernel {
        footprint: Footprint::default(),
        programmatic: Programmatic::default(),
        collective: Some(Collective { key: 1, size }),
        duration_ns,
    }
}

/// Three devices. Two are free, and start their member at 1 and 2. The third is busy with a kernel from 3 to 103 and starts its own at
/// 103: all three end 50 later, at 153. In a record the first looks as if it had run for 152.
#[test]
fn all_members_end_together_after_the_last_has_started() {
    let mut bench = Bench::new(Settings::default().devices(3));
    let streams: Vec<_> = (0..3)
        .map(|device| {
            bench
                .model
                .add_stream(StreamOptions::default().device(device))
        })
        .collect();
    bench.call(1, streams[0], 1, collective(3, 50));
    bench.call(1, streams[1], 2, collective(3, 50));
    bench.call(1, streams[2], 9, Work::kernel(100));
    bench.call(1, streams[2], 3, collective(3, 50));
    let facts = bench.finish();
    assert_eq!(starts(&facts), [1, 2, 103, 3]);
    assert_eq!(ends(&facts)[..3], [153, 153, 153]);
    let waited: Vec<u64> = facts.iter().map(|facts| facts.waited_inside_ns).collect();
    assert_eq!(waited, [102, 101, 0, 0]);
    let devices: Vec<u32> = facts.iter().map(|facts| facts.device).collect();
    assert_eq!(devices, [0, 1, 2, 2]);
}

/// Round by round: each stream's second launch belongs to the second round.
#[test]
fn rounds_do_not_mix() {
    let mut bench = Bench::new(Settings::default().devices(2));
    let streams: Vec<_> = (0..2)
        .map(|device| {
            bench
                .model
                .add_stream(StreamOptions::default().device(device))
        })
        .collect();
    // Device 0 has launched both rounds at 1 and 2; device 1 does so at 101 and 201.
    bench.call(1, streams[0], 1, collective(2, 10));
    bench.call(1, streams[0], 2, collective(2, 10));
    bench.call(99, streams[1], 3, collective(2, 10));
    bench.call(100, streams[1], 4, collective(2, 10));
    let facts = bench.finish();
    assert_eq!(ends(&facts), [111, 211, 111, 211]);
}
