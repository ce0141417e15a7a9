use lineage_sim::{Config, isolated, load};

use crate::driver::Driver;

const NAME: &str = "truth_and_memory_are_bounded";

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn what_is_beyond_the_capacity_is_counted() {
    isolated(
        &format!("{NAME}::what_is_beyond_the_capacity_is_counted"),
        || {
            let gpu = load(Config::default().truth_capacity(10)).unwrap();
            let driver = Driver::open();
            for label in 0..25 {
                driver.launch(label);
            }
            driver.synchronize();
            let truth = gpu.truth();
            assert_eq!((truth.operations.len(), truth.calls.len()), (10, 10));
            assert_eq!((truth.operations_not_kept, truth.calls_not_kept), (15, 15));
            gpu.clear_truth();
            driver.launch(1);
            driver.synchronize();
            let truth = gpu.truth();
            assert_eq!((truth.operations.len(), truth.operations_not_kept), (1, 0));
            assert_eq!(truth.operations[0].ordinal, 26);
        },
    );
}

#[test]
fn two_hundred_thousand_launches_take_no_more_memory_than_twenty_thousand() {
    isolated(
        &format!("{NAME}::two_hundred_thousand_launches_take_no_more_memory_than_twenty_thousand"),
        || {
            let gpu = load(
                Config::default()
                    .truth_capacity(1_000)
                    .default_kernel_ns(100),
            )
            .unwrap();
            let driver = Driver::open();
            let launch = |count: u64| {
                for label in 0..count {
                    driver.launch(label);
                }
                driver.synchronize();
                resident_kib()
            };
            let before = launch(20_000);
            let after = launch(180_000);
            assert!(after < before + 4_096, "{before} KiB, then {after} KiB");
            assert_eq!(gpu.counts().operations_completed, 200_000);
        },
    );
}

#[test]
fn streams_and_threads_leave_nothing_behind() {
    isolated(
        &format!("{NAME}::streams_and_threads_leave_nothing_behind"),
        || {
            let gpu = load(Config::default().truth_capacity(0)).unwrap();
            let driver = Driver::open();
            let round = || {
                for _ in 0..500 {
                    std::thread::scope(|scope| {
                        scope.spawn(|| {
                        driver.bind();
                        let stream = driver.new_stream();
                        assert_eq!(driver.launch_in(stream, 1), 0);
                        let code = crate::call!(driver.library, "cuStreamDestroy_v2"(stream => crate::driver::Handle));
                        assert_eq!(code, 0, "what it holds is done all the same");
                    });
                    });
                }
                assert_eq!(crate::call!(driver.library, "cuCtxSynchronize"()), 0);
                resident_kib()
            };
            let before = round();
            let after = round().max(round());
            assert!(after < before + 2_048, "{before} KiB, then {after} KiB");
            assert_eq!(gpu.counts().operations_completed, 1_500);
        },
    );
}
