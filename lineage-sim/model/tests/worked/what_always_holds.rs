use lineage_sim_model::{
    Direction, Facts, Footprint, Programmatic, Settings, StreamOptions, Submission, Work,
};

use crate::Bench;

/// A sequence of numbers that looks random and is the same everywhere.
struct Numbers(u64);

impl Numbers {
    /// Below a limit.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn settings(numbers: &mut Numbers) -> Settings {
    let mut settings = Settings::default()
        .seed(numbers.below(1_000))
        .channels(numbers.below(4) as u32)
        .ring_entries(1 + numbers.below(8) as u32)
        .operations_per_doorbell(1 + numbers.below(3) as u32)
        .doorbell_ns(numbers.below(3))
        .dispatch_ns(numbers.below(3))
        .multiprocessors(numbers.below(4) as u32)
        .copy_engines_to_device(numbers.below(3) as u32)
        .programmatic_overlap_percent(numbers.below(101) as u32);
    if numbers.chance(50) {
        settings = settings
            .time_slice_ns(20 + numbers.below(50))
            .neighbour_slice_ns(1 + numbers.below(50))
            .context_switch_ns(numbers.below(5))
            .preemption_granularity_ns(numbers.below(20));
    }
    settings
}

fn work(numbers: &mut Numbers) -> Work {
    let duration_ns = numbers.below(60);
    if numbers.chance(25) {
        return Work::copy(Direction::ToDevice, duration_ns);
    }
    let mut programmatic = Programmatic::default();
    programmatic.may_overlap = numbers.chance(30);
    programmatic.waits_after_ns = numbers.below(40);
    programmatic.triggers_after_ns = numbers.chance(50).then(|| numbers.below(80));
    Work::Kernel {
        footprint: Footprint::new(1 + numbers.below(20), 1 + numbers.below(1_024) as u32)
            .registers(numbers.below(80_000) as u32)
            .shared_bytes(numbers.below(250_000) as u32),
        programmatic,
        collective: None,
        duration_ns,
    }
}

fn is_programmatic(work: &Work) -> bool {
    matches!(work, Work::Kernel { programmatic, .. } if programmatic.may_overlap)
}

/// How many intervals there are at most at one moment; those that end when others start do not count beside them.
fn most_at_once(intervals: &[(u64, u64)]) -> usize {
    let at = |moment: u64| {
        let covers = |(start, end): &&(u64, u64)| *start <= moment && moment < *end;
        intervals.iter().filter(covers).count()
    };
    intervals
        .iter()
        .map(|(start, _)| at(*start))
        .max()
        .unwrap_or(0)
}

/// One program: every operation comes to its end, in the order of its stream and its channel, in room that there is, with stages in order.
fn check(seed: u64) {
    let mut numbers = Numbers(seed);
    let settings = settings(&mut numbers);
    let mut bench = Bench::new(settings);
    let streams: Vec<_> = (0..1 + numbers.below(5))
        .map(|_| {
            let priority = numbers.below(3) as i32;
            bench
                .model
                .add_stream(StreamOptions::default().priority(priority))
        })
        .collect();
    let mut asked = Vec::new();
    for number in 1..=60 {
        let stream = numbers.below(streams.len() as u64) as usize;
        let work = work(&mut numbers);
        let host_ns = numbers.below(12);
        bench.submit(
            host_ns,
            streams[stream],
            Submission::new(number, work.clone()),
        );
        asked.push((stream, work));
    }
    // Checks that all have ended, and that the causes sum.
    let facts = bench.finish();
    assert_eq!(facts.len(), asked.len(), "seed {seed}");
    for (facts, (_, work)) in facts.iter().zip(&asked) {
        let stages = [
            facts.called_ns,
            facts.queued_ns,
            facts.submitted_ns,
            facts.issued_ns,
            facts.resources_ns,
            facts.start_ns,
            facts.end_ns,
        ];
        assert!(stages.is_sorted(), "seed {seed}: {facts:?}");
        assert!(
            facts.dependencies_ns <= facts.issued_ns,
            "seed {seed}: {facts:?}"
        );
        let lasted_ns = facts.end_ns - facts.start_ns;
        let least_ns = work.duration_ns() + facts.preempted_ns + facts.waited_inside_ns;
        assert!(lasted_ns >= least_ns, "seed {seed}: {facts:?}");
    }
    for stream in 0..streams.len() {
        let of_stream: Vec<(&Facts, &Work)> = facts
            .iter()
            .zip(&asked)
            .filter(|(_, (of, _))| *of == stream)
            .map(|(facts, (_, work))| (facts, work))
            .collect();
        for pair in of_stream.windows(2) {
            let ((before, _), (after, work)) = (pair[0], pair[1]);
            assert!(
                after.end_ns >= before.end_ns,
                "seed {seed}: {before:?} {after:?}"
            );
            if !is_programmatic(work) {
                assert!(
                    after.start_ns >= before.end_ns,
                    "seed {seed}: {before:?} {after:?}"
                );
            }
        }
    }
    let channels = facts.iter().map(|facts| facts.channel).max().unwrap_or(0);
    for channel in 0..=channels {
        let of_channel = facts.iter().filter(|facts| facts.channel == channel);
        assert!(
            of_channel.is_sorted_by_key(|facts| facts.issued_ns),
            "seed {seed}"
        );
    }
    if settings.copy_engines_to_device > 0 {
        let copies: Vec<(u64, u64)> = facts
            .iter()
            .zip(&asked)
            .filter(|(_, (_, work))| matches!(work, Work::Copy { .. }))
            .map(|(facts, _)| (facts.start_ns, facts.end_ns))
            .collect();
        let most = most_at_once(&copies);
        assert!(
            most <= settings.copy_engines_to_device as usize,
            "seed {seed}: {most}"
        );
    }
}

#[test]
fn in_three_hundred_programs() {
    (0..300).for_each(check);
}
