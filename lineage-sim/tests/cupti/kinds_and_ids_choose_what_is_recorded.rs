use lineage_sim::{Config, isolated, load};

use crate::call;
use crate::client::{
    CONTEXT, CUSTOM2, Cupti, DRIVER, EXTERNAL_CORRELATION, LAUNCH_KERNEL, Record, STREAM,
    SYNCHRONIZATION, apis, externals,
};
use crate::driver::{Driver, Handle};

#[test]
fn ids_alone_are_enough() {
    isolated(
        "kinds_and_ids_choose_what_is_recorded::ids_alone_are_enough",
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[EXTERNAL_CORRELATION]);
            assert_eq!(
                call!(cupti.library, "cuptiActivityEnableDriverApi"(LAUNCH_KERNEL => u32, 1 => u8)),
                0
            );
            cupti.push(CUSTOM2, 5);
            driver.launch(1);
            driver.synchronize();
            let records = cupti.records();
            assert_eq!(
                records.len(),
                2,
                "one call and its external id, no synchronisation: {records:?}"
            );
            assert_eq!(externals(&records).len(), 1);
        },
    );
}

#[test]
fn single_ids_can_be_taken_out_of_a_kind_and_the_kind_overrides_them() {
    isolated(
        "kinds_and_ids_choose_what_is_recorded::single_ids_can_be_taken_out_of_a_kind_and_the_kind_overrides_them",
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            let count = || {
                driver.launch(1);
                driver.synchronize();
                apis(&cupti.records(), DRIVER).len()
            };
            cupti.enable(&[DRIVER]);
            assert_eq!(count(), 2);
            assert_eq!(
                call!(cupti.library, "cuptiActivityEnableDriverApi"(LAUNCH_KERNEL => u32, 0 => u8)),
                0
            );
            assert_eq!(count(), 1);
            cupti.enable(&[DRIVER]);
            assert_eq!(count(), 2);
            cupti.disable(DRIVER);
            assert_eq!(count(), 0);
        },
    );
}

#[test]
fn synchronisations_contexts_and_streams_have_records() {
    isolated(
        "kinds_and_ids_choose_what_is_recorded::synchronisations_contexts_and_streams_have_records",
        || {
            load(Config::default()).unwrap();
            let cupti = Cupti::open();
            cupti.enable(&[SYNCHRONIZATION, CONTEXT, STREAM, DRIVER]);
            let driver = Driver::open();
            let mut event: Handle = std::ptr::null_mut();
            assert_eq!(
                call!(driver.library, "cuEventCreate"(&mut event => *mut Handle, 0 => u32)),
                0
            );
            assert_eq!(
                call!(driver.library, "cuEventRecord"(event => Handle, driver.stream => Handle)),
                0
            );
            assert_eq!(
                call!(driver.library, "cuEventSynchronize"(event => Handle)),
                0
            );
            assert_eq!(
                call!(driver.library, "cuStreamWaitEvent"(driver.stream => Handle, event => Handle, 0 => u32)),
                0
            );
            driver.synchronize();
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            let records = cupti.records();
            let kinds: Vec<_> = records
                .iter()
                .filter_map(|record| match record {
                    Record::Synchronization { of, start, end, .. } => {
                        assert!(start <= end);
                        Some(*of)
                    }
                    _ => None,
                })
                .collect();
            // Event, stream wait event, stream, context.
            assert_eq!(kinds, [1, 2, 3, 4]);
            assert_eq!(
                records
                    .iter()
                    .filter(|record| **record == Record::Other(CONTEXT))
                    .count(),
                1
            );
            assert_eq!(
                records
                    .iter()
                    .filter(|record| **record == Record::Other(STREAM))
                    .count(),
                1
            );
        },
    );
}

#[test]
fn nothing_is_recorded_by_default() {
    isolated(
        "kinds_and_ids_choose_what_is_recorded::nothing_is_recorded_by_default",
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            driver.launch(1);
            driver.synchronize();
            assert!(cupti.records().is_empty());
            assert_eq!(gpu.counts().records_written, 0);
            assert_eq!(
                gpu.truth().operations.len(),
                1,
                "the truth needs no profiler"
            );
        },
    );
}
