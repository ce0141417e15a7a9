use std::time::{Duration, Instant};

use lineage_sim::{Config, Faults, OtherTool, isolated, load};

use crate::client::{
    self, CONCURRENT_KERNEL, CUSTOM2, CallbackData, Cupti, DRIVER, EXTERNAL_CORRELATION, Record,
};
use crate::driver::Driver;
use crate::{seen, six_launches};

const NAME: &str = "buffers_go_wrong";

unsafe extern "C" fn ignore(_: *mut std::ffi::c_void, _: u32, _: u32, _: *const CallbackData) {}

#[test]
fn a_dropped_buffer_comes_back_empty_and_its_records_are_counted() {
    isolated(
        &format!("{NAME}::a_dropped_buffer_comes_back_empty_and_its_records_are_counted"),
        || {
            load(Config::default().faults(Faults::default().drop_buffer_every_nth(2))).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            let mut came = Vec::new();
            for label in 1..=4 {
                driver.launch(label);
                driver.synchronize();
                came.push(cupti.records().len());
            }
            assert_eq!(came, [1, 0, 1, 0], "every second of four");
            assert_eq!(cupti.dropped(), 2);
        },
    );
}

#[test]
fn a_null_buffer_drops_the_record_that_asked_for_it() {
    isolated(
        &format!("{NAME}::a_null_buffer_drops_the_record_that_asked_for_it"),
        || {
            load(Config::default().faults(Faults::default().null_buffer_every_nth(2))).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            // A buffer for each record: the requests of the 2nd and the 4th find none.
            client::give_buffers_of(208, 0);
            for label in 1..=4 {
                driver.launch(label);
            }
            driver.synchronize();
            assert_eq!(cupti.records().len(), 2);
            assert_eq!(cupti.dropped(), 2);
            assert_eq!(client::asked(), 2, "the client is not even asked");
        },
    );
}

#[test]
fn shuffled_records_are_the_same_ones_in_another_order() {
    isolated(
        &format!("{NAME}::shuffled_records_are_the_same_ones_in_another_order"),
        || {
            load(Config::default().faults(Faults::default().shuffle_buffers(true).seed(7)))
                .unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL, DRIVER, EXTERNAL_CORRELATION]);
            for label in 1..=20 {
                cupti.push(CUSTOM2, label);
                driver.launch(label);
                assert_eq!(cupti.pop(CUSTOM2), Ok(label));
            }
            driver.synchronize();
            let records = cupti.records();
            let mut ids: Vec<_> = seen(&records).iter().map(|kernel| kernel.2).collect();
            assert!(!ids.is_sorted(), "{ids:?}");
            ids.sort_unstable();
            assert_eq!(ids, (1..=20).collect::<Vec<_>>());
            // External ids are right before their API record even so.
            let external = records.windows(2).filter_map(|pair| match pair {
                [Record::External { correlation, .. }, after] => {
                    Some((*correlation, after.correlation()))
                }
                _ => None,
            });
            let external: Vec<_> = external.collect();
            assert_eq!(external.len(), 20);
            assert!(external.iter().all(|(before, after)| before == after));
        },
    );
}

#[test]
fn a_buffer_lies_idle_for_hours_until_a_flush_gets_it() {
    isolated(
        &format!("{NAME}::a_buffer_lies_idle_for_hours_until_a_flush_gets_it"),
        || {
            const HOUR_NS: u64 = 3_600_000_000_000;
            let faults = Faults::default().hold_buffers_ns(3 * HOUR_NS);
            let gpu = load(Config::default().virtual_clock().faults(faults)).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            driver.launch(1);
            driver.synchronize();
            cupti.flush(0);
            assert!(cupti.take().is_empty(), "complete, and it lies there");
            gpu.spend_ns(2 * HOUR_NS);
            cupti.flush(0);
            assert!(cupti.take().is_empty(), "after two hours");
            gpu.spend_ns(HOUR_NS);
            let records = cupti.records();
            assert_eq!(records.len(), 1, "after three");
            let age_ns = gpu.now_ns() - seen(&records)[0].1;
            assert!(age_ns > 2 * HOUR_NS, "{age_ns}");
        },
    );
}

#[test]
fn a_slow_flush_takes_its_time_and_returns_everything() {
    isolated(
        &format!("{NAME}::a_slow_flush_takes_its_time_and_returns_everything"),
        || {
            let faults = Faults::default().flush_takes_ns(80_000_000);
            let begin = Instant::now();
            let outcome = six_launches(faults);
            assert!(begin.elapsed() >= Duration::from_millis(80));
            assert_eq!((outcome.kernels.len(), outcome.dropped), (6, 0));
        },
    );
}

#[test]
fn another_tool_that_has_subscribed_is_an_error_of_subscribing_only() {
    isolated(
        &format!("{NAME}::another_tool_that_has_subscribed_is_an_error_of_subscribing_only"),
        || {
            let faults = Faults::default().other_tool(OtherTool::Subscribed);
            let outcome = six_launches(faults);
            assert_eq!(
                outcome.kernels.len(),
                6,
                "who does not subscribe is not told"
            );
            assert_eq!(Cupti::open().subscribe(ignore), Err(39));
        },
    );
}

#[test]
fn another_tool_that_never_subscribed_has_the_records_and_nothing_says_so() {
    isolated(
        &format!("{NAME}::another_tool_that_never_subscribed_has_the_records_and_nothing_says_so"),
        || {
            let outcome = six_launches(Faults::default().other_tool(OtherTool::TakesBuffers));
            assert!(Cupti::open().subscribe(ignore).is_ok());
            assert_eq!(
                (outcome.kernels.len(), outcome.calls, outcome.dropped),
                (0, 0, 0)
            );
            assert_eq!(client::asked(), 0, "its buffers are used");
            assert_eq!(outcome.gpu.truth().operations.len(), 6);
        },
    );
}

/// Without configuration, by two clients in one process: whoever registers last gets the records.
#[test]
fn buffers_are_those_of_who_registered_last() {
    isolated(
        &format!("{NAME}::buffers_are_those_of_who_registered_last"),
        || {
            use std::ffi::c_void;
            type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
            type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
            unsafe extern "C" fn none(buffer: *mut *mut u8, size: *mut usize, _: *mut usize) {
                // SAFETY: the places are valid during the call.
                unsafe {
                    *buffer = std::ptr::null_mut();
                    *size = 0;
                }
            }
            unsafe extern "C" fn never(_: *mut c_void, _: u32, _: *mut u8, _: usize, _: usize) {}
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            let registered = crate::call!(cupti.library, "cuptiActivityRegisterCallbacks"(none => Requested, never => Completed));
            assert_eq!(registered, 0);
            driver.launch(1);
            driver.synchronize();
            assert!(cupti.records().is_empty());
            assert_eq!(client::asked(), 0);
        },
    );
}
