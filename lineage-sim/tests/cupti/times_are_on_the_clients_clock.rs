use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use lineage_sim::{Config, Gpu, isolated, load};

use crate::call;
use crate::client::{CONCURRENT_KERNEL, Cupti, DRIVER, Record, apis, kernels};
use crate::driver::Driver;

const NAME: &str = "times_are_on_the_clients_clock";

static GPU: std::sync::OnceLock<Gpu> = std::sync::OnceLock::new();
static SHIFT_NS: AtomicU64 = AtomicU64::new(0);

/// The device's clock, shifted.
unsafe extern "C" fn clock() -> u64 {
    GPU.get().unwrap().now_ns() + SHIFT_NS.load(Ordering::SeqCst)
}

fn register(cupti: &Cupti) {
    type Clock = unsafe extern "C" fn() -> u64;
    assert_eq!(
        call!(cupti.library, "cuptiActivityRegisterTimestampCallback"(clock => Clock)),
        0
    );
}

#[test]
fn with_the_devices_own_clock_records_and_truth_agree_to_the_nanosecond() {
    isolated(
        &format!("{NAME}::with_the_devices_own_clock_records_and_truth_agree_to_the_nanosecond"),
        || {
            let gpu = GPU.get_or_init(|| load(Config::default()).unwrap());
            let driver = Driver::open();
            let cupti = Cupti::open();
            register(&cupti);
            cupti.enable(&[CONCURRENT_KERNEL, DRIVER]);
            for label in 0..50 {
                driver.launch(label);
            }
            driver.synchronize();
            let records = cupti.records();
            let truth = gpu.truth();
            for operation in &truth.operations {
                let record = kernels(&records)
                    .into_iter()
                    .find(|record| record.correlation() == operation.correlation_id);
                let Some(Record::Kernel { start, end, .. }) = record else {
                    panic!("no record of {operation:?}")
                };
                assert_eq!((*start, *end), (operation.start_ns, operation.end_ns));
                let api = apis(&records, DRIVER)
                    .into_iter()
                    .find(|record| record.correlation() == operation.correlation_id);
                let Some(Record::Api {
                    start: api_start,
                    end: api_end,
                    ..
                }) = api
                else {
                    panic!()
                };
                assert!(api_start <= start && api_start <= api_end);
                assert!(
                    operation.call_start_ns <= *api_start
                        && *api_end <= operation.call_end_ns.unwrap()
                );
            }
        },
    );
}

#[test]
fn a_shifted_clock_shifts_every_record() {
    isolated(
        &format!("{NAME}::a_shifted_clock_shifts_every_record"),
        || {
            let gpu = GPU.get_or_init(|| load(Config::default()).unwrap());
            let driver = Driver::open();
            let cupti = Cupti::open();
            SHIFT_NS.store(5_000_000_000, Ordering::SeqCst);
            register(&cupti);
            cupti.enable(&[CONCURRENT_KERNEL]);
            driver.launch(1);
            driver.synchronize();
            let records = cupti.records();
            let Record::Kernel { start, .. } = kernels(&records)[0] else {
                unreachable!()
            };
            let error = start.abs_diff(gpu.truth().operations[0].start_ns + 5_000_000_000);
            assert!(error < 1_000_000, "off by {error} ns");
            assert!(cupti.timestamp() > 5_000_000_000);
        },
    );
}

#[test]
fn without_one_they_are_wall_clock_times() {
    isolated(
        &format!("{NAME}::without_one_they_are_wall_clock_times"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            let now = || {
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap()
                    .as_nanos() as u64
            };
            let before = now();
            driver.launch(1);
            driver.synchronize();
            let after = now();
            let records = cupti.records();
            let Record::Kernel {
                start,
                end,
                queued,
                submitted,
                ..
            } = kernels(&records)[0]
            else {
                unreachable!()
            };
            assert!(before.saturating_sub(100_000) <= *start && *end <= after + 100_000);
            assert_eq!((*queued, *submitted), (0, 0), "unknown unless asked for");
        },
    );
}

#[test]
fn latency_timestamps_are_in_order_when_asked_for() {
    isolated(
        &format!("{NAME}::latency_timestamps_are_in_order_when_asked_for"),
        || {
            load(Config::default()).unwrap();
            let cupti = Cupti::open();
            assert_eq!(
                call!(cupti.library, "cuptiActivityEnableLatencyTimestamps"(1 => u8)),
                0
            );
            let driver = Driver::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            driver.launch(1);
            driver.synchronize();
            let records = cupti.records();
            let Record::Kernel {
                start,
                queued,
                submitted,
                ..
            } = kernels(&records)[0]
            else {
                unreachable!()
            };
            assert!(*queued > 0 && queued <= submitted && submitted <= start);
        },
    );
}

#[test]
fn every_nth_record_can_be_without_times_and_is_not_counted_as_dropped() {
    isolated(
        &format!("{NAME}::every_nth_record_can_be_without_times_and_is_not_counted_as_dropped"),
        || {
            load(Config::default().zero_time_every_nth(3)).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            for label in 0..6 {
                driver.launch(label);
            }
            driver.synchronize();
            let zero: Vec<_> = cupti
                .records()
                .iter()
                .map(|record| {
                    matches!(
                        record,
                        Record::Kernel {
                            start: 0,
                            end: 0,
                            completed: 0,
                            ..
                        }
                    )
                })
                .collect();
            assert_eq!(zero, [false, false, true, false, false, true]);
            assert_eq!(cupti.dropped(), 0);
        },
    );
}

#[test]
fn thread_ids_are_the_systems_when_so_chosen() {
    isolated(
        &format!("{NAME}::thread_ids_are_the_systems_when_so_chosen"),
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER]);
            let thread = || {
                driver.launch(1);
                driver.synchronize();
                match cupti.records().first() {
                    Some(Record::Api {
                        thread, process, ..
                    }) => {
                        assert_eq!(*process, std::process::id());
                        *thread
                    }
                    other => panic!("{other:?}"),
                }
            };
            let default = thread();
            assert_eq!(call!(cupti.library, "cuptiSetThreadIdType"(1 => u32)), 0);
            let system = thread();
            let mut kind = 9;
            assert_eq!(
                call!(cupti.library, "cuptiGetThreadIdType"(&mut kind => *mut u32)),
                0
            );
            assert_eq!(kind, 1);
            assert_eq!(system, gpu.truth().calls[0].thread_id);
            assert_ne!(default, system);
        },
    );
}
