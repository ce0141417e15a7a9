use lineage_sim::{Faults, isolated};

use crate::six_launches;

const NAME: &str = "records_go_wrong";

/// The correlation ids of the six launches: each call has one, and the launches are the first.
const SIX: [u32; 6] = [1, 2, 3, 4, 5, 6];

fn ids(kernels: &[(u64, u64, u32)]) -> Vec<u32> {
    kernels.iter().map(|kernel| kernel.2).collect()
}

#[test]
fn without_a_fault_there_is_one_complete_record_of_each() {
    isolated(
        &format!("{NAME}::without_a_fault_there_is_one_complete_record_of_each"),
        || {
            let outcome = six_launches(Faults::default());
            assert_eq!(ids(&outcome.kernels), SIX);
            let complete = |kernel: &(u64, u64, u32)| 0 < kernel.0 && kernel.0 < kernel.1;
            assert!(outcome.kernels.iter().all(complete));
            assert_eq!((outcome.calls, outcome.dropped), (6, 0));
        },
    );
}

#[test]
fn a_dropped_record_is_missing_and_counted() {
    isolated(
        &format!("{NAME}::a_dropped_record_is_missing_and_counted"),
        || {
            let outcome = six_launches(Faults::default().drop_record_every_nth(3));
            assert_eq!(ids(&outcome.kernels), [1, 2, 4, 5]);
            assert_eq!((outcome.calls, outcome.dropped), (6, 2));
            assert_eq!(outcome.gpu.truth().operations.len(), 6, "all were done");
        },
    );
}

#[test]
fn a_lost_record_is_missing_and_nothing_counts_it() {
    isolated(
        &format!("{NAME}::a_lost_record_is_missing_and_nothing_counts_it"),
        || {
            let outcome = six_launches(Faults::default().lose_record_every_nth(3));
            assert_eq!(ids(&outcome.kernels), [1, 2, 4, 5]);
            assert_eq!((outcome.calls, outcome.dropped), (6, 0));
        },
    );
}

#[test]
fn the_seed_says_with_which_it_begins() {
    isolated(
        &format!("{NAME}::the_seed_says_with_which_it_begins"),
        || {
            // (number + 2) divisible by 3: the first and the fourth.
            let outcome = six_launches(Faults::default().lose_record_every_nth(3).seed(2));
            assert_eq!(ids(&outcome.kernels), [2, 3, 5, 6]);
        },
    );
}

#[test]
fn an_incomplete_record_has_a_start_and_no_end() {
    isolated(
        &format!("{NAME}::an_incomplete_record_has_a_start_and_no_end"),
        || {
            let outcome = six_launches(Faults::default().incomplete_record_every_nth(4));
            assert_eq!(ids(&outcome.kernels), SIX);
            let ends: Vec<_> = outcome.kernels.iter().map(|kernel| kernel.1 > 0).collect();
            assert_eq!(ends, [true, true, true, false, true, true]);
            assert!(outcome.kernels.iter().all(|kernel| kernel.0 > 0));
            assert_eq!(outcome.dropped, 0);
        },
    );
}

#[test]
fn a_duplicate_is_the_same_in_every_field() {
    isolated(
        &format!("{NAME}::a_duplicate_is_the_same_in_every_field"),
        || {
            let outcome = six_launches(Faults::default().duplicate_record_every_nth(3));
            assert_eq!(ids(&outcome.kernels), [1, 2, 3, 3, 4, 5, 6, 6]);
            assert_eq!(outcome.kernels[2], outcome.kernels[3]);
            assert_eq!(outcome.kernels[6], outcome.kernels[7]);
        },
    );
}

#[test]
fn when_the_devices_memory_is_used_up_later_records_have_no_times_and_are_not_counted() {
    isolated(
        &format!(
            "{NAME}::when_the_devices_memory_is_used_up_later_records_have_no_times_and_are_not_counted"
        ),
        || {
            let outcome = six_launches(Faults::default().device_records_with_times(Some(2)));
            assert_eq!(ids(&outcome.kernels), SIX);
            let times: Vec<_> = outcome
                .kernels
                .iter()
                .map(|kernel| (kernel.0 > 0, kernel.1 > 0))
                .collect();
            let (with, without) = ((true, true), (false, false));
            assert_eq!(times, [with, with, without, without, without, without]);
            assert_eq!(outcome.dropped, 0);
        },
    );
}
