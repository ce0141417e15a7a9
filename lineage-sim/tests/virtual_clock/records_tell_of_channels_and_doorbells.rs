use lineage_sim::{Settings, isolated, load};

use crate::client::{CONCURRENT_KERNEL, Cupti, DRIVER, Record, kernels};
use crate::driver::Driver;
use crate::{call, config};

const NAME: &str = "records_tell_of_channels_and_doorbells";

/// Two channels for three streams: the third shares with the first, and the records say so.
#[test]
fn streams_that_share_a_channel_have_its_id() {
    isolated(
        &format!("{NAME}::streams_that_share_a_channel_have_its_id"),
        || {
            let _gpu = load(config(Settings::default().channels(2))).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, CONCURRENT_KERNEL]);
            let (second, third) = (driver.new_stream(), driver.new_stream());
            for stream in [driver.stream, second, third] {
                assert_eq!(driver.launch_in(stream, 1), 0);
            }
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            let records = cupti.records();
            let mut channels: Vec<(u32, u32)> = Vec::new();
            for record in kernels(&records) {
                let Record::Kernel {
                    channel, stream, ..
                } = record
                else {
                    unreachable!()
                };
                channels.push((*stream, *channel));
            }
            channels.sort_unstable();
            assert_eq!(channels.len(), 3);
            assert_ne!(channels[0].1, channels[1].1);
            assert_eq!(channels[0].1, channels[2].1);
        },
    );
}

/// One doorbell for two launches, with latency timestamps: queued at 1 and 2, submitted at 2 both.
#[test]
fn queued_and_submitted_are_apart() {
    isolated(&format!("{NAME}::queued_and_submitted_are_apart"), || {
        let settings = Settings::default()
            .call_ns(1_000)
            .operations_per_doorbell(2);
        let gpu = load(config(settings)).unwrap();
        gpu.kernel("work").duration_ns(5_000).timed().unwrap();
        let driver = Driver::open();
        let cupti = Cupti::open();
        assert_eq!(
            call!(cupti.library, "cuptiActivityEnableLatencyTimestamps"(1 => u8)),
            0
        );
        cupti.enable(&[DRIVER, CONCURRENT_KERNEL]);
        let begin_ns = gpu.now_ns();
        driver.launch(1);
        driver.launch(2);
        driver.synchronize();
        let records = cupti.records();
        let times: Vec<[u64; 4]> = kernels(&records)
            .iter()
            .map(|record| {
                let Record::Kernel {
                    queued,
                    submitted,
                    start,
                    end,
                    ..
                } = record
                else {
                    unreachable!()
                };
                [*queued, *submitted, *start, *end].map(|at| at - begin_ns)
            })
            .collect();
        assert_eq!(
            times,
            [[1_000, 2_000, 2_000, 7_000], [2_000, 2_000, 7_000, 12_000]]
        );
    });
}

/// Device times tick in 1 µs and are skewed by 300 ns; host times are not. A kernel that really ran from 2.5 to 7.5 µs after a full millisecond.
#[test]
fn device_times_are_the_devices_own() {
    isolated(&format!("{NAME}::device_times_are_the_devices_own"), || {
        let settings = Settings::default()
            .device_tick_ns(1_000)
            .device_skew_ns(300);
        let gpu = load(config(settings)).unwrap();
        gpu.kernel("work").duration_ns(5_000).timed().unwrap();
        let driver = Driver::open();
        let cupti = Cupti::open();
        cupti.enable(&[DRIVER, CONCURRENT_KERNEL]);
        let begin_ns = gpu.now_ns().next_multiple_of(1_000_000);
        gpu.spend_ns(begin_ns + 2_500 - gpu.now_ns());
        driver.launch(1);
        driver.synchronize();
        let truth = gpu.truth().operations[0].clone();
        assert_eq!(
            [truth.start_ns, truth.end_ns].map(|at| at - begin_ns),
            [2_500, 7_500]
        );
        let records = cupti.records();
        let Record::Kernel { start, end, .. } = kernels(&records)[0] else {
            unreachable!()
        };
        // 2,500 + 300 and 7,500 + 300, rounded down.
        assert_eq!([start, end].map(|at| at - begin_ns), [2_000, 7_000]);
    });
}
