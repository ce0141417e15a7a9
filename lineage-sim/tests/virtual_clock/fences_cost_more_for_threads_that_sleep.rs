use lineage_sim::{Settings, isolated, load};

use crate::driver::{Driver, Handle};
use crate::{call, config};

/// A kernel of 10 µs, waited for in two ways. A thread that spins goes on 1 µs after its end, one that sleeps 30 µs after it: the event was made for
/// blocking synchronisation, or the context is (`CU_CTX_SCHED_BLOCKING_SYNC`).
#[test]
fn by_event_and_by_context() {
    isolated(
        "fences_cost_more_for_threads_that_sleep::by_event_and_by_context",
        || {
            let settings = Settings::default()
                .spin_fence_ns(1_000)
                .sleep_fence_ns(30_000);
            let gpu = load(config(settings)).unwrap();
            gpu.kernel("work").duration_ns(10_000).timed().unwrap();
            let driver = Driver::open();
            let wait = |wait: &dyn Fn()| {
                let begin_ns = gpu.now_ns();
                driver.launch(1);
                wait();
                gpu.now_ns() - begin_ns
            };
            assert_eq!(wait(&|| driver.synchronize()), 11_000);
            let mut event: Handle = std::ptr::null_mut();
            assert_eq!(
                call!(driver.library, "cuEventCreate"(&mut event => *mut Handle, 1 => u32)),
                0
            );
            let by_event = wait(&|| {
                let recorded = call!(driver.library, "cuEventRecord"(event => Handle, driver.stream => Handle));
                assert_eq!(recorded, 0);
                assert_eq!(
                    call!(driver.library, "cuEventSynchronize"(event => Handle)),
                    0
                );
            });
            assert_eq!(by_event, 40_000);
            assert_eq!(call!(driver.library, "cuCtxSetFlags"(4 => u32)), 0);
            assert_eq!(wait(&|| driver.synchronize()), 40_000);
        },
    );
}
