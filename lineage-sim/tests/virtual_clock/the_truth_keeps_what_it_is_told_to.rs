use lineage_sim::{Settings, TruthMode, isolated, load};

use crate::config;
use crate::driver::Driver;

const NAME: &str = "the_truth_keeps_what_it_is_told_to";

/// 25 launches with room for 10: labels that are kept, and how many are not.
fn kept(mode: TruthMode) -> (Vec<u64>, u64) {
    let gpu = load(config(Settings::default()).truth(mode).truth_capacity(10)).unwrap();
    gpu.kernel("work").label_argument(0).timed().unwrap();
    let driver = Driver::open();
    (0..25).for_each(|label| driver.launch(label));
    driver.synchronize();
    let truth = gpu.truth();
    let labels = truth
        .operations
        .iter()
        .filter_map(|operation| operation.label);
    (labels.collect(), truth.operations_not_kept)
}

#[test]
fn nothing_when_off() {
    isolated(&format!("{NAME}::nothing_when_off"), || {
        assert_eq!(kept(TruthMode::Off), (Vec::new(), 0));
    });
}

#[test]
fn the_newest_in_a_ring() {
    isolated(&format!("{NAME}::the_newest_in_a_ring"), || {
        assert_eq!(kept(TruthMode::Ring), ((15..25).collect(), 15));
    });
}

#[test]
fn the_oldest_until_they_are_drained() {
    isolated(
        &format!("{NAME}::the_oldest_until_they_are_drained"),
        || {
            assert_eq!(kept(TruthMode::Drain), ((0..10).collect(), 15));
        },
    );
}

/// A run that is drained in time keeps everything, whatever its length.
#[test]
fn everything_when_drained_in_time() {
    isolated(&format!("{NAME}::everything_when_drained_in_time"), || {
        let gpu = load(config(Settings::default()).truth_capacity(10)).unwrap();
        gpu.kernel("work").label_argument(0).timed().unwrap();
        let driver = Driver::open();
        let mut labels = Vec::new();
        for label in 0..100 {
            driver.launch(label);
            if label % 10 == 9 {
                driver.synchronize();
                let truth = gpu.drain_truth();
                assert_eq!(truth.calls.len(), 10);
                labels.extend(
                    truth
                        .operations
                        .iter()
                        .filter_map(|operation| operation.label),
                );
            }
        }
        assert_eq!(labels, (0..100).collect::<Vec<_>>());
        let rest = gpu.truth();
        assert_eq!((rest.operations.len(), rest.operations_not_kept), (0, 0));
    });
}
