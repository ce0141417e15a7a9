use std::time::{Duration, Instant};

use lineage_sim::{Config, CuptiVersion, isolated, load};

use crate::call;
use crate::client::{
    self, CONCURRENT_KERNEL, CUSTOM2, Cupti, DRIVER, EXTERNAL_CORRELATION, LAUNCH_KERNEL, Record,
    kernels,
};
use crate::driver::Driver;

const NAME: &str = "buffers_are_asked_for_filled_and_handed_back";

fn wait_for(mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "it did not come about within 10 s"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_flush_holds_back_a_buffer_with_an_incomplete_record() {
    isolated(
        &format!("{NAME}::a_flush_holds_back_a_buffer_with_an_incomplete_record"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").duration_ns(600_000_000).timed().unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL, DRIVER]);
            driver.launch(1);
            cupti.flush(0);
            assert!(cupti.take().is_empty(), "the kernel still runs");
            driver.synchronize();
            let records = cupti.records();
            let Record::Kernel {
                start,
                end,
                completed,
                ..
            } = kernels(&records)[0]
            else {
                unreachable!()
            };
            assert_eq!((end - start, completed), (600_000_000, end));
        },
    );
}

#[test]
fn a_forced_flush_returns_begun_records_and_ends_at_one_that_has_not_begun() {
    isolated(
        &format!("{NAME}::a_forced_flush_returns_begun_records_and_ends_at_one_that_has_not_begun"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").duration_ns(400_000_000).timed().unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            driver.launch(1);
            driver.launch(2);
            driver.launch(3);
            wait_for(|| gpu.counts().operations_pending == 3);
            std::thread::sleep(Duration::from_millis(20));
            cupti.flush(1);
            let delivered = cupti.take();
            assert_eq!(delivered.len(), 1);
            // CUPTI_ERROR_INVALID_KIND ends it, and the tail can be counted.
            assert_eq!((delivered[0].end, delivered[0].valid_bytes), (21, 3 * 208));
            let [Record::Kernel { start, end, .. }] = delivered[0].records.as_slice() else {
                panic!("one record has begun: {delivered:?}")
            };
            assert_ne!(*start, 0);
            assert_eq!(*end, 0);
            // What ends later has lost its record.
            driver.synchronize();
            assert!(cupti.records().is_empty());
            assert_eq!(cupti.dropped(), 0);
            assert_eq!(gpu.truth().operations.len(), 3);
        },
    );
}

#[test]
fn full_buffers_come_back_by_themselves() {
    isolated(
        &format!("{NAME}::full_buffers_come_back_by_themselves"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            // Room for three kernel records.
            client::give_buffers_of(3 * 208 + 100, 0);
            cupti.enable(&[CONCURRENT_KERNEL]);
            for label in 0..10 {
                driver.launch(label);
            }
            driver.synchronize();
            let mut delivered = Vec::new();
            wait_for(|| {
                delivered.extend(cupti.take());
                delivered.len() == 3
            });
            assert!(delivered.iter().all(|buffer| buffer.valid_bytes == 3 * 208
                && buffer.thread != std::thread::current().id()));
            cupti.flush(0);
            delivered.extend(cupti.take());
            assert_eq!(
                delivered
                    .iter()
                    .map(|buffer| buffer.records.len())
                    .collect::<Vec<_>>(),
                [3, 3, 3, 1]
            );
        },
    );
}

#[test]
fn the_clients_limit_of_records_is_kept() {
    isolated(
        &format!("{NAME}::the_clients_limit_of_records_is_kept"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            client::give_buffers_of(64 * 1024, 2);
            cupti.enable(&[CONCURRENT_KERNEL]);
            for label in 0..5 {
                driver.launch(label);
            }
            driver.synchronize();
            cupti.flush(0);
            let mut lengths: Vec<_> = cupti
                .take()
                .iter()
                .map(|buffer| buffer.records.len())
                .collect();
            lengths.sort_unstable();
            assert_eq!(lengths, [1, 2, 2]);
        },
    );
}

#[test]
fn a_periodic_flush_returns_only_full_buffers() {
    isolated(
        &format!("{NAME}::a_periodic_flush_returns_only_full_buffers"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            client::give_buffers_of(2 * 208, 0);
            assert_eq!(
                call!(cupti.library, "cuptiActivityFlushPeriod"(50 => u32)),
                0
            );
            cupti.enable(&[CONCURRENT_KERNEL]);
            for label in 0..5 {
                driver.launch(label);
            }
            driver.synchronize();
            let mut delivered = Vec::new();
            wait_for(|| {
                delivered.extend(cupti.take());
                delivered.len() == 2
            });
            std::thread::sleep(Duration::from_millis(120));
            assert!(cupti.take().is_empty(), "the last buffer is not full");
            assert_eq!(cupti.records().len(), 1);
        },
    );
}

#[test]
fn a_refused_or_small_buffer_drops_records_and_counts_them_until_asked() {
    isolated(
        &format!("{NAME}::a_refused_or_small_buffer_drops_records_and_counts_them_until_asked"),
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL, EXTERNAL_CORRELATION]);
            assert_eq!(
                call!(cupti.library, "cuptiActivityEnableDriverApi"(LAUNCH_KERNEL => u32, 1 => u8)),
                0
            );
            cupti.push(CUSTOM2, 1);
            client::give_buffers_of(0, 0);
            driver.launch(1);
            driver.synchronize();
            // The kernel's, the call's and the external id's.
            assert_eq!(cupti.dropped(), 3);
            assert_eq!(cupti.dropped(), 0, "reading it sets it back");
            assert!(cupti.records().is_empty());
            // Room for the call with its external id, but for no kernel.
            client::give_buffers_of(207, 0);
            driver.launch(2);
            driver.synchronize();
            assert_eq!(cupti.dropped(), 1);
            assert_eq!(cupti.records().len(), 2);
            assert_eq!(gpu.counts().records_dropped, 4);
        },
    );
}

