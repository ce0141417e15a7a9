use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lineage_sim::{Cause, Config, Gpu, Settings, isolated, load};

use crate::call;
use crate::driver::{Driver, Handle};

const NAME: &str = "every_mechanism_works_with_the_real_clock";

/// Everything on at once, in µs that a busy machine can keep.
fn settings() -> Settings {
    Settings::default()
        .channels(2)
        .ring_entries(16)
        .push_buffer_bytes(4_096)
        .operations_per_doorbell(3)
        .doorbell_ns(2_000)
        .dispatch_ns(1_000)
        .time_slice_ns(200_000)
        .neighbour_slice_ns(100_000)
        .context_switch_ns(5_000)
        .preemption_granularity_ns(20_000)
        .multiprocessors(4)
        .copy_engines_to_device(1)
        .copy_engines_to_host(1)
        .lazy_loading_ns(50_000)
        .spin_fence_ns(1_000)
        .work_call_ns(1_000)
}

/// Whether the value that one stream waits for was put into another.
static IS_WRITTEN: AtomicBool = AtomicBool::new(false);

/// Launches, copies, events, waits and a value that another thread's stream writes.
fn one_thread(driver: &Driver, memory: u64, value: u64, labels: &AtomicU64, number: u64) {
    driver.bind();
    let library = &driver.library;
    let (stream, other) = (driver.new_stream(), driver.new_stream());
    let mut event: Handle = std::ptr::null_mut();
    assert_eq!(
        call!(library, "cuEventCreate"(&mut event => *mut Handle, 2 => u32)),
        0
    );
    for round in 0..30 {
        for _ in 0..5 {
            let label = labels.fetch_add(1, Ordering::Relaxed);
            assert_eq!(driver.launch_in(stream, label), 0);
        }
        assert_eq!(
            call!(library, "cuEventRecord"(event => Handle, stream => Handle)),
            0
        );
        assert_eq!(
            call!(library, "cuStreamWaitEvent"(other => Handle, event => Handle, 0 => u32)),
            0
        );
        let label = labels.fetch_add(1, Ordering::Relaxed);
        assert_eq!(driver.launch_in(other, label), 0);
        let place = memory + 64 * number;
        let set = call!(library, "cuMemsetD8Async"(place => u64, number as u8 => u8, 64 => usize, other => Handle));
        assert_eq!(set, 0);
        let mut back = [0_u8; 64];
        let copy = call!(library, "cuMemcpyDtoHAsync_v2"(back.as_mut_ptr() => *mut u8, place => u64, 64 => usize, other => Handle));
        assert_eq!((copy, back), (0, [number as u8; 64]));
        if round == 15 && number == 0 {
            let code = call!(library, "cuStreamWriteValue32_v2"(stream => Handle, value => u64, 1 => u32, 0 => u32));
            assert_eq!(code, 0);
            IS_WRITTEN.store(true, Ordering::Release);
        }
        if round == 15 && number == 1 {
            // In the channel that both may share a wait before the write would hold the write up, for ever.
            while !IS_WRITTEN.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let code = call!(library, "cuStreamWaitValue32_v2"(stream => Handle, value => u64, 1 => u32, 0 => u32));
            assert_eq!(code, 0);
        }
        assert_eq!(call!(library, "cuEventSynchronize"(event => Handle)), 0);
    }
    assert_eq!(call!(library, "cuStreamSynchronize"(other => Handle)), 0);
    assert_eq!(call!(library, "cuStreamSynchronize"(stream => Handle)), 0);
    assert_eq!(call!(library, "cuStreamDestroy_v2"(stream => Handle)), 0);
}

fn check(gpu: &Gpu, launches: u64) {
    let truth = gpu.truth();
    let mut labels: Vec<u64> = truth
        .operations
        .iter()
        .filter(|operation| operation.name.is_some())
        .filter_map(|operation| operation.label)
        .collect();
    labels.sort_unstable();
    assert_eq!(labels, (0..launches).collect::<Vec<_>>());
    for operation in &truth.operations {
        let stages = [
            operation.call_start_ns,
            operation.queued_ns,
            operation.submitted_ns,
            operation.issued_ns,
            operation.resources_ns,
            operation.start_ns,
            operation.end_ns,
        ];
        assert!(stages.is_sorted(), "{operation:#?}");
        assert!(
            operation.dependencies_ns <= operation.issued_ns,
            "{operation:#?}"
        );
        assert_eq!(
            operation.waits.total_ns(),
            operation.start_ns - operation.call_start_ns,
            "{operation:#?}"
        );
        let inside_ns = operation.preempted_ns + operation.waited_inside_ns;
        assert!(
            inside_ns <= operation.end_ns - operation.start_ns,
            "{operation:#?}"
        );
    }
    let held_by = |cause| {
        truth
            .operations
            .iter()
            .any(|operation| operation.waits.of(cause) > 0)
    };
    for cause in [
        Cause::Host,
        Cause::LazyLoading,
        Cause::Doorbell,
        Cause::Dependency,
        Cause::Dispatch,
        Cause::Neighbour,
    ] {
        assert!(held_by(cause), "{cause:?} held nothing up");
    }
    assert!(
        truth
            .operations
            .iter()
            .any(|operation| operation.preempted_ns > 0)
    );
    assert_eq!(gpu.counts().operations_pending, 0);
    assert_eq!(gpu.counts().panics_caught, 0);
}

#[test]
fn four_threads_and_eight_streams_come_to_an_end() {
    isolated(
        &format!("{NAME}::four_threads_and_eight_streams_come_to_an_end"),
        || {
            let gpu = load(Config::default().model(settings())).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(30_000)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let (memory, value) = (driver.allocate(4_096), driver.allocate(64));
            let labels = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for number in 0..4 {
                    let (driver, labels) = (&driver, &labels);
                    scope.spawn(move || one_thread(driver, memory, value, labels, number));
                }
            });
            check(&gpu, labels.into_inner());
        },
    );
}

/// A value that a host writes is seen although nothing else happens on the device.
#[test]
fn a_value_that_a_host_writes_is_seen() {
    isolated(
        &format!("{NAME}::a_value_that_a_host_writes_is_seen"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").timed().unwrap();
            let driver = Driver::open();
            let mut memory: Handle = std::ptr::null_mut();
            assert_eq!(
                call!(driver.library, "cuMemHostAlloc"(&mut memory => *mut Handle, 64 => usize, 0 => u32)),
                0
            );
            let address = memory.expose_provenance() as u64;
            let wait = call!(driver.library, "cuStreamWaitValue64_v2"(driver.stream => Handle, address => u64, 3 => u64, 0 => u32));
            assert_eq!(wait, 0);
            driver.launch(1);
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(gpu.counts().operations_completed, 0);
            let written_ns = gpu.now_ns();
            // SAFETY: aligned host memory of the driver's; the device reads it as an atomic.
            unsafe { AtomicU64::from_ptr(memory.cast()) }.store(3, Ordering::Release);
            driver.synchronize();
            assert!(gpu.truth().operations[0].start_ns >= written_ns);
        },
    );
}
