use lineage_sim::{Settings, isolated, load};

use crate::driver::{Driver, Handle};
use crate::{call, config};

const NAME: &str = "a_wait_that_nothing_can_end_is_an_error";

/// The stream waits for a value that nobody writes. A GPU would hang; the virtual clock knows that nothing will happen any more. Once a host
/// has written it everything goes on, at that time.
#[test]
fn of_a_value_that_nobody_writes() {
    isolated(&format!("{NAME}::of_a_value_that_nobody_writes"), || {
        let gpu = load(config(Settings::default())).unwrap();
        gpu.kernel("work").duration_ns(5_000).timed().unwrap();
        let driver = Driver::open();
        let mut memory: Handle = std::ptr::null_mut();
        assert_eq!(
            call!(driver.library, "cuMemHostAlloc"(&mut memory => *mut Handle, 64 => usize, 0 => u32)),
            0
        );
        let address = memory.expose_provenance() as u64;
        let stream = driver.stream;
        // CU_STREAM_WAIT_VALUE_EQ; unaligned, and somewhere else, are refused.
        for (at, expected) in [(address + 4, 1), (8, 1), (address, 0)] {
            let code = call!(driver.library, "cuStreamWaitValue64_v2"(stream => Handle, at => u64, 7 => u64, 1 => u32));
            assert_eq!(code, expected);
        }
        driver.launch(1);
        // CUDA_ERROR_LAUNCH_TIMEOUT
        assert_eq!(
            call!(driver.library, "cuStreamSynchronize"(stream => Handle)),
            702
        );
        assert!(gpu.truth().operations.is_empty());
        gpu.spend_ns(10_000);
        let written_ns = gpu.now_ns();
        // SAFETY: host memory of the driver's, which nobody else touches now.
        unsafe { memory.cast::<u64>().write(7) };
        driver.synchronize();
        assert_eq!(gpu.truth().operations[0].start_ns, written_ns);
    });
}

/// The same value written by another stream, behind a kernel of 5 µs.
#[test]
fn of_a_value_that_another_stream_writes() {
    isolated(
        &format!("{NAME}::of_a_value_that_another_stream_writes"),
        || {
            let gpu = load(config(Settings::default())).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(5_000)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let other = driver.new_stream();
            let address = driver.allocate(64);
            let wait = call!(driver.library, "cuStreamWaitValue32_v2"(driver.stream => Handle, address => u64, 1 => u32, 0 => u32));
            assert_eq!(wait, 0);
            driver.launch(1);
            assert_eq!(driver.launch_in(other, 2), 0);
            let write = call!(driver.library, "cuStreamWriteValue32_v2"(other => Handle, address => u64, 1 => u32, 0 => u32));
            assert_eq!(write, 0);
            driver.synchronize();
            let operations = gpu.truth().operations;
            assert_eq!(
                operations.iter().map(|of| of.label).collect::<Vec<_>>(),
                [Some(2), Some(1)]
            );
            assert_eq!(operations[1].start_ns, operations[0].end_ns);
            assert_eq!(
                operations[1].last_dependency,
                lineage_sim::DependencyKind::Semaphore
            );
        },
    );
}
