use lineage_sim_model::{Cause, Footprint, Settings, Work};

use crate::Bench;

/// Everything at once. One multiprocessor, one channel of 2 entries, doorbell 2, dispatch 3, calls of 1. A, B and C are streams; the kernels of A take 100,
/// those of B and C 50, and each takes the whole multiprocessor.
///
/// 1, A: queued 1, seen 3, issued 3, started 6, ends 106.
/// 2, A: queued 2, seen 4, waits for 1 until 106, issued 106, dispatched 109, started 109, ends 209.
/// 3, B: queued 3, seen 5, behind 2 in the channel until 106, dispatched 109, and behind it on the multiprocessor until 209.
/// 4, C: called at 3, ready at 4; the ring holds 2 and 3 until 106: blocked for 102. Queued 106, seen 108, issued 108, dispatched 111;
///    3 is before it: until 259.
#[test]
fn every_stage_has_its_share() {
    let settings = Settings::default()
        .multiprocessors(1)
        .channels(1)
        .ring_entries(2)
        .doorbell_ns(2)
        .dispatch_ns(3);
    let mut bench = Bench::new(settings);
    let [a, b, c] = bench.streams();
    let whole = |duration_ns| Work::kernel_with(Footprint::new(2, 1_024), duration_ns);
    for (number, stream, duration_ns) in [(1, a, 100), (2, a, 100), (3, b, 50), (4, c, 50)] {
        // The first kernel must have left the ring before the third is queued: it is seen at 3.
        bench.call(1, stream, number, whole(duration_ns));
    }
    let facts = bench.finish();
    let causes = |at: usize| facts[at].waits.causes().collect::<Vec<_>>();
    assert_eq!(
        causes(0),
        [(Cause::Host, 1), (Cause::Doorbell, 2), (Cause::Dispatch, 3)]
    );
    assert_eq!(
        causes(1),
        [
            (Cause::Host, 1),
            (Cause::Doorbell, 2),
            (Cause::Dependency, 102),
            (Cause::Dispatch, 3)
        ]
    );
    assert_eq!(
        causes(2),
        [
            (Cause::Host, 1),
            (Cause::Doorbell, 2),
            (Cause::Channel, 101),
            (Cause::Dispatch, 3),
            (Cause::Multiprocessors, 100)
        ]
    );
    assert_eq!(
        causes(3),
        [
            (Cause::Host, 1),
            (Cause::QueueFull, 102),
            (Cause::Doorbell, 2),
            (Cause::Dispatch, 3),
            (Cause::Multiprocessors, 148)
        ]
    );
    let starts: Vec<u64> = facts.iter().map(|facts| facts.start_ns).collect();
    assert_eq!(starts, [6, 109, 209, 259]);
    assert_eq!(facts[3].waits.binding(), Some(Cause::Multiprocessors));
    assert_eq!(facts[3].resource_number, 3);
}
