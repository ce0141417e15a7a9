use lineage_sim_model::{Cause, Settings, Work};

use crate::{Bench, starts};

/// Stream A gets two kernels of 10, stream B one of 1; calls take 1: queued at 1, 2, 3.
/// With a channel for each, B starts when it arrives, at 3. In one channel it stands behind A's second kernel, which
/// leaves the channel only when A's first has ended, at 1 + 10 = 11: B starts at 11, too, and nothing but the channel held it.
fn two_streams(channels: u32) -> Vec<lineage_sim_model::Facts> {
    let mut bench = Bench::new(Settings::default().channels(channels));
    let [a, b] = bench.streams();
    bench.call(1, a, 1, Work::kernel(10));
    bench.call(1, a, 2, Work::kernel(10));
    bench.call(1, b, 3, Work::kernel(1));
    bench.finish()
}

#[test]
fn streams_with_channels_of_their_own_do_not_meet() {
    for channels in [0, 2] {
        let facts = two_streams(channels);
        assert_eq!(starts(&facts), [1, 11, 3]);
        assert_ne!(facts[0].channel, facts[2].channel);
    }
}

#[test]
fn more_streams_than_channels_wait_for_each_other() {
    let facts = two_streams(1);
    assert_eq!(starts(&facts), [1, 11, 11]);
    assert_eq!(facts[0].channel, facts[2].channel);
    // Called at 2, queued at 3, held until 11 by operation 2, on which it does not depend.
    let b = &facts[2];
    assert_eq!(
        (b.waits.of(Cause::Host), b.waits.of(Cause::Channel)),
        (1, 8)
    );
    assert_eq!(
        (b.waits.binding(), b.channel_number),
        (Some(Cause::Channel), 2)
    );
    assert_eq!(b.waits.of(Cause::Dependency), 0);
}

/// In the order A, B, A, B of a breadth-first program the false dependency holds nothing up: B's first kernel leaves right behind
/// A's first, at 2. A's second waits for 1 + 10 = 11, and B's second for 2 + 10 = 12.
#[test]
fn breadth_first_order_avoids_it() {
    let mut bench = Bench::new(Settings::default().channels(1));
    let [a, b] = bench.streams();
    for (number, stream) in [(1, a), (2, b), (3, a), (4, b)] {
        bench.call(1, stream, number, Work::kernel(10));
    }
    assert_eq!(starts(&bench.finish()), [1, 2, 11, 12]);
}

/// Streams get channels in turn: the first and the third of two channels share.
#[test]
fn streams_are_put_on_channels_in_turn() {
    let mut bench = Bench::new(Settings::default().channels(2));
    let streams: [_; 3] = bench.streams();
    let channels = streams.map(|stream| bench.model.channel_of(stream));
    assert_eq!(channels, [0, 1, 0]);
}
