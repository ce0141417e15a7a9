use lineage_sim::{Config, CuptiVersion, Gpu, isolated, load};

use crate::call;
use crate::client::{CUDA_EVENT, Cupti, DRIVER, Record, SYNCHRONIZATION};
use crate::driver::{Driver, Handle};

const NAME: &str = "waits_name_the_record_call_since_12_8";

/// One event, recorded and waited for twice, with work before each record call.
fn two_rounds(config: Config, timestamps: bool) -> (Gpu, Vec<Record>) {
    let gpu = load(config.virtual_clock()).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    if timestamps {
        let on = call!(cupti.library, "cuptiActivityEnableCudaEventDeviceTimestamps"(1 => u8));
        assert_eq!(on, 0);
    }
    cupti.enable(&[DRIVER, CUDA_EVENT, SYNCHRONIZATION]);
    let mut event: Handle = std::ptr::null_mut();
    let created = call!(driver.library, "cuEventCreate"(&mut event => *mut Handle, 0 => u32));
    assert_eq!(created, 0);
    for label in 1..=2 {
        driver.launch(label);
        let stream = driver.stream;
        let recorded = call!(driver.library, "cuEventRecord"(event => Handle, stream => Handle));
        assert_eq!(recorded, 0);
        assert_eq!(
            call!(driver.library, "cuEventSynchronize"(event => Handle)),
            0
        );
    }
    driver.synchronize();
    (gpu, cupti.records())
}

type Numbers = Vec<(u32, Option<u64>, Option<u64>)>;

/// Event id, number and device time of record calls; event id and number of waits for events.
fn numbers(records: &[Record]) -> (Numbers, Vec<(u32, Option<u64>)>) {
    let mut recorded = Vec::new();
    let mut waited = Vec::new();
    for record in records {
        match record {
            Record::Event {
                event,
                sync,
                timestamp,
                ..
            } => recorded.push((*event, *sync, *timestamp)),
            Record::Synchronization {
                of: 1, event, sync, ..
            } => waited.push((*event, *sync)),
            _ => {}
        }
    }
    (recorded, waited)
}

#[test]
fn and_event_ids_alone_do_not() {
    isolated(&format!("{NAME}::and_event_ids_alone_do_not"), || {
        let (_, records) = two_rounds(Config::default(), false);
        let (recorded, waited) = numbers(&records);
        assert_eq!((recorded.len(), waited.len()), (2, 2));
        assert_eq!(recorded[0].0, recorded[1].0, "one event");
        assert_ne!(recorded[0].1, recorded[1].1, "two record calls");
        for (record, wait) in recorded.iter().zip(&waited) {
            assert_eq!((record.0, record.1), *wait);
            assert_eq!(record.2, Some(0), "device times are off");
        }
    });
}

#[test]
fn and_before_that_there_is_no_such_number() {
    isolated(
        &format!("{NAME}::and_before_that_there_is_no_such_number"),
        || {
            let config = Config::default().cupti_version(CuptiVersion::V12_4);
            let (recorded, waited) = numbers(&two_rounds(config, false).1);
            assert_eq!((recorded.len(), waited.len()), (2, 2));
            assert!(recorded.iter().all(|record| record.1.is_none()));
            assert!(waited.iter().all(|wait| wait.1.is_none()));
        },
    );
}

#[test]
fn and_since_13_0_record_calls_have_device_times_when_asked_for() {
    isolated(
        &format!("{NAME}::and_since_13_0_record_calls_have_device_times_when_asked_for"),
        || {
            let config = Config::default().cupti_version(CuptiVersion::V13_0);
            let (gpu, records) = two_rounds(config, true);
            let times: Vec<_> = numbers(&records).0.iter().map(|record| record.2).collect();
            // An event is reached when the work before it has ended.
            let ends: Vec<_> = gpu
                .truth()
                .operations
                .iter()
                .map(|operation| Some(operation.end_ns))
                .collect();
            assert_eq!(times, ends);
        },
    );
}

#[test]
fn a_wait_for_a_stream_names_no_event() {
    isolated(
        &format!("{NAME}::a_wait_for_a_stream_names_no_event"),
        || {
            let (_, records) = two_rounds(Config::default(), false);
            let of_stream = records.iter().find_map(|record| match record {
                Record::Synchronization {
                    of: 3,
                    event,
                    sync,
                    result,
                    ..
                } => Some((*event, *sync, *result)),
                _ => None,
            });
            // CUPTI_SYNCHRONIZATION_INVALID_VALUE
            let invalid = u32::MAX;
            assert_eq!(of_stream, Some((invalid, Some(invalid.into()), Some(0))));
        },
    );
}

/// Results in the records of a wait that fails, as its kernel did.
fn results_of_a_failed_wait(config: Config, all: Option<u8>) -> Vec<u32> {
    let gpu = load(config).unwrap();
    gpu.register_kernel("work", |launch| {
        launch
            .slice_mut::<u8>(lineage_sim::DeviceRange::new(1, 1))
            .map(|_| ())
    })
    .unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[SYNCHRONIZATION]);
    if let Some(all) = all {
        let set = call!(cupti.library, "cuptiActivityEnableAllSyncRecords"(all => u8));
        assert_eq!(set, 0);
    }
    let mut event: Handle = std::ptr::null_mut();
    let created = call!(driver.library, "cuEventCreate"(&mut event => *mut Handle, 0 => u32));
    assert_eq!(created, 0);
    let recorded = call!(driver.library, "cuEventRecord"(event => Handle, driver.stream => Handle));
    assert_eq!(recorded, 0);
    driver.launch(1);
    while gpu.counts().operations_pending > 0 {
        std::thread::yield_now();
    }
    // CUDA_ERROR_ILLEGAL_ADDRESS: of the kernel, which every later call in the context returns.
    let waited = call!(driver.library, "cuEventSynchronize"(event => Handle));
    assert_eq!(waited, 700);
    cupti
        .records()
        .iter()
        .filter_map(|record| match record {
            Record::Synchronization { result, .. } => *result,
            _ => None,
        })
        .collect()
}

#[test]
fn a_wait_that_failed_has_a_record_when_asked_for() {
    isolated(
        &format!("{NAME}::a_wait_that_failed_has_a_record_when_asked_for"),
        || assert_eq!(results_of_a_failed_wait(Config::default(), Some(1)), [700]),
    );
}

#[test]
fn a_wait_that_failed_has_none_by_the_default_of_the_attribute() {
    isolated(
        &format!("{NAME}::a_wait_that_failed_has_none_by_the_default_of_the_attribute"),
        || assert_eq!(results_of_a_failed_wait(Config::default(), None), [0; 0]),
    );
}

#[test]
fn a_wait_that_failed_has_one_by_the_default_of_the_function() {
    isolated(
        &format!("{NAME}::a_wait_that_failed_has_one_by_the_default_of_the_function"),
        || {
            let config = Config::default().failed_waits_are_recorded(true);
            assert_eq!(results_of_a_failed_wait(config, None), [700]);
        },
    );
}
