use lineage_sim_model::{Facts, Footprint, GraphNode, Programmatic, Settings, Work};

use crate::Bench;

/// A program in which everything is switched on, many streams share, and chance has a part.
fn busy(seed: u64) -> Vec<Facts> {
    let settings = Settings::default()
        .seed(seed)
        .channels(3)
        .ring_entries(16)
        .operations_per_doorbell(2)
        .doorbell_ns(700)
        .dispatch_ns(300)
        .multiprocessors(4)
        .copy_engines_to_device(1)
        .time_slice_ns(50_000)
        .neighbour_slice_ns(20_000)
        .context_switch_ns(1_000)
        .preemption_granularity_ns(1_500)
        .programmatic_overlap_percent(50);
    let mut bench = Bench::new(settings);
    let streams: [_; 7] = bench.streams();
    for number in 1..=400 {
        let stream = streams[number as usize % streams.len()];
        let mut programmatic = Programmatic::default();
        programmatic.triggers_after_ns = Some(500);
        programmatic.may_overlap = number % 3 == 0;
        programmatic.waits_after_ns = 200;
        let work = match number % 11 {
            0 => Work::copy(lineage_sim_model::Direction::ToDevice, 2_000),
            _ => Work::Kernel {
                footprint: Footprint::new(number % 13 + 1, 512),
                programmatic,
                collective: None,
                duration_ns: 1_000 + 17 * number,
            },
        };
        if number % 29 == 0 {
            let nodes = (0..3).map(|node| GraphNode::new(1_000 * number + node, work.clone(), &[]));
            let nodes = nodes.collect();
            bench
                .host
                .submit_graph(&mut bench.model, stream, None, nodes);
        } else {
            bench.call(400, stream, number, work);
        }
    }
    bench.finish()
}

#[test]
fn a_run_is_repeated_exactly_by_its_seed() {
    let first = busy(7);
    assert_eq!(first.len(), 400 + 2 * (400 / 29));
    assert_eq!(first, busy(7));
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(busy(7), busy(8));
}
