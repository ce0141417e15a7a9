//! The cycle counter's clock beside the system's, over many comparisons of the two.
#![cfg(unix)]

use std::time::{Duration, Instant};

fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// By how much it is off at least, and how close a look that was: the closest of a thousand.
fn off_by() -> (u64, u64) {
    let look = |_| {
        let (before, now, after) = (monotonic_ns(), lineage_clock::now(), monotonic_ns());
        let outside = before.saturating_sub(now).max(now.saturating_sub(after));
        (after - before, outside)
    };
    let (width, outside) = (0..1_000).map(look).min().expect("a thousand looks");
    (outside, width)
}

#[test]
fn it_stays_with_clock_monotonic_and_never_goes_back() {
    let begun = Instant::now();
    let lasts = Duration::from_secs(3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                while begun.elapsed() < lasts {
                    for _ in 0..1_000 {
                        let now = lineage_clock::now();
                        assert!(now >= last, "{last} and then {now}");
                        last = now;
                    }
                }
            });
        }
        scope.spawn(|| {
            while begun.elapsed() < lasts {
                let (off, width) = off_by();
                // Ten times what was seen, for machines whose counter is worse than any that was seen.
                assert!(off < 20_000, "off by {off} ns, looked at within {width} ns");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
    let accuracy = lineage_clock::accuracy();
    // After 1, 2, 4 … 1024 ms: eleven, and one more each second.
    assert!(accuracy.comparisons >= 10, "{accuracy:?}");
    assert!(accuracy.last_ahead_ns.unsigned_abs() <= accuracy.worst_ns);
    println!("{accuracy:?}");
}
