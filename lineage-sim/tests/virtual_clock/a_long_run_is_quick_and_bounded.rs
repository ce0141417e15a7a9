use std::time::{Duration, Instant};

use lineage_sim::{Settings, TruthMode, isolated, load};

use crate::config;
use crate::driver::Driver;

const NAME: &str = "a_long_run_is_quick_and_bounded";

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// `cargo bench` and the long CI run a million; this is the shape of it: the host runs ahead, the ring is full most of the time, the truth is a ring.
/// Unoptimised, hence generous.
#[test]
fn a_hundred_thousand_launches() {
    isolated(&format!("{NAME}::a_hundred_thousand_launches"), || {
        let model = Settings::default().call_ns(1_000);
        let config = config(model).truth(TruthMode::Ring).truth_capacity(1_000);
        let gpu = load(config).unwrap();
        gpu.kernel("work")
            .label_argument(0)
            .duration_ns(1_500)
            .timed()
            .unwrap();
        let driver = Driver::open();
        let launch = |labels: std::ops::Range<u64>| {
            labels.for_each(|label| driver.launch(label));
            driver.synchronize();
            resident_kib()
        };
        let begin = Instant::now();
        let begin_ns = gpu.now_ns();
        let before = launch(0..10_000);
        let after = launch(10_000..100_000);
        // The first starts after its call, and all others follow without a gap, except at the one synchronisation.
        assert_eq!(gpu.now_ns() - begin_ns, 100_000 * 1_500 + 2 * 1_000);
        assert!(after < before + 4_096, "{before} KiB, then {after} KiB");
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{:?}",
            begin.elapsed()
        );
        let truth = gpu.truth();
        assert_eq!(
            (truth.operations.len(), truth.operations_not_kept),
            (1_000, 99_000)
        );
        assert_eq!(truth.operations[999].label, Some(99_999));
    });
}