#[test]
fn the_configuration_can_make_every_buffer_too_small() {
    isolated(
        &format!("{NAME}::the_configuration_can_make_every_buffer_too_small"),
        || {
            load(Config::default().activity_buffer_limit_bytes(Some(100))).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            driver.launch(1);
            driver.synchronize();
            assert_eq!(cupti.dropped(), 1);
            assert!(cupti.records().is_empty());
        },
    );
}

/// Records of the buffers that came back after two threads launched once each. Where both ask at
/// once for the one buffer that they share, the second buffer comes back empty.
fn two_threads(config: Config) -> Vec<usize> {
    load(config).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[CONCURRENT_KERNEL]);
    std::thread::scope(|scope| {
        for label in 0..2 {
            let driver = &driver;
            scope.spawn(move || {
                driver.bind();
                driver.launch(label);
            });
        }
    });
    driver.synchronize();
    cupti.flush(0);
    cupti
        .take()
        .iter()
        .map(|buffer| buffer.records.len())
        .filter(|&records| records > 0)
        .collect()
}

#[test]
fn one_global_buffer_before_13_0() {
    isolated(&format!("{NAME}::one_global_buffer_before_13_0"), || {
        assert_eq!(two_threads(Config::default()), [2]);
    });
}

#[test]
fn a_buffer_per_thread_since_13_0_that_outlives_its_thread() {
    isolated(
        &format!("{NAME}::a_buffer_per_thread_since_13_0_that_outlives_its_thread"),
        || {
            assert_eq!(
                two_threads(Config::default().cupti_version(CuptiVersion::V13_5)),
                [1, 1]
            );
        },
    );
}

#[test]
fn buffers_per_thread_can_be_chosen_by_configuration() {
    isolated(
        &format!("{NAME}::buffers_per_thread_can_be_chosen_by_configuration"),
        || {
            assert_eq!(
                two_threads(Config::default().per_thread_buffers(Some(true))),
                [1, 1]
            );
        },
    );
}

#[test]
fn buffers_per_thread_can_be_chosen_by_attribute() {
    isolated(
        &format!("{NAME}::buffers_per_thread_can_be_chosen_by_attribute"),
        || {
            load(Config::default().cupti_version(CuptiVersion::V13_5)).unwrap();
            let cupti = Cupti::open();
            let (mut size, mut value) = (1_usize, 9_u8);
            let get = |size: &mut usize, value: &mut u8| call!(cupti.library, "cuptiActivityGetAttribute"(9 => u32, size => *mut usize, value => *mut u8));
            assert_eq!(get(&mut size, &mut value), 0);
            assert_eq!(value, 1);
            value = 0;
            assert_eq!(
                call!(cupti.library, "cuptiActivitySetAttribute"(9 => u32, &mut size => *mut usize, &mut value => *mut u8)),
                0
            );
            value = 9;
            assert_eq!(get(&mut size, &mut value), 0);
            assert_eq!(value, 0);
            assert_eq!(
                two_threads(Config::default().cupti_version(CuptiVersion::V13_5)),
                [2]
            );
            assert!(client::asked() >= 1);
        },
    );
}

#[test]
fn a_hundred_thousand_launches_from_eight_threads_lose_no_record() {
    isolated(
        &format!("{NAME}::a_hundred_thousand_launches_from_eight_threads_lose_no_record"),
        || {
            let gpu = load(
                Config::default()
                    .cupti_version(CuptiVersion::V13_5)
                    .default_kernel_ns(100),
            )
            .unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            client::give_buffers_of(256 * 1024, 0);
            cupti.enable(&[CONCURRENT_KERNEL, EXTERNAL_CORRELATION]);
            assert_eq!(
                call!(cupti.library, "cuptiActivityEnableDriverApi"(LAUNCH_KERNEL => u32, 1 => u8)),
                0
            );
            std::thread::scope(|scope| {
                for thread in 0..8_u64 {
                    let (driver, cupti) = (&driver, &cupti);
                    scope.spawn(move || {
                        driver.bind();
                        let stream = driver.new_stream();
                        for launch in 0..12_500 {
                            let label = thread << 32 | launch;
                            cupti.push(CUSTOM2, label);
                            assert_eq!(driver.launch_in(stream, label), 0);
                            assert_eq!(cupti.pop(CUSTOM2), Ok(label));
                        }
                    });
                }
            });
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            let records = cupti.records();
            assert_eq!(
                records.len(),
                300_000,
                "a kernel, a call and an external id each"
            );
            assert_eq!((cupti.dropped(), gpu.counts().panics_caught), (0, 0));
            assert!(gpu.counts().stacks.is_empty());
        },
    );
}
