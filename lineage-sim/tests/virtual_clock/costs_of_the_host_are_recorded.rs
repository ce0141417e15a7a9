use lineage_sim::{Cause, Faults, Settings, isolated, load};

use crate::client::{self, Cupti, DRIVER, OVERHEAD, Record};
use crate::config;
use crate::driver::Driver;

const NAME: &str = "costs_of_the_host_are_recorded";

fn overheads(records: &[Record]) -> Vec<(u32, u64, Option<[u32; 3]>)> {
    let of = |record: &Record| match record {
        Record::Overhead {
            kind,
            start,
            end,
            channel,
            correlation,
        } => {
            assert_ne!(*correlation, 0, "it names its call");
            Some((*kind, end - start, *channel))
        }
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

/// The first launch of a function costs 40 µs more than the second, and the truth says why.
#[test]
fn lazy_loading_is_paid_once_for_each_function() {
    isolated(
        &format!("{NAME}::lazy_loading_is_paid_once_for_each_function"),
        || {
            let settings = Settings::default().call_ns(1_000).lazy_loading_ns(40_000);
            let gpu = load(config(settings)).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, OVERHEAD]);
            driver.launch(1);
            driver.launch(2);
            driver.synchronize();
            // CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING
            assert_eq!(overheads(&cupti.records()), [(5 << 16, 40_000, None)]);
            let truth = gpu.truth();
            let calls: Vec<u64> = truth
                .calls
                .iter()
                .map(|call| call.end_ns - call.start_ns)
                .collect();
            assert_eq!(calls, [41_000, 1_000]);
            let waits = truth.operations[0].waits;
            assert_eq!(
                (waits.of(Cause::LazyLoading), waits.of(Cause::Host)),
                (40_000, 1_000)
            );
            assert_eq!(truth.operations[1].waits.of(Cause::LazyLoading), 0);
        },
    );
}

/// A text of under 1,024 bytes counts as one: 700 µs to compile and 50 µs to load, once, before the first launch.
#[test]
fn compiling_and_loading_a_module_take_host_time() {
    isolated(
        &format!("{NAME}::compiling_and_loading_a_module_take_host_time"),
        || {
            let settings = Settings::default()
                .compile_ns_per_kib(700_000)
                .module_loading_ns(50_000);
            let gpu = load(config(settings)).unwrap();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, OVERHEAD]);
            let begin_ns = gpu.now_ns();
            let _driver = Driver::open();
            assert_eq!(gpu.now_ns() - begin_ns, 750_000);
            // CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER
            assert_eq!(overheads(&cupti.records()), [(1, 700_000, None)]);
        },
    );
}

/// A ring of 2: the fourth call waits, from 4 to 11 µs, for the second kernel to leave the ring when the first has ended. See
/// the model's own test of these numbers.
#[test]
fn a_full_ring_is_recorded_with_its_channel() {
    isolated(
        &format!("{NAME}::a_full_ring_is_recorded_with_its_channel"),
        || {
            let settings = Settings::default().call_ns(1_000).ring_entries(2);
            let gpu = load(config(settings)).unwrap();
            gpu.kernel("work").duration_ns(10_000).timed().unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, OVERHEAD]);
            for label in 1..=4 {
                driver.launch(label);
            }
            driver.synchronize();
            let channel = gpu.truth().operations[0].channel;
            // CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL; the channels of records are counted from 1, and this one is for compute work.
            assert_eq!(
                overheads(&cupti.records()),
                [(6 << 16, 7_000, Some([0, channel + 1, 1]))]
            );
            assert_eq!(gpu.truth().operations[3].waits.of(Cause::QueueFull), 7_000);
        },
    );
}

/// Of a call that asks for work 1 + 2 µs, of any other 1 µs.
#[test]
fn calls_that_ask_for_work_may_cost_more() {
    isolated(
        &format!("{NAME}::calls_that_ask_for_work_may_cost_more"),
        || {
            let settings = Settings::default().call_ns(1_000).work_call_ns(2_000);
            let gpu = load(config(settings)).unwrap();
            let driver = Driver::open();
            let begin_ns = gpu.now_ns();
            driver.bind();
            assert_eq!(gpu.now_ns() - begin_ns, 1_000);
            driver.launch(1);
            assert_eq!(gpu.now_ns() - begin_ns, 4_000);
        },
    );
}

/// Kind, duration, and whether it names a call.
fn own_overheads(records: &[Record]) -> Vec<(u32, u64, bool)> {
    let of = |record: &Record| match record {
        Record::Overhead {
            kind,
            start,
            end,
            correlation,
            ..
        } => Some((*kind, end - start, *correlation != 0)),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

/// `CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE` 3, `…_CUPTI_INSTRUMENTATION` 2, `…_ACTIVITY_BUFFER_REQUEST` 7, `…_CUPTI_BUFFER_FLUSH` 1, each times 2^16.
/// The first record asks for a buffer: that of `cuInit`. A flush is recorded in the next buffer.
#[test]
fn what_cupti_itself_takes_is_recorded() {
    isolated(
        &format!("{NAME}::what_cupti_itself_takes_is_recorded"),
        || {
            let config = config(Settings::default())
                .resource_ns(30_000)
                .instrumentation_ns(500)
                .buffer_request_ns(2_000)
                .faults(Faults::default().flush_takes_ns(7_000));
            let gpu = load(config).unwrap();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, OVERHEAD]);
            let begin_ns = gpu.now_ns();
            let driver = Driver::open();
            driver.launch(1);
            driver.launch(2);
            let before_flush_ns = gpu.now_ns();
            assert_eq!(before_flush_ns - begin_ns, 30_000 + 2_000 + 2 * 500);
            let first = cupti.records();
            assert_eq!(
                own_overheads(&first),
                [
                    (7 << 16, 2_000, false),
                    (3 << 16, 30_000, true),
                    (2 << 16, 500, true),
                    (2 << 16, 500, true)
                ]
            );
            // The flush, and the buffer that its record needed.
            assert_eq!(gpu.now_ns() - before_flush_ns, 7_000 + 2_000);
            let second = cupti.records();
            assert_eq!(
                own_overheads(&second),
                [(1 << 16, 7_000, false), (7 << 16, 2_000, false)]
            );
        },
    );
}

#[test]
fn and_what_takes_nothing_is_not() {
    isolated(&format!("{NAME}::and_what_takes_nothing_is_not"), || {
        load(config(Settings::default())).unwrap();
        let cupti = Cupti::open();
        cupti.enable(&[DRIVER, OVERHEAD]);
        let driver = Driver::open();
        driver.launch(1);
        assert_eq!(own_overheads(&cupti.records()), []);
        assert_eq!(own_overheads(&cupti.records()), []);
    });
}

/// A buffer that is too small for the record about its own request drops that one, and asks no further.
#[test]
fn a_buffer_without_room_for_its_own_request_ends_the_matter() {
    isolated(
        &format!("{NAME}::a_buffer_without_room_for_its_own_request_ends_the_matter"),
        || {
            let gpu = load(config(Settings::default()).buffer_request_ns(2_000)).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, OVERHEAD]);
            // Room for the record of a call (40 bytes), not for one of an overhead (56).
            client::give_buffers_of(48, 0);
            let begin_ns = gpu.now_ns();
            driver.launch(1);
            // For the call; for the record about that; which finds no room there either.
            assert_eq!(gpu.now_ns() - begin_ns, 2 * 2_000);
            assert_eq!(client::asked(), 2);
            assert_eq!(cupti.records().len(), 1);
            assert_eq!(cupti.dropped(), 1);
        },
    );
}
