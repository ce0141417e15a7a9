use lineage_sim::{Cause, DependencyKind, Settings, isolated, load};

use crate::driver::Driver;
use crate::{BEGIN_NS, config};

const NAME: &str = "the_queue_is_as_worked_out_by_hand";

/// `count` launches by a host that takes `host_ns` for each, from time 0 on: enqueued, started, ended, and the time at which the host had returned.
fn queue(host_ns: u64, kernel_ns: u64, count: u64) -> ([Vec<u64>; 3], u64) {
    let gpu = load(config(Settings::default().call_ns(host_ns))).unwrap();
    gpu.kernel("work")
        .label_argument(0)
        .duration_ns(kernel_ns)
        .timed()
        .unwrap();
    let driver = Driver::open();
    let begin_ns = gpu.now_ns();
    assert!(begin_ns > BEGIN_NS, "opening the driver took its calls");
    for label in 1..=count {
        driver.launch(label);
    }
    let returned_ns = gpu.now_ns() - begin_ns;
    driver.synchronize();
    let operations = gpu.truth().operations;
    let times = |of: fn(&lineage_sim::Operation) -> u64| {
        let times = operations.iter().map(|operation| of(operation) - begin_ns);
        times.collect()
    };
    let all = [
        times(|operation| operation.queued_ns),
        times(|operation| operation.start_ns),
        times(|operation| operation.end_ns),
    ];
    (all, returned_ns)
}

/// See the model's own test of the same numbers for how they come about.
#[test]
fn host_3_and_kernel_8() {
    isolated(&format!("{NAME}::host_3_and_kernel_8"), || {
        let ([enqueued, started, ended], returned_ns) = queue(3_000, 8_000, 4);
        assert_eq!(enqueued, [3_000, 6_000, 9_000, 12_000]);
        assert_eq!(started, [3_000, 11_000, 19_000, 27_000]);
        assert_eq!(ended, [11_000, 19_000, 27_000, 35_000]);
        assert_eq!((returned_ns, ended[3] - returned_ns), (12_000, 23_000));
    });
}

#[test]
fn host_8_and_kernel_2() {
    isolated(&format!("{NAME}::host_8_and_kernel_2"), || {
        let ([_, started, ended], _) = queue(8_000, 2_000, 4);
        let busy_ns: u64 = started
            .iter()
            .zip(&ended)
            .map(|(start, end)| end - start)
            .sum();
        assert_eq!((ended[3], busy_ns), (34_000, 8_000));
    });
}

#[test]
fn host_8_and_kernel_1() {
    isolated(&format!("{NAME}::host_8_and_kernel_1"), || {
        let ([_, _, ended], _) = queue(8_000, 1_000, 4);
        assert_eq!(ended[3], 33_000);
    });
}

#[test]
fn host_2_and_kernel_5() {
    isolated(&format!("{NAME}::host_2_and_kernel_5"), || {
        let ([enqueued, started, ended], returned_ns) = queue(2_000, 5_000, 4);
        assert_eq!(enqueued, [2_000, 4_000, 6_000, 8_000]);
        assert_eq!(started, [2_000, 7_000, 12_000, 17_000]);
        assert_eq!(ended, [7_000, 12_000, 17_000, 22_000]);
        assert_eq!(ended[3] - returned_ns, 14_000);
    });
}

/// The fourth of the first example: called at 9, queued at 12, held by the third until 27. The causes sum to 27 - 9.
#[test]
fn the_truth_says_why_the_last_one_waited() {
    isolated(
        &format!("{NAME}::the_truth_says_why_the_last_one_waited"),
        || {
            let gpu = load(config(Settings::default().call_ns(3_000))).unwrap();
            gpu.kernel("work").duration_ns(8_000).timed().unwrap();
            let driver = Driver::open();
            let begin_ns = gpu.now_ns();
            for label in 1..=4 {
                driver.launch(label);
            }
            driver.synchronize();
            let truth = gpu.truth();
            let last = &truth.operations[3];
            assert_eq!(last.call_start_ns - begin_ns, 9_000);
            assert_eq!(
                last.waits.causes().collect::<Vec<_>>(),
                [(Cause::Host, 3_000), (Cause::Dependency, 15_000)]
            );
            assert_eq!(last.waits.total_ns(), last.start_ns - last.call_start_ns);
            assert_eq!(last.waits.binding(), Some(Cause::Dependency));
            assert_eq!(
                (last.last_dependency, last.dependency_ordinal),
                (DependencyKind::Stream, Some(truth.operations[2].ordinal))
            );
            // The clock has gone on to the end, where the synchronisation returned: 35, and its own call's 3 were covered.
            assert_eq!(gpu.now_ns() - begin_ns, 35_000);
        },
    );
}
