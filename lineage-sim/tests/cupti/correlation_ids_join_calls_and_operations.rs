use std::collections::HashSet;

use lineage_sim::{Config, isolated, load};

use crate::call;
use crate::client::{
    CONCURRENT_KERNEL, Cupti, DRIVER, LAUNCH_KERNEL, MEMCPY, MEMSET, Record, apis, kernels,
};
use crate::driver::{Driver, Handle};

#[test]
fn each_operation_carries_its_calls_id() {
    isolated(
        "correlation_ids_join_calls_and_operations::each_operation_carries_its_calls_id",
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            let memory = driver.allocate(4_096);
            cupti.enable(&[DRIVER, CONCURRENT_KERNEL, MEMCPY, MEMSET]);
            for label in 0..100 {
                driver.launch(label);
            }
            driver.copy_to_device(memory, &[1; 4_096]);
            assert_eq!(
                call!(driver.library, "cuMemsetD8Async"(memory => u64, 7 => u8, 64 => usize, driver.stream => Handle)),
                0
            );
            driver.copy_to_host(memory, &mut [0; 100]);
            driver.synchronize();
            let records = cupti.records();
            let calls: HashSet<u32> = apis(&records, DRIVER)
                .iter()
                .map(|record| record.correlation())
                .collect();
            assert_eq!(
                calls.len(),
                apis(&records, DRIVER).len(),
                "each call has an id of its own"
            );
            let operations: Vec<_> = records
                .iter()
                .filter(|record| {
                    matches!(
                        record,
                        Record::Kernel { .. } | Record::Copy { .. } | Record::Set { .. }
                    )
                })
                .collect();
            assert_eq!(operations.len(), 103);
            assert!(
                operations
                    .iter()
                    .all(|record| calls.contains(&record.correlation()))
            );
            // The truth says the same of each.
            let truth = gpu.truth();
            for operation in &truth.operations {
                let call = truth.call(operation.call_ordinal).unwrap();
                assert_eq!(call.correlation_id, operation.correlation_id);
                let api = apis(&records, DRIVER)
                    .into_iter()
                    .find(|record| record.correlation() == call.correlation_id);
                let Some(Record::Api {
                    cbid,
                    thread,
                    result,
                    ..
                }) = api
                else {
                    panic!("no record of {call:?}")
                };
                assert_eq!((*cbid, *result), (call.callback_id, 0));
                assert_ne!(*thread, 0);
            }
            let copies: Vec<_> = operations
                .iter()
                .filter_map(|record| match record {
                    Record::Copy {
                        copy_kind,
                        source,
                        target,
                        bytes,
                        count,
                        ..
                    } => Some((*copy_kind, *source, *target, *bytes, *count)),
                    _ => None,
                })
                .collect();
            // HtoD from pageable to device memory, and back.
            assert_eq!(copies, [(1, 1, 3, 4_096, 1), (2, 3, 1, 100, 1)]);
            let set = operations.iter().find_map(|record| match record {
                Record::Set { value, bytes, .. } => Some((*value, *bytes)),
                _ => None,
            });
            assert_eq!(set, Some((7, 64)));
        },
    );
}

#[test]
fn ids_wrap_and_are_never_zero() {
    isolated(
        "correlation_ids_join_calls_and_operations::ids_wrap_and_are_never_zero",
        || {
            load(Config::default().first_correlation_id(u32::MAX - 1)).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            assert_eq!(
                call!(cupti.library, "cuptiActivityEnableDriverApi"(LAUNCH_KERNEL => u32, 1 => u8)),
                0
            );
            for label in 0..4 {
                driver.launch(label);
            }
            driver.synchronize();
            let records = cupti.records();
            let ids: Vec<_> = kernels(&records)
                .iter()
                .map(|record| record.correlation())
                .collect();
            assert_eq!(ids, [u32::MAX - 1, u32::MAX, 1, 2]);
        },
    );
}

#[test]
fn without_api_records_or_callbacks_there_is_none() {
    isolated(
        "correlation_ids_join_calls_and_operations::without_api_records_or_callbacks_there_is_none",
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            driver.launch(1);
            driver.synchronize();
            let records = cupti.records();
            assert_eq!(records.len(), 1);
            assert_eq!(records[0].correlation(), 0);
            assert_eq!(gpu.truth().operations[0].correlation_id, 0);
        },
    );
}
